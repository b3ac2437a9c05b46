"""Hashed crosses: cells that share a weight, against enumeration and against an explicit hashed encoding."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from test_maxent_model import state_probabilities

from agglearn.maxent import LogisticSkyline, MaxEntClassifier
from agglearn.maxent.exact import Enumeration
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables, Records
from agglearn.observations.counting import buckets_of

BUCKETS = 5  # for tables of 6, 8 and 12 cells


@pytest.fixture(scope="module")
def hashed(records):
    return ContingencyTables.from_records(records, "label", cross_buckets=BUCKETS)


def statistics(tables) -> tuple[np.ndarray, np.ndarray]:
    """All tables' counts and label sums in one row each."""
    d, c = zip(*((a.ravel(), b.ravel()) for a, b in (tables.dense(*k) for k in tables.tables)), strict=True)
    return np.concatenate(d), np.concatenate(c)


def test_hashed_aggregates_are_aggregates_of_the_hashed_encoding(tables, hashed):
    buckets = WeightIndex.from_tables(hashed)
    assert len(buckets.d) == 2 + 3 + 4 + 3 * BUCKETS
    for found, exact in zip(statistics(hashed), statistics(tables), strict=True):
        np.testing.assert_array_equal(buckets.fold(exact), found)


def objective(tables, hashed, expand, fold, v, l2=(1.0, 16.0)) -> tuple[float, np.ndarray]:
    """Penalised loss of (μ, θ) over buckets, by enumeration of all states, and its gradient (lemma 2 for φ_H)."""
    exact, (d, c) = Enumeration.from_tables(tables), statistics(hashed)
    mu, theta = np.split(v, 2)
    cells = expand(mu), expand(theta)
    loss = exact.objective(*cells, 0.0, 0.0)[0] + l2[0] * mu @ mu + l2[1] * theta @ theta
    d_hat, c_hat = map(fold, exact.compute_expectations(*cells))
    return loss, np.concatenate([d_hat - d + 2 * l2[0] * mu, c_hat - c + 2 * l2[1] * theta])


def test_gradient_by_enumeration(tables, hashed):
    buckets, rng = WeightIndex.from_tables(hashed), np.random.default_rng(1)
    v, step = rng.normal(size=2 * len(buckets.d)) * 0.3, 1e-4
    at = lambda v: objective(tables, hashed, buckets.expand, buckets.fold, v)  # noqa: E731
    _, gradient = at(v)
    for k in rng.choice(len(v), 12, replace=False):
        up, down = (at(v + s * np.eye(len(v))[k]) for s in (step, -step))
        assert np.isclose(gradient[k], (up[0] - down[0]) / (2 * step), atol=1e-3)


def encoded(frame, encoder) -> np.ndarray:
    """(n, w) φ_H of every record, written down from its definition."""
    codes, sizes = encoder.encode(frame).astype(int), encoder.sizes
    columns = [np.eye(size)[codes[:, i]] for i, size in enumerate(sizes)]
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            cells = codes[:, i] * sizes[j] + codes[:, j]
            columns.append(np.eye(BUCKETS)[buckets_of(cells, BUCKETS)])
    return np.hstack(columns)


def test_skyline_is_the_logistic_regression_on_the_hashed_encoding(records):
    seen = Records.from_records(records, "label")
    model = LogisticSkyline(l2=2.0, tol=1e-13).fit(replace(seen, cross_buckets=BUCKETS))
    phi, y = encoded(records, seen.encoder), records.label.to_numpy()

    def loss(w):
        z = phi @ w[:-1] + w[-1]
        g = expit(z) - y
        return np.sum(np.logaddexp(0, z) - y * z) + 2 * w[:-1] @ w[:-1], np.append(phi.T @ g + 4 * w[:-1], g.sum())

    w = minimize(loss, np.zeros(phi.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-6}).x
    expected = expit(phi @ w[:-1] + w[-1])
    assert np.allclose(model.predict_proba(records)[:, 1], expected, atol=1e-4)
    plain = LogisticSkyline(l2=2.0, tol=1e-13).fit(seen).predict_proba(records)[:, 1]
    assert np.abs(plain - expected).max() > 1e-3


def test_hashing_of_crosses_is_kept_with_the_skyline(records, tmp_path):
    model = LogisticSkyline(l2=2.0).fit(replace(Records.from_records(records, "label"), cross_buckets=BUCKETS))
    model.save(tmp_path)
    assert (LogisticSkyline.load(tmp_path).predict_proba(records) == model.predict_proba(records)).all()


@pytest.mark.slow
def test_training_reaches_the_exact_optimum(tables, hashed, records, good):
    model = MaxEntClassifier(**good, trace_every=100).fit(hashed)
    *_, (step, _, p) = model.staged_predict_proba(records)
    assert step == 400
    assert np.allclose(p, model.predict_proba(records)[:, 1])
    exact, buckets, l2 = Enumeration.from_tables(tables), WeightIndex.from_tables(hashed), (1.0, 4.0)

    def both(v):
        loss, gradient = objective(tables, hashed, buckets.expand, buckets.fold, v, l2)
        return loss / tables.total, gradient / tables.total

    options = {"maxiter": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    v = minimize(both, np.zeros(2 * len(buckets.d)), jac=True, method="L-BFGS-B", options=options).x
    mu, theta = map(buckets.expand, np.split(v, 2))
    law = np.exp(exact.log_joint(mu, theta)).sum(axis=1)
    found = state_probabilities(model, exact)
    assert law @ np.abs(found - exact.label_probability(theta)) < 0.006
    unhashed = exact.label_probability(exact.optimum(*l2)[1])
    assert law @ np.abs(found - unhashed) > 0.02


def test_only_hashed_pairs_and_no_singles(hashed, records):
    """Marginals for the start of the chains come from wherever there are some; else they are even."""
    pairs = {k: t for k, t in hashed.tables.items() if len(k) == 2}
    model = MaxEntClassifier(n_chains=500, max_iter=40, random_state=0).fit(replace(hashed, tables=pairs))
    assert np.isfinite(model.predict_proba(records)).all()
    assert model.l2_theta_ == (0, len(pairs) / 0.2)  # nothing tells of single features: the most cautious λ
