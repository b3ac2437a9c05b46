"""The binary label of a table of records."""

import numpy as np
import pandas as pd

from agglearn.errors import DataError


def take_label(frame: pd.DataFrame, label: str, positive=None) -> tuple[pd.DataFrame, np.ndarray]:
    """Split a frame into features and the label as int8 0/1.

    Parameters
    ----------
    label : name of the label's column.
    positive : value that counts as 1; not needed when the label is 0/1 or boolean.

    Raises
    ------
    DataError : no such column, missing labels, other than two values, or a single class.
    """
    if label not in frame.columns:
        raise DataError(f"no label column {label!r}; the columns are {', '.join(map(str, frame.columns[:20]))}")
    return frame.drop(columns=label), binary_label(frame[label], positive)


def binary_label(column: pd.Series, positive=None) -> np.ndarray:
    """A column as int8 0/1; see `take_label`."""
    if column.isna().any():
        raise DataError(f"label {column.name!r} is missing in {int(column.isna().sum())} rows; drop or mend them")
    values = sorted(column.unique(), key=str)
    if len(values) != 2:
        shown = ", ".join(repr(v) for v in values[:5])
        raise DataError(f"label {column.name!r} must have two values, it has {len(values)}: {shown}")
    if positive is None:
        if set(values) != {0, 1}:
            raise DataError(
                f"label {column.name!r} has the values {values[0]!r} and {values[1]!r}; say which one is positive"
            )
        return column.to_numpy().astype(np.int8)
    if str(positive) not in {str(v) for v in values}:
        raise DataError(f"label {column.name!r} has no value {positive!r}; it has {values[0]!r} and {values[1]!r}")
    return (column.astype(str) == str(positive)).to_numpy().astype(np.int8)
