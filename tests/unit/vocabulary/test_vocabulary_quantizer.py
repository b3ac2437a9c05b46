"""What all quantisers share: what they are fitted to, what they map, and what they refuse."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import printed_with_threads
from sklearn.base import clone
from vocabulary_samples import by_labels, drawn, features, tables_of_counts

from agglearn.errors import ConfigError, DataError, LooksLikeCodes
from agglearn.observations import ContingencyTables, NoiseSpec, with_gaussian_noise
from agglearn.vocabulary import FrequencyQuantizer, OptimalQuantizer, SubmodularQuantizer
from agglearn.vocabulary.quantizer import single_tables
from agglearn.vocabulary.rate_order import rank_rates
from agglearn.vocabulary.shrinkage import beta_prior, project_on_simplex, remove_noise, shrink_sums

METHODS = [OptimalQuantizer(8), SubmodularQuantizer(8, random_state=3), FrequencyQuantizer(8)]


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    zone, job = rng.zipf(1.6, n).clip(max=60), rng.choice(list("abcdef"), n)
    y = (rng.random(n) < np.random.default_rng(1).beta(1, 2, 61)[zone]).astype(int)
    return pd.DataFrame({"zone": zone, "job": job}), y


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_tables_records_and_arrays_give_the_same(method):
    frame, y = people()
    records = clone(method).fit(frame, y)
    tables = ContingencyTables.from_records(frame.assign(y=y), "y", pairs="none", categorical=["zone"])
    of_tables = clone(method).fit(tables)
    parts = {c: frame.assign(y=y).groupby(frame[c].astype(str))["y"].agg(["size", "sum"]) for c in frame}
    arrays = clone(method).fit({c: t["size"] for c, t in parts.items()}, {c: t["sum"] for c, t in parts.items()})
    expected = records.transform(frame)
    assert (of_tables.transform(frame) == expected).all()
    assert (arrays.transform(frame.astype(str)) == expected).all()
    assert records.information_ == of_tables.information_ == pytest.approx(arrays.information_, abs=1e-14)
    assert records.get_feature_names_out().tolist() == ["zone", "job"]


def test_unseen_values_go_to_the_cluster_nearest_to_the_base_rate():
    """32 of 130, .246: nearest to .1, where the mean of the rates, .575, is nearest to .5. Borders are half-way."""
    found = OptimalQuantizer(4).fit(np.array([10, 100, 10, 10]), np.array([9, 10, 5, 8]))
    assert found.unseen_ == found.labels_[1] == 0
    assert found.borders_["x0"].tolist() == pytest.approx([0.3, 0.65, 0.85])
    assert found.transform([0, 3, 4, -1, 77]).tolist() == [3, 2, 0, 0, 0]
    frame, y = people()
    clusters = OptimalQuantizer(9).fit(frame, y)
    new = clusters.transform(pd.DataFrame({"job": ["z", "a"], "zone": [10**9, 1], "more": [1, 2]}))
    assert new[0].tolist() == [clusters.unseen_["zone"], clusters.unseen_["job"]]


def test_rare_values_are_one():
    """Those of fewer records than asked for, without those of none. New values join them."""
    n, c = np.array([50, 3, 40, 2, 60, 0]), np.array([5, 3, 30, 1, 24, 0])
    for quantizer in (OptimalQuantizer(3, min_count=4), FrequencyQuantizer(3, min_count=4)):
        found = quantizer.fit(n, c)
        assert found.transform([1, 3, 5, 7, -1]).tolist() == [found.unseen_] * 5
        assert found.n_clusters_ == 3
    assert found.unseen_ == 2  # clusters of frequent values are numbered by value, the rare ones are last
    exact = OptimalQuantizer(3, min_count=3).fit(n, c)
    assert exact.labels_[3] == exact.unseen_ != exact.labels_[1]  # 3 records are enough
    with pytest.raises(DataError, match="more than the 4 values"):
        OptimalQuantizer(5, min_count=4).fit(n, c)


def test_named_values():
    counts = pd.Series([5, 4, 9], index=["x", "y", "z"])
    sums = pd.Series([9, 0, 5], index=["z", "y", "x"])  # another order
    found = OptimalQuantizer(2).fit(counts, sums)
    assert found.transform(["y", "x", "z"]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_ranks_are_those_of_sorted_rates(noise):
    """Few and many records, whole and fractional counts, equal rates among all of them."""
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.zipf(1.3, 3000).clip(max=5000), [2, 1024, 600, 300]])
    counts = counts + noise * rng.integers(0, 2, 3004)
    sums = np.concatenate([rng.binomial(counts[:3000].astype(int), 0.3), counts[3000:] / 2])
    places, N, C = rank_rates(counts, sums)
    rates, expected = np.unique(sums / counts, return_inverse=True)
    assert places.tolist() == expected.tolist()
    assert np.diff(N).tolist() == pytest.approx(np.bincount(expected, counts))
    assert np.diff(C).tolist() == pytest.approx(np.bincount(expected, sums))
    assert len(rates) < 3004


THREADS = """
import hashlib, numba
from vocabulary_samples import drawn, features
from agglearn.vocabulary import DistributedSubmodularQuantizer, OptimalQuantizer, SubmodularQuantizer
counts, sums = features(*(drawn(2000, i) for i in range(5)))
for threads in (4, 2, 1):
    numba.set_num_threads(threads)
    numba.config.NUMBA_NUM_THREADS = threads  # of the pool of threads
    quantizers = OptimalQuantizer(60), SubmodularQuantizer(60, random_state=0), DistributedSubmodularQuantizer(60)
    labels = [v for q in quantizers for v in q.fit(counts, sums).labels_.values()]
    print(hashlib.sha256(b"".join(v.tobytes() for v in labels)).hexdigest())
