"""The paper's methods and its baselines: guarantees, definitions, and what the paper proves of them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabulary_samples import best_partition, by_labels, drawn, features, information, tables

from agglearn.errors import ConfigError
from agglearn.evaluation.information import bucketing_bound, mutual_information
from agglearn.vocabulary import (
    AgglomerativeQuantizer,
    BucketingQuantizer,
    DistributedSubmodularQuantizer,
    DivisiveQuantizer,
    FrequencyQuantizer,
    OptimalQuantizer,
    SubmodularQuantizer,
    kernels,
)
from agglearn.vocabulary.baselines import allocate, apportion
from agglearn.vocabulary.rate_order import Ranking

METHODS = (
    AgglomerativeQuantizer, BucketingQuantizer, DistributedSubmodularQuantizer, DivisiveQuantizer, FrequencyQuantizer,
    OptimalQuantizer, SubmodularQuantizer,
)  # fmt: skip
QUICK = settings(max_examples=60, deadline=None)
UNEQUAL = features(*(drawn(n, n) for n in (12, 300, 2000)))


@given(tables(most=9), st.data())
@QUICK
def test_information_is_monotone_and_submodular(table, data):
    """F of a set of cuts (theorem 3), from the definition of mutual information."""
    counts, sums = table
    order = np.argsort(sums / counts, kind="stable")
    cuts = list(range(1, len(counts)))
    small = set(data.draw(st.lists(st.sampled_from(cuts), unique=True)))
    large = small | set(data.draw(st.lists(st.sampled_from(cuts), unique=True)))
    value = lambda s: information(counts, sums, np.split(order, sorted(s)))  # noqa: E731
    assert value(large) >= value(small) - 1e-12
    for s in set(cuts) - large:
        assert value(small | {s}) - value(small) >= value(large | {s}) - value(large) - 1e-12


@pytest.mark.parametrize("method", METHODS)
@given(observed=st.lists(tables(), min_size=1, max_size=3), share=st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_what_is_reported_is_what_the_clusters_keep(method, observed, share):
    counts, sums = features(*observed)
    budget = round(len(counts) + share * (sum(map(len, counts.values())) - len(counts)))
    found = method(budget).fit(counts, sums)
    kept = {n: information(counts[n], sums[n], by_labels(found.labels_[n])) for n in counts}
    whole = sum(information(counts[n], sums[n], [[i] for i in range(len(counts[n]))]) for n in counts)
    assert found.feature_information_ == pytest.approx(kept, abs=1e-12)
    assert found.information_ == pytest.approx(sum(kept.values()), abs=1e-12)
    assert found.information_loss_ == pytest.approx(whole - sum(kept.values()), abs=1e-12)
    assert found.relative_loss_ == pytest.approx((whole - sum(kept.values())) / whole if whole > 1e-15 else 0, abs=1e-9)
    assert found.n_clusters_ == sum(len(np.unique(v)) for v in found.labels_.values()) <= budget
    assert found.information_ <= OptimalQuantizer(budget).fit(counts, sums).information_ + 1e-12
    for n in counts:
        assert np.unique(found.labels_[n]).tolist() == list(range(found.labels_[n].max() + 1))
        if method is not FrequencyQuantizer:
            rates = [sums[n][g].sum() / counts[n][g].sum() for g in by_labels(found.labels_[n])]
            assert (np.diff(rates) > 0).all()


@pytest.mark.parametrize(
    ("method", "epsilons", "times"),
    [(SubmodularQuantizer, (0.01, 0.1, 0.3), 1), (DistributedSubmodularQuantizer, (0.3, 0.5), 2)],
)
@given(table=tables(most=12), m=st.integers(2, 6), data=st.data())
@QUICK
def test_one_feature_keeps_the_guarantee(method, epsilons, times, table, m, data):
    """In expectation 1 − 1/e − ε, or 2ε; on small tables any run keeps it, which is more than the theorems say."""
    (counts, sums), epsilon = table, data.draw(st.sampled_from(epsilons))
    found = method(min(m, len(counts)), epsilon, random_state=1).fit(counts, sums)
    assert found.information_ >= (1 - 1 / math.e - times * epsilon) * best_partition(counts, sums, m) - 1e-12


def test_distributed_has_as_many_machines_as_the_theorem_says():
    counts, sums = drawn(5000, 1)
    found = DistributedSubmodularQuantizer(101, 0.1).fit(counts, sums)
    assert found.n_machines_ == 10
    assert found.machine_size_ == max(np.diff(np.arange(11) * found.n_ranks_ // 10))
    assert found.n_clusters_ == 101
    places = len(np.unique(sums / counts))
    rank = np.unique(sums / counts, return_inverse=True)[1]
    for k in (j * places // 10 for j in range(1, 10)):  # no cluster reaches over a forced cut
        assert not set(found.labels_[rank < k]) & set(found.labels_[rank >= k])


def test_joint_greedy_keeps_the_guarantee_over_features():
    for seed in range(5):
        counts, sums = features(*(drawn(300, 10 * seed + i) for i in range(4)))
        for budget in (4, 8, 20, 60):
            best = OptimalQuantizer(budget).fit(counts, sums).information_
            found = SubmodularQuantizer(budget, 0.1, "joint", random_state=seed).fit(counts, sums).information_
            assert found >= (1 - 1 / math.e - 0.1) * best - 1e-12


RATES = np.array([40, 25, 60, 10, 30, 8]), np.array([4, 10, 33, 7, 27, 8])  # .1, .4, .55, .7, .9 and 1


def test_values_are_clustered_by_their_information_per_record():
    """Two features of ten times as many records and ten times as few: nats per record count, not records."""
    counts, sums = ({"a": 10 * v, "b": v} for v in RATES)
    best = OptimalQuantizer(8).fit(counts, sums)
    greedy = [SubmodularQuantizer(8, 0.01, allocation=how, random_state=0) for how in ("merged", "joint")]
    for found in (best, *(q.fit(counts, sums) for q in (*greedy, DistributedSubmodularQuantizer(8, 0.2)))):
        assert found.n_clusters_ == 8
        sizes = [labels.max() for labels in found.labels_.values()]
        assert abs(sizes[0] - sizes[1]) <= 1, found
        assert found.information_ > 0.95 * best.information_


def test_merged_allocation_keeps_the_largest_gains():
    """One feature tells much, one nothing: the budget goes to the first."""
    n = np.full(20, 100)
    found = SubmodularQuantizer(10).fit(*features((n, np.arange(20) * 5), (n, 47 + np.arange(20) % 2)))
    assert [labels.max() for labels in found.labels_.values()] == [8, 0]


# -- baselines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", [False, True])
@given(table=tables(), budget=st.integers(1, 12))
@QUICK
def test_buckets_are_intervals_of_equal_width_and_filled_ones_as_narrow_as_the_budget_allows(fill, table, budget):
    counts, sums = table
    budget = min(budget, len(counts))
    found = BucketingQuantizer(budget, fill=fill).fit(counts, sums)
    k = found.n_buckets_["x0"]

    def buckets(k: int) -> np.ndarray:
        return np.minimum((counts - sums) * k // counts, k - 1)

    assert (np.equal.outer(found.labels_, found.labels_) == np.equal.outer(buckets(k), buckets(k))).all()
    if fill:
        assert found.n_clusters_ <= budget
        assert len(np.unique(buckets(k + 1))) > budget or budget >= len(np.unique(sums / counts))
    else:
        assert k == budget


@pytest.mark.parametrize("allocation", ["uniform", "information"])
def test_filled_buckets_spend_the_budget(allocation):
    """Empty intervals leave much of it unspent otherwise. Intervals of equal width may skip a number of clusters."""
    for budget in (60, 150, 250):
        plain, filled = (BucketingQuantizer(budget, allocation=allocation, fill=f).fit(*UNEQUAL) for f in (False, True))
        assert plain.n_clusters_ < 0.85 * budget
        assert 0.95 * budget < filled.n_clusters_ <= budget


@given(tables(), st.integers(1, 12), st.booleans())
@QUICK
def test_theorem_6(table, k, fill):
    counts, sums = table
    found = BucketingQuantizer(min(k, len(counts)), fill=fill).fit(counts, sums)
    bound = bucketing_bound(found.n_buckets_["x0"], sums.sum() / counts.sum())
    assert found.information_loss_ <= bound + 1e-12


def test_frequency_has_one_threshold_over_all_features():
    counts = {"a": np.array([7, 1, 9, 5]), "b": np.array([5, 8, 2, 1])}
    sums = {"a": np.array([1, 0, 2, 3]), "b": np.array([1, 2, 1, 1])}
    found = FrequencyQuantizer(5).fit(counts, sums)  # 9, 8, 7 and two tails; both 5s would be one too many
    assert found.threshold_ == 7
    assert [v.tolist() for v in found.labels_.values()] == [[0, 2, 1, 2], [1, 0, 1, 1]]
    assert FrequencyQuantizer(4).fit(counts, sums).threshold_ == 8
    assert FrequencyQuantizer(8).fit(counts, sums).information_loss_ == pytest.approx(0, abs=1e-15)
    assert FrequencyQuantizer(2).fit(counts, sums).information_ == pytest.approx(0, abs=1e-15)


def test_divisive_moves_values_to_the_nearest_cluster():
    """At the end no value is nearer to another cluster, by Kullback–Leibler divergence of the label's distribution."""
    counts, sums = drawn(400, 3)
    sums = np.clip(sums, 1, None)
    counts = counts + 1
    found = DivisiveQuantizer(12, tol=0.0, max_iter=1000).fit(counts, sums)
    groups = by_labels(found.labels_)
    q = np.array([(sums[g].sum() + 1e-3 * sums.sum() / counts.sum()) / (counts[g].sum() + 1e-3) for g in groups])
    r = (sums / counts)[:, None]
    divergence = r * np.log(r / q) + (1 - r) * np.log((1 - r) / (1 - q))
    own = divergence[np.arange(len(r)), found.labels_]
    assert (own <= divergence.min(axis=1) + 1e-9).all()


