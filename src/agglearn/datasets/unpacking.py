"""One file out of a zip or tar, also out of a packed file in a packed file. Nothing else is written."""

import lzma
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from agglearn.datasets.downloading import BLOCK, require_room
from agglearn.storage import atomic_file

RATIO = 100  # times its packed file's size a member may have. Texts and tables stay below 20.
SMALL = 1 << 26  # bytes that any member may have


class UnreadablePackedFile(OSError):
    """The packed file does not give the file."""


def unpack(pack: Path, members: str | Sequence[str], target: Path, size: int = 0) -> None:
    first, *nested = [members] if isinstance(members, str) else members
    if nested:
        with atomic_file(target.with_name(target.name + ".inner")) as inner:
            _write(pack, first, inner, size)
            return unpack(inner, nested, target, size)
    with atomic_file(target) as work:
        _write(pack, first, work, size)


def _write(pack: Path, member: str, target: Path, size: int) -> None:
    limit = max(size, SMALL, RATIO * pack.stat().st_size)
    try:
        with _open_member(pack, member) as (inside, stated), open(target, "wb") as out:
            require_room(target.parent, min(stated, limit))
            written = 0
            while block := inside.read(BLOCK):
                written += len(block)
                if written > limit:
                    too_many = f"more than {limit:,} bytes, too many for a packed file of its size"
                    raise UnreadablePackedFile(f"{member!r} has {too_many}")
                out.write(block)
    except (zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError) as error:
        raise UnreadablePackedFile(f"the packed file is damaged: {error}") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, an unknown compression
        raise UnreadablePackedFile(f"the packed file cannot be read: {error}") from None


@contextmanager
def _open_member(pack: Path, member: str) -> Iterator[tuple[IO[bytes], int]]:
    inside: IO[bytes] | None = None
    entry: tarfile.TarInfo | zipfile.ZipInfo | None
    size = 0
    with ExitStack() as stack:
        if tarfile.is_tarfile(pack):
            tar = stack.enter_context(tarfile.open(pack, "r|*"))
            path = posixpath.normpath(member)
            if entry := next((e for e in tar if posixpath.normpath(e.name) == path), None):
                inside, size = tar.extractfile(entry) if entry.isfile() else None, entry.size
        elif zipfile.is_zipfile(pack):
            opened = stack.enter_context(zipfile.ZipFile(pack))
            if entry := next((e for e in opened.infolist() if e.filename == member), None):
                is_file = not (entry.is_dir() or stat.S_ISLNK(entry.external_attr >> 16))
                inside, size = stack.enter_context(opened.open(entry)) if is_file else None, entry.file_size
        else:
            raise UnreadablePackedFile("not a zip or tar")
        if entry is None:
            raise UnreadablePackedFile(f"the packed file has no member {member!r}")
        if inside is None:
            raise UnreadablePackedFile(f"{member!r} is no file in the packed file, it is a folder or a link")
        yield inside, size
