"""Held-out information of clusters: by hand, beside a regression on fresh records, for exact and for noisy counts."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import OneHotEncoder
from vocabulary_samples import features, tables_of_counts

from agglearn.cli import main
from agglearn.evaluation.information import predictive_information
from agglearn.observations import ContingencyTables, Table, with_gaussian_noise
from agglearn.observations.base import NoiseSpec
from agglearn.observations.consistency import clip_tables, thin_table
from agglearn.vocabulary import OptimalQuantizer, held_out_information
from agglearn.vocabulary.held_out import _budget, regress, sum_clusters
from agglearn.vocabulary.quantizer import estimate_counts
from agglearn.vocabulary.shrinkage import EMPIRICAL


def clicks(n: int, values: int, seed=0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two logs of a feature whose values have rates of their own; most values are rare."""
    rng = np.random.default_rng(seed)
    user = rng.choice(values, 2 * n, p=rng.dirichlet(np.full(values, 0.3)))
    click = (rng.random(2 * n) < rng.beta(1.2, 2.8, values)[user]).astype(int)
    frame = pd.DataFrame({"user": [f"u{k}" for k in user], "click": click})
    return frame[:n], frame[n:]


def tables_of(frame: pd.DataFrame) -> ContingencyTables:
    return ContingencyTables.from_records(frame, "click", pairs="none", categorical=["user"])


def gain(clusters: np.ndarray, y: np.ndarray, new: np.ndarray, new_y: np.ndarray) -> float:
    """Nats by which a logistic regression on clusters is better than the base rate on fresh records."""
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = LogisticRegression(max_iter=1000).fit(encoder.fit_transform(clusters), y)
    base = log_loss(new_y, np.full(len(new_y), y.mean()))
    return base - log_loss(new_y, model.predict_proba(encoder.transform(new))[:, 1])


@pytest.fixture(scope="module")
def log():
    return clicks(20_000, 12_000)


def aggregate(frame: pd.DataFrame, name: str) -> None:
    """Write records, and their tables into the folder t."""
    frame.to_csv(name, index=False)
    assert main(["aggregate", name, "--label", frame.columns[-1], "--pairs", "none", "--out", "t"]) == 0


def test_what_is_held_out_ranks_settings_as_fresh_records_do(log):
    old, new = log
    tables, held_out, fresh, training = tables_of(old), [], [], []
    for min_count, shrinkage, budget in itertools.product((0, 3, 10), (None, EMPIRICAL), (5, 20, 100)):
        quantizer = OptimalQuantizer(budget, min_count=min_count, shrinkage=shrinkage).fit(tables)
        held_out.append(held_out_information(quantizer, tables, 0))
        before, after = (quantizer.transform(f[["user"]]) for f in log)
        fresh.append(gain(before, old["click"], after, new["click"]))
        training.append(quantizer.information_)
    assert spearmanr(held_out, fresh).statistic > 0.9
    assert spearmanr(training, fresh).statistic < -0.5  # what was printed before
    good = np.array(fresh) > -0.02
    np.testing.assert_allclose(np.array(held_out)[good], np.array(fresh)[good], atol=0.025)
    assert min(fresh) < -0.2  # clusters that lose nothing are far worse than the base rate
    assert max(np.array(held_out)[np.array(fresh) < -0.2]) < -0.2


