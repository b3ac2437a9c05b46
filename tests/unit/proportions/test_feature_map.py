"""Learners of bags on random features: against enumeration of the choices, and where no linear model can learn."""

from typing import ClassVar

import numpy as np
import pytest

from agglearn.distribution import OrthogonalRandomEmbedding
from agglearn.errors import DataError
from agglearn.observations import Bags, LabelledBags
from agglearn.proportions import CardinalityClassifier, FeatureMapClassifier, IndividualClassifier
from agglearn.proportions.base import counts_likelihood

SIZE = 4
rng = np.random.default_rng(3)
X = rng.normal(size=(600, 2)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(int)  # no line tells these apart
POSITIVE = Y.reshape(-1, SIZE).sum(axis=1)
BAGS = Bags(X, np.arange(0, 601, SIZE), np.column_stack([SIZE - POSITIVE, POSITIVE]), names=("a", "b"))
NEW = rng.normal(size=(2000, 2))
NEW_Y = (NEW[:, 0] * NEW[:, 1] > 0).astype(int)
MAP = OrthogonalRandomEmbedding(32)


@pytest.mark.parametrize(
    ("learner", "observation"), [(CardinalityClassifier(), BAGS), (IndividualClassifier(), LabelledBags(BAGS, Y))]
)
def test_what_no_line_tells_apart(learner, observation):
    """A standard error of the accuracy is .011 here. No linear score is right for more than a little over half."""
    choices = {"l2": [0.5, 0.05], "random_state": 0}
    mapped = FeatureMapClassifier(learner, MAP, scale=[0.5, 1.0], **choices).fit(observation)
    assert mapped.score(NEW, NEW_Y) > 0.9
    assert FeatureMapClassifier(learner, **choices).fit(observation).score(NEW, NEW_Y) < 0.7
    assert set(mapped.tuned_) == {"l2", "scale"}


def test_it_is_the_learner_on_the_vectors_of_the_instances():
    learner = FeatureMapClassifier(CardinalityClassifier(), MAP, l2=[0.5, 0.05], scale=[0.5, 4.0], random_state=1)
    model = learner.fit(BAGS)
    vectors = np.hstack([X, model.embedding_.transform((X, np.arange(601)))])
    by_hand = CardinalityClassifier(l2=model.tuned_["l2"]).fit(Bags(vectors, BAGS.offsets, BAGS.counts))
    mapped = np.hstack([NEW, model.embedding_.transform((NEW, np.arange(2001)))])
    np.testing.assert_allclose(by_hand.predict_proba(mapped), model.predict_proba(NEW), atol=1e-4)
    assert model.embedding_.scale == model.tuned_["scale"] == 0.5


class Recording(CardinalityClassifier):
    """Keeps the first covariate of what it learns from, and of what it is judged on."""

    calls: ClassVar[list] = []

    def fit(self, observation, y=None):
        super().fit(observation)
        self.calls[-1] = (self.l2, set(observation.X[:, 0]))  # in the place of the look at its own counts
        return self

    def predict_proba(self, X):
        self.calls.append((self.l2, set(X[:, 0])))
        return super().predict_proba(X)


def test_values_are_judged_by_bags_that_they_were_not_fitted_to():
    Recording.calls.clear()
    everybody = set(X[:, 0])
    FeatureMapClassifier(Recording(), l2=[5.0, 0.5], random_state=2).fit(BAGS)
    *tried, last = Recording.calls
    assert last[1] == everybody
    assert len(tried) == 4
    for (l2, fitted), (same, judged) in zip(tried[::2], tried[1::2], strict=True):
        assert l2 == same
        assert len(judged) == 30 * SIZE
        assert not fitted & judged
        assert fitted | judged == everybody


def test_the_worse_choice_has_the_worse_held_out_counts():
    """λ = 5,000 leaves nothing but the mean share of each bag's counts, and is never taken beside .05."""
    for seed in range(3):
        model = FeatureMapClassifier(CardinalityClassifier(), MAP, l2=[5000.0, 0.05], scale=[0.5], random_state=seed)
        assert model.fit(BAGS).tuned_ == {"l2": 0.05, "scale": 0.5}


def test_columns_and_counts_are_those_of_the_bags():
    model = FeatureMapClassifier(CardinalityClassifier(), MAP, l2=[0.5], scale=[1.0], random_state=0).fit(BAGS)
    assert (model.n_features_in_, model.feature_names_in_) == (2, ["a", "b"])
    counts = model.predict_counts(BAGS)
    np.testing.assert_allclose(counts.sum(axis=1), SIZE, rtol=1e-6)
    assert counts_likelihood(model.predict_proba(X), BAGS.offsets, BAGS.counts) < 0


@pytest.mark.parametrize(
    ("observation", "said"),
    [(BAGS.take([0]), "one bag only"), (LabelledBags(BAGS, Y), "CardinalityClassifier learns from Bags")],
)
def test_what_it_cannot_learn_from(observation, said):
    with pytest.raises(DataError, match=said):
        FeatureMapClassifier(CardinalityClassifier(), random_state=0).fit(observation)
