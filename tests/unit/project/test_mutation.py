"""The tool that plants bugs (`make mutants`): what it plants, what it leaves out, and that it tells noticed from unnoticed."""

import os
from types import SimpleNamespace

import pytest

pytest.importorskip("cosmic_ray", reason="the extra `mutation` is not installed")

from mutation import __main__ as run
from mutation import kinds, sites

MODULE = '''\
"""A module."""

from functools import cache

from numba import njit


@cache
def double(count: int | None, more: bool = True) -> int | None:
    """Twice a count."""
    if count is None:
        raise ValueError(f"no count: {1 + 1}")
    return 2 * count


@njit(cache=True)
def compiled(x):
    return x + 1


def largest(values):
    best = 0
    for value in values:
        if value > best:
            best = value
    return best
'''
TESTS = """\
from module import double, largest


def test_double():
    assert double(3) == 6 and double(5) == 10


def test_largest_runs():
    largest([1, 2])
"""


@pytest.fixture
def copy(tmp_path, monkeypatch):
    monkeypatch.setattr(sites, "ROOT", tmp_path)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "test_module.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    return tmp_path


@pytest.fixture
def runner(copy, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    started = run.Copy(copy)
    yield started
    started.close()


def everything(**seconds: float) -> SimpleNamespace:
    """All tests run every line."""
    tests = ["test_module.py::test_double", "test_module.py::test_largest_runs"]
    return SimpleNamespace(seconds=seconds, running=lambda path, lines: tests)


def found(copy):
    return list(sites.mutants_of(copy / "module.py"))


def test_messages_annotations_and_compiled_functions_are_left_out(copy):
    lines = {m.start[0] for m in found(copy)}
    assert lines == {11, 13, 22, 23, 24}


def test_every_change_is_another_program(copy):
    for mutant in found(copy):
        assert mutant.changed() != mutant.line(), mutant
        compile(sites.mutate_code(MODULE, sites.get_operator(mutant.operator)(), mutant.occurrence), "module", "exec")


@pytest.mark.slow
def test_noticed_and_unnoticed(copy, runner, monkeypatch):
    monkeypatch.setattr(run, "END_TO_END", ())
    for quick, unnoticed in ((False, "survived"), (True, "open")):  # quick tests alone kill or leave open
        mutants = [m for m in found(copy) if m.changed() in ("return 2 / count", "if value < best:")]
        judged = {m.changed(): run.judge(m, everything(), runner, quick=quick) for m in mutants}
        assert judged == {"return 2 / count": "killed: test_module.py::test_double", "if value < best:": unnoticed}
    assert (copy / "module.py").read_text() == MODULE


@pytest.mark.slow
def test_a_loop_without_an_end_is_too_slow(copy, runner):
    (copy / "test_module.py").write_text("def test_forever():\n    while True:\n        pass\n")
    assert [runner.first_failure(["test_module.py::test_forever"], 2) for _ in range(2)] == ["too slow"] * 2


def test_the_share_counts_what_is_not_equivalent(copy, capsys):
    store, (noticed, unnoticed, same, *_) = run.Store(copy / "results.jsonl"), found(copy)
    store.put(noticed, "killed: test_module.py::test_double")
    store.put(unnoticed, "survived")
    accepted = [{"file": same.path, "line": same.line(), "changed": same.changed(), "reason": "the same sum"}]
    assert run.report([noticed, unnoticed, same], store, accepted) == 1
    assert "50.0% of 2 changes fail a test; 1 more are equivalent" in capsys.readouterr().out
    assert run.report([noticed, same], store, accepted) == 0


@pytest.mark.slow
def test_a_test_that_is_not_there_kills_nothing(copy, runner):
    with pytest.raises(SystemExit, match="has ended"):
        runner.first_failure(["test_module.py::test_double", "test_module.py::test_gone"], 20)


# -- bugs by kind -----------------------------------------------------------------------------------------------------


PLANTED = r"""
[[kind]]
name = "order"
edits = [
    { file = "module.py", old = "        if value > best:\n            best = value", new = "        if value < best:\n            best = value" },
    { file = "module.py", old = "return 2 * count", new = "return 3 * count" },
    { file = "module.py", old = "best", new = "worst" },
    { file = "gone.py", old = "1", new = "2" },
]
"""


def test_edits_that_do_not_stand_once_in_their_file_are_reported(copy, monkeypatch):
    (copy / "kinds.toml").write_text(PLANTED)
    monkeypatch.setattr(kinds, "KINDS", copy / "kinds.toml")
    present, absent = kinds.read_edits()
    assert [(edit.place, edit.start, edit.line(), edit.changed()) for edit in present] == [
        ("order: module.py:24", (24, 0), "if value > best:", "if value < best:"),
        ("order: module.py:13", (13, 4), "return 2 * count", "return 3 * count"),
    ]
    assert [edit.end[0] for edit in present] == [25, 13]
    assert absent == [
        "order: module.py has this text 4 times, not once: best",
        "order: gone.py has this text 0 times, not once: 1",
    ]


@pytest.mark.slow
def test_a_bug_that_is_taken_away_within_a_second_is_gone(copy, runner):
    """A module of the same size and second must not be read from what was compiled before."""
    edit = kinds.Edit("kind", "module.py", "return 2 * count", "return 3 * count")
    selection = ["test_module.py::test_double"]
    for _ in range(3):
        with edit.planted(copy):
            os.utime(copy / "module.py", (1e9, 1e9))
            assert runner.first_failure(selection, 60) == selection[0]
        os.utime(copy / "module.py", (1e9, 1e9))
        assert runner.first_failure(selection, 60) is None
