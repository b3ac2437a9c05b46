"""Reading of a user's records from CSV or Parquet, strict. CSV fields stay text: no category depends on other rows."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn.cli.common import reading_of, separator_of
from agglearn.encoding import UNSEEN, FrameEncoder
from agglearn.encoding.columns import with_missing
from agglearn.encoding.csv_files import CSVFormat, about, header_of, read_csv, refuse_repeated
from agglearn.errors import DataError
from agglearn.observations.streaming import as_columns, data_columns


def columns_of(path: str | Path, separator: str) -> list[str]:
    """Names of the columns, of which only the header is read. DataError as of `read_records`."""
    with about(path):
        return _parquet_columns(path) if is_parquet(path) else header_of(path, CSVFormat(separator))


def is_parquet(path: str | Path) -> bool:
    """Whether a file is Parquet, by its first bytes. DataError where there is no such file."""
    path = Path(path)
    if not path.exists():
        raise DataError("no such file")
    if path.is_dir():
        raise DataError("is a folder; give a CSV or Parquet file")
    with open(path, "rb") as handle:
        parquet = handle.read(4) == b"PAR1"
    if path.suffix == ".parquet" and not parquet:
        raise DataError("not a Parquet file, or damaged; write it again")
    return parquet


def _parquet_columns(path: str | Path) -> list[str]:
    """Names of the columns. DataError for columns with the same name or nested values, and for no rows."""
    file = pq.ParquetFile(path)
    refuse_repeated(file.schema_arrow.names)
    for column in file.schema_arrow:
        if pa.types.is_nested(column.type):
            raise DataError(f"column {column.name!r} holds nested values ({column.type}); flatten or drop it")
    if not file.metadata.num_rows:
        raise DataError("the file has columns but no rows")
    return data_columns(file.schema_arrow)


def read_records(path: str | Path, separator: str = ",", missing: Iterable[str] = ()) -> pd.DataFrame:
    with about(path):
        if is_parquet(path):
            return with_missing(as_columns(pq.read_table(path, columns=_parquet_columns(path))), missing)
        return read_csv(path, CSVFormat(separator, list(missing)), str)


def read_like(
    folder: str, path: str, separator: str | None = None, missing: Iterable[str] | None = None
) -> pd.DataFrame:
    """Rows of a file, read as the records behind a folder."""
    reading = reading_of(folder)
    separator = reading["separator"] if separator is None else separator_of(separator)
    return read_records(path, separator, reading["missing"] if missing is None else missing)


def read_codes(
    folder: str, path: str, encoder: FrameEncoder, separator: str | None = None, missing: Iterable[str] | None = None
) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Rows as of `read_like`, their codes, and how many values of each feature have none."""
    frame = read_like(folder, path, separator, missing)
    with about(path):
        codes = encoder.encode(frame)
    unseen = (codes == UNSEEN).sum(axis=0)
    return frame, codes, [f"{name} {n:,}" for name, n in zip(encoder.names, unseen, strict=True) if n]
