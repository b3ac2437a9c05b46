"""What several commands share: options, numbers in them, and the files that they read and write."""

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agglearn.errors import AgglearnError, ConfigError, DataError
from agglearn.settings import Range
from agglearn.storage import atomic_dir, atomic_file
from agglearn.text import is_buckets

READING = "reading.json"  # beside tables and model: format of the records
CELLS = "cells.parquet"
TABLES = ("tables.json", "tables.parquet", READING, CELLS)  # files of a folder
MODEL = ("model.json", "model.npz", READING)
STANDARD = "-"  # input, or output
COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}  # by first bytes


def add_reading_options(command: argparse.ArgumentParser) -> None:
    """Add the options on the format of a file."""
    command.add_argument(
        "--missing", action="append", metavar="MARK", help="further spelling of a missing value; may be repeated"
    )
    add_separator(command)


def add_separator(command: argparse.ArgumentParser) -> None:
    command.add_argument("--separator", metavar="S", help="between the fields of a CSV, if not a comma; tab for tabs")


def add_record_options(command: argparse.ArgumentParser) -> None:
    """Add the options on the records of a file: label, unit, and format."""
    command.add_argument("--label", metavar="COLUMN", help="column to be predicted; a schema names it, too")
    command.add_argument("--positive", metavar="VALUE", help="value of the label that counts as 1, where it is not 0/1")
    add_unit_options(command)
    add_reading_options(command)


def add_unit_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--unit", metavar="COLUMN", help="column that tells whose a record is: a person, a household")
    command.add_argument("--max-rows", metavar="M", type=whole_or_text, help="records of each unit that count, or auto")


def whole_or_text(text: str) -> int | str:
    return int(text) if is_buckets(text) else text  # the library refuses other texts than auto


def separator_of(text: str | None) -> str:
    if text is None:
        return ","
    if text not in ("tab", "\\t") and len(text.strip(" ") or text) != 1:
        raise ConfigError(f"--separator: {text!r} is not one character; write for example ';' or tab")
    return text


def reading_of(folder: str) -> dict:
    """Format of the aggregated records. The defaults for tables of another origin."""
    from agglearn.saving import refuse_damaged
    from agglearn.storage import read_json

    if not (Path(folder) / READING).is_file():
        return {"missing": [], "separator": ",", "positive": None}
    with refuse_damaged(folder, "a model"):
        saved = read_json(Path(folder) / READING)
        missing, separator = [str(m) for m in saved["missing"]], separator_of(saved["separator"])
        return {"missing": missing, "separator": separator, "positive": saved["positive"]}


def copy_reading(source: str, folder: Path) -> None:
    if (Path(source) / READING).is_file():
        (folder / READING).write_bytes((Path(source) / READING).read_bytes())


def whole_seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def not_negative(text: str) -> float:
    return _number(text, Range(0))


def positive(text: str) -> float:
    return _number(text, Range(0, open="low"))


def _number(text: str, allowed: Range) -> float:
    with contextlib.suppress(ValueError):
        if (value := float(text)) in allowed:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number{allowed}")


# -- files that commands read: a pipe is copied first, since a file is read more than once ----------------------------


@contextlib.contextmanager
def input_file(path: str) -> Iterator[str]:
    """A path that can be read more than once: `-` and pipes are copied to a file. Errors name what was given."""
    if path != STANDARD and not _is_stream(Path(path)):
        yield path
        return
    name = "standard input" if path == STANDARD else path
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
    is_standard = source_path == STANDARD
    with open(0 if is_standard else source_path, "rb", closefd=not is_standard) as source, open(path, "wb") as copy:
        shutil.copyfileobj(source, copy)
    with open(path, "rb") as handle:
        first = handle.read(6)
    ending = next((e for magic, e in COMPRESSED.items() if first.startswith(magic)), "")
    return path.rename(path.with_name(path.name + ending))


# -- files and folders that commands write: complete or not at all ----------------------------------------------------


@contextlib.contextmanager
def output_folder(out: str, force: bool, files: Sequence[str]) -> Iterator[Path]:
    """A folder to write `files` into, which replaces `out` at the end. What else lies in `out` stays there."""
    path = folder_to_write(out, force, files)
    with atomic_dir(path) as work:
        yield work
        folder_to_write(out, force, files)  # another process may have written it meanwhile
        if path.exists():
            top = str(path)
            shutil.copytree(path, work, True, lambda inner, _: files if inner == top else (), dirs_exist_ok=True)


def folder_to_write(out: str, force: bool, files: Sequence[str]) -> Path:
    """The folder of `--out`. ConfigError for one that must not be replaced."""
    if out == STANDARD:
        raise ConfigError("-: --out names a folder, which cannot go to standard output")
    path = Path(out).resolve()
    if path.is_dir() and any(path.iterdir()):
        if not force:
            raise ConfigError(f"{out}: already there; choose another --out, or --force to replace it")
        if not any((path / name).is_file() for name in files if name not in (READING, CELLS)):
            raise ConfigError(f"{out}: holds something else ({files[0]} is not in it); choose another --out")
    elif path.exists() and not path.is_dir():
        raise ConfigError(f"{out}: is a file; --out names a folder")
    return path


@contextlib.contextmanager
def output_file(out: str, force: bool, *inputs: str) -> Iterator[Path]:
    """A path, moved to `out` at the end. ConfigError where that is one of `inputs`, or there without `force`."""
    with atomic_file(file_to_write(out, force, *inputs)) as work:
        yield work
        file_to_write(out, force, *inputs)  # another process may have written it meanwhile


@contextlib.contextmanager
def text_output(out: str | None, force: bool, *inputs: str) -> Iterator[Callable[[str], object]]:
    """A function that writes a text to a file, see `output_file`, or to standard output where `out` is None or `-`."""
    if out is None or out == STANDARD:
        yield sys.stdout.write
    else:
        with output_file(out, force, *inputs) as work:
            yield work.write_text


def file_to_write(out: str, force: bool, *inputs: str) -> Path:
    if out == STANDARD:
        raise ConfigError("-: --out names a file")
    path = Path(out).resolve()
    if path.is_dir():
        raise ConfigError(f"{out}: is a folder; --out names a file")
    if path.exists() and any(path == Path(i).resolve() for i in inputs):
        raise ConfigError(f"{out}: is the file to be read; choose another --out")
    for files in (TABLES, MODEL):
        if path.name in files and (path.parent / files[0]).is_file():
            reason = f"is a part of {path.parent.name}/, which would be destroyed"
            raise ConfigError(f"{out}: {reason}; choose another --out")
    if path.exists() and not path.is_file():
        raise ConfigError(f"{out}: is a device or a pipe; choose a file as --out")
    if path.exists() and not force:
        raise ConfigError(f"{out}: already there; choose another --out, or --force to replace it")
    return path
