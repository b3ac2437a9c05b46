"""Files that commands read. Pipes are copied first, since a file is read more than once."""

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agglearn.cli.common import add_reading_options
from agglearn.errors import AgglearnError, DataError
from agglearn.text import is_buckets

STANDARD_INPUT = "-"
COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}  # by first bytes


def add_record_options(command: argparse.ArgumentParser) -> None:
    """Add the options on the records of a file: label, unit, and format."""
    command.add_argument("--label", metavar="COLUMN", help="column to be predicted; a schema names it, too")
    command.add_argument("--positive", metavar="VALUE", help="value of the label that counts as 1, where it is not 0/1")
    add_unit_options(command)
    add_reading_options(command, "none", "comma")


def add_unit_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--unit", metavar="COLUMN", help="column that tells whose a record is: a person, a household")
    command.add_argument("--max-rows", metavar="M", type=whole_or_text, help="records of each unit that count, or auto")


def whole_or_text(text: str) -> int | str:
    return int(text) if is_buckets(text) else text  # the library refuses other texts than auto


@contextlib.contextmanager
def input_file(path: str) -> Iterator[str]:
    """A path that can be read more than once: `-` and pipes are copied to a file. Errors name what was given."""
    if path != STANDARD_INPUT and not _is_stream(Path(path)):
        yield path
        return
    name = "standard input" if path == STANDARD_INPUT else path
    with tempfile.TemporaryDirectory(prefix="agglearn.") as folder:
        copy = _copy(path, Path(folder) / "records")
        try:
            yield str(copy)
        except AgglearnError as error:
            raise type(error)(str(error).replace(str(copy), name)) from None


def _is_stream(path: Path) -> bool:
    """Whether a path is a pipe, or a terminal. DataError for another device, which may never end."""
    if not path.is_char_device():
        return path.is_fifo()
    with open(path, "rb", buffering=0) as handle:
        if not handle.isatty():
            raise DataError(f"{path}: is a device; give a file, or a pipe")
    return True


def _copy(source_path: str, path: Path) -> Path:
    """Copy a stream to a file with the ending of its compression, and return the path."""
    is_standard = source_path == STANDARD_INPUT
    with open(0 if is_standard else source_path, "rb", closefd=not is_standard) as source, open(path, "wb") as copy:
        shutil.copyfileobj(source, copy)
    with open(path, "rb") as handle:
        first = handle.read(6)
    ending = next((e for magic, e in COMPRESSED.items() if first.startswith(magic)), "")
    return path.rename(path.with_name(path.name + ending))
