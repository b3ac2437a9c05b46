"""Steps of a descent and penalties against a few numbers."""

import math

import numpy as np
import pytest
from scipy import sparse

from agglearn.linear.descent import Descent
from agglearn.linear.sum_logistic import curvature, penalties


def test_descent_by_hand():
    """One coordinate of ones and twos; labels 1 and 0: all rows, then mini-batches whose later half is averaged."""
    x = sparse.csr_array(np.array([[1.0], [2.0]]))
    sigmoid = lambda z: 1 / (1 + math.exp(-z))  # noqa: E731
    how = {"x": x, "weights": np.ones(2), "penalty": np.array([0.5])}
    how |= {"batch_size": None, "rate": 0.5, "steps": 3, "traced": 3}
    right = np.array([0.5])
    theta, trace = Descent(label_term=lambda t, rows: right, **how).run(np.random.default_rng(0))
    at, seen = 0.0, []
    for _ in range(3):
        at -= 0.5 * ((sigmoid(at) + 2 * sigmoid(2 * at)) / 2 - 0.5 + 2 * 0.5 / 2 * at)
        seen.append(at)
    assert float(theta[0]) == pytest.approx(at)
    assert [t for t, *_ in trace] == [1, 2, 3]
    assert [float(v[0]) for _, _, v, _ in trace] == pytest.approx(seen)
    drawn, batches = [], how | {"batch_size": 2, "steps": 4, "traced": 0}
    small = Descent(label_term=lambda t, rows: drawn.append(rows) or right, **batches)
    theta, _ = small.run(np.random.default_rng(0))
    at, kept = 0.0, []
    for t, rows in enumerate(drawn, 1):
        left = np.mean([(r + 1) * sigmoid((r + 1) * at) for r in rows])
        at -= 0.5 * (1 + t) ** -0.5 * (left - 0.5 + 0.5 * at)  # a batch is as large as all rows
        kept.append(at)
    assert float(theta[0]) == pytest.approx(np.mean(kept[2:]))
    safe = Descent(label_term=None, **(how | {"rate": None}))._rates()
    assert safe.tolist() == pytest.approx([2 / ((1 + 4) / 4 + 2 * 0.5)])


def test_penalties_by_hand():
    x = sparse.csr_array(np.array([[1.0, 0.0, 1.0], [2.0, 1.0, 1.0]]))
    weights = np.array([1.0, 3.0])  # curvatures at 0: (1 + 12)/4, 3/4, 1
    assert penalties(0.5, curvature(x, weights), 0.0, True).tolist() == [0.5, 0.5, 0.0]
    noisy = [0.5 * (1 + 4 / 3.25), 0.5 * (1 + 4 / 0.75), 0.0]
    assert penalties(0.5, curvature(x, weights), 2.0, True).tolist() == pytest.approx(noisy)
    assert penalties(0.5, curvature(x, weights), 0.0, False).tolist() == [0.5] * 3
