"""What all quantisers share: what they are fitted to, what they map, and what they refuse."""

import warnings

import numpy as np
import pandas as pd
import pytest
from samples import printed_with_threads
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from vocabulary_samples import by_labels, drawn

from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.errors import ConfigError, DataError, LooksLikeCodes
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables, NoiseSpec, Table, with_gaussian_noise
from agglearn.vocabulary import FrequencyQuantizer, OptimalQuantizer, SubmodularQuantizer
from agglearn.vocabulary.quantizer import single_tables
from agglearn.vocabulary.rate_order import rank_rates
from agglearn.vocabulary.shrinkage import beta_prior, remove_noise, shrink_sums

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


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_order_of_rows_changes_nothing(method):
    frame, y = people()
    order = np.random.default_rng(0).permutation(len(y))
    a, b = clone(method).fit(frame, y), clone(method).fit(frame.iloc[order], y[order])
    assert (a.transform(frame) == b.transform(frame)).all()


@pytest.mark.parametrize("method", METHODS[:2], ids=lambda m: type(m).__name__)
def test_permuted_values_get_permuted_clusters(method):
    counts, sums = drawn(300)
    order = np.random.default_rng(0).permutation(300)
    a, b = clone(method).fit(counts, sums), clone(method).fit(counts[order], sums[order])
    assert a.labels_[order].tolist() == b.labels_.tolist()


def test_unseen_values_go_to_the_cluster_nearest_to_the_base_rate():
    counts, sums = np.array([100, 100, 100, 10]), np.array([5, 30, 90, 0])
    found = OptimalQuantizer(3).fit(counts, sums)
    assert found.unseen_ == found.labels_[1]
    assert found.transform([0, 3, 4, -1, 77]).tolist() == [*found.labels_[[0, 3]], *[found.unseen_] * 3]
    frame, y = people()
    clusters = OptimalQuantizer(9).fit(frame, y)
    new = clusters.transform(pd.DataFrame({"job": ["z", "a"], "zone": [10**9, 1], "more": [1, 2]}))
    assert new[0].tolist() == [clusters.unseen_["zone"], clusters.unseen_["job"]]


def test_frequency_sends_unseen_values_to_the_rare_ones():
    counts, sums = np.array([50, 40, 3, 2, 1]), np.array([25, 1, 2, 1, 1])
    found = FrequencyQuantizer(3, min_count=3).fit(counts, sums)
    assert found.unseen_ == found.labels_[4] == 2


def test_rare_values_are_one():
    counts, sums = np.array([50, 40, 3, 2, 1, 0]), np.array([25, 1, 3, 0, 1, 0])
    found = OptimalQuantizer(3, min_count=4).fit(counts, sums)
    assert found.labels_[2] == found.labels_[3] == found.labels_[4] == found.unseen_ == found.labels_[5]
    with pytest.raises(DataError, match="more than the 3 values"):
        OptimalQuantizer(4, min_count=4).fit(counts, sums)


def test_budget_may_be_a_share():
    counts, sums = drawn(200)
    assert (
        OptimalQuantizer(0.05).fit(counts, sums).labels_.tolist()
        == OptimalQuantizer(10).fit(counts, sums).labels_.tolist()
    )


def test_named_values():
    counts = pd.Series([5, 4, 9], index=["x", "y", "z"])
    sums = pd.Series([9, 0, 5], index=["z", "y", "x"])  # another order
    found = OptimalQuantizer(2).fit(counts, sums)
    assert found.transform(["y", "x", "z"]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_survives_saving(method, tmp_path):
    frame, y = people()
    found = clone(method).fit(frame, y)
    found.save(tmp_path / "model")
    again = Estimator.load(tmp_path / "model")
    assert (again.transform(frame) == found.transform(frame)).all()
    arrays = clone(method).fit(*drawn(50))
    arrays.save(tmp_path / "arrays")
    assert Estimator.load(tmp_path / "arrays").labels_.tolist() == arrays.labels_.tolist()


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_ranks_are_those_of_sorted_rates(noise):
    """Few and many records, whole and fractional counts, equal rates among all of them."""
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.zipf(1.3, 3000).clip(max=5000), [2, 1024, 600, 300]]) + noise * rng.integers(
        0, 2, 3004
    )
    sums = np.concatenate([rng.binomial(counts[:3000].astype(int), 0.3), counts[3000:] / 2])
    places, N, C = rank_rates(counts, sums)
    rates, expected = np.unique(sums / counts, return_inverse=True)
    assert places.tolist() == expected.tolist()
    assert np.diff(N).tolist() == pytest.approx(np.bincount(expected, counts))
    assert np.diff(C).tolist() == pytest.approx(np.bincount(expected, sums))
    assert len(rates) < 3004


