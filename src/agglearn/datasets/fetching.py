"""Getting the files of a data set: cache, own path, then the routes of the entry in their order. Files are checked and atomic.

Files of a local mirror or path are used where they lie. Downloads and built files go to `<cache>/<dataset>/`, and hidden
folders there hold unfinished ones.
"""

import contextlib
import fcntl
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from agglearn.datasets.downloading import Downloads, Progress
from agglearn.datasets.routes import Fetcher

QUIET = 2  # seconds between two lines on a download
LARGE = 10_000_000  # bytes from which on the end of a download is printed


def obtain(
    name: str, entry: dict, config: dict, base: Path, terminal: TextIO = sys.stderr, progress: Progress | None = None
) -> dict[str, dict]:
    """Find, download or build every file of an entry."""
    cache = base / config["cache"] / name
    with _lock(cache, terminal):
        downloads = Downloads(cache / ".downloads", progress or _Lines(terminal))
        fetcher = Fetcher(name, entry, config, base, downloads, terminal)
        files = {file: fetcher.get(file, spec, cache) for file, spec in entry.get("files", {}).items()}
        shutil.rmtree(downloads.folder, ignore_errors=True)
    return files


@contextlib.contextmanager
def _lock(cache: Path, terminal: TextIO) -> Iterator[None]:
    """Wait until no other process fetches the data set, so that its files come once and are written once."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a cache that cannot be written to cannot be written twice
            cache.parent.mkdir(parents=True, exist_ok=True)
            handle = stack.enter_context(open(cache.with_name(f".{cache.name}.lock"), "w"))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(
                    f"agglearn: {cache.name} is fetched by another process; waiting for it", file=terminal, flush=True
                )
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class _Lines:
    """Progress as lines of text."""

    def __init__(self, terminal: TextIO) -> None:
        self.terminal, self.shown = terminal, time.monotonic()

    def __call__(self, name: str, done: int, total: int) -> None:
        whole = bool(total) and done == total > LARGE
        if whole or time.monotonic() - self.shown > QUIET:
            self.shown = time.monotonic()
            size = f"{100 * done / total:.0f} % of {total / 1e6:,.0f} MB" if total else f"{done / 1e6:,.0f} MB"
            print(f"fetching {name}: {size}", file=self.terminal, flush=True)
