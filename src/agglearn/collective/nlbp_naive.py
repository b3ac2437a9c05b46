"""NLBP with the naive schedule (Sun 2019, Algorithm 1): potentials, messages and tables change one edge at a time."""

import numpy as np

from agglearn.collective import kernels
from agglearn.collective.kernels import EXACT
from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference, Recorder
from agglearn.errors import NotAvailable
from agglearn.progress import track
from agglearn.settings import Count, Damping, NonNegative


def infer_naive(
    problem: Problem,
    damping: Damping = 0.1,
    tol: NonNegative = 1e-6,
    max_iter: Count = 2000,
    record: Recorder | None = None,
) -> Inference:
    """Minimise F by rounds of the naive schedule (Algorithm 1), with messages and tables damped by `damping` (Heskes 2003).

    The method stops when the tables violate consistency (eq. 2.5) and change by less than `tol` · M · N in a round.
    """
    if any(noise.code == EXACT for noise, _, _ in problem.list_observed()):
        raise NotAvailable("exact counts have no gradient; use method='dual-newton'")
    evidence, state = problem.evidence(), _State(problem)
    model = problem.model
    tree, converged, enough = model.rooted, False, tol * problem.M * model.n_nodes
    for _ in track(range(max_iter), "rounds"):
        last = state.row_sums.copy(), state.column_sums.copy()
        kernels.run_naive_round(
            model.tables, model.table_index, tree.order, tree.parent, tree.children, tree.bounds, model.degrees, model.states,
            *evidence, problem.M, damping, state.up, state.down, state.potentials, state.z, state.row_sums,
            state.column_sums,
        )  # fmt: skip
        if record:
            record(model.split_edges(state.z))
        sums = state.row_sums, state.column_sums
        change = sum(float(np.abs(a - b).sum()) for a, b in zip(sums, last, strict=True))
        if change <= damping * enough and model.violation(model.split_edges(state.z), problem.M) <= enough:
            converged = True
            break
    edges = [t.copy() for t in model.split_edges(state.z)]
    nodes = model.node_tables_of(edges)
    rows, objective = record.finish() if record else [], problem.objective_of(edges, nodes)
    return Inference(edges, nodes, objective, rows, converged=converged and bool(np.isfinite(objective)))


class _State:
    """Start of Algorithm 1: messages 1, potentials φ, tables in proportion to φ."""

    def __init__(self, problem: Problem) -> None:
        model = problem.model
        shape = (model.n_nodes, model.size)
        self.up, self.down = np.ones(shape), np.ones(shape)
        self.potentials = model.tables[model.table_index].copy()
        self.z = self.potentials * (problem.M / self.potentials.sum(axis=(1, 2), keepdims=True))
        self.z[model.rooted.order[0]] = 0
        self.row_sums, self.column_sums = self.z.sum(axis=2), self.z.sum(axis=1)
