"""The learners: likelihoods that never fall, gradients, equalities between methods, truth recovered."""

import itertools
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeClassifier

from agglearn.errors import AgglearnError, ConfigError, DataError, NoiseIgnored, NotAvailable, PoorFit
from agglearn.estimator import Estimator
from agglearn.linear.softmax import LogisticProblem, softmax
from agglearn.observations import Bags, LabelledBags, NoiseSpec
from agglearn.proportions import (
    AlternatingMeanMapClassifier,
    CardinalityClassifier,
    IndividualClassifier,
    InverseCalibrationClassifier,
    MeanEmbeddingClassifier,
    MeanMapClassifier,
    NormalApproximationClassifier,
    base,
    count_likelihood,
)
from agglearn.proportions.alternating import label_highest
from agglearn.proportions.base import PATH, counts_likelihood, one_vs_rest_counts, probabilities, warn_of_poor_fit
from agglearn.proportions.count_likelihood import CountLikelihood, exact_posteriors, normal_posteriors
from agglearn.proportions.means import bag_means, proportions_of

LEARNERS = [
    CardinalityClassifier(random_state=0),
    CardinalityClassifier(multiclass="exact", l2=1.0, random_state=0),
    CardinalityClassifier(solver="em", l2=1.0, max_iter=5, random_state=0),
    NormalApproximationClassifier(l2=1.0, random_state=0),
    AlternatingMeanMapClassifier(l2=1.0, random_state=0),
    AlternatingMeanMapClassifier(l2=1.0, labels="max", start="mean_map"),
    AlternatingMeanMapClassifier(random_state=0, start="zero", max_iter=3),
    MeanMapClassifier(random_state=0),
    MeanEmbeddingClassifier(random_state=0),
    MeanEmbeddingClassifier(multiclass="ovr", l2=0.1),
    InverseCalibrationClassifier(),
]


def persons(n_bags=120, size=12, classes=2, d=3, seed=0):
    """Bags that differ in their covariates, with labels from a logistic model: (LabelledBags, true scores)."""
    theta = np.random.default_rng(classes).normal(0, 1.5, (classes - 1, d))
    rng = np.random.default_rng(seed)
    x = (rng.normal(0, 0.7, (n_bags, 1, d)) + rng.normal(size=(n_bags, size, d))).reshape(-1, d).astype(np.float32)
    p = softmax(x @ theta.T)
    y = (rng.random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)
    offsets = np.arange(0, len(x) + 1, size)
    counts = np.stack([np.add.reduceat((y == c).astype(int), offsets[:-1]) for c in range(classes)], axis=1)
    return LabelledBags(Bags(x, offsets, counts), y), theta


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
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda e: repr(e)[:60])
def test_learns_predicts_and_is_kept(learner, classes, tmp_path):
    seen, _ = persons(classes=classes)
    test, _ = persons(classes=classes, n_bags=50, seed=1)
    model = clone(learner).fit(seen.bags)
    p = model.predict_proba(test.bags.X)
    assert p.shape == (600, classes)
    assert np.allclose(p.sum(axis=1), 1)
    chance = np.bincount(test.y).max() / len(test.y)
    assert (model.predict(test.bags.X) == test.y).mean() > chance + 0.03
    expected = model.predict_counts(test.bags)
    assert np.allclose(expected.sum(axis=1), 12)
    model.save(tmp_path / "model")
    assert np.array_equal(Estimator.load(tmp_path / "model").predict_proba(test.bags.X), p)
    assert np.array_equal(clone(learner).fit(seen.bags).predict_proba(test.bags.X), p)


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


def test_scoring_and_em_reach_the_same():
    seen, theta = persons(n_bags=400)
    fast = CardinalityClassifier(l2=0.1, tol=1e-8).fit(seen.bags)
    slow = CardinalityClassifier(l2=0.1, tol=1e-8, solver="em", max_iter=500).fit(seen.bags)
    assert fast.log_likelihoods_[0][-1] == pytest.approx(slow.log_likelihoods_[0][-1], abs=0.01)
    assert len(fast.log_likelihoods_[0]) < len(slow.log_likelihoods_[0]) / 2
    assert np.allclose(fast.coef_, slow.coef_, atol=0.05)
    assert np.allclose(fast.coef_, theta, atol=0.6)