def test_one_feature_and_a_single_cluster():
    counts, sums = drawn(30)
    found = OptimalQuantizer(1).fit(counts, sums)
    assert found.information_ == 0
    assert found.relative_loss_ == pytest.approx(1)
    assert set(found.labels_) == {0}


THREADS = """
import hashlib, numba
from vocabulary_samples import drawn
from agglearn.vocabulary import DistributedSubmodularQuantizer, OptimalQuantizer, SubmodularQuantizer
tables = [drawn(2000, i) for i in range(5)]
counts, sums = ({f"f{i}": t[k] for i, t in enumerate(tables)} for k in (0, 1))
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


@pytest.mark.parametrize("sigma", [3.0, 17.0])
def test_noise_is_not_taken_for_information(sigma):
    """Thousands of values, most of them rare: noise alone would tell several times what the data hold."""
    counts, sums = drawn(3000, largest=3000)
    cells = np.arange(3000)
    exact = ContingencyTables(
        FrameEncoder((CodedEncoder("page", 3000),)), "y", int(counts.sum()), int(sums.sum()),
        {(0,): Table((3000,), cells, counts, sums)},
    )  # fmt: skip
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


def test_without_noise_on_counts_only_rates_are_shrunk():
    n, c = remove_noise(np.array([5.0, 50, 500]), np.array([9.0, 20, 100]), 555, 120, (0.0, 16.0))
    assert n.tolist() == [5, 50, 500]
    assert 0.2 * 5 < c[0] <= 5
    assert remove_noise(*drawn(50), 10.0, 3.0, (0.0, 0.0))[1] == pytest.approx(drawn(50)[1])


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


def logistic_score(clusters, y, new, y_new) -> float:
    """AUC on new records of a logistic regression on the clusters of those that made them."""
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(C=10.0, max_iter=500))
    return roc_auc_score(y_new, model.fit(clusters, y).predict_proba(new)[:, 1])


@pytest.mark.parametrize("shrinkage", [None, "beta_binomial"])
def test_records_do_not_choose_their_own_clusters(shrinkage):
    """One feature of rare values and pure noise, one that tells: clusters by own labels drown the second in the first."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.integers(0, 1500, 3000), "tells": rng.integers(0, 30, 3000)})
    y = (rng.random(3000) < np.random.default_rng(1).beta(1, 2, 30)[frame["tells"]]).astype(int)
    made, new = frame[:2000], frame[2000:]
    quantizer = OptimalQuantizer(30, shrinkage=shrinkage, random_state=0)
    crossed = quantizer.fit_transform(made, y[:2000])
    own = quantizer.transform(made)
    assert abs(np.corrcoef(crossed[:, 0], y[:2000])[0, 1]) < 0.1 < np.corrcoef(own[:, 0], y[:2000])[0, 1]
    assert np.corrcoef(crossed[:, 1], own[:, 1])[0, 1] > 0.9
    scores = [logistic_score(c, y[:2000], quantizer.transform(new), y[2000:]) for c in (crossed, own)]
    assert scores[0] > scores[1] + 0.02


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
    a, b = beta_prior(counts, sums)
    assert (a, b) == pytest.approx((2.0, 6.0), rel=0.1)


