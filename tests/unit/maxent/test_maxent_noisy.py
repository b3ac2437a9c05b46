"""Noise-aware maximum entropy: the E step against enumeration, training against its exact fixed point."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, poisson

from agglearn.evaluation import normalized_log_likelihood
from agglearn.maxent import (
    ExactMaxEntClassifier,
    ExactNoiseAwareMaxEntClassifier,
    MaxEntClassifier,
    NoiseAwareMaxEntClassifier,
)
from agglearn.maxent.exact import Enumeration
from agglearn.maxent.noise_aware import gains, poisson_mean, posterior_means, variances
from agglearn.observations import ContingencyTables
from agglearn.observations.release import release_tables
from agglearn.privacy import draw_seeded


def enumerated_gains(d_hat, c_hat, var_d, var_c) -> np.ndarray:
    """(2, 2) best linear weights of (d̃, c̃) for (d, c), from all pairs of Poisson numbers."""
    top = int(d_hat + 12 * np.sqrt(d_hat) + 15)
    a, b = np.meshgrid(np.arange(top), np.arange(top), indexing="ij")
    p = poisson.pmf(a, c_hat) * poisson.pmf(b, d_hat - c_hat)
    values = np.stack([a + b, a]).reshape(2, -1).astype(float)
    values -= (values * p.ravel()).sum(axis=1, keepdims=True)
    true = (values * p.ravel()) @ values.T
    return true @ np.linalg.inv(true + np.diag([var_d, var_c]))


CASES = [(5.0, 2.0, 3.0, 7.0), (0.5, 0.1, 4.0, 4.0), (20.0, 1.0, 0.0, 9.0), (8.0, 7.0, 100.0, 2.0)]


@pytest.mark.parametrize("case", CASES)
def test_gains_are_the_best_linear_weights(case):
    found = gains(*(np.array([v]) for v in case))
    np.testing.assert_allclose(np.ravel(found).reshape(2, 2), enumerated_gains(*case), atol=1e-6)


def test_posterior_means_are_near_the_exact_ones():
    d_hat, c_hat, sigma = 60.0, 20.0, 12.0
    a, b = np.meshgrid(np.arange(80.0), np.arange(130.0), indexing="ij")
    prior = poisson.pmf(a, c_hat) * poisson.pmf(b, d_hat - c_hat)
    one = lambda v: np.array([v])  # noqa: E731
    for seen_d, seen_c in itertools.product((35.0, 60.0, 90.0), (5.0, 20.0, 45.0)):
        w = prior * norm.pdf(seen_d, a + b, sigma) * norm.pdf(seen_c, a, sigma)
        exact = np.array([(w * (a + b)).sum(), (w * a).sum()]) / w.sum()
        gain = gains(one(d_hat), one(c_hat), one(sigma**2), one(sigma**2))
        found = np.ravel(posterior_means(one(seen_d), one(seen_c), one(d_hat), one(c_hat), gain))
        np.testing.assert_allclose(found, exact, atol=1.5)  # the means themselves range over 30 and 17 records


def test_without_noise_the_observed_counts_come_back():
    d, c, d_hat, c_hat = np.array([5.0, 0.0]), np.array([2.0, 0.0]), np.array([9.0, 1e-7]), np.array([1.0, 1e-8])
    zero = np.zeros(2)
    np.testing.assert_allclose(posterior_means(d, c, d_hat, c_hat, gains(d_hat, c_hat, zero, zero)), [d, c], atol=1e-6)


def errors_of_means(rule) -> np.ndarray:
    """Errors of a rule in standard deviations of the posterior, over expectations, noise and observed numbers."""
    errors, numbers = [], np.arange(3000.0)
    for expected, sigma, away in itertools.product((0.05, 0.5, 3.0, 20.0, 200.0), (1.0, 5.0, 20.0), (-2, 0, 2)):
        seen = expected + away * np.sqrt(expected + sigma**2)
        log_p = poisson.logpmf(numbers, expected) + norm.logpdf(seen, numbers, sigma)
        w = np.exp(log_p - log_p.max())
        w /= w.sum()
        mean = w @ numbers
        found = rule(*(np.array([v]) for v in (seen, expected, sigma**2)))[0]
        errors.append((found - mean) / np.sqrt(w @ (numbers - mean) ** 2))
    return np.abs(errors)


def test_mean_of_a_poisson_number_seen_with_noise():
    assert errors_of_means(poisson_mean).max() < 0.25
    seen = np.array([5.0, 0.0, -1.0])
    np.testing.assert_array_equal(poisson_mean(seen, np.ones(3), np.zeros(3)), seen)


def released(tables, **how):
    return release_tables(tables, 1.0, 1e-4, draw=draw_seeded(1), **how)


def test_variances_of_what_was_released(tables):
    assert variances(released(tables, adjacency="label"))[0].max() == 0
    assert variances(tables)[1].max() == 0


LONG = {"l2_theta": 4.0, "gradient": "exact", "tol": 0.0, "max_iter": 500, "random_state": 0}


@pytest.mark.parametrize("adjacency", ["record", "label"])
@pytest.mark.slow
def test_training_reaches_the_fixed_point(adjacency, small):
    noisy, frame = released(small, adjacency=adjacency, postprocessing="project"), every_state(small)
    exact = ExactNoiseAwareMaxEntClassifier(l2_theta=4.0, tol=0.5).fit(noisy).predict_proba(frame)
    trained, plain = (k(3000, **LONG).fit(noisy) for k in (NoiseAwareMaxEntClassifier, MaxEntClassifier))
    gap, other = (np.abs(model.predict_proba(frame) - exact).max() for model in (trained, plain))
    assert gap < 0.02
    assert gap < other / 2


@pytest.mark.slow
def test_training_with_means_apart_reaches_their_fixed_point(small):
    noisy, frame = released(small, postprocessing="project"), every_state(small)
    model, noise, weights = Enumeration.from_tables(noisy), variances(noisy), None
    d, c = model.d, model.c
    for _ in range(60):
        expected = model.compute_expectations(*(weights or np.zeros((2, len(d)))))
        model.d, model.c = map(poisson_mean, (d, c), expected, noise)
        weights = model.optimum(1.0, 4.0, weights)
    exact = model.label_probability(weights[1])
    apart, joint = (NoiseAwareMaxEntClassifier(3000, **LONG, posterior=rule).fit(noisy) for rule in ("apart", "joint"))
    gap, joint = (np.abs(model.predict_proba(frame)[:, 1] - exact).max() for model in (apart, joint))
    assert gap < 0.02
    assert joint > 1.5 * gap


def every_state(tables) -> pd.DataFrame:
    return pd.DataFrame(list(itertools.product(*(f.values for f in tables.encoder.features))), columns=tables.names)


def test_without_noise_nothing_changes(tables):
    plain = MaxEntClassifier(200, max_iter=20, random_state=3).fit(tables)
    aware = NoiseAwareMaxEntClassifier(200, max_iter=20, random_state=3).fit(tables)
    assert (plain.theta_ == aware.theta_).all()
    exact = ExactMaxEntClassifier().fit(tables)
    same = ExactNoiseAwareMaxEntClassifier().fit(tables)
    np.testing.assert_allclose(same.theta_, exact.theta_, atol=1e-3)


@pytest.mark.slow
def test_little_information_does_not_let_steps_grow(monkeypatch):
    """Counts that are known and label sums that are mostly noise: training stays near the base rate or above it."""
    rng = np.random.default_rng(0)
    hidden = rng.random((20_000, 1))
    codes = ((0.7 * hidden + 0.3 * rng.random((20_000, 14))) * 8).astype(int)
    y = (rng.random(20_000) < 0.1 + 0.2 * hidden[:, 0]).astype(int)
    frame = pd.DataFrame({f"f{i}": [f"v{c}" for c in codes[:, i]] for i in range(14)}).assign(label=y)
    tables = ContingencyTables.from_records(frame, "label")
    noisy = release_tables(tables, 0.05, 1e-5, adjacency="label", postprocessing="project", draw=draw_seeded(1))

    def trained():
        model = NoiseAwareMaxEntClassifier(1000, max_iter=600, l2_theta=32.0, random_state=4).fit(noisy)
        return normalized_log_likelihood(y, model.predict_proba(frame)[:, 1])

    assert trained() > -0.02
    monkeypatch.setattr("agglearn.maxent.noise_aware.SHARE", 0.0)
    assert trained() < -0.1


def test_a_fit_to_noisy_tables_forgets_the_last(tables):
    noisy = released(tables)
    model = NoiseAwareMaxEntClassifier(200, max_iter=5, random_state=3).fit(noisy)
    mu, theta = model.mu_.copy(), model.theta_.copy()
    model.fit(noisy)
    np.testing.assert_array_equal([model.mu_, model.theta_], [mu, theta])
