"""The occurring cells of single features and pairs as one row of weights: a sparse design for logistic regression."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agglearn.encoding.levels import flat_cells
from agglearn.observations.counting import buckets_of

DENSE = 1 << 20  # cells of a table up to which a lookup table replaces the binary search

Key = tuple[int, ...]


@dataclass(eq=False)
class Cells:
    """Numbers the m cells that occur in some records: table after table, ascending within each."""

    sizes: np.ndarray  # (D,) modalities of each feature
    keys: list[Key]  # features of each table: (i,) and, for a quadratic design, (i, j) with i < j
    flat: np.ndarray  # (m,) int64 C-order index of each cell within its table
    bounds: np.ndarray  # (tables + 1,) first cell of each table
    # pairs with more cells than this are hashed into as many buckets, then their cells
    cross_buckets: int | None = None

    @classmethod
    def from_codes(
        cls, codes: np.ndarray, sizes: np.ndarray, quadratic: bool = True, cross_buckets: int | None = None
    ) -> "Cells":
        keys = table_keys(len(sizes), quadratic)
        occurring = []
        for key in keys:
            flat = _flat(codes, key, sizes, cross_buckets)
            occurring.append(_distinct(flat[flat >= 0]))
        return cls(sizes, keys, np.concatenate(occurring), np.cumsum([0, *map(len, occurring)]), cross_buckets)

    @property
    def size(self) -> int:
        """m, the number of cells and of weights."""
        return len(self.flat)

    def index(self, codes: np.ndarray) -> np.ndarray:
        """(tables, n) int32 cell of each row in each table, m for a cell that never occurred."""
        out = np.empty((len(self.keys), len(codes)), dtype=np.int32)
        for t, key in enumerate(self.keys):
            occurring = self.flat[self.bounds[t] : self.bounds[t + 1]]
            out[t] = _find(occurring, _flat(codes, key, self.sizes, self.cross_buckets), self.bounds[t], self.size)
        return out


def _distinct(flat: np.ndarray) -> np.ndarray:
    if flat.max(initial=0) > DENSE:
        return np.unique(flat)
    occurs = np.zeros(flat.max(initial=0) + 1, bool)
    occurs[flat] = True
    return np.flatnonzero(occurs)


def _find(ascending: np.ndarray, flat: np.ndarray, first: int, absent: int) -> np.ndarray:
    """(n,) first + position of each number in the ascending array, `absent` if it is not there."""
    if ascending[-1] > DENSE:
        position = np.minimum(np.searchsorted(ascending, flat), len(ascending) - 1)
        return np.where(ascending[position] == flat, first + position, absent)
    lookup = np.full(ascending[-1] + 2, absent, np.int32)  # the last one is for all larger numbers and −1
    lookup[ascending] = first + np.arange(len(ascending))
    return lookup[np.where(flat <= ascending[-1], flat, -1)]


def table_keys(n_features: int, quadratic: bool) -> list[Key]:
    singles: list[Key] = [(i,) for i in range(n_features)]
    return singles + (list(itertools.combinations(range(n_features), 2)) if quadratic else [])


def _flat(codes: np.ndarray, key: Key, sizes: Sequence[int] | np.ndarray, cross_buckets: int | None) -> np.ndarray:
    """(n,) int64 flat cell, or bucket, of each row in one table, −1 where a value is unseen."""
    flat = flat_cells(codes, sizes, key)
    if len(key) == 2 and cross_buckets and int(sizes[key[0]]) * int(sizes[key[1]]) > cross_buckets:
        return np.where(flat >= 0, buckets_of(flat, cross_buckets), -1)
    return flat
