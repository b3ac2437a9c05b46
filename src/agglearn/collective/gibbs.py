"""Posterior mean of the tables by Gibbs sampling (Sheldon and Dietterich 2011; Sun 2019, section 2.6.1.2)."""

import time

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from agglearn.collective import gibbs_kernels as kernels
from agglearn.collective.model import TreeModel
from agglearn.collective.newton import dual_newton
from agglearn.collective.noise import Exact
from agglearn.collective.problem import Point, Problem
from agglearn.collective.propagation import propagate
from agglearn.collective.results import Inference, Recorder
from agglearn.errors import DataError, NotAvailable
from agglearn.seeds import derive_generator, derive_seed, draw_seed
from agglearn.settings import Count, Share

START = 1e-4  # tolerance of the approximate MAP that chains start from
KINDS = {"Poisson": 1, "Gaussian": 2, "Laplace": 3, "Exact": 4}


def infer_gibbs(
    model,
    counts,
    population_size,
    *,
    trace=False,
    n_moves: Count = 1_000_000,
    burn_in: Share = 0.2,
    stages: Count = 20,
    random_state=None,
):
    """Mean of the tables over `n_moves` moves, after a share `burn_in` that does not count.

    stages : the trace has so many entries (the mean so far); details["means"] has (seconds, moves, tables) of each, burn-in
        included. random_state : see `draw_seed`; a tuple names a stream of its own.

    Raises
    ------
    DataError : exact counts that no whole tables have. NotAvailable : moves cannot reach all tables with the exact counts.
    """
    problem = Problem(model, counts, _whole(population_size))
    record = Recorder(problem) if trace else None
    seed = random_state if isinstance(random_state, tuple) else draw_seed(random_state)
    chain = Chain(problem, derive_generator("gibbs", seed))
    begin = int(n_moves * burn_in)
    chain.run(begin, derive_seed("burn-in", seed))
    chain.reset()
    kept, parts = [], stages if trace else 1
    for k in range(parts):
        chain.run(max(1, (n_moves - begin) // parts), derive_seed("stage", k, seed))
        if record:
            with record.paused():
                kept.append((time.perf_counter() - record.begin - record.out, begin + chain.made, chain.mean()))
            record(kept[-1][2])
    edges = chain.mean()
    nodes = model.node_tables_of(edges)
    rows, details = (record.finish(), {"means": kept}) if record else ([], {})
    return Inference(edges, nodes, problem.objective_of(edges, nodes), rows, details=details)


class Chain:
    """Tables that move.

    nodes (N, L), tables (N, L, L): where they are. sums: over all moves since `reset`.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator, tables=None):
        self.problem, model = problem, problem.model
        self.evidence = evidence(problem)
        self.fixed = Fixed(problem)
        self.fixed.refuse_unreachable()
        point = dual_newton(problem, tol=START)
        self.proposal = _proposal(model, point.beliefs)
        start = start_tables(problem, point, self.fixed, rng) if tables is None else tables
        self.tables = model.pad_edges([np.asarray(t, float) for t in start])
        self.nodes = np.zeros((model.n_nodes, model.size))
        for i, row in enumerate(model.node_tables_of(start)):
            self.nodes[i, : len(row)] = np.round(row)
        self.reset()

    def reset(self) -> None:
        self.sums, self.made = np.zeros_like(self.tables), 0

    def run(self, n_moves: int, seed: int) -> None:
        model = self.problem.model
        tree, stamps = model.rooted, np.zeros(self.tables.shape, np.int64)
        kernels.moves(
            n_moves, tree.order, tree.parent, tree.children, tree.bounds, model.degrees, model.sizes, model.log_tables,
            model.which, *self.evidence, self.fixed.incomplete, self.fixed.needs_paths, *self.proposal, self.nodes,
            self.tables, self.sums, stamps, np.random.default_rng(seed),
        )  # fmt: skip
        self.made += n_moves

    def now(self) -> list[np.ndarray]:
        """Edge tables as they are."""
        return [t.copy() for t in self.problem.model.split_edges(self.tables)]

    def mean(self) -> list[np.ndarray]:
        return [t / self.made for t in self.problem.model.split_edges(self.sums)]


def evidence(problem: Problem, kinds_known=KINDS):
    """(kinds, counts, parameters) of node cells and of edge cells, and whether there are any of the latter."""
    model, n = problem.model, problem.n_cells
    shapes = (model.n_nodes, model.size), (model.n_nodes, model.size, model.size)
    total = n + int(np.prod(shapes[1]))
    kinds, counts, parameters = np.zeros(total, np.int8), np.zeros(total), np.ones(total)
    for noise, cells, y in problem.observed():
        name = type(noise).__name__
        if name not in kinds_known:
            raise NotAvailable(f"{name.lower()} counts have no gradient; use method='dual-newton'")
        if kinds[cells].any() or len(np.unique(cells)) < len(cells):
            raise NotAvailable("this method takes one count per cell (Poisson counts add up); use method='dual-newton'")
        kinds[cells], counts[cells] = kinds_known[name], y
        parameters[cells] = getattr(noise, "rate", getattr(noise, "scale", 1.0))
    parts = kinds, counts, parameters
    edges = [a[n:].reshape(shapes[1]) if problem.has_edges else np.zeros((0, 0, 0), a.dtype) for a in parts]
    return (*(a[:n].reshape(shapes[0]) for a in parts), *edges, problem.has_edges)


class Fixed:
    """What exact counts and potentials of zero leave to move.

    nodes : (N, L) counts that are fixed, counted at the node or as the sums of a whole edge table; NaN elsewhere.
    edges : (N, L, L) exact counts by child, parent's state first; NaN elsewhere. pairs : (N, L, L) which cells can hold
    somebody. incomplete : whether some edge has possible states between which nobody goes or the count is fixed.
    needs_paths : whether rectangles and shifts alone may not reach all tables.
    """

    def __init__(self, problem: Problem):
        self.problem, model = problem, problem.model
        self.nodes = np.full((model.n_nodes, model.size), np.nan)
        self.edges = np.full((model.n_nodes, model.size, model.size), np.nan)
        for noise, cells, y in problem.observed():
            if isinstance(noise, Exact):
                here = cells < problem.n_cells
                self.nodes.reshape(-1)[cells[here]] = y[here]
                self.edges.reshape(-1)[cells[~here] - problem.n_cells] = y[~here]
        self.exact = not (np.isnan(self.nodes).all() and np.isnan(self.edges).all())
        self.states, self.pairs = _possible(problem)
        self.nodes[~self.states], self.edges[~self.pairs] = 0.0, 0.0
        self._add_sums()
        states = self.states[model.rooted.parent][:, :, None] & self.states[:, None, :]
        still = states & (~self.pairs | ~np.isnan(self.edges))
        self.gaps = [c for c in model.rooted.order[1:] if still[c].any()]
        self.incomplete = bool(self.gaps)
        self.needs_paths = self.incomplete and not self.exact

    def _add_sums(self) -> None:
        """Node tables that whole edge tables imply."""
        for c in self.problem.model.rooted.order[1:]:
            if not np.isnan(self.edges[c]).any():
                self.nodes[self.problem.model.rooted.parent[c]] = self.edges[c].sum(axis=1)
                self.nodes[c] = self.edges[c].sum(axis=0)

    def refuse_unreachable(self) -> None:
        """NotAvailable where exact counts hold tables that no move may leave."""
        free = np.isnan(self.nodes).any(axis=1)
        for c in self.gaps if self.exact else []:
            parent = self.problem.model.rooted.parent[c]
            whole = not np.isnan(self.edges[c]).any()
            if not whole and (free[c] or free[parent]):
                a, b = self.problem.model.edges[self.problem.model.rooted.edge[c]]
                raise NotAvailable(
                    f"gibbs: edge {a}–{b} has cells that are fixed or forbidden, and node {c if free[c] else parent} has no "
                    "exact counts: moves may not reach all tables; use method='dual-newton', or count all states exactly"
                )


def _possible(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(N, L) and (N, L, L): which states and pairs some path of positive potential has, whatever its probability."""
    model = problem.model
    ones = model.with_potentials([np.where(np.isfinite(t), 0.0, -np.inf) for t in model.log_potentials])
    base = np.where(np.isfinite(problem.base), 0.0, -np.inf)
    edges = None if problem.base_edges is None else np.where(np.isfinite(problem.base_edges), 0.0, -np.inf)
    beliefs = propagate(ones, base, edges)
    return beliefs.marginals > 0, beliefs.pairs() > 0


def start_tables(problem: Problem, point: Point, fixed: Fixed, rng: np.random.Generator) -> list[np.ndarray]:
    """Whole tables that satisfy what is observed exactly: drawn from the model tilted to the approximate MAP."""
    if not fixed.exact:
        return problem.model.with_potentials(_tilted(problem.model, point.beliefs)).sample_tables(int(problem.M), rng)
    if not problem.reached(point, START):
        problem.refuse_impossible()
    nodes = _whole_nodes(problem, fixed.nodes, problem.tables(point.beliefs)[1])
    return problem.model.split_edges(
        np.array([_transport(problem, c, fixed, nodes) for c in range(problem.model.n_nodes)])
    )


def _tilted(model: TreeModel, beliefs) -> list[np.ndarray]:
    """Log-potentials of a model with these beliefs: conditionals down the tree, the root's law in its first edge."""
    conditionals, first = beliefs.conditionals()
    with np.errstate(divide="ignore"):
        logs = np.log(conditionals)
        logs[model.rooted.order[1]] += np.log(first)[:, None]
    return [t.copy() for t in model.split_edges(logs)]


def _proposal(model: TreeModel, beliefs) -> tuple[np.ndarray, np.ndarray]:
    """Conditionals (N, L, L) and the root's law (L,) of new paths: half the approximate MAP's, half the model's."""
    (steps, first), (prior_steps, prior) = beliefs.conditionals(), model._beliefs.conditionals()
    met = steps.sum(axis=2, keepdims=True) > 0
    return np.where(met, (steps + prior_steps) / 2, prior_steps), (first + prior) / 2


def _whole_nodes(problem: Problem, fixed: np.ndarray, nodes) -> np.ndarray:
    """(N, L) whole node tables with M in each, near the given ones, equal to fixed counts."""
    found = np.zeros(fixed.shape)
    for i, z in enumerate(nodes):
        known = fixed[i, : len(z)]
        n, left = np.where(np.isnan(known), 0.0, known), np.where(np.isnan(known), z, 0.0)
        rest = problem.M - n.sum()
        if rest < 0 or (rest > 0 and left.sum() <= 0):
            raise DataError(f"node {i}: exact counts add up to {n.sum():g}, the population has {problem.M:g}")
        if (n != np.round(n)).any():
            raise DataError(f"node {i}: sampling needs whole exact counts; round them, or declare their noise")
        if rest > 0:
            left *= rest / left.sum()
            n += np.floor(left)
            missing = round(problem.M - n.sum())
            n[np.argsort(-(left - np.floor(left)))[:missing]] += 1
        found[i, : len(z)] = n
    return found


def _transport(problem: Problem, child: int, fixed: Fixed, nodes: np.ndarray) -> np.ndarray:
    """A whole table with these margins and the fixed cells, of largest Σ n log φ (a transport problem)."""
    model, table = problem.model, np.nan_to_num(fixed.edges[child])
    at = np.argwhere(np.isnan(fixed.edges[child]))
    if child == model.rooted.order[0] or not len(at):
        return np.zeros(table.shape) if child == model.rooted.order[0] else table
    left = np.concatenate([nodes[model.rooted.parent[child]] - table.sum(axis=1), nodes[child] - table.sum(axis=0)])
    cells, size = np.arange(len(at)), model.size
    conditions = sparse.csr_matrix(
        (np.ones(2 * len(at)), (np.concatenate([at[:, 0], size + at[:, 1]]), np.tile(cells, 2))), (2 * size, len(at))
    )
    log_phi = model.log_tables[model.which[child]][tuple(at.T)]
    found = linprog(-log_phi, A_eq=conditions, b_eq=left, method="highs-ds")
    if found.status != 0:
        a, b = model.edges[model.rooted.edge[child]]
        raise DataError(
            f"edge {a}–{b}: no whole table has the counts that were observed exactly there and at its nodes"
        )
    table[tuple(at.T)] = np.round(found.x)
    return table


def _whole(population_size) -> int:
    if population_size != int(population_size):
        raise DataError(f"population_size: sampling needs a whole number, got {population_size}")
    return int(population_size)