def test_exact_multiclass_is_binary_for_two_classes():
    seen, _ = persons()
    one, other = (CardinalityClassifier(multiclass=m, l2=1.0, random_state=0).fit(seen.bags) for m in ("ovr", "exact"))
    assert np.array_equal(one.coef_, other.coef_)
    three = Bags(seen.bags.X, seen.bags.offsets, np.column_stack([seen.bags.counts, np.zeros(120, int)]))
    p = softmax(seen.bags.X @ np.array([[1.0, 0, 0]]).T)
    q = exact_posteriors(seen.bags.X[:, :1].astype(float), p, seen.bags.offsets, seen.bags.counts)
    padded = exact_posteriors(
        np.column_stack([seen.bags.X[:, 0], np.full(len(p), -3.0)]), None, three.offsets, three.counts
    )
    assert np.allclose(padded[0][:, 1], q[0][:, 1], atol=1e-10)


def test_gradient_of_the_likelihood():
    """The posteriors minus the probabilities, times covariates, are the derivative of log P(z)."""
    seen, _ = persons(n_bags=6, size=15)
    climb = CountLikelihood(LogisticProblem(seen.bags.X, seen.bags.offsets), seen.bags.counts)
    theta = np.array([[0.3, -0.5, 0.2, 0.1]])
    p, q, _ = climb.e_step(theta)
    gradient = climb.problem.moments(q - p)[0]
    for j in range(4):
        step = np.zeros((1, 4))
        step[0, j] = 1e-5
        slope = (climb.e_step(theta + step)[2] - climb.e_step(theta - step)[2]) / 2e-5
        assert slope == pytest.approx(gradient[j], rel=1e-5, abs=1e-6)


def test_individual_is_logistic_regression():
    seen, _ = persons()
    ours = IndividualClassifier(l2=1.0).fit(seen)
    theirs = LogisticRegression(C=0.5, tol=1e-8).fit(seen.bags.X, seen.y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=5e-3)
    three, _ = persons(classes=3)
    model = IndividualClassifier(l2=1e-3).fit(three)
    theirs = LogisticRegression(C=500.0, tol=1e-8).fit(three.bags.X, three.y)
    assert np.allclose(model.predict_proba(three.bags.X), theirs.predict_proba(three.bags.X), atol=5e-3)


def test_bags_of_one_give_the_individual_model():
    seen, _ = persons()
    single = Bags(seen.bags.X, np.arange(len(seen.y) + 1), seen.y)
    oracle = IndividualClassifier(l2=1.0).fit(LabelledBags(single, seen.y))
    for method in (
        CardinalityClassifier(l2=1.0, tol=1e-8),
        AlternatingMeanMapClassifier(l2=1.0),
        MeanEmbeddingClassifier(l2=1.0),
    ):
        assert np.allclose(method.fit(single).coef_, oracle.coef_, atol=0.02)


@pytest.mark.slow
def test_weight_zero_removes_a_person():
    seen, _ = persons()
    bags = seen.bags
    gone = np.zeros(len(bags.X), bool)
    gone[::5] = True
    y = seen.y
    counts = np.stack([np.add.reduceat(((y == c) & ~gone).astype(int), bags.offsets[:-1]) for c in (0, 1)], axis=1)
    weighted = Bags(bags.X, bags.offsets, counts, weights=(~gone).astype(float))
    sizes = np.add.reduceat((~gone).astype(int), bags.offsets[:-1])
    without = Bags(bags.X[~gone], np.append(0, np.cumsum(sizes)), counts)
    for learner in LEARNERS[:9]:
        a, b = clone(learner).fit(weighted), clone(learner).fit(without)
        assert np.allclose(a.coef_, b.coef_, atol=1e-6), learner


def test_the_highest_of_many_bags():
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(rng.integers(1, 30, 50)))
    score = np.round(rng.normal(size=offsets[-1]), 1)  # with ties
    totals = rng.integers(0, np.diff(offsets) + 1)
    found = label_highest(score, offsets, totals)
    for low, high, z in zip(offsets[:-1], offsets[1:], totals, strict=True):
        first = np.argsort(-score[low:high], kind="stable")[:z]
        assert np.flatnonzero(found[low:high]).tolist() == sorted(first)


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


