"""WALR: the optimum of logistic regression, gradients, and what noise does to the objective."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import people
from scipy import sparse
from scipy.optimize import check_grad
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from agglearn.encoding import FeatureMap
from agglearn.errors import ConfigError, NotAvailable
from agglearn.estimator import Estimator
from agglearn.labelsums import LabelledGradientDescent, SklearnLogistic, WALRClassifier
from agglearn.linear.descent import Descent
from agglearn.linear.sum_logistic import Objective, curvature, curvature_at_rate, penalties, prior_variance
from agglearn.observations import LabelSums, Records
from agglearn.privacy import analytic_gaussian_scale, draw_seeded


@pytest.fixture(scope="module")
def records() -> Records:
    return Records.from_records(people(1500), "y", categorical=["zone"])


def sums_of(records, kind="onehot", ranges="features") -> LabelSums:
    mapped = FeatureMap.fit(kind, records.encoder, records.frame, ranges)
    return LabelSums.from_map(mapped, records.frame, records.y)


@pytest.mark.parametrize("kind", ["onehot", "quadratic", "scaled"])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_same_optimum_as_logistic_regression(records, kind, solver):
    ours = WALRClassifier(solver, tol=1e-9, max_iter=2000).fit(sums_of(records, kind))
    theirs = SklearnLogistic(kind, "features", tol=1e-11, max_iter=1000).fit(records)
    limit = 1e-6 if solver == "newton" else 1e-4
    assert ours.coef_names_ == theirs.coef_names_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=limit)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=limit)
    frame = records.frame.iloc[:50]
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(frame), atol=limit)


@given(st.integers(0, 10_000), st.booleans(), st.floats(0.05, 20))
@settings(max_examples=25, deadline=None)
def test_weights_intercept_and_l2(number, intercept, l2):
    rng = np.random.default_rng(number)
    x, w = rng.normal(size=(60, 3)), rng.random(60) + 0.1
    y = (rng.random(60) < 0.4).astype(int)
    y[:2] = 0, 1
    sums = LabelSums.from_records(x, y, weights=w, intercept=intercept)
    ours = WALRClassifier("newton", l2=l2, tol=1e-10).fit(sums)
    theirs = LogisticRegression(C=1 / (2 * l2), fit_intercept=intercept, solver="newton-cg", tol=1e-11, max_iter=1000)
    theirs.fit(x, y, sample_weight=w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-6)
    assert ours.intercept_ == pytest.approx(float(np.ravel(theirs.intercept_)[0]), abs=1e-6)


@pytest.mark.slow
def test_descents_reach_the_same_optimum():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    y = (rng.random(400) < 1 / (1 + np.exp(-x @ [1, -1, 0.5]))).astype(int)
    sums = LabelSums.from_records(x, y)
    best = WALRClassifier("newton", tol=1e-10).fit(sums)
    full = WALRClassifier("full_batch", max_iter=600).fit(sums)
    np.testing.assert_allclose(full.coef_, best.coef_, atol=1e-6)
    noted = WALRClassifier("full_batch", max_iter=600, rate=1.0).fit(sums)  # the note's plain learning rate
    np.testing.assert_allclose(noted.coef_, best.coef_, atol=1e-6)
    hybrid = WALRClassifier("hybrid", max_iter=20_000, batch_size=32, random_state=0).fit(sums)
    np.testing.assert_allclose(hybrid.coef_, best.coef_, atol=0.05)
    again = WALRClassifier("hybrid", max_iter=300, random_state=0).fit(sums)
    same = WALRClassifier("hybrid", max_iter=300, random_state=0).fit(sums)
    assert (again.coef_ == same.coef_).all()


def problem(number=0, n=40, k=4):
    rng = np.random.default_rng(number)
    sums = LabelSums.from_records(rng.normal(size=(n, k - 1)), rng.integers(0, 2, n))
    return Objective(sums.matrix, rng.random(n), sums.sums, rng.random(k)), rng


class WithoutPenalty(Objective):
    """Planted: the penalty's gradient is forgotten."""

    def value_and_gradient(self, theta):
        value, gradient = super().value_and_gradient(theta)
        return value, gradient - 2 * self.penalty * theta


def gradient_gap(objective, theta):
    return check_grad(lambda t: objective.value_and_gradient(t)[0], lambda t: objective.value_and_gradient(t)[1], theta)


