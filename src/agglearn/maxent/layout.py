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
    starts : (D + 1,) first padded column of each feature. padded : (K,) column of each position, frequent modalities
        first; position : (Kp,) the reverse, 0 for padding.
    partners, bounds : later features that feature d has a table with, partners[bounds[d]:bounds[d + 1]].
    rows, columns : (m,) positions of each cell; equal for cells of single tables.
    d, c : (m,) observed counts and label sums (section 2), float64.
    marginals : counts of each feature's modalities.
    """

    offsets: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    padded: np.ndarray
    position: np.ndarray
    partners: np.ndarray
    bounds: np.ndarray
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
        cells = [_cells(tables, key) for key in tables.tables]
        rows, columns, d, c = (np.concatenate(part) for part in zip(*cells, strict=True))
        pairs = sorted(tables.pairs)
        partners = np.array([j for _, j in pairs], dtype=np.uint16)
        bounds = np.searchsorted([i for i, _ in pairs], np.arange(len(sizes) + 1))
        int32 = (np.ascontiguousarray(a, dtype=np.int32) for a in (offsets[:-1], sizes, bounds, rows, columns))
        offsets, sizes, bounds, rows, columns = int32
        counts = marginal_counts(tables)
        return cls(offsets, sizes, *_columns(counts), partners, bounds, rows, columns, d, c, counts)

    @property
    def n_modalities(self) -> int:
        """K: modalities of all features."""
        return int(self.sizes.sum())

    @property
    def n_tables(self) -> int:
        """Tables that give cells: pairs and single features."""
        singles = np.unique(self.rows[self.rows == self.columns])
        return len(self.partners) + len(np.unique(np.searchsorted(self.offsets, singles, side="right")))

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


def _columns(marginals: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`starts`, `padded` and `position` of a layout."""
    widths = [-(-len(counts) // kernels.LANES) * kernels.LANES for counts in marginals]
    starts = np.concatenate([[0], np.cumsum(widths)])
    ranks = [np.argsort(np.argsort(-counts, kind="stable")) for counts in marginals]
    padded = np.concatenate([start + rank for start, rank in zip(starts, ranks, strict=False)])
    position = np.zeros(starts[-1], dtype=np.uint16)
    position[padded] = np.arange(len(padded))
    return starts.astype(np.int32), padded.astype(np.int32), position


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
