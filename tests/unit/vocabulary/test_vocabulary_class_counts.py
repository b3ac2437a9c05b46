"""Clusters by counts of several classes: against all partitions, and against the quantisers of two classes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr
from vocabulary_samples import all_partitions, by_labels, drawn

from agglearn.errors import ConfigError, DataError
from agglearn.vocabulary import AgglomerativeQuantizer, OptimalQuantizer, SubmodularQuantizer, compress_class_counts
from agglearn.vocabulary import class_counts as module

ALGORITHMS = ("divisive", "greedy", "agglomerative")
QUICK = settings(max_examples=40, deadline=None)


def kept(table, groups) -> float:
    """I(Z; C) in nats from its definition, entropy by entropy."""
    joint = np.array([table[list(g)].sum(axis=0) for g in groups]) / table.sum()
    entropy = lambda p: -sum(x * np.log(x) for x in np.ravel(p) if x > 0)  # noqa: E731
    return entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint)


def best_of_all(table, budget: int) -> float:
    return max(kept(table, p) for p in all_partitions(list(range(len(table))), budget))


def drawn_classes(n: int, classes: int, seed: int = 0, largest: int = 1000):
    rng = np.random.default_rng(seed)
    return rng.multinomial(rng.zipf(1.5, n).clip(max=largest), rng.dirichlet([0.4] * classes, n))


def partition(labels) -> set:
    return {tuple(group) for group in by_labels(labels)}


@st.composite
def class_tables(draw, least=2, most=7, classes=3):
    """Counts of every class, each of which occurs, and no value without records."""
    rows = st.lists(st.integers(0, 12), min_size=classes, max_size=classes)
    table = np.array(draw(st.lists(rows, min_size=least, max_size=most)))
    table[np.arange(len(table)), np.arange(len(table)) % classes] += 1
    table[0] += table.sum(axis=0) == 0
    return table


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(class_tables(), st.integers(1, 7))
@QUICK
def test_what_is_reported_is_what_the_clusters_keep(algorithm, table, budget):
    budget = min(budget, len(table))
    labels, information, lost = compress_class_counts(table, budget, algorithm)
    everything = kept(table, [[v] for v in range(len(table))])
    assert information == pytest.approx(kept(table, by_labels(labels)), abs=1e-12)
    assert lost == pytest.approx(everything - information, abs=1e-12)
    distinct = len({tuple(row / row.sum()) for row in table})
    assert np.unique(labels).tolist() == list(range(min(budget, distinct)))
    assert information <= best_of_all(table, budget) + 1e-12
    if budget >= distinct:
        assert lost == pytest.approx(0, abs=1e-12)
    last = [table[g, -1].sum() / table[g].sum() for g in by_labels(labels)]
    assert (np.diff(last) >= 0).all()


@given(class_tables(least=3))
@QUICK
def test_one_union_is_the_best_of_all_partitions(table):
    """Where one value too many has a class share of its own, the cheapest pair is the optimum."""
    distinct = len({tuple(row / row.sum()) for row in table})
    if distinct > 1:
        information = compress_class_counts(table, distinct - 1, "agglomerative")[1]
        assert information == pytest.approx(best_of_all(table, distinct - 1), abs=1e-12)


@given(class_tables(least=3))
@example(np.array([[1, 2, 1], [0, 3, 1], [0, 3, 0], [0, 3, 2], [0, 2, 3]]))  # more if a cut parts equal rates
@QUICK
def test_the_first_cut_is_the_best_threshold_on_the_rate_of_a_class(table):
    rates = table / table.sum(axis=1, keepdims=True)
    lower = [np.flatnonzero(rate < border) for rate in rates.T for border in np.unique(rate)[1:]]
    best = max((kept(table, [g, np.setdiff1d(np.arange(len(table)), g)]) for g in lower), default=0)
    assert compress_class_counts(table, 2, "greedy")[1] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_no_value_is_nearer_to_another_cluster(seed):
    """A local optimum of divisive clustering, in divergences that are infinite where a cluster lacks a class."""
    table = drawn_classes(60, 4, seed)
    labels = compress_class_counts(table, 8)[0]
    q = np.array([table[g].sum(axis=0) / table[g].sum() for g in by_labels(labels)])
    divergence = rel_entr((table / table.sum(axis=1, keepdims=True))[:, None], q).sum(axis=-1)
    gain = divergence[np.arange(len(table)), labels] - divergence.min(axis=1)
    assert (gain * table.sum(axis=1)).max() < 1e-9


def test_a_cluster_that_loses_its_values_is_made_anew():
    """The first move leaves seven of eight clusters."""
    table = np.array(
        [
            [1, 0, 0, 0], [1, 0, 0, 0], [4, 0, 3, 0], [0, 1, 30, 0], [0, 0, 0, 1], [0, 0, 0, 1], [5, 44, 0, 1],
            [0, 2, 6, 7], [9, 33, 0, 8], [0, 0, 2, 9], [2, 17, 21, 10], [1, 6, 17, 12],
        ]
    )  # fmt: skip
    labels, information, _ = compress_class_counts(table, 8)
    assert labels.max() + 1 == 8
    assert information > compress_class_counts(table, 8, "greedy")[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget", [1, 2, 5, 12])
def test_two_classes_are_those_of_the_quantisers(seed, budget):
    counts, sums = drawn(150, seed, 300)
    table = np.column_stack([counts - sums, sums])
    peers = {"greedy": SubmodularQuantizer(budget, 1e-12), "agglomerative": AgglomerativeQuantizer(budget)}
    for algorithm, peer in peers.items():
        labels, information, lost = compress_class_counts(table, budget, algorithm)
        assert labels.tolist() == peer.fit(counts, sums).labels_.tolist()
        assert labels.dtype == peer.labels_.dtype
        assert (information, lost) == pytest.approx((peer.information_, peer.information_loss_), abs=1e-13)
    best = OptimalQuantizer(budget).fit(counts, sums).information_
    greedy, divisive = (compress_class_counts(table, budget, a)[1] for a in ("greedy", "divisive"))
    assert greedy - 1e-13 <= divisive <= best + 1e-13


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_order_of_classes_and_values_changes_nothing(algorithm):
    table, rng = drawn_classes(80, 4, 2), np.random.default_rng(0)
    labels, information, lost = compress_class_counts(table, 9, algorithm)
    for classes in itertools.islice(itertools.permutations(range(4)), 0, 24, 5):
        other = compress_class_counts(table[:, classes], 9, algorithm)
        assert partition(other[0]) == partition(labels)
        assert other[1:] == pytest.approx((information, lost), abs=1e-12)
    values = rng.permutation(80)
    assert compress_class_counts(table[values], 9, algorithm)[0].tolist() == labels[values].tolist()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_values_and_classes_without_records_tell_nothing(algorithm):
    table = np.array([[30, 2, 1], [9, 8, 9], [1, 25, 3], [2, 3, 41], [60, 4, 2]])
    labels, information, lost = compress_class_counts(table, 4, algorithm)
    more = np.insert(np.insert(table, 2, 0, axis=0), 1, 0, axis=1)
    found = compress_class_counts(pd.DataFrame(more), 4, algorithm)  # such as `pandas.crosstab` returns
    assert np.delete(found[0], 2).tolist() == labels.tolist()
    assert found[1:] == pytest.approx((information, lost), abs=1e-15)
    assert labels[0] == labels[4]
    assert found[0][2] == labels[1]  # the shares of all records are nearest to those of this value


def test_blocks_of_values_change_nothing(monkeypatch):
    table = drawn_classes(200, 3, 3)
    expected = compress_class_counts(table, 20)[0].tolist()
    monkeypatch.setattr(module, "CELLS", 150)
    assert compress_class_counts(table, 20)[0].tolist() == expected
    with pytest.raises(ConfigError, match=r"cannot hold the pairs of .* values; use 'divisive'"):
        compress_class_counts(table, 20, "agglomerative")


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([[1, 2, 0], [3, -1, 4]], r"value 1, class 1: -1 must be a whole number ≥ 0 \(1 such cells\)"),
        ([[1, 0.5, 0], [3, 1, np.nan]], r"value 0, class 1: 0.5 must be a whole number ≥ 0 \(2 such cells\)"),
        ([[1, 2], [np.inf, 1]], "value 1, class 0: inf must be"),
        ([3, 4], r"shape \(2,\); a row per value and a column per class"), ([["a", "b"]], "table of numbers"),
        ([[1, 2], [3]], "table of numbers"), ([[1, 0], [4, 0]], "1 of 2 classes have records; two are needed"),
        (np.zeros((0, 3)), "0 of 3 classes"),
    ],
)  # fmt: skip
def test_bad_tables(counts, said):
    with pytest.raises(DataError, match=said) as caught:
        compress_class_counts(counts, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ((0,), ConfigError, "budget: 0 is not allowed"),
        ((4,), DataError, "budget: 4 clusters are more than the 3 values"),
        ((0.1,), DataError, "budget: too few clusters, 0 for 1 feature"),
        ((2, "optimal"), ConfigError, "algorithm: 'optimal' is not allowed; it must be one of divisive, greedy"),
    ],
)
def test_bad_settings(settings, error, said):
    with pytest.raises(error, match=said):
        compress_class_counts([[1, 2, 3], [3, 1, 0], [4, 4, 4], [0, 0, 0]], *settings)
