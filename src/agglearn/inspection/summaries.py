"""What was read from the text of modules, for later processes: to parse all modules takes longer than Snakemake's start.

A summary belongs to one text, so none is ever out of date. A file that is lost, broken or read-only costs time and nothing else.
"""

import atexit
import contextlib
import functools
import json

from agglearn import kernel_cache, storage

MOST = 1000  # summaries in the file, the latest. The package has 200 modules.
_new: dict[str, list] = {}


def path():
    """The file: in the package, or in the user's cache if the package is read-only."""
    return kernel_cache.default_base() / "summaries.json"


@functools.cache
def _kept() -> dict[str, list]:
    try:
        content = json.loads(path().read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def find(key: str) -> list | None:
    """The summary with this key, or None."""
    return _new.get(key) or _kept().get(key)


def keep(key: str, summary: list) -> None:
    """Write a summary at the end of this process, for others."""
    if not _new:
        atexit.register(write)
    _new[key] = summary


def write() -> None:
    """Add the new summaries to the file."""
    _kept.cache_clear()  # others may have written since
    latest = list((_kept() | _new).items())[-MOST:]
    with contextlib.suppress(OSError), storage.atomic_file(path()) as work:
        work.write_text(json.dumps(dict(latest)))
