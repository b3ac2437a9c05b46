"""Each predicate at its bound, by simulation: wrong verdicts are as rare as a 95 % interval allows.

At the bound a claim is neither true nor false by any margin, so that every decided verdict counts as a wrong one. Of 10,000
draws at most 5 % and five standard errors, 6.1 %, may be decided.
"""

import numpy as np
import pytest
from scipy import stats

from agglearn.evaluation.intervals import Estimate, mean_interval
from agglearn.evaluation.verdicts import ALPHA, FAILS, HOLDS, UNDECIDED, Comparison, Region, combine_p_values, holm
from agglearn_workflow.claims.judging import PREDICATES
from agglearn_workflow.claims.samples import slope

DRAWS, MOST = 10_000, 0.061
SIZES = (3, 5, 16)


def decided(p) -> np.ndarray:
    return np.logical_or(*(np.asarray(q) <= ALPHA for q in p))


def normal(name: str, *shape) -> np.ndarray:
    return np.random.default_rng(list(name.encode())).standard_normal((DRAWS, *shape))


def test_an_interval_decides_as_the_two_tests_do():
    """The statement holds where its negation is rejected at half the level, and fails where itself is."""
    rng = np.random.default_rng(0)
    outcomes = []
    for region in (Region(low=0.1), Region(high=0.1, strict=True), Region(-0.3, 0.3)):
        for _ in range(300):
            estimate = Estimate.of_mean(rng.normal(rng.normal(0, 0.5), 0.2, rng.integers(2, 6)))
            false, true = region.p_values(estimate)
            found = Comparison.by_interval(float(estimate.value), *map(float, estimate.interval()), region)
            assert found.outcome == (HOLDS if false <= ALPHA else FAILS if true <= ALPHA else UNDECIDED)
            outcomes.append(found.outcome)
    assert set(outcomes) == {HOLDS, FAILS, UNDECIDED}
    assert Comparison.by_interval(0.2, np.nan, np.nan, Region(low=0.1)).outcome == UNDECIDED


@pytest.mark.parametrize(("region", "outcome"), [(Region(high=0.0), HOLDS), (Region(high=0.0, strict=True), FAILS)])
def test_every_single_value_counts(region, outcome):
    found = Comparison.by_every_value(np.array([-1.0, 0.0]), region)
    assert (found.value, found.low, found.high, found.outcome) == (-0.5, -1.0, 0.0, outcome)


AT_THE_BOUND = {
    # replicates of what the predicate is about, at the bound of the claim, from (draws, n) normal noise
    "less": ({}, lambda e: 0.1 * e),
    "less by a margin": ({"margin": 0.3}, lambda e: -0.3 + 0.1 * e),
    "greater": ({}, lambda e: 0.1 * e),
    "greater with a tolerance": ({"tolerance": 0.3}, lambda e: -0.3 + 0.1 * e),
    "within": ({"tolerance": 0.5}, lambda e: 0.5 + 0.1 * e),
    "within little": ({"tolerance": 0.01}, lambda e: -0.01 + 0.1 * e),
    "at_least": ({"bound": 0.7}, lambda e: 0.7 + 0.1 * e),
    "at_most": ({"bound": 0.7}, lambda e: 0.7 + 0.1 * e),
    "ratio_at_least": ({"bound": 10}, lambda e: np.log(10 * np.exp(0.5 * e))),  # of times, log-normal
    "slope_between": ({"bound": [0.8, 1.2]}, lambda e: e),  # made below
    "earlier": ({}, lambda e: np.round(20 * e)),  # whole steps
}


def test_every_predicate_is_simulated():
    assert {name.partition(" ")[0] for name in AT_THE_BOUND} == set(PREDICATES)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", AT_THE_BOUND)
def test_predicate_at_its_bound(name, n):
    claim, made = AT_THE_BOUND[name]
    predicate = name.partition(" ")[0]
    if predicate == "slope_between":
        x = np.log([1e3, 1e4, 1e5, 1e6])
        replicates = slope(1.2 * x + 0.1 * normal(name, n, 4), x)
    else:
        replicates = made(normal(name, n))
    p = PREDICATES[predicate].region(claim).p_values(Estimate.of_mean(replicates))
    assert decided(p).mean() <= MOST


@pytest.mark.parametrize(("n", "m", "spread"), [(3, 3, 1), (3, 10, 5), (5, 5, 0.1), (4, 16, 3)])
def test_two_samples_at_the_bound(n, m, spread):
    """Sides without pairs, of other sizes and spreads."""
    first, second = normal("first", n), spread * normal("second", m)
    p = Region(low=0.0).p_values(Estimate.of_difference(first, second))
    assert decided(p).mean() <= MOST


