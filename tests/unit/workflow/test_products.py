"""Products are there whole or not at all."""

import json
import os

import pytest

from agglearn import storage
from agglearn.errors import DataError, NotAvailable
from agglearn.storage import atomic_dir, atomic_file, digest, file_digest, write_json
from agglearn_workflow.runs.products import build_product, content_digests, manifest


def test_a_folder_appears_whole_and_is_replaced_whole(tmp_path):
    for name in ("first", "second"):
        with atomic_dir(tmp_path / "deep/p") as work:
            (work / name).write_text(name)
            assert (tmp_path / "deep/p").exists() == (name == "second")
        assert (tmp_path / "deep/p" / name).read_text() == name
        assert os.listdir(tmp_path / "deep/p") == [name]
        assert os.listdir(tmp_path / "deep") == ["p"]
    assert (tmp_path / "deep/p").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("whole", [atomic_dir, atomic_file])
def test_an_error_leaves_what_was_there(tmp_path, whole, error):
    def fail():
        with whole(tmp_path / "p") as work:
            (work / "a" if whole is atomic_dir else work).write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == []
    old = tmp_path / ("p/old" if whole is atomic_dir else "p")
    old.parent.mkdir(exist_ok=True)
    write_json(old, {"b": 1, "a": [2]})
    with pytest.raises(error):
        fail()
    assert [path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()] == ["p"]
    assert json.loads(old.read_text()) == {"a": [2], "b": 1}


def test_digests(tmp_path):
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 2, "b": 1})
    (tmp_path / "f").write_bytes(b"abc")
    assert file_digest(tmp_path / "f") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_product_that_could_be_made(tmp_path):
    def build(out):
        (out / "sub").mkdir()
        (out / "sub/a").write_text("abc")
        return {"rows": 3}

    said = build_product(tmp_path / "p", build)
    assert said == manifest(tmp_path / "p")
    assert (said["status"], said["rows"]) == ("ok", 3)
    assert said["content"] == content_digests(tmp_path / "p")
    assert list(said["content"]) == ["sub/a"]


def missing(out):
    (out / "half").write_text("half")
    (out / "folder").mkdir()
    raise NotAvailable("no source")


def test_what_cannot_be_had_is_a_status(tmp_path):
    said = build_product(tmp_path / "p", missing)
    assert said == {"status": "unavailable", "reason": "no source", "content": {}}
    assert os.listdir(tmp_path / "p") == ["manifest.json"]


def wrong(out):
    raise DataError("bad")


@pytest.mark.parametrize(
    ("build", "on_missing", "error"), [(missing, "fail", NotAvailable), (wrong, "report", DataError)]
)
def test_missing_fails_where_asked_and_another_error_leaves_no_product(tmp_path, build, on_missing, error):
    with pytest.raises(error, match=r"no source|bad"):
        build_product(tmp_path / "p", build, on_missing=on_missing)
    assert os.listdir(tmp_path) == []


def good(out):
    (out / "a").write_text("abc")


@pytest.mark.parametrize("on_missing", ["report", "fail"])
def test_an_ok_product_stays_when_its_successor_cannot_be_had(tmp_path, capsys, on_missing):
    first = build_product(tmp_path / "p", good, recipe="one")
    said = build_product(tmp_path / "p", missing, on_missing=on_missing, recipe="one")
    assert said == first == manifest(tmp_path / "p")
    assert (tmp_path / "p/a").read_text() == "abc"
    assert "stays as it is: no source" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["p"]


def test_an_ok_product_of_another_recipe_does_not_stand_in(tmp_path):
    build_product(tmp_path / "p", good, recipe="one")
    said = build_product(tmp_path / "p", missing, recipe="two")
    assert said["status"] == "unavailable"
    assert "has another recipe" in said["reason"]
    assert os.listdir(tmp_path / "p") == ["manifest.json"]
    assert build_product(tmp_path / "p", missing, recipe="two")["reason"] == "no source"


def test_a_failure_is_reported(tmp_path):
    def broken(folder):
        raise ValueError("no columns")

    told = []
    build_product(tmp_path / "p", broken, on_failure=told.append)
    assert manifest(tmp_path / "p").items() >= {"status": "failed", "reason": "ValueError: no columns"}.items()
    assert [str(error) for error in told] == ["no columns"]


def test_json_has_a_line_for_each_item_of_the_outer_levels():
    value = {"a": [{"b": [1, {"é": None}], "c": {}}, []], "d": "x\n", "e": 0.1, "f": {}}
    text = storage.json_lines(value)
    assert json.loads(text) == value
    assert text == '{"a": [{"b": [1, {"é": null}],\n"c": {}},\n[]],\n"d": "x\\n",\n"e": 0.1,\n"f": {}}'
