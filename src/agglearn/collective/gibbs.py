"""Posterior mean of the tables by Gibbs sampling (Sheldon and Dietterich 2011, and Sun 2019, section 2.6.1.2)."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from agglearn.collective import gibbs_kernels as kernels
from agglearn.collective.kernels import EXACT
from agglearn.collective.model import TreeModel
from agglearn.collective.newton import dual_newton
from agglearn.collective.problem import Point, Problem
from agglearn.collective.propagation import Beliefs, propagate
from agglearn.collective.results import Inference, Recorder
from agglearn.errors import DataError, NotAvailable
from agglearn.progress import track
from agglearn.rounding import round_to_totals
from agglearn.seeds import RandomState, derive_generator, derive_seed, draw_seed
from agglearn.settings import Count, Share

Stream = Annotated[RandomState | tuple, "checked where it is used"]
START_TOLERANCE = 1e-4  # of the approximate MAP that chains start from


def infer_gibbs(
    problem: Problem,
    n_moves: Count = 1_000_000,
    burn_in: Share = 0.2,
    stages: Count = 20,
    random_state: Stream = None,
    record: Recorder | None = None,
) -> Inference:
    """Return the mean of the tables over `n_moves` moves, without the fraction `burn_in`.

    stages : number of iterates in the trace, each the mean so far. details["means"] has (seconds, moves, tables) of each,
        burn-in included. random_state : see `draw_seed`. A tuple names a stream of its own.
    """
    problem.require_whole("sampling")
    seed = random_state if isinstance(random_state, tuple) else draw_seed(random_state)
    chain = Chain(problem, derive_generator("gibbs", seed))
    n_burn_in = int(n_moves * burn_in)
    chain.run(n_burn_in, derive_seed("burn-in", seed))
    chain.reset()
    means: list[tuple[float, int, list[np.ndarray]]] = []
    n_stages = stages if record else 1
    for k in track(range(n_stages), "stages"):
        chain.run(max(1, (n_moves - n_burn_in) // n_stages), derive_seed("stage", k, seed))
        if record:
            with record.pause():
                means.append((record.seconds(), n_burn_in + chain.n_moves, chain.mean()))
            record(means[-1][2])
    edges = chain.mean()
    nodes = problem.model.node_tables_of(edges)
    rows, details = (record.finish(), {"means": means}) if record else ([], {})
    return Inference(edges, nodes, problem.objective_of(edges, nodes), rows, details=details)


class Chain:
    """A Markov chain over tables.

    nodes (N, L), tables (N, L, L) : current state. sums : (N, L, L) tables after each move since `reset`, added up.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator, tables: Sequence[np.ndarray] | None = None) -> None:
        self.problem, model = problem, problem.model
        self.evidence = problem.evidence()
        self.fixed = Fixed(problem)
        self.fixed.refuse_unreachable()
        point = dual_newton(problem, tol=START_TOLERANCE)
        self.proposal = _path_proposal(model, point.beliefs)
        start = start_tables(problem, point, self.fixed, rng) if tables is None else tables
        self.tables = model.pad_edges([np.asarray(t, float) for t in start])
        self.nodes = np.zeros((model.n_nodes, model.size))
        for i, row in enumerate(model.node_tables_of(start)):
            self.nodes[i, : len(row)] = np.round(row)
        self.reset()

    def reset(self) -> None:
        """Forget the moves so far."""
        self.sums, self.n_moves = np.zeros_like(self.tables), 0

    def run(self, n_moves: int, seed: int) -> None:
        """Make random moves."""
        model = self.problem.model
        tree, stamps = model.rooted, np.zeros(self.tables.shape, np.int64)
        kernels.make_moves(
            n_moves, tree.order, tree.parent, tree.children, tree.bounds, model.degrees, model.sizes, model.log_tables,
            model.table_index, *self.evidence, self.fixed.incomplete, self.fixed.needs_paths, *self.proposal, self.nodes,
            self.tables, self.sums, stamps, np.random.default_rng(seed),
        )  # fmt: skip
        self.n_moves += n_moves

    def current(self) -> list[np.ndarray]:
        """Current edge tables."""
        return [t.copy() for t in self.problem.model.split_edges(self.tables)]

    def mean(self) -> list[np.ndarray]:
        """Mean of the edge tables since `reset`."""
        return [t / self.n_moves for t in self.problem.model.split_edges(self.sums)]