def test_gradient_and_curvature():
    objective, rng = problem()
    theta = rng.normal(size=4)
    assert gradient_gap(objective, theta) < 1e-4
    assert gradient_gap(WithoutPenalty(**vars(objective)), theta) > 1e-2
    v, step = rng.normal(size=4), 1e-6
    moved = [objective.value_and_gradient(theta + s * step * v)[1] for s in (1, -1)]
    np.testing.assert_allclose(objective.hessian_product(theta, v), (moved[0] - moved[1]) / (2 * step), rtol=1e-5)
    unit = np.eye(4)
    diagonal = [objective.hessian_product(np.zeros(4), u) @ u for u in unit]
    np.testing.assert_allclose(objective.curvature, diagonal)


@pytest.mark.slow
@pytest.mark.parametrize("hybrid", [True, False])
def test_error_of_mini_batch_gradients_is_what_sampling_shows(hybrid):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300).astype(float)
    sums = LabelSums.from_records(x, y)
    matrix, theta = sums.matrix, rng.normal(size=4)
    everything = sums.sums / 300
    right = (lambda t, rows: everything) if hybrid else (lambda t, rows: matrix[rows].T @ y[rows] / len(rows))
    descent = Descent(matrix, np.ones(300), np.zeros(4), right, 20, None, 1, labels=None if hybrid else y)
    exact = descent._model_term(theta, None) - everything
    drawn = []
    for _ in range(4000):
        rows = rng.integers(300, size=20)
        drawn.append(descent._model_term(theta, rows) - right(0, rows) - exact)
    assert abs(np.mean(drawn, axis=0)).max() < 5 * np.std(drawn) / np.sqrt(4000)  # unbiased
    assert np.sqrt(np.mean(np.sum(np.square(drawn), axis=1))) == pytest.approx(descent.gradient_error(theta), rel=0.05)
    other = Descent(matrix, np.ones(300), np.zeros(4), right, 20, None, 1, labels=y if hybrid else None)
    assert other.gradient_error(theta) != pytest.approx(descent.gradient_error(theta), rel=0.06)


def test_noise_makes_the_objective_unbounded(records):
    """All modalities of a feature add up to one: along θ = (1 on one feature, −1 on another) F is linear, and the noise
    gives it a slope."""
    noisy = sums_of(records).private(1.0, 1e-6, draw=draw_seeded(0))
    x, k = noisy.matrix, len(noisy.names)
    v = np.zeros(k)
    first, second = (f"{name} = " for name in records.encoder.names[:2])
    for j, name in enumerate(noisy.names):
        v[j] = name.startswith(first) - 1.0 * name.startswith(second)
    assert abs(x @ v).max() == 0
    v *= np.sign(noisy.sums @ v)
    free = Objective(x, np.ones(x.shape[0]), noisy.sums, np.zeros(k))
    values = [free.value_and_gradient(t * v)[0] for t in (0, 1e3, 1e6)]
    assert values[0] > values[1] > values[2]
    assert values[2] < -1e6 * abs(noisy.sums @ v) * 0.99 + values[0]
    clear = sums_of(records)
    assert abs(clear.sums @ v) < 1e-9  # without noise F is flat there
    bound = Objective(x, np.ones(x.shape[0]), noisy.sums, WALRClassifier().fit(noisy).penalty_)
    assert bound.value_and_gradient(1e6 * v)[0] > values[0]


def test_sums_beyond_all_labels_are_noticed(records):
    clear = sums_of(records)
    assert not clear.infeasible_coordinates().any()
    noisy = clear.private(0.02, 1e-6, draw=draw_seeded(0))
    assert noisy.infeasible_coordinates().any()
    assert np.isfinite(WALRClassifier().fit(noisy).coef_).all()


def test_penalty_from_noise_needs_no_labels_and_is_the_best_one():
    """λ_j(1 + σ²/h_j) has the least expected excess in its model; half or double of it has more."""
    x = LabelSums.from_records(np.array([[0.0], [2.0], [1.0]]), [0, 1, 1], intercept=False).matrix
    [plain], [found] = (penalties(0.5, curvature(x, np.ones(3)), s, False) for s in (0.0, 3.0))
    h, variance = 5 / 4, 1.0  # ¼ Σ x²; 1/2λ
    assert plain == 0.5
    assert found == pytest.approx(0.5 * (1 + 9 / h))

    def excess(p):  # E[h (θ̂ − θ)²], θ̂ = (hθ + e)/(h + 2p), e of variance h + σ²
        return h * ((2 * p) ** 2 * variance + h + 9) / (h + 2 * p) ** 2

    assert excess(found) < min(excess(found * 0.9), excess(found * 1.1))
    assert excess(found) < excess(plain)


