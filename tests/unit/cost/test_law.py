"""The law of the cost: its closed forms, its fit, and the runs of the archive that it was not fitted to."""

import importlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from samples import ROOT
from sklearn.metrics import roc_auc_score

from agglearn.cost import law
from agglearn.cost.law import auc_of_nllh, nllh_of_auc, noise_ratio, predict_cost
from agglearn.errors import ConfigError
from agglearn.evaluation import normalized_log_likelihood
from agglearn.privacy import analytic_gaussian_scale

SHAPE = {"rows": 50_000, "features": 10, "values": 12, "base_rate": 0.1}


@pytest.mark.parametrize(("rate", "d"), [(0.5, 1.0), (0.1, 2.0), (0.02, 0.5)])
def test_nllh_of_an_auc_is_that_of_drawn_log_odds(rate, d):
    rng = np.random.default_rng(0)
    y = rng.random(1_000_000) < rate
    evidence = rng.normal(np.where(y, 1, -1) * d**2 / 2, d)  # the log of the ratio of both likelihoods: calibrated
    p = 1 / (1 + np.exp(-evidence) * (1 - rate) / rate)
    nllh = nllh_of_auc(roc_auc_score(y, evidence), rate)
    assert nllh == pytest.approx(normalized_log_likelihood(y, p), abs=0.003)
    assert nllh_of_auc(auc_of_nllh(nllh, rate), rate) == pytest.approx(nllh)
    assert auc_of_nllh(-0.1, rate) == 0.5


def test_noise_over_signal_by_hand():
    """Three features of four values: label sums share with the totals 4 parts, tables of pairs 7, two numbers of a record each."""
    sigma = analytic_gaussian_scale(1, 0.5, 1e-5)
    signal = 1000**2 / 4 * 0.3 * np.log(2)
    arguments = 1000, 3, 4, 0.5, 0.3, 0.5, 1e-5
    assert noise_ratio("label sums, label protected", *arguments) == pytest.approx(4 * sigma**2 / signal)
    # one table shows a label sum itself, two show it as a sum of 4 cells
    pairs = 2 * 7 * sigma**2 / (1 + 2 / 4) / signal
    assert noise_ratio("tables of pairs, record protected", *arguments) == pytest.approx(pairs)
    assert noise_ratio("tables of pairs, record protected", *arguments[:-2], np.inf, 1e-5) == 0


def test_more_budget_more_records_and_less_protection_are_worth_more():
    index = ["release", "epsilon"]
    known, fewer, unknown, usual = (
        predict_cost(**SHAPE | {"epsilons": [0.1, 1.0]} | more).set_index(index)
        for more in ({"auc": 0.8}, {"auc": 0.8, "rows": 5000}, {}, {"auc": law.LAW["auc"]})
    )
    for _, part in known.groupby("release", sort=False):
        assert part.nllh.is_monotonic_increasing
        assert part.auc.is_monotonic_increasing
    assert known.nllh["tables of pairs, record protected", 0.1] < known.nllh["label sums, label protected", 0.1]
    assert (fewer.nllh <= known.nllh).all()
    assert (unknown.nllh_error > known.nllh_error).all()
    assert unknown.nllh.equals(usual.nllh)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": 5}, "rows: must be above 9"), ({"features": 0}, "features: must be above 0"),
        ({"values": 1}, "values: must be above 1"), ({"base_rate": 0.0}, "base_rate: must be above 0 and below 1, got 0"),
        ({"auc": 1.0}, "auc: must be above 0.5 and below 0.999, got 1"), ({"epsilons": [0.0]}, "epsilon: must be a number"),
        ({"delta": 0.1}, "delta: 0.1 is not below one over the number of records"),
    ],
)  # fmt: skip
def test_numbers_that_describe_no_records_are_refused(change, said):
    with pytest.raises(ConfigError, match=said):
        predict_cost(**SHAPE | {"epsilons": [1.0]} | change)


@pytest.mark.slow
def test_the_law_is_what_its_runs_give(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("cost_law")
    derived, errors = benchmark.fit()
    file = Path(law.__file__).with_name("law.json")
    assert file.stat().st_size <= 10_000
    stated = json.loads(file.read_text())
    assert stated["auc"] == derived["auc"]
    assert errors["source"].nunique() >= 8
    for release, coefficients in derived["releases"].items():
        assert stated["releases"][release]["coefficients"] == pytest.approx(coefficients["coefficients"], rel=0.01)
        for size, known in coefficients["errors"].items():
            for name, error in known.items():
                assert stated["releases"][release]["errors"][size][name] == pytest.approx(error, abs=0.002)


FEATURES = {"acs_disability": (14, 11.0, 0.147), "adult": (14, 10.0, 0.239), "bank": (20, 6.0, 0.113)}


def test_label_sums_of_the_archive():
    """The ladder at scale paper, half of the runs within .02 where the AUC of all records is known."""
    archived = pd.read_parquet(ROOT / "archive/labelsums_ladder")
    archived["epsilon"] = [json.loads(text).get("epsilon") for text in archived["observation_params"]]
    value = archived.groupby(["dataset", "method", "measure", "epsilon"], dropna=False)["value"].mean()
    errors = []
    for name, (features, values, rate) in FEATURES.items():
        rows = json.loads(archived[archived["dataset"] == name]["data"].iloc[0])["sizes"]["rows"] * 0.8
        auc = value[name, "logistic", "auc"].item()
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            costs = predict_cost(round(rows), features, values, rate, [epsilon], auc=auc).set_index(
                ["release", "epsilon"]
            )
            errors.append(costs.nllh["label sums, label protected", epsilon] - value[name, "walr", "nllh", epsilon])
    assert np.median(np.abs(errors)) < 0.02
