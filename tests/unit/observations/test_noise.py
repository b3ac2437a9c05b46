"""Seeded Gaussian noise on tables: its law, where it is, and that learners take it."""

import math

import numpy as np
import pytest
from samples import people

from agglearn.errors import ConfigError, DataError
from agglearn.observations import ContingencyTables, with_gaussian_noise
from agglearn.observations.gaussian_noise import promised_epsilon
from agglearn.privacy import gaussian_delta


@pytest.fixture(scope="module")
def tables() -> ContingencyTables:
    return ContingencyTables.from_records(people(4000), "y", categorical=["zone", "age"])


def differences(noisy, tables):
    """Noise on counts and on label sums, over all cells."""
    pairs = [(noisy.dense(*k), tables.dense(*k)) for k in tables.tables]
    return [np.concatenate([(a[which] - b[which]).ravel() for a, b in pairs]) for which in (0, 1)]


def check_law(noisy, tables, sigma):
    """z-tests of mean, variance, correlation and kurtosis at about 1e-6."""
    drawn = differences(noisy, tables)
    n = len(drawn[0])
    for z in (part / sigma for part in drawn):
        assert abs(z.mean()) < 5 / math.sqrt(n)
        assert abs(np.mean(z**2) - 1) < 5 * math.sqrt(2 / n)
        assert abs(np.mean(z**4) - 3) < 5 * math.sqrt(96 / n)
    assert abs(np.mean(drawn[0] * drawn[1]) / sigma**2) < 5 / math.sqrt(n)


def test_law(tables):
    noisy = with_gaussian_noise(tables, 17.0, seed=3)
    check_law(noisy, tables, 17.0)
    with pytest.raises(AssertionError):
        check_law(with_gaussian_noise(tables, 20.0, seed=3), tables, 17.0)


def test_every_cell_and_the_totals_have_noise(tables):
    hashed = ContingencyTables.from_records(people(), "y", cross_buckets=12)
    for exact in (tables, hashed):
        noisy = with_gaussian_noise(exact, 2.0, seed=0)
        assert all(len(t.cells) == math.prod(t.shape) for t in noisy.tables.values())
        moved = [np.subtract(table.dense(), exact.tables[key].dense()) for key, table in noisy.tables.items()]
        assert all((abs(part) > 1e-9).all() for part in moved)
        assert noisy.total != exact.total
        assert noisy.positives != exact.positives
        assert (noisy.noise.mechanism, noisy.noise.scale, noisy.noise.private) == ("gaussian", 2.0, False)
    assert {noisy.tables[k].shape for k in noisy.hashed_pairs} == {(12,)}


def test_seeds_and_tables_have_noise_of_their_own(tables):
    first, again, other = (with_gaussian_noise(tables, 2.0, seed) for seed in (1, 1, 2))
    assert first.digest == again.digest != other.digest
    assert not np.isin(differences(first, tables)[0], differences(other, tables)[0]).any()
    fewer = with_gaussian_noise(tables.select(["age", "job"]), 2.0, seed=1)
    assert (fewer.dense(0, 1)[0] == first.dense(0, 1)[0]).all()


def test_promise():
    """3 tables and the totals: Δ² = 8, σ = 20."""
    epsilon = promised_epsilon(20.0, 3, 1e-5)
    assert gaussian_delta(20.0, math.sqrt(8), epsilon) == pytest.approx(1e-5)
    assert promised_epsilon(1e6, 3, 1e-5) == 0.0


def test_totals_stay_possible():
    few = ContingencyTables.from_records(people(20), "y", pairs="none")
    drowned = [with_gaussian_noise(few, 1000.0, seed) for seed in range(20)]
    assert all(0 < t.positives < t.total for t in drowned)


def test_what_cannot_be(tables, monkeypatch):
    for sigma in (-1, math.inf, math.nan):
        with pytest.raises(ConfigError, match="sigma"):
            with_gaussian_noise(tables, sigma, 0)
    assert with_gaussian_noise(tables, 0, 0) is tables
    with pytest.raises(DataError, match="already"):
        with_gaussian_noise(with_gaussian_noise(tables, 1, 0), 1, 0)
    monkeypatch.setattr("agglearn.observations.release.MAX_CELLS", 10)
    with pytest.raises(DataError, match="memory"):
        with_gaussian_noise(tables, 1, 0)
