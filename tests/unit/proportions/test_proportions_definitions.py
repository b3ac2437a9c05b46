"""Likelihoods, weights and moments of learners from bags against their definitions: bags of unequal sizes, columns of unequal scales."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.svm import LinearSVR

from agglearn.linear.softmax import LogisticProblem, softmax
from agglearn.observations import Bags, NoiseSpec
from agglearn.proportions import (
    AlternatingMeanMapClassifier,
    CardinalityClassifier,
    InverseCalibrationClassifier,
    MeanEmbeddingClassifier,
    MeanMapClassifier,
    NormalApproximationClassifier,
    count_likelihood,
)
from agglearn.proportions.count_likelihood import CountLikelihood, normal_posteriors

OFFSETS = np.array([0, 2, 7, 10, 18, 19])
SIZES = np.diff(OFFSETS)
X = np.random.default_rng(0).normal([1.0, -3.0], [0.5, 4.0], (19, 2)).astype(np.float32)
COUNTS = np.array([[1, 1, 0], [2, 0, 3], [0, 3, 0], [4, 3, 1], [0, 0, 1]])
TWO = Bags(X, OFFSETS, [1, 5, 0, 3, 1])


def normal_likelihood(s, positives, noise) -> float:
    """Σ_b log N(z | Σp, Σp(1 − p) + noise)."""
    total = 0.0
    for q, z in zip(np.split(1 / (1 + np.exp(-s)), OFFSETS[1:-1]), positives, strict=True):
        law = stats.norm(q.sum(), np.sqrt((q * (1 - q)).sum() + noise))
        total += law.logpdf(z)
    return total


@pytest.mark.parametrize("noise", [0.0, 2.5])
def test_normal_posteriors_are_the_gradient_of_the_normal_likelihood(noise):
    rng = np.random.default_rng(1)
    score, counts = rng.normal(size=19), np.column_stack([SIZES - TWO.counts[:, 1], TWO.counts[:, 1]])

    def likelihood(s):
        return normal_likelihood(s, counts[:, 1], noise)

    q, found = normal_posteriors(score[:, None], softmax(score[:, None]), OFFSETS, counts, noise)
    assert found.sum() == pytest.approx(likelihood(score))
    step = 1e-6
    numeric = [(likelihood(score + step * e) - likelihood(score - step * e)) / (2 * step) for e in np.eye(19)]
    np.testing.assert_allclose(q[:, 1] - 1 / (1 + np.exp(-score)), numeric, atol=1e-7)


def test_noisy_bags_by_another_solver():
    """The optimum of the noise-aware likelihood, by derivative-free search. λ = 0.1, and 5e-7 for the intercept."""
    noise = NoiseSpec("discrete_laplace", 1.0, 1.0, 0.0, "label")
    variance = 1 / (2 * np.sinh(0.5) ** 2)

    def loss(theta):
        scores = X @ theta[:2] + theta[2]
        return (
            0.1 * theta[:2] @ theta[:2] + 5e-7 * theta[2] ** 2 - normal_likelihood(scores, TWO.counts[:, 1], variance)
        )

    best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 5000}).x
    found = NormalApproximationClassifier(l2=0.1, tol=1e-12, max_iter=1000).fit(replace(TWO, noise=noise))
    np.testing.assert_allclose(np.append(found.coef_, found.intercept_), best, atol=2e-4)
    ignored = NormalApproximationClassifier(l2=0.1, tol=1e-12).fit(TWO)
    assert np.abs(found.coef_ - ignored.coef_).max() > 0.05


def test_noisy_counts_choose_their_penalty_by_the_noisy_likelihood(monkeypatch):
    """Not by the probability of a whole count, of which noise makes impossible ones."""
    chosen = []
    choose = lambda model, bags, solver_on, score, path: (chosen.append(score), (1.0, None))[1]  # noqa: E731
    monkeypatch.setattr(NormalApproximationClassifier, "_choose_l2", choose)
    noise = NoiseSpec("discrete_laplace", 2.0, 0.5, 0.0, "label")
    NormalApproximationClassifier().fit(replace(TWO, noise=noise))
    theta = np.array([[0.3, -0.2, 0.1]])
    expected = normal_likelihood(X @ theta[0, :2] + 0.1, TWO.counts[:, 1], 1 / (2 * np.sinh(0.25) ** 2))
    assert chosen[0](replace(TWO, noise=noise), theta).sum() == pytest.approx(expected)


def test_noisy_counts_take_the_largest_penalty_within_one_standard_error():
    """λ = 1 is best by 1.9 over four bags. That of 10 loses 1.9 with a standard error of 2.2, that of 100 two for sure."""
    by_bag = {100.0: [-3.0, -3, -3, -3], 10.0: [-1.0, -4, -2.9, -2.0], 1.0: [-2.0, -2, -2, -2]}
    model = CardinalityClassifier(random_state=0)
    score = lambda bags, theta: np.array([by_bag[theta][int(b)] for b in bags.X[:, 0]])  # noqa: E731
    bags = Bags(np.arange(4.0)[:, None], np.arange(5), np.array([1, 0, 0, 1]))
    assert model._choose_l2(bags, lambda _: lambda l2, __: l2, score, tuple(by_bag))[0] == 10.0
    mean = lambda bags, theta: float(score(bags, theta).mean())  # noqa: E731
    assert model._choose_l2(bags, lambda _: lambda l2, __: l2, mean, tuple(by_bag))[0] == 1.0


def test_information_by_loops_over_bags():
    """Σ_b G_bᵀ V_b⁻¹ G_b for three classes, from the covariance of each instance's label."""
    p = softmax(np.random.default_rng(2).normal(size=(19, 2)))
    total, ones = np.zeros((6, 6)), np.column_stack([X, np.ones(19)]).astype(float)
    for low, high in itertools.pairwise(OFFSETS):
        g, v = np.zeros((2, 6)), 1e-9 * np.eye(2)
        for i in range(low, high):
            covariance = np.diag(p[i, 1:]) - np.outer(p[i, 1:], p[i, 1:])
            g += np.kron(covariance, ones[i])
            v += covariance
        total += g.T @ np.linalg.inv(v) @ g
    climb = CountLikelihood(LogisticProblem(X, OFFSETS), COUNTS)
    np.testing.assert_allclose(climb.information(p), total, rtol=1e-4, atol=1e-4 * total.max())


