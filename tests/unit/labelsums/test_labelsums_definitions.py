"""Scores, penalties, errors and base rates of learners from sums against their definitions: weights that differ, halves of unequal sizes."""

import numpy as np
import pandas as pd
import pytest

from agglearn.labelsums import AggregateSearch, BaseRateClassifier, WALRClassifier
from agglearn.linear.sum_logistic import prior_variance
from agglearn.observations import ContingencyTables, Halves, LabelSums
from agglearn.privacy import draw_seeded

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=61), "b": RNG.normal(3, 0.2, 61)})
Y = (RNG.random(61) < 1 / (1 + np.exp(-2 * X["a"] + 1))).astype(int).to_numpy()
WEIGHTS = 0.25 + RNG.exponential(size=61)


def sums(rows=slice(None), weights=None, **how) -> LabelSums:
    return LabelSums.from_records(
        X[rows].reset_index(drop=True), Y[rows], weights=None if weights is None else weights[rows], **how
    )


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_held_out_score_is_the_mean_log_likelihood_of_the_labels(weights):
    model, held = WALRClassifier().fit(sums(slice(40), weights)), slice(40, 61)
    p = model.predict_proba(X[held])[:, 1]
    each = np.where(Y[held] == 1, np.log(p), np.log(1 - p))
    expected = np.average(each, weights=None if weights is None else weights[held])
    assert model.held_out_score(sums(held, weights)) == pytest.approx(expected)


def test_weighted_halves_add_up_to_the_whole_and_choose():
    halves = Halves(sums(slice(25), WEIGHTS), sums(slice(25, 61), WEIGHTS))
    whole = halves.combined
    np.testing.assert_allclose(whole.sums, sums(weights=WEIGHTS).sums)
    np.testing.assert_array_equal(whole.weights, WEIGHTS)
    found = AggregateSearch(WALRClassifier(), "l2", [0.1, 1.0, 100.0], random_state=0).fit(halves)
    scores = [WALRClassifier(l2=v).fit(halves.first).held_out_score(halves.second) for v in (0.1, 1.0, 100.0)]
    np.testing.assert_allclose(found.scores_, scores)
    mixed = Halves(sums(slice(25), WEIGHTS), sums(slice(25, 61))).combined
    np.testing.assert_array_equal(mixed.weights, [*WEIGHTS[:25], *np.ones(36)])


def test_the_penalty_by_moments_is_that_of_a_fraction_of_the_variance():
    noisy = sums(bounds=(-9, 9)).private(3.0, 1e-3, draw=draw_seeded(0))
    model = WALRClassifier(l2="moments").fit(noisy)
    assert model.l2_ == pytest.approx(1 / (0.6 * prior_variance(noisy.matrix, noisy.sums, noisy.noise_scale)))


def test_the_error_of_a_gradient_on_all_rows_is_that_of_the_noise():
    noisy = sums(bounds=(-9, 9)).private(3.0, 1e-3, draw=draw_seeded(0))
    model = WALRClassifier("full_batch", max_iter=5, traced=5).fit(noisy)
    np.testing.assert_allclose(model.gradient_errors_[:, 1], np.sqrt(3) * noisy.noise.scale / 61)


def test_the_base_rate_is_that_of_all_records():
    frame = pd.DataFrame({"a": list("uvw" * 7 + "uu"), "y": [1] * 7 + [0] * 16})
    model = BaseRateClassifier().fit(ContingencyTables.from_records(frame, "y"))
    assert model.rate_ == 7 / 23
    assert model.predict_proba(frame)[:, 1].tolist() == [7 / 23] * 23
