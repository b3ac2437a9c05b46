"""How much memory and time counting takes, before it begins: the number of tables grows with the square of the features."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from agglearn.errors import DataError
from agglearn.machine import memory_bytes
from agglearn.observations.counting import DENSE_CELLS, DENSE_TOTAL, FIRST_SLOTS
from agglearn.text import bytes_text

# measured on tables of 9 to 9,000,000 cells, saving included; within a factor of two
TABLE_BYTES, CELL_BYTES = 7000, 100  # of a table, of an occupied cell
TABLE_SECONDS, RECORD_SECONDS, CELL_SECONDS = (
    3e-4,
    2e-9,
    5e-7,
)  # of a table, of a record in a table, of an occupied cell


class Workload(NamedTuple):
    """What counting takes.

    Attributes
    ----------
    tables, records : how many. bytes : memory. seconds : time, on two cores.
    """

    tables: int
    records: int
    bytes: int
    seconds: float

    def __str__(self):
        time = f"{self.seconds:.0f} s" if self.seconds < 600 else f"{self.seconds / 3600:,.1f} h"
        return f"{self.tables:,} tables take about {bytes_text(self.bytes)} of memory and {time}"

    def refuse_beyond(self, limit: int) -> None:
        """DataError where the memory is beyond a limit in bytes."""
        if self.bytes > limit:
            raise DataError(
                f"{self}, more than the {bytes_text(limit)} that are allowed; use fewer features, fewer pairs, fewer or hashed values"
            )


Check = Callable[[Workload], None]


def within_memory(workload: Workload) -> None:
    """Refuse what is beyond this machine's memory."""
    workload.refuse_beyond(memory_bytes())


def workload_of(
    sizes: np.ndarray, pairs: str | Iterable[tuple[int, int]], records: int = 0, cross_buckets: int | None = None
) -> Workload:
    """The work of counting tables.

    Parameters
    ----------
    sizes : (D,) modalities of the features. pairs : `all`, `none`, or positions of features.
    records : at most so many cells of a table are occupied; 0 for a lower bound.
    cross_buckets : cells that a pair's table has at most.
    """
    sizes = np.asarray(sizes, dtype=float)
    n_tables, dense, occupied = 0, 0.0, 0.0
    for cells in _cells(sizes, pairs, cross_buckets or np.inf):
        n_tables += len(cells)
        dense += cells[cells <= DENSE_CELLS].sum()
        occupied += np.minimum(cells, records).sum()
    share = min(1.0, DENSE_TOTAL / max(dense, 1))  # of the tables that are held whole
    memory = TABLE_BYTES * n_tables + CELL_BYTES * occupied + 8 * dense * share
    memory += 16 * FIRST_SLOTS * n_tables * (1 - share)
    seconds = TABLE_SECONDS * n_tables + RECORD_SECONDS * records * n_tables + CELL_SECONDS * occupied
    return Workload(n_tables, records, int(memory), float(seconds))


def _cells(sizes: np.ndarray, pairs, most: float):
    """Cells of the tables, some tables at a time."""
    yield sizes
    if isinstance(pairs, str):
        if pairs == "all":
            yield from (np.minimum(sizes[i] * sizes[i + 1 :], most) for i in range(len(sizes)))
    else:
        at = np.array(list(pairs), dtype=int).reshape(-1, 2)
        yield np.minimum(sizes[at[:, 0]] * sizes[at[:, 1]], most)
