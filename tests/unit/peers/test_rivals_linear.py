"""Rivals of the arena that fit a logistic regression: without noise their solution, and the noise that they promise."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from agglearn.encoding import FrameEncoder
from agglearn.encoding.frame import with_declared_domains
from agglearn.privacy import gaussian_epsilon, zcdp_budget
from arena import accounting, labels, linear
from arena.records import PrivateRecords

SIZES = {"a": 3, "b": 4}


def draw(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(size, size=n) for name, size in SIZES.items()})
    return frame, (rng.random(n) < expit(frame["a"] - 1.0 - 0.5 * (frame["b"] == 2))).astype(np.int8).to_numpy()


def observation(n: int = 4000, epsilon: float = 1.0) -> PrivateRecords:
    frame, y = draw(n)
    encoder = with_declared_domains(FrameEncoder.fit(frame, categorical=SIZES), SIZES)
    return PrivateRecords(encoder, frame, y, *draw(1000, 1), epsilon, 1e-6)


def design(observed: PrivateRecords) -> np.ndarray:
    """One column per value, and one of ones."""
    x = linear.one_hot(observed.encoder, observed.codes).toarray()
    return np.column_stack([x, np.ones(len(x))])


def statistics(observed: PrivateRecords, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Those of the records from one on, without noise."""
    codes, y = observed.codes[first:], observed.y[first:]
    return linear.noisy_statistics(observed.encoder, codes, y, 0.0, np.random.default_rng(0))


def logistic(observed: PrivateRecords, ridge: float) -> np.ndarray:
    x = design(observed)
    return LogisticRegression(C=1 / ridge, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, observed.y).coef_[0]


def test_objective_perturbation_without_noise_is_the_regression(monkeypatch):
    monkeypatch.setattr(linear, "perturbation", lambda *_: (3.0, 0.0))
    observed = observation()
    model = linear.ObjectivePerturbation(random_state=0).fit(observed)
    assert model.coef_ == pytest.approx(logistic(observed, 3.0), abs=1e-4)


@pytest.mark.parametrize(("share", "epsilon"), [(0.1, 1.0), (0.5, 0.3), (0.02, 3.0)])
def test_objective_perturbation_keeps_its_promise_in_one_dimension(share, epsilon):
    """The density of θ, exactly: that of b times its derivative. Neighbours differ in one record of norm R."""
    delta, radius = 1e-3, 1.5
    ridge, sigma = linear.perturbation(radius**2, share, epsilon, delta)
    theta = np.linspace(-40, 40, 400_001) / math.sqrt(ridge)

    def density(x, y):
        z = np.multiply.outer(theta, x)
        b = -((expit(z) - y) * x).sum(axis=1) - ridge * theta
        slope = (expit(z) * expit(-z) * x**2).sum(axis=1) + ridge
        return norm.pdf(b, scale=sigma) * slope

    some, labels_ = np.array([0.4, -1.0, 1.5]), np.array([1, 0, 0])
    for x, y in ((radius, 1), (-radius, 1), (radius, 0)):
        smaller, larger = density(some, labels_), density(np.append(some, x), np.append(labels_, y))
        for p, q in ((smaller, larger), (larger, smaller)):
            assert np.trapezoid(p, theta) == pytest.approx(1, abs=1e-3)
            spent = np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), theta)
            assert spent <= delta * 1.01


def test_statistics_without_noise_are_those_of_the_records():
    observed = observation()
    x, (gram, by_label) = design(observed), statistics(observed)
    assert gram == pytest.approx(x.T @ x)
    assert by_label == pytest.approx(x.T @ np.eye(2)[observed.y])


def test_one_record_is_in_one_cell_of_each_table_of_the_statistics():
    observed, feature = observation(50), np.repeat([0, 1], [3, 4])
    pairs, by_label = (
        all_ - others for all_, others in zip(statistics(observed), statistics(observed, 1), strict=True)
    )
    released = pairs[:-1, :-1][feature[:, None] < feature[None, :]], by_label[:-1]
    assert sum((np.abs(part) ** 2).sum() for part in released) == 3  # tables: the pair, and each feature with the label


def test_the_quadratic_approximation_is_near_the_loss():
    s = np.linspace(-4, 4, 201)
    b2 = linear.quadratic_coefficient(4.0)
    miss = -np.logaddexp(0, -s) - (s / 2 + b2 * s**2)
    assert np.ptp(miss) / 2 < 0.08
    other = [np.ptp(-np.logaddexp(0, -s) - (s / 2 + b * b2 * s**2)) for b in (0.8, 1.2)]
    assert np.ptp(miss) < min(other)


