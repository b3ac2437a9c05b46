"""Moments, balance and traces of collective models against what is written out."""

from types import SimpleNamespace

import numpy as np
import pytest

from agglearn.collective import ChainModel
from agglearn.collective.balance import balance_flows
from agglearn.collective.gaussian import _Smoother, _tilted_moments
from agglearn.collective.noise import noise_model
from agglearn.collective.problem import Problem
from agglearn.collective.reconstruction import _seconds_to_lowest
from agglearn.collective.results import Iterate
from agglearn.observations import FlowCounts


def test_balanced_sums_differ_by_who_moved():
    rng = np.random.default_rng(0)
    first, last, pairs = balance_flows(
        rng.uniform(5, 9, 3), rng.uniform(5, 9, 3), rng.uniform(1, 4, (3, 3)), np.ones((3, 3), bool)
    )
    np.fill_diagonal(pairs, 0)
    np.testing.assert_allclose(first + pairs.sum(axis=0), last + pairs.sum(axis=1), rtol=1e-6)


def test_a_trace_that_ends_without_a_number_never_comes_near():
    trace = [Iterate(0, 0.1, 3.0, 0.0), Iterate(1, 0.2, np.nan, 0.0)]
    run = SimpleNamespace(trace=trace)
    assert _seconds_to_lowest(trace, [run]) == (np.inf, np.inf)


@pytest.mark.parametrize("variance", [0.5, 4.0])
def test_moments_of_a_gaussian_site_are_those_of_a_product_of_normals(variance):
    noise, y, mean = noise_model("gaussian", scale=1.5), np.array([3.0]), np.array([2.0])
    precision = 1 / variance + 1 / 1.5**2
    expected = (mean / variance + y / 1.5**2) / precision
    found = _tilted_moments(noise, y, mean, np.array([variance]))
    np.testing.assert_allclose(found, (expected, [1 / precision]), rtol=1e-3)


def test_moments_of_node_tables_are_those_of_the_joint_normal():
    """The Gaussian that the Kalman smoother conditions, written out over all nodes at once."""
    rng, m = np.random.default_rng(1), 30
    model = ChainModel([rng.normal(0, 1, (2, 2)) for _ in range(3)])
    y = rng.uniform(5, 25, (4, 2))
    problem = Problem(model, FlowCounts(node_counts=y, noise="gaussian", scale=0.5, population_size=m), m)
    nodes = model.node_marginals
    steps = [pairs / pairs.sum(axis=1, keepdims=True) for pairs in model.edge_marginals]
    joint = np.zeros((4, 2, 4, 2))
    for t in range(4):
        reached = np.diag(nodes[t])
        for s in range(t, 4):
            block = reached - np.outer(nodes[t], nodes[s])
            joint[t, :, s, :], joint[s, :, t, :] = block, block.T
            reached = reached @ steps[s] if s < 3 else reached
    cov, mean = m * joint.reshape(8, 8), m * np.ravel(nodes)
    gain = cov @ np.linalg.inv(cov + 0.25 * np.eye(8))
    found = _Smoother(problem).posterior(y, np.full((4, 2), 4.0))
    np.testing.assert_allclose(np.ravel(found[0]), mean + gain @ (y.ravel() - mean), rtol=1e-6)
    np.testing.assert_allclose(np.ravel(found[1]), np.diag(cov - gain @ cov), rtol=1e-6)
