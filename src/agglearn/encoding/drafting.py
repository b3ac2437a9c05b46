"""Drafts of schemas from records, for a person to review: what few records share is not written down."""

import math

import numpy as np
import pandas as pd
import yaml

from agglearn.encoding.binning import Quantiles
from agglearn.encoding.codes import hardly_repeats
from agglearn.encoding.columns import as_text, distinct, is_continuous, numbers_or_nan
from agglearn.encoding.levels import MISSING, OTHER

LEAST = 20  # records that must share a value
BUCKETS = 100  # of a column that looks like an identifier
HEAD = """\
# A DRAFT OF A SCHEMA, MADE FROM RECORDS: what stands here tells something of them, and no noise hides it.
# Read every line. Take out what must not be public, put in what is known beforehand, and complete the label. Then set
# `reviewed: true`; before that `agglearn aggregate --schema` refuses the file.
#
#   values    categories; a value that is not listed belongs to the level `other`
#   edges     bins of numbers: up to the first edge, …, above the last; text belongs to `other`
#   buckets   values are hashed into so many
#   missing   whether a missing value is a level of its own; if false it belongs to `other`
#   label     records with a label that is neither positive nor negative are left out
"""


def draft(frame: pd.DataFrame, label: str | None = None, positive=None, categorical=()) -> str:
    """YAML of a schema that a person has to complete.

    A value is listed where at least 20 records have it, missing values are a level where there are at least 20. Edges are
    deciles, rounded to the power of ten below a tenth of their spread. What looks like an identifier is hashed: a column most
    of whose records have a value that few share, and whole numbers that hardly ever repeat.

    Parameters
    ----------
    label : column of the label, and positive : its value that counts as 1; left blank where they are not given.
    categorical : columns whose numbers are names.
    """
    features = {str(c): _drafted(frame[c], c in set(categorical)) for c in frame.columns if c != label}
    parts = [HEAD, "reviewed: false", _line("label", _label(frame, label, positive)), "features:"]
    return "\n".join([*parts, *(f"  {_line(name, state)}" for name, state in features.items())]) + "\n"


def _label(frame: pd.DataFrame, label: str | None, positive) -> dict:
    blank = {"column": label or "", "positive": "", "negative": ""}
    if label is None:
        return blank
    values = _common(frame[label])[0]
    wanted = next((v for v in ("1", "True") if v in values), None) if positive is None else _spelt(positive)
    if len(values) != 2 or wanted not in values:
        return blank | ({"positive": wanted} if wanted in values else {})
    return blank | {"positive": wanted, "negative": next(v for v in values if v != wanted)}


def _spelt(value) -> str:
    return as_text(pd.Series([value]))[0]


def _drafted(column: pd.Series, named: bool) -> dict:
    """`values`, `edges` or `buckets`, and `missing`, of one column."""
    missing = {"missing": bool(column.isna().sum() >= LEAST)}
    if not named and is_continuous(column):
        known = numbers_or_nan(column)
        known = known[np.isfinite(known)]
        if hardly_repeats(known):
            return {"buckets": BUCKETS} | missing
        return {"edges": _edges(known)} | missing
    values, covered = _common(column)
    if covered < 0.5:
        return {"buckets": BUCKETS} | missing
    return {"values": [v for v in values if v not in (MISSING, OTHER)]} | missing


def _common(column: pd.Series) -> tuple[list[str], float]:
    """Values that enough records share, and the share of the records that have one of them."""
    at, values = distinct(column)
    counts = pd.Series(np.bincount(at[at >= 0], minlength=len(values))).groupby(as_text(values).to_numpy()).sum()
    common = counts[counts >= LEAST]
    return sorted(common.index), float(common.sum() / max(counts.sum(), 1))


def _edges(known: np.ndarray) -> list[float]:
    """Rounded edges of at most ten bins, of at least `LEAST` records each before rounding."""
    bins = min(10, len(known) // LEAST)
    if bins < 2:
        return []
    edges = Quantiles(bins).edges(known)
    low, high = np.quantile(known, [0.1, 0.9])
    spread = high - low or np.abs(edges).max(initial=0.0)
    step = 10.0 ** math.floor(math.log10(spread / 10)) if spread else 1.0
    rounded = sorted({float(f"{e:.10g}") for e in np.round(edges / step) * step})
    return [int(e) if e == int(e) else e for e in rounded]


def _line(name: str, state: dict) -> str:
    """One entry in one line."""
    how = {"default_flow_style": True, "width": math.inf, "allow_unicode": True, "sort_keys": False}
    return yaml.safe_dump({name: state}, **how).strip()[1:-1]
