"""Encoders from how often each value of a column occurs. They equal those from the column itself."""

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from agglearn.encoding import BinnedEncoder, Binning, HashedEncoder
from agglearn.encoding.columns import LOOKS_NUMERIC, numbers
from agglearn.encoding.frame import FeatureEncoder, fit_categories
from agglearn.errors import DataError


def fit_from_counts(
    values: pd.Series, counts: np.ndarray, binning: Binning, named: bool, buckets: int | None,
    hash_above: tuple[int, int] | None = None,
) -> FeatureEncoder:  # fmt: skip
    """Return the encoder that `FrameEncoder.fit` makes of a column.

    Parameters
    ----------
    values : pd.Series
        Distinct values of the column, a missing one among them.
    counts : np.ndarray
        Number of rows of each value.
    binning : Binning
        How numbers are binned.
    named : bool
        Whether numbers are names.
    buckets : int or None
        Buckets into which values are hashed.
    hash_above : tuple, optional
        See `FrameEncoder.fit`.
    """
    if buckets is not None:
        return HashedEncoder.fit(values, buckets)
    if named or not _continuous(values, counts):
        return fit_categories(values, hash_above)
    parsed = numbers(values)
    present = ~np.isnan(parsed)
    edges = binning.edges(parsed[present], counts[present]) if present.any() else ()
    return BinnedEncoder(str(values.name), tuple(map(float, edges)), not present.all())


def _continuous(values: pd.Series, counts: np.ndarray) -> bool:
    """`agglearn.encoding.columns.is_continuous` for a column of which the counts of values are given."""
    if is_bool_dtype(values.dtype):
        return False
    if is_numeric_dtype(values.dtype):
        return True
    present = values.notna().to_numpy()
    text, rows = values[present], counts[present]
    if len(text) == 0 or text.map(lambda v: isinstance(v, bool)).all():
        return False
    numeric = pd.to_numeric(text, errors="coerce").notna().to_numpy()
    fraction = rows[numeric].sum() / rows.sum()
    if LOOKS_NUMERIC <= fraction < 1:
        raise DataError(
            f"column {values.name!r} is numeric but {rows[~numeric].sum()} rows hold text such as "
            f"{text[~numeric].iloc[0]!r}; mend them, or declare the column as categorical"
        )
    return bool(fraction == 1)
