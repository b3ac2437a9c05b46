"""Bags, records, label sums, projected and thinned tables and their memory against a few numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import people

from agglearn.errors import DataError
from agglearn.observations import (
    Bags,
    ContingencyTables,
    LabelledBags,
    LabelSums,
    Records,
    Table,
    with_gaussian_noise,
)
from agglearn.observations.consistency import noise_variances, project_tables
from agglearn.observations.counting import CELL_BYTES, DENSE_CELLS, DENSE_TOTAL, FIRST_SLOTS, TABLE_BYTES, workload_of


def test_labels_of_rows_do_not_tell_records_apart():
    frame = people(20)
    there, shifted = (Records.from_records(f, "y") for f in (frame, frame.set_axis(frame.index + 5)))
    assert there.digest == shifted.digest


def test_variances_of_projected_tables_by_each_number_moved_alone():
    """The projection is linear: a cell's variance is σ² times the sum of squares of what each released number moves it by."""
    frame = pd.DataFrame({"a": list("uv") * 300, "b": list("xyz") * 200, "y": [0, 1] * 300})
    noisy = with_gaussian_noise(ContingencyTables.from_records(frame, "y", categorical=["a", "b"]), 5.0, 0)
    moved = [replace(noisy, total=noisy.total + 1)]
    for key, table in noisy.tables.items():
        counts, sums = table.dense()
        for cell in np.ndindex(counts.shape):
            more = counts.copy()
            more[cell] += 1
            new = Table(counts.shape, np.arange(counts.size), more.ravel(), sums.ravel())
            moved.append(replace(noisy, tables=noisy.tables | {key: new}))
    whole, stated = project_tables(noisy), noise_variances(project_tables(noisy))
    for key in noisy.tables:
        moves = [project_tables(m).tables[key].dense()[0] - whole.tables[key].dense()[0] for m in moved]
        assert 25 * sum(np.square(moves)) == pytest.approx(np.full(moves[0].shape, stated[key]))


def test_the_first_impossible_bag_is_named():
    with pytest.raises(DataError, match="bag 1: 3 positives among 2"):
        Bags(np.zeros((6, 1)), [0, 2, 4, 6], [1, 3, 5])


def test_shares_of_weighed_bags_become_counts_of_their_weight():
    groups = {"bags": [0, 0, 1, 1, 1], "proportions": {0: [0.25, 0.25, 0.5], 1: [1.0, 0.0, 0.0]}}
    bags = Bags.from_groups(np.zeros((5, 1)), weights=[0.5, 1.5, 1.0, 1.0, 2.0], **groups)
    np.testing.assert_allclose(bags.counts, [[0.5, 0.5, 1.0], [4.0, 0.0, 0.0]])


def test_only_empty_bags_are_named():
    with pytest.raises(DataError, match=r"empty bags: 1;"):
        Bags(np.zeros((3, 1)), [0, 1, 1, 3], [1, 0, 1])


def test_the_first_bag_whose_counts_do_not_add_up_is_named():
    with pytest.raises(DataError, match="bag 1: counts"):
        Bags(np.zeros((6, 1)), [0, 2, 4, 6], [[1, 1], [1, 2], [3, 1]])


def test_tables_beyond_the_memory_of_whole_ones_are_held_in_parts():
    sizes, records = np.full(40, 2000.0), 1000
    tables, dense = 40 + 780, 40 * 2000.0 + (780 * 4e6 if DENSE_CELLS >= 4e6 else 0)
    whole = min(1.0, DENSE_TOTAL / dense)
    assert whole < 1
    memory = (
        TABLE_BYTES * tables
        + CELL_BYTES * (820 * records)
        + 8 * dense * whole
        + 16 * FIRST_SLOTS * tables * (1 - whole)
    )
    assert workload_of(sizes, "all", records).bytes == int(memory)


def test_weighted_label_sums():
    x = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.5, 0.0, -1.0]})
    sums = LabelSums.from_records(x, [1, 0, 1], weights=np.array([2.0, 5.0, 0.5]))
    assert dict(zip(sums.names, sums.sums, strict=True)) == {"a": 4.0, "b": 0.5, "intercept": 2.5}
    # the most that labels can give: a 2 + 10 + 2, b 1 + 0 − 0.5, seven and a half of weight
    for moved, outside in (
        ([14.0, 1.0, 7.5], [0, 0, 0]),
        ([14.1, -0.6, 7.6], [1, 1, 1]),
        ([0.0, -0.5, -0.1], [0, 0, 1]),
    ):
        other = LabelSums(sums.map, x, sums.names, np.array(moved), sums.weights)
        assert other.infeasible_coordinates().tolist() == [bool(v) for v in outside]


def test_labels_of_weighted_bags_add_up_by_weight():
    bags = Bags(np.zeros((3, 1)), [0, 2, 3], np.array([[0.5, 2.0], [3.0, 0.0]]), weights=np.array([2.0, 0.5, 3.0]))
    assert LabelledBags(bags, np.array([1, 0, 0])).y.tolist() == [1, 0, 0]
    with pytest.raises(DataError, match="by its labels"):
        LabelledBags(bags, np.array([0, 1, 0]))
