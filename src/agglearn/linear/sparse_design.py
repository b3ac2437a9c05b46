"""The occurring cells of single features and pairs as one row of weights: a sparse design for logistic regression."""

import itertools

import numpy as np

from agglearn.observations.counting import buckets_of

DENSE = 1 << 20  # cells of a table up to which they are looked up, not searched for


class Cells:
    """Numbers the cells that occur in some records: table after table, ascending within each.

    Attributes
    ----------
    sizes : (D,) modalities of each feature.
    keys : features of each table: (i,) and, when `quadratic`, (i, j) with i < j.
    flat : (m,) int64 C-order index of each cell within its table; bounds : (tables + 1,) where each table begins.
    cross_buckets : pairs with more cells than this are hashed into so many, which are then their cells; None for none.
    """

    def __init__(self, sizes, keys, flat, bounds, cross_buckets=None):
        self.sizes, self.keys, self.flat, self.bounds, self.cross_buckets = sizes, keys, flat, bounds, cross_buckets

    @classmethod
    def of(cls, codes: np.ndarray, sizes: np.ndarray, quadratic: bool = True, cross_buckets=None) -> "Cells":
        """Cells of (n, D) codes."""
        keys = table_keys(len(sizes), quadratic)
        found = []
        for key in keys:
            flat = _flat(codes, key, sizes, cross_buckets)
            found.append(_distinct(flat[flat >= 0]))
        return cls(sizes, keys, np.concatenate(found), np.cumsum([0, *map(len, found)]), cross_buckets)

    @property
    def size(self) -> int:
        """m: cells, hence weights."""
        return len(self.flat)

    def index(self, codes: np.ndarray) -> np.ndarray:
        """(tables, n) int32 cell of each row in each table; m where the cell never occurred."""
        out = np.empty((len(self.keys), len(codes)), dtype=np.int32)
        for t, key in enumerate(self.keys):
            known = self.flat[self.bounds[t] : self.bounds[t + 1]]
            out[t] = _place(known, _flat(codes, key, self.sizes, self.cross_buckets), self.bounds[t], self.size)
        return out


def _distinct(flat: np.ndarray) -> np.ndarray:
    """Ascending distinct numbers."""
    if flat.max(initial=0) > DENSE:
        return np.unique(flat)
    seen = np.zeros(flat.max(initial=0) + 1, bool)
    seen[flat] = True
    return np.flatnonzero(seen)


def _place(known: np.ndarray, flat: np.ndarray, first: int, none: int) -> np.ndarray:
    """(n,) first + place of each number among the ascending known ones, `none` where it is not."""
    if known[-1] > DENSE:
        place = np.minimum(np.searchsorted(known, flat), len(known) - 1)
        return np.where(known[place] == flat, first + place, none)
    lookup = np.full(known[-1] + 2, none, np.int32)  # the last one is for all that are not known
    lookup[known] = first + np.arange(len(known))
    return lookup[np.where(flat <= known[-1], flat, -1)]


def table_keys(n_features: int, quadratic: bool) -> list[tuple[int, ...]]:
    """Features of each table: singles, then pairs."""
    singles = [(i,) for i in range(n_features)]
    return singles + (list(itertools.combinations(range(n_features), 2)) if quadratic else [])


def _flat(codes: np.ndarray, key, sizes, cross_buckets: int | None) -> np.ndarray:
    """(n,) int64 flat cell, or bucket, of each row in one table, −1 where a value is unseen."""
    flat, seen = np.zeros(len(codes), np.int64), np.ones(len(codes), bool)
    for i in key:
        flat = flat * int(sizes[i]) + codes[:, i]
        seen &= codes[:, i] >= 0
    if len(key) == 2 and cross_buckets and int(sizes[key[0]]) * int(sizes[key[1]]) > cross_buckets:
        flat = buckets_of(flat, cross_buckets)
    return np.where(seen, flat, -1)
