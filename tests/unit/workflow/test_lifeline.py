"""A process that follows the main process ends with it, and so does what it has started."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agglearn.workflow import lifeline

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

JOB = """
import subprocess, sys, time
from agglearn.workflow import lifeline
child = subprocess.Popen(["sleep", "600"])
lifeline.follow()
print(child.pid, flush=True)
time.sleep(600)
"""


def ended(number: int) -> bool:
    for _ in range(200):
        try:
            with open(f"/proc/{number}/stat") as handle:
                if handle.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def main(monkeypatch):
    """A main process, announced."""
    process = subprocess.Popen(["sleep", "600"])
    monkeypatch.setenv(lifeline.VARIABLE, f"{process.pid} {lifeline._machine()}")
    yield process
    process.kill()
    process.wait()


def job() -> tuple[subprocess.Popen, int]:
    """A job, and the number of the process that it has started."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", JOB], stdout=subprocess.PIPE, text=True, env=environ)
    return process, int(process.stdout.readline())


def test_a_job_and_what_it_has_started_end_with_the_main_process(main):
    process, child = job()
    main.kill()
    main.wait()
    assert process.wait(10) == -signal.SIGKILL
    assert ended(child)


def test_a_job_that_starts_too_late_ends_at_once(main):
    main.kill()
    main.wait()
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    code = "from agglearn.workflow import lifeline; lifeline.follow()"
    assert subprocess.run([sys.executable, "-c", code], env=environ).returncode == -signal.SIGKILL


def test_a_job_on_another_machine_goes_on(main, monkeypatch):
    monkeypatch.setenv(lifeline.VARIABLE, f"{main.pid} another machine")
    process, child = job()
    main.kill()
    main.wait()
    time.sleep(0.3)
    assert process.poll() is None
    lifeline.end_tree(process.pid)
    assert process.wait(10) == -signal.SIGKILL
    assert ended(child)


def test_without_a_main_process_nothing_is_followed(monkeypatch):
    monkeypatch.setenv(lifeline.VARIABLE, "")
    lifeline.follow()
    lifeline.announce()
    assert os.environ[lifeline.VARIABLE].startswith(f"{os.getpid()} ")