def test_inverse_calibration_is_a_support_vector_regression_of_log_odds():
    """Each bag's share is kept half an instance of its own from 0 and 1; each covariate has a scale of its own."""
    means = np.array([X[a:b].mean(axis=0) for a, b in itertools.pairwise(OFFSETS)])
    share = np.clip(TWO.counts[:, 1] / SIZES, 0.5 / SIZES, 1 - 0.5 / SIZES)
    z = (means - means.mean(axis=0)) / means.std(axis=0)
    svr = LinearSVR(C=0.3, epsilon=0.1, max_iter=20_000, random_state=0).fit(z, np.log(share / (1 - share)))
    found = InverseCalibrationClassifier(C=0.3, epsilon=0.1).fit(TWO)
    np.testing.assert_allclose(found.coef_[0], svr.coef_ / means.std(axis=0), rtol=1e-4)
    centred = found.intercept_[0] + found.coef_[0] @ means.mean(axis=0)
    assert centred == pytest.approx(float(np.squeeze(svr.intercept_)), rel=1e-4)


def test_the_mean_map_solves_its_equations():
    """Σ p(x)(x, 1) + 2λθ = n₁ · (class mean, 1), the class mean by least squares over bags."""
    model, share = MeanMapClassifier(l2=0.7).fit(TWO), TWO.counts / SIZES[:, None]
    means = np.array([X[a:b].mean(axis=0) for a, b in itertools.pairwise(OFFSETS)])
    of_class = np.linalg.lstsq(share, means, rcond=None)[0][1]
    p, n = model.predict_proba(X)[:, 1], TWO.counts[:, 1].sum()
    assert p.sum() == pytest.approx(n, rel=1e-4)
    np.testing.assert_allclose(p @ X + 2 * 0.7 * model.coef_[0], n * of_class, rtol=1e-3)


def test_a_single_bag_takes_the_middle_of_the_path():
    bags = TWO.take([1])
    assert MeanMapClassifier()._choose_l2(bags, None, None, (9.0, 4.0, 1.0)) == (4.0, None)
    assert MeanMapClassifier()._choose_l2(bags, None, None, (9.0, 4.0)) == (4.0, None)


