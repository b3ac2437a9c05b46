"""Warnings where the numbers of a column look like names: identifiers, postcodes, hashes."""

import re
import warnings

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype

from agglearn.errors import LooksLikeCodes

EXACT = 2**53  # up to here floating-point numbers represent all whole numbers
LEAST = 20  # records from which on repetition is judged
SAMPLE = 1000  # records that are checked first
NAME = re.compile(
    r"(?i:(?:^|[\W_])(?:id|ids|uid|uuid|code|key|zip|zipcode|postcode|isbn|sku|hash)(?:[\W_]?\d+)?)$|[a-z](?:Id|ID|Code|Key|Zip)$"
)
LEADING_ZERO = r"-?0\d"


def warn_of_codes(column: pd.Series, observed: np.ndarray, counts: np.ndarray | None) -> None:
    """Warn where the numbers of a column that is to be binned look like names.

    Parameters
    ----------
    column : Series
        Raw values.
    observed : ndarray of shape (n,)
        Its numbers that are not missing.
    counts : ndarray of shape (n,) or None
        Number of rows with each, where they are distinct. None for one each.
    """
    if not len(observed) or (observed != np.floor(observed)).any():
        return
    if why := _sign(column, observed, counts):
        warnings.warn(
            f"column {column.name!r} was taken for numbers and binned, but {why}; if its numbers are names, make it categorical "
            "(--categorical) or hash it (--hash)",
            LooksLikeCodes,
            stacklevel=4,
        )


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
    """Whether numbers (n,) are whole and hardly ever repeat, as account numbers do."""
    if len(values) < LEAST or (values != np.round(values)).any():
        return False
    return all(len(np.unique(rows)) >= 0.9 * len(rows) for rows in (values[:SAMPLE], values))


def warn_of_lost_digits(column: pd.Series) -> None:
    """Warn where categories came as floating-point numbers so large that whole numbers have become one."""
    if not is_float_dtype(column.dtype):
        return
    values = column.to_numpy(dtype=float, na_value=np.nan)
    if (np.abs(values[np.isfinite(values)]) > EXACT).any():
        warnings.warn(
            f"column {column.name!r} came as floating-point numbers above 2^53, where codes that differ become one; read it as "
            "text or as whole numbers (Int64)",
            LooksLikeCodes,
            stacklevel=4,
        )
