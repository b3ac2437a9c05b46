"""Verdicts over several cases, what reports say of a fit, and Gibbs sampling beside MAP, against a few lines of arithmetic."""

import math

import numpy as np
import pytest

from agglearn import evaluation
from agglearn.collective import GibbsVersusMAP, reconstruction
from agglearn.collective.results import Inference
from agglearn.errors import ConfigError
from agglearn.observations import FlowCounts
from agglearn.tasks import Classification


def test_every_metric_of_the_package_is_a_measure():
    parts = {"entropy", "log_likelihood", "normalized_log_likelihood"}
    assert set(evaluation.__all__) - parts <= set(Classification.MEASURES)


# -- sampling beside the approximate MAP ------------------------------------------------------------------------------

COUNTS = FlowCounts(
    node_counts=np.ones((2, 2)) * 5, population_size=10, context={"log_potentials": np.zeros((1, 2, 2))}
)


def fitted(monkeypatch, best, runs: dict[int, list], references: dict | None = None, **settings):
    """(model, what it asked for) from flows in four cells: the `best`, and the means of the stages of each run."""
    asked = []

    def table(cells) -> np.ndarray:
        return np.reshape(cells, (1, 2, 2)).astype(float)

    def infer(model, counts, m, method, trace=False, random_state=None, **options):
        asked.append((method, options))
        if method != "gibbs":
            return Inference(list(table(best)), [], 0.0)
        if len(random_state) == 3:
            return Inference(list(table(references[random_state[2]])), [], 0.0)
        run, step = runs[random_state[1]], 400 // settings["stages"]
        made = [(0.5 * k + random_state[1], step * k, list(table(t))) for k, t in enumerate(run, 1)]
        return Inference(list(table(run[-1])), [], 0.0, details={"means": made})

    monkeypatch.setattr(reconstruction, "infer", infer)
    return GibbsVersusMAP(method="dual-newton", n_moves=400, random_state=1, **settings).fit(COUNTS), asked


def test_gibbs_beside_map_by_hand(monkeypatch):
    """Two references that differ, two runs of four stages: which stage is as near to the reference as the MAP."""
    settings = {
        "best": [5, 2, 2, 1], "references": {0: [4, 2, 2, 2], 1: [2, 2, 2, 4]},  # their mean is 3, 2, 2, 3
        "n_runs": 2, "stages": 4, "reference": "runs", "n_references": 2, "reference_moves": 800,
    }  # fmt: skip
    stages = {0: [[9, 1, 0, 0], [6, 2, 2, 0], [4, 2, 2, 2], [3, 2, 2, 3]],
              1: [[0, 1, 0, 9], [3, 2, 2, 3], [3, 3, 2, 2], [3, 2, 3, 2]]}  # fmt: skip
    model, asked = fitted(monkeypatch, runs=stages, **settings)
    assert model.map_error_ == pytest.approx((2 + 2) / 10)
    # errors of the first run are 12, 6, 2, 0 tenths and of the second 12, 0, 2, 2: the second stage is as near as MAP
    assert model.gibbs_error_ == pytest.approx((0 + 2) / 20)
    assert (model.reached_, model.gibbs_moves_) == (True, 200)
    assert model.gibbs_seconds_ == pytest.approx((1.0 + 2.0) / 2)
    # each reference is 4/10 from the other: of the mean of two, √(1/4) of that
    assert model.reference_error_ == pytest.approx(0.4 * math.sqrt(1 / 4))
    assert [o.get("tol") for m, o in asked if m == "dual-newton"] == [1e-6] * 2
    assert [o["n_moves"] for m, o in asked if m == "gibbs"] == [400, 400, 800, 800]
    model, _ = fitted(monkeypatch, runs=dict.fromkeys(range(2), [[9, 1, 0, 0]] * 4), **settings)  # never as near
    assert (model.reached_, model.gibbs_moves_) == (False, 400)
    assert model.gibbs_seconds_ == pytest.approx((2.0 + 3.0) / 2)


def test_each_gibbs_run_and_the_map_are_compared_with_the_mean_of_the_other_runs(monkeypatch):
    best, means = np.array([6, 2, 1, 1]), np.array([[5, 2, 2, 1], [5, 2, 1, 2], [3, 4, 2, 1]])
    stages = {run: [[9, 1, 0, 0], mean] for run, mean in enumerate(means)}
    model, _ = fitted(monkeypatch, best, stages, n_runs=3, stages=2, reference="others")
    others = (means.sum(axis=0) - means) / 2
    error = np.abs(means - others).sum(axis=1).mean() / 10
    assert model.gibbs_error_ == pytest.approx(error)
    assert model.map_error_ == pytest.approx(np.abs(best - others).sum(axis=1).mean() / 10)
    assert model.reference_error_ == pytest.approx(error * math.sqrt(1 / 3))
    assert (model.reached_, model.gibbs_moves_) == (error <= model.map_error_, 400)
    with pytest.raises(ConfigError, match=r"n_runs: .* two runs or more"):
        GibbsVersusMAP(n_runs=1, reference="others").fit(COUNTS)
