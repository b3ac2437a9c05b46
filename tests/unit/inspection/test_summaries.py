"""Summaries of modules that one process keeps for the next: quick, and never wrong."""

import json
import os
from pathlib import Path

import pytest

from agglearn import kernel_cache
from agglearn_workflow.digests import digests, modules, summaries


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file, in a folder of its own; `inspection` follows one module, `thing`, beside it."""
    monkeypatch.setattr(kernel_cache, "default_base", lambda: tmp_path / "cache")
    monkeypatch.setattr(summaries, "_new", {})
    monkeypatch.setattr(modules, "ROOTS", [*modules.ROOTS, tmp_path])
    (tmp_path / "thing.py").write_text("import numpy as np\n\ndef twice(x):\n    return 2 * x\n")
    forget()
    yield summaries.path()
    forget()


def forget() -> None:
    """What a new process knows: nothing."""
    for cached in (*modules.CACHED, summaries._read_stored):
        cached.cache_clear()
    summaries._new.clear()


def digest() -> str:
    forget()
    return digests.code_digest("thing.twice")


def test_the_next_process_parses_nothing(kept, monkeypatch):
    before = digest(), digests.versions("thing.twice"), digests.modules_behind("thing.twice")
    assert "numpy" in before[1]
    summaries.write()
    assert kept.is_file()
    monkeypatch.setattr(modules, "_nodes", None)
    assert (digest(), digests.versions("thing.twice"), digests.modules_behind("thing.twice")) == before


def test_another_text_has_another_summary_though_time_and_size_are_the_same(kept, tmp_path):
    before, path = digest(), tmp_path / "thing.py"
    summaries.write()
    state = path.stat()
    path.write_text(path.read_text().replace("2", "3"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert digest() != before


def test_another_reader_reads_anew(kept, monkeypatch):
    digest()
    summaries.write()
    kept.write_text(kept.read_text().replace('"twice"', '"thrice"'))
    forget()
    assert modules.summary_of("thing").defined == ["thrice"]  # it was read from the file
    monkeypatch.setattr(modules, "_reader", lambda: b"another")
    forget()
    assert modules.summary_of("thing").defined == ["twice"]


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_a_broken_file_costs_time_only(kept, text):
    before = digest()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(text)
    assert digest() == before
    summaries.write()
    assert json.loads(kept.read_text())


def test_a_place_that_cannot_be_written_costs_time_only(kept, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder would be")
    before = digest()
    summaries.write()
    assert digest() == before


def test_what_others_have_written_stays_and_the_oldest_goes(kept, monkeypatch):
    monkeypatch.setattr(summaries, "MAX_SUMMARIES", 2)
    for name in ("a", "b", "c"):
        monkeypatch.setattr(summaries, "_new", {name: ["", [], []]})
        summaries.write()
    assert list(json.loads(Path(kept).read_text())) == ["b", "c"]