"""


@pytest.mark.slow
def test_threads_change_nothing():
    first, *others = printed_with_threads(THREADS)
    assert others == [first, first]


# -- noise and shrinkage ----------------------------------------------------------------------------------------------


def test_noisy_counts_are_clipped_with_a_warning_that_says_how_many():
    counts, sums = np.array([10.5, 8.2, -1.0, 6.0]), np.array([3.0, 9.0, 0.5, -2.0])
    with pytest.warns(UserWarning, match="3 of 4 noisy values clipped"):
        found = OptimalQuantizer(2, noisy=True).fit(counts, sums)
    assert found.labels_[2] == found.unseen_
    frame, y = people()
    tables = ContingencyTables.from_records(frame.assign(y=y), "y", pairs="none", categorical=["zone"])
    noisy = with_gaussian_noise(tables, 3.0, 1)
    assert isinstance(noisy.noise, NoiseSpec)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OptimalQuantizer(6).fit(noisy)


def test_counts_without_noise_stay_as_they_are():
    frame, y = people()
    exact = ContingencyTables.from_records(frame[["job"]].assign(y=y), "y", categorical=["job"])
    noise = NoiseSpec("gaussian", 3.0, 1.0, 1e-6, "label")
    counts, sums = single_tables(replace(exact, noise=noise))["job"]
    np.testing.assert_array_equal(counts, exact.dense(0)[0])
    expected = remove_noise(*exact.dense(0), exact.total, exact.positives, (0.0, 9.0))[1]
    np.testing.assert_array_equal(sums, expected)


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


@pytest.mark.parametrize("variances", [(25.0, 9.0), (0.0, 16.0), (100.0, 100.0), (0.0, 0.0)])
def test_noise_is_removed_by_the_formula(variances):
    r = 106 / 400
    n = project_on_simplex(COUNTS, 400.0) if variances[0] else np.maximum(COUNTS, 0)
    noise, v = variances[1] + r * r * variances[0], r * (1 - r)
    excess = [c - r * m for m, c in zip(COUNTS, SUMS, strict=True)]
    squares = max(sum(m * m - variances[0] for m in COUNTS), sum(m * m for m in n))
    spread = max((sum(e * e - noise for e in excess) - v * sum(n)) / squares, 0)
    assert spread > 0
    signal = [m * m * spread + m * v for m in n]
    removed = [r * m + e * s / (s + noise) if m else 0 for m, e, s in zip(n, excess, signal, strict=True)]
    expected = np.clip(removed, 0, n)
    counts, sums = remove_noise(COUNTS, SUMS, 400.0, 106.0, variances)
    np.testing.assert_allclose(counts, n)
    np.testing.assert_allclose(sums, expected, atol=1e-9)


def test_rates_are_drawn_to_an_uneven_base_rate():
    n, c = np.array([10.0, 30.0]), np.array([1.0, 8.0])  # base rate .225
    assert shrink_sums(n, c, 20).tolist() == pytest.approx([10 * (1 + 4.5) / 30, 30 * (8 + 4.5) / 50])


@pytest.mark.parametrize("sigma", [3.0, 17.0])
def test_noise_is_not_taken_for_information(sigma):
    """Thousands of values, most of them rare: noise alone would tell several times what the data hold."""
    counts, sums = drawn(3000, largest=3000)
    exact = tables_of_counts({"page": counts}, {"page": sums})
    true = OptimalQuantizer(50).fit(exact).information_
    noisy = with_gaussian_noise(exact, sigma, 1)
    found = OptimalQuantizer(50).fit(noisy)
    assert 0.3 * true < found.information_ < 1.05 * true
    counted, labelled = single_tables(noisy)["page"]
    assert counted.sum() == pytest.approx(noisy.total)
    assert (labelled >= 0).all()
    assert (labelled <= counted).all()
    rates = [np.average(sums[g] / counts[g], weights=counts[g]) for g in by_labels(found.labels_["page"])]
    assert np.ptp(rates) > 0.2  # the clusters part values whose true rates differ


def test_bins_are_not_compressed_in_silence():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": rng.integers(0, 5000, 4000), "y": rng.integers(0, 2, 4000)})
    tables = ContingencyTables.from_records(frame, "y", pairs="none")
    with pytest.warns(LooksLikeCodes, match=r"not their values: 'user' \(10\); if"):
        OptimalQuantizer(5).fit(tables)
    codes = pd.DataFrame({f"C{i}": frame["user"] for i in range(40)})
    with pytest.warns(LooksLikeCodes) as caught:
        OptimalQuantizer(50).fit(ContingencyTables.from_records(codes.assign(y=frame["y"]), "y", pairs="none"))
    assert len([w for w in caught if "compressed" in str(w.message)]) == 1


# -- records that clusters are learnt from ----------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [None, "beta_binomial"])
def test_records_do_not_choose_their_own_clusters(shrinkage):
    """One feature of rare values and pure noise, one that tells: clusters by own labels drown the second in the first."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.integers(0, 1500, 3000), "tells": rng.integers(0, 30, 3000)})
    y = (rng.random(3000) < np.random.default_rng(1).beta(1, 2, 30)[frame["tells"]]).astype(int)
    frame, y = frame[:2000], y[:2000]
    quantizer = OptimalQuantizer(30, shrinkage=shrinkage, random_state=0)
    crossed, own = quantizer.fit_transform(frame, y), quantizer.transform(frame)
    assert abs(np.corrcoef(crossed[:, 0], y)[0, 1]) < 0.1 < np.corrcoef(own[:, 0], y)[0, 1]
    assert np.corrcoef(crossed[:, 1], own[:, 1])[0, 1] > 0.9


