"""Posterior mean of the tables by Gibbs sampling (Sheldon and Dietterich 2011; Sun 2019, section 2.6.1.2)."""

import time

import numpy as np
from scipy.optimize import linprog

from agglearn.collective import gibbs_kernels as kernels
from agglearn.collective.model import TreeModel
from agglearn.collective.newton import dual_newton
from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference, Recorder
from agglearn.errors import DataError, NotAvailable
from agglearn.seeds import draw_seed
from agglearn.seeds import seed as seed_of
from agglearn.settings import Count, Share

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

    stages : the trace has so many entries (the mean so far); their tables are in details["means"] where asked for.
    random_state : see `draw_seed`; a tuple of whole numbers names a stream of its own.
    Exact counts of single cells can keep moves from reaching all tables; whole node tables do not.
    """
    problem = Problem(model, counts, _whole(population_size))
    seed = random_state if isinstance(random_state, tuple) else draw_seed(random_state)
    chain = Chain(problem, np.random.default_rng(seed_of("gibbs", seed)))
    chain.run(int(n_moves * burn_in), seed_of("burn-in", seed))
    chain.reset()
    record = Recorder(problem) if trace else None
    kept = []
    for k in range(stages if trace else 1):
        chain.run(max(1, (n_moves - int(n_moves * burn_in)) // (stages if trace else 1)), seed_of("stage", k, seed))
        if record:
            with record.paused():
                kept.append((time.perf_counter() - record.begin - record.out, chain.mean()))
            record(kept[-1][1])
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
        start = start_tables(problem, rng) if tables is None else tables
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
            model.which, *self.evidence, self.nodes, self.tables, self.sums, stamps, np.random.default_rng(seed),
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
    for noise, cells, y in [(t.noise, t.cells, t.y) for t in problem.terms] + problem.settled:
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


def start_tables(problem: Problem, rng: np.random.Generator) -> list[np.ndarray]:
    """Whole tables that satisfy what is observed exactly: drawn from the model tilted to the approximate MAP."""
    point = dual_newton(problem, tol=1e-4)
    tilted = problem.model.with_potentials(_tilted(problem.model, point.beliefs))
    if not any(type(t.noise).__name__ == "Exact" for t in problem.terms):
        return tilted.sample_tables(int(problem.M), rng)
    nodes = _whole_nodes(problem, problem.tables(point.beliefs)[1])
    edges = zip(problem.model.edges, problem.model.log_potentials, strict=True)
    return [_transport(nodes[i], nodes[j], log_phi, (i, j)) for (i, j), log_phi in edges]


def _tilted(model: TreeModel, beliefs) -> list[np.ndarray]:
    """Log-potentials of a model with these beliefs: conditionals down the tree, the root's law in its first edge."""
    conditionals, first = beliefs.conditionals()
    with np.errstate(divide="ignore"):
        logs = np.log(conditionals)
        logs[model.rooted.order[1]] += np.log(first)[:, None]
    return [t.copy() for t in model.split_edges(logs)]


def _whole_nodes(problem: Problem, nodes) -> list[np.ndarray]:
    """Whole node tables with M in each, near the given ones, equal to exact counts."""
    known = np.full((problem.model.n_nodes, problem.model.size), np.nan)
    for noise, cells, y in [(t.noise, t.cells, t.y) for t in problem.terms] + problem.settled:
        here = cells < problem.n_cells
        if type(noise).__name__ == "Exact":
            known.reshape(-1)[cells[here]] = y[here]
    found = []
    for i, z in enumerate(nodes):
        fixed = ~np.isnan(known[i, : len(z)])
        n, left = np.where(fixed, np.nan_to_num(known[i, : len(z)]), 0.0), np.where(fixed, 0.0, z)
        rest = problem.M - n.sum()
        if rest < 0 or (rest > 0 and left.sum() <= 0):
            raise DataError(f"node {i}: exact counts add up to {n.sum():g}, the population has {problem.M:g}")
        if rest > 0:
            left *= rest / left.sum()
            n += np.floor(left)
            missing = round(problem.M - n.sum())
            n[np.argsort(-(left - np.floor(left)))[:missing]] += 1
        found.append(n)
    return found


def _transport(rows, columns, log_phi, edge) -> np.ndarray:
    """A whole table with these margins on the allowed cells, of largest Σ n log φ (a transport problem)."""
    at = np.argwhere(np.isfinite(log_phi))
    conditions = np.zeros((len(rows) + len(columns), len(at)))
    conditions[at[:, 0], np.arange(len(at))] = 1
    conditions[len(rows) + at[:, 1], np.arange(len(at))] = 1
    found = linprog(-log_phi[tuple(at.T)], A_eq=conditions, b_eq=np.concatenate([rows, columns]), method="highs-ds")
    if found.status != 0:
        raise DataError(f"edge {edge[0]}–{edge[1]}: no whole table has the margins that were observed exactly")
    table = np.zeros(log_phi.shape)
    table[tuple(at.T)] = np.round(found.x)
    return table


def _whole(population_size) -> int:
    if population_size != int(population_size):
        raise DataError(f"population_size: sampling needs a whole number, got {population_size}")
    return int(population_size)
