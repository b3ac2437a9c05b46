"""Files and folders that commands write: one writer at a time, complete or not at all."""

import contextlib
import errno
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agglearn.cli.common import READING
from agglearn.errors import ConfigError
from agglearn.storage import atomic_file

TABLES = ("tables.json", "tables.parquet", READING)  # files of a folder, the last written first
MODEL = ("model.json", "model.npz", READING)
STANDARD_OUTPUT = "-"


@contextlib.contextmanager
def output_folder(out: str, force: bool, files: Sequence[str]) -> Iterator[Path]:
    """An empty folder to write `files` into. They move to `out` when the block ends without an error.

    Parameters
    ----------
    out : str
        Folder of `--out`.
    force : bool
        Replace files of these names. Other files in the folder stay.
    files : sequence of str
        Names of all files that the command may write. A folder is complete when it holds the first.

    Raises
    ------
    ConfigError
        `out` must not be replaced, or another command is writing it.
    """
    path = folder_to_write(out, force, files)
    with only_writer(path, out):
        work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield work
            folder_to_write(out, force, files)  # another process may have written it meanwhile
            _publish(work, path, files)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _publish(work: Path, path: Path, files: Sequence[str]) -> None:
    """Move the files to their folder. In an existing folder the first file comes last, since it marks a complete folder."""
    if not path.exists():
        work.chmod(0o755)  # mkdtemp's 0700 would hide a finished folder from other users
        os.rename(work, path)
        return
    (path / files[0]).unlink(missing_ok=True)
    for name in reversed(files):
        if (work / name).exists():
            os.replace(work / name, path / name)
        else:
            (path / name).unlink(missing_ok=True)


def folder_to_write(out: str, force: bool, files: Sequence[str]) -> Path:
    """The folder of `--out`. ConfigError for one that must not be replaced."""
    if out == STANDARD_OUTPUT:
        raise ConfigError("-: --out names a folder, which cannot go to standard output")
    path = Path(out).resolve()
    if path.is_dir() and any(path.iterdir()):
        if not force:
            raise ConfigError(f"{out}: already there; choose another --out, or --force to replace it")
        if not any((path / name).is_file() for name in files if name != READING):
            raise ConfigError(f"{out}: holds something else ({files[0]} is not in it); choose another --out")
    elif path.exists() and not path.is_dir():
        raise ConfigError(f"{out}: is a file; --out names a folder")
    return path


@contextlib.contextmanager
def output_file(out: str, force: bool, *inputs: str) -> Iterator[Path]:
    """A path to write to. The file moves to `out` when the block ends without an error.

    Parameters
    ----------
    out : str
        File of `--out`.
    force : bool
        Replace the file.
    *inputs : str
        Files that the command reads.

    Raises
    ------
    ConfigError
        `out` must not be replaced, or another command is writing it.
    """
    path = file_to_write(out, force, *inputs)
    with only_writer(path, out), atomic_file(path) as work:
        yield work
        file_to_write(out, force, *inputs)  # another process may have written it meanwhile


@contextlib.contextmanager
def text_output(out: str | None, force: bool, *inputs: str) -> Iterator[Callable[[str], object]]:
    """A function that writes a text to a file, see `output_file`, or to standard output where `out` is None or `-`."""
    if out is None or out == STANDARD_OUTPUT:
        yield sys.stdout.write
    else:
        with output_file(out, force, *inputs) as work:
            yield work.write_text


def file_to_write(out: str, force: bool, *inputs: str) -> Path:
    """The file of `--out`. ConfigError for one that must not be replaced."""
    if out == STANDARD_OUTPUT:
        raise ConfigError("-: --out names a file")
    path = Path(out).resolve()
    if path.is_dir():
        raise ConfigError(f"{out}: is a folder; --out names a file")
    if path.exists() and any(path == Path(i).resolve() for i in inputs):
        raise ConfigError(f"{out}: is the file to be read; choose another --out")
    for files in (TABLES, MODEL):
        if path.name in files and (path.parent / files[0]).is_file():
            raise ConfigError(
                f"{out}: is a part of {path.parent.name}/, which would be destroyed; choose another --out"
            )
    if path.exists() and not path.is_file():
        raise ConfigError(f"{out}: is a device or a pipe; choose a file as --out")
    if path.exists() and not force:
        raise ConfigError(f"{out}: already there; choose another --out, or --force to replace it")
    return path


@contextlib.contextmanager
def only_writer(path: Path, out: str) -> Iterator[None]:
    """Lock `path` by a file beside it. ConfigError where another command is writing it.

    On a file system without locks there is no such check.
    """
    created = [p for p in path.parents if not p.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    handle = _acquire(lock, out)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
        for folder in created:
            with contextlib.suppress(OSError):
                folder.rmdir()  # succeeds where nothing was written into it


def _acquire(lock: Path, out: str) -> int:
    """Descriptor of the locked file."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                os.close(handle)
                raise ConfigError(
                    f"{out}: another command is writing it; wait for it, or choose another --out"
                ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == os.stat(lock).st_ino:
                return handle
        os.close(handle)  # the previous writer removed this file between our two calls
