"""Gradients and steps of weights, and naive Bayes, against a few numbers."""

import math

import numpy as np
import pandas as pd
import pytest

from agglearn.maxent import MaxEntClassifier, NaiveBayesClassifier, pcd_step
from agglearn.observations import (
    ContingencyTables,
)


def gradients(d, c, d_hat, c_hat, mu, theta, l2=(3.0, (5.0, 7.0)), rescaled=True, clip=True, both=True):
    out = np.zeros((2, 2, len(mu)))
    arrays = (np.array(v, float) for v in (d, c, d_hat, c_hat, mu, theta))
    pcd_step.gradients(*arrays, l2[0], np.array(l2[1]), rescaled, clip, both, *out.reshape(4, -1))
    return out


def test_gradients_of_weights():
    """Two cells: the model expects more records than there are, and fewer."""
    of = ([10.0, 40.0], [4.0, 10.0], [20.0, 30.0], [9.0, 6.0], [0.5, -1.0], [0.25, 2.0])
    g, h = gradients(*of)
    # 20 − 10 + 2·3·½ and 30 − 40 − 2·3; label sums at equal counts, the larger of d + 1 and d̂ + 1 brought down
    np.testing.assert_allclose(g[0], [20 - 10 + 3.0, 30 - 40 - 6.0])
    np.testing.assert_allclose(g[1], [9 * 11 / 21 - 4 + 2.5, 6 - 10 * 31 / 41 + 28.0])
    np.testing.assert_allclose(h[0], [15 + 6, 35 + 6])
    np.testing.assert_allclose(h[1], [6.5 + 10, 8 + 14])
    g, h = gradients(*of, clip=False, both=False)
    np.testing.assert_allclose(g[1], [9 * 11 / 21 - 4 + 2.5, 6 * 41 / 31 - 10 + 28.0])
    np.testing.assert_allclose(h, [[26, 36], [19, 20]])
    g, _ = gradients(*of, rescaled=False)
    np.testing.assert_allclose(g[1], [9 - 4 + 2.5, 6 - 10 + 28.0])


def test_steps_of_weights():
    weights, velocity, total = np.array([1.0, -999.9]), np.array([0.5, -0.5]), np.zeros(2)
    gradient, curvature, expected = np.array([4.0, 90.0]), np.array([8.0, 10.0]), np.array([2.0, 5.0])
    energy, noise = pcd_step.advance(gradient, curvature, expected, weights, velocity, 0.1, 0.8, total, 2.0, 1000.0)
    assert total.tolist() == [0.5, 2.0]  # 9 is cut to 2
    assert (energy, noise) == pytest.approx((8 * 0.25 + 10 * 4, 2 / 8 + 5 / 10))
    np.testing.assert_allclose(velocity, [0.4 - 0.05, -0.4 - 0.2])
    np.testing.assert_allclose(weights, [1.35, -1000.0])  # no weight is beyond the largest


def test_slices_in_threads_are_the_whole(monkeypatch):
    """21 weights in slices of 4: each is moved once, and sums are over all."""
    rng = np.random.default_rng(0)
    arrays = rng.random((4, 21))
    whole, sliced = ([a.copy() for a in arrays] + [np.zeros(21)] for _ in range(2))
    of_whole = pcd_step.advance(*whole[:4], whole[4], 0.1, 0.8, np.zeros(21), 2.0, 1000.0)
    monkeypatch.setattr(pcd_step, "SLICE", 4)
    of_slices = pcd_step.advance(*sliced[:4], sliced[4], 0.1, 0.8, np.zeros(21), 2.0, 1000.0)
    np.testing.assert_array_equal(whole, sliced)
    np.testing.assert_allclose(of_whole, of_slices)
    assert pcd_step.distance(arrays[0], arrays[1]) == pytest.approx(np.abs(arrays[0] - arrays[1]).sum())


def test_the_model_of_one_feature_is_the_table():
    """Without penalties the optimum has the table's own rates: expectations are on the scale of the records."""
    frame = pd.DataFrame({"a": list("uuuuvvvvvvvv"), "y": [1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0]})
    frame = pd.concat([frame] * 50, ignore_index=True)
    tables = ContingencyTables.from_records(frame, "y")
    model = MaxEntClassifier(2000, l2_mu=0.0, l2_theta=0.0, max_iter=200, random_state=0).fit(tables)
    p = model.predict_proba(pd.DataFrame({"a": ["u", "v"]}))[:, 1]
    np.testing.assert_allclose(p, [0.75, 0.25], atol=0.03)


def test_naive_bayes_by_hand():
    frame = pd.DataFrame({"a": list("uuuvv"), "b": list("xyxyy"), "y": [1, 1, 0, 0, 0]})
    model = NaiveBayesClassifier(smoothing=0.5).fit(ContingencyTables.from_records(frame, "y"))
    rate = lambda ones, of, zeros, all_: math.log((ones + 0.5) / (of + 1)) - math.log((zeros + 0.5) / (all_ + 1))  # noqa: E731
    z = math.log(2 / 3) + rate(2, 2, 1, 3) + rate(1, 2, 2, 3)
    p = model.predict_proba(pd.DataFrame({"a": ["u"], "b": ["y"]}))[0, 1]
    assert p == pytest.approx(1 / (1 + math.exp(-z)))
    unseen = model.predict_proba(pd.DataFrame({"a": ["w"], "b": ["z"]}))[0, 1]
    assert unseen == pytest.approx(0.4)
