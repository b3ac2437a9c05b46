"""Methods on means of bags: mean map, mean embedding, alternating mean map, inverse calibration."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import LinearSVR
from small_bags import OFFSETS, SIZES, TWO, X

from agglearn.observations import Bags
from agglearn.proportions import AlternatingMeanMapClassifier, InverseCalibrationClassifier, MeanEmbeddingClassifier
from agglearn.proportions.alternating import label_highest
from agglearn.proportions.base import one_vs_rest_counts
from agglearn.proportions.means import bag_means, proportions_of


def test_inverse_calibration_is_a_support_vector_regression_of_log_odds():
    """Each bag's share is kept half an instance of its own from 0 and 1; each covariate has a scale of its own."""
    means = np.array([X[a:b].mean(axis=0) for a, b in itertools.pairwise(OFFSETS)])
    share = np.clip(TWO.counts[:, 1] / SIZES, 0.5 / SIZES, 1 - 0.5 / SIZES)
    z = (means - means.mean(axis=0)) / means.std(axis=0)
    svr = LinearSVR(C=0.3, epsilon=0.1, max_iter=20_000, random_state=0).fit(z, np.log(share / (1 - share)))
    found = InverseCalibrationClassifier(C=0.3, epsilon=0.1).fit(TWO)
    np.testing.assert_allclose(found.coef_[0], svr.coef_ / means.std(axis=0), rtol=1e-4)
    centred = found.intercept_[0] + found.coef_[0] @ means.mean(axis=0)
    assert centred == pytest.approx(float(np.squeeze(svr.intercept_)), rel=1e-4)


def test_the_highest_of_many_bags():
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(rng.integers(1, 30, 50)))
    score = np.round(rng.normal(size=offsets[-1]), 1)  # with ties
    totals = rng.integers(0, np.diff(offsets) + 1)
    found = label_highest(score, offsets, totals)
    for low, high, z in zip(offsets[:-1], offsets[1:], totals, strict=True):
        first = np.argsort(-score[low:high], kind="stable")[:z]
        assert np.flatnonzero(found[low:high]).tolist() == sorted(first)


@pytest.mark.parametrize(("losses", "expected"), [([3.0, 1.0, 2.0], 2.0), ([3.0, 2.0, 1.0], 103.0)])
def test_alternations_end_at_the_weights_of_least_loss(losses, expected):
    """The last labels are fitted to the end only where they have the least loss."""
    thetas = [np.array([[a, b, c]]) for a, b, c in ((1.0, 0, 1), (-1.0, 0, 2), (0, 1.0, 3))]
    rounds = iter(zip(thetas, losses, strict=True))
    minimise = lambda _, theta, *few: next(rounds) if few else (theta + 100, 0)  # noqa: E731
    problem = SimpleNamespace(x=X, offsets=OFFSETS, moments=lambda m: m, minimise=minimise)
    model = AlternatingMeanMapClassifier(max_iter=3, tol=0)
    theta, trace = model._alternate(problem, TWO.counts[:, 1], np.array([[0.0, -1.0, 0.0]]))
    assert (theta[0, 2], trace) == (expected, losses)


WEIGHED = Bags(
    np.array([[1.0], [5.0], [2.0], [4.0], [6.0]]), [0, 2, 5], np.array([[1.0, 2.0], [2.0, 4.0]]),
    weights=np.array([1.0, 2, 3, 0, 3]),
)  # fmt: skip


def test_means_and_shares_of_bags_go_by_weight():
    assert bag_means(WEIGHED)[:, 0].tolist() == pytest.approx([11 / 3, 24 / 6])
    assert bag_means(Bags(WEIGHED.X, WEIGHED.offsets))[:, 0].tolist() == [3, 4]
    np.testing.assert_allclose(proportions_of(WEIGHED), [[1 / 3, 2 / 3]] * 2)
    counts = Bags(WEIGHED.X, WEIGHED.offsets, np.array([[0, 1, 1], [2, 1, 0]]))
    assert one_vs_rest_counts(counts, 1).tolist() == [[1, 1], [2, 1]]
    assert one_vs_rest_counts(counts, 0).tolist() == [[2, 0], [1, 2]]


def classifier(*rows) -> MeanEmbeddingClassifier:
    """One with these weights (…, intercept), a row for each score."""
    model = MeanEmbeddingClassifier()
    model.classes_, model.feature_names_in_ = np.arange(3 if len(rows) > 1 else 2), []
    model._set(np.array(rows, float))
    return model


def test_expected_counts_go_by_weight():
    model = classifier([math.log(2), 0.0])  # odds 2 to the power of x
    p = [2.0**x / (1 + 2.0**x) for x in WEIGHED.X[:, 0]]
    ones = np.array([p[0] + 2 * p[1], 3 * p[2] + 3 * p[4]])
    np.testing.assert_allclose(model.predict_counts(WEIGHED), np.column_stack([[3, 6] - ones, ones]), rtol=1e-6)
    assert model.predict(WEIGHED.X).tolist() == [1, 1, 1, 1, 1]
    assert model.predict(-WEIGHED.X).tolist() == [0, 0, 0, 0, 0]


def test_the_mean_embedding_counts_every_bag_once():
    """A bag of one and a bag of nine weigh the same."""
    x = np.concatenate([[0.0], np.ones(9)])[:, None]
    bags = Bags(x, [0, 1, 10], np.array([[1, 0], [3, 6]]))
    model = MeanEmbeddingClassifier(l2=1e-6).fit(Bags(np.zeros((10, 1)), bags.offsets, bags.counts))
    assert model.predict_proba(np.zeros((1, 1)))[0, 1] == pytest.approx((0 + 6 / 9) / 2, abs=1e-3)
