"""The sides of a claim, value and reference: rows with a result, of replicates with all cells."""

import json
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from agglearn.reporting.rows import Rows


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
    index, by_part = _good(rows, claim[name], curve), claim.get("replicates") == "part"
    notes = _without_result(rows, claim[name], name)
    if not curve and "deterministic" not in claim:
        whole, lacking = _whole(rows.kinds(by_part)[index], rows.replicates(by_part)[index])
        index, notes = index[whole], notes + lacking
    return Side(rows, index, rows.number("value")[index], by_part, notes)


def _good(rows: Rows, selector: dict, curve: bool) -> np.ndarray:
    """Indices of the rows of a selector that have a value."""
    good = (
        rows.selected(selector) & rows.ok & (np.isnan(rows.number("step")) != curve) & ~np.isnan(rows.number("value"))
    )
    if not good.any():
        raise _missing(rows, selector)
    return np.flatnonzero(good)


def _missing(rows: Rows, selector: dict) -> RowsMissing:
    bad = _runs(rows, selector)[2]
    return RowsMissing(bad[0]) if bad else RowsMissing(f"no rows for {json.dumps(selector)}", absent=True)


def _without_result(rows: Rows, selector: dict, name: str) -> list[str]:
    lost, n, reasons = _runs(rows, selector)
    return [f"{lost} of {n} runs of the {name} have no result{f' ({reasons[0]})' if reasons else ''}"] if lost else []


def _runs(rows: Rows, selector: dict) -> tuple[int, int, list[str]]:
    """Runs without a result, all runs of a selector, and the reasons."""
    chosen = rows.selected(without_measure(selector))
    runs = rows.frame[chosen & ~rows.ok].drop_duplicates("run")
    reasons = runs["reason"].where(runs["status"] != "stopped", "stopped: " + runs["reason"]).dropna().unique().tolist()
    return len(runs), len(np.unique(rows.field("run")[0][chosen])), reasons


def without_measure(selector: dict) -> dict:
    """The selector of runs, which have results or not: measures and keys are of results only."""
    return {k: v for k, v in selector.items() if k.partition(".")[0] not in ("measure", "keys")}


def _whole(cells: np.ndarray, replicates: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(n,) whether the row is of a replicate that has all cells, and a note on the others."""
    n, width = len(np.unique(cells)), cells.max() + 1
    distinct, per = np.unique(np.unique(replicates * width + cells) // width, return_counts=True)
    left = int((per < n).sum())
    if left == len(distinct):
        raise RowsMissing(f"no replicate has all {n} cells")
    notes = [f"{left} of {len(distinct)} replicates left out, which lack some cells"] if left else []
    return np.isin(replicates, distinct[per == n]), notes