def test_the_penalty_is_chosen_by_all_bags():
    """Every bag is held out once, whatever λ is tried, so that few bags do not decide by which of them are held out."""
    bags, held = Bags(np.arange(12.0)[:, None], np.arange(13), np.tile([1, 0], (12, 1))), []

    def score(part, solution):
        held.append((solution, part.X[:, 0].tolist()))
        return -abs(np.log10(2 * solution))  # best at λ = ½, after a fall from none

    l2, near = MeanMapClassifier(random_state=0)._choose_l2(bags, lambda rest: lambda value, start: value, score)
    assert l2 == near == 0.5
    for value in PATH:
        assert sorted(x for solution, part in held if solution == value for x in part) == list(range(12))


def test_one_fall_does_not_end_the_path():
    bags = Bags(np.arange(12.0)[:, None], np.arange(13), np.tile([1, 0], (12, 1)))
    scores = dict(zip(PATH, [0.0, -1.0, -1.0, 2.0, 1.0], strict=True))
    model = MeanMapClassifier(random_state=0)
    assert model._choose_l2(bags, lambda rest: lambda value, start: value, lambda b, s: scores[s])[0] == PATH[3]


def test_first_bags_only():
    seen, _ = persons()
    part = seen.bags.take(np.arange(30))
    assert np.array_equal(
        MeanEmbeddingClassifier(l2=1.0, n_bags=30).fit(seen.bags).coef_, MeanEmbeddingClassifier(l2=1.0).fit(part).coef_
    )
    with pytest.raises(ConfigError, match="between 1 and the 120 bags"):
        MeanEmbeddingClassifier(n_bags=121).fit(seen.bags)


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        (CardinalityClassifier(solver="magic"), "scoring, em"),
        (CardinalityClassifier(multiclass="magic"), "ovr, exact"),
        (CardinalityClassifier(l2="magic"), "held_out"),
        (CardinalityClassifier(l2=-1), "above 0"),
        (AlternatingMeanMapClassifier(labels="magic"), "min, max"),
        (AlternatingMeanMapClassifier(start="magic"), "mean_embedding, mean_map, zero"),
    ],
)
def test_unknown_settings(learner, said):
    with pytest.raises(AgglearnError, match=said):
        learner.fit(persons()[0].bags)


def test_what_they_refuse():
    seen, _ = persons()
    with pytest.raises(DataError, match="no counts"):
        MeanEmbeddingClassifier().fit(Bags(seen.bags.X, seen.bags.offsets, target=np.zeros(120)))
    with pytest.raises(DataError, match="learns from Bags, not from LabelledBags"):
        CardinalityClassifier().fit(seen)
    with pytest.raises(DataError, match=r"must be .instances, 3."):
        MeanEmbeddingClassifier(l2=1.0).fit(seen.bags).predict_proba(np.zeros((2, 5)))


TWO_BAGS = Bags(np.zeros((5, 1)), np.array([0, 2, 5]), np.array([1, 1]))  # one of two, one of three


def test_counts_less_probable_than_by_the_base_rate_warn():
    """By hand: P(1 of 2) and P(1 of 3) by rates of the instances, and by 2/5 for all."""
    p = np.array([0.9, 0.8, 0.7, 0.1, 0.2])
    one_of_two = 0.9 * 0.2 + 0.1 * 0.8
    one_of_three = 0.7 * 0.9 * 0.8 + 0.3 * 0.1 * 0.8 + 0.3 * 0.9 * 0.2
    of_base_rate = (2 * 0.4 * 0.6, 3 * 0.4 * 0.6**2)
    means = [np.log([one_of_two, one_of_three]).mean(), np.log(of_base_rate).mean()]
    with pytest.warns(PoorFit, match=f"log P of a bag: {means[0]:.4g} and {means[1]:.4g}"):
        warn_of_poor_fit(TWO_BAGS, p, "T")


