"""The model of one individual: pairwise potentials on a tree (Sun 2019, eq. 2.1), and the law of a population's tables.

p(x) = (1/Z) Π φ_ij(x_i, x_j) over the edges of a tree; n(x_i, x_j) counts individuals of a population of M.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.special import gammaln, xlogy

from agglearn.collective.propagation import Beliefs, propagate
from agglearn.collective.tree import PaddedTree
from agglearn.errors import DataError


class TreeModel(PaddedTree):
    """Pairwise model on a tree.

    Parameters
    ----------
    edges : pairs (i, j) of nodes 0 … N−1.
    log_potentials : for each edge an (L_i, L_j) array of log φ; −inf forbids a pair. The same array object given for
        several edges is kept once.

    Attributes
    ----------
    n_nodes, sizes : number of nodes, and of the states of each.

    Raises
    ------
    DataError : the edges make no tree, tables do not fit together, or no assignment has a positive probability.
    """

    def __init__(self, edges: Sequence[tuple[int, int]], log_potentials: Sequence[np.ndarray]):
        super().__init__(edges, log_potentials)
        if not np.isfinite(self.log_partition):
            raise DataError("the potentials forbid every assignment: along some path each pair has potential zero")

    def with_potentials(self, log_potentials) -> "TreeModel":
        """The same tree with other potentials."""
        return TreeModel(self.edges, log_potentials)

    # -- one individual -----------------------------------------------------------------------------------------

    @cached_property
    def _beliefs(self) -> Beliefs:
        return propagate(self, np.where(self.states, 0.0, -np.inf))

    @property
    def log_partition(self) -> float:
        """log Z."""
        return self._beliefs.log_z

    @property
    def node_marginals(self) -> list[np.ndarray]:
        """μ_i, one (L_i,) array per node, by belief propagation."""
        return self.split_nodes(self._beliefs.marginals)

    @property
    def edge_marginals(self) -> list[np.ndarray]:
        """μ_ij, one (L_i, L_j) array per edge."""
        return self.split_edges(self._beliefs.pairs())

    def sample_individuals(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(n, N) states of independent individuals."""
        conditionals, first = self._beliefs.conditionals()
        x = np.empty((n, self.n_nodes), np.int64)
        root, *rest = self.rooted.order
        x[:, root] = rng.choice(self.size, n, p=first)
        for node in rest:
            steps = conditionals[node].cumsum(axis=1)
            u = rng.random(n) * steps[x[:, self.rooted.parent[node]], -1]
            x[:, node] = (steps[x[:, self.rooted.parent[node]]] <= u[:, None]).sum(axis=1)
        return x

    # -- a population -------------------------------------------------------------------------------------------

    def sample_tables(self, population_size: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Edge tables of a population, drawn directly (multinomials from the root down): time does not depend on M."""
        conditionals, first = self._beliefs.conditionals()
        root, *rest = self.rooted.order
        counts = {root: rng.multinomial(population_size, first / first.sum())}
        tables = np.zeros((self.n_nodes, self.size, self.size), np.int64)
        for node in rest:
            laws = conditionals[node]
            sums = laws.sum(axis=1, keepdims=True)
            tables[node] = rng.multinomial(
                counts[self.rooted.parent[node]], np.where(sums > 0, laws / np.where(sums > 0, sums, 1), 1 / self.size)
            )
            counts[node] = tables[node].sum(axis=0)
        return self.split_edges(tables)

    def tables_of(self, individuals: np.ndarray) -> list[np.ndarray]:
        """Edge tables of individuals (n, N)."""
        found = []
        for i, j in self.edges:
            cells = individuals[:, i] * self.sizes[j] + individuals[:, j]
            found.append(np.bincount(cells, minlength=self.sizes[i] * self.sizes[j]).reshape(self.sizes[i], -1))
        return found

    def node_tables_of(self, edge_tables) -> list[np.ndarray]:
        """Node tables that edge tables imply, (L_i,) each: the mean over the edges at a node."""
        return self._means(self._sums(edge_tables))

    def _sums(self, edge_tables) -> list[tuple[np.ndarray, np.ndarray]]:
        """Sums of the rows and of the columns of each table."""
        return [(np.sum(table, axis=1), np.sum(table, axis=0)) for table in edge_tables]

    def _means(self, sums) -> list[np.ndarray]:
        """The mean of the edges' sums at each node."""
        found = [np.zeros(size) for size in self.sizes]
        for (i, j), (rows, columns) in zip(self.edges, sums, strict=True):
            found[i] += rows / self.degrees[i]
            found[j] += columns / self.degrees[j]
        return found

    def violation(self, edge_tables, population_size: float) -> float:
        """L1 distance from the local polytope (eq. 2.5): sums of edges beside node tables, totals, negative parts."""
        sums = self._sums(edge_tables)
        nodes, total = self._means(sums), 0.0
        for (i, j), table, (rows, columns) in zip(self.edges, edge_tables, sums, strict=True):
            total += np.abs(rows - nodes[i]).sum() + np.abs(columns - nodes[j]).sum()
            if np.min(table) < 0:
                total -= np.minimum(table, 0).sum()
        return float(total + sum(abs(n.sum() - population_size) for n in nodes))

    def log_probability(self, edge_tables, population_size: int, form: str = "potentials") -> float:
        """log p(n; θ) of integer tables, −inf outside the integer scaled local polytope.

        form : `potentials` (eq. 2.6) or `marginals` (eq. 2.4); they agree.
        """
        tables = [np.asarray(t, float) for t in edge_tables]
        nodes = self.node_tables_of(tables)
        if any((t < 0).any() or (t != np.round(t)).any() for t in tables) or self.violation(tables, population_size):
            return -np.inf
        base = gammaln(population_size + 1) - sum(gammaln(t + 1).sum() for t in tables)
        base += sum((d - 1) * gammaln(n + 1).sum() for d, n in zip(self.degrees, nodes, strict=True))
        if form == "marginals":
            base += sum(xlogy(t, m).sum() for t, m in zip(tables, self.edge_marginals, strict=True))
            mine = zip(self.degrees, nodes, self.node_marginals, strict=True)
            return float(base - sum((d - 1) * xlogy(n, m).sum() for d, n, m in mine))
        return float(base + self.score(tables) - population_size * self.log_partition)

    def score(self, edge_tables) -> float:
        """Σ n_ij log φ_ij; −inf where a forbidden pair is counted."""
        total = 0.0
        for table, log_phi in zip(edge_tables, self.log_potentials, strict=True):
            part = np.vdot(table, log_phi)
            if np.isnan(part):  # a forbidden pair where nobody goes counts as nothing
                used = np.asarray(table) != 0
                part = np.sum(table[used] * log_phi[used])
            total += float(part)
        return total

    def bethe_entropy(self, edge_tables, node_tables) -> float:
        """H_B of scaled tables (below eq. 2.7)."""
        total = -sum(_negative_entropy(t) for t in edge_tables)
        return float(
            total + sum((d - 1) * _negative_entropy(n) for d, n in zip(self.degrees, node_tables, strict=True))
        )


class ChainModel(TreeModel):
    """A Markov chain: T−1 potentials between consecutive steps.

    Parameters
    ----------
    log_potentials : T−1 arrays (L, L), log φ_t(x_t, x_{t+1}); a (T−1, L, L) array does too.
    """

    def __init__(self, log_potentials):
        super().__init__([(t, t + 1) for t in range(len(log_potentials))], list(log_potentials))

    def with_potentials(self, log_potentials) -> "ChainModel":
        return ChainModel(log_potentials)

    def node_name(self, node: int) -> str:
        """A node as the user numbers it; the nodes of a chain are steps."""
        return f"node {node} (step {node})"


def _negative_entropy(table: np.ndarray) -> float:
    """Σ n log n, NaN where an entry is negative. NumPy's logarithm takes a tenth of the time of SciPy's `xlogy`."""
    with np.errstate(invalid="ignore"):
        return float(np.vdot(table, np.log(table + (table == 0))))
