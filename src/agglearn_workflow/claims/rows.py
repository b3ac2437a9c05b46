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
from agglearn_workflow.tables.summary import parameter

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

    # -- selections ---------------------------------------------------------------------------------------------------

    def selected(self, selector: dict) -> np.ndarray:
        """(n,) whether a row has the values. A list allows several values. Null selects rows without the parameter."""
        masks = [self._mask(name, expected) for name, expected in selector.items()]
        return reduce(np.logical_and, masks, np.ones(len(self.frame), dtype=bool))

    def _mask(self, name: str, expected: object) -> np.ndarray:
        def compare() -> np.ndarray:
            codes, values = self.field(name)
            return np.array([_is(value, expected) for value in values], dtype=bool)[codes]

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

    # -- (n,) columns of measurements ---------------------------------------------------------------------------------

    def number(self, name: str) -> np.ndarray:
        """A column of numbers, NaN where there is none."""
        return self._once(("number", name), lambda: self.frame[name].to_numpy(float))

    @property
    def ok(self) -> np.ndarray:
        """Whether the run has a result."""
        return self._mask("status", "ok")

    # -- (n,) groups: codes in the order of what they stand for ---------------------------------------------------------

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
            data = [] if "dataset" in freed else [self._codes("dataset"), self._reduced("dataset_params", freed)]
            keys = [] if by_part else [self._reduced("keys", freed)]
            cells = _together(np.zeros(len(self.frame), dtype=int), *data, *keys)
            return cells, _together(cells, self.replicates(by_part))

        return self._once(("cells", freed, by_part), group)

    def _reduced(self, name: str, freed: frozenset[str]) -> np.ndarray:
        codes, texts = self.field(name)
        return _ranked(codes, [_without(text, name, freed) for text in texts])

    def _group(self, *names: str) -> np.ndarray:
        return self._once(("group", names), lambda: _together(*map(self._codes, names)))

    def _codes(self, name: str) -> np.ndarray:
        codes, values = self.field(name)
        return _ranked(codes, ["" if value is None else value for value in values])


def _is(value: object, expected: object) -> bool:
    if expected is None:
        return value is None
    return value in expected if isinstance(expected, list) else value == expected


def _ranked(codes: np.ndarray, values: list) -> np.ndarray:
    """Codes in the order of the values, one for equal values."""
    rank = {value: k for k, value in enumerate(sorted(set(values)))}
    return np.array([rank[value] for value in values], dtype=int)[codes]


def _together(*codes: np.ndarray) -> np.ndarray:
    """One code per combination, the first of which comes first in the order."""
    return reduce(lambda a, b: np.unique(a * (b.max(initial=0) + 1) + b, return_inverse=True)[1], codes)


def _without(text: str | None, name: str, freed: frozenset[str]) -> str:
    values = json.loads(text) if text else {}
    return json.dumps({k: v for k, v in values.items() if f"{name}.{k}" not in freed}, sort_keys=True)


# -- sides ------------------------------------------------------------------------------------------------------------


class RowsMissing(Exception):
    """Rows of a claim are missing. With `absent` no run of this scale has such rows, otherwise runs lack results or pairs."""

    def __init__(self, message: str, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


class Cells(NamedTuple):
    """Values by cell and replicate: (m,) arrays in the order of `pairs`, the codes of both.

    `tested` has the set of digests of the tested units, empty where they are unknown.
    """

    pairs: np.ndarray
    cells: np.ndarray
    replicates: np.ndarray
    values: np.ndarray
    tested: np.ndarray


@dataclass(frozen=True)
class Side:
    """Rows of one side."""

    rows: Rows
    index: np.ndarray
    values: np.ndarray
    by_part: bool
    notes: list[str]

    @property
    def overlap(self) -> float:
        """Test units per training unit of the splits behind the rows, 0 where seeds do not split one pool anew."""
        overlap = self.rows.number("overlap")[self.index]
        return float(overlap[np.isfinite(overlap)].max(initial=0.0))

    @property
    def replicates(self) -> np.ndarray:
        """(n,) codes of the replicates."""
        return self.rows.replicates(self.by_part)[self.index]

    def per_replicate(self) -> pd.Series:
        """The mean of every replicate."""
        return pd.Series(self.values).groupby(self.replicates).mean()

    def by_cell(self, freed: frozenset[str], reduced: str) -> Cells:
        """Values by cell and replicate."""
        cells, pairs = (codes[self.index] for codes in self.rows.cells(freed, self.by_part))
        distinct, first, groups = np.unique(pairs, return_index=True, return_inverse=True)
        values = pd.Series(self.values).groupby(groups).agg(reduced).to_numpy()
        return Cells(distinct, cells[first], self.replicates[first], values, self._tested(groups, len(distinct)))

    def _tested(self, groups: np.ndarray, n: int) -> np.ndarray:
        """(n,) digests of the tested units of each group."""
        codes, digests = self.rows.field("tested")
        tested: list[set] = [set() for _ in range(n)]
        for group, code in zip(groups.tolist(), codes[self.index].tolist(), strict=True):
            tested[group].add(digests[code])
        return np.fromiter((frozenset(digest - {None}) for digest in tested), dtype=object, count=n)


def select_side(claim: dict, rows: Rows, name: str, curve: bool = False) -> Side:
    """The side `value` or `reference` of a claim, without replicates that lack cells of the others.

    A deterministic claim is about every value, so that its replicates may have different cells.
    """
    selector, by_part = claim[name], claim.get("replicates") == "part"
    lost, n, reasons = _runs(rows, selector)
    with_value = rows.ok & (np.isnan(rows.number("step")) != curve) & ~np.isnan(rows.number("value"))
    index = np.flatnonzero(rows.selected(selector) & with_value)
    if not len(index):
        raise RowsMissing(reasons[0] if reasons else f"no rows for {json.dumps(selector)}", absent=not reasons)
    reason = f" ({reasons[0]})" if reasons else ""
    notes = [f"{lost} of {n} runs of the {name} have no result{reason}"] if lost else []
    if not curve and "deterministic" not in claim:
        complete, lacking = _complete(rows.kinds(by_part)[index], rows.replicates(by_part)[index])
        index, notes = index[complete], notes + lacking
    return Side(rows, index, rows.number("value")[index], by_part, notes)


def _runs(rows: Rows, selector: dict) -> tuple[int, int, list[str]]:
    """Runs without a result, all runs of a selector, and the reasons."""
    chosen = rows.selected(without_measure(selector))
    runs = rows.frame[chosen & ~rows.ok].drop_duplicates("run")
    reasons = runs["reason"].where(runs["status"] != "stopped", "stopped: " + runs["reason"]).dropna().unique().tolist()
    return len(runs), len(np.unique(rows.field("run")[0][chosen])), reasons


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
