"""Estimates, verdicts and information against plain arithmetic: samples of unequal size, several axes, rates that are not even."""

import math

import numpy as np
import pytest
from scipy import stats

from agglearn.evaluation import calibration_error, entropy, normalized_log_likelihood
from agglearn.evaluation.information import bucketing_bound, mutual_information, predictive_information
from agglearn.evaluation.interactions import pair_interactions
from agglearn.evaluation.intervals import Estimate, mean_interval
from agglearn.evaluation.verdicts import FAILS, HOLDS, UNDECIDED, Comparison, Region

LONG, SHORT = [0.3, 0.1, 0.9, 0.4, 0.2], [5.0, 2.0, 9.0]


def spread(values: list[float]) -> float:
    """Variance with n − 1."""
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / (len(values) - 1)


@pytest.mark.parametrize("overlap", [0.0, 0.25])
def test_a_difference_of_two_samples(overlap):
    """Welch: variances of the means add up; both samples have the overlap, the smaller one has n."""
    u, v = spread(LONG) * (1 / 5 + overlap), spread(SHORT) * (1 / 3 + overlap)
    found = Estimate.of_difference(LONG, SHORT, overlap)
    assert found.value == pytest.approx(0.38 - 16 / 3)
    assert found.error == pytest.approx(math.sqrt(u + v))
    assert found.df == pytest.approx((u + v) ** 2 / (u**2 / 4 + v**2 / 2))
    assert found.n == 3
    low, high = found.interval(0.9)
    half = stats.t(found.df).ppf(0.95) * found.error
    assert (low, high) == pytest.approx((found.value - half, found.value + half))


def test_estimates_have_the_shape_of_the_leading_axes():
    values = np.array(
        [[LONG, [v + 1 for v in LONG]], [[2 * v for v in LONG], [0.5] * 5], [LONG[::-1], [-v for v in LONG]]]
    )
    found = Estimate.of_mean(values)
    error = math.sqrt(spread(LONG) / 5)
    np.testing.assert_allclose(found.value, [[0.38, 1.38], [0.76, 0.5], [0.38, -0.38]])
    np.testing.assert_allclose(found.error, [[error, error], [2 * error, np.nan], [error, error]])
    assert (found.df == 4).all()
    assert found.n == 5


@pytest.mark.parametrize("overlap", [0.0, 0.25])
def test_values_that_are_no_numbers_are_left_out_of_an_interval(overlap):
    mean, low, high = mean_interval([*SHORT, math.nan, math.inf], overlap=overlap)
    half = stats.t(2).ppf(0.975) * math.sqrt(spread(SHORT) * (1 / 3 + overlap))
    assert (mean, low, high) == pytest.approx((16 / 3, 16 / 3 - half, 16 / 3 + half))


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (1.0, 2.0, HOLDS), (0.9, 2.0, UNDECIDED), (1.0, 2.1, UNDECIDED), (0.0, 1.0, FAILS), (2.0, 3.0, FAILS),
        (0.0, 1.01, UNDECIDED), (1.99, 3.0, UNDECIDED),
    ],
)  # fmt: skip
def test_an_interval_that_touches_a_bound(low, high, outcome):
    assert Comparison.by_interval(1.5, low, high, Region(1.0, 2.0)).outcome == outcome


@pytest.mark.parametrize(
    ("strict", "inside"), [(False, [False, True, True, True, False]), (True, [False, False, True, False, False])]
)
def test_a_region_at_its_bounds(strict, inside):
    assert Region(1.0, 2.0, strict).contains([0.99, 1, 1.5, 2, 2.01]).tolist() == inside


