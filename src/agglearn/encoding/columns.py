"""Raw columns: text, numbers, missing values, and distinct values."""

import contextlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from agglearn.errors import DataError
from agglearn.text import count_text, list_some

LOOKS_NUMERIC = 0.9  # fraction of numbers from which text in a column is taken for a mistake
WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
LONG = 400  # digits, more than floating-point numbers have


def as_text(column: pd.Series) -> pd.Series:
    """Values as text, None where missing. Each is spelt by its own type: neither other rows nor the column's matter."""
    text = [None if missing else spell(v) for v, missing in zip(column.astype(object), is_missing(column), strict=True)]
    return pd.Series(text, column.index, dtype=object)


def spell(value: object) -> str:
    """The text of one value. 3, 3.0, "3.0" and Decimal("3.00") are "3" (a missing value turns integers into floats)."""
    text = str(value) if isinstance(value, str) else _spell_object(_real(value))
    if integer := WHOLE.fullmatch(text):
        return "0" if integer[1] == "-0" else integer[1]
    return text


def _spell_object(value: Any) -> str:
    """The same text for numpy's, pandas' and Python's values: pandas chooses among these types by all rows."""
    try:
        if isinstance(value, float | np.floating):
            return str(int(value) if float(value).is_integer() else float(value))
        if isinstance(value, Decimal) and abs(value.adjusted()) < LONG:
            digits = f"{value:f}"
            return digits.rstrip("0").rstrip(".") if "." in digits else digits
        if isinstance(value, datetime | np.datetime64):
            return str(pd.Timestamp(value)).removesuffix(" 00:00:00")
        if isinstance(value, timedelta | np.timedelta64):
            return str(pd.Timedelta(value))
        return str(value)
    except (ValueError, OverflowError):  # more digits than Python writes, or a time that pandas does not have
        return hex(value) if isinstance(value, int) else str(value)


def _real(value: Any) -> Any:
    """A complex number without an imaginary part as a real one: one complex number makes a whole column complex."""
    return value.real if isinstance(value, complex | np.complexfloating) and not value.imag else value


def is_missing(column: pd.Series) -> np.ndarray:
    """Whether each value is missing. NaN is, which pandas' nullable and Arrow types tell from a missing value."""
    missing = column.isna().to_numpy(bool)
    if types.is_float_dtype(column.dtype):
        missing |= np.isnan(column.to_numpy(dtype=float, na_value=np.nan))
    return missing


def distinct(column: pd.Series) -> tuple[np.ndarray, pd.Series]:
    """(n,) index of each row's value among the distinct ones (−1: missing), and these."""
    if types.is_string_dtype(column.dtype) and types.infer_dtype(column) in ("string", "empty"):
        with contextlib.suppress(UnicodeEncodeError):  # pandas' factorize cuts texts at a NUL
            texts = pa.array(column.astype(object), pa.large_string(), from_pandas=True).dictionary_encode()
            return texts.indices.fill_null(-1).to_numpy(), pd.Series(texts.dictionary.to_pylist(), dtype=object)
    index, observed = np.full(len(column), -1), ~is_missing(column)
    values = column[observed]
    if types.is_string_dtype(column.dtype):  # not text alone: 1, 1.0 and True are equal, but not spelt alike
        index[observed] = np.arange(len(values))
        return index, values
    index[observed], values = pd.factorize(values)
    return index, pd.Series(values)


def by_text(column: pd.Series, function: Callable[[pd.Series], Any], missing: Any) -> np.ndarray:
    """(n,) values of a function of texts, which sees each distinct one once. `missing` stands for a missing value."""
    index, values = distinct(column)
    return np.append(function(as_text(values)), missing)[index]


