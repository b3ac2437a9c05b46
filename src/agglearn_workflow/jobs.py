"""What the scripts of all rules share: the log of a job, and the line on the terminal where it fails."""

import contextlib
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


@contextlib.contextmanager
def job_log(job: Any, threads: int = 1) -> Iterator[TextIO]:
    """Write what a job prints into its log, and yield the terminal.

    `job` is what Snakemake hands to its script, and `threads` the number of threads of the numerical libraries, which are to be
    imported in the block. An error is one line on the terminal and the end of the process. The log has the traceback, too.
    """
    os.environ |= {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    for folder in job.config["code"]:
        digests.add_root(folder)
        sys.path.insert(0, os.path.abspath(folder))
    kernel_cache.choose(job.config["code"])
    terminal, start = sys.stderr, time.perf_counter()
    with open(job.log[0], "w") as log:
        try:
            with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log), _messages_to(log):
                yield terminal
            log.write(_cost(time.perf_counter() - start) + "\n")
        except Exception as error:
            sys.exit(f"agglearn: {error_line(job, error, log)}")


@contextlib.contextmanager
def _messages_to(log: TextIO) -> Iterator[None]:
    """Write the messages of the package's loggers to the log of a job."""
    logger, handler = logging.getLogger("agglearn"), logging.StreamHandler(log)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def error_line(job: Any, error: Exception, log: TextIO) -> str:
    """The line of an error for the terminal, which the log has too. Of an error that is not ours, the log has the traceback."""
    rule: tuple[str, ...] = ()
    if not isinstance(error, AgglearnError):
        traceback.print_exception(error, file=log)
        rule = (job.rule,)
    line = f"error: {' '.join([*rule, *job.wildcards])}: {describe(error)} (log: {job.log[0]})"
    print(line, file=log)
    return line


def _cost(elapsed: float) -> str:
    """Time and memory of this process and its children. The peak is that of the largest one."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(u.ru_utime + u.ru_stime for u in used)
    return f"took {elapsed:.1f} s, {cpu:.1f} s of CPU, {max(u.ru_maxrss for u in used) / 1024:.0f} MiB"
