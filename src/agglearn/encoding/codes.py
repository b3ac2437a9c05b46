"""Warnings where numbers look like names, or text looks like numbers. One for all columns of a frame."""

import contextlib
import re
import warnings
from collections.abc import Collection, Iterator
from contextvars import ContextVar

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype

from agglearn.encoding.columns import LOOKS_NUMERIC, is_time
from agglearn.errors import LooksLikeCodes
from agglearn.text import list_some

EXACT = 2**53  # up to here floating-point numbers represent all whole numbers
LEAST = 20  # records from which on repetition is judged
SAMPLE = 1000  # records that are checked first
NAME = re.compile(
    r"(?i:(?:^|[\W_])(?:id|ids|uid|uuid|code|key|zip|zipcode|postcode|isbn|sku|hash)(?:[\W_]?\d+)?)$|[a-z](?:Id|ID|Code|Key|Zip)$"
)
LEADING_ZERO = r"-?0\d"
AMOUNT = re.compile(r"[-+]?(?:\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?")  # as in spreadsheets
UNITS = "€$£% \u00a0\u202f"
SOME = 6  # columns that a warning lists
MESSAGES = {
    "amounts": "text that looks like numbers was taken for categories: {}; if these are amounts, write them without units "
    "and thousands separators, with a decimal point",
    "inexact": "floating-point numbers above 2^53, where codes that differ become one, are in columns: {}; read these as "
    "text or as whole numbers (Int64)",
    "binned": "columns were taken for numbers and binned, but look like names: {}; if their numbers are names, make them "
    "categorical (--categorical) or hash them (--hash)",
}

Signs = dict[str, list[str]]  # kind → columns, each with the reason
_SIGNS: ContextVar[Signs | None] = ContextVar("signs", default=None)  # of columns so far


@contextlib.contextmanager
def one_warning() -> Iterator[Signs]:
    """Warn at the end, once for all columns that are encoded inside."""
    if (outer := _SIGNS.get()) is not None:  # which warns
        yield outer
        return
    signs: Signs = {}
    token = _SIGNS.set(signs)
    try:
        yield signs
    finally:
        _SIGNS.reset(token)
    for kind, columns in signs.items():
        warnings.warn(MESSAGES[kind].format(list_some(columns, SOME)), LooksLikeCodes, stacklevel=4)


def _warn(kind: str, name: object, why: str = "") -> None:
    with one_warning() as signs:
        signs.setdefault(kind, []).append(f"{str(name)!r} ({why})" if why else repr(str(name)))


def warn_of_codes(column: pd.Series, observed: np.ndarray, counts: np.ndarray | None) -> None:
    if not len(observed) or is_time(column) or (observed != np.floor(observed)).any():
        return
    if why := _sign(column, observed, counts):
        _warn("binned", column.name, why)


def _sign(column: pd.Series, observed: np.ndarray, counts: np.ndarray | None) -> str:
    """The sign that whole numbers are names, in words. Empty without one."""
    if np.abs(observed).max() > EXACT:
        return "it has whole numbers above 2^53, some of which bins cannot tell apart"
    if not is_numeric_dtype(column.dtype) and column.dropna()[: 10 * SAMPLE].astype(str).str.match(LEADING_ZERO).any():
        return "some of its numbers begin with zeros"
    if NAME.search(str(column.name)):
        return "its name is that of a code"
    n = len(observed) if counts is None else counts.sum()
    if n >= 5 * LEAST and (hardly_repeats(observed) if counts is None else len(observed) >= 0.9 * n):
        return "its whole numbers hardly ever repeat"
    return ""


def hardly_repeats(values: np.ndarray) -> bool:
    if len(values) < LEAST or (values != np.round(values)).any():
        return False
    return all(len(np.unique(rows)) >= 0.9 * len(rows) for rows in (values[:SAMPLE], values))


def warn_of_lost_digits(column: pd.Series) -> None:
    """Warn where categories came as floating-point numbers so large that whole numbers have become one."""
    if is_float_dtype(column.dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if (np.abs(values[np.isfinite(values)]) > EXACT).any():
            _warn("inexact", column.name)


def warn_of_amounts(name: str, values: Collection[str]) -> None:
    amounts = [v for v in values if AMOUNT.fullmatch(v.strip(UNITS))]
    marked = [v for v in amounts if not v.removeprefix("-").replace(".", "", 1).isdecimal()]
    if marked and len(amounts) >= LOOKS_NUMERIC * len(values):
        _warn("amounts", name, marked[0])