class Spy(ClassifierMixin, BaseEstimator):
    """A classifier that tells what it was fitted to."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight):
        self.fits.append((np.array(X), np.array(y), np.array(sample_weight)))
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 3), [0.5, 0.3, 0.2])


def test_any_classifier_gets_each_instance_once_per_class_with_its_posterior(monkeypatch):
    monkeypatch.setattr(Spy, "fits", [])
    CardinalityClassifier(classifier=Spy(), max_iter=2, tol=0).fit(Bags(X, OFFSETS, COUNTS))
    for x, y, weight in Spy.fits:
        np.testing.assert_array_equal(x, np.tile(X, (3, 1)))
        q = np.array([weight[y == c] for c in range(3)])
        np.testing.assert_allclose(q.sum(axis=0), 1, rtol=1e-6)
        np.testing.assert_allclose(np.add.reduceat(q, OFFSETS[:-1], axis=1).T, COUNTS, atol=1e-8)


GAINS = pytest.mark.parametrize(
    ("gains", "steps"), [([3.0, 3.0, 1.4, 9.0], 3), ([3.0, 1.6, 1.4, 9.0], 3), ([1.4, 9.0], 1)]
)


@GAINS
def test_em_stops_by_the_gain_per_bag(gains, steps, monkeypatch):
    """Five bags and a tolerance of 0.3: a step that gains less than 1.5 is the last."""
    likelihoods = iter(np.cumsum([-20.0, *gains]))
    climb = CountLikelihood(SimpleNamespace(minimise=lambda *_, **__: (0, 0), moments=lambda q: q), COUNTS)
    monkeypatch.setattr(CountLikelihood, "e_step", lambda self, theta: (None, None, next(likelihoods)))
    monkeypatch.setattr(CountLikelihood, "penalised", lambda self, likelihood, theta: likelihood)
    climb.em(np.zeros((1, 3)), 9, 0.3)
    assert len(climb.trace) == steps + 1


@GAINS
def test_em_of_any_classifier_stops_by_the_gain_per_bag(gains, steps, monkeypatch):
    likelihoods = iter(np.cumsum([-20.0, *gains]))
    posteriors = np.full((19, 3), 1 / 3)
    monkeypatch.setattr(
        count_likelihood, "class_posteriors", lambda *_: (posteriors, np.full(5, next(likelihoods) / 5))
    )
    monkeypatch.setattr(Spy, "fits", [])
    model = CardinalityClassifier(classifier=Spy(), max_iter=9, tol=0.3).fit(Bags(X, OFFSETS, COUNTS))
    assert len(Spy.fits) == steps
    np.testing.assert_allclose(model.log_likelihoods_[0], np.cumsum([-20.0, *gains])[: steps + 1])


@pytest.mark.parametrize(
    "learner",
    [MeanEmbeddingClassifier(l2=0.3, multiclass="ovr"), CardinalityClassifier(l2=0.3, multiclass="ovr"),
     NormalApproximationClassifier(l2=0.3), AlternatingMeanMapClassifier(l2=0.3)],
    ids=lambda learner: type(learner).__name__,
)  # fmt: skip
def test_one_class_against_the_rest_is_the_fit_of_two_classes(learner):
    """No class has half of the instances, so that a class and the rest cannot change places."""
    model = clone(learner).fit(Bags(X, OFFSETS, COUNTS))
    assert len(model.coef_) == 3
    for c, (coef, intercept) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        two = clone(learner).fit(Bags(X, OFFSETS, np.column_stack([SIZES - COUNTS[:, c], COUNTS[:, c]])))
        np.testing.assert_allclose([*coef, intercept], [*two.coef_[0], *two.intercept_], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("losses", "expected"), [([3.0, 1.0, 2.0], 2.0), ([3.0, 2.0, 1.0], 103.0)])
def test_alternations_end_at_the_weights_of_least_loss(losses, expected):
    """The last labels are fitted to the end only where they have the least loss."""
    thetas = [np.array([[a, b, c]]) for a, b, c in ((1.0, 0, 1), (-1.0, 0, 2), (0, 1.0, 3))]
    rounds = iter(zip(thetas, losses, strict=True))
    minimise = lambda _, theta, *few: next(rounds) if few else (theta + 100, 0)  # noqa: E731
    problem = SimpleNamespace(x=X, offsets=OFFSETS, moments=lambda m: m, minimise=minimise)
    model = AlternatingMeanMapClassifier(max_iter=3, tol=0)
    theta, trace = model._alternate(problem, TWO.counts[:, 1], np.array([[0.0, -1.0, 0.0]]))
    assert (theta[0, 2], trace) == (expected, losses)
