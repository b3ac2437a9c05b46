"""Posteriors of labels given a noisy count: against all labellings, against an extended-precision convolution, and without noise."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

from agglearn.errors import DataError
from agglearn.linear.softmax import LogisticProblem
from agglearn.observations import Bags, NoiseSpec
from agglearn.observations.release import release_bag_counts
from agglearn.privacy import draw_seeded
from agglearn.privacy.mechanisms import MECHANISMS, Mechanism, discrete_gaussian
from agglearn.proportions import CardinalityClassifier, NormalApproximationClassifier
from agglearn.proportions.count_likelihood import CountLikelihood, posteriors_of
from agglearn.proportions.posterior import binary_posteriors, noisy_posteriors

NOISES = [("discrete_laplace", 10.0), ("discrete_laplace", 0.01), ("laplace", 0.7), ("gaussian", 3.0), ("gaussian", 0.05),
          ("discrete_gaussian", 1.0)]  # fmt: skip
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2)).astype(np.float32)
LABELS = RNG.random(400) < 1 / (1 + np.exp(1 - X @ [1.5, -1.0]))
BAGS = Bags(X, np.arange(0, 401, 5), LABELS.reshape(-1, 5).sum(axis=1))


def law_of(kind: str, scale: float, released: float, n: int) -> np.ndarray:
    return Mechanism(kind, scale).log_density(released - np.arange(n + 1))


@pytest.mark.parametrize("kind", MECHANISMS)
def test_densities_of_noise_by_their_definitions(kind):
    scale, z = 1.7, np.array([-6.0, -1.0, 0.0, 2.0, 11.0])
    support, p = discrete_gaussian(scale)
    expected = {
        "gaussian": stats.norm(0, scale).logpdf(z),
        "laplace": stats.laplace(0, scale).logpdf(z),
        "discrete_laplace": stats.dlaplace(1 / scale).logpmf(z),
        "discrete_gaussian": np.log(p[np.searchsorted(support, z)]),
    }
    np.testing.assert_allclose(Mechanism(kind, scale).log_density(z), expected[kind], atol=1e-12)


@pytest.mark.parametrize(("kind", "scale"), NOISES)
@pytest.mark.parametrize("n", [1, 4, 9])
@pytest.mark.parametrize("released", [-20, 0, 2, 9, 40])
def test_posteriors_by_all_labellings(kind, scale, n, released):
    score, law = np.random.default_rng(n).normal(size=n) * 3, law_of(kind, scale, released, n)
    q, log_p = noisy_posteriors(score, [0, n], law)
    labellings = np.array(list(itertools.product([0, 1], repeat=n)))
    joint = labellings @ score - np.logaddexp(0, score).sum() + law[labellings.sum(axis=1)]
    weights = np.exp(joint - joint.max())
    assert log_p[0] == pytest.approx(joint.max() + np.log(weights.sum()), rel=1e-9)
    np.testing.assert_allclose(q, weights @ labellings / weights.sum(), atol=1e-9)


@pytest.mark.parametrize("n", [130, 400])
@pytest.mark.parametrize(("kind", "scale"), [("discrete_laplace", 10.0), ("discrete_laplace", 0.5), ("gaussian", 3.0)])
@pytest.mark.parametrize("released", [-20, 0, 30, 130, 430])
def test_posteriors_of_large_bags_in_extended_precision(n, kind, scale, released):
    score, law = np.random.default_rng(n).normal(size=n) * 2 - 1, law_of(kind, scale, released, n)
    q, log_p = noisy_posteriors(score, [0, n], law)
    p = 1 / (1 + np.exp(-score.astype(np.longdouble)))

    def sums(p: np.ndarray) -> np.ndarray:
        law_of_sum = np.ones(1, np.longdouble)
        for x in p:
            law_of_sum = np.append(law_of_sum * (1 - x), 0) + np.append(0, law_of_sum * x)
        return law_of_sum

    w = np.exp(law.astype(np.longdouble) - law.max())
    total = (sums(p) * w).sum()
    assert log_p[0] == pytest.approx(float(np.log(total)) + law.max(), rel=1e-9, abs=1e-9)
    some = np.arange(0, n, 40)
    by_convolution = [float(p[i] * (sums(np.delete(p, i)) * w[1:]).sum() / total) for i in some]
    np.testing.assert_allclose(q[some], by_convolution, atol=1e-9)


def test_noise_that_vanishes_gives_the_posteriors_of_exact_counts():
    sizes = np.array([3, 30, 200])
    offsets, totals = np.append(0, np.cumsum(sizes)), np.array([0, 11, 90])
    score = np.random.default_rng(1).normal(size=offsets[-1])
    law = np.concatenate([law_of("discrete_laplace", 0.01, z, n) for z, n in zip(totals, sizes, strict=True)])
    both = noisy_posteriors(score, offsets, law), binary_posteriors(score, offsets, totals)
    for found, expected in zip(*both, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("bags", [BAGS, release_bag_counts(BAGS, 0.5, draw=draw_seeded(0))], ids=["exact", "noisy"])
def test_scores_are_the_gradient_of_the_likelihood(bags):
    climb = CountLikelihood(LogisticProblem(X, bags.offsets), bags.counts, posteriors_of(bags))
    theta, step = np.array([[0.4, -0.3, 0.2]]), 1e-4
    value = lambda e: climb.e_step(theta + step * e)[2]  # noqa: E731
    numeric = [(value(e) - value(-e)) / (2 * step) for e in np.eye(3)[:, None]]
    p, q, _ = climb.e_step(theta)
    for gradient in (climb.scores_of_bags(theta).sum(axis=0), climb.problem.moments(q - p)[0]):
        np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mechanism", ["discrete_laplace", "gaussian"])
@pytest.mark.parametrize("solver", ["scoring", "em"])
def test_the_fit_is_the_optimum_by_another_solver(solver, mechanism):
    delta = 1e-5 if mechanism == "gaussian" else None
    noisy = release_bag_counts(BAGS, 1.0, delta, mechanism=mechanism, draw=draw_seeded(0))
    laws = np.array([law_of(mechanism, noisy.noise.scale, z, 5) for z in noisy.released])

    def loss(theta: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-(X @ theta[:2] + theta[2]).reshape(-1, 5)))
        sums = np.zeros((len(p), 6))
        sums[:, 0] = 1
        for column in p.T[:, :, None]:
            sums = sums * (1 - column) + np.roll(sums, 1, axis=1) * column
        return 0.1 * theta[:2] @ theta[:2] + 5e-7 * theta[2] ** 2 - np.log((sums * np.exp(laws)).sum(axis=1)).sum()

    best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 5000}).x
    found = CardinalityClassifier(l2=0.1, tol=1e-9, max_iter=2000, solver=solver).fit(noisy)
    np.testing.assert_allclose(np.append(found.coef_, found.intercept_), best, atol=2e-2)
    cut = CardinalityClassifier(l2=0.1, tol=1e-9, max_iter=2000, solver=solver).fit(replace(noisy, released=None))
    same = np.allclose(found.coef_, cut.coef_, atol=2e-2)
    assert same == (mechanism == "discrete_laplace")  # beyond 0 and the size its law has the same ratios as there


def test_a_release_keeps_its_numbers_and_cuts_the_counts():
    noisy = release_bag_counts(BAGS, 0.3, mechanism="laplace", draw=draw_seeded(0))
    assert (noisy.released % 1 != 0).any()
    assert noisy.released.min() < 0
    assert noisy.released.max() > 5
    np.testing.assert_array_equal(noisy.counts[:, 1], np.clip(np.round(noisy.released), 0, 5))
    np.testing.assert_array_equal(noisy.take([3, 1]).released, noisy.released[[3, 1]])
    renamed = replace(noisy, class_names=("yes", "no"))  # columns, and with them the positives, change places
    np.testing.assert_allclose(renamed.uncut_counts, noisy.uncut_counts[:, ::-1])


@pytest.mark.parametrize(
    "change", [{"noise": None}, {"released": np.zeros(3)}, {"released": np.full(80, np.nan)}, {"counts": None}], ids=str
)
def test_released_numbers_that_fit_nothing_are_refused(change):
    noisy = release_bag_counts(BAGS, 0.3, draw=draw_seeded(0))
    with pytest.raises(DataError, match="released: must be a finite number for each bag"):
        replace(noisy, **change)


def test_noise_on_more_than_two_classes_needs_one_against_the_rest():
    noise = NoiseSpec("discrete_laplace", 1.0, 1.0, 0.0, "label")
    three = Bags(X, BAGS.offsets, np.tile([2, 2, 1], (80, 1)), noise=noise)
    assert len(CardinalityClassifier(l2=1.0, max_iter=2).fit(three).coef_) == 3
    with pytest.raises(DataError, match="needs multiclass='ovr'"):
        CardinalityClassifier(l2=1.0, multiclass="exact").fit(three)


def test_intervals_of_noisy_bags_are_by_the_expected_information():
    """Of equal instances and coefficients that are known, Σ_b g_b g_bᵀ times the mean square of ∂ log P(z)/∂ Σp."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(6000, 1)), 10, axis=0)  # so many bags that the posterior is narrow
    p = expit(x[:, 0] - 0.5)
    exact = Bags(x, np.arange(0, 60001, 10), rng.binomial(1, p).reshape(-1, 10).sum(axis=1))
    for epsilon in (0.1, 1.0):
        noisy = release_bag_counts(exact, epsilon, draw=draw_seeded(0))
        model = CardinalityClassifier(l2=1.0, random_state=0).fit(noisy)
        q = model.predict_proba(x[::10])[:, 1]
        counts, noise = np.arange(11), np.arange(-400, 401)
        law = np.exp(Mechanism(noisy.noise.mechanism, noisy.noise.scale).log_density(noise))
        told = []  # E (E[k | z] − 10 q)² for each bag
        for share in q:
            joint = stats.binom.pmf(counts, 10, share)
            z, first = np.convolve(joint, law), np.convolve(joint * (counts - 10 * share), law)
            told.append((first**2 / z).sum())
        design = np.column_stack([x[::10], np.ones(6000)])
        expected = (design * np.array(told)[:, None]).T @ design
        solution = model._solution()
        np.testing.assert_allclose(solution.slope, expected, atol=0.03 * expected.max())
        np.testing.assert_array_equal(solution.variance, solution.slope)


def test_intervals_of_the_normal_approximation_are_by_the_information_of_normal_noise():
    """Σ_b g_b g_bᵀ/(v_b + σ²), with g_b = Σ p(1 − p)(x, 1), v_b = Σ p(1 − p) and the variance σ² of the noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    exact = Bags(x, np.arange(0, 301, 10), rng.binomial(10, 0.3, 30))
    noisy = release_bag_counts(exact, 0.5, draw=draw_seeded(0))
    model = NormalApproximationClassifier(l2=1.0, random_state=0).fit(noisy)
    p = model.predict_proba(x)[:, 1]
    rows = (p * (1 - p))[:, None] * np.column_stack([x, np.ones(300)])
    g = rows.reshape(30, 10, 3).sum(axis=1)
    variance = Mechanism(noisy.noise.mechanism, noisy.noise.scale).variance
    expected = (g / (g[:, 2:] + variance)).T @ g
    solution = model._solution()
    np.testing.assert_allclose(solution.slope, expected, rtol=1e-4)
    np.testing.assert_allclose(solution.variance, expected, rtol=1e-4)
