"""Noise removal, shares of a budget and every quantiser's rule against its definition: features of unequal sizes, rates on both sides of ½."""

import math

import numpy as np
import pandas as pd
import pytest
from vocabulary_samples import information

from agglearn.observations import Records
from agglearn.vocabulary import (
    BucketingQuantizer,
    DistributedSubmodularQuantizer,
    FrequencyQuantizer,
    LogisticOnClusters,
    OptimalQuantizer,
    SubmodularQuantizer,
)
from agglearn.vocabulary.baselines import DivisiveQuantizer, apportion
from agglearn.vocabulary.rate_order import Ranking
from agglearn.vocabulary.shrinkage import project_on_simplex, remove_noise, shrink_sums

COUNTS, SUMS = np.array([5.0, 60, -7, 300, 1, 41]), np.array([9.0, 20, -3, 40, 1, 38])


@pytest.mark.parametrize("total", [400.0, 250.0])
def test_the_nearest_counts_that_add_up(total):
    """Conditions of optimality: one shift of all that stay positive, and none of the zeros would rise by it."""
    found = project_on_simplex(COUNTS, total)
    assert found.sum() == pytest.approx(total)
    shift = (COUNTS - found)[found > 0]
    assert shift == pytest.approx(shift[0])
    assert (COUNTS[found == 0] <= shift[0] + 1e-12).all()
    assert (found >= 0).all()


@pytest.mark.parametrize("variances", [(25.0, 9.0), (0.0, 16.0), (100.0, 100.0)])
def test_noise_is_removed_by_the_formula(variances):
    r = 106 / 400
    n = project_on_simplex(COUNTS, 400.0) if variances[0] else np.maximum(COUNTS, 0)
    noise, v = variances[1] + r * r * variances[0], r * (1 - r)
    excess = [c - r * m for m, c in zip(COUNTS, SUMS, strict=True)]
    squares = max(sum(m * m - variances[0] for m in COUNTS), sum(m * m for m in n))
    spread = max((sum(e * e - noise for e in excess) - v * sum(n)) / squares, 0)
    assert spread > 0
    signal = [m * m * spread + m * v for m in n]
    expected = [
        min(max(r * m + e * s / (s + noise), 0), m) if m else 0 for m, e, s in zip(n, excess, signal, strict=True)
    ]
    counts, sums = remove_noise(COUNTS, SUMS, 400.0, 106.0, variances)
    np.testing.assert_allclose(counts, n)
    np.testing.assert_allclose(sums, expected, atol=1e-9)


def test_rates_are_drawn_to_an_uneven_base_rate():
    n, c = np.array([10.0, 30.0]), np.array([1.0, 8.0])  # base rate .225
    assert shrink_sums(n, c, 20).tolist() == pytest.approx([10 * (1 + 4.5) / 30, 30 * (8 + 4.5) / 50])


@pytest.mark.parametrize(
    ("budget", "weights", "shares"), [(9, [1, 1, 4], [2, 2, 5]), (3, [1, 0, 9], [1, 1, 1]), (7, [0, 0], [4, 3])]
)
def test_shares_of_a_budget_by_hand(budget, weights, shares):
    """Each gets one, the others go by weight."""
    assert apportion(budget, np.array(weights, float)).tolist() == shares


N, C = np.array([40, 25, 60, 10, 30, 8]), np.array([4, 10, 33, 7, 27, 8])  # rates .1, .4, .55, .7, .9 and 1


@pytest.mark.parametrize("budget", [2, 3, 4, 5])
def test_buckets_are_intervals_of_the_rate_of_the_other_label(budget):
    found = BucketingQuantizer(budget).fit(N, C)
    bucket = [min(math.floor((n - c) * budget / n), budget - 1) for n, c in zip(N, C, strict=True)]
    order = sorted(set(bucket), reverse=True)  # cluster 0 has the lowest rates of label 1
    assert found.labels_.tolist() == [order.index(b) for b in bucket]


@pytest.mark.parametrize(("budget", "threshold"), [(6, 8), (5, 25), (4, 30), (3, 40), (2, 60), (1, 61)])
def test_frequent_values_are_clusters_of_their_own(budget, threshold):
    """The smallest threshold that fits: with 5 clusters 10 and 8 records are rare, hence those of 25 and more are frequent."""
    found = FrequencyQuantizer(budget).fit(N, C)
    assert found.threshold_ == threshold
    frequent = np.flatnonzero(threshold <= N)
    expected = np.full(6, len(frequent))
    expected[frequent] = np.arange(len(frequent))
    assert found.labels_.tolist() == expected.tolist()


