"""Means, shares and likelihoods of bags by hand, posteriors of impossible counts, and the attributes that a census hides."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from agglearn import proportions
from agglearn.errors import DataError
from agglearn.observations import (
    Bags,
    LabelledBags,
)
from agglearn.proportions import (
    AlternatingMeanMapClassifier,
    IndividualClassifier,
    InverseCalibrationClassifier,
    MeanEmbeddingClassifier,
)
from agglearn.proportions.alternating import label_highest
from agglearn.proportions.base import counts_likelihood, one_vs_rest_counts, probabilities
from agglearn.proportions.convolution_tree import tree_posterior
from agglearn.proportions.means import bag_means, proportions_of
from agglearn.proportions.posterior import class_posteriors
from agglearn.tasks.census_design import HIDDEN


def test_impossible_counts_have_no_posterior():
    with pytest.raises(DataError, match="impossible"):
        tree_posterior(np.array([[1.0, 0.0], [1.0, 0.0]]), [0, 2])


def test_hidden_attributes_are_numbered_from_zero():
    frame = pd.DataFrame(
        {
            "DIS": [1, 2, 2, 2, 2], "SEX": [1, 2, 2, 1, 1], "HICOV": [1, 1, 1, 2, 2], "PRIVCOV": [1, 2, 1, 2, 2],
            "PUBCOV": [1, 1, 2, 2, 2], "SCHL": [17, 18, 20, 21, 22], "WKL": [1, 2, 3, 1, 1], "ANC": [1, 2, 4, 1, 1],
            "RAC1P": [1, 2, 6, 9, 1], "HISP": [1, 1, 1, 1, 2],
        }
    )  # fmt: skip
    assert {name: list(of(frame)) for name, (of, _) in HIDDEN.items()} == {
        "DIS": [1, 0, 0, 0, 0], "SEX": [0, 1, 1, 0, 0], "HICOV": [1, 1, 1, 0, 0], "COVERAGE": [2, 1, 2, 0, 0],
        "SCHL": [0, 1, 1, 2, 3], "WKL": [0, 1, 2, 0, 0], "ANC": [0, 1, 3, 0, 0], "RAC1P": [1, 2, 3, 4, 0],
    }  # fmt: skip


def test_bags_without_counts_are_refused_by_name():
    bags = LabelledBags(Bags(np.zeros((4, 1)), [0, 2, 4], target=np.array([0.5, 1.0])), np.array([0, 1, 0, 1]))
    with pytest.raises(DataError, match="counts"):
        IndividualClassifier(l2=1.0).fit(bags)


def test_posteriors_of_several_classes_are_public():
    assert proportions.class_posteriors is class_posteriors


def test_the_labels_of_least_loss_are_kept():
    """Losses of 3, 1 and 2: the weights of the second round."""
    script = iter([(np.array([[-1.0, 0.0]]), 3.0), (np.array([[1.0, 0.0]]), 1.0), (np.array([[-2.0, 0.0]]), 2.0)])
    problem = SimpleNamespace(
        x=np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32), offsets=np.array([0, 2, 4]), moments=lambda soft: soft,
        minimise=lambda moments, theta, *steps: next(script) if steps else (theta, 0.0),
    )  # fmt: skip
    model = AlternatingMeanMapClassifier(max_iter=3, tol=0.0)
    theta, losses = model._alternate(problem, np.array([1, 1]), np.array([[0.5, 0.0]]))
    assert losses == [3.0, 1.0, 2.0]
    assert theta.tolist() == [[1.0, 0.0]]


def test_an_oracle_of_the_first_bags_has_their_labels():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    counts = np.add.reduceat(y, np.arange(0, 40, 4))
    some = IndividualClassifier(n_bags=4).fit(LabelledBags(Bags(x, np.arange(0, 41, 4), counts), y))
    first = IndividualClassifier().fit(LabelledBags(Bags(x[:16], np.arange(0, 17, 4), counts[:4]), y[:16]))
    np.testing.assert_allclose(some.coef_, first.coef_)


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
    expected = [p[0] + 2 * p[1], 3 * p[2] + 3 * p[4]]
    np.testing.assert_allclose(
        model.predict_counts(WEIGHED), [[3 - expected[0], expected[0]], [6 - expected[1], expected[1]]], rtol=1e-6
    )
    assert model.predict(WEIGHED.X).tolist() == [1, 1, 1, 1, 1]
    assert model.predict(-WEIGHED.X).tolist() == [0, 0, 0, 0, 0]


def test_one_class_against_the_rest_and_all_at_once():
    odds = lambda s: 1 / (1 + math.exp(-s))  # noqa: E731
    score = np.array([[0.5, -1.0, 2.0]])
    each = [odds(0.5), odds(-1), odds(2)]
    np.testing.assert_allclose(probabilities(score, 3), [[p / sum(each) for p in each]])
    whole = 1 + math.exp(0.5) + math.exp(-1)
    np.testing.assert_allclose(
        probabilities(score[:, :2], 3), [[1 / whole, math.exp(0.5) / whole, math.exp(-1) / whole]]
    )


def test_likelihood_of_counts():
    """Bags of two and of one: the mean over bags of log P(count), of each class where there are three."""
    p = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    likelihood = counts_likelihood(p, np.array([0, 2, 3]), np.array([[1, 1], [0, 1]]))
    assert likelihood == pytest.approx((math.log(0.25 * 0.5 + 0.75 * 0.5) + math.log(0.75)) / 2)
    p = np.array([[0.5, 0.25, 0.25], [0.5, 0.125, 0.375]])
    found = counts_likelihood(p, np.array([0, 2]), np.array([[1, 0, 1]]))
    of = lambda a, b, z: math.log([(1 - a) * (1 - b), a * (1 - b) + b * (1 - a), a * b][z])  # noqa: E731
    assert found == pytest.approx(of(0.5, 0.5, 1) + of(0.25, 0.125, 0) + of(0.25, 0.375, 1))


def test_highest_scores_are_positive_and_ties_go_to_the_earlier():
    score = np.array([0.5, 2.0, 2.0, 1.0, 3.0, 3.0, 3.0])
    assert label_highest(score, np.array([0, 4, 7]), np.array([2, 1])).tolist() == [0, 1, 1, 0, 1, 0, 0]
    assert label_highest(score, np.array([0, 4, 7]), np.array([0, 3])).tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_inverse_calibration_fits_the_log_odds_of_means():
    """Bags of two equal instances whose log-odds are linear: a bag without a class counts as half an instance of it."""
    x = np.linspace(-1, 1, 12)
    share = 1 / (1 + np.exp(-(0.5 + 2 * x)))
    bags = Bags(
        np.repeat(x, 2)[:, None],
        np.arange(0, 25, 2),
        np.column_stack([1 - share, share]) * 200,
        weights=np.full(24, 100.0),
    )
    model = InverseCalibrationClassifier(C=100.0).fit(bags)
    assert (float(model.coef_[0, 0]), float(model.intercept_[0])) == pytest.approx((2, 0.5), abs=0.1)
    none = Bags(np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 2, 4], np.array([0, 2]))
    model = InverseCalibrationClassifier(C=1000.0).fit(none)
    p = model.predict_proba(np.array([[0.0], [1.0]]))[:, 1]
    np.testing.assert_allclose(p, [0.25, 0.75], atol=0.03)


def test_the_mean_embedding_counts_every_bag_once():
    """A bag of one and a bag of nine weigh the same."""
    x = np.concatenate([[0.0], np.ones(9)])[:, None]
    bags = Bags(x, [0, 1, 10], np.array([[1, 0], [3, 6]]))
    model = MeanEmbeddingClassifier(l2=1e-6).fit(Bags(np.zeros((10, 1)), bags.offsets, bags.counts))
    assert model.predict_proba(np.zeros((1, 1)))[0, 1] == pytest.approx((0 + 6 / 9) / 2, abs=1e-3)
