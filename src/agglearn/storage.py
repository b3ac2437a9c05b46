"""Files and folders that are written whole or not at all, JSON, and digests of content."""

import contextlib
import hashlib
import json
import os
import shutil
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
def atomic_dir(path: Path | str) -> Iterator[Path]:
    """Yield an empty folder that replaces `path` when the block ends well, and vanishes when it does not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield work
        work.chmod(0o755)  # mkdtemp's 0700 would hide a finished product from other users
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            os.rename(path, old / "was")
            os.rename(work, path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(work, path)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


@contextlib.contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a path to write to, which replaces `path` when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield work
        os.replace(work, path)
    finally:
        work.unlink(missing_ok=True)


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
