"""Belief propagation: fast in scaled numbers, in log space where those vanish."""

from dataclasses import dataclass

import numpy as np

from agglearn.collective import kernels
from agglearn.collective.tree import PaddedTree

LOWEST = np.finfo(float).min
LARGE = 100  # states from which derivatives are computed with tables in single precision


@dataclass
class Beliefs:
    """What a sweep leaves: marginals, log Z, and what directional derivatives of the marginals need.

    Attributes
    ----------
    log_z : float. marginals : (N, L), rows add up to one.
    """

    model: PaddedTree
    log_z: float
    marginals: np.ndarray
    tables: np.ndarray
    which: np.ndarray
    outer: np.ndarray
    inner: np.ndarray
    den_up: np.ndarray
    den_down: np.ndarray
    _pairs: np.ndarray | None = None

    def pairs(self) -> np.ndarray:
        """(N, L, L) marginals of the edges by child, parent's state first; zero at the root."""
        if self._pairs is None:
            self._pairs = np.zeros((*self.marginals.shape, self.marginals.shape[1]))
            self.mix_pairs(self._pairs, 0.0, 1.0)
        return self._pairs

    def mix_pairs(self, tables: np.ndarray, keep: float, factor: float) -> None:
        """tables = keep · tables + factor · `pairs()`, in place."""
        kernels.mix_edge_marginals(
            self.tables, self.which, self.model.rooted.order, self.outer, self.inner, self.den_up, keep, factor, tables
        )

    def conditionals(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, L, L) P(node | parent), rows of impossible states zero, and the (L,) law of the root."""
        weighted = self.tables[self.which] * self.outer[:, None, :]
        sums = weighted.sum(axis=2, keepdims=True)
        return np.divide(weighted, sums, out=np.zeros_like(weighted), where=sums > 0), self.marginals[
            self.model.rooted.order[0]
        ]

    def covariance_times(self, v: np.ndarray, w: np.ndarray | None = None):
        """Change of the marginals per unit of node potentials v (N, L) and edge potentials w (N, L, L)."""
        tree, out = self.model.rooted, np.empty_like(self.marginals)
        # single precision halves what large tables cost to read, and is enough for the direction of a Newton step
        large = self.tables is self.model.tables and self.model.size >= LARGE and w is None
        tables = self.model.single_tables if large else self.tables
        common = (
            tables, self.which, tree.order, tree.parent, tree.children, tree.bounds, self.outer, self.inner,
            self.den_up, self.den_down, self.marginals,
        )  # fmt: skip
        if w is None:
            kernels.covariance_product(*common, v, out)
            return out, None
        out_pairs = np.zeros_like(w)
        kernels.tangent_edges(*common, self.pairs(), v, w, out, out_pairs)
        return out, out_pairs


def propagate(model: PaddedTree, potentials: np.ndarray, edge_potentials=None, needed=None) -> Beliefs:
    """Marginals and log Z of the model with more node potentials (N, L) and edge potentials (N, L, L; logarithms).

    needed : (N, L) cells that must not vanish in rounding; where one does, log space is used.
    """
    found = _scaled(model, potentials, edge_potentials)
    if np.isnan(found.log_z) or (needed is not None and (found.marginals[needed] <= 0).any()):
        found = _in_logs(model, potentials, edge_potentials)
    return found


def _scaled(model, potentials, edge_potentials) -> Beliefs:
    tree, tables, which = model.rooted, model.tables, model.which
    if edge_potentials is not None:
        tables, which = np.zeros((model.n_nodes, model.size, model.size)), np.arange(model.n_nodes)
        kernels.tilt(model.tables, model.which, tree.order, edge_potentials, tables)
    tops = potentials.max(axis=1)
    arrays = np.ones((5, *potentials.shape))
    weights = np.exp(potentials - tops[:, None])
    log_z = kernels.sweep(
        tables, which, tree.order, tree.parent, tree.children, tree.bounds, weights, *arrays
    )  # fmt: skip
    outer, inner, den_up, den_down, marginals = arrays
    log_z = float(log_z + tops.sum() + model.log_scale)
    return Beliefs(model, log_z, marginals, tables, which, outer, inner, den_up, den_down)


def _in_logs(model, potentials, edge_potentials) -> Beliefs:
    """The same from log space, expressed by the conditional tables at hand: all messages are then ones."""
    tree, shape = model.rooted, potentials.shape
    logs, which, linear, tops = model.log_tables, model.which, model.tables, model.tops
    if edge_potentials is not None:
        logs, which = logs[which] + edge_potentials, np.arange(model.n_nodes)
        tops = np.maximum(logs.max(axis=(1, 2)), LOWEST)
        linear = np.exp(logs - tops[:, None, None])
    conditionals, marginals = np.zeros((*shape, shape[1])), np.zeros(shape)
    log_z = kernels.log_sweep(
        logs, linear, tops, which, tree.order, tree.parent, potentials, conditionals, marginals
    )  # fmt: skip
    ones, inner = np.ones(shape), np.zeros(shape)
    inner[tree.order[1:]] = marginals[tree.parent[tree.order[1:]]]
    return Beliefs(model, float(log_z), marginals, conditionals, np.arange(model.n_nodes), ones, inner, ones, marginals)
