"""What one process reads from modules is kept for the next: quick, and never wrong."""

import os

import pytest

from agglearn import kernel_cache, storage
from agglearn_workflow import digests


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file for one module, `thing`, which is followed beside the others; it lies in a folder of its own."""
    monkeypatch.setattr(kernel_cache, "default_base", lambda: tmp_path / "cache")
    monkeypatch.setattr(digests, "ROOTS", [*digests.ROOTS, tmp_path])
    (tmp_path / "thing.py").write_text("import numpy as np\n\ndef twice(x):\n    return 2 * x\n")
    forget()
    yield tmp_path / "cache/modules/thing.json"
    forget()


def forget() -> None:
    """What a new process knows: nothing."""
    for cached in digests.CACHED:
        cached.cache_clear()


def digest() -> str:
    forget()
    return digests.code_digest("thing.twice")


def test_the_next_process_parses_nothing(kept, monkeypatch):
    before = digest(), digests.versions("thing.twice"), digests.modules_behind("thing.twice")
    assert "numpy" in before[1]
    assert kept.is_file()
    monkeypatch.setattr(digests.ast, "parse", None)
    assert (digest(), digests.versions("thing.twice"), digests.modules_behind("thing.twice")) == before


def test_another_text_is_read_though_time_and_size_are_the_same(kept, tmp_path):
    before, path = digest(), tmp_path / "thing.py"
    state = path.stat()
    path.write_text(path.read_text().replace("2", "3"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert digest() != before


def test_another_reader_reads_anew(kept, monkeypatch, tmp_path):
    before = digest()
    [(key, [_, imports])] = storage.read_json(kept).items()
    storage.write_json(kept, {key: ["another digest", imports]})
    assert digest() != before  # it was read from the file
    monkeypatch.setattr(digests.sys, "version", "another grammar")
    assert digest() == before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3", "\x00"])
def test_a_broken_file_costs_time_only(kept, text):
    before = digest()
    kept.write_text(text)
    assert digest() == before
    assert storage.read_json(kept)


def test_a_place_that_cannot_be_written_costs_time_only(kept, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder would be")
    before = digest()
    assert digest() == before
