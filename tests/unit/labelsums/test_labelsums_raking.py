"""Raked weights: exact tables are matched, an independent solver, one margin in closed form, and which cells count."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import LinearConstraint, minimize
from scipy.special import expit

from agglearn.labelsums.raking import Margins
from agglearn.observations import ContingencyTables, NoiseSpec


def world(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (n, 2))
    frame = pd.DataFrame({f"f{i}": pd.Series(codes[:, i]).map("v{}".format) for i in range(2)})
    return frame.assign(label=(rng.random(n) < expit(codes[:, 0] - 1)).astype(int))


TABLES = ContingencyTables.from_records(world(2000, 0), "label")


def margins_of(tables: ContingencyTables, frame: pd.DataFrame) -> Margins:
    return Margins.of(tables, tables.encoder.encode(frame), frame["label"].to_numpy(float))


def test_without_tolerance_the_sample_has_the_tables():
    few = world(60, 1)
    margins = margins_of(TABLES, few)
    weights = margins._replace(variances=np.zeros(12)).weights(tol=1e-10)
    assert weights.mean() == pytest.approx(1)
    for i, name in enumerate(("f0", "f1")):
        counts, sums = TABLES.dense(i)
        for value, count, positives in zip(("v0", "v1", "v2"), counts, sums, strict=True):
            has = few[name] == value
            assert (weights * has).mean() == pytest.approx(count / 2000, abs=1e-7)
            assert (weights * has * few["label"]).mean() == pytest.approx(positives / 2000, abs=1e-7)


@pytest.mark.parametrize("exact", [True, False])
def test_weights_are_those_of_an_independent_solver(exact):
    few, rng = world(60, 1), np.random.default_rng(2)
    margins = margins_of(TABLES, few)
    margins = margins._replace(variances=np.zeros(12) if exact else rng.uniform(1e-4, 1e-2, 12))
    x, t, v = margins.x.toarray(), margins.targets, margins.variances

    def objective(w):
        entropy = np.sum(w * np.log(np.maximum(w, 1e-300)))
        return entropy if exact else entropy + np.sum((x.T @ w / 60 - t) ** 2 / v) / 2

    free = [0, 1, 3, 4, 5, 6, 7, 9, 10] if exact else []  # the others are sums of these
    bound = [1, *t[free]]
    matched = LinearConstraint(np.vstack([np.ones(60), *x.T[free]]) / 60, bound, bound)
    how = {"bounds": [(1e-9, None)] * 60, "constraints": [matched], "options": {"ftol": 1e-14, "maxiter": 1000}}
    found = minimize(objective, np.ones(60), method="SLSQP", **how)
    np.testing.assert_allclose(margins.weights(tol=1e-9), found.x, atol=2e-4)


def test_one_margin_in_closed_form():
    """Of 10 rows 2 have x; half is the target. Without tolerance these have weight 5·½, the others ½ of 10/8."""
    x = sparse.csr_array((np.arange(10) < 2).astype(float)[:, None])
    weights = lambda variance: Margins(x, np.array([0.5]), np.array([variance])).weights(1e-10)  # noqa: E731
    np.testing.assert_allclose(weights(0.0), [2.5] * 2 + [0.625] * 8, rtol=1e-6)
    for variance in (1e-3, 0.1):
        p = weights(variance)[:2].sum() / 10
        # the derivative of n·(p ln(p/.2) + (1 − p) ln((1 − p)/.8)) + (p − ½)²/2v is 0
        assert 10 * np.log(p / 0.2 * 0.8 / (1 - p)) + (p - 0.5) / variance == pytest.approx(0, abs=1e-5)
    np.testing.assert_allclose(weights(1e9), 1)


def test_targets_vary_by_the_noise_and_as_fractions_do():
    noisy = replace(TABLES, noise=NoiseSpec("gaussian", 40.0, 1.0, 1e-6, scales=None))
    exact, margins = margins_of(TABLES, world(30, 1)), margins_of(noisy, world(30, 1))
    counts, sums = TABLES.dense(0)
    fractions = np.concatenate([counts, sums]) / 2000
    np.testing.assert_allclose(exact.targets[:6], fractions)
    np.testing.assert_allclose(exact.variances[:6], fractions * (1 - fractions) / 2000)
    np.testing.assert_allclose(margins.variances - exact.variances, np.full(12, 40.0**2 / 2000**2))


def test_what_the_tables_hide_or_the_sample_lacks_is_no_margin():
    hiding = replace(TABLES, noise=NoiseSpec("gaussian", 0.0, 0.0, threshold=5.0))
    table = TABLES.tables[0,]
    hiding = replace(hiding, tables=TABLES.tables | {(0,): table.select(np.array([True, False, True]))})
    margins = margins_of(hiding, world(30, 1))
    assert margins.x.shape == (30, 10)
    few = world(30, 1).query("f0 != 'v2'")
    assert np.isfinite(margins_of(TABLES, few).weights()).all()
    pairs = replace(TABLES, tables={k: t for k, t in TABLES.tables.items() if len(k) == 2})
    assert margins_of(pairs, few).weights().tolist() == [1.0] * len(few)
    strange = few.assign(f0="new")
    assert margins_of(TABLES, strange).x[:, :6].nnz == 0
