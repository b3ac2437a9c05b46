"""The exact optimum: against every partition, against the dynamic programs, for every budget, with ties."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabulary_samples import all_partitions, best_partition, by_labels, drawn, information, ranked, tables

from agglearn.errors import ConfigError
from agglearn.vocabulary import OptimalQuantizer, kernels
from agglearn.vocabulary.optimal import Solution, combine, splice

ALGORITHMS = ("lagrangian", "divide", "quadratic")
QUICK = settings(max_examples=60, deadline=None)


@given(tables(most=7), st.integers(1, 4))
@QUICK
def test_best_of_all_partitions(table, m):
    """Also of those that are no intervals of rate (lemma 3 of Kurkoski and Yagi)."""
    counts, sums = table
    m = min(m, len(counts))
    best = max(information(counts, sums, p) for p in all_partitions(list(range(len(counts))), m))
    for algorithm in ALGORITHMS:
        found = OptimalQuantizer(m, algorithm).fit(counts, sums)
        assert found.information_ == pytest.approx(best, abs=1e-12)
        assert information(counts, sums, by_labels(found.labels_)) == pytest.approx(best, abs=1e-12)


@pytest.mark.slow
@given(tables(most=11, largest=6))
@QUICK
def test_every_budget(table):
    """Small counts, so that rates and losses tie."""
    counts, sums = table
    distinct = len(np.unique(sums / counts))
    for m in range(1, len(counts) + 1):
        found = OptimalQuantizer(m).fit(counts, sums)
        assert found.information_ == pytest.approx(best_partition(counts, sums, m), abs=1e-12)
        assert found.n_clusters_ == min(m, distinct)


@pytest.mark.parametrize("seed", range(3))
def test_lagrangian_is_the_program_for_every_budget(seed):
    counts, sums = drawn(150, seed, 80)
    for m in range(1, 100):
        a, b = (OptimalQuantizer(m, how).fit(counts, sums) for how in ("lagrangian", "divide"))
        assert a.information_loss_ == pytest.approx(b.information_loss_, abs=1e-13)
        assert a.n_clusters_ == b.n_clusters_


@pytest.mark.slow
@given(st.lists(tables(most=5, largest=12), min_size=2, max_size=3), st.integers(0, 6))
@QUICK
def test_a_global_budget_is_divided_best(features, spare):
    counts = {f"f{i}": c for i, (c, _) in enumerate(features)}
    sums = {f"f{i}": s for i, (_, s) in enumerate(features)}
    sizes = [len(c) for c in counts.values()]
    budget = min(len(features) + spare, sum(sizes))
    best = 0.0
    for shares in itertools.product(*(range(1, n + 1) for n in sizes)):
        if sum(shares) <= budget:
            best = max(best, sum(best_partition(*f, m) for f, m in zip(features, shares, strict=True)))
    for algorithm in ALGORITHMS:
        found = OptimalQuantizer(budget, algorithm).fit(counts, sums)
        assert found.information_ == pytest.approx(best, abs=1e-12)
        assert found.n_clusters_ <= budget


@pytest.mark.slow
def test_many_equal_features_share_a_budget_that_does_not_divide():
    """All losses tie across features: exactly the budget is used all the same."""
    counts, sums = drawn(60, 5, 50)
    counts, sums = ({f"f{i}": v for i in range(7)} for v in (counts, sums))
    for budget in range(7, 60):
        a, b = (OptimalQuantizer(budget, how).fit(counts, sums) for how in ("lagrangian", "divide"))
        assert a.n_clusters_ == b.n_clusters_ == budget
        assert a.information_loss_ == pytest.approx(b.information_loss_, abs=1e-12)


def test_losses_are_convex_and_satisfy_the_quadrangle_inequality():
    for seed in range(10):
        N, C, p = ranked(*drawn(40, seed, 200))
        n, S = len(N) - 1, kernels.single_information(N, C, p)
        loss = kernels.dynamic_program(N, C, S, p, n, False)[0][1:, n]
        assert np.diff(loss, 2).min() > -1e-9
        w = np.array(
            [[kernels.loss_of(N, C, S, p, i, j) if i < j else 0.0 for j in range(n + 1)] for i in range(n + 1)]
        )
        for i, j in itertools.combinations(range(n), 2):
            if i + 1 < j:
                assert w[i, j] + w[i + 1, j + 1] <= w[i, j + 1] + w[i + 1, j] + 1e-9


def test_splicing_joins_two_best_paths():
    """On equal costs every path is best; a splice has the cuts asked for and is ascending."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        few, many = (np.sort(rng.choice(np.arange(1, 60), m, replace=False)) for m in (4, 11))
        for m in range(4, 12):
            found = splice(few, many, m)
            assert len(found) == m
            assert (np.diff(found) > 0).all()


def test_a_mixture_uses_the_budget():
    few = Solution([np.array([5]), np.array([3])], 4, 2.0)
    many = Solution([np.array([2, 5, 7]), np.array([1, 3, 4])], 8, 1.0)
    for budget in range(4, 9):
        assert sum(len(c) + 1 for c in combine(few, many, budget)) == budget


def test_a_program_that_does_not_fit_is_refused():
    counts, sums = np.full(50_000, 10**6), np.arange(50_000)
    with pytest.raises(ConfigError, match="lagrangian"):
        OptimalQuantizer(20_000, "quadratic").fit(counts, sums)


@given(tables(least=4), st.integers(2, 4))
@QUICK
def test_merging_values_of_equal_rates_changes_nothing(table, m):
    counts, sums = table
    rates, at = np.unique(sums / counts, return_inverse=True)
    m = min(m, len(rates))
    whole = OptimalQuantizer(m).fit(counts, sums)
    merged = OptimalQuantizer(m).fit(np.bincount(at, counts).astype(int), np.bincount(at, sums).astype(int))
    assert whole.information_ == pytest.approx(merged.information_, abs=1e-12)
    assert whole.labels_.tolist() == merged.labels_[at].tolist()
