"""The observation: what it refuses, what it keeps, how it is cut."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import people

from agglearn.errors import DataError
from agglearn.observations import Bags, ContingencyTables, CountedBags, LabelledBags, Records
from agglearn.proportions import MeanEmbeddingClassifier

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize("wrong", [2, -1, np.nan, 0.5])
def test_labels_that_are_no_classes_are_refused(wrong):
    frame = people(20)
    encoder = Records.from_records(frame, "y").encoder
    y = frame.y.to_numpy(float)
    y[3] = wrong
    labels = np.array([0, 1, 0, 1, 0, wrong])
    for make in (
        lambda: CountedBags.from_records(encoder, frame, y, 5, np.random.default_rng(0)),
        lambda: Records(encoder, frame, y),
        lambda: ContingencyTables.from_codes(encoder, encoder.encode(frame), y),
        lambda: LabelledBags(Bags(X, [0, 2, 6], [[1, 1], [2, 2]]), labels),
    ):
        with pytest.raises(DataError, match=f"labels: must be 0 or 1, got {wrong}"):
            make()
    if wrong != 2:
        with pytest.raises(DataError, match="labels: must be whole numbers from 0 on"):
            LabelledBags(Bags(X, [0, 2, 6], target=[0.5, 1.0]), labels)
    with pytest.raises(DataError, match="labels: 19 for 20 records"):
        Records(encoder, frame, y[1:])


def test_part_of_the_bags():
    bags = Bags(X, [0, 1, 3, 6], [0, 1, 2], bag_names="abc")
    assert (len(bags), bags.bag_of.tolist()) == (3, [0, 1, 1, 2, 2, 2])
    part = bags.take([2, 0])
    assert part.X[:, 0].tolist() == [6, 8, 10, 0]
    assert part.counts.tolist() == [[1, 2], [1, 0]]
    assert part.bag_names == ("c", "a")
    assert np.shares_memory(bags.take([0, 1]).X, bags.X)


@pytest.mark.parametrize(
    "counts",
    [{"t": 1, "s": 2}, pd.Series({"t": 1, "s": 2}), pd.DataFrame({"no": [2, 1], "yes": [1, 2]}, index=["t", "s"])],
    ids=["dict", "series", "frame"],
)
def test_groups_in_any_order(counts):
    bags = Bags.from_groups(X, list("ststts"), counts)
    assert bags.X[:, 0].tolist() == [2, 6, 8, 0, 4, 10]
    assert bags.counts.tolist() == [[2, 1], [1, 2]]
    assert bags.bag_names == ("t", "s")


def test_proportions_become_whole_counts():
    bags = Bags.from_groups(X, list("ststts"), proportions={"t": 0.33, "s": 0.67})
    assert bags.counts.tolist() == [[2, 1], [1, 2]]
    three = Bags.from_groups(X, list("ssttts"), proportions={"t": [0.34, 0.33, 0.33], "s": [0.2, 0.2, 0.6]})
    assert three.counts.tolist() == [[1, 1, 1], [1, 0, 2]]
    weighed = Bags.from_groups(X, list("ststts"), proportions={"t": 0.5, "s": 0.25}, weights=np.full(6, 0.5))
    assert weighed.counts.tolist() == [[0.75, 0.75], [1.125, 0.375]]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=8))
def test_published_shares_of_counts_give_the_counts(rows):
    counts = np.array(rows)
    bag = np.repeat(np.arange(len(rows)), counts.sum(axis=1))
    shares = dict(enumerate((counts / counts.sum(axis=1, keepdims=True)).round(4).tolist()))
    assert (Bags.from_groups(np.zeros((len(bag), 1)), bag, proportions=shares).counts == counts).all()


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"bags": list("sttss"), "counts": {"s": 1, "t": 1}}, "bag of each of the 6 instances, got shape .5,."),
        ({"bags": list("sttsstt"), "counts": {"s": 1, "t": 1}}, "bag of each of the 6 instances, got shape .7,."),
        ({"counts": [1, 2]}, "counts: must map bags to numbers .a dict, Series or data frame., got list"),
        ({"counts": {"s": 1, "t": [1, 2]}}, "counts: every bag needs one number, or one for each class"),
        ({"counts": pd.Series([1, 1, 1], index=list("sts"))}, "counts: bag 's' occurs more than once"),
        ({"counts": {"s": 1.5, "t": 1}}, "bag 's': counts .* are not whole; for shares use"),
        ({"bags": list("sstuuv"), "counts": {"s": 1, "t": 0}}, "bags without counts: u, v"),
        ({"bags": list("ssssss"), "counts": {"s": 1, "t": 0, "u": 1}}, "counts without instances: t, u"),
        (
            {"counts": {"s": (34_840, 17_420), "t": (1, 2)}},
            r"the bag has 3; .* population .* use Bags.from_groups\(X, bags, totals=…\)",
        ),
        ({"totals": {"s": (1, 2), "t": (0, 0)}}, "totals: bag 't' has .*; give a number ≥ 0 for every class"),
        ({"totals": {"s": (1, 2), "t": (-1, 2)}}, "totals: bag 't' has .*; give a number ≥ 0"),
        ({"totals": {"s": (1, 2), "t": (np.nan, 2)}}, "totals: bag 't' has .*; give a number ≥ 0"),
        ({"totals": {"s": 1, "t": 2}}, "totals: bag '[st]' has .*; give a number ≥ 0"),
        ({}, "counts, proportions, totals: give one of them"),
        ({"counts": {"s": 1, "t": 1}, "proportions": {"s": 0.5, "t": 0.5}}, "counts, proportions, totals: give one"),
        ({"proportions": {"s": 0.5, "t": 50}}, "proportions: bag 't' has 50.0; shares lie between 0 and 1"),
        ({"proportions": {"s": 0.5, "t": np.nan}}, "proportions: bag 't' has nan; shares lie"),
        ({"proportions": {"s": [0.5, 0.5], "t": [0.5, 0.3]}}, "proportions: those of bag 't' add up to 0.8, not to 1"),
        ({"proportions": {"s": 0.5}}, "bags without proportions: t"),
        ({"counts": {"s": 1, "t": 1}, "weights": np.ones(5)}, "weights: must be .6,."),
    ],
)
def test_bad_groups_are_refused(given_, said):
    with pytest.raises(DataError, match=said):
        Bags.from_groups(X, **({"bags": list("ststts")} | given_))


def test_columns_are_matched_by_name():
    """The same columns in another order are the same data."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    bag, turned = np.arange(60) // 6, frame[list("cab")]
    bags = Bags.from_groups(frame, bag, dict.fromkeys(range(10), 3) | {0: 1, 1: 5})
    assert bags.names == Bags(frame, bags.offsets, bags.counts).names == ("a", "b", "c")
    model = MeanEmbeddingClassifier(l2=0.1).fit(bags)
    assert model.feature_names_in_ == ["a", "b", "c"]
    assert np.array_equal(model.predict_proba(turned), model.predict_proba(frame.to_numpy()))
    other = Bags.from_groups(turned, bag, dict.fromkeys(range(10), 3))
    assert np.array_equal(model.predict_counts(other), model.predict_counts(bags))
    with pytest.raises(DataError, match="columns that were learned from are missing: b; there are a, c"):
        model.predict_proba(frame[["a", "c"]])


