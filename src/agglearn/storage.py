"""Files and folders that are written whole or not at all, JSON, and digests of content."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def digest(value: object) -> str:
    """16 hex digits over a JSON-serialisable value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def file_digest(path: Path | str) -> str:
    """sha256 of a file, read in blocks."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextlib.contextmanager
def work_beside(path: Path) -> Iterator[Path]:
    """A path of the same name in a hidden folder on the same file system, for the time of the block."""
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        temporary = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=parent, ignore_cleanup_errors=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    with temporary as folder:
        yield Path(folder) / path.name


@contextlib.contextmanager
def atomic_dir(path: Path | str) -> Iterator[Path]:
    """Yield an empty folder that replaces `path` when the block ends well, and vanishes when it does not."""
    path = Path(path)
    with work_beside(path) as work:
        work.mkdir()
        yield work
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            os.rename(path, work.with_name(".old"))  # is deleted with the hidden folder
        os.rename(work, path)


@contextlib.contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a path to write to, which replaces `path` when the block ends well."""
    path = Path(path)
    with work_beside(path) as work:
        yield work
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(work, path)


def write_json(path: Path | str, value: object) -> None:
    """Write JSON atomically, sorted, for people to read."""
    with atomic_file(path) as work:
        work.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def json_lines(value: object, levels: int = 3) -> str:
    """JSON with a line for each item of the outer levels, which is fast to write."""
    if not levels or not value or not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",\n".join(json_lines(item, levels - 1) for item in value) + "]"
    items = (f"{json_lines(str(name))}: {json_lines(item, levels - 1)}" for name, item in value.items())
    return "{" + ",\n".join(items) + "}"


def read_json(path: Path | str) -> Any:
    return json.loads(Path(path).read_text())
