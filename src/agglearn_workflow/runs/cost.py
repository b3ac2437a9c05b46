"""CPU time and peak memory of a part of this process."""

import contextlib
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

PEAK = Path("/proc/self/clear_refs")  # Linux: the number 5, written here, sets the peak to what is used now
UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of `ru_maxrss`


@contextlib.contextmanager
def measure_cost() -> Iterator[dict[str, float]]:
    """Yield a dictionary that has `cpu_seconds` and `peak_memory` (bytes) after the block.

    The peak is that of this process. Where the system cannot set it back, it is the peak since the process began.
    """
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
