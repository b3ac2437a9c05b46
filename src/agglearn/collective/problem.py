"""The approximate MAP problem (Sun 2019, eq. 2.7) of a model, its evidence and a population, with its dual.

    minimise over z in the local polytope   F(z) = −Σ z_ij log φ_ij − H_B(z) − log p(y | z)

In potential form, with a dual variable λ per observed cell (λ = ∂ℓ/∂z at the optimum), z(λ) = M · marginals of the
potentials θ − λ is feasible for every λ, and

    D(λ) = M log Z(θ − λ) + Σ ℓ*(λ),    F(z(λ)) − F* ≤ Σ ℓ(z) + ℓ*(λ) − λz =: gap(λ),

zero at the optimum: every method can say how far it is from it.
"""

import math
from dataclasses import dataclass

import numpy as np

from agglearn.collective.feasibility import refuse_impossible
from agglearn.collective.model import TreeModel
from agglearn.collective.noise import Exact, Poisson, noise_model
from agglearn.collective.propagation import Beliefs, propagate
from agglearn.errors import DataError
from agglearn.observations.flows import FlowCounts

ROUNDING = 1e-12  # of z, relative to M
HALF = 0.5  # a person: exact counts that are further off are not met, whatever the tolerance


@dataclass(frozen=True)
class Term:
    """Observed cells of one noise model. cells : (k,) places in the node cells, or after them the edge cells."""

    noise: object
    cells: np.ndarray
    y: np.ndarray
    at: slice


@dataclass
class Point:
    """State at a λ.

    Attributes
    ----------
    beliefs : of the potentials θ − λ. z : (K,) counts at the observed cells. gap : bound on F − F*; an exact count adds its
    distance from z. distance : that of all exact counts, in persons. objective : F without the exact counts' indicator.
    """

    dual: np.ndarray
    beliefs: Beliefs
    z: np.ndarray
    gap: float
    distance: float
    objective: float
    dual_value: float


