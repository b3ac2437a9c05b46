"""Samples that claims are judged by: one number per replicate, from the rows of an experiment.

A replicate is a seed. All values of one seed (data sets, items, years) are averaged first, since they share a split or a draw.
With `replicates: part` a replicate is a part of the tested units. A pair is a replicate's value on both sides, on the same units.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from agglearn.evaluation.intervals import LEVEL, NOTHING, Estimate
from agglearn_workflow.claims.rows import Rows, RowsMissing, Side, select_side
from agglearn_workflow.tables.numbers import count

MOST = 1000  # replicates that a claim may ask for


@dataclass(frozen=True)
class Sample:
    values: pd.Series
    against: pd.Series | None
    single: np.ndarray
    overlap: float
    notes: list[str] = field(default_factory=list)

    def estimate(self) -> Estimate:
        """Mean, or difference of means, with its standard error."""
        if self.against is None:
            return Estimate.of_mean(self.values.to_numpy(), self.overlap)
        return Estimate.of_difference(self.values.to_numpy(), self.against.to_numpy(), self.overlap)

    def deciding(self, distance: float) -> int | None:
        """Replicates whose 95 % interval is narrower than `distance` on each side. None where `MOST` are too few."""
        estimate = self.estimate()
        spread = float(estimate.error) / np.sqrt(1 / estimate.n + self.overlap)
        n = np.arange(estimate.n + 1, MOST + 1)
        narrow = stdtrit(n - 1, (1 + LEVEL) / 2) * spread * np.sqrt(1 / n + self.overlap) < distance
        return int(n[narrow.argmax()]) if narrow.any() else None


def average(samples: list[Sample]) -> Sample:
    """The mean over cases, replicate by replicate."""
    values, seconds = _common([s.values for s in samples]), [s.against for s in samples if s.against is not None]
    if seconds and len(seconds) < len(samples):
        raise RowsMissing("some cases have pairs and others have none, so that they have no average")
    against = _common(seconds) if seconds else None
    notes = list(dict.fromkeys(note for s in samples for note in s.notes))
    lost = max(len(s.values) for s in samples) - len(values)
    notes += [f"{count(lost, 'replicate')} left out, which some cases lack"] if lost else []
    single = np.concatenate([s.single for s in samples])
    return Sample(values, against, single, max(s.overlap for s in samples), notes)


def _common(series: list[pd.Series]) -> pd.Series:
    index = reduce(pd.Index.intersection, [s.index for s in series])
    return pd.concat([s.loc[index] for s in series], axis=1).mean(axis=1)


def values(claim: dict, rows: Rows) -> Sample:
    """The value's mean per replicate."""
    side = select_side(claim, rows, "value")
    return Sample(side.per_replicate(), None, side.values, side.overlap, side.notes)


def differences(claim: dict, rows: Rows, scale: Callable = lambda x: x) -> Sample:
    """value − reference of pairs where both sides were tested on the same units. Otherwise two independent samples."""
    a, b = (select_side(claim, rows, name) for name in ("value", "reference"))
    return _match(claim, replace(a, values=scale(a.values)), replace(b, values=scale(b.values)), "mean")


def log_ratios(claim: dict, rows: Rows) -> Sample:
    """log value − log reference, with the pairs of `differences`."""
    return differences(claim, rows, _log)


def slopes(claim: dict, rows: Rows) -> Sample:
    """Slope of log value on log x, one per replicate."""
    side = select_side(claim, rows, "value")
    codes, levels = rows.field(claim["x"])
    x = pd.to_numeric(pd.Series([levels[code] for code in codes[side.index]], dtype=object)).to_numpy(float)
    if len(np.unique(x)) < 2:
        raise RowsMissing(f"fewer than two values of {claim['x']}")
    table = pd.Series(_log(side.values)).groupby([side.replicates, _log(x)]).mean().unstack()
    per_replicate = pd.Series(slope(table.to_numpy(), table.columns.to_numpy()), table.index)
    return Sample(per_replicate, None, per_replicate.to_numpy(), side.overlap, side.notes)


