"""What a claim is judged by: one number per replicate, from the rows of an experiment.

A replicate is a seed. Everything that one seed has (data sets, items, years) is averaged first, since it shares a split or a
draw. With `replicates: part` a replicate is a part of the tested units. A pair is a replicate's value on both sides, measured
on the same tested units.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pandas as pd

from agglearn.evaluation.intervals import Estimate
from agglearn.reporting import summary
from agglearn.reporting.outcome import CELL


class Missing(Exception):
    """Rows that a claim needs are not there."""


@dataclass(frozen=True)
class Sample:
    """Numbers that a claim is judged by.

    Attributes
    ----------
    values : one per replicate: of one side, or differences between pairs.
    against : the other side's, where the sides have no pairs.
    single : every value before replicates are averaged, which a deterministic claim is judged by.
    overlap : see `agglearn.evaluation.intervals.Estimate.of_mean`.
    notes : what was left out, and why.
    """

    values: pd.Series
    against: pd.Series | None
    single: np.ndarray
    overlap: float
    notes: list[str] = field(default_factory=list)

    def estimate(self) -> Estimate:
        if self.against is None:
            return Estimate.of_mean(self.values.to_numpy(), self.overlap)
        return Estimate.of_difference(self.values.to_numpy(), self.against.to_numpy(), self.overlap)


def average(samples: list[Sample]) -> Sample:
    """The mean over cases, replicate by replicate."""
    values = _common([s.values for s in samples])
    against = None
    if any(s.against is not None for s in samples):
        if any(s.against is None for s in samples):
            raise Missing("some cases have pairs and others have none, so that they have no average")
        against = _common([s.against for s in samples])
    notes = list(dict.fromkeys(note for s in samples for note in s.notes))
    lost = max(len(s.values) for s in samples) - len(values)
    notes += [f"{_count(lost, 'replicate')} left out, which some cases lack"] if lost else []
    single = np.concatenate([s.single for s in samples])
    return Sample(values, against, single, max(s.overlap for s in samples), notes)


def _common(series: list[pd.Series]) -> pd.Series:
    index = reduce(pd.Index.intersection, [s.index for s in series])
    return pd.concat([s.loc[index] for s in series], axis=1).mean(axis=1)


# -- the samples of the predicates ------------------------------------------------------------------------------------


def values(claim: dict, rows: pd.DataFrame) -> Sample:
    """The value's mean per replicate."""
    side = _side(claim, rows, "value")
    return Sample(
        _per_replicate(side.rows), None, side.rows["value"].to_numpy(), summary.overlap_of(side.rows), side.notes
    )


def differences(claim: dict, rows: pd.DataFrame, scale: Callable = lambda x: x) -> Sample:
    """value − reference, of pairs where the two sides were tested on the same units; else both sides by themselves."""
    a, b = (_side(claim, rows, k) for k in ("value", "reference"))
    for side in (a, b):
        side.rows["value"] = scale(side.rows["value"])
    return _matched(claim, a, b, "mean")


def log_ratios(claim: dict, rows: pd.DataFrame) -> Sample:
    """log value − log reference, paired as `differences` are."""
    return differences(claim, rows, _log)


def slopes(claim: dict, rows: pd.DataFrame) -> Sample:
    """Slope of log value on log x, one per replicate."""
    side = _side(claim, rows, "value")
    x = pd.to_numeric(summary.field(side.rows, claim["x"])).astype(float)
    if x.nunique() < 2:
        raise Missing(f"fewer than two values of {claim['x']}")
    table = _log(side.rows["value"]).groupby([side.rows["replicate"], _log(x)]).mean().unstack()
    found = pd.Series(slope(table.to_numpy(), table.columns.to_numpy()), table.index)
    return Sample(found, None, found.to_numpy(), summary.overlap_of(side.rows), side.notes)


def delays(claim: dict, rows: pd.DataFrame) -> Sample:
    """Steps by which the curve of `value` reaches the reference's final level (less tolerance) later than the reference."""
    a, b = (_side(claim, rows, k, curve=True) for k in ("value", "reference"))
    keys = ["replicate", "dataset", "dataset_params"]
    final = b.rows.sort_values("step").groupby(keys, dropna=False)["value"].last() - claim.get("tolerance", 0.0)
    for side in (a, b):
        level = final.reindex(pd.MultiIndex.from_frame(side.rows[keys])).to_numpy()
        last = side.rows.groupby(keys, dropna=False)["step"].transform("max")
        # a curve that never reaches the level counts as if it did after its last step, which favours it
        side.rows["value"] = side.rows["step"].where(side.rows["value"] >= level, last + 1)
    return _matched(claim, a, b, "min")


def slope(y, x) -> np.ndarray:
    """Least-squares slopes of y (..., k) on x (k,)."""
    centred = np.asarray(x, float) - np.mean(x)
    return np.asarray(y) @ centred / (centred @ centred)


# -- sides and pairs --------------------------------------------------------------------------------------------------


@dataclass
class _Side:
    rows: pd.DataFrame
    notes: list[str]


def selected(rows: pd.DataFrame, selector: dict) -> pd.Series:
    """Rows that have the values; a list allows several, null asks for a parameter that is not there."""
    same = pd.Series(True, index=rows.index)
    for name, value in selector.items():
        column = summary.field(rows, name)
        same &= column.isna() if value is None else column.isin(value) if isinstance(value, list) else column == value
    return same


