"""Cells that a threshold hides: their posterior against enumeration, training against its exact fixed point."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, poisson

from agglearn.errors import DataError, NoiseIgnored
from agglearn.labelsums import AggregateSearch
from agglearn.maxent import (
    ExactMaxEntClassifier,
    ExactNoiseAwareMaxEntClassifier,
    MaxEntClassifier,
    NoiseAwareMaxEntClassifier,
)
from agglearn.maxent.noise_aware import hidden_mean
from agglearn.observations import ContingencyTables, fill_hidden, hide_cells
from agglearn.observations.tables import hidden_cells

RATES = np.array([1e-9, 0.3, 4.0, 9.0, 30.0, 200.0, 5000.0])


def truncated(rate: float, threshold: float) -> tuple[float, float]:
    """Mean of a Poisson number below a threshold, and variance / rate, from all its values."""
    k = np.arange(np.ceil(threshold))
    log_p = poisson.logpmf(k, rate)
    p = np.exp(log_p - log_p.max())
    mean = p @ k / p.sum()
    return mean, (p @ k**2 / p.sum() - mean**2) / rate


def posterior(threshold: float, variance: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    return hidden_mean(RATES, threshold, np.full(len(RATES), variance))


@pytest.mark.parametrize("threshold", [1, 2, 10, 9.5, 50, 100])
def test_means_of_hidden_counts_are_those_of_poisson_numbers_below_the_threshold(threshold):
    mean, slope = posterior(threshold)
    exact = np.transpose([truncated(rate, threshold) for rate in RATES])
    np.testing.assert_allclose(mean, exact[0], rtol=2e-3, atol=1e-8)
    np.testing.assert_allclose(slope, exact[1], atol=2e-3)


@pytest.mark.parametrize("sigma", [2.0, 17.0])
def test_with_noise_the_noisy_count_is_below_the_threshold(sigma):
    """Normal numbers N(rate, rate): the mean of the true one, where the noisy one is below 10."""
    mean, slope = posterior(10, sigma**2)
    assert ((slope >= 0) & (slope <= 1)).all()
    for rate, found in zip(RATES[2:6], mean[2:6], strict=True):
        x = np.linspace(-200, 400, 60_001)
        log_w = norm.logpdf(x, rate, np.sqrt(rate)) + norm.logcdf((10 - x) / sigma)
        w = np.exp(log_w - log_w.max())
        np.testing.assert_allclose(found, max(w @ x / w.sum(), 0), rtol=1e-3, atol=1e-3)


def sample(seed: int, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two features of skewed values that depend on each other and on the label."""
    rng = np.random.default_rng(seed)
    p = 0.75 ** np.arange(12)
    a = rng.choice(12, n, p=p / p.sum())
    b = np.where(rng.random(n) < 0.5, a, rng.choice(12, n, p=p / p.sum()))
    y = rng.random(n) < 1 / (1 + np.exp(1.2 - 1.8 * (a == b) + 0.15 * a))
    return pd.DataFrame({"a": a.astype(str), "b": b.astype(str)}), y.astype(int)


def tables(n: int = 4000, seed: int = 0) -> ContingencyTables:
    frame, y = sample(seed, n)
    return ContingencyTables.from_records(frame.assign(y=y), "y", categorical=["a", "b"])


def test_without_hidden_cells_it_is_the_exact_model():
    made = tables()
    exact, aware = ExactMaxEntClassifier().fit(made), ExactNoiseAwareMaxEntClassifier().fit(hide_cells(made, 1))
    frame, _ = sample(1, 200)
    np.testing.assert_allclose(aware.predict_proba(frame), exact.predict_proba(frame), atol=2e-3)


def test_the_fixed_point_follows_shown_counts_and_truncated_means():
    """2λμ = d* − d̂ with d* shown, or the truncated mean at d̂: no cell is fitted as zero or as half."""
    hidden = hide_cells(tables(), 20)
    model = ExactNoiseAwareMaxEntClassifier(l2_mu=1.0, l2_theta=8.0).fit(hidden)
    d = np.concatenate([hidden.dense(*k)[0].ravel() for k in hidden.tables])
    shown = d > 0
    np.testing.assert_allclose(model.counts_[0][shown], d[shown], rtol=1e-9)
    below = model.counts_[0][~shown]
    assert (below <= 19).all()
    assert below.std() > 1  # every hidden cell has a mean of its own


@pytest.mark.slow
def test_training_by_sampling_reaches_the_exact_fixed_point():
    hidden, (frame, _) = hide_cells(tables(), 80), sample(1, 1000)
    settings = {"l2_mu": 1.0, "l2_theta": 8.0, "random_state": 0}
    exact = ExactNoiseAwareMaxEntClassifier(**settings).fit(hidden).predict_proba(frame)[:, 1]
    found = NoiseAwareMaxEntClassifier(n_chains=8000, max_iter=400, **settings).fit(hidden).predict_proba(frame)[:, 1]
    assert np.abs(found - exact).mean() < 0.006
    for count in (0.0, 40.0):
        other = ExactMaxEntClassifier(**settings).fit(fill_hidden(hidden, count)).predict_proba(frame)[:, 1]
        assert np.abs(other - exact).mean() > 0.012  # the distance to another model is larger


def test_hidden_counts_of_a_table_are_inferred_from_its_margins():
    """Single features have all their cells. Posterior means are nearer to the true counts than 0, and than half."""
    full = tables()
    hidden = hide_cells(full, 60)
    hidden = replace(hidden, tables=hidden.tables | {k: full.tables[k] for k in ((0,), (1,))})
    model = ExactNoiseAwareMaxEntClassifier(l2_theta=8.0, max_iter=40).fit(hidden)
    cells = hidden_cells(hidden)
    true = np.concatenate([full.dense(*k)[0].ravel() for k in full.tables])[cells]
    error = [np.abs(guess - true).sum() for guess in (model.counts_[0][cells], 0.0, 30.0)]
    assert error[0] < 0.6 * min(error[1:])


def test_learners_that_take_hidden_cells_for_zeros_say_so():
    with pytest.warns(NoiseIgnored, match=r"takes noisy ContingencyTables \(a threshold of 20\)"):
        MaxEntClassifier(n_chains=50, max_iter=2).fit(hide_cells(tables(), 20))
    with pytest.raises(DataError, match="tables with a threshold have no halves"):
        AggregateSearch(NoiseAwareMaxEntClassifier(n_chains=50, max_iter=2), values=[8.0]).fit(hide_cells(tables(), 20))
