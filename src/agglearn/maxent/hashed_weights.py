"""Hashed cross features: cells of pair tables that share weights.

Gilotte et al. 2022, section 4.3 (after Weinberger et al. 2009): φ_H(x) = 𝓗·φ(x), where each cell has a 1 in the column of
its bucket. The model is eq. 1 with φ_H in place of φ. Both directions are linear maps of cells: a cell's weight is that
of its bucket, a bucket's count is the sum of its cells' counts. The paper's 𝓗 is one space for all cells. Here each
pair has a space of its own, as in `ContingencyTables`, and single features are not hashed.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from agglearn.observations import ContingencyTables
from agglearn.observations.counting import buckets_of


@dataclass(frozen=True)
class CrossHash:
    """The weight of each cell of all tables."""

    weight_of: np.ndarray  # (m,) int64 weight of each cell, tables in their order, cells of a table in C order
    size: int  # number of weights, one per cell of a table that is not hashed

    @classmethod
    def from_tables(cls, tables: ContingencyTables) -> Self:
        """Return the map of these tables. Without hashing it is the identity."""
        weights, size = [], 0
        sizes, hashed = tables.encoder.sizes, tables.hashed_pairs
        for key in tables.tables:
            cells = np.arange(np.prod(sizes[list(key)]))
            weights.append(size + (buckets_of(cells, hashed[key]) if key in hashed else cells))
            size += hashed.get(key, len(cells))
        return cls(np.concatenate(weights), size)

    def expand(self, weights: np.ndarray) -> np.ndarray:
        """Return (m,) weights of the cells: 𝓗ᵀ applied, for (size,) weights."""
        return weights[self.weight_of]

    def fold(self, statistics: np.ndarray) -> np.ndarray:
        """Return (size,) float64 sums over the cells of each bucket: 𝓗 applied, for (m,) counts, label sums or gradients."""
        return np.bincount(self.weight_of, statistics, self.size)
