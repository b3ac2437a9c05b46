"""Where each modality and each table cell stands: between contingency tables and the arrays that kernels read."""

import os
from dataclasses import dataclass

import numpy as np

from agglearn.encoding import FrameEncoder
from agglearn.errors import DataError
from agglearn.maxent import kernels
from agglearn.observations import ContingencyTables

MOST_MODALITIES = 65_535  # positions are 16-bit
CELL_BYTES = 160  # of training, per cell of all tables: weights, tables, statistics, directions, means
PAIR_BYTES = 48  # per pair of modalities: the sampler's weights, the statistics of two threads, the result


@dataclass(frozen=True)
class Layout:
    """Positions of features and of the m cells that have weights.

    Attributes
    ----------
    offsets, sizes : (D,) first position and modalities of each feature.
    starts : (D + 1,) first padded column of each feature. padded : (K,) column of each position.
    cells : (D, D) first cell of the table of features d < e; of d alone on the diagonal; −1 where there is no table.
    rows, columns : (m,) positions of each cell; equal for cells of single tables.
    d, c : (m,) observed counts and label sums (section 2), float64.
    marginals : counts of each feature's modalities.
    """

    offsets: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    padded: np.ndarray
    cells: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    d: np.ndarray
    c: np.ndarray
    marginals: list[np.ndarray]

    @classmethod
    def of(cls, tables: ContingencyTables) -> "Layout":
        """Layout of all tables there are; DataError when the modalities are too many for matrices over pairs."""
        tables.refuse_hashed_pairs("maximum entropy")
        sizes, offsets = tables.encoder.sizes, tables.encoder.offsets
        _check_size(tables)
        if not tables.tables:
            raise DataError("there are no tables to learn from")
        parts = [_cells(tables, key) for key in tables.tables]
        rows, columns, d, c = (np.concatenate(part) for part in zip(*parts, strict=True))
        cells = np.full((len(sizes), len(sizes)), -1, dtype=np.int64)
        for key, first in zip(tables.tables, np.cumsum([0] + [len(part[0]) for part in parts]), strict=False):
            cells[key[0], key[-1]] = first
        int32 = (np.ascontiguousarray(a, dtype=np.int32) for a in (offsets[:-1], sizes, rows, columns))
        offsets, sizes, rows, columns = int32
        return cls(offsets, sizes, *_columns(sizes), cells, rows, columns, d, c, marginal_counts(tables))

    @property
    def space(self) -> kernels.Space:
        """What kernels need of it."""
        return kernels.Space(*(getattr(self, name) for name in kernels.Space._fields))

    @property
    def n_modalities(self) -> int:
        """K: modalities of all features."""
        return int(self.sizes.sum())

    @property
    def n_tables(self) -> int:
        """Tables that give cells: pairs and single features."""
        return int(np.sum(self.cells >= 0))

    @property
    def single(self) -> np.ndarray:
        """(m,) whether a cell belongs to a single table."""
        return self.rows == self.columns

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """(K, K) symmetric float64 matrix of the cells' values, zero elsewhere."""
        out = np.zeros((self.n_modalities, self.n_modalities))
        out[self.rows, self.columns] = out[self.columns, self.rows] = values
        return out


def needed_bytes(tables: ContingencyTables) -> float:
    """Memory that training takes, but for the chains. Empty cells count: their d = 0 pulls μ down."""
    cells = sum(np.prod(table.shape, dtype=float) for table in tables.tables.values())
    return CELL_BYTES * cells + PAIR_BYTES * float(tables.encoder.offsets[-1]) ** 2


def _check_size(tables: ContingencyTables) -> None:
    """DataError when there are too many modalities for 16-bit positions or for the memory of this machine."""
    sizes, total = tables.encoder.sizes, int(tables.encoder.offsets[-1])
    needed, memory = needed_bytes(tables), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if total <= MOST_MODALITIES and needed <= memory:
        return
    widest = tables.names[int(np.argmax(sizes))]
    limit = (
        f"the limit is {MOST_MODALITIES:,}" if total > MOST_MODALITIES else f"this machine has {memory / 1e9:.0f} GB"
    )
    raise DataError(
        f"{total:,} modalities in all need {needed / 1e9:.0f} GB of memory, {limit}; "
        f"hash, encode or drop the largest features, first {widest!r} ({sizes.max():,})"
    )


def marginal_counts(tables: ContingencyTables) -> list[np.ndarray]:
    """Counts of each feature's modalities: its single table, else summed from a pair table, else even."""
    out = []
    for i, size in enumerate(tables.encoder.sizes):
        found = [np.maximum(tables.dense(i)[0], 0)] if (i,) in tables.tables else []
        found += [np.maximum(tables.dense(*k)[0], 0).sum(axis=1 - k.index(i)) for k in tables.pairs if i in k]
        out.append(next((counts for counts in found if counts.sum() > 0), np.ones(size)))
    return out


def _columns(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`starts` and `padded` of a layout."""
    starts = np.concatenate([[0], np.cumsum(-(-sizes // kernels.LANES) * kernels.LANES)]).astype(np.int32)
    return starts, np.concatenate([start + np.arange(size) for start, size in zip(starts, sizes, strict=False)]).astype(
        np.int32
    )


def _cells(tables: ContingencyTables, key) -> tuple[np.ndarray, ...]:
    """Rows, columns, counts and label sums of every cell of one table, empty cells included."""
    offsets, sizes = tables.encoder.offsets, tables.encoder.sizes
    d, c = tables.dense(*key)
    first = (offsets[key[0]] + np.arange(sizes[key[0]])).astype(np.int32)
    if len(key) == 1:
        return first, first, d, c
    rows, columns = np.meshgrid(first, (offsets[key[1]] + np.arange(sizes[key[1]])).astype(np.int32), indexing="ij")
    return rows.ravel(), columns.ravel(), d.ravel(), c.ravel()


def positions(encoder: FrameEncoder, frame) -> np.ndarray:
    """(n, D) int32 positions of the rows of a frame; −1 where a value is unseen."""
    codes = encoder.encode(frame)
    return np.where(codes >= 0, codes + encoder.offsets[:-1], -1).astype(np.int32)
