"""Ridge regressions, logistic regression and their composition with embeddings, against scikit-learn and by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.linear_model import Ridge

from agglearn.distribution import (
    BagOfWordsEmbedding,
    EmbeddingClassifier,
    EmbeddingRegressor,
    KernelRidge,
    LinearRidge,
    MomentEmbedding,
    MultinomialLogistic,
    OrthogonalRandomEmbedding,
    RandomFourierEmbedding,
    logistic,
)
from agglearn.distribution.ridge import STRENGTHS
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags


def problem(n, d, k=2, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d)) @ np.diag(np.logspace(0, -3, d))
    return z, z @ rng.normal(size=(d, k)) * 10 + rng.normal(size=(n, k))


@pytest.mark.parametrize(("n", "d"), [(30, 5), (12, 40), (20, 20)])
@pytest.mark.parametrize("strength", [1e-6, 1e-2, 10.0])
def test_linear_ridge_is_that_of_scikit_learn(n, d, strength):
    (z, y), new = problem(n, d), problem(9, d, seed=1)[0]
    found = LinearRidge([strength]).fit(z + 3, y + 5)  # far from 0
    assert found.l2_ == pytest.approx(strength * z.var(axis=0).sum())
    predicted = found.predict(new + 3)
    right = Ridge(alpha=found.l2_, solver="svd").fit(z, y + 5).predict(new)
    np.testing.assert_allclose(predicted, right, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(15, 4), (12, 30)])
def test_leave_one_out_is_what_it_says(n, d):
    z, y = problem(n, d)
    found = LinearRidge([0.1]).fit(z, y)
    others = (Ridge(alpha=found.l2_).fit(np.delete(z, i, 0), np.delete(y, i, 0)) for i in range(n))
    errors = [(y[i] - model.predict(z[i : i + 1])[0]) ** 2 for i, model in enumerate(others)]
    assert found.score_ == pytest.approx(np.mean(errors), rel=1e-5)


def test_held_out_vectors_choose_the_strength():
    z, y = problem(40, 10)
    held = problem(50, 10)
    found = LinearRidge().fit(z, y, held)
    errors = [np.mean((LinearRidge([s]).fit(z, y).predict(held[0]) - held[1]) ** 2) for s in STRENGTHS]
    assert found.strength_ == STRENGTHS[np.argmin(errors)]
    assert found.score_ == pytest.approx(min(errors))


def test_singular_vectors_need_no_warning(recwarn):
    z = np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 60, axis=1)  # rank 1
    found = LinearRidge().fit(z, z[:, 0] * 3 + 1)
    np.testing.assert_allclose(found.predict(z), z[:, 0] * 3 + 1, atol=1e-5)
    KernelRidge().fit(z, z[:, 0])
    KernelRidge().fit(np.zeros((5, 2)), np.arange(5))  # all vectors alike
    assert not recwarn.list


def test_kernel_ridge_is_that_of_scikit_learn():
    z, y = problem(25, 3)
    found = KernelRidge(widths=[1.0], strengths=[1e-3]).fit(z, y[:, :1])
    kernel = lambda a, b: np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2 * found.width_**2))  # noqa: E731
    centring = np.eye(25) - 1 / 25  # a free intercept: kernel and targets centred
    k = centring @ kernel(z, z) @ centring
    reference = Reference(alpha=found.ridge_.l2_, kernel="precomputed").fit(k, y[:, :1] - y[:, :1].mean())
    new = problem(6, 3, seed=1)[0]
    cross = (kernel(new, z) - kernel(z, z).mean(axis=0)) @ centring
    np.testing.assert_allclose(found.predict(new), reference.predict(cross) + y[:, :1].mean(), rtol=1e-5)


@pytest.mark.slow
def test_few_landmarks_come_near():
    rng = np.random.default_rng(0)
    z = rng.uniform(-2, 2, (400, 1))
    exact, few = (KernelRidge(landmarks=m, random_state=0).fit(z, np.sin(3 * z)) for m in (400, 60))
    new = np.linspace(-1.9, 1.9, 50)[:, None]
    np.testing.assert_allclose(few.predict(new), np.sin(3 * new), atol=1e-3)
    np.testing.assert_allclose(exact.predict(new), np.sin(3 * new), atol=1e-3)


def test_no_weaker_penalty_is_tried_once_held_out_vectors_get_worse(monkeypatch):
    z, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    losses = iter([3.0, 2.0, 2.5, 1.0])
    monkeypatch.setattr(logistic, "_loss", lambda *_: next(losses))
    found = MultinomialLogistic([10.0, 1.0, 0.1, 0.01], random_state=0).fit(z, y)
    assert (found.l2_, found.score_, found.edges_) == (1.0, 2.0, [])
    assert list(losses) == [1.0]
    losses = iter([1.0, 2.0])
    assert MultinomialLogistic([10.0, 1.0, 0.1], random_state=0).fit(z, y).edges_ == ["l2"]


@pytest.mark.slow
def test_nearly_collinear_vectors_need_no_care():
    rng = np.random.default_rng(0)
    z = np.repeat(rng.normal(size=(150, 3)), 60, axis=1) + 1e-4 * rng.normal(size=(150, 180))
    y = (z[:, 0] > -0.5).astype(int) + (z[:, 0] > 0.5)
    assert (MultinomialLogistic(random_state=0).fit(z, y).predict(z) == y).mean() > 0.9


def test_classes_keep_their_names():
    y, rng = np.array([2, 7] * 20), np.random.default_rng(0)
    bags = [rng.normal(c, 0.1, (3, 2)) for c in y]
    model = EmbeddingClassifier(MomentEmbedding(order=1), MultinomialLogistic(), random_state=0).fit(bags, y)
    assert (model.predict(bags) == y).all()
    np.testing.assert_array_equal(model.classes_, [2, 7])
    np.testing.assert_allclose(model.predict_proba(bags).sum(axis=1), 1)


def made(n=60, seed=0):
    """Bags whose target is the mean of their first covariate, squared."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, n)
    bags = [np.column_stack([rng.normal(c, 0.1, 30), rng.normal(size=30)]) for c in centres]
    return Bags(np.concatenate(bags), np.arange(0, 30 * n + 1, 30), target=centres**2)