def test_a_record_is_clustered_by_the_labels_of_other_folds():
    """Values seen once: no other fold tells of them, so that all are in the cluster of values never seen."""
    frame = pd.DataFrame({"a": [f"v{i}" for i in range(40)]})
    y = np.arange(40) % 2
    quantizer = OptimalQuantizer(2, random_state=0)
    clusters = quantizer.fit_transform(frame, y)
    assert quantizer.labels_["a"].max() == 1  # by their own labels they fall apart
    assert set(clusters[:, 0]) == {quantizer.unseen_["a"]}


def test_folds_are_drawn_whatever_the_order_of_the_records():
    """In folds of neighbouring records no value would occur outside its own fold: all would be unseen."""
    values, ones = np.repeat(np.arange(20), 15), np.tile([2, 13], 10)
    X, y = pd.DataFrame({"a": values}), np.concatenate([np.arange(15) < k for k in ones]).astype(int)
    quantizer = OptimalQuantizer(2, random_state=0)
    clusters = quantizer.fit_transform(X, y)[:, 0]
    assert (clusters == (ones[values] == 13)).mean() > 0.95


def test_one_fold_leaves_no_other_records():
    frame, y = people()
    with pytest.raises(ConfigError, match="folds: 1 is not allowed"):
        OptimalQuantizer(8).fit_transform(frame, y, folds=1)


def test_clusters_that_no_label_made_need_no_folds():
    frame, y = people()
    frequency = FrequencyQuantizer(8)
    assert (frequency.fit_transform(frame, y) == frequency.transform(frame)).all()
    rare = OptimalQuantizer(8, min_count=20, random_state=0)
    crossed = rare.fit_transform(frame, y)
    seldom = frame["zone"].map(frame["zone"].value_counts()) < 20
    assert (crossed[seldom, 0] == rare.unseen_["zone"]).all()


