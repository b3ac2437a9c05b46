"""Memory and time that counting will take. The number of tables grows with the square of the features."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from agglearn.errors import DataError
from agglearn.machine import memory_bytes
from agglearn.observations.counting import DENSE_CELLS, DENSE_TOTAL, FIRST_SLOTS, Key
from agglearn.text import bytes_text

# Measured on tables of 9 to 9,000,000 cells, with saving: right within a factor of two.
TABLE_BYTES, CELL_BYTES = 7000, 100  # of a table, of an occupied cell
TABLE_SECONDS, CELL_SECONDS = 3e-4, 5e-7
RECORD_SECONDS = 2e-9  # of a record in a table


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
