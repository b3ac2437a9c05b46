"""Budgets, priors, noise and columns of clusters against a few numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import people

from agglearn.errors import DataError
from agglearn.observations import (
    ContingencyTables,
    NoiseSpec,
    Records,
)
from agglearn.vocabulary import (
    DistributedSubmodularQuantizer,
    LogisticOnClusters,
    OptimalQuantizer,
    SubmodularQuantizer,
)
from agglearn.vocabulary.baselines import allocate
from agglearn.vocabulary.quantizer import budget_of, single_tables
from agglearn.vocabulary.rate_order import Ranking
from agglearn.vocabulary.shrinkage import beta_prior, remove_noise, shrink_sums


def test_counts_without_noise_stay_as_they_are():
    frame = people(300)
    exact = ContingencyTables.from_records(frame[["job", "y"]], "y", categorical=["job"])
    noise = NoiseSpec("gaussian", 3.0, 1.0, 1e-6, "label")
    counts, sums = single_tables(replace(exact, noise=noise))["job"]
    np.testing.assert_array_equal(counts, exact.dense(0)[0])
    expected = remove_noise(*exact.dense(0), exact.total, exact.positives, (0.0, 9.0))[1]
    np.testing.assert_array_equal(sums, expected)


def test_rates_of_zero_and_one_have_a_weak_prior():
    a, b = beta_prior(np.full(40, 10.0), np.repeat([0.0, 10.0], 20))
    assert a == pytest.approx(b, rel=1e-3)
    assert a + b < 0.1


def test_every_feature_has_columns_of_its_own():
    """The label depends on one of two features: with shared columns both would count alike."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(list("uv"), 400), "b": rng.choice(list("xy"), 400)})
    y = (frame["a"] == "u").to_numpy() ^ (rng.random(400) < 0.05)
    records = Records.from_records(frame.assign(y=y.astype(int)), "y")
    model = LogisticOnClusters(OptimalQuantizer(4), l2=[0.05], random_state=0).fit(records)
    assert ((model.predict_proba(frame)[:, 1] > 0.5) == y).mean() > 0.9


@pytest.mark.parametrize(
    "quantizer", [SubmodularQuantizer(16), DistributedSubmodularQuantizer(16, 0.3)], ids=lambda q: type(q).__name__
)
def test_features_that_are_alike_get_alike_shares(quantizer):
    """One budget for two features of the same counts: about half of the clusters each, and most of the information."""
    rng = np.random.default_rng(0)
    n = rng.integers(20, 60, 60)
    c = rng.binomial(n, np.linspace(0.05, 0.95, 60))
    counts, sums = {"a": n, "b": n}, {"a": c, "b": c}
    found = quantizer.set_params(random_state=0).fit(counts, sums)
    sizes = [int(labels.max()) + 1 for labels in found.labels_.values()]
    assert sum(sizes) == 16
    assert abs(sizes[0] - sizes[1]) <= 4
    assert found.information_ > 0.95 * OptimalQuantizer(16).fit(counts, sums).information_


def test_rates_are_drawn_to_the_base_rate():
    n, c = np.array([10.0, 30.0]), np.array([1.0, 9.0])
    assert shrink_sums(n, c, 20).tolist() == pytest.approx([10 * (1 + 5) / 30, 30 * (9 + 5) / 50])


def test_a_record_is_clustered_by_the_labels_of_other_folds():
    """Values seen once: no other fold tells of them, so that all are in the cluster of values never seen."""
    frame = pd.DataFrame({"a": [f"v{i}" for i in range(40)]})
    y = np.arange(40) % 2
    quantizer = OptimalQuantizer(2, random_state=0)
    clusters = quantizer.fit_transform(frame, y)
    assert quantizer.labels_["a"].max() == 1  # by their own labels they fall apart
    assert set(clusters[:, 0]) == {quantizer.unseen_["a"]}


def test_budgets_and_their_shares():
    n = {"a": np.array([10, 10, 10, 10]), "b": np.array([20, 20])}
    c = {"a": np.array([1, 2, 8, 9]), "b": np.array([10, 10])}
    rankings = [Ranking.from_counts(k, n[k].astype(float), c[k].astype(float)) for k in n]
    assert [budget_of(b, 6, 2) for b in (2, 6, 0.5, 0.99)] == [2, 6, 3, 6]
    for wrong in (1, 7, 0.01):
        with pytest.raises(DataError, match="budget"):
            budget_of(wrong, 6, 2)
    assert allocate(5, rankings, "uniform") == [3, 2]
    assert allocate(5, rankings, "information") == [4, 1]  # b tells nothing
    assert allocate(6, rankings, "uniform", np.array([2, 4])) == [2, 4]


def test_rare_values_are_one_cluster():
    n, c = np.array([50, 3, 40, 2, 60]), np.array([5, 3, 30, 1, 24])
    found = OptimalQuantizer(3, min_count=4).fit(n, c)
    assert found.labels_[1] == found.labels_[3] == found.unseen_
    exact = OptimalQuantizer(3, min_count=3).fit(n, c)
    assert exact.labels_[3] == exact.unseen_ != exact.labels_[1]  # 3 records are enough
    alone = OptimalQuantizer(5).fit(n, c)
    assert len(set(alone.labels_)) == 5
    assert alone.unseen_ == alone.labels_[4]  # whose rate, 0.4, is nearest to 63 of 155
    assert found.transform([1, 3, 7, -1]).tolist() == [found.unseen_] * 4
