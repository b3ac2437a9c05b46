"""λ of θ from the tables alone: right in order of magnitude where effects are known, strong where there are none."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agglearn.maxent import ExactMaxEntClassifier, MaxEntClassifier
from agglearn.maxent.penalty import log_odds_variance, moment_penalty
from agglearn.observations import ContingencyTables, with_gaussian_noise


def records(n: int, n_features: int, std: float, rate=0.2, seed=0, size=6) -> pd.DataFrame:
    """Independent features whose values have normal effects: log-odds of standard deviation `std`."""
    rng, world = np.random.default_rng(seed), np.random.default_rng(99)
    codes = rng.integers(0, size, (n, n_features))
    effects = world.normal(0, std / np.sqrt(n_features), (n_features, size))
    effects -= effects.mean(axis=1, keepdims=True)
    z = np.log(rate / (1 - rate)) + effects[np.arange(n_features), codes].sum(axis=1)
    frame = pd.DataFrame({f"f{i}": [f"v{c}" for c in codes[:, i]] for i in range(n_features)})
    return frame.assign(label=(rng.random(n) < 1 / (1 + np.exp(-z))).astype(int))


def tables_of(frame: pd.DataFrame) -> ContingencyTables:
    return ContingencyTables.from_records(frame, "label")


@pytest.mark.parametrize("std", [0.4, 0.8])
def test_the_variance_of_the_log_odds_is_found(std):
    tables = tables_of(records(20_000, 12, std))
    effects = np.random.default_rng(99).normal(0, std / np.sqrt(12), (12, 6))
    variance = effects.var(axis=1).sum()
    assert log_odds_variance(tables) == pytest.approx(variance, rel=0.25)


def uneven(n: int, rate: float, seed=0) -> pd.DataFrame:
    """Dependent features of 2, 5, 3 and 4 values, with effects of both signs."""
    rng, sizes = np.random.default_rng(seed), np.array([2, 5, 3, 4])
    codes = ((0.4 * rng.random((n, 1)) + 0.6 * rng.random((n, 4))) * sizes).astype(int)
    z = np.log(rate / (1 - rate)) + codes @ np.array([0.9, -0.5, -0.7, 0.4])
    frame = pd.DataFrame({f"f{i}": [f"v{c}" for c in codes[:, i]] for i in range(4)})
    return frame.assign(label=(rng.random(n) < 1 / (1 + np.exp(-z))).astype(int))


def by_hand(tables: ContingencyTables, variance: float) -> float:
    """s² of the docstring's formula cell by cell, from the tables' counts and the variance of the noise on one cell.

    A feature without a table has the margin of its first pair, whose cells each add their noise.
    """
    n, r = tables.total, tables.positives / tables.total
    v, counts, noise = r * (1 - r), {}, {}
    for i in range(len(tables.names)):
        key = (i,) if (i,) in tables.tables else next(k for k in tables.pairs if i in k)
        d, c = tables.dense(*key)
        if len(key) == 2:
            d, c = (np.array([sum(line) for line in (m if key[0] == i else m.T)]) for m in (d, c))
        counts[i], noise[i] = (d, c), variance * tables.dense(*key)[0].size / len(d)
    energy = trace = error = squares = 0.0
    for i, (d, c) in counts.items():
        for x, y in zip(d, c, strict=True):
            energy += (y - r * x) ** 2 - (noise[i] + r * r * noise[i])
            trace += x - x * x / n
            error += (noise[i] + r * r * noise[i]) ** 2
        for a, x in enumerate(d):
            for b, y in enumerate(d):
                squares += ((x if a == b else 0) - x * y / n) ** 2
    for i, j in tables.pairs:
        both = tables.dense(i, j)[0]
        for a, x in enumerate(counts[i][0]):
            for b, y in enumerate(counts[j][0]):
                squares += 2 * ((both[a, b] - x * y / n) ** 2 - variance)
    modalities = sum(len(d) for d, _ in counts.values())
    spread = max(squares, trace**2 / modalities)
    error = (2 * (v**2 * spread + error)) ** 0.5
    return len(counts) * (energy - v * trace - error) / (v**2 * spread)


@pytest.mark.parametrize("sigma", [0.0, 25.0])
@pytest.mark.parametrize("singles", [True, False])
def test_the_formula_cell_by_cell(sigma, singles):
    tables = ContingencyTables.from_records(uneven(20_000, 0.6), "label")
    if not singles:
        tables = replace(tables, tables={k: t for k, t in tables.tables.items() if len(k) == 2})
    if sigma:
        tables = with_gaussian_noise(tables, sigma, 0)
    assert log_odds_variance(tables) == pytest.approx(by_hand(tables, sigma**2), rel=1e-9)


@pytest.mark.parametrize(("kept", "of_pairs"), [((1, 2), 0.3), ((1,), 0.0), ((2,), 1.0)])
def test_the_prior_has_the_variance_that_the_tables_show(kept, of_pairs):
    """Log-odds of one weight of each of 8 features and 28 pairs, drawn with variance 1/2λ: a share is that of pairs."""
    tables = tables_of(records(20_000, 8, 0.8))
    tables = replace(tables, tables={k: t for k, t in tables.tables.items() if len(k) in kept})
    n = {1: 8, 2: 28}
    drawn = {k: n[k] / (2 * moment_penalty(tables)[k - 1]) for k in kept}
    assert sum(drawn.values()) == pytest.approx(log_odds_variance(tables))
    assert drawn.get(2, 0.0) == pytest.approx(of_pairs * log_odds_variance(tables))


def test_least_variance_of_the_log_odds():
    """Without effects the variance is at least 0.1."""
    assert moment_penalty(tables_of(records(500, 1, 0.0))) == (1 / 0.2, 0.0)
    assert moment_penalty(tables_of(records(500, 4, 0.0))) == pytest.approx((4 / 0.14, 6 / 0.06))


def test_it_is_used_and_kept():
    tables = tables_of(records(500, 3, 1.0))
    model, exact = MaxEntClassifier(200, max_iter=5).fit(tables), ExactMaxEntClassifier().fit(tables)
    assert model.l2_theta_ == exact.l2_theta_ == moment_penalty(tables)
    assert MaxEntClassifier(200, l2_theta=3, max_iter=5).fit(tables).l2_theta_ == (3.0, 3.0)
