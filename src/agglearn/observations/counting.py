"""Counting records into contingency tables in one pass over batches: exact, the same for any split and any threads.

Source: Gilotte, Ben Yahmed, Rohde 2022, section 2 (d = Σ φ(x_i), c = Σ φ(x_i)·y_i); hashed crosses: Weinberger et al.
2009, section 4.3 there.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from agglearn.encoding.labels import check_labels
from agglearn.errors import DataError

DENSE_CELLS = 1 << 22  # larger tables hold occupied cells only
DENSE_TOTAL = 1 << 27  # cells of all tables held whole: 1 GiB
BLOCK = 1 << 18  # records counted at a time
FIRST_SLOTS = 1 << 12
LITTLE = 1 << 17  # cells or records that are done sooner than threads start

Counts = tuple[np.ndarray, np.ndarray, np.ndarray]  # occupied cells ascending, counts, label sums, (m,) int64 each


class Tally:
    """Running counts of tables over encoded records.

    Parameters
    ----------
    sizes : (D,) modalities of each feature.
    keys : tables wanted, (i,) or (i, j).
    hashed : {(i, j): H}, pair tables whose cells are hashed into H buckets.
    """

    def __init__(self, sizes: np.ndarray, keys: Sequence[tuple[int, ...]], hashed: Mapping | None = None):
        self.sizes, self.keys, self.hashed = np.asarray(sizes, np.int64), list(keys), dict(hashed or {})
        self.total = self.positives = 0
        self._earlier: dict = {}
        self._begin()

    def add(self, codes: np.ndarray, y: np.ndarray) -> None:
        """Count records: codes (n, D) integers, −1 for a value in no modality; y (n,) in {0, 1}.

        DataError for codes of other shape, or beyond the modalities there are, and for other labels.
        """
        if np.ndim(codes) != 2 or np.shape(codes) != (len(y), len(self.sizes)):
            raise DataError(f"codes have the shape {np.shape(codes)}, not {(len(y), len(self.sizes))}")
        check_labels(y, len(y))
        with _mapping(len(y) * len(self.keys)) as each:
            for start in range(0, len(y), BLOCK):
                self._add_block(codes[start : start + BLOCK], y[start : start + BLOCK], each)

    def counts(self) -> dict[tuple[int, ...], Counts]:
        """Occupied cells of every table, with counts and label sums."""
        with _mapping(sum(map(len, self._tables.values()))) as each:  # largest first, as in counting
            found = dict(zip(reversed(self._tables), each(_counts, reversed(self._tables.values())), strict=True))
        now = {key: found[key] for key in self.keys}
        return {key: added(self._earlier[key], now[key]) for key in self.keys} if self._earlier else now

    def _begin(self) -> None:
        self._tables, self._records, left = {}, 0, DENSE_TOTAL
        cells = {k: self.hashed.get(k) or int(np.prod(self.sizes[list(k)], dtype=object)) for k in self.keys}
        for key in sorted(self.keys, key=cells.get):
            dense = cells[key] <= min(DENSE_CELLS, left)
            left -= cells[key] if dense else 0
            self._tables[key] = Dense(cells[key]) if dense else Sparse()

    def _add_block(self, codes, y, each) -> None:
        from agglearn.observations.kernels import MOST_RECORDS

        if beyond := np.flatnonzero(codes.max(axis=0) >= self.sizes).tolist():  # kernels check no bounds
            raise DataError(f"feature {beyond[0]}: a code beyond its {self.sizes[beyond[0]]} modalities")
        if self._records + len(y) > MOST_RECORDS:
            self._earlier = self.counts()
            self._begin()
        self._records += len(y)
        self.total, self.positives = self.total + len(y), self.positives + int(np.sum(y))
        columns = np.ascontiguousarray(codes.T, dtype=np.int32)
        labels = np.ascontiguousarray(np.asarray(y) > 0).view(np.int8)

        def one(key):
            stride = int(self.sizes[key[1]]) if len(key) == 2 else 0
            self._tables[key].add(columns[key[0]], columns[key[-1]], stride, self.hashed.get(key, 0), labels)

        for _ in each(one, reversed(self._tables)):  # largest first: the longest work does not come last
            pass


@contextlib.contextmanager
def _mapping(work: int) -> Iterator[Callable]:
    """A `map` on as many threads as numba would use, for work that lets go of the interpreter's lock. The plain one for little work."""
    import numba  # here, so that whoever only reads tables does not wait for it

    threads = numba.config.NUMBA_NUM_THREADS
    if threads == 1 or work <= LITTLE:
        yield map
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield pool.map


def _counts(table) -> Counts:
    return table.counts()


class Dense:
    """A table held whole."""

    def __init__(self, cells: int):
        self.cells = np.zeros(cells, np.int64)

    def __len__(self) -> int:
        return len(self.cells)

    def add(self, first, second, stride, buckets, labels) -> None:
        from agglearn.observations import kernels

        kernels.count_dense(first, second, stride, buckets, labels, self.cells)

    def counts(self) -> Counts:
        occupied = np.flatnonzero(self.cells)
        return occupied, *unpacked(self.cells[occupied])


class Sparse:
    """A table of which only occupied cells are held, in a hash table that doubles as it fills."""

    def __init__(self):
        self.slots, self.used = np.zeros((FIRST_SLOTS, 2), np.int64), np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, first, second, stride, buckets, labels) -> None:
        from agglearn.observations import kernels

        done = 0
        while (done := self._count(kernels, first, second, stride, buckets, labels, done)) < len(labels):
            larger = np.zeros((2 * len(self.slots), 2), np.int64)
            kernels.move(self.slots, larger)
            self.slots = larger

    def _count(self, kernels, first, second, stride, buckets, labels, done) -> int:
        return kernels.count_sparse(first, second, stride, buckets, labels, self.slots, self.used, done)

    def counts(self) -> Counts:
        found = self.slots[self.slots[:, 0] > 0]
        found = found[np.argsort(found[:, 0])]
        return found[:, 0] - 1, *unpacked(found[:, 1])


def unpacked(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts and label sums of packed cells, int64."""
    from agglearn.observations.kernels import LOW, SHIFT

    return packed >> SHIFT, packed & LOW


def added(a: Counts, b: Counts) -> Counts:
    """Sum of two tables of occupied cells."""
    cells, inverse = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
    sums = np.zeros((2, len(cells)), dtype=np.int64)
    for out, one, two in zip(sums, a[1:], b[1:], strict=True):
        np.add.at(out, inverse, np.concatenate([one, two]))
    return cells, *sums


def buckets_of(cells: np.ndarray, buckets: int) -> np.ndarray:
    """(m,) bucket of each flat cell; the hash that `Tally` uses."""
    from agglearn.observations import kernels

    out = np.empty(len(cells), np.int64)
    kernels.buckets_of(np.ascontiguousarray(cells, np.int64), buckets, out)
    return out
