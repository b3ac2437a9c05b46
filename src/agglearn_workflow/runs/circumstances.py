"""What a run is computed with and takes: the commit of the working tree, CPU time, peak memory."""

import contextlib
import functools
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PEAK = Path("/proc/self/clear_refs")  # Linux: the number 5, written here, sets the peak to what is used now
UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of `ru_maxrss`


@contextlib.contextmanager
def measure_cost() -> Iterator[dict[str, float]]:
    """Yield a dict that gets `cpu_seconds` and `peak_memory` (bytes, since the process began if it cannot be reset)."""
    with contextlib.suppress(OSError):
        PEAK.write_text("5")
    cost: dict[str, float] = {}
    started = cpu_seconds()
    yield cost
    cost["cpu_seconds"] = cpu_seconds() - started
    cost["peak_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


def cpu_seconds() -> float:
    """CPU seconds so far of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


@functools.cache
def commit() -> str | None:
    """Commit of the working tree, with a mark when it holds changes. It is None outside a repository."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        described = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None
