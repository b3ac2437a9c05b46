"""Digests of content: the same for one content in several spellings, another one for every change."""

import gzip
import io
import tarfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agglearn.datasets.content import content_digest
from agglearn.errors import DataError
from agglearn.storage import file_digest


def table(**columns) -> pa.Table:
    known = {"n": [1, None, 3], "x": [0.5, 1.5, None], "t": ["a", "", None], "b": [True, None, False]}
    return pa.table({**known, **columns})


def parquet(path, found: pa.Table, **options):
    pq.write_table(found, path, **options)
    return content_digest(path)


def test_parquet_is_compared_by_values_not_by_bytes(tmp_path):
    base = parquet(tmp_path / "a.parquet", table())
    narrow = pa.schema([("t", pa.large_string()), ("n", pa.int16()), ("b", pa.bool_()), ("x", pa.float64())])
    other = table().select(["t", "n", "b", "x"]).cast(narrow)
    assert parquet(tmp_path / "b.parquet", other, row_group_size=2, compression="gzip") == base
    pandas = table().to_pandas().astype({"n": "Int64", "b": "boolean", "t": "category"})
    pandas.to_parquet(tmp_path / "c.parquet")
    assert content_digest(tmp_path / "c.parquet") == base
    assert file_digest(tmp_path / "a.parquet") != file_digest(tmp_path / "b.parquet")


@pytest.mark.parametrize(
    "changed",
    [
        *({"n": values} for values in ([1, 0, 3], [3, None, 1], [1.0, None, 3.0], ["1", None, "3"])),
        *({"t": values} for values in (["", "a", None], ["a", None, ""])),
        *({"b": [True, False, False]}, {"extra": [1, 2, 3]}),
    ],
    ids=str,
)
def test_every_change_of_a_parquet_shows(tmp_path, changed):
    assert parquet(tmp_path / "a.parquet", table()) != parquet(tmp_path / "b.parquet", table(**changed))


def test_text_of_one_row_cannot_move_to_the_next(tmp_path):
    tables = (pa.table({"t": texts}) for texts in (["ab", "c"], ["a", "bc"]))
    assert len({parquet(tmp_path / "a.parquet", found) for found in tables}) == 2


def test_a_column_that_cannot_be_compared_is_refused(tmp_path):
    with pytest.raises(DataError, match="column 'l': no way to compare list"):
        parquet(tmp_path / "a.parquet", pa.table({"l": [[1], [2]]}))


def test_npz_is_compared_by_arrays(tmp_path):
    a, b = np.arange(6).reshape(2, 3), np.array([0.5])
    np.savez(tmp_path / "plain.npz", a=a, b=b)
    np.savez_compressed(tmp_path / "packed.npz", b=b, a=np.asfortranarray(a).astype(">i8"))
    digests = {content_digest(tmp_path / f"{n}.npz") for n in ("plain", "packed")}
    assert len(digests) == 1
    for k, changed in enumerate(({"a": a.T}, {"a": a.reshape(3, 2)}, {"a": a.astype(np.int32)}, {"a": a, "c": b})):
        np.savez(tmp_path / f"{k}.npz", **{"b": b, **changed})
        digests.add(content_digest(tmp_path / f"{k}.npz"))
    assert len(digests) == 5


def tar(path, files: dict[str, bytes], order=1, level=9, kind=None):
    with gzip.open(path, "wb", level) as packed, tarfile.open(fileobj=packed, mode="w") as pack:
        for name, data in list(files.items())[::order]:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), order + 5
            if kind:
                entry.type, entry.size = kind, 0
            pack.addfile(entry, io.BytesIO(data))
    return content_digest(path)


def test_tar_is_compared_by_names_and_bytes(tmp_path):
    path = tmp_path / "a.tar.gz"
    base = tar(path, {"x.csv": b"1", "y.csv": b"2"})
    assert tar(path, {"./x.csv": b"1", "./y.csv": b"2"}, order=-1, level=1) == base
    assert tar(path, {"x.csv": b"2", "y.csv": b"1"}) != base
    assert tar(path, {"x.csv": b"1", "z.csv": b"2"}) != base
    assert tar(path, {"x.csv": b"1"}) != base
    with pytest.raises(DataError, match=r"x\.csv is neither a file nor a folder"):
        tar(path, {"x.csv": b""}, kind=tarfile.SYMTYPE)


def test_other_files_are_compared_by_bytes(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n")
    assert content_digest(tmp_path / "a.csv") == file_digest(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "a.tar.gz"])
@pytest.mark.parametrize("data", [b"", b"<!doctype html>" * 20])
def test_damaged_files_are_one_line(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=f"{name}: the content cannot be read") as error:
        content_digest(tmp_path / name)
    assert "\n" not in str(error.value)


def test_pickles_are_not_opened(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([pd.Timestamp(0)], object))
    with pytest.raises(DataError, match="cannot be read"):
        content_digest(tmp_path / "a.npz")
