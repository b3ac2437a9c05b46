"""L-BFGS against SciPy's on convex problems, and what every iterate has to satisfy."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from agglearn.linear.lbfgs import lbfgs


def log_partition(seed, n=30, terms=200):
    """Σ w log Σ exp(A x) − b·x + ½ 1e-3 ‖x‖², with coordinates of very different scale."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(terms, n)) * np.logspace(-2, 1, n)
    b = a.mean(axis=0) + 0.1 * rng.normal(size=n) * np.logspace(-2, 1, n)

    def objective(x):
        z = a @ x
        return logsumexp(z) - b @ x + 5e-4 * x @ x, a.T @ softmax(z) - b + 1e-3 * x

    return objective, (a**2).mean(axis=0) + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scaled", [True, False])
def test_the_minimum_is_scipys(seed, scaled):
    objective, scale = log_partition(seed)
    start = np.zeros(len(scale))
    found = lbfgs(objective, start, scale if scaled else np.ones_like(scale), 20_000, ftol=1e-16)
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    assert objective(found)[0] <= best.fun + 1e-9
    assert np.abs(objective(found)[1]).max() < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_values_never_rise_and_more_iterations_are_no_worse(seed):
    objective, scale = log_partition(seed)
    values = [objective(lbfgs(objective, np.zeros(len(scale)), scale, k))[0] for k in range(12)]
    assert (np.diff(values) <= 0).all()
    assert values[10] < values[0] - 0.01


def test_a_quadratic_with_its_own_scale_takes_one_step():
    h = np.array([1e-6, 1.0, 1e6])
    found = lbfgs(lambda x: (0.5 * x @ (h * x) - x.sum(), h * x - 1), np.zeros(3), h, 1)
    np.testing.assert_allclose(found, 1 / h)


def test_it_stays_at_the_minimum():
    start = np.array([2.0, -1.0])
    calls = []

    def objective(x):
        calls.append(1)
        return float((x - start) @ (x - start)), 2 * (x - start)

    assert (lbfgs(objective, start, np.ones(2), 50) == start).all()
    assert len(calls) == 1


def test_pairs_that_mislead_are_forgotten():
    """On a long slope before a wall the first pair tells of next to no curvature: the whole line search lies behind the wall."""
    wall, hardness = 10.0, 1e-3

    def objective(x):
        left = wall - x[0]
        if left <= 0:
            return np.inf, None
        return -x[0] - hardness * np.log(left), np.array([-1 + hardness / left])

    best = lbfgs(objective, np.zeros(1), np.ones(1), 60, shortest=1e-3)
    assert best[0] == pytest.approx(wall - hardness, abs=0.01)