def splits(n: int, overlap: float) -> np.ndarray:
    """Results of n random splits of one pool, which are correlated by the share that they test."""
    rho = overlap / (1 + overlap)
    return np.sqrt(rho) * normal("pool", 1) + np.sqrt(1 - rho) * normal("own", n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
def test_overlapping_splits_at_the_bound(n, share):
    overlap = share / (1 - share)
    values = splits(n, overlap)
    assert decided(Region(low=0.0).p_values(Estimate.of_mean(values, overlap))).mean() <= MOST
    uncorrected = decided(Region(low=0.0).p_values(Estimate.of_mean(values))).mean()
    assert uncorrected > MOST  # the planted fault


@pytest.mark.parametrize(("m", "needed"), [(2, 2), (6, 6), (18, 18), (3, 2), (7, 4)])
def test_several_cases_at_the_bound(m, needed):
    """All cases lie at their bounds: that the claim holds or fails over all of them is decided as rarely as one case is."""
    outside, inside = Region(low=0.0).p_values(Estimate.of_mean(normal("cases", m, 4)))
    assert decided(combine_p_values(outside, inside, needed)).mean() <= MOST
    if needed == m:
        assert (inside.min(axis=-1) <= ALPHA).mean() > 0.9 * (1 - (1 - ALPHA) ** m)  # the planted fault: no correction


@pytest.mark.parametrize(("m", "needed"), [(6, 6), (7, 4)])
def test_one_case_too_few(m, needed):
    """The worst case of a claim over several: all but one of the needed cases are clearly true."""
    values = normal("too few", m, 4)
    values[:, : needed - 1] += 100
    p = combine_p_values(*Region(low=0.0).p_values(Estimate.of_mean(values)), needed)
    assert decided(p).mean() <= MOST


def test_verdicts_are_reached_where_the_claim_is_true_or_false():
    """The tests above would pass if nothing were ever decided."""
    values = normal("power", 5)
    for shift, k in ((3.0, 0), (-3.0, 1)):
        p = Region(low=0.0).p_values(Estimate.of_mean(shift + values))
        assert (p[k] <= ALPHA).mean() > 0.95
        assert (p[1 - k] <= ALPHA).mean() < 0.001


# -- against SciPy ----------------------------------------------------------------------------------------------------


def test_estimates_against_scipy():
    a, b = normal("a", 6)[0], 3 * normal("b", 4)[0]
    one, two = Estimate.of_mean(a), Estimate.of_difference(a, b)
    expected = stats.ttest_1samp(a, 0.3, alternative="less")
    assert one.p_at_least(0.3) == pytest.approx(expected.pvalue)
    assert one.interval() == pytest.approx(tuple(stats.ttest_1samp(a, 0).confidence_interval()))
    welch = stats.ttest_ind(a, b, equal_var=False, alternative="greater")
    assert two.p_at_most(0.0) == pytest.approx(welch.pvalue)
    assert two.df == pytest.approx(welch.df)
    assert Region(-0.5, 0.5).p_values(one)[0] == pytest.approx(
        max(
            stats.ttest_1samp(a, -0.5, alternative="greater").pvalue,
            stats.ttest_1samp(a, 0.5, alternative="less").pvalue,
        )
    )


@pytest.mark.filterwarnings("error")
def test_infinite_values_prove_nothing_about_an_infinite_bound():
    estimate = Estimate.of_mean([[np.inf, np.inf], [1.0, 2.0]])
    assert estimate.p_at_most(np.inf).tolist() == [1, 1]
    assert estimate.p_at_least(np.inf).tolist() == [1, 0]


def test_holm_against_its_definition():
    p = np.array([0.04, 0.001, 0.03, 0.5])
    assert holm(p) == pytest.approx([0.09, 0.004, 0.09, 0.5])
    assert combine_p_values(p, p, 4) == pytest.approx((0.5, 0.004))


@pytest.mark.parametrize("values", [[0.5], [0.5] * 4, [0.1 + 0.2, 0.3]], ids=["one", "identical", "rounding"])
def test_values_without_spread_have_no_interval(values):
    assert np.isnan(mean_interval(values)[1:]).all()
    p = Region(low=0.0).p_values(Estimate.of_mean(values))
    assert p == (1.0, 1.0)


@pytest.mark.parametrize(
    ("skewed", "low", "high"), [(np.exp, 0.15, 0.19), (lambda e: -stats.norm.logcdf(e), 0.09, 0.13)]
)
@pytest.mark.parametrize("n", [3, 5, 10])
def test_skewed_replicates_are_decided_more_often_as_the_docs_state(skewed, low, high, n):
    """Log-normal with mean √e, and exponential with mean 1. The test of ratios takes logarithms, which are normal."""
    mean = np.sqrt(np.e) if skewed is np.exp else 1.0
    p = Region(low=mean).p_values(Estimate.of_mean(skewed(normal("skewed", n))))
    assert low < decided(p).mean() < high
