"""What a job writes into its log, and how it ends at an error."""

import logging
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from agglearn.errors import DataError
from agglearn_workflow import jobs


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job as Snakemake hands it to its script."""
    monkeypatch.setattr(jobs.kernel_cache, "choose", lambda *_: None)
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", "1")
    return SimpleNamespace(rule="fit", config={"code": []}, log=[str(tmp_path / "fit.log")], wildcards=["trial", "all"])


def log_of(job) -> str:
    with open(job.log[0]) as log:
        return log.read()


def test_messages_of_loggers_and_what_is_printed_are_in_the_log_of_the_job(job, capsys):
    logger = logging.getLogger("agglearn.tasks.classification")
    with jobs.job_log(job) as terminal:
        logger.info("left out: %s", "zip")
        print("printed")
        print("complained", file=sys.stderr)
        print("shown", file=terminal)
    *lines, cost = log_of(job).splitlines()
    assert lines == ["left out: zip", "printed", "complained"]
    assert cost.startswith("took ")
    assert capsys.readouterr() == ("", "shown\n")
    logger.info("after the job")
    assert "after" not in log_of(job)


def test_an_error_is_one_line_and_the_end_of_the_process(job):
    """An error of ours names what it is on. Of another, the log has the traceback, and the line its rule."""
    with pytest.raises(SystemExit) as end, jobs.job_log(job):
        raise DataError("a.csv: no column y")
    assert end.value.code == f"agglearn: error: trial all: a.csv: no column y (log: {job.log[0]})"
    of_all = SimpleNamespace(**vars(job) | {"rule": "site", "wildcards": []})
    with pytest.raises(SystemExit) as end, jobs.job_log(of_all):
        raise DataError("0.parquet: not a file of the archive")
    assert end.value.code == f"agglearn: error: site: 0.parquet: not a file of the archive (log: {job.log[0]})"
    with pytest.raises(SystemExit) as end, jobs.job_log(job):
        raise DataError("a.csv: no column y")
    assert log_of(job) == end.value.code.removeprefix("agglearn: ") + "\n"
    with pytest.raises(SystemExit) as end, jobs.job_log(job):
        raise ValueError("planted")
    assert end.value.code == f"agglearn: error: fit trial all: ValueError: planted (log: {job.log[0]})"
    assert "Traceback" in log_of(job)
    assert log_of(job).endswith(end.value.code.removeprefix("agglearn: ") + "\n")


SCRIPT = """
import atexit, ctypes
from types import SimpleNamespace
from agglearn_workflow.jobs import job_log

snakemake = SimpleNamespace(rule="fit", config={"code": []}, log=[%r], wildcards=[])
with job_log(snakemake) as terminal:
    libc = ctypes.CDLL(None)
    libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)
    atexit.register(print, "handlers ran")
    if %r:
        raise ValueError("planted")
print("unflushed", end=" ")
"""


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_that_is_done_is_not_ended_by_what_a_library_does_at_the_end(tmp_path, fails):
    script = SCRIPT % (str(tmp_path / "fit.log"), fails)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    expected = (-signal.SIGABRT, "handlers ran\n") if fails else (0, "unflushed handlers ran\n")
    assert (done.returncode, done.stdout) == expected
    assert "planted" in done.stderr or not fails