def _side(claim: dict, rows: pd.DataFrame, side: str, curve: bool = False) -> _Side:
    """Good rows of one side, with their replicate; without replicates that lack some of the others' cells."""
    found = _good(rows, claim[side], curve).copy()
    by_part = claim.get("replicates", "seed") == "part"
    found["replicate"] = list(zip(found["seed"], found["item"], strict=True)) if by_part else found["seed"]
    cell = [*CELL, *([] if by_part else ["item"]), *(["step"] if curve else [])]
    number = found.groupby(cell, dropna=False).ngroup()
    if curve:  # curves end at steps of their own
        return _Side(found, [])
    per = number.groupby(found["replicate"]).nunique()
    whole = per.index[per == number.nunique()]
    if not len(whole):
        raise Missing(f"no replicate has all {number.nunique()} cells")
    left = len(per) - len(whole)
    notes = [f"{left} of {len(per)} replicates left out, which lack some cells"] if left else []
    return _Side(found[found["replicate"].isin(whole)], notes)


def _good(rows: pd.DataFrame, selector: dict, curve: bool) -> pd.DataFrame:
    """Rows of a selector that have a value: scalars, or the points of curves."""
    found = rows[selected(rows, selector)]
    found = found[found["step"].notna() if curve else found["step"].isna()]
    found = found[(found["status"] == "ok") & found["value"].notna()]
    if found.empty:
        bad = rows[selected(rows, {k: v for k, v in selector.items() if k != "measure"})]
        bad = bad[bad["status"] != "ok"]
        reasons = bad["reason"].where(bad["status"] != "stopped", "stopped: " + bad["reason"]).dropna().unique()
        raise Missing(reasons[0] if len(reasons) else f"no rows for {json.dumps(selector)}")
    return found


def _matched(claim: dict, a: _Side, b: _Side, reduced: str) -> Sample:
    """The two sides as pairs, or as two samples where their tested units differ."""
    notes, overlap = [*a.notes, *b.notes], max(summary.overlap_of(a.rows), summary.overlap_of(b.rows))
    one, two = (_by_cell(s.rows, _freed(claim), reduced) for s in (a, b))
    both = one.join(two, how="inner", lsuffix="_a", rsuffix="_b")
    if both.empty:
        raise Missing("value and reference have no data set and seed in common")
    same = both["tested_a"] == both["tested_b"]
    if not same.any():
        first, second = (s["value"].groupby("replicate").mean() for s in (one, two))
        single = np.array([first.mean() - second.mean()])
        return Sample(first, second, single, overlap, [*notes, "the two sides were tested on different units"])
    lost = len(one) + len(two) - 2 * len(both)
    notes += [f"{_count(lost, 'value')} without a partner left out"] if lost else []
    if not same.all():
        notes.append(f"{(~same).sum()} of {len(both)} pairs left out: their sides were tested on different units")
    gaps = (both["value_a"] - both["value_b"])[same]
    table = gaps.unstack("replicate")
    per = table.dropna(axis=1).mean()
    if per.empty:
        raise Missing("no replicate has all pairs")
    if len(per) < table.shape[1]:
        notes.append(f"{table.shape[1] - len(per)} of {table.shape[1]} replicates left out, which lack some pairs")
    return Sample(per, None, gaps.to_numpy(), overlap, notes)


def _by_cell(rows: pd.DataFrame, freed: set[str], reduced: str) -> pd.DataFrame:
    """`value` and `tested` by data set, its parameters, item and replicate, but for what the two sides differ in."""
    params = rows["dataset_params"].map({text: _without(text, freed) for text in rows["dataset_params"].unique()})
    by_part = isinstance(rows["replicate"].iloc[0], tuple)
    keys = pd.DataFrame(
        {
            "dataset": "" if "dataset" in freed else rows["dataset"],
            "dataset_params": "" if "dataset" in freed else params,
            "item": "" if by_part or "item" in freed else rows["item"].fillna(""),
            "replicate": rows["replicate"],
        }
    )
    groups = rows.assign(**keys).groupby(list(keys))
    return pd.DataFrame({"value": groups["value"].agg(reduced), "tested": groups["tested"].agg(_digests)})


def _freed(claim: dict) -> set[str]:
    """Fields that both sides name, with different values: pairs need not agree there."""
    a, b = claim["value"], claim["reference"]
    return {name for name in a.keys() & b.keys() if a[name] != b[name]}


def _without(text: str, freed: set[str]) -> str:
    params = json.loads(text) if isinstance(text, str) else {}
    return json.dumps({k: v for k, v in params.items() if f"dataset_params.{k}" not in freed}, sort_keys=True)


def _digests(tested: pd.Series) -> str:
    return ",".join(sorted(set(tested.dropna()))) or "unknown"


def _per_replicate(rows: pd.DataFrame) -> pd.Series:
    return rows.groupby("replicate")["value"].mean()


def _log(x: pd.Series) -> pd.Series:
    if not (x > 0).all():
        raise Missing(f"a ratio needs values above 0; {(x <= 0).sum()} of {len(x)} are not")
    return np.log(x)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
