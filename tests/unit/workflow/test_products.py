"""Products are there whole or not at all."""

import json
import os

import pytest

from agglearn import storage
from agglearn.errors import DataError, NotAvailable
from agglearn.storage import atomic_dir, atomic_file, digest, file_digest, write_json
from agglearn_workflow.runs import products
from agglearn_workflow.runs.products import build_product, content_digests, manifest


def test_a_folder_appears_whole(tmp_path):
    with atomic_dir(tmp_path / "deep/p") as work:
        (work / "a").write_text("1")
        assert not (tmp_path / "deep/p").exists()
    assert (tmp_path / "deep/p/a").read_text() == "1"
    assert os.listdir(tmp_path / "deep") == ["p"]
    assert (tmp_path / "deep/p").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_nothing(tmp_path, error):
    def fail():
        with atomic_dir(tmp_path / "p") as work:
            (work / "a").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == []
    (tmp_path / "p").mkdir()
    (tmp_path / "p/old").write_text("kept")
    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == ["p"]
    assert os.listdir(tmp_path / "p") == ["old"]


def test_a_folder_is_replaced_whole(tmp_path):
    for name in ("first", "second"):
        with atomic_dir(tmp_path / "p") as work:
            (work / name).write_text(name)
    assert os.listdir(tmp_path / "p") == ["second"]
    assert os.listdir(tmp_path) == ["p"]


def test_a_file_appears_whole(tmp_path):
    def half():
        with atomic_file(tmp_path / "f") as work:
            work.write_text("half")
            raise ValueError

    with pytest.raises(ValueError):
        half()
    assert os.listdir(tmp_path) == []
    write_json(tmp_path / "f", {"b": 1, "a": [2]})
    with pytest.raises(ValueError):
        half()
    assert json.loads((tmp_path / "f").read_text()) == {"a": [2], "b": 1}
    assert os.listdir(tmp_path) == ["f"]


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


def test_missing_fails_where_asked(tmp_path):
    with pytest.raises(NotAvailable, match="no source"):
        build_product(tmp_path / "p", missing, on_missing="fail")
    assert os.listdir(tmp_path) == []


def test_another_error_leaves_no_product(tmp_path):
    def wrong(out):
        raise DataError("bad")

    with pytest.raises(DataError):
        build_product(tmp_path / "p", wrong)
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
    products.build_product(tmp_path / "p", broken, on_failure=told.append)
    assert products.manifest(tmp_path / "p")["status"] == "failed"
    assert products.manifest(tmp_path / "p")["reason"] == "ValueError: no columns"
    assert [str(error) for error in told] == ["no columns"]


def test_json_has_a_line_for_each_item_of_the_outer_levels():
    value = {"a": [{"b": [1, {"é": None}], "c": {}}, []], "d": "x\n", "e": 0.1, "f": {}}
    text = storage.json_lines(value)
    assert json.loads(text) == value
    assert text == '{"a": [{"b": [1, {"é": null}],\n"c": {}},\n[]],\n"d": "x\\n",\n"e": 0.1,\n"f": {}}'