def test_divisive_borders_are_equally_far_from_both_neighbours():
    """Clusters whose rates have half a record at the base rate added; the divergence of a border is the same to both."""
    n, c = (v[np.argsort(RATES[1] / RATES[0])].astype(float) for v in RATES)
    ranking = Ranking.from_counts("a", n, c)
    q = [(c[a:b].sum() + 0.5 * c.sum() / n.sum()) / (n[a:b].sum() + 0.5) for a, b in ((0, 2), (2, 4), (4, 6))]
    nearest = np.argmax([p * np.log(q) + (1 - p) * np.log1p(-np.array(q)) for p in c / n], axis=1)
    found = DivisiveQuantizer(3, smoothing=0.5)._assign(ranking, c / n, np.array([2, 4]))
    assert found.tolist() == (np.flatnonzero(np.diff(nearest)) + 1).tolist()


@pytest.mark.parametrize("allocation", ["uniform", "information"])
def test_divisive_uses_its_budget(allocation):
    """A small feature cannot use its share; empty clusters are filled again."""
    places = sum(len(np.unique(s / n)) for n, s in zip(*(v.values() for v in UNEQUAL), strict=True))
    for budget in (10, 100, places // 2, places):
        assert DivisiveQuantizer(budget, allocation).fit(*UNEQUAL).n_clusters_ == budget


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.floats(0, 1))
@QUICK
def test_what_a_feature_cannot_use_goes_to_the_others(most, share):
    rankings = [Ranking.from_counts(f"f{i}", *(v.astype(float) for v in drawn(m, i))) for i, m in enumerate(most)]
    budget = round(len(most) + share * (sum(most) - len(most)))
    for how in ("uniform", "information"):
        shares = np.array(allocate(budget, rankings, how, np.array(most)))
        assert shares.sum() == budget
        assert (shares >= 1).all()
        assert (shares <= most).all()


