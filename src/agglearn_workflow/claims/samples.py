"""Samples that claims are judged by: one number per replicate. A replicate is a seed, whose values are averaged, or
with `replicates: part` a part of the tested units. A pair is a replicate's value on both sides, on the same units."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial, reduce

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from agglearn.evaluation.intervals import LEVEL, NOTHING, Estimate
from agglearn.text import count_text
from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables.summary import column_or_param, levels


class Rows:
    """A table of n rows, for many selections: what they have in common is computed once."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.field, self.group = cache(partial(levels, frame)), cache(self._group)
        self._mask, self.cells = cache(self._mask_of), cache(self._cells)

    def selected(self, selector: dict) -> np.ndarray:
        """(n,) whether a row has the values. A list allows several values. Null selects rows without the parameter."""
        masks = [self._mask(name, json.dumps(expected)) for name, expected in selector.items()]
        return reduce(np.logical_and, masks, np.ones(len(self.frame), dtype=bool))

    def _mask_of(self, name: str, expected: str) -> np.ndarray:
        allowed = json.loads(expected)
        codes, values = self.field(name)
        allowed = allowed if isinstance(allowed, list) else [allowed]
        return np.array([value in allowed for value in values], dtype=bool)[codes]

    def number(self, name: str) -> np.ndarray:
        return self.frame[name].to_numpy(float)

    @cached_property
    def over_units(self) -> "Rows":
        """Means over seeds of the measures `<measure>_of_part` as `<measure>`, where all seeds test the same units."""
        frame, cell = self.frame[self.frame["measure"].astype(str).str.endswith("_of_part")], [*CELL, "measure", "keys"]
        groups = frame.groupby(cell, dropna=False, sort=False)
        name, mean = frame["measure"].str.removesuffix("_of_part"), groups["value"].transform("mean")
        frame = frame.assign(value=mean, seed=0, measure=name)[groups["tested"].transform("nunique") == 1]
        return Rows(frame.drop_duplicates(cell))

    @cached_property
    def ok(self) -> np.ndarray:
        """(n,) whether the run has a result."""
        return self.selected({"status": "ok"})

    def replicates(self, by_part: bool) -> np.ndarray:
        return self.group("seed", *["keys"] * by_part)

    def kinds(self, by_part: bool) -> np.ndarray:
        """Cell of a table, and keys unless they are of a replicate. Every replicate must have all of them."""
        return self.group(*CELL, *["keys"] * (not by_part))

    def curves(self) -> np.ndarray:
        """Data set, its parameters, seed. Curves of several methods are compared within a group."""
        return self.group("dataset", "dataset_params", "seed")

    def _cells(self, freed: frozenset[str], by_part: bool) -> np.ndarray:
        """Data set, its parameters and keys without the fields in `freed`."""
        data = [] if "dataset" in freed else [self.frame["dataset"], self._reduced("dataset_params", freed)]
        keys = [] if by_part else [self._reduced("keys", freed)]
        return _together(np.zeros(len(self.frame)), *data, *keys)

    def _reduced(self, name: str, freed: frozenset[str]) -> np.ndarray:
        codes, texts = self.field(name)
        values = [json.loads(text) if text else {} for text in texts]
        reduced = [{k: v for k, v in params.items() if f"{name}.{k}" not in freed} for params in values]
        return np.array([json.dumps(params, sort_keys=True) for params in reduced], dtype=object)[codes]

    def _group(self, *names: str) -> np.ndarray:
        return _together(*(self.frame[name] for name in names))


def _together(*columns: np.ndarray | pd.Series) -> np.ndarray:
    """One code per combination, in the order of the values."""
    table = pd.DataFrame({k: np.asarray(column) for k, column in enumerate(columns)})
    return table.groupby(list(table), dropna=False).ngroup().to_numpy()


