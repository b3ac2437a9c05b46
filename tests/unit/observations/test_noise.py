"""Seeded Gaussian noise on tables: its law, where it is, and that learners take it."""

import math

import numpy as np
import pytest
from samples import people

from agglearn.errors import ConfigError, DataError
from agglearn.maxent import BestPairClassifier, MaxEntClassifier, NaiveBayesClassifier
from agglearn.observations import ContingencyTables, with_gaussian_noise
from agglearn.observations.gaussian_noise import promised_epsilon
from agglearn.privacy import gaussian_delta


@pytest.fixture(scope="module")
def tables() -> ContingencyTables:
    return ContingencyTables.from_records(people(4000), "y", categorical=["zone", "age"])


def differences(noisy, tables, keys=None):
    """Noise on counts and on label sums, over all cells."""
    pairs = [(noisy.dense(*k), tables.dense(*k)) for k in keys or tables.tables]
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
    noisy = with_gaussian_noise(tables, 2.0, seed=0)
    for part in differences(noisy, tables):
        assert (part != 0).all()
    assert all(len(t.cells) == math.prod(t.shape) for t in noisy.tables.values())
    assert noisy.total != tables.total
    assert noisy.positives != tables.positives
    assert not noisy.noise.private
    assert (noisy.noise.mechanism, noisy.noise.scale) == ("gaussian", 2.0)


def test_seeds_and_tables_have_noise_of_their_own(tables):
    first, again, other = (with_gaussian_noise(tables, 2.0, seed) for seed in (1, 1, 2))
    assert first.digest == again.digest != other.digest
    assert not np.isin(differences(first, tables)[0], differences(other, tables)[0]).any()
    a, b = (differences(first, tables, [(i,)])[0][:3] for i in (1, 2))
    assert not np.isin(a, b).any()
    fewer = with_gaussian_noise(tables.select(["age", "job"]), 2.0, seed=1)
    assert (fewer.dense(0, 1)[0] == first.dense(0, 1)[0]).all()


def test_hashed_crosses_have_noise_in_every_bucket():
    hashed = ContingencyTables.from_records(people(), "y", cross_buckets=12)
    noisy = with_gaussian_noise(hashed, 1.0, 0)
    assert {noisy.tables[k].shape for k in noisy.hashed_pairs} == {(12,)}
    assert len(noisy.tables[(0, 1)].cells) == 12


def test_saved_and_loaded(tables, tmp_path):
    noisy = with_gaussian_noise(tables, 17.0, 0)
    noisy.save(tmp_path)
    assert ContingencyTables.load(tmp_path).digest == noisy.digest
    assert ContingencyTables.load(tmp_path).noise == noisy.noise


@pytest.mark.parametrize("kind", [MaxEntClassifier, NaiveBayesClassifier, BestPairClassifier])
def test_learners_take_noisy_tables(tables, kind):
    noisy = with_gaussian_noise(tables, 17.0, 0)
    assert min(t.counts.min() for t in noisy.tables.values()) < 0
    quick = {"n_chains": 1000, "max_iter": 60} if kind is MaxEntClassifier else {}
    frame = people(500, seed=9)
    clear, blurred = (kind(random_state=0, **quick).fit(t).predict_proba(frame)[:, 1] for t in (tables, noisy))
    assert np.isfinite(blurred).all()
    assert (blurred != clear).any()
    if kind is not BestPairClassifier:  # which noise may lead to another pair
        assert np.corrcoef(clear, blurred)[0, 1] > 0.3


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


def test_noise_and_hashing_of_an_experiment():
    """`gaussian_noise` and `hashed` of an observation."""
    from agglearn.datasets.simulated import LogLinear
    from agglearn.observations import Records
    from agglearn.tasks import Classification, TaskInput

    params = {"n_features": 3, "n_modalities": 4, "n": 3000}
    source = TaskInput("loglinear", {}, params, LogLinear(**params).draw(0))
    how = {"hashed": {"x1": 2}}
    clear, blurred, again, other = (
        Classification().observe(source, ContingencyTables, {**how, **noise}, seed)[0]
        for noise, seed in (
            ({}, 0),
            ({"gaussian_noise": 5.0}, 0),
            ({"gaussian_noise": 5.0}, 0),
            ({"gaussian_noise": 5.0}, 1),
        )
    )
    assert clear.encoder.features[0].size == 2
    assert clear.noise is None
    assert blurred.noise.scale == 5.0
    assert blurred.digest == again.digest != other.digest
    assert Classification().observe(source, Records, how, 0)[0].encoder == clear.encoder
    with pytest.raises(ConfigError, match=r"takes no 'laplace'.*; it takes adjacency, binning"):
        Classification().observe(source, ContingencyTables, {"laplace": 1}, 0)
