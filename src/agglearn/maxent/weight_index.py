"""Positions of modalities and table cells. Crosses may be hashed, each pair in a space of its own (section 4.3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import wrightomega

from agglearn.encoding import FrameEncoder
from agglearn.errors import DataError
from agglearn.machine import memory_bytes
from agglearn.maxent import kernels
from agglearn.observations import ContingencyTables, Table
from agglearn.observations.counting import Key, buckets_of

MAX_MODALITIES = 65_535  # positions are 16-bit
MAX_CELLS = 2**32 - 1  # numbers of cells are 32-bit
CELL_BYTES = 180  # of training, per cell of all tables: weights, tables, statistics of two threads, directions, means
PAIR_BYTES = 24  # per pair of modalities: the sampler's weights, the result
FIXED_FROM = 10_000_000  # cells of all tables from which weights of rare ones are fixed by default: 2 GB of training
RARE = 4  # records: a cell is rare if it has fewer, and if it would have fewer were its features independent
TRAINED_BYTES, FIXED_BYTES, FIXED_PAIR_BYTES = 132, 4, 8  # then: per trained cell, cell of all tables, pair


@dataclass(frozen=True)
class WeightIndex:
    """Positions of features and m cells, and the observed statistics of their w weights (w = m without hashing).

    The m cells are those with a trained weight. All cells of all tables have one, unless `number` says otherwise.
    """

    offsets: np.ndarray  # (D,) first position of each feature
    sizes: np.ndarray  # (D,) number of modalities of each feature
    padded: np.ndarray  # (K,) column of each position among the sampler's weights
    cells: np.ndarray  # (D, D) first of all cells of the table of d < e, of d alone on the diagonal, −1 without a table
    rows: np.ndarray  # (m,) position of each cell, equal to that in `columns` for cells of single tables
    columns: np.ndarray
    d: np.ndarray  # (w,) observed counts (section 2), float64, with fixed weights float32
    c: np.ndarray  # (w,) observed label sums
    marginals: list[np.ndarray]  # counts of each feature's modalities
    weight_of: np.ndarray | None = None  # (m,) weight of each cell, None if each has its own
    number: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))  # of all cells among the m, m if fixed
    tables: Mapping[Key, Table] | None = None  # that `fixed_mu` follows, None without fixed weights
    l2_mu: float = 0.0  # likewise

    @classmethod
    def from_tables(cls, tables: ContingencyTables, fixed_by: float | None = None) -> "WeightIndex":
        """DataError if the modalities are too many for matrices over pairs.

        With `fixed_by`, λ of μ, the weights of rare cells are fixed: θ = 0 and `fixed_mu`. Tables without noise and
        hashed pairs can have it.
        """
        sizes, offsets = tables.encoder.sizes, tables.encoder.offsets
        _check_size(tables, fixed_by is not None)
        if not tables.tables:
            raise DataError("there are no tables to learn from")
        cells, marginals = np.full((len(sizes), len(sizes)), -1, dtype=np.int64), marginal_counts(tables)
        blocks: list[tuple[np.ndarray, ...]] = []
        numbers, n_cells, n_trained = [np.empty(0, np.int32)], 0, 0
        for key in tables.tables:
            cells[key[0], key[-1]] = n_cells
            block = (*cell_positions(tables, key), *(v.ravel() for v in tables.dense(*key)))
            n_cells += len(block[0])
            if fixed_by is not None:
                trained = np.maximum(block[2], _expected(marginals, *key).ravel()) >= (RARE if len(key) > 1 else 0)
                numbers.append(np.where(trained, n_trained + np.cumsum(trained) - 1, -1).astype(np.int32))
                n_trained += int(trained.sum())
                block = tuple(v[trained].astype(np.float32 if v.dtype == float else np.int32) for v in block)
            blocks.append(block)
        rows, columns, d, c = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
        int32 = (np.ascontiguousarray(a, dtype=np.int32) for a in (offsets[:-1], sizes, rows, columns))
        offsets, sizes, rows, columns = int32
        padded = np.arange(sizes.sum(), dtype=np.int32) + np.repeat(_first_columns(sizes) - offsets, sizes)
        weight_of = _weights_of_cells(tables) if tables.hashed_pairs else None
        number = np.concatenate(numbers)
        number[number < 0] = n_trained
        fixed = (number, *((None, 0.0) if fixed_by is None else (tables.tables, fixed_by)))
        return cls(offsets, sizes, padded, cells, rows, columns, d, c, marginals, weight_of, *fixed)

    @property
    def space(self) -> kernels.Space:
        left, right = np.nonzero(self.cells >= 0)
        strides = np.where(left == right, 0, self.sizes[right])
        tables = np.stack([left, right, strides, self.cells[left, right]], axis=1)
        order, line, cuts = np.argsort(self.padded[self.offsets]), kernels.LINE, []
        for k, d in enumerate(order):
            for code in range(0, self.sizes[d], line):
                number, low = divmod(int(self.padded[self.offsets[d] + code]), line)
                cuts.append((number, k, low, low + min(self.sizes[d] - code, line), code))
        pieces, label = np.array(cuts), len(order)
        lines = np.searchsorted(pieces[:, 0], np.arange(pieces[-1, 0] + 2))
        rows = [(d, label, line, line * self.offsets[d]) for d in order] + [(0, label, 0, line * self.n_modalities)]
        drawn = order, pieces[:, 1:].copy(), lines
        forms = tables.astype(np.int32), np.array(rows, np.int32)
        return kernels.Space(self.offsets, self.sizes, self.padded, *drawn, *forms, self.number)

    @property
    def n_modalities(self) -> int:
        return int(self.sizes.sum())

    @property
    def n_tables(self) -> int:
        return int(np.sum(self.cells >= 0))

    @property
    def single(self) -> np.ndarray:
        return self.rows == self.columns

    def span(self, feature: int) -> slice:
        """Return the positions of a feature."""
        return slice(int(self.offsets[feature]), int(self.offsets[feature] + self.sizes[feature]))

    def spread(self, single: float, pair: float) -> np.ndarray:
        """Return (w,) numbers of the weights: one for those of single features, another for those of pairs."""
        out, cells = np.full(len(self.d), pair, self.d.dtype), np.flatnonzero(self.single)
        out[cells if self.weight_of is None else self.weight_of[cells]] = single
        return out

    def expand(self, weights: np.ndarray) -> np.ndarray:
        """Return (m,) weights of the cells, 𝓗ᵀ applied, for (w,) weights."""
        return weights if self.weight_of is None else weights[self.weight_of]

    def fold(self, statistics: np.ndarray) -> np.ndarray:
        """Return (w,) sums over the cells of each weight, 𝓗 applied, for (m,) statistics of cells."""
        return statistics if self.weight_of is None else np.bincount(self.weight_of, statistics, len(self.d))

    def matrix(self, weights: np.ndarray, fixed: bool = False) -> np.ndarray:
        """Return (K, K) symmetric matrix, float64 or float32 as d, of the cells' weights, with `fixed` μ where asked."""
        out = np.zeros((self.n_modalities, self.n_modalities), self.d.dtype)
        for i, j, block in self.fixed_mu() if fixed else ():
            rows, columns = self.span(i), self.span(j)
            out[rows, columns], out[columns, rows] = block, block.T
        out[self.rows, self.columns] = out[self.columns, self.rows] = self.expand(weights)
        return out

    def fixed_mu(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield features of each pair, and (size, size) float32 μ of its cells as if other features were independent.

        With e records expected at μ = 0 it solves e·exp(μ) + 2λμ = d, where the gradient of eq. 5 is 0.
        """
        tables = self.tables or {}
        for i, j in (key for key in tables if len(key) > 1):
            a, b = (x / (2 * self.l2_mu) for x in (tables[i, j].dense()[0], _expected(self.marginals, i, j)))
            with np.errstate(divide="ignore"):
                yield i, j, (a - wrightomega(a + np.log(b))).astype(np.float32)


def _first_columns(sizes: np.ndarray) -> np.ndarray:
    """(D,) int32: the largest feature first, each in the first line of the cache that it fits into, else from a new one on."""
    free: list[int] = []  # columns at the end of each line
    firsts = np.empty(len(sizes), np.int32)
    for d in np.argsort(-sizes, kind="stable"):
        size = int(sizes[d])
        line = next((line for line, columns in enumerate(free) if size <= columns), len(free))
        firsts[d] = kernels.LINE * line
        if line == len(free):
            free += [0] * ((size - 1) // kernels.LINE) + [kernels.LINE - 1 - (size - 1) % kernels.LINE]
        else:
            firsts[d] += kernels.LINE - free[line]
            free[line] -= size
    return firsts


def count_cells(tables: ContingencyTables) -> float:
    """Return the number of cells of all tables."""
    return sum(np.prod(tables.encoder.sizes[list(key)], dtype=float) for key in tables.tables)


def needed_bytes(tables: ContingencyTables, fixed: bool = False) -> float:
    """Return the memory that training takes without the chains, with fixed weights or without.

    Without, empty cells count, because their d = 0 lowers μ.
    """
    pairs = float(tables.encoder.offsets[-1]) ** 2
    if not fixed:
        return CELL_BYTES * count_cells(tables) + PAIR_BYTES * pairs
    marginals, trained = [np.sort(counts) for counts in marginal_counts(tables)], int(tables.encoder.offsets[-1])
    for (i, j), table in ((key, table) for key, table in tables.tables.items() if len(key) > 1):
        with np.errstate(divide="ignore"):
            least = RARE * marginals[i].sum() / marginals[i]
        trained += np.sum(table.counts >= RARE) + np.sum(len(marginals[j]) - np.searchsorted(marginals[j], least))
    return TRAINED_BYTES * trained + FIXED_BYTES * count_cells(tables) + FIXED_PAIR_BYTES * pairs


def _expected(marginals: list[np.ndarray], i: int, j: int | None = None) -> np.ndarray:
    """(size,) or (size, size) records of cells if features are independent."""
    return marginals[i] if j is None else np.outer(marginals[i], marginals[j]) / marginals[i].sum()


def _check_size(tables: ContingencyTables, fixed: bool) -> None:
    """DataError if 16-bit positions, 32-bit numbers of cells or the memory of this machine do not suffice."""
    sizes, total, n_cells = tables.encoder.sizes, int(tables.encoder.offsets[-1]), count_cells(tables)
    needed, memory = needed_bytes(tables, fixed), memory_bytes()
    limits = {
        f"the limit is {MAX_MODALITIES:,}": total > MAX_MODALITIES,
        f"their tables have {n_cells:,.0f} cells, the limit is {MAX_CELLS:,}": n_cells > MAX_CELLS,
        f"this machine has {memory / 1e9:.0f} GB": needed > memory,
    }
    for limit in (limit for limit, exceeded in limits.items() if exceeded):
        widest = tables.names[int(np.argmax(sizes))]
        raise DataError(
            f"{total:,} modalities in all need {needed / 1e9:.0f} GB of memory, {limit}; "
            f"hash, encode or drop the largest features, first {widest!r} ({sizes.max():,})"
        )


def marginal_counts(tables: ContingencyTables) -> list[np.ndarray]:
    """Return counts of each feature's modalities: from its single table, else summed from a pair table, else even."""
    hashed, keys = tables.hashed_pairs, [[(i,)] if (i,) in tables.tables else [] for i in range(len(tables.names))]
    for key in (key for key in tables.pairs if key not in hashed):
        for i in key:
            keys[i].append(key)  # type: ignore[arg-type]
    out = []
    for i, size in enumerate(tables.encoder.sizes):
        axes = ((k, tuple(axis for axis, feature in enumerate(k) if feature != i)) for k in keys[i])
        candidates = (np.maximum(tables.dense(*k)[0], 0).sum(axis=axis) for k, axis in axes)
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


def cell_positions(tables: ContingencyTables, key: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return int32 positions of all cells of a table, those of the first feature and those of the last one."""
    offsets, sizes = tables.encoder.offsets, tables.encoder.sizes
    first, second = ((offsets[i] + np.arange(sizes[i])).astype(np.int32) for i in (key[0], key[-1]))
    return (first, first) if len(key) == 1 else (np.repeat(first, len(second)), np.tile(second, len(first)))


def positions(encoder: FrameEncoder, X: pd.DataFrame | np.ndarray) -> np.ndarray:
    """Return (n, D) int32 positions of raw rows, −1 for an unseen value."""
    codes = encoder.encode(X)
    return np.where(codes >= 0, codes + encoder.offsets[:-1], -1).astype(np.int32)