def test_clusters_that_predict_worse_than_the_base_rate_are_told(log, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    aggregate(log[0], "old.csv")
    for options, worse in (([], False), (["--min-count", "0", "--no-shrink"], True)):
        assert main(["compress", "t", "--budget", "20", *options, "--out", "z.csv", "--force"]) == 0
        assert ("worse than the base rate" in capsys.readouterr().out) == worse


def test_a_curve_has_what_each_budget_has_alone(log, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    aggregate(log[0], "old.csv")
    options = ["--seed", "3", "--min-count", "5"]
    assert main(["compress", "t", "--budgets", "3,20, 0.1", *options, "--out", "curve.csv"]) == 0
    curve, lines = pd.read_csv("curve.csv"), capsys.readouterr().out.splitlines()[-4:]
    assert curve["budget"].tolist() == [3, 20, 0.1]
    for row, line in zip(curve.itertuples(), lines, strict=False):
        assert main(["compress", "t", "--budget", f"{row.budget:g}", *options, "--out", "c.csv", "--force"]) == 0
        alone = capsys.readouterr().out
        assert f"in {row.clusters:,} clusters" in alone
        assert line.split(": ", 1)[1] in alone
        assert f"held-out information: {row.held_out_information:.4g} nats" in line
        assert line.endswith(f"that made the clusters: {row.training_information:.4g}")
        assert line.startswith(f"{row.clusters:,} clusters: ")
    assert curve["training_information"].is_monotonic_increasing
    assert main(["compress", "t", "--budgets", "3,20", "--apply", "old.csv", "--out", "d.csv"]) == 2
    assert "--apply: needs the clusters of one --budget" in capsys.readouterr().err


def test_of_few_records_nothing_is_known(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    aggregate(pd.DataFrame({"page": list("ab") * 20, "y": [1] * 9 + [0] * 31}), "few.csv")
    assert main(["compress", "t", "--budget", "2", "--out", "c.csv"]) == 0
    assert "held-out information: unknown, a label has fewer than ten records" in capsys.readouterr().out


@pytest.mark.parametrize(("values", "sigma"), [(400, 3.0), (400, 20.0), (12_000, 1.0)])
def test_of_noisy_counts_it_is_an_estimate(values, sigma):
    old, new = clicks(40_000, values)
    noisy = with_gaussian_noise(tables_of(old), sigma, 0)
    quantizer = OptimalQuantizer(20, min_count=10, shrinkage=EMPIRICAL).fit(noisy)
    before, after = (quantizer.transform(f[["user"]]) for f in (old, new))
    fresh = gain(before, old["click"], after, new["click"])  # clusters of noisy counts, on exact records
    estimates = [held_out_information(quantizer, noisy, seed) for seed in range(4)]
    assert np.mean(estimates) == pytest.approx(fresh, abs=0.012)


def test_clusters_are_added_up_and_the_remainder_is_unseen():
    labels, counts = np.array([1, 0, 1, 2]), (np.array([5.0, 4, 3, 2]), np.array([1.0, 2, 0, 2]))
    n, c = sum_clusters(labels, 2, counts)
    assert (n.tolist(), c.tolist()) == ([4, 8, 2], [2, 1, 2])
    n, c = sum_clusters(labels, 2, counts, (17.0, 6.0))
    assert (n.tolist(), c.tolist()) == ([4, 8, 5], [2, 1, 3])


def test_rates_are_those_of_a_penalised_regression():
    """At the minimum the residual of each cluster is its weight, and residuals add up to 0 (no penalty on the intercept)."""
    n, c = np.array([40.0, 7, 0, 300]), np.array([10.0, 7, 0, 30])
    p = regress(n, c)
    logit, residual = np.log(p / (1 - p)), c - n * p
    intercept = logit[2]  # of the cluster without records, which has no weight
    np.testing.assert_allclose(residual, logit - intercept, atol=0.02)
    assert residual.sum() == pytest.approx(0, abs=0.02)
    assert 0.5 < p[1] < 0.95  # seven of seven


def test_budgets_fit_the_values_of_a_part():
    counts = [(np.array([9.0, 3, 1, 0]), np.array([1.0, 1, 1, 0])), (np.array([6.0, 7]), np.array([2.0, 3]))]
    assert _budget(OptimalQuantizer(4), counts) == 4
    assert _budget(OptimalQuantizer(40), counts) == 5  # without the value that has no records
    assert _budget(OptimalQuantizer(40, min_count=5), counts) == 4  # two rare values are one
    assert _budget(OptimalQuantizer(0.6), counts) == 3
    assert _budget(OptimalQuantizer(0.01), counts) == 2  # a cluster for each feature


@pytest.mark.parametrize("fraction", [0.5, 0.8])
@pytest.mark.parametrize("noise", [None, NoiseSpec("gaussian", 30.0, 1.0)], ids=["exact", "noisy"])
def test_parts_of_a_table_are_independent(fraction, noise):
    """Records are Poisson, noise is normal. Means and variances go by the fraction, and parts are uncorrelated.

    With 200,000 cells each standard error is below .3 % of the variance. A fraction that is off by .02 fails.
    """
    rng, cells = np.random.default_rng(1), 200_000
    counts, sums = rng.poisson(400, cells), rng.poisson(100, cells)
    counts, variance = counts + sums, 0.0 if noise is None else noise.scale**2
    noisy = [v if noise is None else v + rng.normal(0, noise.scale, cells) for v in (counts, sums)]
    first, second = thin_table(Table((cells,), np.arange(cells), *noisy), variance, noise, rng, fraction)
    for name, mean in (("counts", 500), ("label_sums", 100)):
        a, b = getattr(first, name), getattr(second, name)
        np.testing.assert_allclose(a + b, noisy[name == "label_sums"], atol=1e-9)
        assert a.mean() == pytest.approx(fraction * mean, rel=0.003)
        assert a.var() == pytest.approx(fraction * (mean + variance), rel=0.02)
        assert b.var() == pytest.approx((1 - fraction) * (mean + variance), rel=0.02)
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.012


def test_features_add_up():
    """Two features with the same counts have twice the information of one, up to the splits."""
    rng = np.random.default_rng(0)
    n = rng.integers(30, 90, 40)
    table = n, rng.binomial(n, rng.beta(1, 3, 40))
    both, one = tables_of_counts(*features(table, table)), tables_of_counts(*features(table))
    double = np.mean([held_out_information(OptimalQuantizer(16), both, s) for s in range(5)])
    single = np.mean([held_out_information(OptimalQuantizer(8), one, s) for s in range(5)])
    assert double == pytest.approx(2 * single, rel=0.1)
    assert single > 0.03


def test_of_sparse_noisy_counts_it_errs_downwards_and_of_clipped_ones_more():
    """As the docs state. The population is known, so that nothing but the learning counts varies."""
    values, n, sigma = 5000, 20_000, 3.0
    rng = np.random.default_rng(7)
    p, q = rng.dirichlet(np.full(values, 0.3)), rng.beta(1.2, 2.8, values)

    def draw(size: int) -> ContingencyTables:
        counts = rng.multinomial(size, p)
        return tables_of_counts({"a": counts}, {"a": rng.binomial(counts, q)})

    quantizer = OptimalQuantizer(20, min_count=10, shrinkage=EMPIRICAL)
    plain, clipped, truth = [], [], []
    for seed in range(6):
        noisy = with_gaussian_noise(draw(n), sigma, seed)
        plain.append(held_out_information(quantizer, noisy, seed))
        clipped.append(held_out_information(quantizer, clip_tables(noisy), seed))
        part = with_gaussian_noise(draw(round(0.8 * n)), sigma * np.sqrt(0.8), 100 + seed)
        quantizer.fit(part)
        learned = estimate_counts(part, part.tables[0,], 0.8 * sigma**2)
        labels, unseen = quantizer.labels_["a"], quantizer.unseen_["a"]
        counts, sums = sum_clusters(labels, unseen, learned)
        tested = sum_clusters(labels, unseen, (p, p * q))
        truth.append(predictive_information(*tested, regress(counts, sums), float(sums.sum() / counts.sum())))
    assert 0.004 < np.mean(truth) - np.mean(clipped) < 0.014
    assert np.mean(clipped) < np.mean(plain)
    assert np.mean(plain) == pytest.approx(np.mean(truth), abs=0.01)