def test_calibration_of_groups_with_ties():
    """Eleven records in three groups, by the rank of the first of equal predictions: .1 four times, .3 five times, and two."""
    p = np.array([0.9, 0.3, 0.1, 0.3, 0.1, 0.3, 0.1, 0.3, 0.1, 0.3, 0.6])
    y = np.array([1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0])
    # ranks 0 (four), 4 (five), 9, 10; times 3/11: groups 0, 1, 2, 2
    expected = (abs(1 - 0.4) + abs(3 - 1.5) + abs(1 - 1.5)) / 11
    assert calibration_error(y, p, bins=3) == pytest.approx(expected)


def test_information_by_hand():
    counts, sums = np.array([6.0, 3.0, 1.0]), np.array([1.0, 2.0, 1.0])
    terms = [(c / 10) * math.log((c / n) / 0.4) if c else 0 for n, c in zip(counts, sums, strict=True)]
    terms += [((n - c) / 10) * math.log((1 - c / n) / 0.6) if n > c else 0 for n, c in zip(counts, sums, strict=True)]
    assert mutual_information(counts, sums) == pytest.approx(sum(terms))
    rates, base = [0.2, 0.5, 0.7], 0.3
    gains = [
        c * math.log(q / base) + (n - c) * math.log((1 - q) / (1 - base))
        for n, c, q in zip(counts, sums, rates, strict=True)
    ]
    assert predictive_information(counts, sums, np.array(rates), base) == pytest.approx(sum(gains) / 10)


@pytest.mark.parametrize("base", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("buckets", [1, 3, 4])
def test_bound_of_bucketing_by_a_fine_grid(buckets, base):
    """The largest change of the divergence from the base rate within one of the intervals, between any two points of it."""
    worst = 0.0
    for k in range(buckets):
        q = np.append(np.linspace(k / buckets, (k + 1) / buckets, 2001), base)
        q = q[(q >= k / buckets) & (q <= (k + 1) / buckets)]
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.nan_to_num(q * np.log(q / base)) + np.nan_to_num((1 - q) * np.log((1 - q) / (1 - base)))
        worst = max(worst, np.ptp(f))
    assert bucketing_bound(buckets, base) == pytest.approx(worst, rel=1e-9)


def test_interactions_are_blocks_without_their_means():
    """So they do not depend on the gauge: what is moved between rows or columns of a block and single weights."""
    sizes, at = np.array([2, 3, 4]), [0, 2, 5, 9]
    weights = np.random.default_rng(0).normal(size=(9, 9))
    blocks = [weights[at[i] : at[i + 1], at[j] : at[j + 1]] for i, j in ((0, 1), (0, 2), (1, 2))]
    expected = [b - b.mean(axis=0) - b.mean(axis=1, keepdims=True) + b.mean() for b in blocks]
    symmetric = np.triu(weights) + np.triu(weights, 1).T
    np.testing.assert_allclose(pair_interactions(symmetric, sizes), np.concatenate([b.ravel() for b in expected]))
    assert len(pair_interactions(symmetric[:2, :2], np.array([2]))) == 0


# -- metrics ----------------------------------------------------------------------------------------------------------

Y = np.array([1, 0, 0, 1, 0, 0, 0, 1])


def test_nllh_of_base_rate_oracle_and_worse():
    assert normalized_log_likelihood(Y, np.full(8, 3 / 8)) == pytest.approx(0, abs=1e-12)
    assert normalized_log_likelihood(Y, Y.astype(float)) == pytest.approx(1, abs=1e-12)
    assert normalized_log_likelihood(Y, np.full(8, 0.5)) == pytest.approx(1 - np.log(2) / entropy(3 / 8))
    assert normalized_log_likelihood(Y, 1.0 - Y) < -20
    assert np.isfinite(normalized_log_likelihood(Y, 1.0 - Y))
    assert np.isnan(normalized_log_likelihood(np.ones(3), np.full(3, 0.5)))


def test_entropy():
    assert entropy(0.5) == pytest.approx(np.log(2))
    assert entropy(0) == entropy(1) == 0
    assert entropy(0.2) == entropy(0.8) == pytest.approx(-0.2 * np.log(0.2) - 0.8 * np.log(0.8))
