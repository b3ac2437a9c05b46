"""Exact MAP and marginals by messages over all tables of M individuals (Sun 2019, Theorem 1), the tests' truth."""

from math import comb
from typing import Literal

import numpy as np
from scipy.special import gammaln, logsumexp

from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference, inference_of
from agglearn.errors import DataError

MAX_TABLES = 6_000_000
# tables, indices of row and column sums, log-weights
EdgeTables = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def infer_exact(problem: Problem, kind: Literal["map", "marginals"] = "map") -> Inference:
    """Most probable integer tables (details `log_posterior`), or posterior mean of the tables (`log_evidence`)."""
    problem.require_whole("exact inference")
    passing = TableMessagePassing(problem, kind == "map")
    edges = passing.best_tables() if kind == "map" else passing.mean_tables()
    name = "log_posterior" if kind == "map" else "log_evidence"
    return inference_of(problem, edges, details={name: passing.log_total})


class TableMessagePassing:
    """Messages over tables (Theorem 1). `log_total` is the log of the maximum, or of the sum, of p(n) p(y | n)."""

    def __init__(self, problem: Problem, maximise: bool) -> None:
        self.problem, self.model, self.maximise = problem, problem.model, maximise
        model, m, order = self.model, int(problem.M), self.model.rooted.order
        for c in order[1:]:
            n_cells = int(np.isfinite(model.log_tables[model.table_index[c]]).sum())
            _refuse_many(f"edge {c}", m, n_cells)
        for i, size in enumerate(model.sizes):
            _refuse_many(f"node {i}", m, int(size))
        self.log_factorials = gammaln(np.arange(m + 1) + 1)
        self.node_tables = [compositions(m, int(s)) for s in model.sizes]
        self.enumerated: dict = {}
        self.beliefs = {i: self._node_term(i) for i in order}  # node term and messages of the children
        self.edges = {c: self._edge_tables(c) for c in order[1:]}
        self.messages: dict[int, np.ndarray] = {}
        self._pass_up()

    def _loss(self, first: int, shape: tuple[int, ...], tables: np.ndarray) -> np.ndarray:
        """−log p(y | n) of tables whose cells, padded to a shape, are numbered from `first` on."""
        total = np.zeros(len(tables))
        for noise, cells, y in self.problem.list_observed():
            inside = (cells >= first) & (cells < first + int(np.prod(shape)))
            if inside.any():
                index = np.ravel_multi_index(np.unravel_index(cells[inside] - first, shape), tables.shape[1:])
                flat = tables.reshape(len(tables), -1)[:, index]
                total += noise.loss(y[inside], flat.astype(float)).sum(axis=1)
        return total

    def _node_term(self, i: int) -> np.ndarray:
        """log of (n_i!)^(ν−1) p(y_i | n_i) for every table of node i."""
        tables, size = self.node_tables[i], self.model.size
        factorials = self.log_factorials[tables].sum(axis=1)
        return (self.model.degrees[i] - 1) * factorials - self._loss(i * size, (size,), tables)

    def _edge_tables(self, c: int) -> EdgeTables:
        """All edge tables with positive potential, indices of their margins, and log φ^n p(y | n) / n!."""
        model, size = self.model, self.model.size
        shape = int(model.sizes[model.rooted.parent[c]]), int(model.sizes[c])
        log_phi = model.log_tables[model.table_index[c]][: shape[0], : shape[1]].reshape(-1)
        allowed = np.flatnonzero(np.isfinite(log_phi))
        cells, tables, rows, columns, log_factorials = self._enumerate(shape, tuple(allowed))
        loss = self._loss(self.problem.n_cells + c * size**2, (size, size), tables)
        return tables, rows, columns, cells @ log_phi[allowed] - log_factorials - loss

    def _enumerate(self, shape: tuple[int, int], allowed: tuple[int, ...]) -> tuple[np.ndarray, ...]:
        """Tables with individuals in `allowed` cells only, which edges share: these cells, tables, margins, log n!."""
        if (shape, allowed) not in self.enumerated:
            m = int(self.problem.M)
            cells = compositions(m, len(allowed))
            tables = np.zeros((len(cells), *shape), cells.dtype)
            tables.reshape(len(cells), -1)[:, allowed] = cells
            rows, columns = (_table_indices(tables.sum(axis=2 - k), compositions(m, shape[k])) for k in (0, 1))
            self.enumerated[shape, allowed] = cells, tables, rows, columns, self.log_factorials[cells].sum(axis=1)
        return self.enumerated[shape, allowed]

    def _pass_up(self) -> None:
        model, order = self.model, self.model.rooted.order
        for c in order[:0:-1]:
            tables, rows, columns, value = self.edges[c]
            p, value = model.rooted.parent[c], value + self.beliefs[c][columns]
            self.edges[c] = tables, rows, columns, value  # with the messages from below
            self.messages[c] = _reduce(value, rows, len(self.node_tables[p]), self.maximise)
            self.beliefs[p] = self.beliefs[p] + self.messages[c]
        root = self.beliefs[order[0]]
        constant = gammaln(self.problem.M + 1) - self.problem.M * model.log_partition
        self.log_total = float((root.max() if self.maximise else logsumexp(root)) + constant)
        if not np.isfinite(self.log_total):
            raise DataError("no tables of this population can give these counts")

    def best_tables(self) -> list[np.ndarray]:
        model, order = self.model, self.model.rooted.order
        chosen = {order[0]: int(np.argmax(self.beliefs[order[0]]))}
        best = np.zeros((model.n_nodes, model.size, model.size))
        for c in order[1:]:
            tables, rows, columns, value = self.edges[c]
            candidates = np.flatnonzero(rows == chosen[model.rooted.parent[c]])
            k = candidates[np.argmax(value[candidates])]
            best[c, : tables.shape[1], : tables.shape[2]], chosen[c] = tables[k], int(columns[k])
        return [t.astype(float) for t in model.split_edges(best)]

    def mean_tables(self) -> list[np.ndarray]:
        model, order = self.model, self.model.rooted.order
        log_posterior = {order[0]: self.beliefs[order[0]] - logsumexp(self.beliefs[order[0]])}
        mean = np.zeros((model.n_nodes, model.size, model.size))
        for c in order[1:]:
            tables, rows, columns, value = self.edges[c]
            with np.errstate(invalid="ignore"):
                conditional = value - self.messages[c][rows]
            conditional[~np.isfinite(conditional)] = -np.inf
            joint = conditional + log_posterior[model.rooted.parent[c]][rows]
            mean[c, : tables.shape[1], : tables.shape[2]] = np.tensordot(np.exp(joint), tables, 1)
            log_posterior[c] = _reduce(joint, columns, len(self.node_tables[c]), False)
        return [t.copy() for t in model.split_edges(mean)]


