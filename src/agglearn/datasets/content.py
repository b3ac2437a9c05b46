"""Digest of a file's content, equal for all writers: they compress, chunk and order differently."""

import hashlib
import posixpath
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agglearn.errors import DataError
from agglearn.storage import file_digest


def content_digest(path: str | Path) -> str:
    """Hex digits over decoded columns by name and kind (`.parquet`), arrays (`.npz`), files (`.tar.gz`), or bytes."""
    path = Path(path)
    digest = next((d for suffix, d in DIGESTS.items() if path.name.endswith(suffix)), None)
    if digest is None:
        return file_digest(path)
    try:
        return digest(path)
    except (pa.ArrowInvalid, zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path}: the content cannot be read: {error}") from None


def _parquet(path: Path) -> str:
    total = hashlib.sha256(b"parquet")
    with pq.ParquetFile(path) as file:
        for name in sorted(file.schema_arrow.names):
            total.update(_column_bytes(name, file.read(columns=[name])[name].combine_chunks()))
    return total.hexdigest()


def _column_bytes(name: str, column: pa.Array) -> bytes:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind, valid = _kind(name, column.type), column.is_valid().to_numpy(zero_copy_only=False)
    header = f"{name}\0{kind}\0{len(column)}\0".encode() + np.packbits(valid).tobytes()
    if kind == "text":
        texts = column.cast(pa.large_string()).drop_null()
        lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype("<i8")
        return header + lengths.tobytes() + "".join(texts.to_pylist()).encode()
    values = column.drop_null().to_numpy(zero_copy_only=False)
    return header + values.astype({"integer": "<i8", "real": "<f8", "logical": "u1"}[kind]).tobytes()


def _kind(name: str, value: pa.DataType) -> str:
    if pa.types.is_integer(value) and value != pa.uint64():
        return "integer"
    if pa.types.is_floating(value):
        return "real"
    if pa.types.is_string(value) or pa.types.is_large_string(value):
        return "text"
    if pa.types.is_boolean(value):
        return "logical"
    raise DataError(f"column {name!r}: no way to compare {value}")


def _npz(path: Path) -> str:
    total = hashlib.sha256(b"npz")
    with np.load(path, allow_pickle=False) as arrays:
        for name in sorted(arrays.files):
            array = arrays[name]
            array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
            total.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            total.update(array.data)
    return total.hexdigest()


def _tar(path: Path) -> str:
    files = []
    with tarfile.open(path, "r:gz") as pack:
        for entry in pack:
            if file := pack.extractfile(entry) if entry.isfile() else None:
                data = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
                files.append(f"{posixpath.normpath(entry.name)}\0{data}\n")
            elif not entry.isdir():
                raise DataError(f"{entry.name} is neither a file nor a folder")
    return hashlib.sha256("".join(["tar\n", *sorted(files)]).encode()).hexdigest()


DIGESTS = {".parquet": _parquet, ".npz": _npz, ".tar.gz": _tar}