def test_the_beta_prior_is_found():
    rng = np.random.default_rng(0)
    counts = rng.zipf(1.5, 20_000).clip(max=500)
    sums = rng.binomial(counts, rng.beta(2.0, 6.0, 20_000))
    assert beta_prior(counts, sums) == pytest.approx((2.0, 6.0), rel=0.1)
    a, b = beta_prior(np.full(40, 10.0), np.repeat([0.0, 10.0], 20))  # rates of 0 and 1 have a weak prior
    assert a == pytest.approx(b, rel=1e-3)
    assert a + b < 0.1


def test_shrinking_ranks_one_click_below_many():
    counts, sums = np.array([1, 1000, 1, 500, 500]), np.array([1, 600, 0, 100, 80])
    rates = shrink_sums(counts, sums, "beta_binomial") / counts
    assert rates[1] > rates[0] > rates[3]
    found = OptimalQuantizer(2, shrinkage="beta_binomial").fit(counts, sums)
    assert found.labels_[1:3].tolist() == [1, 0]


# -- bad input --------------------------------------------------------------------------------------------------------


A, B = drawn(10), drawn(10, 1)


@pytest.mark.parametrize(
    ("X", "y", "budget", "said"),
    [
        ([3, 4], [1, 5], 2, "value 1 needs 0 ≤ label sum ≤ count.*count 4 and label sum 5"),
        ([3, -4], [1, 0], 2, "value 1 needs 0 ≤ label sum ≤ count"),
        ([3, 4.5], [1, 0], 2, "value 1 needs whole numbers.*noisy=True"), ([3, 4], [1, 0.5], 2, "whole numbers"),
        ([3, np.nan], [1, 0], 2, "value 1 has count nan"), ([3, 4], [1, np.inf], 2, "label sum inf"),
        ([3, 4], [0, 0], 2, "same label"), ([3, 4], [3, 4], 2, "same label"), ([], [], 2, "vocabulary is empty"),
        ([0, 0], [0, 0], 2, "vocabulary is empty"), ([3, 4], [1, 0], 3, "more than the 2 values"),
        ([3, 4], [1, 0, 0], 2, "one of each per value"), (["a", "b"], [1, 0], 2, "must be numbers"),
        (*features(A, B), 1, "too few clusters, 1 for 2 features"), ({"a": A[0]}, {"b": A[1]}, 2, "same features"),
        ({}, {}, 2, "no features"), (pd.Series([3, 4], index=["v", "v"]), [1, 1], 2, "'v' occurs twice"),
        (pd.Series([3, 4], index=["x", "y"]), pd.Series([1, 1], index=["x", "z"]), 2, "name different values"),
        (A[0], None, 2, "second argument"), (people()[0], [0, 1, 1], 2, "600 records and 3 labels"),
    ],
)  # fmt: skip
def test_bad_input(X, y, budget, said):
    with pytest.raises(DataError, match=said):
        OptimalQuantizer(budget).fit(X, y)


def test_values_that_are_not_those_of_the_fit():
    with pytest.raises(DataError, match="values of 2 features by name"):
        OptimalQuantizer(4).fit(*features(A, B)).transform([0, 1])
    with pytest.raises(DataError, match="positions 0 … 9"):
        OptimalQuantizer(2).fit(*A).transform(["x"])
    frame, y = people()
    with pytest.raises(DataError, match="no column 'zone'"):
        OptimalQuantizer(4).fit(frame, y).transform(frame[["job"]])
    pairs = ContingencyTables.from_records(frame.assign(y=y), "y", pairs="all")
    object.__setattr__(pairs, "tables", {k: t for k, t in pairs.tables.items() if len(k) == 2})
    with pytest.raises(DataError, match="no table of the single feature 'zone'"):
        OptimalQuantizer(4).fit(pairs)


@pytest.mark.parametrize(("number", "share"), [(np.float32, 0.048), (np.float64, 0.052), (np.int32, None)])
def test_numpy_budgets(number, share):
    counts, sums = drawn(200)
    budget = number(10 if number is np.int32 else share)
    assert OptimalQuantizer(budget).fit(counts, sums).n_clusters_ == 10


@pytest.mark.parametrize("budget", [0, -1, 1.0, 2.5, True, "10", None, float("nan")])
def test_bad_budgets(budget):
    with pytest.raises(ConfigError, match="budget"):
        OptimalQuantizer(budget).fit(*drawn(20))
