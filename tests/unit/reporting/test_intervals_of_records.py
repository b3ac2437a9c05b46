"""Intervals that cover the choice of the tested records, where all seeds test the same ones."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_reporting import rows

from agglearn.evaluation.metrics import nllh_of_parts, normalized_log_likelihood
from agglearn_workflow.claims import judging
from agglearn_workflow.claims.samples import Rows

BETTER = {
    "predicate": "greater",
    "value": {"measure": "nllh", "method": "ours"},
    "reference": {"measure": "nllh", "method": "base"},
}


def frame(parts: np.ndarray, seeds: np.ndarray, tested: str | None = "same") -> pd.DataFrame:
    """Rows of two methods that differ by `parts` (k,) on parts of the tested records and by `seeds` (n,) over seeds."""
    values = {"ours": 0.5 + parts + seeds[:, None], "base": np.full((len(seeds), len(parts)), 0.5)}
    means = rows({("a", m): [*v.mean(axis=1)] for m, v in values.items()})
    of_parts = [
        means.assign(
            value=[values[m][s, k] for m, s in zip(means["method"], means["seed"], strict=True)],
            measure="nllh_of_part",
            keys=f'{{"part": {k}}}',
        )
        for k in range(len(parts))
    ]
    table = pd.concat([means, *of_parts], ignore_index=True)
    return table.assign(tested=tested if tested else table["seed"].map("t{}".format))


def verdict(table: pd.DataFrame) -> dict:
    return judging.judge(BETTER, Rows(table))["cases"][0]


def test_the_interval_over_parts_counts_where_it_is_wider():
    parts, seeds = np.linspace(-0.05, 0.07, 16), np.array([-1e-4, 0, 1e-4, 0])
    case = verdict(frame(parts, seeds))
    low, high = stats.ttest_1samp(parts, 0).confidence_interval(0.95)
    assert [case["numbers"][k] for k in ("value", "low", "high")] == pytest.approx([0.01, low, high])
    assert case["verdict"] == "undecided"
    assert "±0.02 over 16 parts of the tested records, ±0.00013 over seeds" in case["detail"]
    assert "deciding" not in case  # more seeds test the same records


def test_the_interval_over_seeds_counts_where_it_is_wider():
    parts, seeds = np.linspace(0.0099, 0.0101, 16), np.array([-0.05, 0.0, 0.05, 0.0])
    case = verdict(frame(parts, seeds))
    low, high = stats.ttest_1samp(seeds + 0.01, 0).confidence_interval(0.95)
    assert [case["numbers"][k] for k in ("low", "high")] == pytest.approx([low, high])


def test_one_seed_has_no_interval_over_seeds():
    detail = verdict(frame(np.linspace(0.01, 0.02, 16), np.zeros(1)))["detail"]
    assert "over 16 parts of the tested records" in detail
    assert "nan" not in detail


def test_seeds_without_spread_leave_the_interval_over_parts():
    assert verdict(frame(np.linspace(0.01, 0.02, 16), np.zeros(4)))["verdict"] == "holds"


def test_parts_say_nothing_where_seeds_test_other_records():
    case = verdict(frame(np.linspace(-0.05, 0.07, 16), np.array([-1e-4, 0, 1e-4, 0]), tested=None))
    assert case["verdict"] == "holds"
    assert "parts" not in case["detail"]


def test_no_difference_is_decided_as_seldom_as_the_level_allows():
    """With the seeds' interval alone nearly every draw of test records is decided."""
    rng, n = np.random.default_rng(0), 80
    decided = {"parts": 0, "seeds": 0}
    for _ in range(n):
        table = frame(rng.normal(0, 0.01, 16), rng.normal(0, 1e-5, 4))
        decided["parts"] += verdict(table)["verdict"] != "undecided"
        decided["seeds"] += verdict(table[table["measure"] == "nllh"])["verdict"] != "undecided"
    assert decided["parts"] <= stats.binom.ppf(1 - 1e-6, n, 0.05)
    assert decided["seeds"] > 0.9 * n


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_estimates_of_parts_have_the_mean_and_the_spread_of_the_nllh(rate):
    """The standard error of parts is that over samples of records (the ratio's two moments vary together)."""
    rng, n, parts = np.random.default_rng(1), 3200, 32
    p = rng.beta(1, (1 - rate) / rate, size=(400, n)).clip(0.01, 0.99)
    y = rng.uniform(size=p.shape) < p
    values = np.array([normalized_log_likelihood(a, b) for a, b in zip(y, p, strict=True)])
    estimates = np.array([nllh_of_parts(a, b, parts) for a, b in zip(y, p, strict=True)])
    np.testing.assert_allclose(estimates.mean(axis=1), values, atol=1e-12)
    errors = np.sqrt(np.mean(estimates.var(axis=1, ddof=1) / parts))
    assert errors == pytest.approx(values.std(), rel=0.17)  # 400 samples: five standard errors


def test_a_part_with_one_label_has_an_estimate():
    estimates = nllh_of_parts(np.arange(40) < 2, np.full(40, 0.05), 20)
    assert np.isfinite(estimates).all()
    assert estimates.mean() == pytest.approx(0)
