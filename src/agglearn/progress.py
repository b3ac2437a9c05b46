"""Bars for long work, on a terminal and after three seconds only. Without one nothing is printed, nor imported."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

DELAY = 3.0  # seconds until a bar appears
_VERBOSE = ContextVar("verbose", default=True)

T = TypeVar("T")


def track(iterable: Iterable[T], name: str, total: int | None = None) -> Iterable[T]:
    """The iterable, with a bar of its steps. `total` is their largest number where the iterable has no length."""
    return _bar(iterable, name, total) if _is_shown() else iterable


@contextlib.contextmanager
def steps(name: str, total: int) -> Iterator[Callable[[Any], object] | None]:
    """A callback for SciPy's solvers that advances a bar with each iteration. None where none is to be shown."""
    if not _is_shown():
        yield None
        return
    with _bar(None, name, total) as bar:
        yield lambda _: bar.update()


@contextlib.contextmanager
def verbosity(verbose: bool) -> Iterator[None]:
    """Bars of the work inside: none where it, or what it is part of, is not `verbose`."""
    token = _VERBOSE.set(verbose and _VERBOSE.get())
    try:
        yield
    finally:
        _VERBOSE.reset(token)


def _is_shown() -> bool:
    return _VERBOSE.get() and sys.stderr is not None and sys.stderr.isatty()


def _bar(iterable: Iterable | None, name: str, total: int | None) -> Any:
    from tqdm import tqdm  # here: where no bar is shown, it is not loaded, nor its thread started

    return tqdm(iterable, name, total, leave=False, delay=DELAY, disable=None)
