"""Work in forked children under a time limit."""

import contextlib
import ctypes
import multiprocessing
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import TypeVar

import psutil

Item = TypeVar("Item")
STEP = b"."  # a child's message before each item, and after the last one


def run_isolated(
    work: Callable[[Item], object], items: list[Item], limit: float | None = None
) -> Iterator[tuple[Item, str]]:
    """Yield (item, reason) for each item whose `work` died, or took longer than `limit` s. The next child goes on."""
    fork = multiprocessing.get_context("fork")
    start = 0
    while start < len(items):
        receiver, sender = fork.Pipe(duplex=False)
        child = fork.Process(target=_work_through, args=(work, items[start:], sender))
        child.start()
        sender.close()  # the child's death then ends the messages
        with receiver:
            n_steps, is_late = _count_steps(receiver, len(items) - start + 1, limit)
        if is_late and child.pid:
            end_tree(child.pid)
        child.join()
        start += max(n_steps, 1)
        if start <= len(items):
            reason = f"stopped after the limit of {limit:g} s" if is_late else _describe_death(child.exitcode)
            yield items[start - 1], reason


def _work_through(work: Callable[[Item], object], items: list[Item], sender: Connection) -> None:
    """The child: it ends at once, whatever threads and processes the work leaves behind."""
    status = 1
    try:
        die_with_parent()
        for item in items:
            sender.send_bytes(STEP)
            work(item)
        sender.send_bytes(STEP)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _count_steps(receiver: Connection, n_steps: int, limit: float | None) -> tuple[int, bool]:
    """(messages, whether the last item passed the limit) of a child that sends `n_steps` of them unless it dies."""
    for count in range(n_steps):
        if not receiver.poll(limit):
            return count, True
        try:
            receiver.recv_bytes()
        except EOFError:
            return count, False
    return n_steps, False


def _describe_death(exitcode: int | None) -> str:
    if exitcode is None or exitcode >= 0:
        return f"the process ended with status {exitcode}"
    name = signal.Signals(-exitcode).name
    return f"the process was ended by {name}{' (out of memory?)' if name == 'SIGKILL' else ''}"


def die_with_parent(by: int = signal.SIGKILL) -> None:
    """Ask Linux to end this child with its parent, by a signal, so that a killed job leaves nothing behind."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(1, by)


def end_tree(number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(number)
        for child in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
