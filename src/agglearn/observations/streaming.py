"""Records in a Parquet file: one column at a time to fit encoders, then batches of all columns."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agglearn.encoding import BinnedEncoder, FrameEncoder
from agglearn.encoding.columns import LOOKS_NUMERIC, with_missing
from agglearn.errors import DataError

BATCH = 1 << 19  # records read at a time
ROW_NUMBERS = re.compile(r"__index_level_\d+__")  # pandas' index without a name, which a filtered frame keeps
WHOLE = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}  # a null must not make large codes inexact


def data_columns(schema: pa.Schema) -> list[str]:
    """Columns of a Parquet file, but for the row numbers that pandas adds."""
    return [name for name in schema.names if not ROW_NUMBERS.fullmatch(name)]


def as_columns(table: pa.Table | pa.RecordBatch) -> pd.DataFrame:
    """A frame with all columns, none as an index. Whole numbers stay whole where some are missing."""
    try:
        return table.to_pandas(types_mapper=WHOLE.get, ignore_metadata=True)
    except KeyError as error:
        raise DataError(f"no time zone is named {error}; write the column in UTC") from None


class ParquetRecords:
    def __init__(self, path: str | Path, missing: list[str]) -> None:
        self.path, self.missing, self.file = path, missing, pq.ParquetFile(path)
        self.columns = data_columns(self.file.schema_arrow)

    def __getitem__(self, name: str) -> pd.Series:
        """A column as the file has it."""
        return as_columns(self.file.read(columns=[name]))[name]

    def masked(self, name: str) -> pd.Series:
        """A column in which the spellings of a missing value are missing."""
        return with_missing(self[name].to_frame(), self.missing)[name]

    def values(self, name: str, are_names: bool) -> tuple[pd.Series, None]:
        """The values of a column: the distinct ones alone where they are text, but for text that spells numbers."""
        if not self._is_text(name):
            return self.masked(name), None
        column = pq.ParquetFile(self.path, read_dictionary=[name]).read(columns=[name])[name]
        distinct, rows = pc.value_counts(column.unify_dictionaries()).flatten()
        values = with_missing(distinct.dictionary_decode().to_pandas().to_frame(name), self.missing)[name]
        n = pd.Series(rows.to_numpy())
        numeric, observed = (n[mask].sum() for mask in (pd.to_numeric(values, errors="coerce").notna(), values.notna()))
        is_text = are_names or not observed or numeric < LOOKS_NUMERIC * observed
        return values if is_text else self.masked(name), None

    def batches(
        self, encoder: FrameEncoder, y: np.ndarray, labelled: np.ndarray, counted: Any
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Codes and labels of the records that count among those with a label, which `labelled` tells and `y` has."""
        mask = np.zeros(len(labelled), bool)
        mask[np.flatnonzero(labelled)[counted]] = True
        y, n_before = y[counted], np.append(0, np.cumsum(mask))
        file, start = pq.ParquetFile(self.path, read_dictionary=self._repetitive(encoder)), 0
        for batch in file.iter_batches(BATCH, columns=encoder.names):
            frame = as_columns(batch)
            end = start + len(frame)
            codes = encoder.encode(with_missing(frame, self.missing))
            yield codes[mask[start:end]], y[n_before[start] : n_before[end]]
            start = end

    def _repetitive(self, encoder: FrameEncoder) -> list[str]:
        """Columns of text to be read as dictionaries: each spelling is then encoded once per batch."""
        if self.missing:
            return []  # masks apply to values
        return [f.name for f in encoder.features if not isinstance(f, BinnedEncoder) and self._is_text(f.name)]

    def _is_text(self, name: str) -> bool:
        return self.file.schema_arrow.field(name).type in (pa.string(), pa.large_string())