class RowsMissing(Exception):
    """Rows of a claim are missing. With `absent` no run of the scale has such rows, else results or pairs lack."""

    def __init__(self, message: str, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


@dataclass(frozen=True)
class Side:
    rows: Rows
    index: np.ndarray
    values: np.ndarray
    by_part: bool
    notes: list[str]

    @property
    def overlap(self) -> float:
        """Test units per training unit of the splits, 0 where seeds do not split one pool anew."""
        return float(np.nan_to_num(np.fmax.reduce(self.rows.number("overlap")[self.index])))

    @property
    def replicates(self) -> np.ndarray:
        return self.rows.replicates(self.by_part)[self.index]

    def per_replicate(self) -> pd.Series:
        return pd.Series(self.values).groupby(self.replicates).mean()


def select_side(claim: dict, rows: Rows, name: str, curve: bool = False) -> Side:
    """The side `value` or `reference` of a claim, without replicates that lack cells unless it is deterministic."""
    selector, by_part = claim[name], claim.get("replicates") == "part"
    reasons, notes = _without_result(rows, rows.selected(without_measure(selector)), name)
    with_value = rows.ok & (np.isnan(rows.number("step")) != curve) & ~np.isnan(rows.number("value"))
    index = np.flatnonzero(rows.selected(selector) & with_value)
    if not len(index):
        raise RowsMissing(reasons[0] if reasons else f"no rows for {json.dumps(selector)}", absent=not reasons)
    if not curve and "deterministic" not in claim:
        complete, lacking = _complete(rows.kinds(by_part)[index], rows.replicates(by_part)[index])
        index, notes = index[complete], notes + lacking
    return Side(rows, index, rows.number("value")[index], by_part, notes)


def _without_result(rows: Rows, chosen: np.ndarray, name: str) -> tuple[list[str], list[str]]:
    """(reasons, a note) on the chosen runs that have no result."""
    indices = np.flatnonzero(chosen & ~rows.ok)
    if not len(indices):
        return [], []
    lost, n = rows.frame.iloc[indices].drop_duplicates("run"), len(np.unique(rows.field("run")[0][chosen]))
    reasons = lost["reason"].where(lost["status"] != "stopped", "stopped: " + lost["reason"]).dropna().unique().tolist()
    reason = f" ({reasons[0]})" if reasons else ""
    return reasons, [f"without result: {len(lost)} of {count_text(n, 'run')} of the {name}{reason}"]


def without_measure(selector: dict) -> dict:
    """The selector of runs, which have results or not: measures and keys are of results only."""
    return {k: v for k, v in selector.items() if k.partition(".")[0] not in ("measure", "keys")}


def _complete(cells: np.ndarray, replicates: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(n,) whether the row is of a replicate that has all cells, and a note on the others."""
    n, pairs = len(np.unique(cells)), np.unique(replicates * (cells.max() + 1) + cells)
    names, per = np.unique(pairs // (cells.max() + 1), return_counts=True)
    lost = int((per < n).sum())
    if lost == len(per):
        raise RowsMissing(f"no replicate has all {n} cells")
    notes = [f"{lost} of {count_text(len(per), 'replicate')} left out, which lack some cells"] if lost else []
    return np.isin(replicates, names[per == n]), notes


MOST = 1000  # replicates that a claim may ask for


@dataclass(frozen=True)
class Sample:
    values: pd.Series
    against: pd.Series | None
    single: np.ndarray
    overlap: float
    notes: list[str] = field(default_factory=list)

    def estimate(self) -> Estimate:
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
    notes += [f"{count_text(lost, 'replicate')} left out, which some cases lack"] if lost else []
    single = np.concatenate([s.single for s in samples])
    return Sample(values, against, single, max(s.overlap for s in samples), notes)


def _common(series: list[pd.Series]) -> pd.Series:
    index = reduce(pd.Index.intersection, [s.index for s in series])
    return pd.concat([s.loc[index] for s in series], axis=1).mean(axis=1)


def values(claim: dict, rows: Rows) -> Sample:
    side = select_side(claim, rows, "value")
    return Sample(side.per_replicate(), None, side.values, side.overlap, side.notes)


def differences(claim: dict, rows: Rows, scale: Callable = lambda x: x) -> Sample:
    """value − reference of pairs where both sides were tested on the same units. Otherwise two independent samples."""
    a, b = (select_side(claim, rows, name) for name in ("value", "reference"))
    return _match(claim, replace(a, values=scale(a.values)), replace(b, values=scale(b.values)), "mean")


def log_ratios(claim: dict, rows: Rows) -> Sample:
    return differences(claim, rows, _log)


def slopes(claim: dict, rows: Rows) -> Sample:
    """Slope of log value on log x, one per replicate."""
    side = select_side(claim, rows, "value")
    x = pd.to_numeric(column_or_param(rows.frame.iloc[side.index], claim["x"])).to_numpy(float)
    if len(np.unique(x)) < 2:
        raise RowsMissing(f"fewer than two values of {claim['x']}")
    table = pd.Series(_log(side.values)).groupby([side.replicates, _log(x)]).mean().unstack()
    per_replicate = pd.Series(slope(table.to_numpy(), table.columns.to_numpy()), table.index)
    return Sample(per_replicate, None, per_replicate.to_numpy(), side.overlap, side.notes)


def delays(claim: dict, rows: Rows) -> Sample:
    """Steps by which `value` reaches the reference's final level (less tolerance) later than the reference."""
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
    notes, overlap = list(dict.fromkeys([*a.notes, *b.notes])), max(a.overlap, b.overlap)
    value, reference = claim["value"], claim["reference"]
    # fields that both sides set to different values: pairs need not agree in them
    freed = frozenset(name for name in value.keys() & reference.keys() if value[name] != reference[name])
    replicates, units = a.rows.replicates(a.by_part), a.rows.field("tested")[0]
    n, n_units = replicates.max() + 1, units.max() + 1
    pair = a.rows.cells(freed, a.by_part) * n + replicates  # a number for each cell and replicate
    tested = pair * n_units + units
    of_a, of_b = (pd.Series(s.values).groupby(pair[s.index]).agg(reduced) for s in (a, b))
    first, second = of_a.align(of_b, join="inner")
    if first.empty:
        raise RowsMissing("value and reference have no data set and seed in common")
    same = ~first.index.isin(np.setxor1d(tested[a.index], tested[b.index]) // n_units)
    if not same.any():
        first, second = (s.groupby(s.index % n).mean() for s in (of_a, of_b))
        single = np.array([first.mean() - second.mean()])
        return Sample(first, second, single, overlap, [*notes, "the two sides were tested on different units"])
    lost = len(of_a) + len(of_b) - 2 * len(first)
    notes += [f"{count_text(lost, 'value')} without a partner left out"] if lost else []
    if not same.all():
        notes.append(f"{(~same).sum()} of {len(first)} pairs left out: their sides were tested on different units")
    first, second = first[same], second[same]
    # one sum in two orders is no difference
    apart = (first - second).mask(np.isclose(first, second, rtol=NOTHING, atol=0.0), 0.0)
    if "deterministic" in claim:
        return Sample(apart, None, apart.to_numpy(), overlap, notes)
    of_replicates = apart.groupby(apart.index % n)
    is_complete = of_replicates.size() == len(np.unique(apart.index // n))
    if not is_complete.any():
        raise RowsMissing("no replicate has all pairs")
    lost = (~is_complete).sum()
    notes += [f"{lost} of {len(is_complete)} replicates left out, which lack some pairs"] if lost else []
    return Sample(of_replicates.mean()[is_complete], None, apart.to_numpy(), overlap, notes)
