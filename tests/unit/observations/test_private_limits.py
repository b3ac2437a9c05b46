"""Promises of private releases that would protect nobody are refused, and what is promised stands in words.

An observation that anyone builds from parts keeps the limits that its noise is calibrated for, or is refused.
"""

import itertools
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from samples import PEOPLE_SCHEMA, people

from agglearn.datasets.simulated import LogLinear
from agglearn.encoding import FrameEncoder, Schema
from agglearn.errors import ConfigError, DataError, PrivacyWarning
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, Halves, LabelSums
from agglearn.observations.halves import toss_coins
from agglearn.observations.release import release_bag_counts, release_flow_counts, release_tables
from agglearn.privacy import Mechanism, analytic_gaussian_scale, calibrate, draw_seeded
from agglearn.privacy.calibration import LEAST_DELTA, discrete_gaussian_scales
from agglearn.tasks import Classification, TaskInput

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


def spec_of(noisy):
    return noisy.privacy if isinstance(noisy, FlowCounts) else noisy.noise


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
    assert spec_of(released[kind](1.0, 1e-30)).private


def test_discrete_noise_is_never_far_below_continuous_noise():
    """At δ = 1e-100 it was: .9 of it, as the accountant does not see tails of probability 1e-32."""
    for epsilon in (0.1, 1.0):
        discrete = discrete_gaussian_scales([1.0, 1.0], [1, 1], epsilon, LEAST_DELTA)[0]
        assert discrete == pytest.approx(analytic_gaussian_scale(math.sqrt(2), epsilon, LEAST_DELTA), rel=2e-3)


def test_noise_on_the_number_of_records_does_not_let_a_large_delta_through(released, monkeypatch):
    """The number may be noise alone, often below 1, or its noise below minus four standard deviations, 3 times in 100,000."""
    for _ in range(20):
        with pytest.raises(ConfigError, match="delta"):
            released["tables"](0.01, 0.3)

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


@pytest.mark.parametrize("kind", KINDS)
def test_the_promise_in_words(released, kind, tmp_path):
    spec = spec_of(released[kind](1.0, 1e-6))
    assert spec.private
    assert "at most 2.72 times as likely" in spec.meaning
    assert "1e-06 (delta)" in spec.meaning
    change = "one record as without it" if spec.adjacency == "record" else "one label of a record as with the other"
    assert change in spec.meaning
    spec.save(tmp_path)
    assert type(spec).load(tmp_path) == spec
    with pytest.warns(PrivacyWarning):
        large = [released[kind](epsilon, 1e-6, allow_large_epsilon=True) for epsilon in (12.0, 1e6)]
    for noisy, said in zip(large, ("162,755 times", "at most e^1e+06 times as likely"), strict=True):
        assert said in spec_of(noisy).meaning
    assert spec_of(released[kind](1.0, 1e-6, draw=draw_seeded(0))).meaning.startswith("Not private: ")


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
    params = {"n_features": 2, "n_modalities": 3, "n": 400}
    source = TaskInput("loglinear", {}, params, LogLinear(**params).draw(0))
    sizes = [Classification().observe(source, Halves, {"of": "tables"}, seed)[0].first.total for seed in range(12)]
    assert len(set(sizes)) > 3  # of halves of fixed sizes there would be one


def test_rounding_of_weighted_sums_is_accounted_for():
    """Sums of neighbours may differ by more than their exact values do: by no more than the sensitivity allows."""
    rng = np.random.default_rng(1)
    n = 2000
    x, w = rng.random((n, 1)), np.where(np.arange(n) == 0, 1e-12, 1e6 * rng.random(n))
    y = np.ones(n)
    sums = LabelSums.from_records(x, y, bounds=(0, 1), weights=w, intercept=False)
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x[:, 0], w, strict=True))
    error = abs(Fraction(float(sums.sums[0])) - exact)
    assert 0 < 2 * error <= sums._rounding(1)
    assert sums._rounding(1) == pytest.approx(2 * n * 2.0**-53 * float(x[:, 0] @ w), rel=1e-6)
    whole = LabelSums.from_records(np.ones((n, 1)), y, bounds=(0, 1), weights=np.full(n, 3.0))
    assert whole._rounding(2) == 0.0


# -- observations from parts --------------------------------------------------------------------------------------------

