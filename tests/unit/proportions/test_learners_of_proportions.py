"""The learners of label proportions: what they learn, predict, keep, weigh and refuse."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from small_bags import COUNTS, OFFSETS, SIZES, X, persons

from agglearn.errors import AgglearnError, DataError, NoiseIgnored, PoorFit
from agglearn.observations import Bags, LabelledBags, NoiseSpec
from agglearn.proportions import (
    AlternatingMeanMapClassifier,
    CardinalityClassifier,
    IndividualClassifier,
    InverseCalibrationClassifier,
    MeanEmbeddingClassifier,
    MeanMapClassifier,
    NormalApproximationClassifier,
)
from agglearn.proportions.base import probabilities, warn_of_poor_fit

LEARNERS = [
    CardinalityClassifier(random_state=0), CardinalityClassifier(multiclass="exact", l2=1.0, random_state=0),
    CardinalityClassifier(solver="em", l2=1.0, max_iter=5, random_state=0),
    NormalApproximationClassifier(l2=1.0, random_state=0), AlternatingMeanMapClassifier(l2=1.0, random_state=0),
    AlternatingMeanMapClassifier(l2=1.0, labels="max", start="mean_map"),
    AlternatingMeanMapClassifier(random_state=0, start="zero", max_iter=3), MeanMapClassifier(random_state=0),
    MeanEmbeddingClassifier(random_state=0), MeanEmbeddingClassifier(multiclass="ovr", l2=0.1),
    InverseCalibrationClassifier(),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda e: repr(e)[:60])
def test_learns_predicts_and_repeats_itself(learner, classes):
    seen, _ = persons(classes=classes)
    test, _ = persons(classes=classes, n_bags=50, seed=1)
    model = clone(learner).fit(seen.bags)
    p = model.predict_proba(test.bags.X)
    assert p.shape == (600, classes)
    assert np.allclose(p.sum(axis=1), 1)
    chance = np.bincount(test.y).max() / len(test.y)
    assert (model.predict(test.bags.X) == test.y).mean() > chance + 0.03
    expected = model.predict_counts(test.bags)
    assert np.allclose(expected.sum(axis=1), 12)
    assert np.array_equal(clone(learner).fit(seen.bags).predict_proba(test.bags.X), p)


@pytest.mark.slow
def test_weight_zero_removes_a_person():
    seen, _ = persons()
    bags = seen.bags
    gone = np.zeros(len(bags.X), bool)
    gone[::5] = True
    y = seen.y
    counts = np.stack([np.add.reduceat(((y == c) & ~gone).astype(int), bags.offsets[:-1]) for c in (0, 1)], axis=1)
    weighted = Bags(bags.X, bags.offsets, counts, weights=(~gone).astype(float))
    sizes = np.add.reduceat((~gone).astype(int), bags.offsets[:-1])
    without = Bags(bags.X[~gone], np.append(0, np.cumsum(sizes)), counts)
    for learner in LEARNERS[:9]:
        a, b = clone(learner).fit(weighted), clone(learner).fit(without)
        assert np.allclose(a.coef_, b.coef_, atol=1e-6), learner


def test_an_oracle_of_the_first_bags_has_their_labels():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    counts = np.add.reduceat(y, np.arange(0, 40, 4))
    some = IndividualClassifier(n_bags=4).fit(LabelledBags(Bags(x, np.arange(0, 41, 4), counts), y))
    first = IndividualClassifier().fit(LabelledBags(Bags(x[:16], np.arange(0, 17, 4), counts[:4]), y[:16]))
    np.testing.assert_allclose(some.coef_, first.coef_)


def test_first_bags_only():
    seen, _ = persons()
    part = seen.bags.take(np.arange(30))
    some, first = (MeanEmbeddingClassifier(l2=1.0, n_bags=n).fit(b) for n, b in ((30, seen.bags), (None, part)))
    assert np.array_equal(some.coef_, first.coef_)


@pytest.mark.parametrize(
    "learner",
    [MeanEmbeddingClassifier(l2=0.3, multiclass="ovr"), CardinalityClassifier(l2=0.3, multiclass="ovr"),
     NormalApproximationClassifier(l2=0.3), AlternatingMeanMapClassifier(l2=0.3)],
    ids=lambda learner: type(learner).__name__,
)  # fmt: skip
def test_one_class_against_the_rest_is_the_fit_of_two_classes(learner):
    """No class has half of the instances, so that a class and the rest cannot change places."""
    model = clone(learner).fit(Bags(X, OFFSETS, COUNTS))
    assert len(model.coef_) == 3
    for c, (coef, intercept) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        two = clone(learner).fit(Bags(X, OFFSETS, np.column_stack([SIZES - COUNTS[:, c], COUNTS[:, c]])))
        np.testing.assert_allclose([*coef, intercept], [*two.coef_[0], *two.intercept_], rtol=1e-6, atol=1e-8)


def test_one_class_against_the_rest_and_all_at_once():
    odds = lambda s: 1 / (1 + math.exp(-s))  # noqa: E731
    score = np.array([[0.5, -1.0, 2.0]])
    each = [odds(0.5), odds(-1), odds(2)]
    np.testing.assert_allclose(probabilities(score, 3), [[p / sum(each) for p in each]])
    whole = 1 + math.exp(0.5) + math.exp(-1)
    expected = [[1 / whole, math.exp(0.5) / whole, math.exp(-1) / whole]]
    np.testing.assert_allclose(probabilities(score[:, :2], 3), expected)


SEEN = persons()[0]
NO_COUNTS = Bags(SEEN.bags.X, SEEN.bags.offsets, target=np.zeros(120))


@pytest.mark.parametrize(
    ("learner", "seen", "said"),
    [
        (CardinalityClassifier(solver="magic"), SEEN.bags, "scoring, em"),
        (CardinalityClassifier(multiclass="magic"), SEEN.bags, "ovr, exact"),
        (CardinalityClassifier(l2="magic"), SEEN.bags, "held_out"),
        (CardinalityClassifier(l2=-1), SEEN.bags, "above 0"),
        (AlternatingMeanMapClassifier(labels="magic"), SEEN.bags, "min, max"),
        (AlternatingMeanMapClassifier(start="magic"), SEEN.bags, "mean_embedding, mean_map, zero"),
        (MeanEmbeddingClassifier(n_bags=121), SEEN.bags, "between 1 and the 120 bags"),
        (MeanEmbeddingClassifier(), NO_COUNTS, "no counts"),
        (IndividualClassifier(l2=1.0), LabelledBags(NO_COUNTS, SEEN.y), "counts"),
    ],
)  # fmt: skip
def test_what_they_refuse(learner, seen, said):
    with pytest.raises(AgglearnError, match=said):
        learner.fit(seen)


def test_rows_of_another_width_are_refused():
    with pytest.raises(DataError, match=r"must be .instances, 3."):
        MeanEmbeddingClassifier(l2=1.0).fit(SEEN.bags).predict_proba(np.zeros((2, 5)))


TWO_BAGS = Bags(np.zeros((5, 1)), np.array([0, 2, 5]), np.array([1, 1]))  # one of two, one of three


def test_counts_less_probable_than_by_the_base_rate_warn():
    """By hand: P(1 of 2) and P(1 of 3) by rates of the instances, and by 2/5 for all."""
    p = np.array([0.9, 0.8, 0.7, 0.1, 0.2])
    one_of_two = 0.9 * 0.2 + 0.1 * 0.8
    one_of_three = 0.7 * 0.9 * 0.8 + 0.3 * 0.1 * 0.8 + 0.3 * 0.9 * 0.2
    of_base_rate = (2 * 0.4 * 0.6, 3 * 0.4 * 0.6**2)
    means = [np.log([one_of_two, one_of_three]).mean(), np.log(of_base_rate).mean()]
    with pytest.warns(PoorFit, match=f"log P of a bag: {means[0]:.4g} and {means[1]:.4g}"):
        warn_of_poor_fit(TWO_BAGS, p, "T")


@pytest.mark.filterwarnings("error::agglearn.errors.PoorFit")
def test_counts_more_probable_than_by_the_base_rate_do_not_warn():
    warn_of_poor_fit(TWO_BAGS, np.array([0.9, 0.1, 1.0, 0.0, 0.0]), "T")  # certain instances, all right
    warn_of_poor_fit(TWO_BAGS, np.full(5, 0.4), "T")


def test_a_fit_warns_where_counts_have_no_noise():
    class Wrong(MeanMapClassifier):
        def _learn(self, bags):
            return -super()._learn(bags)

    bags = persons(size=30)[0].bags
    with pytest.warns(PoorFit, match="^Wrong: the counts of the bags are less probable"):
        Wrong(l2=1.0).fit(bags)
    noisy = replace(bags, noise=NoiseSpec("discrete_laplace", 1.0, 1.0, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PoorFit)
        warnings.simplefilter("ignore", NoiseIgnored)
        Wrong(l2=1.0).fit(noisy)
        CardinalityClassifier(l2=1.0).fit(bags)
