"""Exact MAP and exact marginals by message passing over tables (Sun 2019, Theorem 1): the truth of the tests.

The CGM distribution factors along the tree into edge tables with node tables as separators. Every table with M in it is
enumerated once; messages between node tables are maxima or sums over the edge tables that connect them.
"""

from math import comb
from typing import Literal

import numpy as np
from scipy.special import gammaln, logsumexp

from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference
from agglearn.errors import DataError
from agglearn.settings import Count

MOST_TABLES = 6_000_000


def infer_exact(
    model,
    counts,
    population_size,
    *,
    trace=False,
    kind: Literal["map", "marginals"] = "map",
    max_tables: Count = MOST_TABLES,
):
    """The most probable tables (`kind="map"`) or their posterior mean (`kind="marginals"`), integer tables only.

    details : `log_evidence`, log p(y) (for `marginals`), or `log_posterior`, log p(n) p(y | n) at the maximum.

    Raises
    ------
    DataError : more than `max_tables` tables, a population size that is no integer, impossible evidence.
    """
    if kind not in ("map", "marginals"):
        raise DataError(f"kind: {kind!r} is not known; use 'map' or 'marginals'")
    if population_size != int(population_size):
        raise DataError(f"population_size: exact inference needs a whole number, got {population_size}")
    passing = TableMessagePassing(Problem(model, counts, int(population_size)), kind == "map", max_tables)
    edges = passing.best() if kind == "map" else passing.means()
    nodes = model.node_tables_of(edges)
    name = "log_posterior" if kind == "map" else "log_evidence"
    return Inference(edges, nodes, passing.problem.objective_of(edges, nodes), details={name: passing.total})


class TableMessagePassing:
    """Messages over tables, up the tree.

    total : log of the maximum, or of the sum, of p(n) p(y | n).
    """

    def __init__(self, problem: Problem, maximise: bool, max_tables: int):
        self.problem, self.model, self.maximise = problem, problem.model, maximise
        m = int(problem.M)
        for c in self.model.rooted.order[1:]:
            _refuse(f"edge {c}", m, int(np.isfinite(self.model.log_tables[self.model.which[c]]).sum()), max_tables)
        for i, size in enumerate(self.model.sizes):
            _refuse(f"node {i}", m, int(size), max_tables)
        self.log_factorials = gammaln(np.arange(m + 1) + 1)
        self.nodes = [compositions(m, int(s)) for s in self.model.sizes]
        losses, self.enumerated = _losses(problem), {}
        self.node_terms = [self._node_term(i, losses[0]) for i in range(self.model.n_nodes)]
        self.edges = {c: self._edge(c, losses[1]) for c in self.model.rooted.order[1:]}
        self._up()

    def _node_term(self, i: int, losses) -> np.ndarray:
        """log of (n_i!)^(ν−1) p(y_i | n_i) for every table of node i."""
        tables = self.nodes[i]
        return (self.model.degrees[i] - 1) * self.log_factorials[tables].sum(axis=1) - losses(i, tables)

    def _edge(self, c: int, losses):
        """All edge tables with positive potential: (k, cells), their margins' places, log φ^n p(y | n) / n!."""
        model = self.model
        shape = int(model.sizes[model.rooted.parent[c]]), int(model.sizes[c])
        log_phi = model.log_tables[model.which[c]][: shape[0], : shape[1]].reshape(-1)
        allowed = np.flatnonzero(np.isfinite(log_phi))
        small, tables, rows, columns, log_factorials = self._tables_of(shape, tuple(allowed))
        value = small @ log_phi[allowed] - log_factorials
        return tables, rows, columns, value - losses(c, tables)

    def _tables_of(self, shape: tuple[int, int], allowed: tuple[int, ...]):
        """All tables of a shape with individuals in `allowed` cells only: these cells, the tables, the places of their
        margins, log n!. Most edges of a model share them."""
        if (shape, allowed) not in self.enumerated:
            small = compositions(int(self.problem.M), len(allowed))
            tables = np.zeros((len(small), *shape), small.dtype)
            tables.reshape(len(small), -1)[:, allowed] = small
            rows, columns = (
                _places(tables.sum(axis=2 - k), compositions(int(self.problem.M), shape[k])) for k in (0, 1)
            )
            found = small, tables, rows, columns, self.log_factorials[small].sum(axis=1)
            self.enumerated[shape, allowed] = found
        return self.enumerated[shape, allowed]

    def _up(self) -> None:
        model, order = self.model, self.model.rooted.order
        self.beliefs = {i: self.node_terms[i].copy() for i in order}  # node term and messages of the children
        self.messages = {}
        for c in order[:0:-1]:
            _, rows, _, value = self.edges[c]
            p = model.rooted.parent[c]
            reached = value + self.beliefs[c][self.edges[c][2]]
            self.messages[c] = _reduce(reached, rows, len(self.nodes[p]), self.maximise)
            self.beliefs[p] = self.beliefs[p] + self.messages[c]
        root = self.beliefs[order[0]]
        constant = gammaln(self.problem.M + 1) - self.problem.M * model.log_partition
        self.total = float((root.max() if self.maximise else logsumexp(root)) + constant)
        if not np.isfinite(self.total):
            raise DataError("no tables of this population can give these counts")

    def best(self) -> list[np.ndarray]:
        """Edge tables of the maximum, followed down from the root."""
        model, order = self.model, self.model.rooted.order
        chosen, found = {order[0]: int(np.argmax(self.beliefs[order[0]]))}, self._empty()
        for c in order[1:]:
            tables, rows, columns, value = self.edges[c]
            here = np.flatnonzero(rows == chosen[model.rooted.parent[c]])
            k = here[np.argmax((value + self.beliefs[c][columns])[here])]
            found[c, : tables.shape[1], : tables.shape[2]], chosen[c] = tables[k], int(columns[k])
        return [t.astype(float) for t in model.split_edges(found)]

    def means(self) -> list[np.ndarray]:
        """Posterior mean of the edge tables."""
        model, order = self.model, self.model.rooted.order
        law, found = {order[0]: self.beliefs[order[0]] - logsumexp(self.beliefs[order[0]])}, self._empty()
        for c in order[1:]:
            tables, rows, columns, value = self.edges[c]
            with np.errstate(invalid="ignore"):
                given = value + self.beliefs[c][columns] - self.messages[c][rows]
            log_law = np.where(np.isfinite(given), given, -np.inf) + law[model.rooted.parent[c]][rows]
            found[c, : tables.shape[1], : tables.shape[2]] = np.tensordot(np.exp(log_law), tables, 1)
            law[c] = _reduce(log_law, columns, len(self.nodes[c]), False)
        return [t.copy() for t in model.split_edges(found)]

    def _empty(self) -> np.ndarray:
        return np.zeros((self.model.n_nodes, self.model.size, self.model.size))


