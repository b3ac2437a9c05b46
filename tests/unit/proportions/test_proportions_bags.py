"""The observation: what it refuses, what it keeps, how it is cut."""

import numpy as np
import pytest
from samples import people

from agglearn.errors import DataError
from agglearn.observations import Bags, ContingencyTables, CountedBags, LabelledBags, Records

X = np.arange(12.0).reshape(6, 2)


def test_counts_of_positives_become_counts_of_classes():
    bags = Bags(X, [0, 2, 6], [1, 3])
    assert bags.counts.tolist() == [[1, 1], [1, 3]]
    assert len(bags) == 2
    assert bags.bag_of.tolist() == [0, 0, 1, 1, 1, 1]


def test_saved_and_loaded(tmp_path):
    whole = Bags(
        X, [0, 2, 6], [[1, 1], [2, 2]], target=np.array([0.5, 1.0]), names=("a", "b"), bag_names=("here", "there")
    )
    whole.save(tmp_path / "bags")
    again = Bags.load(tmp_path / "bags")
    assert again.digest == whole.digest
    assert again.names == ("a", "b")
    other = Bags(X, [0, 2, 6], [[1, 1], [1, 3]], target=np.array([0.5, 1.0]))
    assert other.digest != whole.digest
    oracle = LabelledBags(whole, np.array([0, 1, 0, 1, 0, 1]))
    oracle.save(tmp_path / "labels")
    assert LabelledBags.load(tmp_path / "labels").digest == oracle.digest


@pytest.mark.parametrize("wrong", [2, -1, np.nan, 0.5])
def test_labels_that_are_no_classes_are_refused(wrong):
    frame = people(20)
    encoder = Records.from_records(frame, "y").encoder
    y = frame.y.to_numpy(float)
    y[3] = wrong
    with pytest.raises(DataError, match=f"labels: must be 0 or 1, got {wrong}"):
        CountedBags.from_records(encoder, frame, y, 5, np.random.default_rng(0))
    with pytest.raises(DataError, match="labels: must be 0 or 1"):
        Records(encoder, frame, y)
    with pytest.raises(DataError, match="labels: must be 0 or 1"):
        ContingencyTables.from_codes(encoder, encoder.encode(frame), y)
    labels = np.array([0, 1, 0, 1, 0, wrong])
    with pytest.raises(DataError, match="labels: must be 0 or 1"):
        LabelledBags(Bags(X, [0, 2, 6], [[1, 1], [2, 2]]), labels)
    if wrong != 2:
        with pytest.raises(DataError, match="labels: must be whole numbers from 0 on"):
            LabelledBags(Bags(X, [0, 2, 6], target=[0.5, 1.0]), labels)
    with pytest.raises(DataError, match="labels: 19 for 20 records"):
        Records(encoder, frame, y[1:])


def test_damaged_bags_are_said_to_be(tmp_path):
    Bags(X, [0, 6], [[3, 3]]).save(tmp_path / "bags")
    (tmp_path / "bags/X.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged"):
        Bags.load(tmp_path / "bags")


def test_part_of_the_bags():
    bags = Bags(X, [0, 1, 3, 6], [0, 1, 2], bag_names="abc")
    part = bags.take([2, 0])
    assert part.X[:, 0].tolist() == [6, 8, 10, 0]
    assert part.counts.tolist() == [[1, 2], [1, 0]]
    assert part.bag_names == ("c", "a")
    assert np.shares_memory(bags.take([0, 1]).X, bags.X)


def test_groups_in_any_order():
    bags = Bags.from_groups(X, ["s", "t", "s", "t", "t", "s"], {"t": 1, "s": 2})
    assert bags.X[:, 0].tolist() == [2, 6, 8, 0, 4, 10]
    assert bags.counts.tolist() == [[2, 1], [1, 2]]
    assert bags.bag_names == ("t", "s")


@pytest.mark.parametrize(
    ("bags", "counts", "said"),
    [
        (list("sstuuv"), {"s": 1, "t": 0}, "bags without counts: u, v"),
        (list("ssssss"), {"s": 1, "t": 0, "u": 1}, "counts without instances: t, u"),
    ],
)
def test_groups_without_a_partner_are_listed(bags, counts, said):
    with pytest.raises(DataError, match=said):
        Bags.from_groups(X, bags, counts)


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
        (lambda: Bags(X, [0, 6], target=[1.0, 2.0]), "target: 2 values for 1 bags"),
        (lambda: Bags(X, [0, 6], target=[np.inf]), "target: not a number for bag 0"),
        (lambda: LabelledBags(Bags(X, [0, 6], [2]), np.zeros(5)), "labels: 5 for 6"),
    ],
)
def test_bad_bags_are_refused(made, said):
    with pytest.raises(DataError, match=said):
        made()


def test_weights():
    weighted = Bags(X, [0, 2, 6], [[0, 1], [2, 1]], weights=[1, 0, 1, 1, 0, 1])
    whole = weighted.persons()
    assert whole.X[:, 0].tolist() == [0, 4, 6, 10]
    assert whole.offsets.tolist() == [0, 1, 4]
    with pytest.raises(DataError, match="draw them by weight"):
        Bags(X, [0, 6], [[1, 2]], weights=np.full(6, 0.5)).persons()
    with pytest.raises(DataError, match="not whole"):
        Bags(X, [0, 6], [[0.5, 2.5]], weights=np.full(6, 0.5)).persons()