def test_values_are_clustered_by_their_information_per_record():
    """Two features of ten times as many records and ten times as few: nats per record count, not records."""
    counts, sums = {"a": 10 * N, "b": N}, {"a": 10 * C, "b": C}
    for quantizer in (
        OptimalQuantizer(8), SubmodularQuantizer(8, 0.01, random_state=0),
        SubmodularQuantizer(8, 0.01, allocation="joint", random_state=0), DistributedSubmodularQuantizer(8, 0.2),
    ):  # fmt: skip
        found = quantizer.fit(counts, sums)
        assert found.n_clusters_ == 8
        sizes = [int(v.max()) + 1 for v in found.labels_.values()]
        assert abs(sizes[0] - sizes[1]) <= 1, quantizer
        for name, labels in found.labels_.items():
            groups = [np.flatnonzero(labels == k) for k in range(labels.max() + 1)]
            assert found.feature_information_[name] == pytest.approx(information(counts[name], sums[name], groups))


def test_the_optimum_spends_its_budget():
    for budget in range(1, 7):
        assert OptimalQuantizer(budget).fit(N, C).n_clusters_ == budget


def test_unseen_values_and_borders_by_hand():
    """Base rate 32/130 = .246: nearest to .1, where the mean of the rates, .575, is nearest to .5. Borders are half-way between rates."""
    found = OptimalQuantizer(4).fit(np.array([10, 100, 10, 10]), np.array([9, 10, 5, 8]))
    assert found.unseen_ == found.labels_[1] == 0
    found = OptimalQuantizer(6).fit(N, C)
    assert found.borders_["x0"].tolist() == pytest.approx([0.25, 0.475, 0.625, 0.8, 0.95])


def test_divisive_borders_are_equally_far_from_both_neighbours():
    """Clusters whose rates have half a record at the base rate added; the divergence of a border is the same to both."""
    ranking = Ranking.from_counts("a", N.astype(float), C.astype(float))
    model, cuts = DivisiveQuantizer(3, smoothing=0.5), np.array([2, 4])
    rates, base = np.sort(C / N), C.sum() / N.sum()
    groups = [np.argsort(C / N)[a:b] for a, b in ((0, 2), (2, 4), (4, 6))]
    q = [(C[g].sum() + 0.5 * base) / (N[g].sum() + 0.5) for g in groups]
    divergence = lambda p, k: -(p * math.log(q[k]) + (1 - p) * math.log(1 - q[k]))  # noqa: E731
    nearest = [min(range(3), key=lambda k, p=p: divergence(p, k)) for p in rates]
    expected = [i for i in range(1, 6) if nearest[i] != nearest[i - 1]]
    assert model._assign(ranking, rates, cuts).tolist() == expected


def test_clusters_of_unequal_features_have_columns_of_their_own():
    """Three features of 2, 5 and 3 clusters; the prediction of each record is that of its own weights."""
    rng, sizes = np.random.default_rng(0), (2, 5, 3)
    frame = pd.DataFrame({f"f{i}": [f"v{c}" for c in rng.integers(0, k, 500)] for i, k in enumerate(sizes)})
    effect = {f"v{k}": e for k, e in enumerate([-1.5, 1.2, -0.4, 2.0, 0.1])}
    z = sum(frame[c].map(effect) for c in frame)
    y = (rng.random(500) < 1 / (1 + np.exp(-z))).astype(int)
    records = Records.from_records(frame.assign(y=y), "y")
    model = LogisticOnClusters(OptimalQuantizer(10), l2=[0.5], random_state=0).fit(records)
    assert model.sizes_ == list(sizes)
    weights, intercept = model.tries_[0]
    score = np.full(500, intercept)
    for i, name in enumerate(frame):
        cluster = model.quantizer_.labels_[name][records.codes[:, i]]
        score += weights[sum(sizes[:i]) + cluster]
    np.testing.assert_allclose(model.predict_proba(frame)[:, 1], 1 / (1 + np.exp(-score)))


def test_folds_are_drawn_whatever_the_order_of_the_records():
    """In folds of neighbouring records no value would occur outside its own fold: all would be unseen."""
    values, ones = np.repeat(np.arange(20), 15), np.tile([2, 13], 10)
    X, y = pd.DataFrame({"a": values}), np.concatenate([np.arange(15) < k for k in ones]).astype(int)
    quantizer = OptimalQuantizer(2, random_state=0)
    clusters = quantizer.fit_transform(X, y)[:, 0]
    assert (clusters == (ones[values] == 13)).mean() > 0.95
