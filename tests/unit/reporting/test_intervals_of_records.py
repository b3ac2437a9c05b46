"""Intervals that cover the choice of the tested records, where all seeds test the same ones."""

import json

import numpy as np
import pandas as pd
import pytest
from reported_trial import rows
from scipy import stats

from agglearn.evaluation.metrics import nllh_of_parts, normalized_log_likelihood
from agglearn_workflow.claims import judging
from agglearn_workflow.claims.samples import Rows

SIDES = {side: {"measure": "nllh", "method": m} for side, m in (("value", "ours"), ("reference", "base"))}
WIDE, NARROW, ABOVE = np.linspace(-0.05, 0.07, 16), np.linspace(0.0099, 0.0101, 16), np.linspace(0.01, 0.02, 16)


def frame(parts: np.ndarray, seeds) -> pd.DataFrame:
    """Rows of two methods that differ by `parts` (k,) on parts of the tested records and by `seeds` (n,) over seeds."""
    ours = 0.5 + parts + np.array(seeds)[:, None]
    tables = [rows({("a", "ours"): [*ours.mean(axis=1)], ("a", "base"): [0.5] * len(ours)})]
    for k, values in enumerate(ours.T):
        part = rows({("a", "ours"): [*values], ("a", "base"): [0.5] * len(ours)}, "nllh_of_part")
        tables.append(part.assign(keys=json.dumps({"part": k})))
    return pd.concat(tables, ignore_index=True)


def verdict(table: pd.DataFrame) -> dict:
    return judging.judge({"predicate": "greater", **SIDES}, Rows(table))["cases"][0]


@pytest.mark.parametrize(("parts", "seeds", "of", "stated"), [
    (WIDE, [-1e-4, 0, 1e-4, 0], WIDE, "undecided"),
    (NARROW, [-0.05, 0.0, 0.05, 0.0], [-0.04, 0.01, 0.06, 0.01], "undecided"),
    (ABOVE, [0.0] * 4, ABOVE, "holds"),  # seeds without spread leave the interval over parts
])  # fmt: skip
def test_the_wider_of_the_intervals_over_parts_and_over_seeds_counts(parts, seeds, of, stated):
    case = verdict(frame(parts, seeds))
    low, high = stats.ttest_1samp(of, 0).confidence_interval(0.95)
    assert [case["numbers"][k] for k in ("value", "low", "high")] == pytest.approx([np.mean(parts), low, high])
    assert case["verdict"] == stated
    assert "deciding" not in case  # more seeds test the same records


def test_both_intervals_are_said():
    detail = verdict(frame(WIDE, [-1e-4, 0, 1e-4, 0]))["detail"]
    assert "±0.02 over 16 parts of the tested records, ±0.00013 over seeds" in detail
    alone = verdict(frame(ABOVE, [0.0]))["detail"]  # one seed has no interval
    assert "over 16 parts of the tested records" in alone
    assert "nan" not in alone


def test_parts_say_nothing_where_seeds_test_other_records():
    table = frame(WIDE, [-1e-4, 0, 1e-4, 0])
    case = verdict(table.assign(tested=table["seed"].map("t{}".format)))
    assert case["verdict"] == "holds"
    assert "parts" not in case["detail"]


def test_no_difference_is_decided_as_seldom_as_the_level_allows():
    """With the seeds' interval alone nearly every draw of test records is decided."""
    rng, n = np.random.default_rng(0), 80
    tables = [frame(rng.normal(0, 0.01, 16), rng.normal(0, 1e-5, 4)) for _ in range(n)]
    by_parts = sum(verdict(table)["verdict"] != "undecided" for table in tables)
    by_seeds = sum(verdict(table[table["measure"] == "nllh"])["verdict"] != "undecided" for table in tables)
    assert by_parts <= stats.binom.ppf(1 - 1e-6, n, 0.05)
    assert by_seeds > 0.9 * n


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
