"""Files that commands read. Pipes are copied first, since a file is read more than once."""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agglearn.errors import AgglearnError, DataError

STANDARD_INPUT = "-"
COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}  # by first bytes


@contextlib.contextmanager
def input_file(path: str) -> Iterator[str]:
    """Path of a file of records that can be read more than once.

    Standard input (`-`, `/dev/stdin`) and other pipes (`<(…)`) are copied to a temporary file, which is removed at the end.
    Errors name what was given.
    """
    if path != STANDARD_INPUT and not _is_stream(path):
        yield path
        return
    name = "standard input" if path == STANDARD_INPUT else path
    with tempfile.TemporaryDirectory(prefix="agglearn.") as folder:
        copy = _copy(path, Path(folder) / "records")
        try:
            yield str(copy)
        except AgglearnError as error:
            raise type(error)(str(error).replace(str(copy), name)) from None


def _is_stream(path: str) -> bool:
    """Whether a path is a pipe, or a terminal."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # the reader of the file reports the error
    if stat.S_ISCHR(mode):
        with open(path, "rb", buffering=0) as handle:
            if not handle.isatty():
                raise DataError(f"{path}: is a device; give a file, or a pipe")
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _copy(source_path: str, path: Path) -> Path:
    """Copy a stream to a file with the ending of its compression, and return the path."""
    with contextlib.ExitStack() as stack:
        source = sys.stdin.buffer if source_path == STANDARD_INPUT else stack.enter_context(open(source_path, "rb"))
        with open(path, "wb") as copy:
            shutil.copyfileobj(source, copy)
    with open(path, "rb") as handle:
        first = handle.read(6)
    ending = next((e for magic, e in COMPRESSED.items() if first.startswith(magic)), "")
    return path.rename(path.with_name(path.name + ending))
