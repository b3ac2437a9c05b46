"""The likelihood of counts: its gradient and information, EM and scoring, counts with noise, any classifier."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from small_bags import COUNTS, OFFSETS, SIZES, TWO, X, persons

from agglearn.errors import NotAvailable
from agglearn.linear.softmax import LogisticProblem, softmax
from agglearn.observations import Bags, NoiseSpec
from agglearn.proportions import CardinalityClassifier, NormalApproximationClassifier, count_likelihood
from agglearn.proportions.base import counts_likelihood
from agglearn.proportions.count_likelihood import CountLikelihood, normal_posteriors


@pytest.mark.parametrize(("classes", "solver"), [(2, "scoring"), (2, "em"), (3, "em")])
def test_the_tree_of_convolutions_learns_what_fourier_sums_learn(classes, solver):
    seen, _ = persons(n_bags=30, size=8, classes=classes)
    settings = {"multiclass": "exact", "solver": solver, "l2": 1.0, "max_iter": 5}
    tree, fourier = (CardinalityClassifier(e_step=e, **settings).fit(seen.bags) for e in ("tree", "fourier"))
    np.testing.assert_allclose(tree.coef_, fourier.coef_, rtol=1e-6)
    np.testing.assert_allclose(tree.log_likelihoods_[0], fourier.log_likelihoods_[0], rtol=1e-9)


def test_the_e_step_is_the_one_that_is_asked_for(monkeypatch):
    asked = []
    right = count_likelihood.tree_posterior
    monkeypatch.setattr(count_likelihood, "tree_posterior", lambda *a: asked.append(1) or right(*a))
    seen, _ = persons(n_bags=6, size=5)
    CardinalityClassifier(l2=1.0, max_iter=1).fit(seen.bags)
    assert not asked
    CardinalityClassifier(l2=1.0, max_iter=1, solver="em", e_step="tree").fit(seen.bags)
    assert len(asked) == 2 * 6
    asked.clear()
    CardinalityClassifier(classifier=LogisticRegression(), max_iter=2, e_step="tree", tol=0).fit(seen.bags)
    assert len(asked) == 2 * 6


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["scoring", "em"])
@pytest.mark.parametrize("multiclass", ["ovr", "exact"])
def test_the_likelihood_never_falls(solver, multiclass):
    seen, _ = persons(classes=3, size=20, n_bags=60)
    problem = LogisticProblem(seen.bags.X, seen.bags.offsets, l2=1e-6)
    counts = seen.bags.counts
    if multiclass == "ovr":
        counts = np.column_stack([20 - counts[:, 1], counts[:, 1]])
    climb = CountLikelihood(problem, counts)
    start = np.random.default_rng(0).normal(0, 2, (counts.shape[1] - 1, 4))
    getattr(climb, solver)(start, 30, 1e-6)
    assert len(climb.trace) > 5
    assert (np.diff(climb.trace) > -1e-6).all()
    assert climb.trace[-1] > climb.trace[0] + 10


def test_exact_multiclass_is_binary_for_two_classes():
    seen, _ = persons()
    one, other = (CardinalityClassifier(multiclass=m, l2=1.0, random_state=0).fit(seen.bags) for m in ("ovr", "exact"))
    assert np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_in_one_pass_is_that_of_its_parts(classes, weighted):
    rng = np.random.default_rng(1)
    x, offsets = rng.normal(size=(40, 3)).astype(np.float32), np.array([0, 7, 8, 40])
    weights = rng.random(40) if weighted else None
    problem = LogisticProblem(x, offsets, weights, l2=0.7)
    theta, moments = rng.normal(size=(2, classes - 1, 4)) * [[[30.0]], [[1.0]]]  # some scores are far apart
    scores = np.column_stack([np.zeros(40), x @ theta[:, :-1].T + theta[:, -1]])
    each = logsumexp(scores, axis=1) * (1 if weights is None else weights)
    value, gradient = problem.loss(theta, moments)
    penalty = problem.penalty() * theta
    assert value == pytest.approx(each.sum() - (theta * moments).sum() + (penalty * theta).sum(), rel=1e-10)
    expected = problem.moments(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))
    np.testing.assert_allclose(gradient, expected - moments + 2 * penalty, rtol=1e-6, atol=1e-8)


def test_likelihood_of_counts():
    """Bags of two and of one: the mean over bags of log P(count), of each class where there are three."""
    p = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    likelihood = counts_likelihood(p, np.array([0, 2, 3]), np.array([[1, 1], [0, 1]]))
    assert likelihood == pytest.approx((math.log(0.25 * 0.5 + 0.75 * 0.5) + math.log(0.75)) / 2)
    p = np.array([[0.5, 0.25, 0.25], [0.5, 0.125, 0.375]])
    found = counts_likelihood(p, np.array([0, 2]), np.array([[1, 0, 1]]))
    of = lambda a, b, z: math.log([(1 - a) * (1 - b), a * (1 - b) + b * (1 - a), a * b][z])  # noqa: E731
    assert found == pytest.approx(of(0.5, 0.5, 1) + of(0.25, 0.125, 0) + of(0.25, 0.375, 1))


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
        likelihood = normal_likelihood(X @ theta[:2] + theta[2], TWO.counts[:, 1], variance)
        return 0.1 * theta[:2] @ theta[:2] + 5e-7 * theta[2] ** 2 - likelihood

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


def test_another_classifier_in_the_m_step(tmp_path):
    """An exclusive or of two signs, which no linear model has."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (300, 8, 2)) + rng.normal(0, 1.0, (300, 1, 2))
    y = (x[..., 0] * x[..., 1] > 0).astype(int)
    bags = Bags(x.reshape(-1, 2), np.arange(0, 2401, 8), y.sum(axis=1))
    tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=20, random_state=0)
    trees = CardinalityClassifier(classifier=tree, max_iter=10).fit(bags)
    linear = CardinalityClassifier(l2=1.0).fit(bags)
    right = [(m.predict(bags.X) == y.ravel()).mean() for m in (trees, linear)]
    assert right[0] > right[1] + 0.1
    with pytest.raises(NotAvailable, match="pickle"):
        trees.save(tmp_path / "model")


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
    infer = lambda *_: (posteriors, np.full(5, next(likelihoods) / 5))  # noqa: E731
    monkeypatch.setattr(count_likelihood, "class_posteriors", infer)
    monkeypatch.setattr(Spy, "fits", [])
    model = CardinalityClassifier(classifier=Spy(), max_iter=9, tol=0.3).fit(Bags(X, OFFSETS, COUNTS))
    assert len(Spy.fits) == steps
    np.testing.assert_allclose(model.log_likelihoods_[0], np.cumsum([-20.0, *gains])[: steps + 1])
