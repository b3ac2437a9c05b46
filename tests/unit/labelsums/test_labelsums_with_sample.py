"""Tables and a sample: the objective by an independent solver, folds and weights by hand, worlds whose right mean is known."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from agglearn.encoding import BinnedEncoder
from agglearn.errors import DataError
from agglearn.evaluation.metrics import log_likelihood
from agglearn.labelsums import BoostedTreesSkyline, TablesAndSampleClassifier, with_sample
from agglearn.labelsums.raking import Margins
from agglearn.labelsums.with_sample import (
    DRAWS,
    STRENGTHS,
    candidate_weights,
    posterior_weights,
    stacking_weights,
    take,
    target_encoding,
)
from agglearn.maxent import JointMaxEntClassifier, NaiveBayesClassifier, NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables, Records, TablesAndSample, with_gaussian_noise
from agglearn.seeds import derive_generator


def world(n: int, seed: int, shift: float = 0.0, xor: float = 0.0) -> pd.DataFrame:
    """Three features of three values: each moves the log-odds, and so does whether the first two are equal."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (n, 3))
    z = codes @ [1.0, -0.7, 0.5] - 1 + shift + xor * (2 * (codes[:, 0] == codes[:, 1]) - 1)
    frame = pd.DataFrame({f"f{i}": pd.Series(codes[:, i]).map("v{}".format) for i in range(3)})
    return frame.assign(label=(rng.random(n) < expit(z)).astype(int))


def observe(many: pd.DataFrame, few: pd.DataFrame) -> TablesAndSample:
    return TablesAndSample.from_records(ContingencyTables.from_records(many, "label"), few)


def classifier(**options) -> TablesAndSampleClassifier:
    return TablesAndSampleClassifier(NaiveBayesClassifier(), random_state=3, **options)


NEW = world(4000, 9)
LOGISTIC = [f"logistic, λ {l2:g}" for l2 in STRENGTHS]
RAKED = [f"raked {name}" for name in LOGISTIC]


def score(p: np.ndarray, frame: pd.DataFrame = NEW) -> float:
    return log_likelihood(frame["label"].to_numpy(), p)


def tables_alone(observation: TablesAndSample, frame: pd.DataFrame = NEW) -> np.ndarray:
    return NaiveBayesClassifier().fit(observation.tables).predict_proba(frame)[:, 1]


