"""Children that raise, die or hang: the others all run, each once."""

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from agglearn.registry import build
from agglearn_workflow.runs.isolation import end_tree, run_isolated

LIMIT = 0.6
on_linux = pytest.mark.skipif(platform.system() != "Linux", reason="needs Linux")


def run(tmp_path, behaviours: list[str], limit=LIMIT):
    """(what each item did, in order; {item: why} of those that failed)."""
    log = tmp_path / "log"

    def work(item):
        at, how = item
        with open(log, "a") as handle:
            handle.write(f"{at}\n")
        if how == "raises":
            raise ValueError("on purpose")
        if how in ("exits", "leaves"):
            os._exit(7 if how == "exits" else 0)
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
    "leaves": "the process ended with status 0",  # in peace, but it has not done the rest
    "hangs": f"stopped after the limit of {LIMIT:g} s",
}


@pytest.mark.slow
@pytest.mark.parametrize("behaviours", [
    *(["ok"] * place + [how] + ["ok"] * (4 - place) for how in SAID for place in (0, 2, 4)),
    ["raises", "killed", "hangs", "ok", "exits"],
    ["slow"] * 4,  # the limit is for each, not for all
    ["starts"],  # a process that the last work leaves behind has the pipe of its parent open
    [],
], ids=" ".join)  # fmt: skip
def test_the_others_run_whatever_fails_and_no_child_is_left(tmp_path, behaviours):
    children = set(psutil.Process().children(recursive=True))
    begun, failed = run(tmp_path, behaviours)
    assert begun == list(range(len(behaviours)))
    said = {place: why.split(" (")[0] for place, why in failed.items()}
    assert said == {place: SAID[how] for place, how in enumerate(behaviours) if how in SAID}
    assert set(psutil.Process().children(recursive=True)) <= children


def test_work_is_done_in_children(tmp_path):
    here = []
    assert list(run_isolated(lambda item: here.append(item), [1, 2], 5)) == []
    assert here == []


def ended(number: int) -> bool:
    """Whether a process has ended, or does within some seconds."""
    for _ in range(200):
        if not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


JOB = """
import os, subprocess, sys, time
from agglearn_workflow.runs.isolation import run_isolated

def work(path):
    with open(path, "w") as handle:
        handle.write(f"{os.getpid()} {subprocess.Popen(['sleep', '600']).pid}")
    time.sleep(600)

list(run_isolated(work, sys.argv[2:], float(sys.argv[1])))
"""


def started(path: Path, limit: float) -> tuple[subprocess.Popen, list[int]]:
    """A job whose work starts a process, and the numbers of the work and of this process, which the work writes."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    job = subprocess.Popen([sys.executable, "-c", JOB, str(limit), str(path)], env=environ)
    for _ in range(600):
        if path.exists() and len(found := path.read_text().split()) == 2:
            return job, [int(number) for number in found]
        time.sleep(0.05)
    raise TimeoutError(path)


@on_linux
def test_what_a_late_work_has_started_ends_with_it(tmp_path):
    job, below = started(tmp_path / "numbers", 2)
    assert job.wait(60) == 0
    assert all(map(ended, below))


@on_linux
def test_a_work_ends_with_a_job_that_is_killed(tmp_path):
    job, (work, below) = started(tmp_path / "numbers", 600)
    try:
        job.kill()
        job.wait()
        assert ended(work)
    finally:
        psutil.Process(below).kill()


@on_linux
def test_a_tree_of_processes_is_ended_whole(tmp_path):
    job, below = started(tmp_path / "numbers", 600)
    end_tree(job.pid)
    assert job.wait(10) == -signal.SIGKILL
    assert all(map(ended, below))
    end_tree(job.pid)  # nothing is left, and nothing is wrong


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
