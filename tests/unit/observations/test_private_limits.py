"""Promises of private releases that would protect nobody are refused, and what is promised stands in words."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from samples import PEOPLE_SCHEMA, people

from agglearn.encoding import FrameEncoder, Schema
from agglearn.errors import ConfigError, DataError, PrivacyWarning
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, LabelSums
from agglearn.observations.halves import toss_coins
from agglearn.observations.release import release_bag_counts, release_flow_counts, release_tables
from agglearn.privacy import analytic_gaussian_scale, draw_seeded
from agglearn.privacy.calibration import LEAST_DELTA, discrete_gaussian_scales

N = 400


@pytest.fixture(scope="module")
def released() -> dict:
    """{what: (ε, δ, more) → its release}, of 400 records each."""
    frame = people(N)
    x, y = frame.drop(columns="y"), frame["y"].to_numpy()
    tables = ContingencyTables.from_records(frame, features=["job", "zone"], schema=Schema.parse(PEOPLE_SCHEMA))
    sums = LabelSums.from_records(np.ones((N, 2)), y, bounds=(0, 1))
    bags = Bags(np.zeros((N, 1)), np.arange(0, N + 1, 20), y.reshape(-1, 20).sum(1))
    counted = CountedBags.from_records(FrameEncoder.fit(x), x, y, 20, np.random.default_rng(0))
    flows = FlowCounts(np.full((3, 8), N / 8), noise="exact", population_size=N)
    gaussian = {"mechanism": "gaussian"}
    return {
        "tables": lambda e, d, **how: release_tables(tables, e, d, **how),
        "labels of tables": lambda e, d, **how: release_tables(tables, e, d, adjacency="label", **how),
        "label sums": lambda e, d, **how: sums.private(e, d, **how),
        "bags": lambda e, d, **how: release_bag_counts(bags, e, d, **gaussian | how),
        "counted bags": lambda e, d, **how: release_bag_counts(counted, e, d, **gaussian | how),
        "flows": lambda e, d, **how: release_flow_counts(flows, e, d, **gaussian | how),
    }


KINDS = ["tables", "labels of tables", "label sums", "bags", "counted bags", "flows"]


@pytest.mark.parametrize("kind", KINDS)
def test_promises_that_protect_nobody_are_refused(released, kind):
    release = released[kind]
    for delta in (1 / N, 0.01, 0.9):
        with pytest.raises(ConfigError, match=r"delta: .* is not below one over the number of records"):
            release(1.0, delta)
    with pytest.raises(ConfigError, match=r"epsilon: 1e\+09 is above 20"):
        release(1e9, 1e-6)
    with pytest.warns(PrivacyWarning, match="epsilon 30 is above 10"):
        release(30.0, 1e-6, allow_large_epsilon=True)
    for epsilon in (12, 20):
        with pytest.warns(PrivacyWarning, match=f"epsilon {epsilon} is above 10"):
            release(epsilon, 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release(10.0, 1e-4)
        release(40.0, 0.01, draw=draw_seeded(0))  # no promise


@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_too_small_to_compute_with_is_refused(released, kind):
    for mechanism, delta in itertools.product(
        ["gaussian", "discrete_gaussian"], [5e-324, 1e-320, 1e-305, 1e-100, 9e-31]
    ):
        with pytest.raises(ConfigError, match=f"^delta: {delta:g} is below 1e-30, too small to compute with"):
            released[kind](1.0, delta, mechanism=mechanism)
    noisy = released[kind](1.0, 1e-30)
    assert (noisy.privacy if kind == "flows" else noisy.noise).private


def test_discrete_noise_is_never_far_below_continuous_noise():
    """At δ = 1e-100 it was: .9 of it, as the accountant does not see tails of probability 1e-32."""
    for epsilon in (0.1, 1.0):
        discrete = discrete_gaussian_scales([1.0, 1.0], [1, 1], epsilon, LEAST_DELTA)[0]
        assert discrete == pytest.approx(analytic_gaussian_scale(math.sqrt(2), epsilon, LEAST_DELTA), rel=2e-3)


def test_noise_that_takes_records_away_does_not_let_a_large_delta_through(released, monkeypatch):
    """Where the number of records is protected, its noise is below minus four standard deviations 3 times in 100,000."""

    def unlucky(mechanism, values, *names):
        return values - 4 * np.sqrt(mechanism.variance)

    monkeypatch.setattr("agglearn.observations.disclosure.draw_private", unlucky)
    with pytest.raises(ConfigError, match="delta"):
        released["tables"](1.0, 1 / N, draw=unlucky)


@pytest.mark.parametrize(("adjacency", "deviations"), [("record", 5), ("label", 0)])
def test_the_largest_delta_by_the_largest_number_of_records(released, adjacency, deviations, monkeypatch):
    """1/(N + 5σ), σ of the noise on N; N itself where it is public. The smallest mistake noticed is 1 %."""
    drawn = {}

    def exact(mechanism, values, *names):
        drawn[names[0] if isinstance(names[0], str) else "cells"] = mechanism
        return values

    monkeypatch.setattr("agglearn.observations.disclosure.draw_private", exact)
    release, delta = released["tables" if adjacency == "record" else "labels of tables"], 1e-4
    for _ in range(30):  # σ falls a little as δ grows
        release(1.0, delta, draw=exact)
        delta = 0.99 / (N + deviations * drawn["totals"].scale)
    release(1.0, delta, draw=exact)
    with pytest.raises(ConfigError, match="delta"):
        release(1.0, delta * 1.02, draw=exact)


def test_little_noise_on_the_number_of_records_does_not_let_a_large_delta_through(released):
    """The number of records is noise alone here, often below 1: it must not be taken for a small data set."""
    for _ in range(20):
        with pytest.raises(ConfigError, match="delta"):
            released["tables"](0.01, 0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_promise_in_words(released, kind, tmp_path):
    noisy = released[kind](1.0, 1e-6)
    spec = noisy.privacy if kind == "flows" else noisy.noise
    assert spec.private
    assert "at most 2.72 times as likely" in spec.meaning
    assert "1e-06 (delta)" in spec.meaning
    change = "one record as without it" if spec.adjacency == "record" else "one label of a record as with the other"
    assert change in spec.meaning
    spec.save(tmp_path)
    again = type(spec).load(tmp_path)
    assert again == spec
    assert again.meaning == spec.meaning
    assert released[kind](1.0, 1e-6, draw=draw_seeded(0)) is not None
    with pytest.warns(PrivacyWarning):
        large = released[kind](12.0, 1e-6)
    assert "162,755 times" in (large.privacy if kind == "flows" else large.noise).meaning


def test_the_largest_promise_in_words(released):
    with pytest.warns(PrivacyWarning):
        spec = released["label sums"](1e6, 1e-6, allow_large_epsilon=True).noise
    assert "at most e^1e+06 times as likely" in spec.meaning


def test_seeded_noise_promises_nothing_in_words(released):
    assert released["tables"](1.0, 1e-6, draw=draw_seeded(0)).noise.meaning.startswith("Not private: ")


def test_an_exact_target_does_not_go_beside_noisy_counts():
    y = np.random.default_rng(0).integers(0, 2, 40)
    counts = y.reshape(-1, 10).sum(1)
    bags = Bags(np.zeros((40, 1)), np.arange(0, 41, 10), counts, target=counts / 10)
    for draw in ({}, {"draw": draw_seeded(0)}):
        with pytest.raises(DataError, match="exact target"):
            release_bag_counts(bags, 1.0, **draw)


def test_every_record_goes_to_a_half_by_a_coin_of_its_own():
    """Sizes vary as those of coins do, and no two records depend on each other, as they do in halves of fixed sizes."""
    n, draws = 40, 4000
    rng = np.random.default_rng(5)
    first = np.array([toss_coins(n, rng) for _ in range(draws)], float)
    assert np.var(first.sum(axis=1)) == pytest.approx(n / 4, rel=6 * math.sqrt(2 / draws))
    together = np.corrcoef(first.T)[np.triu_indices(n, 1)]
    assert abs(together.mean()) < 6 / math.sqrt(draws * len(together))


def test_halves_of_an_experiment_are_made_by_coins():
    from agglearn.datasets.simulated import LogLinear
    from agglearn.observations import Halves
    from agglearn.tasks import Classification, TaskInput

    params = {"n_features": 2, "n_modalities": 3, "n": 400}
    source = TaskInput("loglinear", {}, params, LogLinear(**params).draw(0))
    sizes = [Classification().observe(source, Halves, {"of": "tables"}, seed)[0].first.total for seed in range(12)]
    assert len(set(sizes)) > 3  # of halves of fixed sizes there would be one


def exact_sum(values) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def test_rounding_of_weighted_sums_is_accounted_for():
    """Sums of neighbours may differ by more than their exact values do: by no more than the sensitivity allows."""
    rng = np.random.default_rng(1)
    n = 2000
    x, w = rng.random((n, 1)), np.where(np.arange(n) == 0, 1e-12, 1e6 * rng.random(n))
    y = np.ones(n)
    sums = LabelSums.from_records(x, y, bounds=(0, 1), weights=w, intercept=False)
    error = abs(
        Fraction(float(sums.sums[0]))
        - exact_sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x[:, 0], w, strict=True))
    )
    assert 0 < 2 * error <= sums._rounding(1)
    assert sums._rounding(1) == pytest.approx(2 * n * 2.0**-53 * float(x[:, 0] @ w), rel=1e-6)
    whole = LabelSums.from_records(np.ones((n, 1)), y, bounds=(0, 1), weights=np.full(n, 3.0))
    assert whole._rounding(2) == 0.0
