"""Records in CSV files. Where fields stay text, the name of a category does not depend on the other rows."""

import contextlib
import lzma
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_float_dtype
from pyarrow import csv

from agglearn.encoding.columns import first_repeated
from agglearn.errors import DataError

SEPARATORS = {"tab": "\t", "\\t": "\t"}
BLOCK = 1 << 26  # bytes read at a time


@dataclass(frozen=True)
class CSVFormat:
    separator: str = ","
    missing: Sequence[str] = ()
    columns: Sequence[str] | None = None
    comment: str | None = None

    @classmethod
    def from_entry(cls, entry: Mapping) -> Self:
        return cls(**{k: v for k, v in entry.get("format", {}).items() if k in cls.__dataclass_fields__})

    @property
    def delimiter(self) -> str:
        separator = SEPARATORS.get(self.separator, self.separator)
        return separator.strip(" ") or separator

    @property
    def options(self) -> dict[str, Any]:
        return {
            "sep": self.delimiter,
            "skipinitialspace": self.separator.endswith(" "),
            "comment": self.comment,
            "keep_default_na": False,
            "encoding": "utf-8-sig",
            "low_memory": False,
        }


@contextlib.contextmanager
def about(path: str | Path) -> Iterator[None]:
    """Add the name of the file to errors."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.object[error.start]:#04x}); save it as UTF-8") from None
    except pa.ArrowException as error:
        raise DataError(f"{path}: cannot be read as Parquet ({_line(error)}); write it again") from None
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: is cut off or damaged ({_line(error)}); copy it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or _line(error)})") from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def header_of(path: str | Path, form: CSVFormat) -> list[str]:
    """Names of the columns. DataError for names that are empty or stand twice, and for no text."""
    names = form.columns
    if names is None:
        with refuse_unreadable(form):
            names = pd.read_csv(path, header=None, nrows=1, dtype=str, **form.options).iloc[0].tolist()
    refuse_repeated(names)
    return list(names)


def read_csv(path: str | Path, form: CSVFormat, dtype: type[str] | dict[str, type[str]]) -> pd.DataFrame:
    header_of(path, form)
    with refuse_unreadable(form), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        options = form.options | {"names": form.columns, "na_values": ["", *form.missing], "index_col": False}
        frame = pd.read_csv(path, dtype=dtype, **options)
    if frame.empty:
        raise DataError("the file has a header but no rows" if form.columns is None else "the file has no rows")
    inexact = [c for c in frame if is_float_dtype(frame[c]) and frame[c].isna().any() and frame[c].abs().max() > 2**53]
    if inexact and isinstance(dtype, dict):  # large codes, which a missing value has made floats
        return read_csv(path, form, dtype | dict.fromkeys(inexact, str))
    return frame


def read_csv_blocks(path: str | Path, form: CSVFormat, types: dict[str, pa.DataType]) -> Iterator[pa.Table]:
    """Columns of these types of a file larger than memory, some rows at a time. Quotation marks are part of a text."""
    read = csv.ReadOptions(column_names=form.columns, block_size=BLOCK)
    parse = csv.ParseOptions(delimiter=form.delimiter, quote_char=False)
    nulls = {"strings_can_be_null": True, "null_values": ["", *form.missing]}
    convert = csv.ConvertOptions(column_types=types, include_columns=list(types), **nulls)
    with about(path), refuse_unreadable(form), csv.open_csv(path, read, parse, convert) as blocks:
        yield from (pa.Table.from_batches([block]) for block in blocks)


@contextlib.contextmanager
def refuse_unreadable(form: CSVFormat) -> Iterator[None]:
    try:
        yield
    except pd.errors.EmptyDataError:
        advice = "; give a CSV with a header line" if form.columns is None else ""
        raise DataError(f"the file is empty{advice}") from None
    except pd.errors.ParserWarning:
        raise DataError("the rows have more fields than the header; mend the file, or name the separator") from None
    except (DataError, UnicodeDecodeError):
        raise
    except ValueError as error:  # of pandas and of Arrow
        reason = f"cannot be read as text separated by {form.separator!r} ({_line(error)})"
        raise DataError(f"{reason}; mend the file") from None


def refuse_repeated(names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if not name:
            raise DataError(f"column {i + 1} has no name; name it in the header")
    if repeated := first_repeated(names):
        raise DataError(f"two columns are named {repeated!r}; rename one in the header")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
