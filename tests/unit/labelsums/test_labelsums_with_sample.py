"""Tables and a sample: the objective by an independent solver, folds and weights by hand, worlds whose right mean is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from agglearn.errors import DataError
from agglearn.evaluation.metrics import log_likelihood
from agglearn.labelsums import BoostedTreesSkyline, TablesAndSampleClassifier, with_sample
from agglearn.labelsums.with_sample import DRAWS, STRENGTHS, candidate_weights
from agglearn.maxent import LogisticSkyline, NaiveBayesClassifier
from agglearn.observations import ContingencyTables, Records, TablesAndSample
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


def score(p: np.ndarray, frame: pd.DataFrame = NEW) -> float:
    return log_likelihood(frame["label"].to_numpy(), p)


def tables_alone(observation: TablesAndSample, frame: pd.DataFrame = NEW) -> np.ndarray:
    return NaiveBayesClassifier().fit(observation.tables).predict_proba(frame)[:, 1]


def coordinates(frame: pd.DataFrame, m: np.ndarray, of: np.ndarray) -> np.ndarray:
    """(n, 11) log-odds m, standardised as those of the sample, modalities, and one."""
    modalities = [(frame[f] == v).to_numpy() for f in ("f0", "f1", "f2") for v in ("v0", "v1", "v2")]
    return np.column_stack([(m - of.mean()) / of.std(), *modalities, np.ones(len(m))])


def correct(m: np.ndarray, x: np.ndarray, y: np.ndarray, l2: float) -> np.ndarray:
    def objective(theta):
        z = m + x @ theta
        return np.logaddexp(0, z).sum() - y @ z + l2 * theta @ theta

    return minimize(objective, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-8}).x


def test_corrections_minimise_their_objective():
    observation = observe(world(3000, 0), world(150, 1, shift=1))
    model, frame, y = classifier().fit(observation), observation.sample.frame, observation.sample.y
    m = logit(tables_alone(observation, frame))
    x = coordinates(frame, m, m)
    assert not model.coef_[0].any()
    for l2, found in zip(STRENGTHS, model.coef_[1:], strict=True):
        np.testing.assert_allclose(found, correct(m, x, y, l2), atol=2e-4)


def test_the_prediction_is_the_mean_of_the_candidates():
    observation = observe(world(3000, 0), world(400, 1, shift=1, xor=1.0))
    model, m = classifier(prior=0.2).fit(observation), logit(tables_alone(observation))
    inside = logit(tables_alone(observation, observation.sample.frame))
    z = m[:, None] + coordinates(NEW, m, inside) @ model.coef_.T
    trees = BoostedTreesSkyline(random_state=3).fit(observation.sample).predict_proba(NEW)[:, 1]
    weights = model.weights_
    assert model.candidates_ == ["tables", *(f"logistic, λ {l2:g}" for l2 in STRENGTHS), "trees on tables", "trees"]
    assert (weights[-2:] > 0).all()
    on_tables = model.predict_proba(NEW)[:, 1] - expit(z) @ weights[:-2] - weights[-1] * trees
    assert 0 < on_tables.min() < on_tables.max() < weights[-2]
    without = classifier(prior=0.2, trees=False).fit(observation)
    np.testing.assert_allclose(without.predict_proba(NEW)[:, 1], expit(z) @ without.weights_, rtol=0, atol=1e-12)


def test_candidates_are_judged_by_records_outside_their_fit():
    """One record is held out at a time."""
    observation = observe(world(800, 0), world(60, 1, shift=1))
    model, frame, y = classifier(folds=60, trees=False).fit(observation), observation.sample.frame, observation.sample.y
    m = logit(tables_alone(observation, frame))
    x, losses = coordinates(frame, m, m), np.empty((60, 2))
    for i in range(60):
        rows = np.arange(60) != i
        for k, theta in enumerate((np.zeros(11), correct(m[rows], x[rows], y[rows], STRENGTHS[4]))):
            z = m[i] + x[i] @ theta
            losses[i, k] = np.logaddexp(0, z) - y[i] * z
    np.testing.assert_allclose(model.scores_[[0, 5]], -losses.mean(axis=0), atol=1e-5)


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


def test_a_sample_with_few_records_of_a_label_has_no_trees():
    many, few = world(3000, 0), world(200, 1)
    for ones, trees in ((1, False), (9, False), (10, True)):
        rare = pd.concat([few[few["label"] == 0][:60], few[few["label"] == 1][:ones]])
        model = classifier().fit(observe(many, rare))
        assert ("trees" in model.candidates_) == trees
        assert np.isfinite(model.predict_proba(NEW)).all()


def test_both_together_know_more_than_each_alone():
    """Tables of another time, whose rate differs, and two hundred records of today."""
    observation = observe(world(50_000, 0, shift=-1), world(200, 1))
    both = score(classifier().fit(observation).predict_proba(NEW)[:, 1])
    sample = score(LogisticSkyline(quadratic=False, random_state=0).fit(observation.sample).predict_proba(NEW)[:, 1])
    assert both > max(score(tables_alone(observation)), sample) + 0.005


def test_weights_are_posterior_ones_by_halved_losses():
    """Losses that differ by a constant are the same in each draw of the bootstrap."""
    rng = np.random.default_rng(0)
    least = rng.random(40)
    losses = np.column_stack([least + 0.2, least, least])  # 8 nats in all, of which half count
    posterior = np.array([0.8 * np.exp(-4), 0.1, 0.1])
    np.testing.assert_allclose(candidate_weights(losses, 0.8, rng), posterior / posterior.sum())
    far = candidate_weights(np.column_stack([least + 1, least, least + 0.5]), 0.8, rng)
    assert far.tolist() == [0, 1, 0]


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
    found = candidate_weights(losses, 0.5, np.random.default_rng(5))
    np.testing.assert_allclose(found, [1 - expected, expected])
    assert expected < 1 / (1 + np.exp(-4)) - 0.05


def test_a_sample_needs_the_label_and_the_features_of_the_tables():
    tables = ContingencyTables.from_records(world(100, 0), "label")
    renamed = (
        world(20, 1).rename(columns={"label": "bought"}).assign(bought=lambda f: f["bought"].map({1: "y", 0: "n"}))
    )
    assert TablesAndSample.from_records(tables, renamed, "bought", "y").sample.y.tolist() == world(20, 1).label.tolist()
    with pytest.raises(DataError, match="'label'"):
        TablesAndSample.from_records(tables, renamed)
    with pytest.raises(DataError, match="'f1'"):
        TablesAndSample.from_records(tables, world(20, 1).drop(columns="f1"))
    with pytest.raises(DataError, match="must have two values, it has 1"):
        TablesAndSample.from_records(tables, world(20, 1).query("label == 1"))
    other = Records.from_records(world(20, 1).assign(f0="v9"), "label")
    with pytest.raises(
        DataError, match=r"^sample: of other features or values than the tables; make it with their encoder$"
    ):
        TablesAndSample(tables, other)
    with pytest.raises(DataError, match=r"^sample: has 1 record; a sample needs two or more$"):
        TablesAndSample(tables, Records(tables.encoder, world(20, 1)[:1], np.ones(1)))
