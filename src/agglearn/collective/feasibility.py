"""Whether any tables have all counts that were observed exactly: a linear program over the cells that somebody can be in."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from agglearn.collective.model import TreeModel
from agglearn.collective.noise import Exact
from agglearn.errors import DataError

ENOUGH = 1e-9  # share of M that sums of counts may differ by
FIRM = 100.0  # weight of a count that agrees with all counts before it


def refuse_impossible(model: TreeModel, population_size: float, observed: list[tuple]) -> None:
    """Check that exact counts, the potentials and M allow tables of real numbers.

    Counts are added from the root down. The error names the first node and edge whose counts make it impossible, and
    the count that is furthest from the nearest possible tables.

    Parameters
    ----------
    population_size : M. observed : (noise, cells, counts), as `Problem.observed` gives them.

    Raises
    ------
    DataError : no tables have these counts.
    """
    tables = _Tables(model, population_size, observed)
    good, bad = 0, model.n_nodes
    if tables.possible(bad):
        return
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if tables.possible(middle) else (good, middle)
    off = tables.nearest(bad)
    worst = int(np.argmax(np.abs(off)))
    count, found = tables.y[worst], tables.y[worst] + off[worst]
    raise DataError(_described(model, population_size, model.rooted.order[bad - 1], tables.cells[worst], count, found))


class _Tables:
    """The linear program. Variables: every node cell, then each edge cell whose potential is positive.

    cells, y : exact counts. rank : place of the node, or of the node below the edge, that each belongs to, from the root down.
    """

    def __init__(self, model: TreeModel, population_size: float, observed: list[tuple]):
        tree, size = model.rooted, model.size
        possible = np.isfinite(model.log_tables)[model.which]
        possible[tree.order[0]] = False
        child, i, j = np.nonzero(possible)
        n_nodes = model.n_nodes * size
        edge = n_nodes + np.arange(len(child))
        self.population_size, self.n = population_size, n_nodes + len(child)
        self.place = np.concatenate([np.arange(n_nodes), np.full(possible.size, -1)])
        self.place[n_nodes + np.flatnonzero(possible)] = edge
        below = tree.order[1:, None] * size + np.arange(size)
        above = tree.parent[tree.order[1:], None] * size + np.arange(size)
        population = _matrix(np.zeros(size, int), tree.order[0] * size + np.arange(size), 1.0, (1, self.n))
        self.sums = sparse.vstack([
            _matrix(child * size + state, edge, 1.0, (n_nodes, self.n)) - _matrix(below, node, 1.0, (n_nodes, self.n))
            for state, node in ((i, above), (j, below))
        ] + [population])  # fmt: skip
        self.total = np.concatenate([np.zeros(2 * n_nodes), [population_size]])
        self.upper = np.concatenate([np.where(model.states.ravel(), np.inf, 0.0), np.full(len(child), np.inf)])
        self.cells, self.y = _exact_counts(observed)
        node = np.where(self.cells < n_nodes, self.cells // size, (self.cells - n_nodes) // size**2)
        self.rank = np.argsort(tree.order)[node]

    def possible(self, n: int) -> bool:
        """Whether tables exist that have the counts of the first n nodes and of the edges between them."""
        return float(np.abs(self.nearest(n)).sum()) <= ENOUGH * self.population_size

    def nearest(self, n: int) -> np.ndarray:
        """What the nearest tables have more than each count; the last node's counts give way before the others'."""
        used = np.flatnonzero(self.rank < n)
        k, at = len(used), self.place[self.cells[used]]
        here = np.flatnonzero(at >= 0)
        counts = sparse.hstack([_matrix(here, at[here], 1.0, (k, self.n)), sparse.eye(k), -sparse.eye(k)])
        sums = sparse.hstack([self.sums, sparse.csr_matrix((len(self.total), 2 * k))])
        weight = np.where(self.rank[used] == n - 1, 1.0, FIRM)
        upper = np.concatenate([self.upper, np.full(2 * k, np.inf)])
        found = linprog(
            np.concatenate([np.zeros(self.n), weight, weight]), A_eq=sparse.vstack([sums, counts]).tocsr(),
            b_eq=np.concatenate([self.total, self.y[used]]), bounds=np.stack([np.zeros(len(upper)), upper], axis=1),
        )  # fmt: skip
        if found.x is None:
            raise DataError(
                f"exact counts: it was not found out whether tables with these counts exist ({found.message})"
            )
        off = np.zeros(len(self.cells))
        off[used] = found.x[self.n + k :] - found.x[self.n : self.n + k]
        return off


def _matrix(rows, columns, value: float, shape) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.full(np.size(rows), value), (np.ravel(rows), np.ravel(columns))), shape)


def _exact_counts(observed: list[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """Cells (node cells, or after them edge cells) and their exact counts."""
    found = [(cells, y) for noise, cells, y in observed if isinstance(noise, Exact)]
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def _described(model: TreeModel, population_size: float, node: int, cell: int, count: float, nearest: float) -> str:
    place = model.node_name(node)
    if node != model.rooted.order[0]:
        a, b = model.edges[model.rooted.edge[node]]
        place = f"edge {a}–{b} to {place}"
    n_cells = model.n_nodes * model.size
    if cell < n_cells:
        where = f"{model.node_name(cell // model.size)}, state {cell % model.size}"
    else:
        where = model.edge_cell_name(cell - n_cells)
    return (
        f"{place}: the exact counts up to here contradict each other, the potentials or the population of {population_size:g}; "
        f"{where} counts {count:g}, the nearest possible tables have {nearest:g}; correct the counts, or declare their noise"
    )