def test_a_joint_cut_looks_at_the_candidates_of_every_feature(monkeypatch):
    """As many as runs on each feature alone would; else a step of many cuts looks at fewer candidates than features."""
    samples, greedy = [], kernels.stochastic_greedy
    monkeypatch.setattr(kernels, "stochastic_greedy", lambda *given: (samples.append(given[5]), greedy(*given))[1])
    counts, sums = features(*(drawn(n, n) for n in (200, 300, 400)))
    for budget in (30, 200):
        samples.clear()
        SubmodularQuantizer(budget, 0.1, "merged").fit(counts, sums)
        alone, _ = sum(samples), samples.clear()
        SubmodularQuantizer(budget, 0.1, "joint").fit(counts, sums)
        assert samples == [alone]


def test_divisive_begins_with_the_majority_label():
    counts, sums = np.full(10, 100), np.array([10, 20, 30, 40, 45, 55, 60, 70, 80, 90])
    found = DivisiveQuantizer(2, max_iter=0).fit(counts, sums)
    assert found.labels_.tolist() == [0] * 5 + [1] * 5


@pytest.mark.parametrize(
    ("budget", "weights", "shares"), [(9, [1, 1, 4], [2, 2, 5]), (3, [1, 0, 9], [1, 1, 1]), (7, [0, 0], [4, 3])]
)
def test_shares_of_a_budget_by_hand(budget, weights, shares):
    """Each gets one, the others go by weight."""
    assert apportion(budget, np.array(weights, float)).tolist() == shares