class Problem:
    """Evidence laid out for solvers.

    Parameters
    ----------
    model : TreeModel. counts : FlowCounts or several, of the same population. population_size : M.

    Attributes
    ----------
    size : number K of observed cells that are not settled at once; lower, upper : (K,) bounds of λ. Cells where the loss
    is linear in z (a Poisson count of zero, a Laplace count below zero) have a known λ and join the potentials.
    """

    def __init__(self, model: TreeModel, counts, population_size: float):
        if not 0 < population_size < np.inf:
            raise DataError(f"population_size: must be positive, got {population_size}")
        self.model, self.M = model, float(population_size)
        self.counts = list(counts) if isinstance(counts, list | tuple) else [counts]
        self.n_cells = model.n_nodes * model.size
        self.base = np.where(model.states, 0.0, -np.inf)
        self.base_edges = None
        self.constant = 0.0
        self.terms, self.settled, at = [], [], 0
        for noise, cells, y in _observed(model, self.counts, self.M):
            linear, slope = noise.linear(y)
            self._settle(noise, cells[linear], y[linear], slope[linear])
            cells, y = cells[~linear], y[~linear]
            self.terms.append(Term(noise, cells, y, slice(at, at + len(cells))))
            at += len(cells)
        self.size = at
        self.cells = np.concatenate([t.cells for t in self.terms]) if self.terms else np.zeros(0, np.int64)
        self.unique = np.bincount(self.cells, minlength=1).max() <= 1
        self.has_edges = self.base_edges is not None or bool((self.cells >= self.n_cells).any())
        if self.has_edges and self.base_edges is None:
            self.base_edges = np.zeros((model.n_nodes, model.size, model.size))
        bounds = [t.noise.bounds(t.y) for t in self.terms]
        self.lower, self.upper = (np.concatenate([b[k] for b in bounds]) if bounds else np.zeros(0) for k in (0, 1))
        self.smooth = all(t.noise.smooth for t in self.terms if len(t.y))
        self.exact = np.repeat([isinstance(t.noise, Exact) for t in self.terms], [len(t.y) for t in self.terms])
        self.has_exact = bool(self.exact.any())
        self._check_possible()

    def _settle(self, noise, cells, y, slope) -> None:
        if not len(cells):
            return
        edges = cells >= self.n_cells
        np.subtract.at(self.base.reshape(-1), cells[~edges], slope[~edges])
        if edges.any():
            if self.base_edges is None:
                self.base_edges = np.zeros((self.model.n_nodes, self.model.size, self.model.size))
            np.subtract.at(self.base_edges.reshape(-1), cells[edges] - self.n_cells, slope[edges])
        self.settled.append((noise, cells, y))
        self.constant -= float(noise.loss(y, np.zeros(len(y))).sum())  # ℓ* at the only slope that ℓ has

    def _check_possible(self) -> None:
        """DataError that names a counted cell which the potentials or exact zeros make impossible."""
        counted = np.zeros(self.size, bool)
        for t in self.terms:
            counted[t.at] = (t.y > 0) & t.noise.positive
        cells = self.cells[counted]
        nodes, edges = cells[cells < self.n_cells], cells[cells >= self.n_cells] - self.n_cells
        self.needed = None
        if nodes.size:
            self.needed = np.zeros(self.base.shape, bool)
            self.needed.reshape(-1)[nodes] = True
        self.start = propagate(self.model, self.base, self.base_edges, self.needed)
        if not np.isfinite(self.start.log_z):
            self.refuse_impossible()
        if (empty := nodes[self.start.marginals.reshape(-1)[nodes] <= 0]).size:
            node, state = np.unravel_index(empty[0], self.base.shape)
            raise DataError(
                f"{self.model.node_name(node)}, state {state}: counted, but potentials of zero (or exact counts of zero) "
                "let nobody be there"
            )
        if edges.size and (empty := edges[self.start.pairs().reshape(-1)[edges] <= 0]).size:
            raise DataError(
                f"{self.model.edge_cell_name(empty[0])}: counted, but potentials of zero (or exact counts of zero) let nobody go there"
            )

    def observed(self) -> list[tuple]:
        """(noise, cells, counts) of everything that was observed, cells settled at once included."""
        return [(t.noise, t.cells, t.y) for t in self.terms if len(t.y)] + self.settled

    def refuse_impossible(self) -> None:
        """DataError where no tables of real numbers have all exact counts, see `agglearn.collective.feasibility`."""
        refuse_impossible(self.model, self.M, self.observed())

    # -- loss and its conjugate over the observed cells --------------------------------------------------------

    def _each(self, method: str, values: np.ndarray) -> np.ndarray:
        out = np.empty(self.size)
        for t in self.terms:
            out[t.at] = getattr(t.noise, method)(t.y, values[t.at])
        return out

    def loss(self, z) -> np.ndarray:
        return self._each("loss", z)

    def gradient(self, z) -> np.ndarray:
        """ℓ′(z), the λ that a first-order method takes. A cell without anybody has no gradient: z is kept positive."""
        for t in self.terms:
            if not hasattr(t.noise, "gradient"):
                raise DataError(f"{type(t.noise).__name__.lower()} counts have no gradient; use method='dual-newton'")
        return self._each("gradient", np.maximum(z, 1e-300))

    def conjugate(self, dual) -> np.ndarray:
        return self._each("conjugate", dual)

    def mean(self, dual) -> np.ndarray:
        return self._each("mean", dual)

    def conjugate_curvature(self, dual) -> np.ndarray:
        return self._each("conjugate_curvature", dual)

    # -- potentials and beliefs --------------------------------------------------------------------------------

    def spread(self, values: np.ndarray):
        """Values of observed cells as (N, L) and (N, L, L); edges None without edge evidence."""
        total = self.n_cells + (self.base_edges.size if self.has_edges else 0)
        if self.unique:
            flat = np.zeros(total)
            flat[self.cells] = values
        else:
            flat = np.bincount(self.cells, values, total)
        nodes = flat[: self.n_cells].reshape(self.base.shape)
        return nodes, flat[self.n_cells :].reshape(self.base_edges.shape) if self.has_edges else None

    def collect(self, nodes: np.ndarray, edges) -> np.ndarray:
        """Values at the observed cells."""
        if not self.has_edges:
            return nodes.reshape(-1)[self.cells]
        if self.cells.size and self.cells[0] >= self.n_cells:
            return edges.reshape(-1)[self.cells - self.n_cells]
        return np.concatenate([nodes.reshape(-1), edges.reshape(-1)])[self.cells]

    def beliefs(self, dual: np.ndarray) -> Beliefs:
        """Belief propagation with the potentials θ − λ."""
        nodes, edges = self.spread(dual)
        return propagate(self.model, self.base - nodes, None if edges is None else self.base_edges - edges, self.needed)

    def counts_at(self, beliefs: Beliefs) -> np.ndarray:
        """z = M · marginals at the observed cells."""
        return self.M * self.collect(beliefs.marginals, beliefs.pairs() if self.has_edges else None)

    def at(self, dual: np.ndarray, beliefs: Beliefs | None = None) -> Point:
        """Beliefs (where they are not known yet), objective, dual value and gap at λ."""
        beliefs = beliefs or self.beliefs(dual)
        z = self.counts_at(beliefs)
        conjugate = self.conjugate(dual)
        dual_value = self.M * beliefs.log_z + conjugate.sum() - self.M * np.log(self.M) + self.constant
        with np.errstate(
            divide="ignore", invalid="ignore", over="ignore"
        ):  # a method that diverges has an infinite gap
            gaps = self.loss(z) + conjugate - dual * z
            distance, moved, losses = 0.0, 0.0, gaps
            if self.has_exact:  # no loss that could be compared: the distance from the count stands for the gap
                off = (self.mean(dual) - z)[self.exact]
                distance, moved = float(np.abs(off).sum()), float((dual[self.exact] * off).sum())
                losses = gaps[~self.exact]
            gap = float(losses.sum())
        objective = gap + moved - float(dual_value)
        return Point(dual, beliefs, z, gap + distance, distance, objective, float(dual_value))

    def reached(self, point: Point, tol: float) -> bool:
        """Whether a point is finite, its gap is at most tol · max(1, |F|), and its exact counts are met.

        Exact counts are met within tol · M, and never less closely than half a person.
        """
        if not (math.isfinite(point.objective) and math.isfinite(point.gap)):
            return False
        small = point.gap - point.distance <= tol * max(1.0, abs(point.objective))
        return bool(small and point.distance <= min(max(tol, ROUNDING) * self.M, HALF))

    # -- tables ------------------------------------------------------------------------------------------------

    def tables(self, beliefs: Beliefs) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Edge and node tables of beliefs, M in all."""
        edges = [self.M * t for t in self.model.split_edges(beliefs.pairs())]
        return edges, [self.M * t for t in self.model.split_nodes(beliefs.marginals)]

    def _flat(self, edge_tables, node_tables) -> np.ndarray:
        """Node cells, and after them edge cells."""
        flat = np.zeros(self.n_cells + self.model.n_nodes * self.model.size**2)
        padded = np.zeros(self.base.shape)
        for k, row in enumerate(node_tables):
            padded[k, : len(row)] = row
        flat[: self.n_cells] = padded.reshape(-1)
        flat[self.n_cells :] = self.model.pad_edges(edge_tables).reshape(-1)
        return flat

    def collect_tables(self, edge_tables, node_tables) -> np.ndarray:
        """z at the observed cells of any tables."""
        return self._flat(edge_tables, node_tables)[self.cells]

    def objective_of(self, edge_tables, node_tables=None) -> float:
        """F of any tables (eq. 2.7), all of log p(y | z) included; node tables default to what the edges imply."""
        nodes = self.model.node_tables_of(edge_tables) if node_tables is None else node_tables
        flat = self._flat(edge_tables, nodes)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = sum(noise.loss(y, flat[cells]).sum() for noise, cells, y in self.observed())
        return float(loss - self.model.score(edge_tables) - self.model.bethe_entropy(edge_tables, nodes))


def _observed(model: TreeModel, counts: list[FlowCounts], population_size: float):
    """(noise, cells, y) of everything that was observed; repeated Poisson counts are added up."""
    offset = model.n_nodes * model.size
    for given in counts:
        noise = noise_model(given.noise, given.rate, given.scale)
        if given.noise == "exact":
            _check_totals(given, population_size)
        for what, place, padded in (
            ("node", 0, _padded_nodes(model, given)),
            ("edge", offset, _padded_edges(model, given)),
        ):
            if not padded.size:
                continue
            flat = padded.reshape(len(padded), -1)
            if what == "edge" and len(given.repeats("edge")) == 0:
                continue
            if given.noise == "poisson" and len(flat) > 1:
                times = (~np.isnan(flat)).sum(axis=0)
                total = np.nansum(flat, axis=0)
                for k in np.unique(times[times > 0]):
                    cells = np.flatnonzero(times == k)
                    yield Poisson(given.rate * float(k)), cells + place, total[cells]
                continue
            if given.noise == "exact":
                flat = flat[:1] if (np.nan_to_num(flat) == np.nan_to_num(flat[:1])).all() else flat
            _, cells = np.nonzero(~np.isnan(flat))
            yield noise, cells + place, flat[~np.isnan(flat)]


def _check_totals(given: FlowCounts, population_size: float) -> None:
    for what in ("node", "edge"):
        for repeat in given.repeats(what):
            for at, table in enumerate(repeat):
                if not np.isnan(table).any() and abs(table.sum() - population_size) > 1e-9 * population_size:
                    raise DataError(
                        f"{what} {at} counts {table.sum():g} exactly, the population has {population_size:g}; give the "
                        "right population_size, or declare the noise"
                    )


def _padded_nodes(model: TreeModel, given: FlowCounts) -> np.ndarray:
    """(R, N, L) node counts, NaN where nothing was observed."""
    counts = given.repeats("node")
    if not counts.size:
        return counts
    if counts.shape[1] != model.n_nodes or counts.shape[2] != model.size:
        raise DataError(
            f"node_counts: {counts.shape[1]} nodes of {counts.shape[2]} states, the model has {model.n_nodes} of {model.size}"
        )
    return np.where(model.states, counts, np.nan)


def _padded_edges(model: TreeModel, given: FlowCounts) -> np.ndarray:
    """(R, N, L, L) edge counts by child, parent's state first."""
    counts = given.repeats("edge")
    if not counts.size:
        return counts
    wanted = tuple(max(t.shape[k] for t in model.log_potentials) for k in (0, 1))
    if counts.shape[1] != len(model.edges) or counts.shape[2:] != wanted:
        raise DataError(
            f"edge_counts: {counts.shape[1]} tables of {counts.shape[2]} × {counts.shape[3]}, the model has "
            f"{len(model.edges)} of {wanted[0]} × {wanted[1]}"
        )
    cut = [[t[: p.shape[0], : p.shape[1]] for t, p in zip(r, model.log_potentials, strict=True)] for r in counts]
    return np.array([model.pad_edges(tables, np.nan) for tables in cut])