@pytest.mark.filterwarnings("error::agglearn.errors.PoorFit")
def test_counts_more_probable_than_by_the_base_rate_do_not_warn():
    warn_of_poor_fit(TWO_BAGS, np.array([0.9, 0.1, 1.0, 0.0, 0.0]), "T")  # certain instances, all right
    warn_of_poor_fit(TWO_BAGS, np.full(5, 0.4), "T")


def test_a_fit_warns_where_counts_have_no_noise():
    class Wrong(MeanMapClassifier):
        def _learn(self, bags):
            return -super()._learn(bags)

    bags = persons(size=30)[0].bags
    with pytest.warns(PoorFit, match="^Wrong: the counts of the bags are less probable"):
        Wrong(l2=1.0).fit(bags)
    noisy = replace(bags, noise=NoiseSpec("discrete_laplace", 1.0, 1.0, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PoorFit)
        warnings.simplefilter("ignore", NoiseIgnored)
        Wrong(l2=1.0).fit(noisy)
        CardinalityClassifier(l2=1.0).fit(bags)


# -- likelihoods, weights and moments by their definitions: bags of unequal sizes, columns of unequal scales -------------

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


def test_scores_of_bags_count_by_the_size_of_their_part():
    """41 bags fall into a part of 9 and four of 8: 9 bags of 1 are more than 32 of 0.26, and one part is less than four."""
    bags = Bags(np.arange(82.0)[:, None], np.arange(0, 83, 2), np.ones(41, int))
    score = lambda held, l2: float(len(held) == 9) if l2 == 50 else 0.26 * (len(held) == 8)  # noqa: E731
    chosen, _ = MeanMapClassifier(random_state=0)._choose_l2(bags, lambda part: lambda l2, last: l2, score)
    assert chosen == 50


def test_a_path_of_penalties_starts_from_the_next_stronger_one():
    starts, bags = [], Bags(np.arange(20.0)[:, None], np.arange(0, 21, 2), np.ones(10, int))

    def fitter(part):
        return lambda l2, last: starts.append((l2, last)) or l2

    assert MeanMapClassifier(3.0)._choose_l2(bags, fitter, None) == (3.0, None)
    chosen, near = MeanMapClassifier(random_state=0)._choose_l2(bags, fitter, lambda held, l2: -abs(l2 - 0.5))
    assert (chosen, near) == (0.5, 0.5)
    assert starts[:3] == [(50.0, None), (5.0, 50.0), (0.5, 5.0)]
    assert starts[5:7] == [(50.0, None), (5.0, 50.0)]  # the solutions of the last part have seen this part's counts


def test_a_weak_penalty_far_behind_is_given_up():
    fitted, bags = [], Bags(np.arange(20.0)[:, None], np.arange(0, 21, 2), np.ones(10, int))
    scores = {50.0: -1.0, 5.0: 0.0, 0.5: -2.0, 0.05: -1.0, 0.005: -(base.BEHIND + 1) / 4}  # for two bags of a part
    MeanMapClassifier(random_state=0)._choose_l2(
        bags, lambda part: lambda l2, last: fitted.append(l2) or l2, lambda _, l2: scores[l2]
    )
    assert fitted.count(0.005) == 2  # behind by more than `BEHIND` after two parts
    assert fitted.count(0.05) == fitted.count(50.0) == 5


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


def test_bags_without_counts_are_refused_by_name():
    bags = LabelledBags(Bags(np.zeros((4, 1)), [0, 2, 4], target=np.array([0.5, 1.0])), np.array([0, 1, 0, 1]))
    with pytest.raises(DataError, match="counts"):
        IndividualClassifier(l2=1.0).fit(bags)


def test_an_oracle_of_the_first_bags_has_their_labels():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    counts = np.add.reduceat(y, np.arange(0, 40, 4))
    some = IndividualClassifier(n_bags=4).fit(LabelledBags(Bags(x, np.arange(0, 41, 4), counts), y))
    first = IndividualClassifier().fit(LabelledBags(Bags(x[:16], np.arange(0, 17, 4), counts[:4]), y[:16]))
    np.testing.assert_allclose(some.coef_, first.coef_)


WEIGHED = Bags(
    np.array([[1.0], [5.0], [2.0], [4.0], [6.0]]), [0, 2, 5], np.array([[1.0, 2.0], [2.0, 4.0]]),
    weights=np.array([1.0, 2, 3, 0, 3]),
)  # fmt: skip


def test_means_and_shares_of_bags_go_by_weight():
    assert bag_means(WEIGHED)[:, 0].tolist() == pytest.approx([11 / 3, 24 / 6])
    assert bag_means(Bags(WEIGHED.X, WEIGHED.offsets))[:, 0].tolist() == [3, 4]
    np.testing.assert_allclose(proportions_of(WEIGHED), [[1 / 3, 2 / 3]] * 2)
    counts = Bags(WEIGHED.X, WEIGHED.offsets, np.array([[0, 1, 1], [2, 1, 0]]))
    assert one_vs_rest_counts(counts, 1).tolist() == [[1, 1], [2, 1]]
    assert one_vs_rest_counts(counts, 0).tolist() == [[2, 0], [1, 2]]


def classifier(*rows) -> MeanEmbeddingClassifier:
    """One with these weights (…, intercept), a row for each score."""
    model = MeanEmbeddingClassifier()
    model.classes_, model.feature_names_in_ = np.arange(3 if len(rows) > 1 else 2), []
    model._set(np.array(rows, float))
    return model


def test_expected_counts_go_by_weight():
    model = classifier([math.log(2), 0.0])  # odds 2 to the power of x
    p = [2.0**x / (1 + 2.0**x) for x in WEIGHED.X[:, 0]]
    expected = [p[0] + 2 * p[1], 3 * p[2] + 3 * p[4]]
    np.testing.assert_allclose(
        model.predict_counts(WEIGHED), [[3 - expected[0], expected[0]], [6 - expected[1], expected[1]]], rtol=1e-6
    )
    assert model.predict(WEIGHED.X).tolist() == [1, 1, 1, 1, 1]
    assert model.predict(-WEIGHED.X).tolist() == [0, 0, 0, 0, 0]


def test_one_class_against_the_rest_and_all_at_once():
    odds = lambda s: 1 / (1 + math.exp(-s))  # noqa: E731
    score = np.array([[0.5, -1.0, 2.0]])
    each = [odds(0.5), odds(-1), odds(2)]
    np.testing.assert_allclose(probabilities(score, 3), [[p / sum(each) for p in each]])
    whole = 1 + math.exp(0.5) + math.exp(-1)
    np.testing.assert_allclose(
        probabilities(score[:, :2], 3), [[1 / whole, math.exp(0.5) / whole, math.exp(-1) / whole]]
    )


def test_likelihood_of_counts():
    """Bags of two and of one: the mean over bags of log P(count), of each class where there are three."""
    p = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    likelihood = counts_likelihood(p, np.array([0, 2, 3]), np.array([[1, 1], [0, 1]]))
    assert likelihood == pytest.approx((math.log(0.25 * 0.5 + 0.75 * 0.5) + math.log(0.75)) / 2)
    p = np.array([[0.5, 0.25, 0.25], [0.5, 0.125, 0.375]])
    found = counts_likelihood(p, np.array([0, 2]), np.array([[1, 0, 1]]))
    of = lambda a, b, z: math.log([(1 - a) * (1 - b), a * (1 - b) + b * (1 - a), a * b][z])  # noqa: E731
    assert found == pytest.approx(of(0.5, 0.5, 1) + of(0.25, 0.125, 0) + of(0.25, 0.375, 1))


def test_the_mean_embedding_counts_every_bag_once():
    """A bag of one and a bag of nine weigh the same."""
    x = np.concatenate([[0.0], np.ones(9)])[:, None]
    bags = Bags(x, [0, 1, 10], np.array([[1, 0], [3, 6]]))
    model = MeanEmbeddingClassifier(l2=1e-6).fit(Bags(np.zeros((10, 1)), bags.offsets, bags.counts))
    assert model.predict_proba(np.zeros((1, 1)))[0, 1] == pytest.approx((0 + 6 / 9) / 2, abs=1e-3)
