"""Clusters by means of a real-valued label: against all partitions, a dynamic program of its own, and wrong input."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vocabulary_samples import all_partitions, by_labels

from agglearn.errors import ConfigError, DataError
from agglearn.vocabulary import compress_label_means


def between(n, s, groups) -> float:
    """Variance between groups from its definition."""
    mean = s.sum() / n.sum()
    return sum(n[g].sum() * (s[g].sum() / n[g].sum() - mean) ** 2 for g in map(list, groups)) / n.sum()


def drawn(values: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    n = rng.zipf(1.5, values).clip(max=1000)
    return n, rng.normal(rng.normal(3, 2, values) * n, np.sqrt(n))


@st.composite
def label_sums(draw):
    n = draw(st.lists(st.integers(1, 9), min_size=2, max_size=7))
    return np.array(n), np.array([draw(st.integers(-20, 20)) for _ in n], float)


@given(label_sums(), st.integers(1, 7))
@example((np.array([1, 3, 1]), np.array([0.0, 0.0, 1.0])), 3)  # equal means, of other numbers of records
@settings(max_examples=60, deadline=None)
def test_no_partition_explains_more(observed, budget):
    n, s = observed
    budget = min(budget, len(n))
    labels, explained, lost = compress_label_means(n, s, budget)
    groups = by_labels(labels)
    assert np.unique(labels).tolist() == list(range(min(budget, len(np.unique(s / n)))))
    assert explained == pytest.approx(between(n, s, groups), abs=1e-9)
    best = max(between(n, s, p) for p in all_partitions(list(range(len(n))), budget))
    assert explained == pytest.approx(best, abs=1e-9)
    assert explained + lost == pytest.approx(between(n, s, [[v] for v in range(len(n))]), abs=1e-9)
    assert (np.diff([s[g].sum() / n[g].sum() for g in groups]) > 0).all()


def best_intervals(n, s, budget: int) -> float:
    """Variance explained by the best intervals of the means, by the textbook's dynamic program in O(V²·budget)."""
    order = np.argsort(s / n)
    N, S = (np.append(0, np.cumsum(v[order])) for v in (n, s - n * s.sum() / n.sum()))
    best = np.full(len(N), -np.inf)
    best[0] = 0.0
    for _ in range(budget):
        best = np.array([
            max((best[i] + (S[j] - S[i]) ** 2 / (N[j] - N[i]) for i in range(j)), default=-np.inf) for j in range(len(N))
        ])  # fmt: skip
    return best[-1] / n.sum()


@pytest.mark.parametrize("budget", [2, 5, 17])
def test_many_values_have_the_best_intervals(budget):
    n, s = drawn(150)
    assert compress_label_means(n, s, budget)[1] == pytest.approx(best_intervals(n, s, budget), rel=1e-9)


def test_shift_and_scale_of_the_label_change_nothing():
    n, s = drawn(300)
    labels, explained, lost = compress_label_means(n, s, 0.05)
    assert labels.max() == 14
    for shift, scale in ((1e6, 1.0), (0.0, 1e-6), (-3.0, 1e5)):
        again = compress_label_means(n, scale * s + shift * n, 0.05)
        assert (again[0] == labels).all()
        assert again[1:] == pytest.approx((explained * scale**2, lost * scale**2), rel=1e-6)


def test_two_classes_are_a_label_of_two_values():
    """Of a label 0 or 1 the variance between is that of the rates; a value without records joins the mean's cluster."""
    labels, explained, lost = compress_label_means([10, 10, 0, 20], [1, 9, 0, 10], 3)
    assert labels.tolist() == [0, 2, 1, 1]
    assert (explained, lost) == pytest.approx((0.08, 0))


@pytest.mark.parametrize(
    ("n", "s", "budget", "line"),
    [
        ([1, 2], [1.0], 1, "counts and .* sums; one of each per value"),
        ([1, -2], [1.0, 2.0], 1, "value 1 has -2 records"), ([1, 2.5], [1.0, 2.0], 1, "value 1 has 2.5 records"),
        ([1, 2], [1.0, np.nan], 1, "value 1 has 2 records of sum nan"),
        ([1, 0], [1.0, 2.0], 1, "value 1 has 0 records of sum 2"), ([0, 0], [0.0, 0.0], 1, "no value has records"),
        ([1, 2], ["a", "b"], 1, "must be numbers"), ([1, 2], [1.0, 2.0], 3, "3 clusters are more than the 2 values"),
        ([1, 2], [1.0, 2.0], 0, "budget: 0 is not allowed"),
    ],
)  # fmt: skip
def test_wrong_input_gets_a_line(n, s, budget, line):
    with pytest.raises(ConfigError if budget == 0 else DataError, match=line):
        compress_label_means(n, s, budget)
