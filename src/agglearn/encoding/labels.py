"""The binary label of a table of records."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from agglearn.encoding.columns import as_text, distinct, is_missing, spell
from agglearn.errors import ConfigError, DataError
from agglearn.text import count_text


def binary_label(column: pd.Series, positive: object = None) -> np.ndarray:
    if n := int(is_missing(column).sum()):
        raise DataError(f"label {column.name!r} is missing in {count_text(n, 'row')}; drop or mend them")
    codes, raw = distinct(column)
    spelt = as_text(raw).tolist()
    values = sorted(set(spelt))
    if len(values) != 2:
        listed = ", ".join(values[:5]) + (", …" if len(values) > 5 else "")
        raise DataError(f"label {column.name!r} must have two values, it has {len(values)}: {listed}")
    both = " and ".join(repr(v) if v != v.strip() else v for v in values)  # quoted where blanks are at an end
    if positive is None and values not in (["0", "1"], ["False", "True"]):
        raise DataError(
            f"label {column.name!r} has the values {both}; say which one is positive (positive=…, on the command line "
            "--positive)"
        )
    spelling = values[1] if positive is None else spell(positive)
    if spelling not in values:
        raise DataError(f"label {column.name!r} has no value {spelling}; it has {both}")
    if wrong := swapped_label(spelling, *(v for v in values if v != spelling)):
        raise DataError(f"label {column.name!r}: {wrong}")
    return np.array([s == spelling for s in spelt], dtype=np.int8)[codes]


def require_label(label: str | None) -> str:
    if label is None:
        raise ConfigError("label: name the column of the label, or give a schema")
    return str(label)


def swapped_label(positive: str, negative: str) -> str | None:
    """The fault where 0 would count as 1, else None: models predict 0 and 1, which are then not these names' values."""
    if (positive, negative) not in (("0", "1"), ("False", "True")):
        return None
    return (
        f"its values are {positive} and {negative} already, and a model would predict 1 for {positive}; take {negative} as "
        f"positive (the probability of {positive} is 1 minus that of {negative}), or rename the values"
    )


def check_labels(y: ArrayLike, n: int, classes: int | None = 2) -> np.ndarray:
    """(n,) labels 0 … `classes` − 1, as they are. `classes` None allows any number of classes."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise DataError(f"labels: {y.shape[0] if y.ndim == 1 else y.shape} for {n} records")
    with np.errstate(invalid="ignore"):
        right = np.isin(y, np.arange(classes)) if classes is not None else (y >= 0) & (y == np.floor(y))
    if not right.all():
        allowed = "0 or 1" if classes == 2 else f"0 to {classes - 1}" if classes else "whole numbers from 0 on"
        raise DataError(f"labels: must be {allowed}, got {y[~right].tolist()[0]!r}; map or mend them first")
    return y
