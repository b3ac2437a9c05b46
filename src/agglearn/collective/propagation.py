"""Belief propagation: in scaled numbers, and in log space where those underflow."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from agglearn.collective import kernels
from agglearn.collective.tree import PaddedTree

LOWEST = np.finfo(float).min
LARGE = 100  # states from which derivatives are computed with tables in single precision


class Messages(NamedTuple):
    subtree: np.ndarray  # weight of a node times the messages of its children
    context: np.ndarray  # weight of the parent times all messages to the parent but the node's own
    raw_up: np.ndarray  # message from the node before scaling
    raw_down: np.ndarray  # message to the node before scaling
    marginals: np.ndarray  # rows add up to one


@dataclass
class Beliefs:
    """Result of belief propagation: log Z, and the messages, which have the marginals, by tables of potentials."""

    model: PaddedTree
    log_z: float
    tables: np.ndarray
    table_index: np.ndarray
    messages: Messages

    @property
    def marginals(self) -> np.ndarray:
        return self.messages.marginals

    @cached_property
    def pairs(self) -> np.ndarray:
        """(N, L, L) marginals of the edges by child, parent's state first. Zero at the root."""
        pairs = np.zeros((*self.marginals.shape, self.marginals.shape[1]))
        self.mix_pairs(pairs, 0.0, 1.0)
        return pairs

    def mix_pairs(self, tables: np.ndarray, keep: float, factor: float) -> None:
        """Set tables to keep · tables + factor · `pairs`, in place."""
        kernels.mix_edge_marginals(
            self.tables, self.table_index, self.model.rooted, self.messages, keep, factor, tables
        )

    def conditionals(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, L, L) P(node | parent), rows of impossible states zero, and the (L,) marginal of the root."""
        weighted = self.tables[self.table_index] * self.messages.subtree[:, None, :]
        sums = weighted.sum(axis=2, keepdims=True)
        conditionals = np.divide(weighted, sums, out=np.zeros_like(weighted), where=sums > 0)
        return conditionals, self.marginals[self.model.rooted.order[0]]

    def covariance_product(self, v: np.ndarray, w: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Change of the marginals per unit of node potentials v (N, L) and edge potentials w (N, L, L)."""
        out, pairs, out_pairs = np.empty_like(self.marginals), None, None
        # single precision halves the time to read large tables, and is enough for the direction of a Newton step
        large = self.tables is self.model.tables and self.model.size >= LARGE and w is None
        tables = self.model.single_tables if large else self.tables
        if w is not None:
            pairs, out_pairs = self.pairs, np.zeros_like(w)
        directions = v, out, pairs, w, out_pairs
        kernels.covariance_product(tables, self.table_index, self.model.rooted, self.messages, *directions)
        return out, out_pairs


def propagate(
    model: PaddedTree,
    potentials: np.ndarray,
    edge_potentials: np.ndarray | None = None,
    needed: np.ndarray | None = None,
) -> Beliefs:
    """Beliefs with added node (N, L) and edge (N, L, L) potentials, in log space if a `needed` cell underflows."""
    beliefs = _propagate_scaled(model, potentials, edge_potentials)
    if np.isnan(beliefs.log_z) or (needed is not None and (beliefs.marginals[needed] <= 0).any()):
        beliefs = _propagate_logs(model, potentials, edge_potentials)
    return beliefs


def compile_special_cases() -> None:
    """Compile what only large tables and numbers that underflow need."""
    large = PaddedTree([(0, 1)], [np.zeros((LARGE, LARGE))])
    propagate(large, np.zeros((2, LARGE))).covariance_product(np.zeros((2, LARGE)))
    underflow = np.array([[0.0, LOWEST], [0.0, 0.0]])
    propagate(PaddedTree([(0, 1)], [np.zeros((2, 2))]), underflow, needed=np.ones((2, 2), bool))


def _propagate_scaled(model: PaddedTree, potentials: np.ndarray, edge_potentials: np.ndarray | None) -> Beliefs:
    tables, table_index = model.tables, model.table_index
    if edge_potentials is not None:
        tables, table_index = np.zeros((model.n_nodes, model.size, model.size)), np.arange(model.n_nodes)
        kernels.tilt(model.tables, model.table_index, model.rooted.order, edge_potentials, tables)
    tops = potentials.max(axis=1)
    weights = np.exp(potentials - tops[:, None])
    messages = Messages(weights.copy(), *np.ones((4, *potentials.shape)))
    log_z = kernels.sweep(tables, table_index, model.rooted, weights, messages)
    return Beliefs(model, float(log_z + tops.sum() + model.log_scale), tables, table_index, messages)


def _propagate_logs(model: PaddedTree, potentials: np.ndarray, edge_potentials: np.ndarray | None) -> Beliefs:
    """The result has the conditionals as tables, so that all messages are ones."""
    tree, shape = model.rooted, potentials.shape
    log_tables, table_index, tables, log_scales = model.log_tables, model.table_index, model.tables, model.log_scales
    if edge_potentials is not None:
        log_tables, table_index = log_tables[table_index] + edge_potentials, np.arange(model.n_nodes)
        log_scales = np.maximum(log_tables.max(axis=(1, 2)), LOWEST)
        tables = np.exp(log_tables - log_scales[:, None, None])
    conditionals, marginals = np.zeros((*shape, shape[1])), np.zeros(shape)
    log_z = kernels.log_sweep(log_tables, tables, log_scales, table_index, tree, potentials, conditionals, marginals)
    ones, context = np.ones(shape), np.zeros(shape)
    context[tree.order[1:]] = marginals[tree.parent[tree.order[1:]]]
    messages = Messages(ones, context, ones, marginals, marginals)
    return Beliefs(model, float(log_z), conditionals, np.arange(model.n_nodes), messages)
