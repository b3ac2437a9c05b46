"""NLBP with the naive schedule (Sun 2019, Algorithm 1): potentials, messages and tables change one edge at a time."""

import numpy as np

from agglearn.collective import kernels
from agglearn.collective.gibbs import evidence
from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference, Recorder
from agglearn.settings import Count, Damping, NonNegative

KINDS = {"Poisson": 1, "Gaussian": 2, "Laplace": 3}


def infer_naive(
    model,
    counts,
    population_size,
    *,
    trace=False,
    damping: Damping = 0.1,
    tol: NonNegative = 1e-6,
    max_iter: Count = 2000,
):
    """Rounds of the naive schedule; messages and tables are damped by `damping` (Heskes 2003).

    Stops when the tables violate consistency (eq. 2.5) and change by less than `tol` · M · N in a round.
    """
    problem = Problem(model, counts, population_size)
    observed, state = evidence(problem, KINDS), _State(problem)
    record = Recorder(problem) if trace else None
    tree, converged, enough = model.rooted, False, tol * problem.M * model.n_nodes
    for _ in range(max_iter):
        before = state.rows.copy(), state.columns.copy()
        kernels.naive_round(
            model.tables, model.which, tree.order, tree.parent, tree.children, tree.bounds, model.degrees, model.states,
            *observed, problem.M, damping, state.up, state.down, state.phi, state.z, state.rows, state.columns,
        )  # fmt: skip
        if record:
            record(model.split_edges(state.z))
        change = sum(float(np.abs(a - b).sum()) for a, b in zip((state.rows, state.columns), before, strict=True))
        if change <= damping * enough and model.violation(model.split_edges(state.z), problem.M) <= enough:
            converged = True
            break
    edges = [t.copy() for t in model.split_edges(state.z)]
    nodes = model.node_tables_of(edges)
    rows, objective = record.finish() if record else [], problem.objective_of(edges, nodes)
    return Inference(edges, nodes, objective, rows, converged=converged and bool(np.isfinite(objective)))


class _State:
    """Messages 1, potentials φ, tables in proportion to φ, as Algorithm 1 begins."""

    def __init__(self, problem: Problem):
        model = problem.model
        shape = (model.n_nodes, model.size)
        self.up, self.down = np.ones(shape), np.ones(shape)
        self.phi = model.tables[model.which].copy()
        self.z = self.phi * (problem.M / self.phi.sum(axis=(1, 2), keepdims=True))
        self.z[model.rooted.order[0]] = 0
        self.rows, self.columns = self.z.sum(axis=2), self.z.sum(axis=1)
