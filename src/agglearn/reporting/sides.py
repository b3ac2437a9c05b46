"""The sides of a claim, its value and its reference: rows that have a result, of replicates that have all cells."""

import json
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from agglearn.reporting.rows import Rows


class Missing(Exception):
    """Rows that a claim needs are not there."""


class Cells(NamedTuple):
    """Values by cell and replicate: (m,) arrays in the order of `pairs`, which are codes of both.

    `tested` holds sets: the digests of the tested units, empty where they are unknown.
    """

    pairs: np.ndarray
    cells: np.ndarray
    replicates: np.ndarray
    values: np.ndarray
    tested: np.ndarray


@dataclass(frozen=True)
class Side:
    """Rows of one side.

    Attributes
    ----------
    rows : all rows of the experiment. at : (n,) places of the side's rows among them.
    values : (n,) numbers.
    by_part : whether a part of the tested units is a replicate, in place of a seed.
    notes : what was left out, and why.
    """

    rows: Rows
    at: np.ndarray
    values: np.ndarray
    by_part: bool
    notes: list[str]

    @property
    def overlap(self) -> float:
        """Test units per training unit of the splits behind the rows, 0 where seeds do not split one pool anew."""
        overlap = self.rows.number("overlap")[self.at]
        return float(overlap[np.isfinite(overlap)].max(initial=0.0))

    @property
    def replicates(self) -> np.ndarray:
        return self.rows.replicates(self.by_part)[self.at]

    def per_replicate(self) -> pd.Series:
        """The mean of every replicate."""
        return pd.Series(self.values).groupby(self.replicates).mean()

    def by_cell(self, freed: frozenset[str], reduced: str) -> Cells:
        """Values by cell and replicate.

        Parameters
        ----------
        freed : fields that do not tell cells apart. reduced : how several rows become one value: `mean` or `min`.
        """
        cells, pairs = (codes[self.at] for codes in self.rows.cells(freed, self.by_part))
        there, first, groups = np.unique(pairs, return_index=True, return_inverse=True)
        values = pd.Series(self.values).groupby(groups).agg(reduced).to_numpy()
        return Cells(there, cells[first], self.replicates[first], values, self._tested(groups, len(there)))

    def _tested(self, groups: np.ndarray, n: int) -> np.ndarray:
        """(n,) digests of the tested units of each group."""
        codes, digests = self.rows.field("tested")
        found = [set() for _ in range(n)]
        for group, code in zip(groups.tolist(), codes[self.at].tolist(), strict=True):
            found[group].add(digests[code])
        return np.fromiter((frozenset(digest - {None}) for digest in found), dtype=object, count=n)


def side(claim: dict, rows: Rows, name: str, curve: bool = False) -> Side:
    """The side `value` or `reference` of a claim, without replicates that lack some of the others' cells.

    Parameters
    ----------
    curve : take the points of curves in place of single values. Curves end at steps of their own.
    """
    at, notes, by_part = _good(rows, claim[name], curve), [], claim.get("replicates") == "part"
    if not curve:
        whole, notes = _whole(rows.kinds(by_part)[at], rows.replicates(by_part)[at])
        at = at[whole]
    return Side(rows, at, rows.number("value")[at], by_part, notes)


def _good(rows: Rows, selector: dict, curve: bool) -> np.ndarray:
    """Places of the rows of a selector that have a value."""
    good = (
        rows.selected(selector) & rows.ok & (np.isnan(rows.number("step")) != curve) & ~np.isnan(rows.number("value"))
    )
    if not good.any():
        raise Missing(_why_none(rows, selector))
    return np.flatnonzero(good)


def _why_none(rows: Rows, selector: dict) -> str:
    bad = rows.frame[rows.selected({k: v for k, v in selector.items() if k != "measure"}) & ~rows.ok]
    reasons = bad["reason"].where(bad["status"] != "stopped", "stopped: " + bad["reason"]).dropna().unique()
    return reasons[0] if len(reasons) else f"no rows for {json.dumps(selector)}"


def _whole(cells: np.ndarray, replicates: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(n,) whether the row is of a replicate that has all cells, and a note on the others."""
    n, width = len(np.unique(cells)), cells.max() + 1
    there, per = np.unique(np.unique(replicates * width + cells) // width, return_counts=True)
    left = int((per < n).sum())
    if left == len(there):
        raise Missing(f"no replicate has all {n} cells")
    notes = [f"{left} of {len(there)} replicates left out, which lack some cells"] if left else []
    return np.isin(replicates, there[per == n]), notes
