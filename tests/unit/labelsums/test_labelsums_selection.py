"""Model choice by aggregates: scores against their definition, halves of a release, what is refused."""

import itertools

import numpy as np
import pandas as pd
import pytest

from agglearn.errors import ConfigError, DataError
from agglearn.labelsums import AggregateSearch, LabelledGradientDescent, RecordSearch, WALRClassifier
from agglearn.maxent import MaxEntClassifier, NaiveBayesClassifier
from agglearn.maxent.exact import Enumeration
from agglearn.observations import ContingencyTables, Halves, LabelSums, Records


def world(n: int, effect: float, seed=0) -> pd.DataFrame:
    """Three features of five values; the label follows pairs of them with the strength `effect`."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 5, (n, 3))
    z = effect * np.where((codes[:, 0] + codes[:, 1]) % 2, 1, -1) + effect * (codes[:, 2] - 2) / 2
    frame = pd.DataFrame({f"f{i}": pd.Series(codes[:, i]).map("v{}".format) for i in range(3)})
    return frame.assign(label=(rng.random(n) < 1 / (1 + np.exp(-z))).astype(int))


def maxent() -> MaxEntClassifier:
    return MaxEntClassifier(2000, max_iter=150)


def exact_score(model: MaxEntClassifier, held: ContingencyTables, weights=None) -> float:
    """`held_out_score` with every state of the features enumerated, weighted by the model or by `weights`."""
    world = Enumeration.from_tables(held)
    layout = model._index
    mu, theta = (m[layout.rows, layout.columns] for m in (model.mu_, model.theta_))
    z = world.cells @ theta + model.intercept_
    mass = np.exp(world.log_joint(mu, theta)).sum(axis=1) if weights is None else weights
    return (world.c @ theta + held.positives * model.intercept_) / held.total - mass @ np.logaddexp(0, z)


@pytest.mark.slow
def test_score_of_tables_is_that_of_all_states(tables):
    errors = []
    for seed in range(20):
        found = AggregateSearch(MaxEntClassifier(200, max_iter=40), values=[1.0], random_state=seed).fit(
            Halves(tables, tables)
        )
        model = MaxEntClassifier(200, max_iter=40, l2_theta=1.0, random_state=seed).fit(tables)
        errors.append(found.scores_[0] - (right := exact_score(model, tables)))
    assert np.sqrt(np.mean(np.square(errors))) < 0.0014  # about .0007 by 50,000 chains, .003 by 2,000
    even = np.full(24, 1 / 24)  # features as if all states were equally likely: what must not pass
    assert abs(exact_score(model, tables, even) - right) > 0.02


@pytest.fixture
def tables():
    frame = pd.DataFrame(list(itertools.product("ab", "xyz", "klmn")), columns=["p", "q", "r"])
    frame = frame.loc[np.random.default_rng(0).choice(24, 3000, p=np.arange(1, 25) / 300)].reset_index(drop=True)
    odd = (frame.q == "z") ^ (frame.p == "a")
    return ContingencyTables.from_records(frame.assign(label=(np.arange(3000) % 4 < 1 + 2 * odd).astype(int)), "label")


OTHER = world(50, 1.0)
FEW_SUMS = LabelSums.from_records(np.ones((4, 1)), [0, 1, 0, 1])
NAIVE_BAYES = NaiveBayesClassifier()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda t: Halves(t, Records.from_records(OTHER, "label")), "two of one kind"),
        (lambda t: AggregateSearch(WALRClassifier(), "l2", (1.0,)).fit(FEW_SUMS), "cannot be split"),
        (lambda t: AggregateSearch(WALRClassifier(), "l2", (1.0,)).fit(t), "learns from LabelSums"),
        (lambda t: AggregateSearch(NAIVE_BAYES, "smoothing", (1.0,)).fit(t), "NaiveBayesClassifier has no score on"),
        (lambda t: AggregateSearch(maxent(), "l3").fit(t), "'l3' is no parameter of base"),
    ],
)
def test_what_cannot_be_chosen_is_refused(tables, call, said):
    with pytest.raises((ConfigError, DataError), match=said):
        call(tables)


# Scores and halves of sums by their definitions: weights that differ, halves of unequal sizes.
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=61), "b": RNG.normal(3, 0.2, 61)})
Y = (RNG.random(61) < 1 / (1 + np.exp(-2 * X["a"] + 1))).astype(int).to_numpy()
WEIGHTS = 0.25 + RNG.exponential(size=61)


def sums(rows=slice(None), weights=None) -> LabelSums:
    weights = None if weights is None else weights[rows]
    return LabelSums.from_records(X[rows].reset_index(drop=True), Y[rows], weights=weights)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_held_out_score_is_the_mean_log_likelihood_of_the_labels(weights):
    model, held = WALRClassifier().fit(sums(slice(40), weights)), slice(40, 61)
    p = model.predict_proba(X[held])[:, 1]
    each = np.where(Y[held] == 1, np.log(p), np.log(1 - p))
    expected = np.average(each, weights=None if weights is None else weights[held])
    assert model.held_out_score(sums(held, weights)) == pytest.approx(expected)


def test_weighted_halves_add_up_to_the_whole_and_choose():
    halves = Halves(sums(slice(25), WEIGHTS), sums(slice(25, 61), WEIGHTS))
    np.testing.assert_allclose(halves.combined.sums, sums(weights=WEIGHTS).sums)
    np.testing.assert_array_equal(halves.combined.weights, WEIGHTS)
    found = AggregateSearch(WALRClassifier(), "l2", [0.1, 1.0, 100.0], random_state=0).fit(halves)
    scores = [WALRClassifier(l2=v).fit(halves.first).held_out_score(halves.second) for v in (0.1, 1.0, 100.0)]
    np.testing.assert_allclose(found.scores_, scores)
    mixed = Halves(sums(slice(25), WEIGHTS), sums(slice(25, 61))).combined
    np.testing.assert_array_equal(mixed.weights, [*WEIGHTS[:25], *np.ones(36)])


def test_a_learner_from_records_is_chosen_by_records_held_out():
    """Noise that grows with the steps drowns many of them; few records of a clear label want more than one step."""
    frame = world(3000, 1.0)
    descent = LabelledGradientDescent("noise_per_step", epsilon=5.0)
    records, values = Records.from_records(frame, "label"), (1, 10, 3000)
    model = RecordSearch(descent, "max_iter", values, random_state=0).fit(records)
    assert model.value_ == 10
    assert model.model_.map_.inputs == records.encoder.names
    alone = LabelledGradientDescent("noise_per_step", epsilon=5.0, max_iter=10, random_state=model.model_.random_state)
    np.testing.assert_array_equal(alone.fit(records).coef_, model.model_.coef_)