def numbers(column: pd.Series, advice: str = "") -> np.ndarray:
    """Column as float64, NaN where missing. Times are seconds since 1970, whatever their unit.

    DataError for text that is no number, with advice (by default that on records), and for infinite numbers.
    """
    if is_time(column):
        times = column.to_numpy("timedelta64[us]" if types.is_timedelta64_dtype(column.dtype) else "datetime64[us]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)
    parsed = pd.to_numeric(column, errors="coerce")
    wrong = (parsed.isna() & column.notna()).to_numpy()
    if wrong.any():
        row, name = int(np.argmax(wrong)), str(column.name)
        text = column.iloc[row]
        missing = f"mend them, declare the text as missing (--missing {text!r})"
        advice = advice or f"{missing}, or aggregate the column as categorical (--categorical {name!r})"
        raise DataError(
            f"column {name!r} is numeric but row {row + 1} holds {text!r} ({wrong.sum()} such rows); {advice}"
        )
    values = parsed.to_numpy(dtype=float, na_value=np.nan).copy()
    if column.dtype == object:  # pandas reads text to within a unit in the last place: enough to cross a bin's edge
        observed = ~np.isnan(values)
        values[observed] = [float(v) for v in column[observed]]
    if np.isinf(values).any():
        raise DataError(f"column {column.name!r} holds infinite values; replace them by missing ones")
    return values


def is_time(column: pd.Series) -> bool:
    return types.is_datetime64_any_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype)


def numbers_or_nan(column: pd.Series) -> np.ndarray:
    """Column as float64, NaN for any other value, without an error. Infinite numbers stay."""
    if types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    return np.array([_number(v) for v in column], dtype=float)


def _number(value: object) -> float:
    value = _real(value)
    if isinstance(value, timedelta | np.timedelta64 | np.datetime64):
        return math.nan  # numpy's would become numbers, pandas' would not
    try:
        return math.nan if isinstance(value, str) and "_" in value else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def is_continuous(column: pd.Series, counts: np.ndarray | None = None) -> bool:
    """Whether a column is to be binned. DataError for numbers with some text. `counts`: rows of distinct values."""
    if types.is_bool_dtype(column.dtype) or (column.dtype == object and types.infer_dtype(column) == "boolean"):
        return False
    if types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return types.is_numeric_dtype(column.dtype)
    index, values = distinct(column)
    observed = index >= 0
    if not observed.any():
        return False
    is_number = pd.to_numeric(values, errors="coerce").notna().to_numpy()[index[observed]]
    rows = np.ones(len(is_number), int) if counts is None else counts[observed]
    fraction = rows[is_number].sum() / rows.sum()
    if LOOKS_NUMERIC <= fraction < 1:
        if counts is None:
            numbers(column)  # raises, naming the row
        raise DataError(
            f"column {column.name!r} is numeric but {count_text(rows[~is_number].sum(), 'row')} with text such as "
            f"{column[observed][~is_number].iloc[0]!r}; mend them, or declare the column as categorical"
        )
    return bool(fraction == 1)


def as_frame(X: pd.DataFrame | np.ndarray, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Records as a frame whose columns are named by text. Those of an array have `names`, or x0, x1, …"""
    if isinstance(X, pd.DataFrame):
        frame = X
        if not all(isinstance(c, str) for c in X.columns):
            frame = X.copy(deep=False)
            frame.columns = [str(c) for c in X.columns]
        if (name := first_repeated(frame.columns)) is not None:
            raise DataError(f"column {name!r} is there twice; rename one")
        return frame
    x = np.asarray(X)
    if x.ndim != 2 or (names is not None and x.shape[1] != len(names)):
        width = "features" if names is None else len(names)
        raise DataError(f"X: must be a data frame, or an array of shape (records, {width}), got shape {x.shape}")
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])] if names is None else list(names))


def with_missing(frame: pd.DataFrame, marks: Iterable[str]) -> pd.DataFrame:
    """The frame with the values that are spelt like one of the marks made missing."""
    if not (spellings := [spell(mark) for mark in marks]):
        return frame
    marked = [by_text(column, lambda texts: texts.isin(spellings), False) for _, column in frame.items()]
    return frame.mask(pd.DataFrame(np.column_stack(marked), frame.index, frame.columns))


def present(names: Iterable[str], columns: Collection[str] | pd.Index) -> list[str]:
    """The names as a list of text. DataError for one that is no column or is named twice."""
    names, available = [str(name) for name in names], set(columns)
    if absent := [name for name in names if name not in available]:
        raise DataError(f"no column {absent[0]!r}; the columns are {list_some(columns)}")
    if (name := first_repeated(names)) is not None:
        raise DataError(f"column {name!r} is named twice")
    return names


def first_repeated(names: Iterable[str]) -> str | None:
    index = pd.Index(list(names), dtype=object)
    return next(iter(index[index.duplicated()]), None)
