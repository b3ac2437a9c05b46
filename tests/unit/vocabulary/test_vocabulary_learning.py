"""Classifiers on compressed features: what they are fitted to, what they keep, and that they learn."""

import numpy as np
import pandas as pd
import pytest

from agglearn.datasets import ClickLog
from agglearn.evaluation import log_likelihood
from agglearn.observations import Records
from agglearn.vocabulary import LogisticOnClusters, NetworkOnClusters, OptimalQuantizer, SubmodularQuantizer
from agglearn.vocabulary.on_clusters import draw_settings


@pytest.fixture(scope="module")
def log():
    population = ClickLog(n_features=5, n_values=400, n=6000, strength=2.0).draw(0)
    records = Records.from_records(population.frame[:4000].assign(y=population.y[:4000]), "y")
    return records, population.frame[4000:], population.y[4000:]


def better_than_base(model, frame, y) -> float:
    return log_likelihood(y, model.predict_proba(frame)[:, 1]) - log_likelihood(y, np.full(len(y), y.mean()))


def test_logistic_learns(log):
    records, frame, y = log
    model = LogisticOnClusters(SubmodularQuantizer(60, min_count=10), random_state=3).fit(records)
    assert better_than_base(model, frame, y) > 0.05
    assert model.quantizer_.n_clusters_ == sum(model.sizes_) == 60
    assert len(model.tries_) == len(model.l2)
    assert model.scores_[model.best_] == model.scores_.max()
    stages = [p for _, _, p in model.staged_predict_proba(frame)]
    assert (stages[model.best_] == model.predict_proba(frame)[:, 1]).all()
    unseen = model.predict_proba(pd.DataFrame({c: ["new"] for c in frame}))
    assert 0 < unseen[0, 1] < 1


def test_settings_lie_in_the_paper_s_ranges():
    drawn = [draw_settings(k, np.random.default_rng(k)) for k in range(1, 300)]
    ranges = {"hidden": (100, 1280), "layers": (1, 5), "rate": (1e-6, 1e-2), "clip": (1, 1000), "l2": (0, 1e-4)}
    for name, (low, high) in ranges.items():
        values = [s[name] for s in drawn]
        assert low <= min(values) < max(values) <= high
    assert np.median([s["rate"] for s in drawn]) == pytest.approx(1e-4, rel=0.6)  # log-uniform


def test_probabilities_are_the_network_s():
    """A network written out by hand: two features, one hidden layer."""
    rng = np.random.default_rng(0)
    weights = {"embedding": rng.normal(size=(5, 2)), "layers.0.weight": rng.normal(size=(4, 4)), "layers.0.bias": rng.normal(size=4),
               "layers.1.weight": rng.normal(size=(4, 1)), "layers.1.bias": rng.normal(size=1)}  # fmt: skip
    weights = {k: v.astype(np.float32) for k, v in weights.items()}
    found = NetworkOnClusters(OptimalQuantizer(4))._probabilities(weights, np.array([[0, 3], [1, 4]]))
    for p, rows in zip(found, ([0, 3], [1, 4]), strict=True):
        score = weights["embedding"][rows].ravel() @ weights["layers.0.weight"] + weights["layers.0.bias"]
        hidden = np.maximum(score, 0)
        z = hidden @ weights["layers.1.weight"] + weights["layers.1.bias"]
        assert p == pytest.approx(1 / (1 + np.exp(-z[0])), rel=1e-5)


@pytest.mark.slow
def test_network_learns(log):
    records, frame, y = log
    learner = NetworkOnClusters(OptimalQuantizer(60, min_count=10), trials=1, epochs=4, batch_size=64, random_state=1)
    assert better_than_base(learner.fit(records), frame, y) > 0.04
