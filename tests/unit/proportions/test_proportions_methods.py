"""The learners: likelihoods that never fall, gradients, equalities between methods, truth recovered."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
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
)
from agglearn.proportions.alternating import label_highest
from agglearn.proportions.base import PATH, warn_of_poor_fit
from agglearn.proportions.count_likelihood import CountLikelihood, exact_posteriors, normal_posteriors

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
    from agglearn.proportions import count_likelihood

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


@pytest.mark.parametrize("infer", [exact_posteriors, normal_posteriors])
def test_gradient_of_the_likelihood(infer):
    """The posteriors minus the probabilities, times covariates, are the derivative of log P(z)."""
    seen, _ = persons(n_bags=6, size=15)
    climb = CountLikelihood(LogisticProblem(seen.bags.X, seen.bags.offsets), seen.bags.counts, infer)
    theta = np.array([[0.3, -0.5, 0.2, 0.1]])
    p, q, _ = climb.e_step(theta)
    gradient = climb.problem.moments(q - p)[0]
    for j in range(4):
        step = np.zeros((1, 4))
        step[0, j] = 1e-5
        slope = (climb.e_step(theta + step)[2] - climb.e_step(theta - step)[2]) / 2e-5
        assert slope == pytest.approx(gradient[j], rel=1e-5, abs=1e-6)


def test_information_is_the_variance_of_the_gradient():
    """For the normal approximation's linear part: Σ_b G_bᵀ V_b⁻¹ G_b is Var(Σ (q − p) x) over counts drawn from the model."""
    seen, _ = persons(n_bags=40, size=30)
    theta = np.array([[0.3, -0.5, 0.2, 0.1]])
    climb = CountLikelihood(LogisticProblem(seen.bags.X, seen.bags.offsets), seen.bags.counts)
    p, _, _ = climb.e_step(theta)
    rng, gradients = np.random.default_rng(0), []
    for _ in range(400):
        y = rng.random(len(p)) < p[:, 1]
        z = np.add.reduceat(y.astype(int), seen.bags.offsets[:-1])
        climb.counts = np.column_stack([30 - z, z])
        q = climb.e_step(theta)[1]
        gradients.append(climb.problem.moments(q - p)[0])
    assert np.allclose(
        np.cov(np.array(gradients).T), climb.information(p), rtol=0.35, atol=0.12 * climb.information(p).max()
    )


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


def test_mean_map_with_known_means():
    """Where classes look the same in every bag, the class means are found, and with them the weights."""
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.1, 0.9, 400)
    y = (rng.random((400, 50)) < shares[:, None]).astype(int)
    x = rng.normal(size=(400, 50, 2)) + np.where(y[..., None] == 1, [1.0, -0.5], [0.0, 0.0])
    bags = Bags(x.reshape(-1, 2), np.arange(0, 20_001, 50), y.sum(axis=1))
    model = MeanMapClassifier(l2=0.1).fit(bags)
    oracle = IndividualClassifier(l2=0.1).fit(LabelledBags(bags, y.ravel()))
    assert np.allclose(model.coef_, oracle.coef_, atol=0.15)


def test_alternating_labels():
    score = np.array([3.0, 1.0, 2.0, 0.0, 0.0, 5.0])
    assert label_highest(score, np.array([0, 3, 6]), np.array([2, 1])).tolist() == [1, 0, 1, 0, 0, 1]
    assert label_highest(score, np.array([0, 3, 6]), np.array([0, 3])).tolist() == [0, 0, 0, 1, 1, 1]


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
    seen, _ = persons()
    losses = AlternatingMeanMapClassifier(l2=1.0).fit(seen.bags).losses_[0]
    assert (np.diff(losses) < 1e-2).all()


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
