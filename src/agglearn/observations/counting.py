"""Counting records into tables in one pass over batches: exact, the same for any split and any threads. Before it,
the memory and time that it will take: the number of tables grows with the square of the features."""

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from agglearn.encoding.labels import check_labels
from agglearn.errors import DataError
from agglearn.machine import memory_bytes
from agglearn.text import bytes_text

DENSE_CELLS = 1 << 22  # larger tables hold occupied cells only
DENSE_TOTAL = 1 << 27  # cells of all tables held whole: 1 GiB
BLOCK = 1 << 18  # records counted at a time
FIRST_SLOTS = 1 << 12
LITTLE = 1 << 17  # cells or records that are done sooner than threads start
# Measured on tables of 9 to 9,000,000 cells, with saving: right within a factor of two.
TABLE_BYTES, CELL_BYTES = 7000, 100  # of a table, of an occupied cell
TABLE_SECONDS, CELL_SECONDS = 3e-4, 5e-7
RECORD_SECONDS = 2e-9  # of a record in a table

Key = tuple[int, ...]  # features of a table, ascending: (i,) or (i, j)
Counts = tuple[np.ndarray, np.ndarray, np.ndarray]  # occupied cells ascending, counts, label sums, (m,) int64 each
Map = Callable[[Callable, Iterable], Iterable]


class Tally:
    def __init__(self, sizes: np.ndarray, keys: Sequence[Key], hashed: Mapping[Key, int] | None = None) -> None:
        self.sizes, self.keys, self.hashed = np.asarray(sizes, np.int64), list(keys), dict(hashed or {})
        self.total = self.positives = 0
        self._earlier: dict[Key, Counts] = {}
        self._start()

    def add(self, codes: np.ndarray, y: np.ndarray) -> None:
        """Count records: codes (n, D) integers, −1 for a value in no modality, and y (n,) in {0, 1}."""
        if np.ndim(codes) != 2 or np.shape(codes) != (len(y), len(self.sizes)):
            raise DataError(f"codes have the shape {np.shape(codes)}, not {(len(y), len(self.sizes))}")
        check_labels(y, len(y))
        with _mapping(len(y) * len(self.keys)) as each:
            for start in range(0, len(y), BLOCK):
                self._add_block(codes[start : start + BLOCK], y[start : start + BLOCK], each)

    def counts(self) -> dict[Key, Counts]:
        with _mapping(sum(map(len, self._tables.values()))) as each:  # largest first, as in counting
            counted = each(operator.methodcaller("counts"), reversed(self._tables.values()))
            latest = dict(zip(reversed(self._tables), counted, strict=True))
        if not self._earlier:
            return {key: latest[key] for key in self.keys}
        pairs = {key: zip(self._earlier[key], latest[key], strict=True) for key in self.keys}
        return {key: sum_cells(*map(np.concatenate, pair)) for key, pair in pairs.items()}

    def _start(self) -> None:
        """Empty tables. The smallest are held whole, as far as memory goes."""
        self._tables: dict[Key, Dense | Sparse] = {}
        self._records, budget = 0, DENSE_TOTAL
        cells = {k: self.hashed.get(k) or int(np.prod(self.sizes[list(k)], dtype=object)) for k in self.keys}
        for key in sorted(self.keys, key=lambda k: cells[k]):
            dense = cells[key] <= min(DENSE_CELLS, budget)
            budget -= cells[key] if dense else 0
            self._tables[key] = Dense(cells[key]) if dense else Sparse()

    def _add_block(self, codes: np.ndarray, y: np.ndarray, each: Map) -> None:
        from agglearn.observations.kernels import MAX_RECORDS

        if beyond := np.flatnonzero(codes.max(axis=0) >= self.sizes).tolist():  # kernels check no bounds
            raise DataError(f"feature {beyond[0]}: a code beyond its {self.sizes[beyond[0]]} modalities")
        if self._records + len(y) > MAX_RECORDS:
            self._earlier = self.counts()
            self._start()
        self._records += len(y)
        self.total, self.positives = self.total + len(y), self.positives + int(np.sum(y))
        columns = np.ascontiguousarray(codes.T, dtype=np.int32)
        labels = np.ascontiguousarray(np.asarray(y) > 0).view(np.int8)

        def add_to(key: Key) -> None:
            stride = int(self.sizes[key[1]]) if len(key) == 2 else 0
            self._tables[key].add(columns[key[0]], columns[key[-1]], stride, self.hashed.get(key, 0), labels)

        for _ in each(add_to, reversed(self._tables)):  # largest first: the longest work does not come last
            pass


