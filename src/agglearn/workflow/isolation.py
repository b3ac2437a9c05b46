"""Work in forked children under a time limit."""

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator

from agglearn.workflow.lifeline import die_with_parent, end_tree


def run_isolated(work: Callable, items: list, limit: float) -> Iterator[tuple[object, str]]:
    """Run `work(item)` for every item in a forked child; yield (item, why) for each that died or took too long.

    A child does one item after the other and says through a pipe which one it begins; after a death the next child
    goes on with the following item.
    """
    at = 0
    while at < len(items):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(work, items, at, write)
        os.close(write)
        begun, late = _follow(read, limit)
        if late:
            end_tree(pid)
        os.close(read)
        status = os.waitpid(pid, 0)[1]
        if not late and status == 0:
            return
        at += max(begun - 1, 0)
        how = f"stopped after the limit of {limit:g} s" if late else _death(status)
        yield items[at], how
        at += 1


def _child(work: Callable, items: list, at: int, write: int) -> None:
    code = 1
    try:
        die_with_parent()
        for item in items[at:]:
            os.write(write, b".")
            work(item)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _follow(read: int, limit: float) -> tuple[int, bool]:
    """(items begun, whether the last one passed the limit) of a child, from its pipe."""
    begun, since = 0, time.monotonic()
    while True:
        left = since + limit - time.monotonic()
        if left <= 0:
            return begun, True
        if select.select([read], [], [], left)[0]:
            said = os.read(read, 4096)
            if not said:
                return begun, False
            begun, since = begun + len(said), time.monotonic()


def _death(status: int) -> str:
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        more = " (out of memory?)" if name == "SIGKILL" else ""
        return f"the process was ended by {name}{more}"
    return f"the process ended with status {os.WEXITSTATUS(status)}"