def test_shrinking_ranks_one_click_below_many():
    counts, sums = np.array([1, 1000, 1, 500, 500]), np.array([1, 600, 0, 100, 80])
    rates = shrink_sums(counts, sums, "beta_binomial") / counts
    assert rates[1] > rates[0] > rates[3]
    assert (shrink_sums(counts, sums, 1e-9) / counts) == pytest.approx(sums / counts, abs=1e-6)
    found = OptimalQuantizer(2, shrinkage="beta_binomial").fit(counts, sums)
    assert found.labels_[1] == 1
    assert found.labels_[2] == 0


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "sums", "budget", "said"),
    [
        ([3, 4], [1, 5], 2, "value 1 needs 0 ≤ label sum ≤ count.*count 4 and label sum 5"),
        ([3, -4], [1, 0], 2, "value 1 needs 0 ≤ label sum ≤ count"),
        ([3, 4.5], [1, 0], 2, "value 1 needs whole numbers.*noisy=True"),
        ([3, 4], [1, 0.5], 2, "whole numbers"),
        ([3, np.nan], [1, 0], 2, "value 1 has count nan"),
        ([3, 4], [1, np.inf], 2, "label sum inf"),
        ([3, 4], [0, 0], 2, "same label"),
        ([3, 4], [3, 4], 2, "same label"),
        ([], [], 2, "vocabulary is empty"),
        ([0, 0], [0, 0], 2, "vocabulary is empty"),
        ([3, 4], [1, 0], 3, "more than the 2 values"),
        ([3, 4], [1, 0, 0], 2, "one of each per value"),
        (["a", "b"], [1, 0], 2, "must be numbers"),
    ],
)
def test_bad_tables(counts, sums, budget, said):
    with pytest.raises(DataError, match=said):
        OptimalQuantizer(budget).fit(np.array(counts), np.array(sums))


@pytest.mark.parametrize("number", [np.float32, np.float64, np.int32])
def test_numpy_budgets(number):
    counts, sums = drawn(200)
    budget = number(10 if number is np.int32 else 0.05)
    assert OptimalQuantizer(budget).fit(counts, sums).n_clusters_ == 10


@pytest.mark.parametrize("budget", [0, -1, 1.0, 2.5, True, "10", None, float("nan")])
def test_bad_budgets(budget):
    with pytest.raises(ConfigError, match="budget"):
        OptimalQuantizer(budget).fit(*drawn(20))


def test_more_bad_input():
    a, b = drawn(10), drawn(10, 1)
    with pytest.raises(DataError, match="too few clusters, 1 for 2 features"):
        OptimalQuantizer(1).fit({"a": a[0], "b": b[0]}, {"a": a[1], "b": b[1]})
    with pytest.raises(DataError, match="same features"):
        OptimalQuantizer(2).fit({"a": a[0]}, {"b": a[1]})
    with pytest.raises(DataError, match="no features"):
        OptimalQuantizer(2).fit({}, {})
    twice = pd.Series(a[0], index=["v"] * 10)
    two = OptimalQuantizer(4).fit({"p": a[0], "q": a[0]}, {"p": a[1], "q": a[1]})
    with pytest.raises(DataError, match="values of 2 features by name"):
        two.transform([0, 1])
    with pytest.raises(DataError, match="'v' occurs twice"):
        OptimalQuantizer(2).fit(twice, twice)
    with pytest.raises(DataError, match="name different values"):
        OptimalQuantizer(2).fit(pd.Series([3, 4], index=["x", "y"]), pd.Series([1, 1], index=["x", "z"]))
    with pytest.raises(DataError, match="second argument"):
        OptimalQuantizer(2).fit(a[0])
    frame, y = people()
    with pytest.raises(DataError, match="600 records and 5 labels"):
        OptimalQuantizer(2).fit(frame, y[:5])
    with pytest.raises(DataError, match="no column 'zone'"):
        OptimalQuantizer(4).fit(frame, y).transform(frame[["job"]])
    with pytest.raises(DataError, match="positions 0 … 9"):
        OptimalQuantizer(2).fit(*a).transform(["x"])
    pairs = ContingencyTables.from_records(frame.assign(y=y), "y", pairs="all")
    object.__setattr__(pairs, "tables", {k: t for k, t in pairs.tables.items() if len(k) == 2})
    with pytest.raises(DataError, match="no table of the single feature 'zone'"):
        OptimalQuantizer(4).fit(pairs)
