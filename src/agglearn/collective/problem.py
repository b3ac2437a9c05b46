"""Approximate MAP: min F(z) = −Σ z_ij log φ_ij − H_B(z) − log p(y | z) over the local polytope (Sun 2019, eq. 2.7).

z(λ) = M · marginals of θ − λ is feasible for every λ, with one λ per observed cell, and with
D(λ) = M log Z(θ − λ) + Σ ℓ*(λ) the duality gap bounds F(z(λ)) − F* by Σ ℓ(z) + ℓ*(λ) − λz.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partialmethod
from typing import Any, Literal, NamedTuple

import numpy as np

from agglearn.collective.feasibility import Observed, refuse_impossible
from agglearn.collective.kernels import EXACT
from agglearn.collective.model import TreeModel
from agglearn.collective.noise import NoiseModel, Poisson, noise_model
from agglearn.collective.propagation import Beliefs, propagate
from agglearn.collective.tree import Tables
from agglearn.errors import DataError, NotAvailable
from agglearn.observations.flows import KINDS, FlowCounts

ROUNDING = 1e-12  # of z, relative to M
HALF = 0.5  # individual: largest distance from exact counts, whatever the tolerance
Counts = FlowCounts | Sequence[FlowCounts]


class Term(NamedTuple):
    """Observed cells of one noise model."""

    noise: NoiseModel
    cells: np.ndarray  # (k,) indices of the node cells, then of the edge cells
    y: np.ndarray  # (k,) counts
    indices: slice  # of the cells among all duals λ


class CellCounts(NamedTuple):
    codes: np.ndarray  # of the noise models
    counts: np.ndarray
    parameters: np.ndarray  # of the noise


class Evidence(NamedTuple):
    nodes: CellCounts
    edges: CellCounts
    has_edges: bool


@dataclass
class Point:
    """A dual point λ and its primal solution."""

    dual: np.ndarray  # (K,) λ
    beliefs: Beliefs  # of the potentials θ − λ
    z: np.ndarray  # (K,) counts at the observed cells
    duality_gap: float  # bound on F − F*, to which an exact count adds its distance from z
    distance: float  # that of all exact counts, in individuals
    objective: float  # F without the exact counts' indicator
    dual_value: float  # D


class Problem:
    """λ has K = `size` entries within `lower`, `upper`. Cells whose loss is linear in z are settled at once."""

    def __init__(self, model: TreeModel, counts: Counts, population_size: float) -> None:
        if not 0 < population_size < np.inf:
            raise DataError(f"population_size: must be positive, got {population_size}")
        self.model, self.M = model, float(population_size)
        self.recorder: Any = None  # gets the iterates of a method, see `agglearn.collective.results.Recorder`
        self.counts = [counts] if isinstance(counts, FlowCounts) else list(counts)
        self.n_cells = model.n_nodes * model.size
        observed = list(_iterate_observed(model, self.counts, self.M))
        self.has_edges = any((cells >= self.n_cells).any() for _, cells, _ in observed)
        self.n_potentials = self.n_cells * (1 + model.size) if self.has_edges else self.n_cells
        potentials = np.zeros(self.n_potentials)
        self.base, self.base_edges = self._split(potentials)
        self.base[~model.states] = -np.inf
        self.constant, self.size = 0.0, 0
        self.terms: list[Term] = []
        self.settled: Observed = []
        for noise, cells, y in observed:
            linear, slope = noise.linear(y)
            if linear.any():
                np.subtract.at(potentials, cells[linear], slope[linear])
                self.settled.append((noise, cells[linear], y[linear]))
                self.constant -= float(noise.loss(y[linear], np.zeros(linear.sum())).sum())  # ℓ* at the slope
            cells, y = cells[~linear], y[~linear]
            self.terms.append(Term(noise, cells, y, slice(self.size, self.size + len(cells))))
            self.size += len(cells)
        self.cells = np.concatenate([np.zeros(0, np.int64), *(t.cells for t in self.terms)])
        self.only_edges = self.has_edges and bool((self.cells >= self.n_cells).all())
        self.lower, self.upper = np.hstack([np.zeros((2, 0)), *(t.noise.bounds(t.y) for t in self.terms)])
        self.smooth = all(t.noise.smooth for t in self.terms if len(t.y))
        lengths = [len(t.y) for t in self.terms]
        self.poles = np.repeat([t.noise.rate if isinstance(t.noise, Poisson) else np.inf for t in self.terms], lengths)
        self.exact = np.repeat([t.noise.code == EXACT for t in self.terms], lengths)
        self.has_exact = bool(self.exact.any())
        self._check_possible()

    def _split(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Node cells (N, L) and edge cells (N, L, L). The latter are None without edge evidence."""
        n, size = self.model.n_nodes, self.model.size
        edges = flat[self.n_cells :].reshape(n, size, size) if self.has_edges else None
        return flat[: self.n_cells].reshape(n, size), edges

    def _check_possible(self) -> None:
        """Raise DataError for a counted cell that the potentials or exact zeros make impossible."""
        counted = [t.cells[t.y > 0] for t in self.terms if t.noise.positive]
        cells = np.concatenate([np.zeros(0, np.int64), *counted])
        nodes, edges = cells[cells < self.n_cells], cells[cells >= self.n_cells]
        self.needed = np.zeros(self.base.shape, bool)
        self.needed.reshape(-1)[nodes] = True
        self.start = propagate(self.model, self.base, self.base_edges, self.needed)
        if not np.isfinite(self.start.log_z):
            self.refuse_impossible()
        empty = nodes[self.start.marginals.reshape(-1)[nodes] <= 0]
        if edges.size and not empty.size:
            empty = edges[self.start.pairs.reshape(-1)[edges - self.n_cells] <= 0]
        if empty.size:
            cause = "potentials of zero (or exact counts of zero) forbid it"
            raise DataError(f"{self.model.cell_name(empty[0])}: somebody is counted there, but {cause}")

    def record(self, iterate: Point | list[np.ndarray]) -> None:
        if self.recorder:
            self.recorder(iterate)

    def require_whole(self, method: str) -> None:
        if int(self.M) != self.M:
            raise DataError(f"population_size: {method} needs a whole number, got {self.M:g}")

    def list_observed(self) -> Observed:
        """(noise, cells, counts) of all observed cells, the settled ones included."""
        return [(t.noise, t.cells, t.y) for t in self.terms if len(t.y)] + self.settled

    def evidence(self) -> Evidence:
        shape = *self.base.shape, self.model.size
        total = self.n_cells * (1 + self.model.size)
        arrays = codes, counts, parameters = np.zeros(total, np.int8), np.zeros(total), np.ones(total)
        for noise, cells, y in self.list_observed():
            if codes[cells].any() or len(np.unique(cells)) < len(cells):
                raise NotAvailable(
                    "this method takes one count per cell (Poisson counts add up); use method='dual-newton'"
                )
            codes[cells], counts[cells], parameters[cells] = noise.code, y, noise.parameter
        nodes = CellCounts(*(a[: self.n_cells].reshape(self.base.shape) for a in arrays))
        return Evidence(nodes, CellCounts(*(a[self.n_cells :].reshape(shape) for a in arrays)), self.has_edges)

    def refuse_impossible(self) -> None:
        refuse_impossible(self.model, self.M, self.list_observed())

    # -- loss and its conjugate over the observed cells --------------------------------------------------------

    def _apply(self, values: np.ndarray, method: str) -> np.ndarray:
        """(K,) results of a method of the noise models."""
        out = np.empty(self.size)
        for t in self.terms:
            out[t.indices] = getattr(t.noise, method)(t.y, values[t.indices])
        return out

    loss = partialmethod(_apply, method="loss")
    conjugate = partialmethod(_apply, method="conjugate")
    mean = partialmethod(_apply, method="mean")
    conjugate_curvature = partialmethod(_apply, method="conjugate_curvature")

    def gradient(self, z: np.ndarray) -> np.ndarray:
        """(K,) ℓ′(z). z is bounded away from zero, where Poisson noise has no gradient."""
        return self._apply(np.maximum(z, 1e-300), "gradient")

    # -- potentials and beliefs --------------------------------------------------------------------------------

    def spread(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Values of observed cells as (N, L) and (N, L, L). The latter is None without edge evidence."""
        return self._split(np.bincount(self.cells, values, self.n_potentials))

    def collect(self, nodes: np.ndarray, edges: np.ndarray | None) -> np.ndarray:
        if edges is None:
            return nodes.reshape(-1)[self.cells]
        if self.only_edges:
            return edges.reshape(-1)[self.cells - self.n_cells]
        return np.concatenate([nodes.reshape(-1), edges.reshape(-1)])[self.cells]

    def beliefs(self, dual: np.ndarray) -> Beliefs:
        nodes, edges = self.spread(dual)
        edges = None if edges is None or self.base_edges is None else self.base_edges - edges
        return propagate(self.model, self.base - nodes, edges, self.needed)

    def counts_at(self, beliefs: Beliefs) -> np.ndarray:
        """z = M · marginals at the observed cells."""
        return self.M * self.collect(beliefs.marginals, beliefs.pairs if self.has_edges else None)

    def point(self, dual: np.ndarray, beliefs: Beliefs | None = None) -> Point:
        beliefs = beliefs or self.beliefs(dual)
        z = self.counts_at(beliefs)
        conjugate = self.conjugate(dual)
        dual_value = self.M * beliefs.log_z + conjugate.sum() - self.M * np.log(self.M) + self.constant
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # the gap is infinite if a method diverges
            gaps = self.loss(z) + conjugate - dual * z
            distance, shift = 0.0, 0.0
            if self.has_exact:  # the loss is infinite: the distance from the count takes its place
                excess = (self.mean(dual) - z)[self.exact]
                distance, shift = float(np.abs(excess).sum()), float((dual[self.exact] * excess).sum())
                gaps = gaps[~self.exact]
            smooth_gap = float(gaps.sum())
        objective = smooth_gap + shift - float(dual_value)
        return Point(dual, beliefs, z, smooth_gap + distance, distance, objective, float(dual_value))

    def is_solved(self, point: Point, tol: float) -> bool:
        """Whether the gap is at most tol · max(1, |F|), and exact counts are met within tol · M and 0.5."""
        if not (math.isfinite(point.objective) and math.isfinite(point.duality_gap)):
            return False
        small = point.duality_gap - point.distance <= tol * max(1.0, abs(point.objective))
        return bool(small and point.distance <= min(max(tol, ROUNDING) * self.M, HALF))

    # -- tables ------------------------------------------------------------------------------------------------

    def tables(self, beliefs: Beliefs) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Edge tables and node tables, M · marginals."""
        edges = [self.M * t for t in self.model.split_edges(beliefs.pairs)]
        return edges, [self.M * t for t in self.model.split_nodes(beliefs.marginals)]

    def flatten(self, edge_tables: Tables, node_tables: Sequence[np.ndarray]) -> np.ndarray:
        """All cells of any tables: nodes (N, L), then edges (N, L, L)."""
        return np.concatenate([self.model.pad_nodes(node_tables), self.model.pad_edges(edge_tables)], axis=None)

    def objective_of(self, edge_tables: Tables, node_tables: Sequence[np.ndarray] | None = None) -> float:
        """F of any tables (eq. 2.7), with the constants of log p(y | z). Node tables default to those of the edges."""
        nodes = self.model.node_tables_of(edge_tables) if node_tables is None else node_tables
        flat = self.flatten(edge_tables, nodes)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = sum(noise.loss(y, flat[cells]).sum() for noise, cells, y in self.list_observed())
        return float(loss - self.model.score(edge_tables) - self.model.bethe_entropy(edge_tables, nodes))


def _iterate_observed(model: TreeModel, counts: list[FlowCounts], population_size: float) -> Iterator[tuple]:
    """(noise, cells, y) of all observed cells. Repeated Poisson counts are added up."""
    for flows in counts:
        noise = noise_model(flows.noise, flows.rate, flows.scale)
        if flows.noise == "exact":
            replace(flows, population_size=population_size)  # which refuses tables with another total
        for first, kind in zip((0, model.n_nodes * model.size), KINDS, strict=True):
            padded = _pad(model, flows, kind)
            if not padded.size:
                continue
            flat = padded.reshape(len(padded), -1)
            if flows.noise == "poisson" and len(flat) > 1:
                repeats = (~np.isnan(flat)).sum(axis=0)
                total = np.nansum(flat, axis=0)
                for k in np.unique(repeats[repeats > 0]):
                    cells = np.flatnonzero(repeats == k)
                    yield Poisson(flows.rate * float(k)), cells + first, total[cells]
                continue
            if flows.noise == "exact":
                flat = flat[:1] if (np.nan_to_num(flat) == np.nan_to_num(flat[:1])).all() else flat
            _, cells = np.nonzero(~np.isnan(flat))
            yield noise, cells + first, flat[~np.isnan(flat)]


def _pad(model: TreeModel, flows: FlowCounts, kind: Literal["node", "edge"]) -> np.ndarray:
    """(R, N, L) node counts, or (R, N, L, L) edge counts by child, parent's state first. NaN: nothing was observed."""
    counts, shape = flows.repeats(kind), (model.n_nodes, model.size)
    if kind == "edge":
        shape = len(model.edges), *(max(t.shape[k] for t in model.log_potentials) for k in (0, 1))
    if not counts.size:
        return counts
    if counts.shape[1:] != shape:
        stated, needed = (f"{n} {kind}s of {' × '.join(map(str, states))}" for n, *states in (counts.shape[1:], shape))
        raise DataError(f"{kind}_counts: {stated} states, the model has {needed}")
    if kind == "node":
        return np.where(model.states, counts, np.nan)
    cut = [[t[: p.shape[0], : p.shape[1]] for t, p in zip(r, model.log_potentials, strict=True)] for r in counts]
    return np.array([model.pad_edges(tables, np.nan) for tables in cut])
