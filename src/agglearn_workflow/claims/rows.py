"""Rows of an experiment for the selections and groups of claims, and the sides of a claim, value and reference.

Columns are read once and stored as codes. A side has rows with a result, of replicates with all cells.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables.summary import overlap_of, parameter

T = TypeVar("T")


class Rows:
    """A table of n rows, for many selections."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._cache: dict[tuple, Any] = {}

    def _once(self, key: tuple, compute: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    def selected(self, selector: dict) -> np.ndarray:
        """(n,) whether a row has the values. A list allows several values. Null selects rows without the parameter."""
        masks = [self._mask(name, expected) for name, expected in selector.items()]
        return reduce(np.logical_and, masks, np.ones(len(self.frame), dtype=bool))

    def _mask(self, name: str, expected: object) -> np.ndarray:
        allowed = expected if isinstance(expected, list) else [expected]

        def compare() -> np.ndarray:
            codes, values = self.field(name)
            return np.array([value in allowed for value in values], dtype=bool)[codes]

        return self._once(("mask", name, json.dumps(expected)), compare)

    def field(self, name: str) -> tuple[np.ndarray, list]:
        """(n,) codes of a column or of a parameter in one, and the value of each code. Two codes may have the same value."""
        return self._once(("field", name), lambda: self._read(*name.split(".")))

    def _read(self, column: str, *keys: str) -> tuple[np.ndarray, list]:
        if keys:
            codes, texts = self.field(column)
            return codes, [parameter(text, keys) for text in texts]
        codes, values = pd.factorize(self.frame[column], use_na_sentinel=False)
        return codes, [None if pd.isna(value) else value for value in values.tolist()]

    def number(self, name: str) -> np.ndarray:
        """(n,) a column of numbers, NaN where there is none."""
        return self.frame[name].to_numpy(float)

    @property
    def ok(self) -> np.ndarray:
        """(n,) whether the run has a result."""
        return self._mask("status", "ok")

    def replicates(self, by_part: bool) -> np.ndarray:
        """Seed, or seed and keys."""
        return self._group("seed", *["keys"] * by_part)

    def kinds(self, by_part: bool) -> np.ndarray:
        """Cell of a table, and keys unless they are of a replicate. Every replicate must have all of them."""
        return self._group(*CELL, *["keys"] * (not by_part))

    def curves(self) -> np.ndarray:
        """Data set, its parameters, seed. Curves of several methods are compared within a group."""
        return self._group("dataset", "dataset_params", "seed")

    def cells(self, freed: frozenset[str], by_part: bool) -> tuple[np.ndarray, np.ndarray]:
        """Data set, its parameters and keys without the fields in `freed`, and the same with the replicate."""

        def group() -> tuple[np.ndarray, np.ndarray]:
            data = [] if "dataset" in freed else [self.frame["dataset"], self._reduced("dataset_params", freed)]
            keys = [] if by_part else [self._reduced("keys", freed)]
            cells = _together(np.zeros(len(self.frame)), *data, *keys)
            return cells, _together(cells, self.replicates(by_part))

        return self._once(("cells", freed, by_part), group)

    def _reduced(self, name: str, freed: frozenset[str]) -> np.ndarray:
        codes, texts = self.field(name)
        values = [json.loads(text) if text else {} for text in texts]
        reduced = [{k: v for k, v in params.items() if f"{name}.{k}" not in freed} for params in values]
        return np.array([json.dumps(params, sort_keys=True) for params in reduced], dtype=object)[codes]

    def _group(self, *names: str) -> np.ndarray:
        return self._once(("group", names), lambda: _together(*(self.frame[name] for name in names)))


def _together(*columns: np.ndarray | pd.Series) -> np.ndarray:
    """One code per combination, in the order of the values."""
    table = pd.DataFrame({k: np.asarray(column) for k, column in enumerate(columns)})
    return table.groupby(list(table), dropna=False).ngroup().to_numpy()


class RowsMissing(Exception):
    """Rows of a claim are missing. With `absent` no run of this scale has such rows, else runs lack results or pairs."""

    def __init__(self, message: str, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


class Cells(NamedTuple):
    """(m,) arrays by cell and replicate, in the order of `pairs`, the codes of both. `tested` has sets of digests of units."""

    pairs: np.ndarray
    cells: np.ndarray
    replicates: np.ndarray
    values: np.ndarray
    tested: np.ndarray


@dataclass(frozen=True)
class Side:
    rows: Rows
    index: np.ndarray
    values: np.ndarray
    by_part: bool
    notes: list[str]

    @property
    def overlap(self) -> float:
        """Test units per training unit of the splits behind the rows, 0 where seeds do not split one pool anew."""
        return overlap_of(self.rows.frame.iloc[self.index])

    @property
    def replicates(self) -> np.ndarray:
        """(n,) codes of the replicates."""
        return self.rows.replicates(self.by_part)[self.index]

    def per_replicate(self) -> pd.Series:
        return pd.Series(self.values).groupby(self.replicates).mean()

    def by_cell(self, freed: frozenset[str], reduced: str) -> Cells:
        cells, pairs = (codes[self.index] for codes in self.rows.cells(freed, self.by_part))
        distinct, first, groups = np.unique(pairs, return_index=True, return_inverse=True)
        values = pd.Series(self.values).groupby(groups).agg(reduced).to_numpy()
        codes, digests = self.rows.field("tested")
        tested: list[set] = [set() for _ in distinct]
        for group, code in zip(groups.tolist(), codes[self.index].tolist(), strict=True):
            tested[group].add(digests[code])
        units = np.fromiter((frozenset(units - {None}) for units in tested), dtype=object, count=len(tested))
        return Cells(distinct, cells[first], self.replicates[first], values, units)


def select_side(claim: dict, rows: Rows, name: str, curve: bool = False) -> Side:
    """The side `value` or `reference` of a claim, without replicates that lack cells unless it is deterministic."""
    selector, by_part = claim[name], claim.get("replicates") == "part"
    chosen = rows.selected(without_measure(selector))
    lost, n = rows.frame[chosen & ~rows.ok].drop_duplicates("run"), len(np.unique(rows.field("run")[0][chosen]))
    reasons = lost["reason"].where(lost["status"] != "stopped", "stopped: " + lost["reason"]).dropna().unique().tolist()
    with_value = rows.ok & (np.isnan(rows.number("step")) != curve) & ~np.isnan(rows.number("value"))
    index = np.flatnonzero(rows.selected(selector) & with_value)
    if not len(index):
        raise RowsMissing(reasons[0] if reasons else f"no rows for {json.dumps(selector)}", absent=not reasons)
    reason = f" ({reasons[0]})" if reasons else ""
    notes = [f"{len(lost)} of {n} runs of the {name} have no result{reason}"] if len(lost) else []
    if not curve and "deterministic" not in claim:
        complete, lacking = _complete(rows.kinds(by_part)[index], rows.replicates(by_part)[index])
        index, notes = index[complete], notes + lacking
    return Side(rows, index, rows.number("value")[index], by_part, notes)


def without_measure(selector: dict) -> dict:
    """The selector of runs, which have results or not: measures and keys are of results only."""
    return {k: v for k, v in selector.items() if k.partition(".")[0] not in ("measure", "keys")}


def _complete(cells: np.ndarray, replicates: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(n,) whether the row is of a replicate that has all cells, and a note on the others."""
    n, width = len(np.unique(cells)), cells.max() + 1
    distinct, per = np.unique(np.unique(replicates * width + cells) // width, return_counts=True)
    lost = int((per < n).sum())
    if lost == len(distinct):
        raise RowsMissing(f"no replicate has all {n} cells")
    notes = [f"{lost} of {len(distinct)} replicates left out, which lack some cells"] if lost else []
    return np.isin(replicates, distinct[per == n]), notes