def _refuse_many(name: str, total: int, n_cells: int) -> None:
    if (n := comb(total + n_cells - 1, total)) > MAX_TABLES:
        raise DataError(
            f"{name}: {n:,} tables of {n_cells} cells with {total:,} individuals are too many to enumerate (at most "
            f"{MAX_TABLES:,}); use a smaller population or another method"
        )


def compositions(total: int, n_terms: int) -> np.ndarray:
    """(k, n_terms) all ways to write `total` as an ordered sum of non-negative integers, in ascending order."""
    remaining = np.array([total])
    columns: list[np.ndarray] = []
    for _ in range(n_terms - 1):
        row = np.repeat(np.arange(len(remaining)), remaining + 1)
        value = np.arange(len(row)) - np.repeat(np.cumsum(remaining + 1) - (remaining + 1), remaining + 1)
        columns = [c[row] for c in columns] + [value]
        remaining = remaining[row] - value
    return np.stack([*columns, remaining], axis=1)


def _table_indices(margins: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Index of each margin among the tables of its node. Both are read as numbers in one base."""
    base = int(tables[0].sum()) + 1
    digits = base ** np.arange(tables.shape[1] - 1, -1, -1)
    return np.searchsorted(tables @ digits, margins @ digits)


def _reduce(values: np.ndarray, groups: np.ndarray, n: int, maximise: bool) -> np.ndarray:
    """Largest value, or log of the sum of exponentials, in each of n groups, −inf in empty ones."""
    top = np.full(n, -np.inf)
    np.maximum.at(top, groups, values)
    if maximise:
        return top
    safe = np.where(np.isfinite(top), top, 0.0)
    sums = np.bincount(groups, np.exp(values - safe[groups]), n)
    with np.errstate(divide="ignore"):
        return np.log(sums) + safe
