"""Children that raise, die or hang: the others all run, each once."""

import logging
import os
import signal
import time
from types import SimpleNamespace

import psutil
import pytest

from agglearn import jobs
from agglearn.registry import build
from agglearn.workflow.isolation import run_isolated

LIMIT = 0.6


def run(tmp_path, behaviours: list[str], limit=LIMIT):
    """(what each item did, in order; {item: why} of those that failed)."""
    log = tmp_path / "log"

    def work(item):
        at, how = item
        with open(log, "a") as handle:
            handle.write(f"{at}\n")
        if how == "raises":
            raise ValueError("on purpose")
        if how == "exits":
            os._exit(7)
        if how == "leaves":
            os._exit(0)
        if how == "starts" and os.fork() == 0:
            time.sleep(5 * limit)
            os._exit(0)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hangs":
            time.sleep(60)
        if how == "slow":
            time.sleep(limit * 0.6)

    items = list(enumerate(behaviours))
    failed = {item[0]: why for item, why in run_isolated(work, items, limit)}
    return [int(x) for x in log.read_text().split()] if log.exists() else [], failed


SAID = {
    "raises": "the process ended with status 1",
    "exits": "the process ended with status 7",
    "killed": "the process was ended by SIGKILL",
    "hangs": f"stopped after the limit of {LIMIT:g} s",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", SAID)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_one_that_fails(tmp_path, how, place):
    behaviours = ["ok"] * 5
    behaviours[place] = how
    begun, failed = run(tmp_path, behaviours)
    assert begun == [0, 1, 2, 3, 4]
    assert list(failed) == [place]
    assert failed[place].startswith(SAID[how])


def test_all_kinds_in_a_row(tmp_path):
    begun, failed = run(tmp_path, ["raises", "killed", "hangs", "ok", "exits"])
    assert begun == [0, 1, 2, 3, 4]
    assert [failed[i].split(" (")[0] for i in (0, 1, 2, 4)] == [SAID[h] for h in ("raises", "killed", "hangs", "exits")]


def test_the_limit_is_for_each_not_for_all(tmp_path):
    begun, failed = run(tmp_path, ["slow"] * 4)
    assert begun == [0, 1, 2, 3]
    assert failed == {}


def test_a_process_that_ends_in_peace_has_not_done_the_rest(tmp_path):
    begun, failed = run(tmp_path, ["ok", "leaves", "ok"])
    assert (begun, failed) == ([0, 1, 2], {1: "the process ended with status 0"})


def test_what_a_work_starts_does_not_hold_up_its_end(tmp_path):
    """A process that the last work leaves behind has the pipe of its parent open."""
    assert run(tmp_path, ["starts"]) == ([0], {})


def test_nothing_to_do(tmp_path):
    assert run(tmp_path, []) == ([], {})


def test_work_is_done_in_children(tmp_path):
    here = []
    assert list(run_isolated(lambda item: here.append(item), [1, 2], 5)) == []
    assert here == []


def test_no_child_is_left(tmp_path):
    before = psutil.Process().children(recursive=True)
    run(tmp_path, ["ok", "hangs"])
    assert set(psutil.Process().children(recursive=True)) <= set(before)


def test_build():
    value = {"class": "agglearn.encoding.FrameEncoder", "params": {"features": [1]}}
    assert build(value).features == [1]
    nested = {
        "class": "agglearn.maxent.BestPairClassifier",
        "params": {"l2": {"class": "fractions.Fraction", "params": {"numerator": 3}}},
    }
    built = build(nested, random_state=5)
    assert (built.l2, built.random_state) == (3, 5)
    assert build({"a": 1}) == {"a": 1}
    assert build(4) == 4


def test_kernels_of_timed_methods_are_compiled_where_data_are_observed(monkeypatch):
    compiled = []

    class Slow:
        def warm_up(self):
            compiled.append("warm")
            raise RuntimeError

    monkeypatch.setattr("agglearn.registry.build", lambda spec: compiled.append(spec["params"]) or Slow())
    jobs._compile([{"class": "a", "params": {"n": {"grid": [3, 4]}}}, {"class": "b"}])
    assert compiled == [{"n": 3}, "warm", {}, "warm"]


def test_messages_of_loggers_are_in_the_log_of_the_job(tmp_path, monkeypatch):
    logger = logging.getLogger("agglearn.tasks.observers")
    monkeypatch.setattr(jobs.kernel_cache, "choose", lambda *_: None)
    monkeypatch.setitem(jobs.STAGES, "fit", lambda job, terminal: logger.info("left out: %s", "zip"))
    log = tmp_path / "fit.log"
    config = {"code": [], "results": str(tmp_path), "cache": str(tmp_path)}
    job = SimpleNamespace(rule="fit", config=config, log=[str(log)], wildcards=[])
    assert jobs.run(job) is None
    assert log.read_text().splitlines()[0] == "left out: zip"
    logger.info("after the job")
    assert "after" not in log.read_text()
