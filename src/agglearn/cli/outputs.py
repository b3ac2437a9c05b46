"""Files and folders that commands write: complete or not at all."""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agglearn.cli.common import READING, STANDARD
from agglearn.errors import ConfigError
from agglearn.storage import atomic_dir, atomic_file

CELLS = "cells.parquet"
TABLES = ("tables.json", "tables.parquet", READING, CELLS)  # files of a folder
MODEL = ("model.json", "model.npz", READING)


@contextlib.contextmanager
def output_folder(out: str, force: bool, files: Sequence[str]) -> Iterator[Path]:
    """A folder to write `files` into, which replaces `out` at the end. What else lies in `out` stays there."""
    path = folder_to_write(out, force, files)
    with atomic_dir(path) as work:
        yield work
        folder_to_write(out, force, files)  # another process may have written it meanwhile
        for item in path.glob("*"):
            if item.name not in files:
                (shutil.copytree if item.is_dir() else shutil.copy2)(item, work / item.name)


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