def coordinates(observation: TablesAndSample, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(n,) log-odds m, and (n, 12): m and the sum of encodings, standardised as on the sample, modalities, and one."""

    def scores(rows):
        modalities = np.column_stack([rows[f] == v for f in ("f0", "f1", "f2") for v in ("v0", "v1", "v2")])
        of_values = modalities @ target_encoding(observation.tables)
        return np.column_stack([logit(tables_alone(observation, rows)), of_values]), modalities

    (found, modalities), (inside, _) = scores(frame), scores(observation.sample.frame)
    standardised = (found - inside.mean(axis=0)) / inside.std(axis=0)
    return found[:, 0], np.column_stack([standardised, modalities, np.ones(len(found))])


def raked(observation: TablesAndSample, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
    sample = observation.sample
    return Margins.of(observation.tables, sample.codes[rows], np.asarray(sample.y, float)[rows]).weights()


def correct(m: np.ndarray, x: np.ndarray, y: np.ndarray, l2: float, w: np.ndarray) -> np.ndarray:
    def objective(theta):
        z = m + x @ theta
        return (w * (np.logaddexp(0, z) - y * z)).sum() + l2 * theta @ theta

    return minimize(objective, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-8}).x


def test_corrections_minimise_their_objective_on_the_sample_and_the_raked_one():
    observation = observe(world(3000, 0), world(150, 1, shift=1))
    model, y = classifier().fit(observation), observation.sample.y
    m, x = coordinates(observation, observation.sample.frame)
    weights = raked(observation)
    assert weights.std() > 0.2
    assert not model.coef_[0].any()
    for found, (w, l2) in zip(model.coef_[1:], itertools.product((np.ones(150), weights), STRENGTHS), strict=True):
        np.testing.assert_allclose(x @ found, x @ correct(m, x, y, l2, w), atol=2e-3)


def test_encodings_without_noise_have_the_order_and_the_size_of_log_odds():
    """A tenth of the values' rates around the base rate is nearly a straight line of log-odds."""
    frame = pd.DataFrame({"f": np.repeat(["a", "b", "c", "d"], 100_000)})
    rates = np.repeat([0.3, 0.32, 0.28, 0.31], 100_000)
    frame = frame.assign(label=(np.tile(np.arange(100_000), 4) < 100_000 * rates).astype(int), g="one")
    found = target_encoding(ContingencyTables.from_records(frame, "label"))
    assert np.argsort(found[:4]).tolist() == [2, 0, 3, 1]
    np.testing.assert_allclose(found[:4], logit([0.3, 0.32, 0.28, 0.31]) - logit(0.3025), atol=0.005)
    assert found[4:].tolist() == [0.0]  # a feature of one value tells nothing


def test_encodings_shrink_by_the_noise():
    """Posterior means by the formula, cell by cell, with the variance of the effects by moments."""
    tables = with_gaussian_noise(ContingencyTables.from_records(world(2000, 0), "label"), 60.0, 0)
    found, rate = target_encoding(tables), tables.positives / tables.total
    for i in range(3):
        d, c = tables.dense(i)
        g, h = c - rate * d, rate * (1 - rate) * d
        variance = [h[v] + (1 + rate**2) * 3600 for v in range(3)]
        prior = max(sum(g[v] ** 2 - variance[v] for v in range(3)) / sum(h**2), 1e-3)
        expected = [prior * h[v] * g[v] / (prior * h[v] ** 2 + variance[v]) for v in range(3)]
        np.testing.assert_allclose(found[3 * i : 3 * i + 3], expected)
    pairs = {k: t for k, t in tables.tables.items() if k != (1,)}
    assert target_encoding(replace(tables, tables=pairs))[3:6].tolist() == [0.0] * 3


def test_the_prediction_is_the_mean_of_the_candidates():
    observation = observe(world(3000, 0), world(400, 1, shift=1, xor=1.0))
    model, (m, x) = classifier(prior=0.2).fit(observation), coordinates(observation, NEW)
    z = m[:, None] + x @ model.coef_.T
    trees = BoostedTreesSkyline(random_state=3).fit(observation.sample).predict_proba(NEW)[:, 1]
    weights = model.weights_
    assert model.candidates_ == ["tables", *LOGISTIC, *RAKED, "trees on tables", "trees"]
    assert (weights[-2:] > 0).all()
    on_tables = model.predict_proba(NEW)[:, 1] - expit(z) @ weights[:-2] - weights[-1] * trees
    assert 0 < on_tables.min() < on_tables.max() < weights[-2]
    without = classifier(prior=0.2, trees=False).fit(observation)
    np.testing.assert_allclose(without.predict_proba(NEW)[:, 1], expit(z) @ without.weights_, rtol=0, atol=1e-12)


def test_trees_on_tables_see_values_in_the_order_of_their_encodings():
    observation = observe(world(3000, 0), world(400, 1, shift=1, xor=1.0))
    model = classifier(prior=0.2).fit(observation)
    assert [type(f) for f in model.trees_on_tables_.encoder_.features] == [BinnedEncoder] * 5
    codes = np.array([[0, 1, 2], [1, 2, 0], [2, 0, -1]])
    scores = np.array([[-9.0, 9.0], [0.0, 0.0], [9.0, -9.0]])
    found, encoding = model._codes_on_tables(codes, scores, model.trees_on_tables_.encoder_.features), model.encoding_
    for i in range(3):
        seen = codes[:, i] >= 0
        order = np.argsort(encoding[3 * i : 3 * i + 3][codes[seen, i]])
        assert (np.diff(found[seen, i][order]) > 0).all()
    assert found[2, 2] == -1
    assert (np.diff(found[:, 3]) > 0).all()
    assert (np.diff(found[:, 4]) < 0).all()


def test_candidates_are_judged_by_records_outside_their_fit():
    """One record is held out at a time."""
    observation = observe(world(800, 0), world(60, 1, shift=1))
    model, y = classifier(folds=60, trees=False).fit(observation), observation.sample.y
    (m, x), losses = coordinates(observation, observation.sample.frame), np.empty((60, 3))
    for i in range(60):
        rows = np.arange(60) != i
        both = (np.ones(59), raked(observation, rows))
        corrections = (correct(m[rows], x[rows], y[rows], STRENGTHS[4], w) for w in both)
        for k, theta in enumerate((np.zeros(12), *corrections)):
            z = m[i] + x[i] @ theta
            losses[i, k] = np.logaddexp(0, z) - y[i] * z
    np.testing.assert_allclose(model.scores_[[0, 5, 13]], -losses.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(
    ("many", "few", "right"),
    [
        (world(50_000, 0), world(100, 1), "tables"),  # they know better than a hundred records
        (world(50_000, 0, shift=-2), world(2000, 1), "logistic"),  # of another population
        (world(50_000, 0), world(6000, 1, xor=2.0), "trees"),  # which single features do not tell of
    ],
)
def test_the_right_candidates_have_the_weight(many, few, right):
    model = classifier().fit(observe(many, few))
    weight = sum(w for name, w in zip(model.candidates_, model.weights_, strict=True) if name.startswith(right))
    assert weight > 0.85


NOISY = with_gaussian_noise(ContingencyTables.from_records(world(3000, 0), "label"), 40.0, 0)
QUICK = {"n_chains": 200, "max_iter": 30, "l2_theta": 4.0}


def test_the_model_of_tables_and_sample_is_a_candidate_judged_outside_its_fit():
    observation = TablesAndSample.from_records(NOISY, world(40, 1))
    learners = NoiseAwareMaxEntClassifier(**QUICK), JointMaxEntClassifier(**QUICK)
    model = TablesAndSampleClassifier(*learners, trees=False, folds=40, random_state=3).fit(observation)
    place, joint = model.candidates_.index("tables and sample"), JointMaxEntClassifier(**QUICK, random_state=3)
    y, losses = observation.sample.y, []
    for i in range(40):
        fold = joint.fit(take(observation, np.arange(40) != i))
        p = fold.predict_proba(observation.sample.frame[i : i + 1])[0, 1]
        losses.append(-np.log(p if y[i] else 1 - p))
    assert model.scores_[place] == pytest.approx(-np.mean(losses), abs=1e-9)
    found = model.predict_proba(NEW)[:, 1] - model.weights_[:place] @ expit(_corrections(model))
    np.testing.assert_allclose(
        found, model.weights_[place] * joint.fit(observation).predict_proba(NEW)[:, 1], atol=1e-9
    )


def _corrections(model: TablesAndSampleClassifier) -> np.ndarray:
    """(corrections, n) log-odds of the tables and of each correction."""
    codes = model.encoder_.encode(NEW)
    scores = model._scores(codes)
    return (scores[:, :1] + model._coordinates(codes, scores) @ model.coef_.T).T


def test_a_sample_with_few_records_of_a_label_has_no_trees():
    many, few = world(3000, 0), world(200, 1)
    for ones, trees in ((1, False), (9, False), (10, True)):
        rare = pd.concat([few[few["label"] == 0][:60], few[few["label"] == 1][:ones]])
        model = classifier().fit(observe(many, rare))
        assert ("trees" in model.candidates_) == trees
        assert np.isfinite(model.predict_proba(NEW)).all()


def test_weights_of_pseudo_bma_are_posterior_ones_by_halved_losses():
    """Losses that differ by a constant are the same in each draw of the bootstrap."""
    rng = np.random.default_rng(0)
    least = rng.random(40)
    losses = np.column_stack([least + 0.2, least, least])  # 8 nats in all, of which half count
    posterior = np.array([0.8 * np.exp(-4), 0.1, 0.1])
    found = posterior_weights(losses, np.array([0.8, 0.1, 0.1]), rng)
    np.testing.assert_allclose(found, posterior / posterior.sum())


def test_weights_of_stacking_maximise_their_objective():
    """Against an independent solver, for four candidates of which two are right on a half of the records each."""
    rng, prior = np.random.default_rng(0), np.array([0.5, 0.3, 0.1, 0.1])
    losses = rng.exponential(1, (400, 4)) + np.repeat([[0, 1, 0.1, 2], [1, 0, 0.1, 2]], 200, axis=0)

    def objective(free):
        w = softmax(np.append(free, 0))
        return -np.log(np.exp(-losses) @ w).sum() - 300 / np.sqrt(400) * prior @ np.log(w)

    best = softmax(np.append(minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x, 0))
    np.testing.assert_allclose(stacking_weights(losses, prior), best, atol=2e-3)
    assert best.max() < 0.8


def test_weights_are_the_mean_of_both_without_the_smallest():
    losses, prior = np.random.default_rng(0).exponential((1, 1.2, 1), (60, 3)), np.array([0.6, 0.3999, 0.0001])
    losses[:, 2] += 50
    both = posterior_weights(losses, prior, np.random.default_rng(1)) + stacking_weights(losses, prior)
    found = candidate_weights(losses, prior, np.random.default_rng(1))
    np.testing.assert_allclose(found, [*both[:2] / both[:2].sum(), 0])
    assert both[2] > 0


def test_the_bootstrap_does_not_repeat_the_draws_of_the_folds(monkeypatch):
    started = {}

    def derive(name, seed):
        started[name] = derive_generator(name, seed)
        return derive_generator(name, seed)

    monkeypatch.setattr(with_sample, "derive_generator", derive)
    classifier(trees=False).fit(observe(world(400, 0), world(60, 1)))
    assert len({generator.integers(2**63) for generator in started.values()}) == 2


def test_losses_that_few_records_decide_move_weights_less():
    """One record of 50 makes all the difference, 8 nats. It has little weight in some draws."""
    losses = np.zeros((50, 2))
    losses[0, 0] = 8.0
    share = 50 * np.random.default_rng(5).dirichlet(np.ones(50), DRAWS)[:, 0]
    expected = np.mean(1 / (1 + np.exp(-0.5 * 8 * share)))  # of the second, at even odds
    found = posterior_weights(losses, np.array([0.5, 0.5]), np.random.default_rng(5))
    np.testing.assert_allclose(found, [1 - expected, expected])
    assert expected < 1 / (1 + np.exp(-4)) - 0.05


def test_a_sample_needs_the_label_and_the_features_of_the_tables():
    tables = ContingencyTables.from_records(world(100, 0), "label")
    renamed = world(20, 1).rename(columns={"label": "bought"}).replace({"bought": {1: "y", 0: "n"}})
    assert TablesAndSample.from_records(tables, renamed, "bought", "y").sample.y.tolist() == world(20, 1).label.tolist()
    other = Records.from_records(world(20, 1).assign(f0="v9"), "label")
    single = Records(tables.encoder, world(20, 1)[:1], np.ones(1))
    for make, sample, said in (
        (TablesAndSample.from_records, renamed, "'label'"),
        (TablesAndSample.from_records, world(20, 1).drop(columns="f1"), "'f1'"),
        (TablesAndSample.from_records, world(20, 1).query("label == 1"), "must have two values, it has 1"),
        (TablesAndSample, other, "^sample: of other features or values than the tables; make it with their encoder$"),
        (TablesAndSample, single, "^sample: has 1 record; a sample needs two or more$"),
    ):
        with pytest.raises(DataError, match=said):
            make(tables, sample)