def _refuse(where: str, total: int, parts: int, most: int) -> None:
    """DataError for more tables than can be enumerated."""
    if (n := comb(total + parts - 1, total)) > most:
        raise DataError(
            f"{where}: {n:,} tables of {parts} cells with {total:,} in them are too many to enumerate (at most {most:,}); "
            "use a smaller population or another method"
        )


def compositions(total: int, parts: int) -> np.ndarray:
    """(k, parts) all ways to write `total` as an ordered sum of that many non-negative integers, in ascending order."""
    left, columns = np.array([total]), []
    for _ in range(parts - 1):
        row = np.repeat(np.arange(len(left)), left + 1)
        value = np.arange(len(row)) - np.repeat(np.cumsum(left + 1) - (left + 1), left + 1)
        columns = [c[row] for c in columns] + [value]
        left = left[row] - value
    return np.stack([*columns, left], axis=1)


def _places(margins: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Number of each margin among the tables of its node, both read as numbers in one base."""
    base = int(tables[0].sum()) + 1
    digits = base ** np.arange(tables.shape[1] - 1, -1, -1)
    return np.searchsorted(tables @ digits, margins @ digits)


def _reduce(values: np.ndarray, groups: np.ndarray, n: int, maximise: bool) -> np.ndarray:
    """Largest value, or log of the sum of exponentials, in each of n groups; −inf in empty ones."""
    top = np.full(n, -np.inf)
    np.maximum.at(top, groups, values)
    if maximise:
        return top
    safe = np.where(np.isfinite(top), top, 0.0)
    sums = np.bincount(groups, np.exp(values - safe[groups]), n)
    with np.errstate(divide="ignore"):
        return np.log(sums) + safe


def _losses(problem: Problem):
    """Functions (node, tables) → −log p(y | n) of the node's cells, and the same for edges by child."""
    model = problem.model
    terms = problem.observed()

    def total(first: int, size: tuple[int, ...], tables: np.ndarray) -> np.ndarray:
        out = np.zeros(len(tables))
        for noise, cells, y in terms:
            inside = (cells >= first) & (cells < first + int(np.prod(size)))
            if inside.any():
                at = np.unravel_index(cells[inside] - first, size)
                out += noise.loss(y[inside], tables[(slice(None), *at)].astype(float)).sum(axis=1)
        return out

    def nodes(i: int, tables):
        return total(i * model.size, (model.size,), tables)

    def edges(c: int, tables):
        return total(problem.n_cells + c * model.size**2, (model.size, model.size), tables)

    return nodes, edges
