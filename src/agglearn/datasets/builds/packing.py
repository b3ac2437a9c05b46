"""Extracts from packed files, and packed files of many small files."""

import gzip
import io
import itertools
import posixpath
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from agglearn.datasets.builds.inputs import Inputs, name_of, only, open_input
from agglearn.errors import DataError


def first_lines(inputs: Inputs, out: Path, member: str, lines: int) -> None:
    """Write the first lines of a text file that lies in a tar, which is read as a stream and no further.

    Parameters
    ----------
    inputs, out, member, lines : Inputs, Path, str, int
        The packed file, compressed by gzip, the text file to write, the path in the packed file. Fewer lines are a DataError.
    """
    source = only(inputs)
    try:
        with open_input(source) as stream, tarfile.open(fileobj=stream, mode="r|gz") as pack:
            for entry in pack:
                if posixpath.normpath(entry.name) == member and entry.isfile():
                    return _head(pack.extractfile(entry), out, member, lines)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name_of(source)}: the packed file is damaged: {error}") from None
    raise DataError(f"{name_of(source)}: the packed file has no member {member!r}")


def _head(text: Iterable[bytes] | None, out: Path, member: str, lines: int) -> None:
    head = list(itertools.islice(text or (), lines))
    if len(head) < lines:
        raise DataError(f"{member}: ends after {len(head):,} of {lines:,} lines")
    out.write_bytes(b"".join(head))


def pack_tar(inputs: Inputs, out: Path) -> None:
    """Write all inputs (name in the tar → file) into a gzipped tar file. Equal inputs give equal bytes.

    Parameters
    ----------
    inputs, out : Inputs, Path
    """
    with (
        open(out, "wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as pack,
    ):
        for name, source in sorted(inputs.items()):
            with open_input(source) as stream:
                data = stream.read()
            entry = tarfile.TarInfo(name)  # owner 0, time 0: nothing of this machine
            entry.size = len(data)
            pack.addfile(entry, io.BytesIO(data))
