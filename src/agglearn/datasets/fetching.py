"""Getting the files of a data set: cache, own path, then the routes of the entry in their order; checked and atomic.

Files of a local mirror or path are used where they lie. What is downloaded or built goes to `<cache>/<dataset>/`; what is on
its way lies in hidden folders there.
"""

import contextlib
import fcntl
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from agglearn.datasets.downloading import Downloads, Progress
from agglearn.datasets.routes import Fetcher
from agglearn.storage import write_json

QUIET = 2  # seconds between two lines on a download
LARGE = 10_000_000  # bytes from which on its end is told


def fetch(name: str, entry: dict, config: dict, base: Path, out: Path, terminal=sys.stderr, progress=None) -> dict:
    """Find, download or build every file of an entry and write `files.json` into `out`.

    Parameters
    ----------
    out : product folder being built.
    name, entry, config, base, terminal, progress : see `obtain`, as the errors.

    Returns
    -------
    {origins: {file: origin}}.
    """
    found = obtain(name, entry, config, base, terminal, progress)
    write_json(out / "files.json", found)
    return {"origins": {f: v["origin"] for f, v in found.items()}}


def obtain(
    name: str, entry: dict, config: dict, base: Path, terminal=sys.stderr, progress: Progress | None = None
) -> dict[str, dict]:
    """Find, download or build every file of an entry.

    Parameters
    ----------
    name, entry : the data set.
    config : effective configuration (`mirrors`, `cache`).
    base : project root; relative paths start there.
    terminal : where wrong digests are reported, and progress where nobody asks for it.
    progress : called with (file, bytes so far, bytes in all or 0) while a file comes.

    Returns
    -------
    file → path, sha256, bytes, origin (path, URL, package or function) and kind (of the route; `path`).

    Raises
    ------
    NotAvailable : a file can be had nowhere; the text lists what was tried.
    DataError : copies were found, but none with the right checksum.
    """
    home = base / config["cache"] / name
    with _alone(home, terminal):
        downloads = Downloads(home / ".downloads", progress or _Lines(terminal))
        fetcher = Fetcher(name, entry, config, base, downloads, terminal)
        found = {file: fetcher.get(file, spec, home) for file, spec in entry.get("files", {}).items()}
        shutil.rmtree(downloads.folder, ignore_errors=True)
    return found


@contextlib.contextmanager
def _alone(home: Path, terminal) -> Iterator[None]:
    """Wait until nobody else fetches the data set, so that its files come once and are written once."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a cache that cannot be written to cannot be written twice
            home.parent.mkdir(parents=True, exist_ok=True)
            handle = stack.enter_context(open(home.with_name(f".{home.name}.lock"), "w"))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"agglearn: {home.name} is fetched by another process; waiting for it", file=terminal, flush=True)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class _Lines:
    """Progress as lines of text."""

    def __init__(self, terminal):
        self.terminal, self.shown = terminal, time.monotonic()

    def __call__(self, name: str, done: int, total: int) -> None:
        whole = bool(total) and done == total > LARGE
        if whole or time.monotonic() - self.shown > QUIET:
            self.shown = time.monotonic()
            share = f"{100 * done / total:.0f} % of {total / 1e6:,.0f} MB" if total else f"{done / 1e6:,.0f} MB"
            print(f"fetching {name}: {share}", file=self.terminal, flush=True)