SCHEMA = "{{reviewed: true, one_row_per_person: true, label: {{column: y, positive: 1, negative: 0}}, features: {{x: {{values: [{}]}}}}}}"
RECORDS = pd.DataFrame({"x": [1, 2, 3, 1, 2, 1], "y": [1, 0, 1, 0, 1, 0]})
TABLES = ContingencyTables.from_records(RECORDS, schema=Schema.parse(SCHEMA.format("1, 2, 3")))
NARROW = LabelSums.from_records(np.array([[0.5, 1.0], [0.25, 0.0]]), [1, 0], bounds=(0, 1))
WIDE = LabelSums.from_records(np.array([[50.0, 99.0], [25.0, 3.0], [1.0, 2.0]]), [1, 0, 1], bounds=(0, 100))
BAGGED = pd.DataFrame({"x": ["a", "b", "c", "a", "b"], "z": ["a", "b", "a", "a", "b"]})
BAGS = CountedBags(
    FrameEncoder.fit(BAGGED), BAGGED, np.array([4, 0, 2]), np.array([0, 2, 3]), np.array([[1, 1], [0, 1]])
)


def test_features_beyond_the_declared_bounds_are_not_released():
    """With the sensitivity that the bounds declare, noise was 78 times too small."""
    parts = [Halves(NARROW, WIDE).combined, replace(NARROW, frame=WIDE.frame), replace(WIDE, map=NARROW.map)]
    for sums in parts:
        for of in ("declared", "coordinates"):
            with pytest.raises(DataError, match=r"^column 'x0': row \d holds .*, outside the declared 0 to 1"):
                sums.private(1, 1e-6, sensitivity=of, draw=draw_seeded(0))
    Halves(WIDE, NARROW).combined.private(1, 1e-6, draw=draw_seeded(0))


def test_halves_of_one_noise_and_one_encoder():
    noisy = TABLES.private(1, 1e-6, draw=draw_seeded(0))
    private = [replace(noisy, noise=replace(noisy.noise, private=True, epsilon=epsilon)) for epsilon in (1, 2)]
    for pair in ((noisy, TABLES), (TABLES, noisy), (noisy, private[0]), (private[0], private[1])):
        with pytest.raises(DataError, match=r"^halves: with other noise"):
            Halves(*pair)
    fewer = ContingencyTables.from_records(RECORDS, schema=Schema.parse(SCHEMA.format("1, 2")))
    with pytest.raises(DataError, match=r"^halves: of other features, values or pairs"):
        Halves(TABLES, fewer)


@pytest.mark.parametrize("rows", [[4, 0, 4], [4, 0, 5], [4, -1, 2], [0, 0, 0]])
def test_a_record_is_in_one_bag(rows):
    """In two bags one label changes two numbers, and noise is for one."""
    with pytest.raises(DataError, match=r"^rows: each must be one of the 5 records, and in one bag"):
        replace(BAGS, rows=np.array(rows))


@pytest.mark.parametrize("counts", [[[7, 7], [0, 7]], [[2, 1], [0, 1]], [[3, -1], [0, 1]]])
def test_counts_of_bags_are_numbers_of_their_records(counts):
    with pytest.raises(DataError, match=r"^counts: must be numbers of records"):
        replace(BAGS, counts=np.array(counts))


def test_categories_of_rows_that_are_not_there_are_not_saved(tmp_path):
    kinds = pd.CategoricalDtype(["a", "b", "c", "of_another_row"])
    released = release_bag_counts(replace(BAGS, frame=BAGGED.astype(kinds)), 1, draw=draw_seeded(0))
    released.save(tmp_path)
    assert b"of_another_row" not in (tmp_path / "frame.parquet").read_bytes()
    assert CountedBags.load(tmp_path).frame.astype(str).equals(BAGGED)


def test_flows_without_a_table_have_nothing_to_release():
    empty = FlowCounts(node_counts=np.zeros((0, 3)), noise="exact")
    assert release_flow_counts(empty, 1, draw=draw_seeded(0)).node_counts.shape == (0, 3)


@pytest.mark.parametrize("mechanism", ["gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("epsilon", [9e-7, 1e-15, 5e-324])
def test_an_epsilon_too_small_to_compute_with(mechanism, epsilon):
    """At ε = 1e-15 and δ = 1e-20 the least σ had a δ of 1.4e-16."""
    with pytest.raises(ConfigError, match=r"^epsilon: .* is below 1e-06, too small to compute with"):
        calibrate(mechanism, epsilon, 1e-20, 1, 1)


def test_a_discrete_gaussian_too_wide_to_compute():
    """Its calibration would take hours and all memory."""
    for compute in (
        lambda: calibrate("discrete_gaussian", 1e-6, 1e-9, 1, 1, changes=[1]),
        lambda: Mechanism("discrete_gaussian", 1e12).variance,
    ):
        with pytest.raises(ConfigError, match=r"^discrete_gaussian noise of scale .* \(up to 100,000\); use gaussian"):
            compute()
