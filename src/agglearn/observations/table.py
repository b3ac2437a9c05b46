"""One contingency table, and what noise and agreement need of several."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agglearn.encoding import FrameEncoder
from agglearn.observations.base import NoiseSpec
from agglearn.observations.counting import buckets_of
from agglearn.privacy.budget import TOTALS

Key = tuple[int, ...]  # features of a table, ascending: (i,) or (i, j)


@dataclass(frozen=True)
class Table:
    """One contingency table: its occupied cells.

    Attributes
    ----------
    shape : modalities of each feature; (H,) for a pair whose cells are hashed into H buckets.
    cells : (m,) int64, flat C-order index of the occupied cells, ascending.
    counts, label_sums : (m,) records, and records with label 1, in each cell.
    """

    shape: tuple[int, ...]
    cells: np.ndarray
    counts: np.ndarray
    label_sums: np.ndarray

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts and label sums as float64 arrays of `shape`."""
        d, c = np.zeros(self.shape), np.zeros(self.shape)
        d.flat[self.cells], c.flat[self.cells] = self.counts, self.label_sums
        return d, c

    def hashed(self, buckets: int) -> "Table":
        """The table of a pair with its cells hashed: what counting hashed crosses of the same records gives."""
        cells, inverse = np.unique(buckets_of(self.cells, buckets), return_inverse=True)
        sums = [np.bincount(inverse, v, len(cells)).astype(v.dtype) for v in (self.counts, self.label_sums)]
        return Table((buckets,), cells, *sums)


class TableSet(Protocol):
    """What noise and agreement need of `agglearn.observations.ContingencyTables`, a dataclass that they return changed."""

    encoder: FrameEncoder
    total: float
    positives: float
    tables: dict[Key, Table]
    noise: NoiseSpec | None
    names: list[str]
    hashed_pairs: dict[Key, int]


def table_name(tables: TableSet, key: Key | str) -> str:
    """`age`, `age × job`, or `totals`."""
    return key if key == TOTALS else " × ".join(tables.names[i] for i in key)
