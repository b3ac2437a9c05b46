"""Drafts of schemas from records, for a person to review. They leave out values that few records share."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
import yaml

from agglearn.encoding.binned import Quantiles
from agglearn.encoding.codes import hardly_repeats, one_warning, warn_of_amounts, warn_of_codes
from agglearn.encoding.columns import (
    as_frame,
    as_text,
    distinct,
    is_continuous,
    is_missing,
    is_time,
    numbers_or_nan,
    present,
    spell,
)
from agglearn.encoding.levels import MISSING, OTHER
from agglearn.errors import DataError
from agglearn.text import list_some

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
#   unit      the column that names whose a record is, of which at most `max_rows` count; where nobody has two records,
#             one_row_per_person: true
"""


def draft(
    frame: pd.DataFrame, label: str | None = None, positive: object = None, categorical: Iterable[str] = (),
    unit: str | None = None, max_rows: int | str | None = None,
) -> str:  # fmt: skip
    """YAML of a schema that a person has to complete. What fewer than 20 records have is left out."""
    frame, label = as_frame(frame), None if label is None else str(label)
    present([name for name in (label, unit) if name is not None], frame.columns)
    names = present(categorical, frame.columns)
    with one_warning():
        features = {c: _draft_feature(frame[c], c in names) for c in frame.columns if c not in (label, unit)}
    whose = {"one_row_per_person": False} if unit is None else {"unit": unit, "max_rows": max_rows}
    head = [HEAD, "reviewed: false", *(_line(*item) for item in whose.items())]
    head += [_line("label", _label(frame, label, positive)), "features:"]
    return "\n".join([*head, *(f"  {_line(name, state)}" for name, state in features.items())]) + "\n"


def _label(frame: pd.DataFrame, label: str | None, positive: object) -> dict:
    blank = {"column": label or "", "positive": "", "negative": ""}
    if label is None:
        return blank
    values, _ = _common(frame[label])
    default = next((v for v in ("1", "True") if v in values), None)
    spelling = default if positive is None else spell(positive)
    if positive is not None and spelling not in (every := set(as_text(distinct(frame[label])[1]))):
        raise DataError(f"label {label!r} has no value {spelling!r}; it has {list_some(sorted(every))}")
    if spelling not in values:
        return blank
    if len(values) != 2:
        return blank | {"positive": spelling}
    return blank | {"positive": spelling, "negative": next(v for v in values if v != spelling)}


def _draft_feature(column: pd.Series, is_name: bool) -> dict:
    missing = {"missing": bool(is_missing(column).sum() >= LEAST)}
    if not is_name and is_continuous(column) and not is_time(column):  # a declared bin holds numbers alone
        numbers = numbers_or_nan(column)
        numbers = numbers[np.isfinite(numbers)]
        if hardly_repeats(numbers):
            return {"buckets": BUCKETS} | missing
        warn_of_codes(column, numbers, None)
        return {"edges": _edges(numbers)} | missing
    if not is_name:
        warn_of_amounts(str(column.name), as_text(distinct(column)[1]).unique())
    values, covered = _common(column)
    if covered < 0.5:
        return {"buckets": BUCKETS} | missing
    return {"values": [v for v in values if v not in (MISSING, OTHER)]} | missing


def _common(column: pd.Series) -> tuple[list[str], float]:
    """Values that enough records share, and the fraction of the records that have one of them."""
    index, values = distinct(column)
    counts = pd.Series(np.bincount(index[index >= 0], minlength=len(values))).groupby(as_text(values).to_numpy()).sum()
    common = counts[counts >= LEAST]
    return sorted(common.index), float(common.sum() / max(counts.sum(), 1))


def _edges(values: np.ndarray) -> list[float]:
    """Rounded edges of at most ten bins, of at least `LEAST` records each before rounding."""
    bins = min(10, len(values) // LEAST)
    if bins < 2:
        return []
    edges = Quantiles(bins).edges(values)
    low, high = np.quantile(values, [0.1, 0.9])
    spread = high - low or np.abs(edges).max(initial=0.0)
    step = 10.0 ** math.floor(math.log10(spread / 10)) if spread else 1.0
    rounded = sorted({float(f"{e:.10g}") for e in np.round(edges / step) * step})
    return [int(e) if e == int(e) else e for e in rounded]


def _line(name: str, state: object) -> str:
    """One entry in one line, with escapes where a terminal would obey a name or a value."""
    options = {"default_flow_style": True, "width": math.inf, "sort_keys": False}
    text = yaml.safe_dump({name: state}, allow_unicode=True, **options).strip()
    if not text.isprintable():
        text = yaml.safe_dump({name: state}, **options).strip()
    return text[1:-1]