def test_labels_that_contradict_the_counts_are_refused():
    bags, y = Bags(X, [0, 2, 6], [[1, 1], [3, 1]], bag_names="uv"), np.array([0, 1, 0, 1, 0, 1])
    said = r"labels: bag 'v' has \[2, 2\] of each class by its labels, and counts \[3, 1\]"
    with pytest.raises(DataError, match=said):
        LabelledBags(bags, y)
    weighed = Bags(X, [0, 2, 6], [[0.5, 1], [1, 2]], weights=[0.5, 1, 0.5, 1, 0.5, 1])
    assert LabelledBags(weighed, y).bags is weighed


HOLED = X.copy()
HOLED[3, 1] = np.nan


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Bags(X, [0, 2, 6], [3, 1]), "bag 0: 3 positives among 2"),
        (lambda: Bags(X, [0, 2, 6], [-1, 1]), "bag 0: -1 positives"),
        (lambda: Bags(X, [0, 2, 6], [[1, 1], [5, -1]], bag_names="ab"), "bag 'b': negative count"),
        (lambda: Bags(X, [0, 2, 6], [[1, 1], [2, 1]], bag_names="ab"), "bag 'b': counts .* add up to 3, the bag has 4"),
        (lambda: Bags(X, [0, 2, 2, 6], [1, 0, 1], bag_names="abc"), "empty bags: 'b'"),
        (lambda: Bags(X, [0, 2], [1]), "offsets: must go from 0 to the 6"),
        (lambda: Bags(X, [0, 2, 6], [1]), "one row for each of the 2 bags"),
        (lambda: Bags(HOLED, [0, 2, 6], [1, 1], names="uv", bag_names="ab"), "column 'v' .* bag 'b' .row 3"),
        (lambda: Bags(X[0], [0, 2], [1]), "instances, covariates"),
        (lambda: Bags(X, [0, 6], [2], weights=-np.ones(6)), "weights"),
        (lambda: Bags(X, [0, 6], [2], weights=np.ones(5)), "weights: must be .6,."),
        (lambda: Bags(X, [0, 6], [2], weights=[1, 1, 1, 1, 1, np.inf]), "weights: must be .6,. finite numbers"),
        (lambda: Bags(X, [0, 6], target=[1.0, 2.0]), "target: 2 values for 1 bag"),
        (lambda: Bags(X, [0, 6], target=[np.inf]), "target: not a number for bag 0"),
        (lambda: LabelledBags(Bags(X, [0, 6], [2]), np.zeros(5)), "labels: 5 for 6"),
    ],
)
def test_bad_bags_are_refused(made, said):
    with pytest.raises(DataError, match=said):
        made()


def test_weights():
    weighted = Bags(X, [0, 2, 6], [[0, 1], [2, 1]], weights=[1, 0, 1, 1, 0, 1])
    whole = weighted.drop_zero_weights()
    assert whole.X[:, 0].tolist() == [0, 4, 6, 10]
    assert whole.offsets.tolist() == [0, 1, 4]
    with pytest.raises(DataError, match=r"draw them with bags.draw\(\)"):
        Bags(X, [0, 6], [[1, 2]], weights=np.full(6, 0.5)).drop_zero_weights()
    with pytest.raises(DataError, match="not whole"):
        Bags(X, [0, 6], [[0.5, 2.5]], weights=np.full(6, 0.5)).drop_zero_weights()


@pytest.mark.parametrize(("weights", "positives"), [([1, 1, 0, 1], 1), ([0.5, 1, 1, 0.5], 1.2)])
def test_counts_are_whole_where_weights_are_zero_or_one(weights, positives):
    bags = Bags.from_groups(np.zeros((4, 1)), ["a"] * 4, proportions={"a": 0.4}, weights=weights)
    assert bags.counts[0, 1] == pytest.approx(positives)
