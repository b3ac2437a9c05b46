"""Where each modality and each table cell stands: between contingency tables and the arrays that kernels read."""

from dataclasses import dataclass

import numpy as np

from agglearn.encoding import FrameEncoder
from agglearn.errors import DataError
from agglearn.maxent import kernels
from agglearn.observations import ContingencyTables

MOST_MODALITIES = 10_000  # matrices over all pairs of modalities take 8·K² bytes each


@dataclass(frozen=True)
class Layout:
    """Positions of features and of the m cells that have weights.

    Attributes
    ----------
    offsets, sizes : (D,) first position and modalities of each feature.
    starts : (D + 1,) first padded column of each feature; padded : (K,) padded column of each position.
    pairs : (P, 2) pairs of features with a table.
    rows, columns : (m,) positions of each cell; equal for cells of single tables.
    d, c : (m,) observed counts and label sums (section 2), float64.
    """

    offsets: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    padded: np.ndarray
    pairs: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    d: np.ndarray
    c: np.ndarray

    @classmethod
    def of(cls, tables: ContingencyTables) -> "Layout":
        """Layout of all tables there are; DataError when the modalities are too many for matrices over pairs."""
        sizes, offsets = tables.encoder.sizes, tables.encoder.offsets
        if offsets[-1] > MOST_MODALITIES:
            widest = tables.names[int(np.argmax(sizes))]
            raise DataError(
                f"{offsets[-1]} modalities are more than maximum entropy can take ({MOST_MODALITIES}); "
                f"hash, encode or drop the largest features, first {widest!r} ({sizes.max()})"
            )
        lanes = kernels.LANES
        starts = np.concatenate([[0], np.cumsum(-(-sizes // lanes) * lanes)])
        padded = np.concatenate([starts[i] + np.arange(size) for i, size in enumerate(sizes)])
        cells = [_cells(tables, key) for key in tables.tables]
        rows, columns, d, c = (np.concatenate(part) for part in zip(*cells, strict=True))
        whole = lambda a: np.ascontiguousarray(a, dtype=np.int32)  # noqa: E731
        pairs = np.array(tables.pairs).reshape(-1, 2)
        return cls(*map(whole, (offsets[:-1], sizes, starts, padded, pairs, rows, columns)), d, c)

    @property
    def n_modalities(self) -> int:
        """K: modalities of all features."""
        return int(self.sizes.sum())

    @property
    def n_tables(self) -> int:
        """Tables that give cells: pairs and single features."""
        singles = np.unique(self.rows[self.rows == self.columns])
        return len(self.pairs) + len(np.unique(np.searchsorted(self.offsets, singles, side="right")))

    @property
    def single(self) -> np.ndarray:
        """(m,) whether a cell belongs to a single table."""
        return self.rows == self.columns

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """(K, K) symmetric float64 matrix of the cells' values, zero elsewhere."""
        out = np.zeros((self.n_modalities, self.n_modalities))
        out[self.rows, self.columns] = out[self.columns, self.rows] = values
        return out

    def marginals(self) -> list[np.ndarray]:
        """Counts of each feature's modalities: its single table, else summed from a pair table, else even."""
        d = self.matrix(np.maximum(self.d, 0))
        blocks = [slice(o, o + s) for o, s in zip(self.offsets, self.sizes, strict=True)]
        out = []
        for i, block in enumerate(blocks):
            found = [np.diag(d[block, block])]
            found += [d[block, other].sum(axis=1) for j, other in enumerate(blocks) if j != i]
            found += [np.ones(self.sizes[i])]
            out.append(next(counts for counts in found if counts.sum() > 0))
        return out


def _cells(tables: ContingencyTables, key) -> tuple[np.ndarray, ...]:
    """Rows, columns, counts and label sums of every cell of one table, empty cells included."""
    offsets, sizes = tables.encoder.offsets, tables.encoder.sizes
    d, c = tables.dense(*key)
    first = offsets[key[0]] + np.arange(sizes[key[0]])
    if len(key) == 1:
        return first, first, d, c
    rows, columns = np.meshgrid(first, offsets[key[1]] + np.arange(sizes[key[1]]), indexing="ij")
    return rows.ravel(), columns.ravel(), d.ravel(), c.ravel()


def positions(encoder: FrameEncoder, frame) -> np.ndarray:
    """(n, D) int32 positions of the rows of a frame; −1 where a value is unseen."""
    codes = encoder.encode(frame)
    return np.where(codes >= 0, codes + encoder.offsets[:-1], -1).astype(np.int32)
