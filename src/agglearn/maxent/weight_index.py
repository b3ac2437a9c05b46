"""Positions of modalities and table cells. Crosses may be hashed, each pair in a space of its own (section 4.3)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.encoding import FrameEncoder
from agglearn.errors import DataError
from agglearn.machine import memory_bytes
from agglearn.maxent import kernels
from agglearn.observations import ContingencyTables
from agglearn.observations.counting import buckets_of

MAX_MODALITIES = 65_535  # positions are 16-bit
CELL_BYTES = 176  # of training, per cell of all tables: weights, tables, statistics of two threads, directions, means
PAIR_BYTES = 28  # per pair of modalities: the sampler's weights, the result


@dataclass(frozen=True)
class WeightIndex:
    """Positions of features and m cells, and the observed statistics of their w weights (w = m without hashing)."""

    offsets: np.ndarray  # (D,) first position of each feature
    sizes: np.ndarray  # (D,) number of modalities of each feature
    starts: np.ndarray  # (D + 1,) first padded column of each feature
    padded: np.ndarray  # (K,) padded column of each position
    cells: np.ndarray  # (D, D) first cell of the table of d < e, of d alone on the diagonal, −1 without a table
    rows: np.ndarray  # (m,) position of each cell, equal to that in `columns` for cells of single tables
    columns: np.ndarray
    d: np.ndarray  # (w,) observed counts (section 2), float64
    c: np.ndarray  # (w,) observed label sums
    marginals: list[np.ndarray]  # counts of each feature's modalities
    weight_of: np.ndarray | None = None  # (m,) weight of each cell, None if each has its own

    @classmethod
    def from_tables(cls, tables: ContingencyTables) -> "WeightIndex":
        """DataError if the modalities are too many for matrices over pairs."""
        sizes, offsets = tables.encoder.sizes, tables.encoder.offsets
        _check_size(tables)
        if not tables.tables:
            raise DataError("there are no tables to learn from")
        positions = [_cells(tables, key) for key in tables.tables]
        rows, columns = (np.concatenate(arrays) for arrays in zip(*positions, strict=True))
        dense = zip(*(tables.dense(*k) for k in tables.tables), strict=True)
        d, c = (np.concatenate([v.ravel() for v in arrays]) for arrays in dense)
        cells = np.full((len(sizes), len(sizes)), -1, dtype=np.int64)
        for key, first in zip(tables.tables, np.cumsum([0] + [len(r) for r, _ in positions]), strict=False):
            cells[key[0], key[-1]] = first
        int32 = (np.ascontiguousarray(a, dtype=np.int32) for a in (offsets[:-1], sizes, rows, columns))
        offsets, sizes, rows, columns = int32
        starts = np.concatenate([[0], np.cumsum(-(-sizes // kernels.LANES) * kernels.LANES)]).astype(np.int32)
        padded = np.arange(sizes.sum(), dtype=np.int32) + np.repeat(starts[:-1] - offsets, sizes)
        weight_of = _weights_of_cells(tables) if tables.hashed_pairs else None
        return cls(offsets, sizes, starts, padded, cells, rows, columns, d, c, marginal_counts(tables), weight_of)

    @property
    def space(self) -> kernels.Space:
        return kernels.Space(*(getattr(self, name) for name in kernels.Space._fields))

    @property
    def n_modalities(self) -> int:
        return int(self.sizes.sum())

    @property
    def n_tables(self) -> int:
        return int(np.sum(self.cells >= 0))

    @property
    def single(self) -> np.ndarray:
        return self.rows == self.columns

    def spread(self, single: float, pair: float) -> np.ndarray:
        """Return (w,) numbers of the weights: one for those of single features, another for those of pairs."""
        out, cells = np.full(len(self.d), float(pair)), np.flatnonzero(self.single)
        out[cells if self.weight_of is None else self.weight_of[cells]] = single
        return out

    def expand(self, weights: np.ndarray) -> np.ndarray:
        """Return (m,) weights of the cells, 𝓗ᵀ applied, for (w,) weights."""
        return weights if self.weight_of is None else weights[self.weight_of]

    def fold(self, statistics: np.ndarray) -> np.ndarray:
        """Return (w,) sums over the cells of each weight, 𝓗 applied, for (m,) statistics of cells."""
        return statistics if self.weight_of is None else np.bincount(self.weight_of, statistics, len(self.d))

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """Return (K, K) symmetric float64 matrix of the cells' weights, zero elsewhere."""
        out = np.zeros((self.n_modalities, self.n_modalities))
        out[self.rows, self.columns] = out[self.columns, self.rows] = self.expand(weights)
        return out


def needed_bytes(tables: ContingencyTables) -> float:
    """Return the memory that training takes without the chains. Empty cells count, because their d = 0 lowers μ."""
    cells = sum(np.prod(tables.encoder.sizes[list(key)], dtype=float) for key in tables.tables)
    return CELL_BYTES * cells + PAIR_BYTES * float(tables.encoder.offsets[-1]) ** 2


def _check_size(tables: ContingencyTables) -> None:
    """DataError if there are too many modalities for 16-bit positions or for the memory of this machine."""
    sizes, total = tables.encoder.sizes, int(tables.encoder.offsets[-1])
    needed, memory = needed_bytes(tables), memory_bytes()
    if total <= MAX_MODALITIES and needed <= memory:
        return
    widest = tables.names[int(np.argmax(sizes))]
    limit = f"the limit is {MAX_MODALITIES:,}" if total > MAX_MODALITIES else f"this machine has {memory / 1e9:.0f} GB"
    raise DataError(
        f"{total:,} modalities in all need {needed / 1e9:.0f} GB of memory, {limit}; "
        f"hash, encode or drop the largest features, first {widest!r} ({sizes.max():,})"
    )


def marginal_counts(tables: ContingencyTables) -> list[np.ndarray]:
    """Return counts of each feature's modalities: from its single table, else summed from a pair table, else even."""
    out = []
    for i, size in enumerate(tables.encoder.sizes):
        candidates = [np.maximum(tables.dense(i)[0], 0)] if (i,) in tables.tables else []
        unhashed = [k for k in tables.pairs if i in k and k not in tables.hashed_pairs]
        candidates += [np.maximum(tables.dense(*k)[0], 0).sum(axis=1 - k.index(i)) for k in unhashed]
        out.append(next((counts for counts in candidates if counts.sum() > 0), np.ones(size)))
    return out


def _weights_of_cells(tables: ContingencyTables) -> np.ndarray:
    """(m,) int64 weight of each cell, tables in their order, cells of a table in C order."""
    weights, size, hashed = [], 0, tables.hashed_pairs
    for key in tables.tables:
        cells = np.arange(np.prod(tables.encoder.sizes[list(key)]))
        weights.append(size + (buckets_of(cells, hashed[key]) if key in hashed else cells))
        size += hashed.get(key, len(cells))
    return np.concatenate(weights)


def _cells(tables: ContingencyTables, key: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    offsets, sizes = tables.encoder.offsets, tables.encoder.sizes
    first, second = ((offsets[i] + np.arange(sizes[i])).astype(np.int32) for i in (key[0], key[-1]))
    return (first, first) if len(key) == 1 else (np.repeat(first, len(second)), np.tile(second, len(first)))


def positions(encoder: FrameEncoder, X: pd.DataFrame | np.ndarray) -> np.ndarray:
    """Return (n, D) int32 positions of raw rows, −1 for an unseen value."""
    codes = encoder.encode(X)
    return np.where(codes >= 0, codes + encoder.offsets[:-1], -1).astype(np.int32)
