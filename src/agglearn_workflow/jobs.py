"""What the scripts of all rules share: the log of a job, and the line on the terminal where it fails."""

import atexit
import contextlib
import gc
import logging
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any, TextIO

from agglearn import kernel_cache
from agglearn.errors import AgglearnError, describe
from agglearn_workflow import digests
from agglearn_workflow.memory import UNIT, cpu_seconds


@contextlib.contextmanager
def job_log(job: Any, threads: int = 1) -> Iterator[TextIO]:
    """Write what a job prints into its log, and yield the terminal. An error is one line there, and ends the process.
    In the block import numerical libraries, which then have `threads` threads."""
    succeeded = False

    def end() -> None:
        """Runs after all handlers that are registered later. A thread of a library can abort a process that ends: one job died
        so, as in apache/arrow issue 34314. Else the interpreter searches all modules for garbage, most of a second."""
        if succeeded and vars(sys.modules["__main__"]).get("snakemake") is job:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        gc.freeze()

    atexit.register(end)
    os.environ |= {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    for folder in job.config["code"]:
        digests.add_root(folder)
    kernel_cache.choose(job.config["code"])
    terminal, start, logger = sys.stderr, time.perf_counter(), logging.getLogger("agglearn")
    logger.setLevel(logging.INFO)
    with open(job.log[0], "w") as log:
        logger.addHandler(messages := logging.StreamHandler(log))
        try:
            with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
                yield terminal
            log.write(_cost(time.perf_counter() - start) + "\n")
            succeeded = True
        except Exception as error:
            sys.exit(f"agglearn: {error_line(job, error, log)}")
        finally:
            logger.removeHandler(messages)


def error_line(job: Any, error: Exception, log: TextIO) -> str:
    """The line of an error for the terminal and the log, which has the traceback of an error that is not ours."""
    is_ours = isinstance(error, AgglearnError)
    if not is_ours:
        traceback.print_exception(error, file=log)
    words = [*job.wildcards] if is_ours and job.wildcards else [job.rule, *job.wildcards]
    line = f"error: {' '.join(words)}: {describe(error)} (log: {job.log[0]})"
    print(line, file=log)
    return line


def _cost(elapsed: float) -> str:
    """Time and memory of this process and its children. The peak is that of the largest one."""
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return f"took {elapsed:.1f} s, {cpu_seconds():.1f} s of CPU, {peak * UNIT / 2**20:.0f} MiB"
