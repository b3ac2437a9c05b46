"""One file out of a zip or tar archive, also out of an archive in an archive. Nothing else is written."""

import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agglearn.datasets.downloading import BLOCK, require_room
from agglearn.storage import atomic_file

RATIO = 100  # times its archive's size a member may have; texts and tables stay below 20
SMALL = 1 << 26  # bytes that any member may have


class UnreadableArchive(OSError):
    """The archive does not give the file."""


def unpack(archive: Path, members: str | Sequence[str], target: Path, size: int = 0) -> None:
    """Write a member of an archive to `target`.

    Parameters
    ----------
    archive : zip or tar file, the latter compressed in any way that `tarfile` reads.
    members : path inside it; of several, each lies in the archive that the one before it is.
    size : bytes that the member is stated to have, or 0.

    Raises
    ------
    UnreadableArchive : no archive, a damaged or encrypted one, no such file in it, or one too large for its archive.
    OSError : the disk is full.
    """
    first, *rest = [members] if isinstance(members, str) else members
    if rest:
        with atomic_file(target.with_name(target.name + ".inner")) as inner:
            _write(archive, first, inner, size)
            return unpack(inner, rest, target, size)
    with atomic_file(target) as work:
        _write(archive, first, work, size)


def _write(archive: Path, member: str, target: Path, size: int) -> None:
    limit = max(size, SMALL, RATIO * archive.stat().st_size)
    try:
        with _opened(archive, member) as (inside, stated), open(target, "wb") as out:
            require_room(target.parent, min(stated, limit))
            written = 0
            while block := inside.read(BLOCK):
                written += len(block)
                if written > limit:
                    raise UnreadableArchive(
                        f"{member!r} has more than {limit:,} bytes, too many for an archive of its size"
                    )
                out.write(block)
    except (zlib.error, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise UnreadableArchive(f"the archive is damaged: {error}") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, an unknown compression
        raise UnreadableArchive(f"the archive cannot be read: {error}") from None


@contextmanager
def _opened(archive: Path, member: str) -> Iterator[tuple[BinaryIO, int]]:
    """A member that is a file, and the size that the archive states."""
    if tarfile.is_tarfile(archive):
        with tarfile.open(archive, "r|*") as opened:
            found = next((m for m in opened if posixpath.normpath(m.name) == posixpath.normpath(member)), None)
            _require(member, found, found and found.isfile())
            yield opened.extractfile(found), found.size
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            found = next((m for m in opened.infolist() if m.filename == member), None)
            _require(member, found, found and not found.is_dir() and not stat.S_ISLNK(found.external_attr >> 16))
            with opened.open(found) as inside:
                yield inside, found.file_size
    else:
        raise UnreadableArchive("not a zip or tar archive")


def _require(member: str, found, is_file) -> None:
    if not found:
        raise UnreadableArchive(f"the archive has no member {member!r}")
    if not is_file:
        raise UnreadableArchive(f"{member!r} is no file in the archive, it is a folder or a link")