@contextlib.contextmanager
def _mapping(work: int) -> Iterator[Map]:
    """A `map` on as many threads as numba would use, for work without the interpreter's lock."""
    import numba  # here: code that only reads tables does not load it

    threads = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    if threads == 1 or work <= LITTLE:
        yield map
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield pool.map


class Dense:
    def __init__(self, cells: int) -> None:
        self.cells = np.zeros(cells, np.int64)

    def __len__(self) -> int:
        return len(self.cells)

    def add(self, first: np.ndarray, second: np.ndarray, stride: int, buckets: int, labels: np.ndarray) -> None:
        from agglearn.observations import kernels

        kernels.count_dense(first, second, stride, buckets, labels, self.cells)

    def counts(self) -> Counts:
        occupied = np.flatnonzero(self.cells)
        return occupied, *unpack(self.cells[occupied])


class Sparse:
    """A table of which only occupied cells are held, in a hash table that doubles as it fills."""

    def __init__(self) -> None:
        self.slots, self.used = np.zeros((FIRST_SLOTS, 2), np.int64), np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, first: np.ndarray, second: np.ndarray, stride: int, buckets: int, labels: np.ndarray) -> None:
        from agglearn.observations.kernels import count_sparse, move

        done = 0
        while (done := count_sparse(first, second, stride, buckets, labels, self.slots, self.used, done)) < len(labels):
            larger = np.zeros((2 * len(self.slots), 2), np.int64)
            move(self.slots, larger)
            self.slots = larger

    def counts(self) -> Counts:
        occupied = self.slots[self.slots[:, 0] > 0]
        occupied = occupied[np.argsort(occupied[:, 0])]
        return occupied[:, 0] - 1, *unpack(occupied[:, 1])


def unpack(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from agglearn.observations.kernels import LOW, SHIFT

    return packed >> SHIFT, packed & LOW


def sum_cells(cells: np.ndarray, counts: np.ndarray, label_sums: np.ndarray) -> Counts:
    """The distinct cells, ascending, with the sums of (m,) counts and label sums over equal cells, of their types."""
    distinct, inverse = np.unique(cells, return_inverse=True)
    total, positives = (np.bincount(inverse, v, len(distinct)).astype(v.dtype) for v in (counts, label_sums))
    return distinct, total, positives


def buckets_of(cells: np.ndarray, buckets: int) -> np.ndarray:
    """(m,) bucket of each flat cell, by the hash that `Tally` uses."""
    from agglearn.observations import kernels

    return kernels.buckets_of(np.ascontiguousarray(cells, np.int64), buckets)


# -- memory and time --------------------------------------------------------------------------------------------------


class Workload(NamedTuple):
    tables: int
    records: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        time = f"{self.seconds:.0f} s" if self.seconds < 600 else f"{self.seconds / 3600:,.1f} h"
        return f"{self.tables:,} tables take about {bytes_text(self.bytes)} of memory and {time}"

    def refuse_beyond(self, limit: int) -> None:
        if self.bytes > limit:
            advice = "use fewer features, fewer pairs, fewer or hashed values"
            raise DataError(f"{self}, more than the {bytes_text(limit)} that are allowed; {advice}")


Check = Callable[[Workload], None]


def within_memory(workload: Workload) -> None:
    workload.refuse_beyond(memory_bytes())


def workload_of(
    sizes: np.ndarray, pairs: str | Iterable[Key], records: int = 0, cross_buckets: int | None = None
) -> Workload:
    sizes = np.asarray(sizes, dtype=float)
    n_tables, dense, occupied = 0, 0.0, 0.0
    for cells in _cells(sizes, pairs, cross_buckets or np.inf):
        n_tables += len(cells)
        dense += cells[cells <= DENSE_CELLS].sum()
        occupied += np.minimum(cells, records).sum()
    fraction = min(1.0, DENSE_TOTAL / max(dense, 1))  # of the tables that is in memory
    memory = TABLE_BYTES * n_tables + CELL_BYTES * occupied + 8 * dense * fraction
    memory += 16 * FIRST_SLOTS * n_tables * (1 - fraction)
    seconds = TABLE_SECONDS * n_tables + RECORD_SECONDS * records * n_tables + CELL_SECONDS * occupied
    return Workload(n_tables, records, int(memory), float(seconds))


def _cells(sizes: np.ndarray, pairs: str | Iterable[Key], max_cells: float) -> Iterator[np.ndarray]:
    yield sizes
    if pairs == "all":
        yield from (np.minimum(sizes[i] * sizes[i + 1 :], max_cells) for i in range(len(sizes)))
    elif not isinstance(pairs, str):
        first, second = np.array(list(pairs), dtype=int).reshape(-1, 2).T
        yield np.minimum(sizes[first] * sizes[second], max_cells)