def test_statistics_with_little_noise_order_records_as_the_regression_does():
    observed = observation(4000, epsilon=1000.0)
    model = linear.SufficientStatistics(random_state=0).fit(observed)
    frame, _ = draw(500, 2)
    z = model.map_.matrix(frame) @ logistic(observed, 0.1)
    assert np.corrcoef(model.map_.matrix(frame) @ model.coef_, z)[0, 1] > 0.995


def test_gradients_without_noise_find_the_regression(monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setattr(linear, "sampled_gaussian_scale", lambda *_: 0.0)
    observed = observation(500)
    model = linear.NoisyGradient(rate=1.0, steps=2000, clip=1.0, step_size=1.0, random_state=0).fit(observed)
    frame, _ = draw(200, 2)
    z = model.map_.matrix(frame) @ logistic(observed, 1e-3)
    assert model.map_.matrix(frame) @ model.coef_ == pytest.approx(z, abs=0.02)


def test_a_record_moves_a_step_by_its_clip_at_most():
    jax = pytest.importorskip("jax")
    index, y, clip = np.array([[0, 3], [1, 3], [2, 3]], np.int32), np.array([1, 0, 1], np.float32), 0.3
    steps = [linear.descend(jax, index[:n], y[:n], 4, 1.0, 1, clip, float(n), 0.0, 0) for n in (3, 2)]
    assert np.linalg.norm(steps[0] - steps[1]) == pytest.approx(clip, rel=1e-5)  # its gradient has norm √2 / 2


def test_the_accountant_without_sampling_is_that_of_the_gaussian():
    for sigma in (0.7, 3.0, 20.0):
        exact = gaussian_epsilon(sigma, 1.0, 1e-6)
        assert exact <= accounting.sampled_gaussian_epsilon(1.0, sigma, 1, 1e-6) <= 1.25 * exact + 0.02


@pytest.mark.parametrize(("rate", "sigma", "steps"), [(0.01, 1.0, 1000), (0.1, 4.0, 200), (0.5, 30.0, 50)])
def test_the_accountant_is_that_of_a_known_library(rate, sigma, steps):
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), steps)
    known = rdp.RdpAccountant(orders=accounting.ORDERS).compose(event).get_epsilon(1e-6)
    assert accounting.sampled_gaussian_epsilon(rate, sigma, steps, 1e-6) == pytest.approx(known, rel=1e-6)


def test_sampling_and_a_scale_for_a_budget():
    sigma = accounting.sampled_gaussian_scale(0.1, 100, 1.0, 1e-6)
    assert 0.98 < accounting.sampled_gaussian_epsilon(0.1, sigma, 100, 1e-6) <= 1
    assert accounting.sampled_gaussian_epsilon(0.2, sigma, 100, 1e-6) > 1.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_a_concentrated_budget_is_between_the_known_bound_and_the_gaussian(epsilon):
    rho = accounting.concentrated_budget(epsilon, 1e-6)
    assert zcdp_budget(epsilon, 1e-6) < rho
    assert gaussian_epsilon(1 / math.sqrt(2 * rho), 1.0, 1e-6) < epsilon


def test_a_response_is_unbiased_and_its_chances_keep_to_epsilon():
    rng, epsilon = np.random.default_rng(0), 1.0
    values = {y: labels.respond(np.full(100_000, y), np.full(100_000, 0.5), epsilon, rng) for y in (0, 1)}
    assert [values[y].mean() for y in (0, 1)] == pytest.approx([0, 1], abs=0.02)
    chances = [(values[y] == values[1].max()).mean() for y in (0, 1)]
    assert chances[1] / chances[0] == pytest.approx(math.e, rel=0.03)


def test_a_sure_prior_takes_the_place_of_the_label():
    prior = np.array([0.9, 0.1])
    told = labels.respond(np.array([0, 1]), prior, 1.0, np.random.default_rng(0))  # 0.9 > e / (1 + e)
    assert told.tolist() == [1, 0]


def test_randomised_labels_teach_the_regression():
    observed = observation(4000, epsilon=8.0)
    model = labels.RandomisedResponse(stages=1, random_state=0).fit(observed)
    frame, _ = draw(500, 2)
    z = model.map_.matrix(frame) @ logistic(observed, 0.5)
    assert model.map_.matrix(frame) @ model.coef_ == pytest.approx(z, abs=0.2)
