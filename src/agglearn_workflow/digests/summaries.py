"""What was read from the text of modules, for later processes: to parse all modules takes longer than Snakemake's start.

A summary belongs to one text, so none is ever out of date. A file that is lost, broken or read-only costs time and nothing else.
"""

import atexit
import contextlib
import functools
import json
from collections.abc import Sequence
from pathlib import Path

from agglearn import kernel_cache, storage

MAX_SUMMARIES = 1000  # in the file, the latest. The package has 200 modules.
Fields = Sequence  # of `modules.Summary`, as JSON has them
_new: dict[str, Fields] = {}


def path() -> Path:
    """The file: in the package, or in the user's cache if the package is read-only."""
    return kernel_cache.default_base() / "summaries.json"


@functools.cache
def _read_stored() -> dict[str, Fields]:
    try:
        content = json.loads(path().read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def find(key: str) -> Fields | None:
    """The summary with this key, or None."""
    return _new.get(key) or _read_stored().get(key)


def keep(key: str, summary: Fields) -> None:
    """Write a summary at the end of this process, for others."""
    if not _new:
        atexit.register(write)
    _new[key] = summary


def write() -> None:
    """Add the new summaries to the file."""
    _read_stored.cache_clear()  # others may have written since
    latest = list((_read_stored() | _new).items())[-MAX_SUMMARIES:]
    with contextlib.suppress(OSError), storage.atomic_file(path()) as work:
        work.write_text(json.dumps(dict(latest)))
