"""Files that a rule builds from others."""

import numpy as np
import pandas as pd
import pytest
from fetched_places import BAD, GOOD, PAGE, SHA, sha, zipped

from agglearn import local_files
from agglearn.datasets.content import content_digest
from agglearn.errors import DataError
from agglearn.storage import read_json
from agglearn_workflow import digests

RULES = """
import numpy as np
import pandas as pd

def joined(inputs, out, times=1):
    out.write_bytes(b"".join(inputs[n].read_bytes() for n in sorted(inputs)) * times)

def head(inputs, out, size):
    out.write_bytes(inputs["log"].read(size))

def frame(inputs, out, compression):
    pd.DataFrame({"x": np.arange(5)}).to_parquet(out, compression=compression)
"""


@pytest.fixture
def rules(tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/rules_for_test.py").write_text(RULES)
    monkeypatch.setattr(digests, "ROOTS", list(digests.ROOTS))
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    digests.add_root(tmp_path / "code")
    return "rules_for_test"


def build(function: str, inputs: dict, **more) -> dict:
    return {"kind": "build", "function": function, "inputs": inputs} | more


def test_a_file_that_is_built(place, host, rules):
    host.serve("/a", zipped(x=GOOD[:100]))
    host.serve("/b", GOOD[100:])
    inputs = {
        "a": {"sha256": sha(GOOD[:100]), "routes": [place.url("/a", member="x")]},
        "b": {"sha256": "unknown", "routes": [place.url("/b")]},
    }
    route = build(f"{rules}.joined", inputs)
    assert place.get(route) == ("build", f"{rules}.joined", GOOD)
    assert place.get(route)[2] == GOOD
    assert len(host.asked) == 2
    assert place.cached() == ["f"]
    place.fail("sha256 is", route | {"params": {"times": 2}}, error=DataError, name="g")


def test_inputs_come_from_mirrors_too(place, rules):
    (place.mirror.parent / "log.txt").write_bytes(GOOD)
    route = build(f"{rules}.joined", {"log.txt": {"sha256": SHA}})
    assert place.get(route)[0] == "build"
    entry = {"files": {"f": {"sha256": "unknown", "routes": [route]}}}
    config = {"mirrors": ["mirror", "http://h"]}
    assert local_files.local_candidates("d", entry, config, place.base) == [place.mirror.parent / "log.txt"]


def test_inputs_that_came_stay_until_the_file_is_built(place, host, rules):
    host.serve("/a", GOOD[:100])
    inputs = {n: {"sha256": "unknown", "routes": [place.url(f"/{n}")]} for n in "ab"}
    place.fail(r"joined: b cannot be had .*404", build(f"{rules}.joined", inputs))
    host.serve("/b", GOOD[100:])
    assert place.get(build(f"{rules}.joined", inputs))[2] == GOOD
    assert host.requests("/a") == [None]


def test_inputs_that_made_a_wrong_file_come_again(place, host, rules):
    host.serve("/a", BAD)
    route = build(f"{rules}.joined", {"a": {"sha256": "unknown", "routes": [place.url("/a")]}})
    place.fail("sha256 is", route, error=DataError)
    host.serve("/a", GOOD)
    assert place.get(route)[2] == GOOD


def test_a_stream_is_read_no_further_than_needed(place, host, rules):
    host.serve("/log", GOOD + bytes(50_000_000), cut=len(GOOD) + 1000)  # a read beyond would fail
    inputs = {"log": {"sha256": "unknown", "stream": True, "routes": [place.url("/gone"), place.url("/log")]}}
    assert place.get(build(f"{rules}.head", inputs, params={"size": len(GOOD)}))[2] == GOOD


def test_a_stream_from_a_mirror_and_one_that_is_a_page(place, host, rules):
    host.serve("/log", PAGE, kind="text/html")
    inputs = {"log": {"sha256": "unknown", "stream": True, "routes": [place.url("/log"), {"kind": "mirror"}]}}
    route = build(f"{rules}.head", inputs, params={"size": len(GOOD)})
    place.fail("web page", route)
    (place.mirror.parent / "log").write_bytes(GOOD + b"more")
    assert place.get(route)[2] == GOOD


def test_a_build_is_compared_by_its_content(place, rules):
    pd.DataFrame({"x": np.arange(5)}).to_parquet(place.base / "right.parquet", compression="zstd")
    content, other = content_digest(place.base / "right.parquet"), sha((place.base / "right.parquet").read_bytes())
    place.mirror.write_bytes(GOOD)
    route = build(f"{rules}.frame", {"f": {"sha256": SHA}}, params={"compression": "none"})
    for _ in range(2):
        kind, _, data = place.get(route, sha256=other, content=content, name="x.parquet")
        assert kind == "build"
        assert sha(data) != other
    stated = {"sha256": other, "content": sha(b"other"), "name": "y.parquet"}
    place.fail("digest of the content is", route, error=DataError, **stated)


def test_a_build_of_another_file_than_the_other_routes_bring(place, rules):
    """The rule's result is not the mirror's file; its own first result is the reference."""
    place.mirror.write_bytes(GOOD)
    route = build(f"{rules}.frame", {"f": {"sha256": SHA}}, params={"compression": "none"}, content="unknown")
    kind, _, data = place.get(route, sha256=sha(BAD), name="x.parquet")
    assert kind == "build"
    assert place.get(route, sha256=sha(BAD), name="x.parquet")[2] == data
    assert "content" in read_json(place.cache / ".x.parquet.json")


def test_a_changed_rule_builds_again(place, rules, monkeypatch):
    place.mirror.write_bytes(GOOD)
    route = build(f"{rules}.joined", {"f": {"sha256": SHA}}, content="unknown")
    assert place.get(route, name="g", sha256="unknown")[2] == GOOD
    assert place.get(route | {"params": {"times": 2}}, name="g", sha256="unknown")[2] == GOOD * 2
