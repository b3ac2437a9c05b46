"""First-order methods against their equations written out."""

import numpy as np
import pytest
from collective_worlds import sampled

from agglearn.collective.first_order import accelerated_rda, bethe_rda
from agglearn.collective.learning import _Steps
from agglearn.collective.problem import Problem


def accelerated_by_hand(problem: Problem, beta: float, lipschitz: float, steps: int) -> list[np.ndarray]:
    """Eqs. A.3 and A.4 of Sun 2019 with every gradient kept: λ_t = Σ_s (s/2) g_s / (A_t + β + L′), A_t = t(t + 1)/4."""
    duals, gradients = [], []
    z = w = problem.point(np.zeros(problem.size)).z
    for t in range(1, steps + 1):
        theta = 2 / (t + 1)
        gradients.append(problem.gradient((1 - theta) * w + theta * z))
        total = sum(s / 2 * g for s, g in enumerate(gradients, 1))
        duals.append(total / (t * (t + 1) / 4 + beta + lipschitz))
        z = problem.point(duals[-1]).z
        w = (1 - theta) * w + theta * z
    return duals


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_accelerated_rda_follows_its_equations(beta):
    problem = Problem(*sampled("mixed", 5, 50, "gaussian"))
    duals = []
    problem.recorder = lambda point: duals.append(point.dual)
    accelerated_rda(problem, beta, lipschitz=1e6, tol=0.0, max_iter=12)
    np.testing.assert_allclose(duals, accelerated_by_hand(problem, beta, 1e6, 12), rtol=1e-9)


def test_mirror_descent_with_the_step_of_its_proof_is_rda_with_beta_one():
    """Eq. A.2 with η_t = 1/t written out: λ_t = (λ_{t−1} + η_t g_t) / (1 + η_t)."""
    problem = Problem(*sampled("mixed", 6, 50, "gaussian"))
    expected, dual = [], np.zeros(problem.size)
    for t in range(1, 11):
        dual = (dual + problem.gradient(problem.point(dual).z) / t) / (1 + 1 / t)
        expected.append(dual)
    duals = []
    problem.recorder = lambda point: duals.append(point.dual)
    bethe_rda(problem, 1.0, "thesis", tol=0.0, max_iter=10)
    np.testing.assert_allclose(duals, expected, rtol=1e-9)


def test_the_clock_of_a_trace_starts_at_zero():
    steps = _Steps(None, [None], [1], "dual-newton", {})
    steps.record(0, np.zeros(1))
    assert steps.trace[0][1] >= 0
