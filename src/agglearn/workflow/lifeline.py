"""Jobs end with the main process of their workflow, however it ends.

A job is a grandchild of the main process: a shell stands between them, and when the main process is killed the shell goes on.
So the main process leaves its number in the environment (`announce`), and a job waits for that process in a thread
(`follow`). Jobs on another machine, or in another container, do not know the number and go on by themselves.
"""

import contextlib
import os
import platform
import select
import signal
import sys
import threading
from pathlib import Path

VARIABLE = "AGGLEARN_MAIN"


def announce() -> None:
    """Name this process as the main process to those that it starts."""
    if hasattr(os, "pidfd_open"):
        os.environ[VARIABLE] = f"{os.getpid()} {_machine()}"


def follow() -> None:
    """End this process and all that it has started when the main process ends."""
    number, _, machine = os.environ.get(VARIABLE, "").partition(" ")
    if not number or machine != _machine():
        return
    try:
        main = os.pidfd_open(int(number))
    except ProcessLookupError:
        end_all()
    except OSError:  # Linux before 5.3
        return
    threading.Thread(target=_wait, args=(main,), daemon=True).start()


def _wait(main: int) -> None:
    select.select([main], [], [])
    end_all()


def end_all() -> None:
    """Kill this process and all processes that it has started."""
    end_tree(os.getpid())


def end_tree(number: int) -> None:
    """Kill a process and all processes that it has started."""
    end_children(number)
    os.kill(number, signal.SIGKILL)


def end_children(number: int) -> None:
    """Kill all processes that a process has started, and those that they have started."""
    parents = _parents()
    tree = [number]
    for parent in tree:  # which grows
        tree += [child for child, its in parents.items() if its == parent]
    for child in tree[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _parents() -> dict[int, int]:
    """Process → its parent. It is empty where the kernel does not list them."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return parents


def _machine() -> str:
    """This machine and its space of process numbers. It is empty on other systems than Linux."""
    if sys.platform != "linux":
        return ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def die_with_parent(by: int = signal.SIGKILL) -> None:
    """Ask Linux to end this child with its parent, by a signal, so that a killed workflow leaves nothing behind."""
    if platform.system() == "Linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, by)
