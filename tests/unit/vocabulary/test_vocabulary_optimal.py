"""The exact optimum: against every partition, against the dynamic programs, for every budget, with ties."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabulary_samples import all_partitions, best_partition, by_labels, drawn, features, information, tables

from agglearn.errors import ConfigError
from agglearn.vocabulary import OptimalQuantizer

ALGORITHMS = ("lagrangian", "divide", "quadratic")
QUICK = settings(max_examples=60, deadline=None)


@given(st.one_of(tables(most=7), tables(most=7, largest=6)), st.integers(1, 7))
@settings(max_examples=120, deadline=None)
def test_best_of_all_partitions(table, m):
    """Also of those that are no intervals of rate (lemma 3 of Kurkoski and Yagi). Of small counts rates and losses tie."""
    counts, sums = table
    m, distinct = min(m, len(counts)), len(np.unique(sums / counts))
    best = max(information(counts, sums, p) for p in all_partitions(list(range(len(counts))), m))
    for algorithm in ALGORITHMS:
        found = OptimalQuantizer(m, algorithm).fit(counts, sums)
        assert found.information_ == pytest.approx(best, abs=1e-12)
        assert information(counts, sums, by_labels(found.labels_)) == pytest.approx(best, abs=1e-12)
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
def test_a_global_budget_is_divided_best(observed, spare):
    counts, sums = features(*observed)
    sizes = [len(c) for c in counts.values()]
    budget = min(len(sizes) + spare, sum(sizes))
    best = 0.0
    for shares in itertools.product(*(range(1, n + 1) for n in sizes)):
        if sum(shares) <= budget:
            best = max(best, sum(best_partition(*f, m) for f, m in zip(observed, shares, strict=True)))
    for algorithm in ALGORITHMS:
        found = OptimalQuantizer(budget, algorithm).fit(counts, sums)
        assert found.information_ == pytest.approx(best, abs=1e-12)
        assert found.n_clusters_ <= budget


@pytest.mark.slow
def test_many_equal_features_share_a_budget_that_does_not_divide():
    """All losses tie across features: exactly the budget is used all the same."""
    counts, sums = features(*[drawn(60, 5, 50)] * 7)
    for budget in range(7, 60):
        a, b = (OptimalQuantizer(budget, how).fit(counts, sums) for how in ("lagrangian", "divide"))
        assert a.n_clusters_ == b.n_clusters_ == budget
        assert a.information_loss_ == pytest.approx(b.information_loss_, abs=1e-12)


def test_a_program_that_does_not_fit_is_refused():
    counts, sums = np.full(50_000, 10**6), np.arange(50_000)
    with pytest.raises(ConfigError, match="lagrangian"):
        OptimalQuantizer(20_000, "quadratic").fit(counts, sums)