def delays(claim: dict, rows: Rows) -> Sample:
    """Steps by which the curve of `value` reaches the reference's final level (less tolerance) later than the reference."""
    a, b = (select_side(claim, rows, name, curve=True) for name in ("value", "reference"))
    order = np.argsort(rows.number("step")[b.index])
    final = pd.Series(b.values[order]).groupby(rows.curves()[b.index][order]).last()
    levels = final - claim.get("tolerance", 0.0)
    return _match(claim, _steps_to(a, levels), _steps_to(b, levels), "min")


def _steps_to(side: Side, levels: pd.Series) -> Side:
    """The side with steps as values where its curve reaches the level."""
    curves, steps = side.rows.curves()[side.index], side.rows.number("step")[side.index]
    level = levels.reindex(curves).to_numpy()
    last = pd.Series(steps).groupby(curves).transform("max").to_numpy()
    # a curve below the level counts as reaching it after its last step, which favours it
    return replace(side, values=np.where(side.values >= level, steps, last + 1))


def slope(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Least-squares slopes of y (..., k) on x (k,)."""
    centred = np.asarray(x, float) - np.mean(x)
    return np.asarray(y) @ centred / (centred @ centred)


def _log(x: np.ndarray) -> np.ndarray:
    if not (x > 0).all():
        raise RowsMissing(f"a ratio needs values above 0; {(x <= 0).sum()} of {len(x)} are not")
    return np.log(x)


def _match(claim: dict, a: Side, b: Side, reduced: str) -> Sample:
    """The two sides as pairs, or as two samples where their tested units differ."""
    notes, overlap = [*a.notes, *b.notes], max(a.overlap, b.overlap)
    value, reference = claim["value"], claim["reference"]
    # fields that both sides set to different values: pairs need not agree in them
    freed = frozenset(name for name in value.keys() & reference.keys() if value[name] != reference[name])
    of_a, of_b = (s.by_cell(freed, reduced) for s in (a, b))
    _, i, j = np.intersect1d(of_a.pairs, of_b.pairs, assume_unique=True, return_indices=True)
    if not len(i):
        raise RowsMissing("value and reference have no data set and seed in common")
    same = of_a.tested[i] == of_b.tested[j]
    if not same.any():
        first, second = (pd.Series(s.values).groupby(s.replicates).mean() for s in (of_a, of_b))
        single = np.array([first.mean() - second.mean()])
        return Sample(first, second, single, overlap, [*notes, "the two sides were tested on different units"])
    lost = len(of_a.pairs) + len(of_b.pairs) - 2 * len(i)
    notes += [f"{count(lost, 'value')} without a partner left out"] if lost else []
    if not same.all():
        notes.append(f"{(~same).sum()} of {len(i)} pairs left out: their sides were tested on different units")
    first, second = of_a.values[i][same], of_b.values[j][same]
    # one sum in two orders is no difference
    pair_differences = np.where(np.isclose(first, second, rtol=NOTHING, atol=0.0), 0.0, first - second)
    if "deterministic" in claim:
        return Sample(pd.Series(pair_differences), None, pair_differences, overlap, notes)
    per, missing = _per_replicate(pair_differences, of_a.cells[i][same], of_a.replicates[i][same])
    return Sample(per, None, pair_differences, overlap, notes + missing)


def _per_replicate(values: np.ndarray, cells: np.ndarray, replicates: np.ndarray) -> tuple[pd.Series, list[str]]:
    """Mean of the pairs of every replicate that has all, and a note on the others."""
    (distinct, i), (labels, j) = (np.unique(codes, return_inverse=True) for codes in (cells, replicates))
    table = np.full((len(distinct), len(labels)), np.nan)
    table[i, j] = values
    complete = ~np.isnan(table).any(axis=0)
    if not complete.any():
        raise RowsMissing("no replicate has all pairs")
    lost = len(labels) - complete.sum()
    notes = [f"{lost} of {len(labels)} replicates left out, which lack some pairs"] if lost else []
    return pd.Series(table[:, complete].mean(axis=0), labels[complete]), notes
