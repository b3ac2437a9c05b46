"""Whether some tables have all exact counts: a linear program over the cells that somebody can be in."""

from bisect import bisect_left

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from agglearn.collective.kernels import EXACT
from agglearn.collective.model import TreeModel
from agglearn.collective.noise import NoiseModel
from agglearn.errors import DataError

TOLERANCE = 1e-9  # relative to M, of sums of counts
OLD_WEIGHT = 100.0  # weight of a count that agrees with all counts before it
Observed = list[tuple[NoiseModel, np.ndarray, np.ndarray]]  # noise, cells, counts: see `Problem.list_observed`


def refuse_impossible(model: TreeModel, population_size: float, observed: Observed) -> None:
    """DataError if exact counts allow no tables of real numbers. It names the first impossible node and edge."""
    program = _Program(model, population_size, observed)
    if program.is_feasible(model.n_nodes):
        return
    impossible = 1 + bisect_left(range(1, model.n_nodes), True, key=lambda n: not program.is_feasible(n))
    excess = program.nearest_excess(impossible)
    worst = int(np.argmax(np.abs(excess)))
    count, node = program.counts[worst], model.rooted.order[impossible - 1]
    end = model.node_name(node)
    if impossible > 1:
        end = f"{model.edge_name(node)} to {end}"
    raise DataError(
        f"{end}: the exact counts up to here contradict each other, the potentials or the population of {population_size:g}. "
        f"{model.cell_name(program.cells[worst])} counts {count:g}, the nearest possible tables have {count + excess[worst]:g}. "
        "Correct the counts, or declare their noise"
    )


class _Program:
    """Variables are node cells, then possible edge cells. `rank` is each count's position from the root down."""

    def __init__(self, model: TreeModel, population_size: float, observed: Observed) -> None:
        tree, size = model.rooted, model.size
        possible = np.isfinite(model.log_tables)[model.table_index]
        possible[tree.order[0]] = False
        child, i, j = np.nonzero(possible)
        n_nodes = model.n_nodes * size
        edge = n_nodes + np.arange(len(child))
        self.population_size, self.n_variables = population_size, n_nodes + len(child)
        self.variable_of = np.concatenate([np.arange(n_nodes), np.full(possible.size, -1)])
        self.variable_of[n_nodes + np.flatnonzero(possible)] = edge
        below = tree.order[1:, None] * size + np.arange(size)
        above = tree.parent[tree.order[1:], None] * size + np.arange(size)
        shape = n_nodes, self.n_variables
        root = tree.order[0] * size + np.arange(size)
        population = indicator_matrix(np.zeros(size, int), root, (1, self.n_variables))
        self.sums = sparse.vstack([
            indicator_matrix(child * size + state, edge, shape) - indicator_matrix(below, node, shape)
            for state, node in ((i, above), (j, below))
        ] + [population])  # fmt: skip
        self.totals = np.concatenate([np.zeros(2 * n_nodes), [population_size]])
        self.upper = np.concatenate([np.where(model.states.ravel(), np.inf, 0.0), np.full(len(child), np.inf)])
        exact = [(cells, y) for noise, cells, y in observed if noise.code == EXACT]
        self.cells, self.counts = np.concatenate([c for c, _ in exact]), np.concatenate([y for _, y in exact])
        node = np.where(self.cells < n_nodes, self.cells // size, (self.cells - n_nodes) // size**2)
        self.rank = np.argsort(tree.order)[node]

    def is_feasible(self, n: int) -> bool:
        """Whether some tables have the counts of the first n nodes and of the edges between them."""
        return float(np.abs(self.nearest_excess(n)).sum()) <= TOLERANCE * self.population_size

    def nearest_excess(self, n: int) -> np.ndarray:
        """Nearest possible tables minus counts. The last node's counts give way before the others'."""
        used = np.flatnonzero(self.rank < n)
        k, variables = len(used), self.variable_of[self.cells[used]]
        rows = np.flatnonzero(variables >= 0)
        counts = indicator_matrix(rows, variables[rows], (k, self.n_variables))
        counts = sparse.hstack([counts, sparse.eye(k), -sparse.eye(k)])
        sums = sparse.hstack([self.sums, sparse.csr_matrix((len(self.totals), 2 * k))])
        weight = np.where(self.rank[used] == n - 1, 1.0, OLD_WEIGHT)
        upper = np.concatenate([self.upper, np.full(2 * k, np.inf)])
        solution = linprog(
            np.concatenate([np.zeros(self.n_variables), weight, weight]), A_eq=sparse.vstack([sums, counts]).tocsr(),
            b_eq=np.concatenate([self.totals, self.counts[used]]), bounds=np.stack([np.zeros(len(upper)), upper], axis=1),
        )  # fmt: skip
        if solution.x is None:
            raise DataError(
                f"exact counts: the solver could not decide whether tables with these counts exist ({solution.message})"
            )
        excess = np.zeros(len(self.cells))
        excess[used] = solution.x[self.n_variables + k :] - solution.x[self.n_variables : self.n_variables + k]
        return excess


def indicator_matrix(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_matrix:
    """Matrix of a shape with ones at these rows and columns."""
    return sparse.csr_matrix((np.ones(np.size(rows)), (np.ravel(rows), np.ravel(columns))), shape)