@pytest.mark.slow
@pytest.mark.parametrize("regressor", [LinearRidge(), KernelRidge()])
@pytest.mark.parametrize("n_validation", [0, 20])
def test_embedding_and_regressor_learn(regressor, n_validation):
    bags, test = made(80), made(40, 1)
    how = {"tune": {"scale": [0.05, 1.0]}, "n_validation": n_validation, "random_state": 0}
    model = EmbeddingRegressor(OrthogonalRandomEmbedding(32), regressor, **how).fit(bags)
    assert model.tuned_ == {"scale": 1.0}
    assert np.mean((model.predict(test) - test.target) ** 2) < 0.1 * test.target.var()


def test_which_bags_are_learned_from():
    bags = made(30)
    few = EmbeddingRegressor(MomentEmbedding(), LinearRidge(), n_bags=10, n_validation=5, bag_size=7).fit(bags)
    parts = [bags.X[30 * b : 30 * b + 7] for b in range(30)]
    vectors = MomentEmbedding().fit(parts[5:15]).transform(parts)
    wanted = LinearRidge().fit(vectors[5:15], bags.target[5:15], (vectors[:5], bags.target[:5]))
    np.testing.assert_allclose(few.predict(bags), wanted.predict(vectors), atol=1e-6)


def test_vectors_as_targets():
    bags = made(40)
    y = np.column_stack([bags.target, 1 - bags.target])
    found = EmbeddingRegressor(BagOfWordsEmbedding(10), LinearRidge(), random_state=0).fit(bags, y).predict(bags)
    assert found.shape == (40, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-4)


def shares(n=60):
    """Bags whose target is a share: often 0 or 1."""
    rng = np.random.default_rng(0)
    level = rng.normal(0, 2, n)
    bags = [rng.normal(m, 1, (30, 2)) for m in level]
    return bags, np.clip(0.5 + 0.4 * level, 0, 1)


def test_shares_are_predicted_as_shares():
    bags, y = shares()
    free = EmbeddingRegressor(MomentEmbedding(order=1), LinearRidge(), random_state=0).fit(bags, y)
    bound = EmbeddingRegressor(MomentEmbedding(order=1), LinearRidge(), bounds=(0, 1), random_state=0).fit(bags, y)
    assert free.predict(bags).min() < 0
    assert free.predict(bags).max() > 1
    np.testing.assert_array_equal(bound.predict(bags), np.clip(free.predict(bags), 0, 1))


REGRESSOR, CLASSIFIER = (EmbeddingRegressor, LinearRidge()), (EmbeddingClassifier, MultinomialLogistic())
ONE, TWO = [np.ones((2, 2))], [np.ones((2, 2)), np.ones((1, 2))]


@pytest.mark.parametrize(
    ("kind", "bags", "y", "options", "error", "said"),
    [
        (REGRESSOR, ONE, None, {}, DataError, "needs a target"),
        (REGRESSOR, Bags(np.ones((2, 2)), [0, 1, 2]), None, {}, DataError, "have no target"),
        (REGRESSOR, ONE, [1.0], {}, DataError, "one bag only"),
        (REGRESSOR, TWO, [1.0, 2, 3], {}, DataError, "3 values for 2 bags"),
        (REGRESSOR, TWO, [1.0, np.nan], {}, DataError, "target: not a number for bag 1"),
        (REGRESSOR, made(30), None, {"n_bags": 31}, ConfigError, "n_bags: must be between 1 and the 30"),
        (CLASSIFIER, ONE * 3, [1, 1, 1], {}, DataError, "one class only"),
        (REGRESSOR, *shares(), {"bounds": (1, 0)}, ConfigError, "bounds: must be the ends of an interval of numbers"),
        (CLASSIFIER, ONE * 4, [0, 1] * 2, {"bounds": (0, 1)}, ConfigError, "interval of numbers, not of classes"),
    ],
)
def test_bad_input(kind, bags, y, options, error, said):
    with pytest.raises(error, match=said):
        kind[0](MomentEmbedding(), kind[1], **options).fit(bags, y)


def test_equal_vectors_have_scale_one():
    model = MultinomialLogistic(l2=[1.0], random_state=0).fit(np.ones((10, 2)), [0, 1] * 5)
    assert model.scale_ == 1.0


def test_columns_of_bags_are_matched_by_name():
    rng = np.random.default_rng(0)
    bags = [pd.DataFrame(rng.normal(m, [1, 2, 3], (20, 3)), columns=list("abc")) for m in np.linspace(0, 3, 30)]
    learner = EmbeddingRegressor(RandomFourierEmbedding(16), LinearRidge(), random_state=0)
    model = learner.fit(bags, np.linspace(0, 1, 30))
    np.testing.assert_allclose(model.predict([b[list("cab")] for b in bags]), model.predict(bags), rtol=1e-6)
    with pytest.raises(DataError, match="columns that were learned from are missing: b"):
        model.predict([b[["a", "c"]] for b in bags])
