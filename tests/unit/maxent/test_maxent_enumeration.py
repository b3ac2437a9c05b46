"""The exact model: gradient, moments, naive Bayes as a special case, and the paper's XOR example."""

import numpy as np
import pandas as pd
import pytest

from agglearn.datasets import Xor
from agglearn.errors import DataError
from agglearn.maxent.exact import Enumeration
from agglearn.observations import ContingencyTables


def test_gradient_by_finite_differences(tables):
    exact, rng = Enumeration.from_tables(tables), np.random.default_rng(0)
    m = len(exact.d)
    mu, theta = rng.normal(size=(2, m)) * 0.3
    _, g_mu, g_theta = exact.objective(mu, theta, 1.0, 16.0)
    for k in rng.choice(m, 8, replace=False):
        step = np.zeros(m)
        step[k] = 1e-4
        up, down = (exact.objective(mu + s, theta, 1.0, 16.0)[0] for s in (step, -step))
        assert np.isclose(g_mu[k], (up - down) / 2e-4, atol=1e-3)
        up, down = (exact.objective(mu, theta + s, 1.0, 16.0)[0] for s in (step, -step))
        assert np.isclose(g_theta[k], (up - down) / 2e-4, atol=1e-3)


def test_probabilities_add_up_and_bayes_rule_holds(tables):
    exact, rng = Enumeration.from_tables(tables), np.random.default_rng(1)
    mu, theta = rng.normal(size=(2, len(exact.d)))
    joint = np.exp(exact.log_joint(mu, theta))
    assert np.isclose(joint.sum(), 1)
    assert np.allclose(joint[:, 1] / joint.sum(axis=1), exact.label_probability(theta))


def test_xor_example_is_ninety_against_ten_percent():
    drawn = Xor(n=800).draw(0)
    tables = ContingencyTables.from_records(drawn.frame.assign(y=drawn.y), "y", categorical=["x1", "x2", "x3"])
    # x3 and x1 xor x2 both speak for the label, and pairs cannot tell that they are one: the evidence counts twice
    exact = Enumeration.from_tables(tables)
    _, theta = exact.optimum(l2_mu=1e-6, l2_theta=1e-6)
    p = exact.label_probability(theta)
    consistent = exact.states[:, 2] == exact.states[:, 0] ^ exact.states[:, 1]
    assert np.allclose(p[consistent], np.where(exact.states[consistent, 2] == 1, 0.9, 0.1), atol=1e-3)


def test_too_many_states_are_refused():
    frame = pd.DataFrame({f"f{i}": list("abcdefgh") for i in range(9)}).assign(y=[0, 1] * 4)
    with pytest.raises(DataError, match="too many to enumerate"):
        Enumeration.from_tables(ContingencyTables.from_records(frame, "y"))