@pytest.mark.parametrize("centre", [0.0, 3.0])  # columns beside their mean move with the intercept
@pytest.mark.parametrize("noise_scale", [0.0, 20.0])
def test_variance_of_coefficients_from_moments(noise_scale, centre):
    """Coefficients of variance τ² drawn again and again: the estimate is right in the mean."""
    rng, tau, found = np.random.default_rng(0), 0.15, []
    x = sparse.csr_array(np.column_stack([rng.normal(centre, 1, size=(3000, 8)), np.ones(3000)]))
    for _ in range(60):
        theta = rng.normal(0, tau, 8)
        p = expit(x @ np.append(theta, -1.0 - centre * theta.sum()))
        sums = x.T @ (rng.random(3000) < p).astype(float) + rng.normal(0, noise_scale, 9)
        found.append(prior_variance(x, sums, noise_scale))
    assert np.mean(found) == pytest.approx(tau**2, rel=0.3)
    blind = [prior_variance(x, x.T @ (rng.random(3000) < 0.3).astype(float), 0.0) for _ in range(10)]
    assert np.mean(blind) < tau**2 / 10


def test_curvature_at_the_rate_is_that_of_the_fit_without_coefficients():
    """What is left of H = Xᵀ r(1 − r) X once the intercept follows."""
    rng = np.random.default_rng(0)
    columns = np.column_stack([rng.normal(2, 1, 50), rng.random(50) < 0.2, np.ones(50)])
    y = (rng.random(50) < 0.3).astype(float)
    found = curvature_at_rate(sparse.csr_array(columns), columns.T @ y)
    h = y.mean() * (1 - y.mean()) * columns.T @ columns
    expected = np.diag(h) - h[:, 2] ** 2 / h[2, 2]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_moments_choose_the_penalty(records):
    noisy = sums_of(records).private(0.2, 1e-6, draw=draw_seeded(0))
    model = WALRClassifier(l2="moments").fit(noisy)
    assert model.l2_ > 0.5
    assert np.isfinite(model.coef_).all()
    with pytest.raises(ConfigError, match="intercept"):
        WALRClassifier(l2="moments").fit(LabelSums.from_records(np.eye(4), [0, 1, 0, 1], intercept=False))
    with pytest.raises(ConfigError, match="moments"):
        WALRClassifier(l2="guess").fit(noisy)


@pytest.mark.slow
def test_noise_awareness_helps(records):
    from agglearn.evaluation import normalized_log_likelihood

    test = people(3000, seed=5)
    scores = []
    for seed in range(6):
        noisy = sums_of(records).private(0.5, 1e-6, draw=draw_seeded(seed))
        models = WALRClassifier().fit(noisy), WALRClassifier(noise_aware=False).fit(noisy)
        scores.append([normalized_log_likelihood(test["y"].to_numpy(), m.predict_proba(test)[:, 1]) for m in models])
    aware, plain = np.mean(scores, axis=0)
    assert aware > plain + 0.02


def test_noise_at_every_step_promises_the_same():
    """T releases with σ√T are one Gaussian release with σ."""
    from agglearn.privacy import gaussian_delta

    frame = people(400)
    records = Records.from_records(frame, "y")
    model = LabelledGradientDescent(
        "noise_per_step", epsilon=1.0, delta=1e-5, max_iter=25, traced=2, random_state=0
    ).fit(records)
    once = analytic_gaussian_scale(np.sqrt(len(records.encoder.features) + 1), 1.0, 1e-5)
    k = len(model.coef_) + 1
    assert model.gradient_errors_[-1, 1] == pytest.approx(np.sqrt(k) * once * 5 / 400)
    assert gaussian_delta(once * 5, np.sqrt(25 * (len(records.encoder.features) + 1)), 1.0) <= 1e-5 * (1 + 1e-9)


def test_curves_and_keeping(records, tmp_path):
    model = WALRClassifier("hybrid", max_iter=50, traced=6, random_state=0).fit(sums_of(records))
    frame = records.frame.iloc[:20]
    stages = list(model.staged_predict_proba(frame))
    assert [s for s, _, _ in stages] == sorted({s for s, _, _ in stages})
    np.testing.assert_allclose(stages[-1][2], model.predict_proba(frame)[:, 1])
    model.save(tmp_path)
    np.testing.assert_array_equal(Estimator.load(tmp_path).predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(NotAvailable):
        list(WALRClassifier().fit(sums_of(records)).staged_predict_proba(frame))
    matrix = LabelSums.from_records(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1])
    flat = WALRClassifier().fit(matrix)
    flat.save(tmp_path / "flat")
    p = Estimator.load(tmp_path / "flat").predict_proba(np.ones((3, 2)))
    assert p.shape == (3, 2)


@pytest.mark.parametrize("how", [{"solver": "adam"}, {"l2": -1}, {"max_iter": 0}, {"batch_size": 0}])
def test_bad_settings(records, how):
    with pytest.raises(ConfigError, match=next(iter(how))):
        WALRClassifier(**how).fit(sums_of(records))
