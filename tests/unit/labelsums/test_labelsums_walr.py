"""WALR: the optimum of logistic regression, gradients, and what noise does to the objective."""

import numpy as np
import pandas as pd
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
from agglearn.labelsums import BaseRateClassifier, LabelledGradientDescent, SklearnLogistic, WALRClassifier, walr
from agglearn.linear.descent import Descent
from agglearn.linear.sum_logistic import Objective, curvature_at_rate, prior_variance
from agglearn.observations import ContingencyTables, LabelSums, Records
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
    for rate in ({}, {"rate": 1.0}):  # the note's plain learning rate
        full = WALRClassifier("full_batch", max_iter=600, **rate).fit(sums)
        np.testing.assert_allclose(full.coef_, best.coef_, atol=1e-6)
    hybrid = WALRClassifier("hybrid", max_iter=20_000, batch_size=32, random_state=0).fit(sums)
    np.testing.assert_allclose(hybrid.coef_, best.coef_, atol=0.05)


def problem(number=0, n=40, k=4):
    rng = np.random.default_rng(number)
    sums = LabelSums.from_records(rng.normal(size=(n, k - 1)), rng.integers(0, 2, n))
    return Objective(sums.matrix, rng.random(n), sums.sums, rng.random(k)), rng


def test_gradient_and_curvature():
    objective, rng = problem()
    theta = rng.normal(size=4)
    value, gradient = (lambda t, k=k: objective.value_and_gradient(t)[k] for k in (0, 1))
    assert check_grad(value, gradient, theta) < 1e-4
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


def test_sums_beyond_all_labels_are_noticed(records):
    clear = sums_of(records)
    assert not clear.infeasible_coordinates().any()
    noisy = clear.private(0.02, 1e-6, draw=draw_seeded(0))
    assert noisy.infeasible_coordinates().any()
    assert np.isfinite(WALRClassifier().fit(noisy).coef_).all()


def test_curves_and_keeping(records, tmp_path):
    model = WALRClassifier("hybrid", max_iter=50, traced=6, random_state=0).fit(sums_of(records))
    frame = records.frame.iloc[:20]
    stages = list(model.staged_predict_proba(frame))
    assert [s for s, _, _ in stages] == sorted({s for s, _, _ in stages})
    np.testing.assert_allclose(stages[-1][2], model.predict_proba(frame)[:, 1])
    flat = WALRClassifier().fit(LabelSums.from_records(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]))
    flat.save(tmp_path)
    assert Estimator.load(tmp_path).predict_proba(np.ones((3, 2))).shape == (3, 2)
    with pytest.raises(NotAvailable):
        list(flat.staged_predict_proba(np.ones((3, 2))))


BARE = LabelSums.from_records(np.eye(4), [0, 1, 0, 1], intercept=False)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"solver": "adam"}, "solver"), ({"l2": -1}, "l2"), ({"l2": "guess"}, "moments"),
        ({"l2": "moments"}, "intercept"), ({"max_iter": 0}, "max_iter"), ({"batch_size": 0}, "batch_size"),
    ],
)  # fmt: skip
def test_bad_settings(how, said):
    with pytest.raises(ConfigError, match=said):
        WALRClassifier(**how).fit(BARE)


# -- by hand: moments of sums by the written-out Hessian, and the noise of every step ---------------------------------


@pytest.mark.parametrize("centre", [0.0, 3.0])  # columns beside their mean move with the intercept
@pytest.mark.parametrize("noise_scale", [0.0, 30.0])
def test_moments_of_sums_by_the_written_out_hessian(noise_scale, centre):
    rng, n = np.random.default_rng(3), 400
    x = np.column_stack([rng.normal(centre, 1, size=(n, 4)), np.ones(n)])
    y = rng.random(n) < expit((x[:, :4] - centre) @ [0.8, -0.6, 0.5, 0.7] - 0.5)
    sums = x.T @ y + rng.normal(0, noise_scale, 5)
    rate, beside = sums[-1] / n, x[:, :4] - x[:, :4].mean(axis=0)
    hessian = rate * (1 - rate) * beside.T @ beside  # of the coefficients, which alone have a prior
    variance = np.diag(hessian) + noise_scale**2
    gap = (sums - rate * x.sum(axis=0))[:-1]
    expected = (gap**2 / variance - 1).sum() / ((hessian**2).sum(axis=1) / variance).sum()
    matrix = sparse.csr_array(x)
    np.testing.assert_allclose(curvature_at_rate(matrix, sums), [*np.diag(hessian), 0], atol=1e-9)
    assert prior_variance(matrix, sums, noise_scale, probes=3000) == pytest.approx(expected, rel=0.02)


def test_every_step_has_noise_of_its_own(records, monkeypatch):
    """T releases with σ√T are one Gaussian release with σ."""
    right = {}

    class Kept(walr.Descent):
        def run(self, rng):
            right["side"] = self.label_term
            return super().run(rng)

    monkeypatch.setattr(walr, "Descent", Kept)
    model = LabelledGradientDescent("noise_per_step", 1.0, 1e-5, max_iter=100, traced=2).fit(records)
    mapped = FeatureMap.fit("onehot", records.encoder, records.frame)
    exact = mapped.matrix(records.frame).T @ records.y
    noise = np.array([len(records.y) * right["side"](t, None) - exact for t in range(300)])
    assert len(np.unique(noise.round(6), axis=0)) == 300
    once = analytic_gaussian_scale(np.sqrt(mapped.largest(2)), 1.0, 1e-5)
    assert noise.std() == pytest.approx(once * 10, rel=0.05)
    assert model.gradient_errors_[-1, 1] == pytest.approx(np.sqrt(len(exact)) * once * 10 / len(records.y))
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.05


def test_the_penalty_by_moments_is_that_of_a_fraction_of_the_variance_and_gradients_err_by_the_noise(records):
    noisy = sums_of(records).private(3.0, 1e-3, draw=draw_seeded(0))
    model = WALRClassifier(l2="moments").fit(noisy)
    assert model.l2_ == pytest.approx(1 / (0.6 * prior_variance(noisy.matrix, noisy.sums, noisy.noise_scale)))
    model = WALRClassifier("full_batch", max_iter=5, traced=5).fit(noisy)
    error = np.sqrt(len(noisy.names)) * noisy.noise.scale / 1500
    np.testing.assert_allclose(model.gradient_errors_[:, 1], error)


def test_the_base_rate_is_that_of_all_records():
    frame = pd.DataFrame({"a": list("uvw" * 7 + "uu"), "y": [1] * 7 + [0] * 16})
    model = BaseRateClassifier().fit(ContingencyTables.from_records(frame, "y"))
    assert model.rate_ == 7 / 23
    assert model.predict_proba(frame)[:, 1].tolist() == [7 / 23] * 23
