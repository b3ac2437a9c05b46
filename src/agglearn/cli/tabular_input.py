"""Reading of a user's records from CSV or Parquet. It is strict, and an error is one line.

CSV fields stay text, so that the name of a category does not depend on the other rows of the file. Features with numbers only
become numbers where they are encoded.
"""

import contextlib
import lzma
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn.encoding.columns import with_missing
from agglearn.errors import DataError
from agglearn.observations.streaming import as_columns, data_columns

SEPARATORS = {"tab": "\t", "\\t": "\t"}


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


def is_parquet(path: str | Path) -> bool:
    """Whether a file is Parquet, by its first bytes. DataError where there is no such file."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give a CSV or Parquet file")
    with about(path), open(path, "rb") as handle:
        parquet = handle.read(4) == b"PAR1"
    if path.suffix == ".parquet" and not parquet:
        raise DataError(f"{path}: not a Parquet file, or damaged; write it again")
    return parquet


def parquet_columns(path: str | Path) -> list[str]:
    """Names of the columns. DataError for columns with the same name or nested values, and for no rows."""
    with about(path):
        file = pq.ParquetFile(path)
        _distinct(file.schema_arrow.names)
        for column in file.schema_arrow:
            if pa.types.is_nested(column.type):
                raise DataError(f"column {column.name!r} holds nested values ({column.type}); flatten or drop it")
        if not file.metadata.num_rows:
            raise DataError("the file has columns but no rows")
        return data_columns(file.schema_arrow)


def read_records(path: str | Path, separator: str = ",", missing: Iterable[str] = ()) -> pd.DataFrame:
    """All records of a file.

    Parameters
    ----------
    path : str or Path
        CSV with a header line (UTF-8, compressed or not), or Parquet.
    separator : str
        Character between the fields of a CSV, `tab` for a tabulator.
    missing : iterable of str
        Spellings of a missing value, besides the empty field of a CSV and the null of Parquet.

    Raises
    ------
    DataError
        No such file, no rows, columns with the same name, rows longer than the header, or not UTF-8.
    """
    if is_parquet(path):
        columns = parquet_columns(path)
        with about(path):
            return with_missing(as_columns(pq.read_table(path, columns=columns)), missing)
    with about(path):
        return _read_csv(path, SEPARATORS.get(separator, separator), list(missing))


def _read_csv(path: str | Path, separator: str, missing: list[str]) -> pd.DataFrame:
    options = {
        "sep": separator.strip(" ") or separator,
        "skipinitialspace": separator != separator.rstrip(" "),
        "dtype": str,
        "keep_default_na": False,
        "encoding": "utf-8-sig",
        "engine": "c",
    }
    try:
        header = pd.read_csv(path, header=None, nrows=1, **options)
        _distinct(header.iloc[0].tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, na_values=["", *missing], index_col=False, **options)
    except pd.errors.EmptyDataError:
        raise DataError("the file is empty; give a CSV with a header line") from None
    except pd.errors.ParserWarning:
        raise DataError("the rows have more fields than the header; mend the file, or name the separator") from None
    except pd.errors.ParserError as error:
        raise DataError(f"cannot be read as text separated by {separator!r} ({_line(error)}); mend the file") from None
    except (DataError, UnicodeDecodeError):
        raise
    except ValueError as error:
        raise DataError(f"cannot be read as text separated by {separator!r} ({_line(error)})") from None
    if frame.empty:
        raise DataError("the file has a header but no rows")
    return frame.apply(lambda column: column.str.replace(r"^(-?(?:0|[1-9]\d*))\.0+$", r"\1", regex=True))


def _distinct(names: list[str]) -> None:
    for i, name in enumerate(names):
        if not name:
            raise DataError(f"column {i + 1} has no name; name it in the header")
        if name in names[:i]:
            raise DataError(f"two columns are named {name!r}; rename one in the header")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
