"""The approximate MAP problem (Sun 2019, eq. 2.7) of a model, its evidence and a population, with its dual.

    minimise over z in the local polytope   F(z) = −Σ z_ij log φ_ij − H_B(z) − log p(y | z)

In potential form there is a dual variable λ per observed cell, with λ = ∂ℓ/∂z at the optimum. z(λ) = M · marginals of the
potentials θ − λ is feasible for every λ, and

    D(λ) = M log Z(θ − λ) + Σ ℓ*(λ),    F(z(λ)) − F* ≤ Σ ℓ(z) + ℓ*(λ) − λz =: gap(λ).

The duality gap is zero at the optimum, so it bounds the distance of every method from the optimum.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agglearn.collective.feasibility import Observed, refuse_impossible
from agglearn.collective.kernels import EXACT
from agglearn.collective.model import TreeModel
from agglearn.collective.noise import NoiseModel, Poisson, noise_model
from agglearn.collective.propagation import Beliefs, propagate
from agglearn.collective.tree import Tables
from agglearn.errors import DataError, NotAvailable
from agglearn.observations.flows import FlowCounts

ROUNDING = 1e-12  # of z, relative to M
HALF = 0.5  # individual: largest distance from exact counts, whatever the tolerance
Counts = FlowCounts | Sequence[FlowCounts]


@dataclass(frozen=True)
class Term:
    """Observed cells of one noise model.

    cells : (k,) indices of the node cells, then of the edge cells. y : (k,) counts. indices : of them among all duals λ.
    """

    noise: NoiseModel
    cells: np.ndarray
    y: np.ndarray
    indices: slice


class Evidence(NamedTuple):
    """Noise codes, counts and parameters of noise, of node cells (N, L) and edge cells (N, L, L), as kernels take them."""

    node_codes: np.ndarray
    node_counts: np.ndarray
    node_parameters: np.ndarray
    edge_codes: np.ndarray
    edge_counts: np.ndarray
    edge_parameters: np.ndarray
    has_edges: bool


@dataclass
class Point:
    """A dual point λ and its primal solution.

    Attributes
    ----------
    dual : (K,) λ. beliefs : of the potentials θ − λ. z : (K,) counts at the observed cells. duality_gap : bound on F − F*, to
    which an exact count adds its distance from z. distance : that of all exact counts, in individuals. objective : F without
    the exact counts' indicator. dual_value : D.
    """

    dual: np.ndarray
    beliefs: Beliefs
    z: np.ndarray
    duality_gap: float
    distance: float
    objective: float
    dual_value: float


class Problem:
    """The approximate MAP problem of a model and its evidence, in the arrays that solvers need.

    Where the loss is linear in z (a Poisson count of zero, a Laplace count below zero), λ is its slope. Such cells are settled at
    once: their λ becomes part of the potentials.

    Parameters
    ----------
    model : TreeModel. counts : FlowCounts or several, of the same population. population_size : M.

    Attributes
    ----------
    size : number K of observed cells that are not settled. lower, upper : (K,) bounds of λ.
    """

    def __init__(self, model: TreeModel, counts: Counts, population_size: float) -> None:
        if not 0 < population_size < np.inf:
            raise DataError(f"population_size: must be positive, got {population_size}")
        self.model, self.M = model, float(population_size)
        self.counts = [counts] if isinstance(counts, FlowCounts) else list(counts)
        self.n_cells = model.n_nodes * model.size
        self.base = np.where(model.states, 0.0, -np.inf)
        self.base_edges: np.ndarray | None = None
        self.constant = 0.0
        self.terms: list[Term] = []
        self.settled: Observed = []
        self.size = 0
        for noise, cells, y in _iterate_observed(model, self.counts, self.M):
            linear, slope = noise.linear(y)
            self._settle(noise, cells[linear], y[linear], slope[linear])
            cells, y = cells[~linear], y[~linear]
            self.terms.append(Term(noise, cells, y, slice(self.size, self.size + len(cells))))
            self.size += len(cells)
        self.cells = np.concatenate([t.cells for t in self.terms]) if self.terms else np.zeros(0, np.int64)
        self.unique = np.bincount(self.cells, minlength=1).max() <= 1
        self.has_edges = self.base_edges is not None or bool((self.cells >= self.n_cells).any())
        if self.has_edges and self.base_edges is None:
            self.base_edges = np.zeros((model.n_nodes, model.size, model.size))
        bounds = [t.noise.bounds(t.y) for t in self.terms]
        self.lower, self.upper = (np.concatenate([b[k] for b in bounds]) if bounds else np.zeros(0) for k in (0, 1))
        self.smooth = all(t.noise.smooth for t in self.terms if len(t.y))
        self.exact = np.repeat([t.noise.code == EXACT for t in self.terms], [len(t.y) for t in self.terms])
        self.has_exact = bool(self.exact.any())
        self._check_possible()

    def _settle(self, noise: NoiseModel, cells: np.ndarray, y: np.ndarray, slope: np.ndarray) -> None:
        """Add the slopes of linear losses to the potentials."""
        if not len(cells):
            return
        edges = cells >= self.n_cells
        np.subtract.at(self.base.reshape(-1), cells[~edges], slope[~edges])
        if edges.any():
            if self.base_edges is None:
                self.base_edges = np.zeros((self.model.n_nodes, self.model.size, self.model.size))
            np.subtract.at(self.base_edges.reshape(-1), cells[edges] - self.n_cells, slope[edges])
        self.settled.append((noise, cells, y))
        self.constant -= float(noise.loss(y, np.zeros(len(y))).sum())  # ℓ* at the slope

    def _check_possible(self) -> None:
        """Raise DataError for a counted cell that the potentials or exact zeros make impossible."""
        counted = np.zeros(self.size, bool)
        for t in self.terms:
            counted[t.indices] = (t.y > 0) & t.noise.positive
        cells = self.cells[counted]
        nodes, edges = cells[cells < self.n_cells], cells[cells >= self.n_cells] - self.n_cells
        self.needed: np.ndarray | None = None
        if nodes.size:
            self.needed = np.zeros(self.base.shape, bool)
            self.needed.reshape(-1)[nodes] = True
        self.start = propagate(self.model, self.base, self.base_edges, self.needed)
        if not np.isfinite(self.start.log_z):
            self.refuse_impossible()
        forbidden = "somebody is counted there, but potentials of zero (or exact counts of zero) forbid it"
        if (empty := nodes[self.start.marginals.reshape(-1)[nodes] <= 0]).size:
            raise DataError(f"{self.model.node_cell_name(empty[0])}: {forbidden}")
        if edges.size and (empty := edges[self.start.pairs().reshape(-1)[edges] <= 0]).size:
            raise DataError(f"{self.model.edge_cell_name(empty[0])}: {forbidden}")

    def require_whole(self, method: str) -> None:
        """Raise DataError where M is not whole."""
        if int(self.M) != self.M:
            raise DataError(f"population_size: {method} needs a whole number, got {self.M:g}")

    def list_observed(self) -> Observed:
        """(noise, cells, counts) of all observed cells, the settled ones included."""
        return [(t.noise, t.cells, t.y) for t in self.terms if len(t.y)] + self.settled

    def evidence(self) -> Evidence:
        """All observed cells as arrays."""
        shape = *self.base.shape, self.model.size
        total = self.n_cells + int(np.prod(shape))
        codes, counts, parameters = np.zeros(total, np.int8), np.zeros(total), np.ones(total)
        for noise, cells, y in self.list_observed():
            if codes[cells].any() or len(np.unique(cells)) < len(cells):
                raise NotAvailable(
                    "this method takes one count per cell (Poisson counts add up); use method='dual-newton'"
                )
            codes[cells], counts[cells], parameters[cells] = noise.code, y, noise.parameter
        arrays = codes, counts, parameters
        nodes = (a[: self.n_cells].reshape(self.base.shape) for a in arrays)
        edges = (a[self.n_cells :].reshape(shape) if self.has_edges else a[:0].reshape(0, 0, 0) for a in arrays)
        return Evidence._make([*nodes, *edges, self.has_edges])

    def refuse_impossible(self) -> None:
        """Raise DataError if no tables of real numbers have all exact counts, see `agglearn.collective.feasibility`."""
        refuse_impossible(self.model, self.M, self.list_observed())

    # -- loss and its conjugate over the observed cells --------------------------------------------------------

    def _apply(self, method: str, values: np.ndarray) -> np.ndarray:
        """Call a method of the noise models with the values of their cells."""
        out = np.empty(self.size)
        for t in self.terms:
            out[t.indices] = getattr(t.noise, method)(t.y, values[t.indices])
        return out

    def loss(self, z: np.ndarray) -> np.ndarray:
        """(K,) ℓ(z)."""
        return self._apply("loss", z)

    def gradient(self, z: np.ndarray) -> np.ndarray:
        """(K,) ℓ′(z), the λ of a first-order method. z is bounded away from zero, where Poisson noise has no gradient."""
        return self._apply("gradient", np.maximum(z, 1e-300))

    def conjugate(self, dual: np.ndarray) -> np.ndarray:
        """(K,) ℓ*(λ)."""
        return self._apply("conjugate", dual)

    def mean(self, dual: np.ndarray) -> np.ndarray:
        """(K,) gradient of ℓ*."""
        return self._apply("mean", dual)

    def conjugate_curvature(self, dual: np.ndarray) -> np.ndarray:
        """(K,) second derivative of ℓ*."""
        return self._apply("conjugate_curvature", dual)

    # -- potentials and beliefs --------------------------------------------------------------------------------

    def spread(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Values of observed cells as (N, L) and (N, L, L). The latter is None without edge evidence."""
        total = self.n_cells + (0 if self.base_edges is None else self.base_edges.size)
        if self.unique:
            flat: np.ndarray = np.zeros(total)
            flat[self.cells] = values
        else:
            flat = np.bincount(self.cells, values, total)
        nodes = flat[: self.n_cells].reshape(self.base.shape)
        return nodes, None if self.base_edges is None else flat[self.n_cells :].reshape(self.base_edges.shape)

    def collect(self, nodes: np.ndarray, edges: np.ndarray | None) -> np.ndarray:
        """Values at the observed cells."""
        if edges is None:
            return nodes.reshape(-1)[self.cells]
        if self.cells.size and self.cells[0] >= self.n_cells:
            return edges.reshape(-1)[self.cells - self.n_cells]
        return np.concatenate([nodes.reshape(-1), edges.reshape(-1)])[self.cells]

    def beliefs(self, dual: np.ndarray) -> Beliefs:
        """Belief propagation with the potentials θ − λ."""
        nodes, edges = self.spread(dual)
        edges = None if edges is None or self.base_edges is None else self.base_edges - edges
        return propagate(self.model, self.base - nodes, edges, self.needed)

    def counts_at(self, beliefs: Beliefs) -> np.ndarray:
        """z = M · marginals at the observed cells."""
        return self.M * self.collect(beliefs.marginals, beliefs.pairs() if self.has_edges else None)

    def point(self, dual: np.ndarray, beliefs: Beliefs | None = None) -> Point:
        """Point with beliefs (computed if not given), objective, dual value and duality gap at λ."""
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
        """Whether a point is finite, its duality gap is at most tol · max(1, |F|), and its exact counts are met.

        Exact counts are met within tol · M, and within half an individual.
        """
        if not (math.isfinite(point.objective) and math.isfinite(point.duality_gap)):
            return False
        small = point.duality_gap - point.distance <= tol * max(1.0, abs(point.objective))
        return bool(small and point.distance <= min(max(tol, ROUNDING) * self.M, HALF))

    # -- tables ------------------------------------------------------------------------------------------------

    def tables(self, beliefs: Beliefs) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Edge tables and node tables, M · marginals."""
        edges = [self.M * t for t in self.model.split_edges(beliefs.pairs())]
        return edges, [self.M * t for t in self.model.split_nodes(beliefs.marginals)]

    def _flatten(self, edge_tables: Tables, node_tables: Sequence[np.ndarray]) -> np.ndarray:
        """Node cells, then edge cells."""
        flat = np.zeros(self.n_cells + self.model.n_nodes * self.model.size**2)
        padded = np.zeros(self.base.shape)
        for k, row in enumerate(node_tables):
            padded[k, : len(row)] = row
        flat[: self.n_cells] = padded.reshape(-1)
        flat[self.n_cells :] = self.model.pad_edges(edge_tables).reshape(-1)
        return flat

    def collect_tables(self, edge_tables: Tables, node_tables: Sequence[np.ndarray]) -> np.ndarray:
        """z at the observed cells of any tables."""
        return self._flatten(edge_tables, node_tables)[self.cells]

    def objective_of(self, edge_tables: Tables, node_tables: Sequence[np.ndarray] | None = None) -> float:
        """F of any tables (eq. 2.7), with the constants of log p(y | z). Node tables default to those of the edges."""
        nodes = self.model.node_tables_of(edge_tables) if node_tables is None else node_tables
        flat = self._flatten(edge_tables, nodes)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = sum(noise.loss(y, flat[cells]).sum() for noise, cells, y in self.list_observed())
        return float(loss - self.model.score(edge_tables) - self.model.bethe_entropy(edge_tables, nodes))


def _iterate_observed(model: TreeModel, counts: list[FlowCounts], population_size: float) -> Iterator[tuple]:
    """(noise, cells, y) of all observed cells. Repeated Poisson counts are added up."""
    for given in counts:
        noise = noise_model(given.noise, given.rate, given.scale)
        if given.noise == "exact":
            _check_totals(given, population_size)
        for first, padded in ((0, _pad_nodes(model, given)), (model.n_nodes * model.size, _pad_edges(model, given))):
            if not padded.size:
                continue
            flat = padded.reshape(len(padded), -1)
            if given.noise == "poisson" and len(flat) > 1:
                repeats = (~np.isnan(flat)).sum(axis=0)
                total = np.nansum(flat, axis=0)
                for k in np.unique(repeats[repeats > 0]):
                    cells = np.flatnonzero(repeats == k)
                    yield Poisson(given.rate * float(k)), cells + first, total[cells]
                continue
            if given.noise == "exact":
                flat = flat[:1] if (np.nan_to_num(flat) == np.nan_to_num(flat[:1])).all() else flat
            _, cells = np.nonzero(~np.isnan(flat))
            yield noise, cells + first, flat[~np.isnan(flat)]


def _check_totals(given: FlowCounts, population_size: float) -> None:
    """Raise DataError if a complete exact table does not add up to M."""
    for kind in ("node", "edge"):
        for repeat in given.repeats(kind):
            for k, table in enumerate(repeat):
                if not np.isnan(table).any() and abs(table.sum() - population_size) > 1e-9 * population_size:
                    raise DataError(
                        f"{kind} {k} counts {table.sum():g} exactly, the population has {population_size:g}; give the "
                        "right population_size, or declare the noise"
                    )


def _pad_nodes(model: TreeModel, given: FlowCounts) -> np.ndarray:
    """(R, N, L) node counts, NaN where nothing was observed."""
    counts = given.repeats("node")
    if not counts.size:
        return counts
    if counts.shape[1] != model.n_nodes or counts.shape[2] != model.size:
        raise DataError(
            f"node_counts: {counts.shape[1]} nodes of {counts.shape[2]} states, the model has {model.n_nodes} of {model.size}"
        )
    return np.where(model.states, counts, np.nan)


def _pad_edges(model: TreeModel, given: FlowCounts) -> np.ndarray:
    """(R, N, L, L) edge counts by child, parent's state first."""
    counts = given.repeats("edge")
    if not counts.size:
        return counts
    expected = tuple(max(t.shape[k] for t in model.log_potentials) for k in (0, 1))
    if counts.shape[1] != len(model.edges) or counts.shape[2:] != expected:
        raise DataError(
            f"edge_counts: {counts.shape[1]} tables of {counts.shape[2]} × {counts.shape[3]}, the model has "
            f"{len(model.edges)} of {expected[0]} × {expected[1]}"
        )
    cut = [[t[: p.shape[0], : p.shape[1]] for t, p in zip(r, model.log_potentials, strict=True)] for r in counts]
    return np.array([model.pad_edges(tables, np.nan) for tables in cut])
