"""Model of one individual, p(x) = (1/Z) Π φ_ij(x_i, x_j) on a tree (Sun 2019, eq. 2.1), and a population's tables."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.special import gammaln, xlogy

from agglearn.collective.propagation import Beliefs, propagate
from agglearn.collective.tree import PaddedTree, Tables
from agglearn.errors import DataError


class TreeModel(PaddedTree):
    """Pairwise model on a tree (Sun 2019, eq. 2.1), with N = `n_nodes` nodes of `sizes` (N,) states.

    Parameters
    ----------
    edges : sequence of pairs (i, j)
        Edges between nodes 0 … N−1, which form a tree (else DataError).
    log_potentials : sequence of ndarray
        (L_i, L_j) log φ of each edge. −inf forbids a pair. An array given for several edges is stored once. DataError
        for tables of probabilities.
    """

    def __init__(self, edges: Sequence[tuple[int, int]], log_potentials: Sequence[np.ndarray]) -> None:
        super().__init__(edges, log_potentials)
        for (i, j), table in zip(self.edges, self.log_potentials, strict=True):
            if table.shape[1] > 1 and (table >= 0).all() and np.allclose(table.sum(axis=1), 1):
                raise DataError(f"edge {i}–{j}: rows add up to 1, as probabilities do; give their logarithms (np.log)")
        if not np.isfinite(self.log_partition):
            raise DataError("the potentials forbid every assignment: along some path each pair has potential zero")

    # -- one individual -----------------------------------------------------------------------------------------

    @cached_property
    def beliefs(self) -> Beliefs:
        """Marginals and messages without evidence."""
        return propagate(self, np.where(self.states, 0.0, -np.inf))

    @property
    def log_partition(self) -> float:
        """log Z."""
        return self.beliefs.log_z

    @property
    def node_marginals(self) -> list[np.ndarray]:
        """μ_i, one (L_i,) array per node, by belief propagation."""
        return self.split_nodes(self.beliefs.marginals)

    @property
    def edge_marginals(self) -> list[np.ndarray]:
        """μ_ij, one (L_i, L_j) array per edge."""
        return self.split_edges(self.beliefs.pairs)

    def sample_individuals(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the (n, N) states of independent individuals.

        Parameters
        ----------
        n, rng : int, numpy.random.Generator
        """
        conditionals, first = self.beliefs.conditionals()
        x = np.empty((n, self.n_nodes), np.int64)
        root, *below = self.rooted.order
        x[:, root] = rng.choice(self.size, n, p=first)
        for node in below:
            steps = conditionals[node].cumsum(axis=1)
            u = rng.random(n) * steps[x[:, self.rooted.parent[node]], -1]
            x[:, node] = (steps[x[:, self.rooted.parent[node]]] <= u[:, None]).sum(axis=1)
        return x

    # -- a population -------------------------------------------------------------------------------------------

    def sample_tables(self, population_size: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw the edge tables of a population by multinomials from the root down, in a time that does not depend on M.

        Parameters
        ----------
        population_size, rng : int, numpy.random.Generator
        """
        conditionals, first = self.beliefs.conditionals()
        root, *below = self.rooted.order
        counts = {root: rng.multinomial(population_size, first / first.sum())}
        tables = np.zeros((self.n_nodes, self.size, self.size), np.int64)
        for node in below:
            sums = conditionals[node].sum(axis=1, keepdims=True)
            probabilities = np.where(sums > 0, conditionals[node] / np.where(sums > 0, sums, 1), 1 / self.size)
            tables[node] = rng.multinomial(counts[self.rooted.parent[node]], probabilities)
            counts[node] = tables[node].sum(axis=0)
        return self.split_edges(tables)

    def tables_of(self, individuals: np.ndarray) -> list[np.ndarray]:
        """Count individuals in edge tables.

        Parameters
        ----------
        individuals : ndarray of shape (n, N)
        """
        tables = []
        for i, j in self.edges:
            cells = individuals[:, i] * self.sizes[j] + individuals[:, j]
            tables.append(np.bincount(cells, minlength=self.sizes[i] * self.sizes[j]).reshape(self.sizes[i], -1))
        return tables

    def node_tables_of(self, edge_tables: Tables) -> list[np.ndarray]:
        """Return the (L_i,) node tables that edge tables (L_i, L_j) imply: the mean over the edges at a node.

        Parameters
        ----------
        edge_tables : sequence of ndarray
        """
        nodes = [np.zeros(size) for size in self.sizes]
        for (i, j), table in zip(self.edges, edge_tables, strict=True):
            nodes[i] += np.sum(table, axis=1) / self.degrees[i]
            nodes[j] += np.sum(table, axis=0) / self.degrees[j]
        return nodes

    def violation(self, edge_tables: Tables, population_size: float) -> float:
        """Return the L1 distance from the local polytope (eq. 2.5): inconsistent sums, wrong totals, negative entries.

        Parameters
        ----------
        edge_tables, population_size : sequence of ndarray, float
        """
        nodes, total = self.node_tables_of(edge_tables), 0.0
        for (i, j), table in zip(self.edges, edge_tables, strict=True):
            total += np.abs(np.sum(table, axis=1) - nodes[i]).sum() + np.abs(np.sum(table, axis=0) - nodes[j]).sum()
            total -= np.minimum(table, 0).sum()
        return float(total + sum(abs(n.sum() - population_size) for n in nodes))

    def log_probability(self, edge_tables: Tables, population_size: int, form: str = "potentials") -> float:
        """Return log p(n) of integer tables, −inf outside the integer scaled local polytope.

        Parameters
        ----------
        edge_tables, population_size : sequence of ndarray, int
        form : {'potentials', 'marginals'}
            Formula: eq. 2.6, or eq. 2.4, with the same value.
        """
        tables = [np.asarray(t, float) for t in edge_tables]
        nodes = self.node_tables_of(tables)
        if any((t < 0).any() or (t != np.round(t)).any() for t in tables) or self.violation(tables, population_size):
            return -np.inf
        base = gammaln(population_size + 1) - sum(gammaln(t + 1).sum() for t in tables)
        base += sum((d - 1) * gammaln(n + 1).sum() for d, n in zip(self.degrees, nodes, strict=True))
        if form == "marginals":
            base += sum(xlogy(t, m).sum() for t, m in zip(tables, self.edge_marginals, strict=True))
            separators = zip(self.degrees, nodes, self.node_marginals, strict=True)
            return float(base - sum((d - 1) * xlogy(n, m).sum() for d, n, m in separators))
        return float(base + self.score(tables) - population_size * self.log_partition)

    def score(self, edge_tables: Tables) -> float:
        """Return Σ n_ij log φ_ij, −inf if somebody is counted in a forbidden pair.

        Parameters
        ----------
        edge_tables : sequence of ndarray
        """
        total = 0.0
        for table, log_phi in zip(edge_tables, self.log_potentials, strict=True):
            term = np.vdot(table, log_phi)
            if np.isnan(term):  # 0 · −inf of a forbidden pair without anybody, which contributes zero
                used = np.asarray(table) != 0
                term = np.sum(table[used] * log_phi[used])
            total += float(term)
        return total

    def bethe_entropy(self, edge_tables: Tables, node_tables: Sequence[np.ndarray]) -> float:
        """Return H_B of scaled tables (below eq. 2.7).

        Parameters
        ----------
        edge_tables, node_tables : sequence of ndarray
        """
        total = -sum(_negative_entropy(t) for t in edge_tables)
        separators = zip(self.degrees, node_tables, strict=True)
        return float(total + sum((d - 1) * _negative_entropy(n) for d, n in separators))


class ChainModel(TreeModel):
    """A Markov chain: T−1 potentials between consecutive steps.

    Parameters
    ----------
    log_potentials : sequence of ndarray, or ndarray of shape (T−1, L, L)
        log φ_t(x_t, x_{t+1}). The first one holds the initial distribution, too: without it, and with rows of
        probabilities, the start is uniform. `reconstruct` learns it.
    """

    def __init__(self, log_potentials: Sequence[np.ndarray] | np.ndarray) -> None:
        super().__init__([(t, t + 1) for t in range(len(log_potentials))], list(log_potentials))

    def node_name(self, node: int) -> str:
        return f"node {node} (step {node})"


def on_paths(model: TreeModel, states: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which states (N, L) and pairs (N, L, L) by child are on a path of such states and pairs only."""
    ones = TreeModel(model.edges, [np.zeros(t.shape) for t in model.log_potentials])
    beliefs = propagate(ones, *(np.where(mask, 0.0, -np.inf) for mask in (states, pairs)))
    return beliefs.marginals > 0, beliefs.pairs > 0


def _negative_entropy(table: np.ndarray) -> float:
    """Σ n log n, NaN if an entry is negative. NumPy's logarithm takes a tenth of the time of SciPy's `xlogy`."""
    with np.errstate(invalid="ignore"):
        return float(np.vdot(table, np.log(table + (table == 0))))
