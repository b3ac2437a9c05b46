"""Posterior mean of the tables by Gibbs sampling (Sheldon and Dietterich 2011, and Sun 2019, section 2.6.1.2)."""

import copy
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from scipy.optimize import linprog

from agglearn.collective import gibbs_kernels as kernels
from agglearn.collective.feasibility import indicator_matrix
from agglearn.collective.kernels import EXACT
from agglearn.collective.model import TreeModel, on_paths
from agglearn.collective.newton import dual_newton
from agglearn.collective.problem import Point, Problem
from agglearn.collective.propagation import Beliefs
from agglearn.collective.results import Inference, inference_of
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
) -> Inference:
    """Mean of the tables over `n_moves` moves, without the fraction `burn_in`. The trace has `stages` means so far.

    details["means"] has (seconds, moves, tables) of each stage. A tuple as `random_state` names a stream of its own.
    """
    problem.require_whole("sampling")
    seed = random_state if isinstance(random_state, tuple) else draw_seed(random_state)
    chain = Chain(problem, derive_generator("gibbs", seed))
    n_burn_in = int(n_moves * burn_in)
    chain.run(n_burn_in, derive_seed("burn-in", seed))
    chain.reset()
    means: list[tuple[float, int, list[np.ndarray]]] = []
    recorder, n_stages = problem.recorder, stages if problem.recorder else 1
    for k in track(range(n_stages), "stages"):
        chain.run(max(1, (n_moves - n_burn_in) // n_stages), derive_seed("stage", k, seed))
        if recorder:
            with recorder.pause():
                means.append((recorder.seconds(), n_burn_in + chain.n_moves, chain.mean()))
            recorder(means[-1][2])
    return inference_of(problem, chain.mean(), details={"means": means} if recorder else {})


class Chain:
    """Markov chain over tables. `sums` (N, L, L) adds up the tables after each move since `reset`."""

    def __init__(self, problem: Problem, rng: np.random.Generator, tables: Sequence[np.ndarray] | None = None) -> None:
        self.problem, model = problem, problem.model
        self.evidence = problem.evidence()
        self.fixed = Fixed(problem)
        self.fixed.refuse_unreachable()
        silent = copy.copy(problem)
        silent.recorder = None  # the trace is the chain's
        point = dual_newton(silent, tol=START_TOLERANCE)
        self.proposal = _path_proposal(model, point.beliefs)
        start = start_tables(problem, point, self.fixed, rng) if tables is None else tables
        self.tables = model.pad_edges([np.asarray(t, float) for t in start])
        self.nodes = np.round(model.pad_nodes(model.node_tables_of(start)))
        self.reset()

    def reset(self) -> None:
        self.sums, self.n_moves = np.zeros_like(self.tables), 0

    def run(self, n_moves: int, seed: int) -> None:
        model, stamps = self.problem.model, np.zeros(self.tables.shape, np.int64)
        kernels.make_moves(
            n_moves, model.rooted, model.degrees, model.sizes, model.log_tables, model.table_index, self.evidence,
            self.fixed.incomplete, self.fixed.needs_paths, *self.proposal, self.nodes, self.tables, self.sums, stamps,
            np.random.default_rng(seed),
        )  # fmt: skip
        self.sums += self.tables * (n_moves - stamps)
        self.n_moves += n_moves

    def mean(self) -> list[np.ndarray]:
        return [t / self.n_moves for t in self.problem.model.split_edges(self.sums)]


class Fixed:
    """Counts (N, L) and (N, L, L) that exact counts and zero potentials fix, NaN elsewhere, and the moves needed."""

    def __init__(self, problem: Problem) -> None:
        self.problem, model = problem, problem.model
        flat = np.full(problem.n_cells * (1 + model.size), np.nan)
        self.nodes = flat[: problem.n_cells].reshape(model.n_nodes, model.size)
        self.edges = flat[problem.n_cells :].reshape(model.n_nodes, model.size, model.size)
        for noise, cells, y in problem.list_observed():
            if noise.code == EXACT:
                flat[cells] = y
        self.exact = not np.isnan(flat).all()
        pairs = np.isfinite(model.log_tables)[model.table_index]
        if problem.base_edges is not None:
            pairs &= np.isfinite(problem.base_edges)
        states, pairs = on_paths(model, np.isfinite(problem.base), pairs)
        self.nodes[~states], self.edges[~pairs] = 0.0, 0.0
        for c in model.rooted.order[1:]:
            if not np.isnan(self.edges[c]).any():
                self.nodes[model.rooted.parent[c]], self.nodes[c] = self.edges[c].sum(axis=1), self.edges[c].sum(axis=0)
        possible = states[model.rooted.parent][:, :, None] & states[:, None, :]
        immovable = possible & (~pairs | ~np.isnan(self.edges))
        self.incomplete_edges = [c for c in model.rooted.order[1:] if immovable[c].any()]
        self.incomplete = bool(self.incomplete_edges)
        self.needs_paths = self.incomplete and not self.exact

    def refuse_unreachable(self) -> None:
        """Raise NotAvailable if moves may not reach all tables with the exact counts."""
        free = np.isnan(self.nodes).any(axis=1)
        for c in self.incomplete_edges if self.exact else []:
            parent = self.problem.model.rooted.parent[c]
            if np.isnan(self.edges[c]).any() and (free[c] or free[parent]):
                raise NotAvailable(
                    f"gibbs: {self.problem.model.edge_name(c)} has cells that are fixed or forbidden, and node "
                    f"{c if free[c] else parent} has no exact counts: moves may not reach all tables; use "
                    "method='dual-newton', or count all states exactly"
                )


def start_tables(problem: Problem, point: Point, fixed: Fixed, rng: np.random.Generator) -> list[np.ndarray]:
    """Whole tables with the exact counts, drawn from the model with the beliefs of the approximate MAP."""
    if not fixed.exact:
        return _model_of(problem.model, point.beliefs).sample_tables(int(problem.M), rng)
    if not problem.is_solved(point, START_TOLERANCE):
        problem.refuse_impossible()
    nodes = _round_nodes(problem, fixed.nodes, problem.M * point.beliefs.marginals)
    tables = [_transport(problem, c, fixed, nodes) for c in range(problem.model.n_nodes)]
    return problem.model.split_edges(np.array(tables))


def _model_of(model: TreeModel, beliefs: Beliefs) -> TreeModel:
    """Model with given beliefs: conditionals down the tree, the root's marginal in its first edge."""
    conditionals, first = beliefs.conditionals()
    with np.errstate(divide="ignore"):
        log_tables = np.log(conditionals)
        log_tables[model.rooted.order[1]] += np.log(first)[:, None]
    return TreeModel(model.edges, [t.copy() for t in model.split_edges(log_tables)])


def _path_proposal(model: TreeModel, beliefs: Beliefs) -> tuple[np.ndarray, np.ndarray]:
    """Conditionals (N, L, L) and root's marginal (L,) of new paths: half the approximate MAP's, half the model's."""
    (steps, first), (prior_steps, prior) = beliefs.conditionals(), model.beliefs.conditionals()
    visited = steps.sum(axis=2, keepdims=True) > 0
    return np.where(visited, (steps + prior_steps) / 2, prior_steps), (first + prior) / 2


def _round_nodes(problem: Problem, fixed: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """(N, L) whole node tables with M in each, near the given ones and equal to fixed counts."""
    counts, free = np.nan_to_num(fixed), np.where(np.isnan(fixed), nodes, 0.0)
    if (broken := (counts != np.round(counts)).any(axis=1)).any():
        node = int(np.argmax(broken))
        raise DataError(f"node {node}: sampling needs whole exact counts; round them, or declare their noise")
    remaining = problem.M - counts.sum(axis=1)
    free *= np.divide(remaining, free.sum(axis=1), out=np.zeros(len(free)), where=remaining > 0)[:, None]
    return counts + round_to_totals(free, remaining)


def _transport(problem: Problem, child: int, fixed: Fixed, nodes: np.ndarray) -> np.ndarray:
    """A whole table with these margins and the fixed cells, of largest Σ n log φ (a transport problem)."""
    model, table = problem.model, np.nan_to_num(fixed.edges[child])
    free = np.argwhere(np.isnan(fixed.edges[child]))
    if not len(free):
        return table
    margins = np.concatenate([nodes[model.rooted.parent[child]] - table.sum(axis=1), nodes[child] - table.sum(axis=0)])
    rows = np.concatenate([free[:, 0], model.size + free[:, 1]])
    conditions = indicator_matrix(rows, np.tile(np.arange(len(free)), 2), (2 * model.size, len(free)))
    log_phi = model.log_tables[model.table_index[child]][tuple(free.T)]
    solution = linprog(-log_phi, A_eq=conditions, b_eq=margins, method="highs-ds")
    if solution.status != 0:
        raise DataError(f"{model.edge_name(child)}: no whole table has the exact counts of the edge and of its nodes")
    table[tuple(free.T)] = np.round(solution.x)
    return table