def test_shares_follow_information():
    n = np.full(40, 100)
    observed = features((n, np.arange(40) * 2 + 10), (n, 49 + np.arange(40) % 2))
    assert BucketingQuantizer(20, allocation="information").fit(*observed).n_buckets_ == {"f0": 19, "f1": 1}
    assert BucketingQuantizer(20).fit(*observed).n_buckets_ == {"f0": 10, "f1": 10}


# -- what the paper proves of simple methods --------------------------------------------------------------------------


def test_proposition_7():
    """Rates (j + 1/3)/k and (j + 2/3)/k of C = 0 fall into one bucket, which tells nothing."""
    k, j = 5, 2
    counts = np.full(8, 3 * k)
    sums = counts - np.array([3 * j + 1, 3 * j + 2] * 4)
    found = BucketingQuantizer(k).fit(counts, sums)
    assert mutual_information(counts, sums) > 0.002
    assert found.information_ == pytest.approx(0, abs=1e-15)
    assert OptimalQuantizer(2).fit(counts, sums).relative_loss_ == pytest.approx(0, abs=1e-12)


def test_proposition_8():
    """The frequent third tells nothing, the rare rest everything: ln 2 / 3 nats (the paper prints 1/3, in bits)."""
    k = 6
    counts = np.repeat([4, 1, 1], k)
    sums = np.repeat([2, 1, 0], k)
    found = FrequencyQuantizer(k + 1).fit(counts, sums)
    assert found.threshold_ == 4
    assert mutual_information(counts, sums) == pytest.approx(math.log(2) / 3)
    assert found.information_ == pytest.approx(0, abs=1e-15)
    assert OptimalQuantizer(3).fit(counts, sums).relative_loss_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (SubmodularQuantizer(2, epsilon=0.0), "epsilon"), (SubmodularQuantizer(2, allocation="fair"), "allocation"),
        (BucketingQuantizer(2, allocation="merged"), "allocation"),
        (DistributedSubmodularQuantizer(2, epsilon=2), "epsilon"),
        (DistributedSubmodularQuantizer(2, engine="cloud"), "engine"),
        (OptimalQuantizer(2, algorithm="guess"), "algorithm"), (OptimalQuantizer(2, shrinkage="hard"), "shrinkage"),
    ],
)  # fmt: skip
def test_unknown_settings_are_named(method, said):
    with pytest.raises(ConfigError, match=said):
        method.fit(*drawn(20))


def test_rounds_are_counted_from_one(monkeypatch):
    monkeypatch.setattr(kernels, "threshold_cuts", lambda *limits: (np.array([1]), np.array([4])))
    model = DistributedSubmodularQuantizer(2, 0.1).fit(np.full(4, 100), np.array([0, 10, 60, 100]))
    assert model.n_rounds_ == 5  # rounds 0 to 4
