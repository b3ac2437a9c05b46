"""Encoders from how often each value of a column occurs: the same as from the column itself."""

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from agglearn.encoding import BinnedEncoder, Binning, HashedEncoder
from agglearn.encoding.columns import LOOKS_NUMERIC, numbers
from agglearn.encoding.frame import FeatureEncoder, categorical
from agglearn.errors import DataError


def fitted(
    values: pd.Series, counts: np.ndarray, how: Binning, named: bool, buckets: int | None,
    hash_above: tuple[int, int] | None = None,
) -> FeatureEncoder:  # fmt: skip
    """The encoder that `FrameEncoder.fit` makes of a column.

    Parameters
    ----------
    values, counts : distinct values of the column (missing among them), rows that hold each.
    how, named, buckets : binning of numbers; whether numbers are names; buckets to hash into, or None.
    hash_above : see `FrameEncoder.fit`.
    """
    if buckets is not None:
        return HashedEncoder.fit(values, buckets)
    if named or not _continuous(values, counts):
        return categorical(values, hash_above)
    parsed = numbers(values)
    known = ~np.isnan(parsed)
    edges = how.edges(parsed[known], counts[known]) if known.any() else ()
    return BinnedEncoder(str(values.name), tuple(map(float, edges)), not known.all())


def _continuous(values: pd.Series, counts: np.ndarray) -> bool:
    """`agglearn.encoding.columns.is_continuous`, of rows known by their counts."""
    if is_bool_dtype(values.dtype):
        return False
    if is_numeric_dtype(values.dtype):
        return True
    known = values.notna().to_numpy()
    text, rows = values[known], counts[known]
    if len(text) == 0 or text.map(lambda v: isinstance(v, bool)).all():
        return False
    numeric = pd.to_numeric(text, errors="coerce").notna().to_numpy()
    share = rows[numeric].sum() / rows.sum()
    if LOOKS_NUMERIC <= share < 1:
        raise DataError(
            f"column {values.name!r} is numeric but {rows[~numeric].sum()} rows hold text such as "
            f"{text[~numeric].iloc[0]!r}; mend them, or declare the column as categorical"
        )
    return bool(share == 1)
