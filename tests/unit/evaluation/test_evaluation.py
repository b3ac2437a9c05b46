"""Metrics against closed forms and scikit-learn; interactions against changes of gauge."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from agglearn.evaluation import (
    auc,
    brier,
    calibration_error,
    entropy,
    log_likelihood,
    normalized_log_likelihood,
)
from agglearn.evaluation.interactions import pair_interactions

Y = np.array([1, 0, 0, 1, 0, 0, 0, 1])


def test_nllh_of_base_rate_oracle_and_worse():
    assert normalized_log_likelihood(Y, np.full(8, 3 / 8)) == pytest.approx(0, abs=1e-12)
    assert normalized_log_likelihood(Y, Y.astype(float)) == pytest.approx(1, abs=1e-12)
    assert normalized_log_likelihood(Y, np.full(8, 0.5)) == pytest.approx(1 - np.log(2) / entropy(3 / 8))
    assert normalized_log_likelihood(Y, 1.0 - Y) < -20
    assert np.isfinite(normalized_log_likelihood(Y, 1.0 - Y))
    assert np.isnan(normalized_log_likelihood(np.ones(3), np.full(3, 0.5)))


def test_entropy():
    assert entropy(0.5) == pytest.approx(np.log(2))
    assert entropy(0) == entropy(1) == 0
    assert entropy(0.2) == entropy(0.8) == pytest.approx(-0.2 * np.log(0.2) - 0.8 * np.log(0.8))


def test_against_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    assert log_likelihood(y, p) == pytest.approx(-log_loss(y, p))
    assert auc(y, p) == pytest.approx(roc_auc_score(y, p))
    assert brier(y, p) == pytest.approx(brier_score_loss(y, p))
    assert np.isnan(auc(np.zeros(4), p[:4]))


def test_calibration_error():
    y = np.array([0] * 5 + [1] * 5)
    assert calibration_error(y, np.full(10, 0.5), bins=1) == 0
    assert calibration_error(y, np.full(10, 0.7), bins=1) == pytest.approx(0.2)
    p = np.array([0.1] * 5 + [0.6] * 5)
    assert calibration_error(y, p, bins=2) == pytest.approx((0.1 + 0.4) / 2)
    order = np.random.default_rng(1).permutation(10)
    assert calibration_error(y[order], p[order], bins=2) == pytest.approx(0.25)


def test_interactions_do_not_depend_on_the_gauge():
    rng = np.random.default_rng(0)
    sizes, at = np.array([2, 3, 4]), [0, 2, 5, 9]
    w = rng.normal(size=(9, 9))
    w = w + w.T
    moved = w.copy()
    for i in range(3):
        for j in range(i + 1, 3):  # a constant moved from a row of a pair block to a single weight, likewise columns
            rows, columns = rng.normal(size=sizes[i]), rng.normal(size=sizes[j])
            shift = rows[:, None] + columns[None, :]
            moved[at[i] : at[i + 1], at[j] : at[j + 1]] += shift
            moved[at[j] : at[j + 1], at[i] : at[i + 1]] += shift.T
            moved[range(at[i], at[i + 1]), range(at[i], at[i + 1])] -= rows
            moved[range(at[j], at[j + 1]), range(at[j], at[j + 1])] -= columns
    np.testing.assert_allclose(pair_interactions(moved, sizes), pair_interactions(w, sizes), atol=1e-12)
    assert len(pair_interactions(w, sizes)) == 2 * 3 + 2 * 4 + 3 * 4
    moved[0, 2] += 1  # no gauge: a single cell
    assert np.abs(pair_interactions(moved, sizes) - pair_interactions(w, sizes)).max() > 0.1
    assert len(pair_interactions(w[:2, :2], np.array([2]))) == 0
