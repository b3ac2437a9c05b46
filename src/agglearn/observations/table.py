"""One contingency table, and the fields of several that noise and agreement work on."""

from dataclasses import dataclass

import numpy as np

from agglearn.encoding import FrameEncoder
from agglearn.observations.base import NoiseSpec
from agglearn.observations.counting import Key, sum_cells
from agglearn.observations.disclosure import describe_learned
from agglearn.observations.units import Unit
from agglearn.privacy.budget import TOTALS


@dataclass(frozen=True)
class Table:
    """One contingency table: its occupied cells.

    Parameters
    ----------
    shape : tuple[int, ...]
        Modalities of each feature. (H,) for a pair whose cells are hashed into H buckets.
    cells, counts, label_sums : ndarray of shape (m,)
        Int64: flat C-order index of the occupied cells, ascending, their records, and those with label 1.
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

    def select(self, mask: np.ndarray) -> "Table":
        """The table of some of the occupied cells.

        Parameters
        ----------
        mask : ndarray of shape (m,)
        """
        return Table(self.shape, self.cells[mask], self.counts[mask], self.label_sums[mask])

    def merge_cells(self, cells: np.ndarray, shape: tuple[int, ...]) -> "Table":
        """The table of another shape whose cells are sums of these.

        Parameters
        ----------
        cells, shape : ndarray of shape (m,), tuple[int, ...]
            New cell of each occupied cell, and new shape.
        """
        return Table(shape, *sum_cells(cells, self.counts, self.label_sums))

    def __add__(self, other: "Table") -> "Table":
        columns = ((t.cells, t.counts, t.label_sums) for t in (self, other))
        return Table(self.shape, *sum_cells(*map(np.concatenate, zip(*columns, strict=True))))


@dataclass(frozen=True)
class TableSet:
    """Fields of `agglearn.observations.ContingencyTables`, where they are documented."""

    encoder: FrameEncoder
    label: str
    total: float
    positives: float
    tables: dict[Key, Table]
    noise: NoiseSpec | None = None
    seeded_coins: bool = False
    unit: Unit | None = None

    @property
    def names(self) -> list[str]:
        return self.encoder.names

    @property
    def exact_facts(self) -> str:
        return describe_learned(self.encoder)

    @property
    def pairs(self) -> list[Key]:
        return [k for k in self.tables if len(k) == 2]

    @property
    def hashed_pairs(self) -> dict[Key, int]:
        """{(i, j): H} of the pair tables whose cells are hashed."""
        return {k: self.tables[k].shape[0] for k in self.pairs if len(self.tables[k].shape) == 1}


def table_name(tables: TableSet, key: Key | str) -> str:
    """`age`, `age × job`, or `totals`."""
    return TOTALS if isinstance(key, str) else " × ".join(tables.names[i] for i in key)