class Fixed:
    """Cells that exact counts and potentials of zero fix.

    nodes : (N, L) fixed counts, observed at the node or implied by a whole edge table. NaN elsewhere.
    edges : (N, L, L) exact counts by child, parent's state first. NaN elsewhere. states (N, L), pairs (N, L, L) : whether
    somebody can be in the cell. incomplete : whether the table of some edge has a fixed or forbidden cell between possible
    states. needs_paths : whether rectangles and shifts alone may not reach all tables.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, model = problem, problem.model
        self.nodes = np.full((model.n_nodes, model.size), np.nan)
        self.edges = np.full((model.n_nodes, model.size, model.size), np.nan)
        for noise, cells, y in problem.list_observed():
            if noise.code == EXACT:
                is_node = cells < problem.n_cells
                self.nodes.reshape(-1)[cells[is_node]] = y[is_node]
                self.edges.reshape(-1)[cells[~is_node] - problem.n_cells] = y[~is_node]
        self.exact = not (np.isnan(self.nodes).all() and np.isnan(self.edges).all())
        self.states, self.pairs = _possible_cells(problem)
        self.nodes[~self.states], self.edges[~self.pairs] = 0.0, 0.0
        self._add_sums()
        states = self.states[model.rooted.parent][:, :, None] & self.states[:, None, :]
        immovable = states & (~self.pairs | ~np.isnan(self.edges))
        self.incomplete_edges = [c for c in model.rooted.order[1:] if immovable[c].any()]
        self.incomplete = bool(self.incomplete_edges)
        self.needs_paths = self.incomplete and not self.exact

    def _add_sums(self) -> None:
        """Fix node tables that whole edge tables imply."""
        for c in self.problem.model.rooted.order[1:]:
            if not np.isnan(self.edges[c]).any():
                self.nodes[self.problem.model.rooted.parent[c]] = self.edges[c].sum(axis=1)
                self.nodes[c] = self.edges[c].sum(axis=0)

    def refuse_unreachable(self) -> None:
        """Raise NotAvailable if moves may not reach all tables with the exact counts."""
        free = np.isnan(self.nodes).any(axis=1)
        for c in self.incomplete_edges if self.exact else []:
            parent = self.problem.model.rooted.parent[c]
            whole = not np.isnan(self.edges[c]).any()
            if not whole and (free[c] or free[parent]):
                a, b = self.problem.model.edges[self.problem.model.rooted.edge[c]]
                raise NotAvailable(
                    f"gibbs: edge {a}–{b} has cells that are fixed or forbidden, and node {c if free[c] else parent} has no "
                    "exact counts: moves may not reach all tables; use method='dual-newton', or count all states exactly"
                )


def _possible_cells(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(N, L) and (N, L, L): which states and pairs are on some path of positive potential."""
    model = problem.model
    ones = model.with_potentials([np.where(np.isfinite(t), 0.0, -np.inf) for t in model.log_potentials])
    base = np.where(np.isfinite(problem.base), 0.0, -np.inf)
    edges = None if problem.base_edges is None else np.where(np.isfinite(problem.base_edges), 0.0, -np.inf)
    beliefs = propagate(ones, base, edges)
    return beliefs.marginals > 0, beliefs.pairs() > 0


def start_tables(problem: Problem, point: Point, fixed: Fixed, rng: np.random.Generator) -> list[np.ndarray]:
    """Whole tables with the exact counts, drawn from the model with the beliefs of the approximate MAP."""
    if not fixed.exact:
        return _model_of(problem.model, point.beliefs).sample_tables(int(problem.M), rng)
    if not problem.is_solved(point, START_TOLERANCE):
        problem.refuse_impossible()
    nodes = _round_nodes(problem, fixed.nodes, problem.tables(point.beliefs)[1])
    tables = [_transport(problem, c, fixed, nodes) for c in range(problem.model.n_nodes)]
    return problem.model.split_edges(np.array(tables))


def _model_of(model: TreeModel, beliefs: Beliefs) -> TreeModel:
    """Model with given beliefs: conditionals down the tree, the root's marginal in its first edge."""
    conditionals, first = beliefs.conditionals()
    with np.errstate(divide="ignore"):
        log_tables = np.log(conditionals)
        log_tables[model.rooted.order[1]] += np.log(first)[:, None]
    return model.with_potentials([t.copy() for t in model.split_edges(log_tables)])


def _path_proposal(model: TreeModel, beliefs: Beliefs) -> tuple[np.ndarray, np.ndarray]:
    """Conditionals (N, L, L) and the root's marginal (L,) of new paths: half the approximate MAP's, half the model's."""
    (steps, first), (prior_steps, prior) = beliefs.conditionals(), model.beliefs.conditionals()
    visited = steps.sum(axis=2, keepdims=True) > 0
    return np.where(visited, (steps + prior_steps) / 2, prior_steps), (first + prior) / 2


def _round_nodes(problem: Problem, fixed: np.ndarray, nodes: Sequence[np.ndarray]) -> np.ndarray:
    """(N, L) whole node tables with M in each, near the given ones and equal to fixed counts."""
    rounded = np.zeros(fixed.shape)
    for i, z in enumerate(nodes):
        counts = fixed[i, : len(z)]
        n, free = np.where(np.isnan(counts), 0.0, counts), np.where(np.isnan(counts), z, 0.0)
        rest = problem.M - n.sum()
        if rest < 0 or (rest > 0 and free.sum() <= 0):
            raise DataError(f"node {i}: exact counts add up to {n.sum():g}, the population has {problem.M:g}")
        if (n != np.round(n)).any():
            raise DataError(f"node {i}: sampling needs whole exact counts; round them, or declare their noise")
        if rest > 0:
            free *= rest / free.sum()
            n += round_to_totals(free, rest)
        rounded[i, : len(z)] = n
    return rounded


def _transport(problem: Problem, child: int, fixed: Fixed, nodes: np.ndarray) -> np.ndarray:
    """A whole table with these margins and the fixed cells, of largest Σ n log φ (a transport problem)."""
    model, table = problem.model, np.nan_to_num(fixed.edges[child])
    if child == model.rooted.order[0]:
        return np.zeros(table.shape)
    free = np.argwhere(np.isnan(fixed.edges[child]))
    if not len(free):
        return table
    margins = np.concatenate([nodes[model.rooted.parent[child]] - table.sum(axis=1), nodes[child] - table.sum(axis=0)])
    variables, size = np.arange(len(free)), model.size
    rows = np.concatenate([free[:, 0], size + free[:, 1]])
    conditions = sparse.csr_matrix((np.ones(2 * len(free)), (rows, np.tile(variables, 2))), (2 * size, len(free)))
    log_phi = model.log_tables[model.table_index[child]][tuple(free.T)]
    solution = linprog(-log_phi, A_eq=conditions, b_eq=margins, method="highs-ds")
    if solution.status != 0:
        a, b = model.edges[model.rooted.edge[child]]
        raise DataError(f"edge {a}–{b}: no whole table has the exact counts of the edge and of its nodes")
    table[tuple(free.T)] = np.round(solution.x)
    return table
