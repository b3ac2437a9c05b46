"""NLBP with the naive schedule (Sun 2019, Algorithm 1): potentials, messages and tables change one edge at a time."""

import numpy as np

from agglearn.collective import kernels
from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference, inference_of
from agglearn.errors import NotAvailable
from agglearn.progress import track
from agglearn.settings import Count, Damping, NonNegative


def infer_naive(problem: Problem, damping: Damping = 0.1, tol: NonNegative = 1e-6, max_iter: Count = 2000) -> Inference:
    """Algorithm 1, messages and tables damped (Heskes 2003), until changes and eq. 2.5 are within tol · M · N."""
    if any(noise.code == kernels.EXACT for noise, _, _ in problem.list_observed()):
        raise NotAvailable("exact counts have no gradient; use method='dual-newton'")
    evidence, model = problem.evidence(), problem.model
    potentials = model.tables[model.table_index].copy()
    z = potentials * (problem.M / potentials.sum(axis=(1, 2), keepdims=True))
    z[model.rooted.order[0]] = 0
    sums = z.sum(axis=2), z.sum(axis=1)
    up, down = np.ones((2, model.n_nodes, model.size))
    state = up, down, potentials, z, *sums
    converged, enough = False, tol * problem.M * model.n_nodes
    for _ in track(range(max_iter), "rounds"):
        last = [s.copy() for s in sums]
        kernels.run_naive_round(
            model.tables, model.table_index, model.rooted, model.degrees, model.states, evidence, problem.M, damping, state
        )  # fmt: skip
        problem.record(model.split_edges(z))
        change = sum(float(np.abs(a - b).sum()) for a, b in zip(sums, last, strict=True))
        if change <= damping * enough and model.violation(model.split_edges(z), problem.M) <= enough:
            converged = True
            break
    result = inference_of(problem, [t.copy() for t in model.split_edges(z)])
    result.converged = converged and bool(np.isfinite(result.objective))
    return result
