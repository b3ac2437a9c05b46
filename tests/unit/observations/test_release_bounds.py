"""An observation that anyone builds from parts keeps the limits that its noise is calibrated for, or is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import FrameEncoder, Schema
from agglearn.errors import ConfigError, DataError
from agglearn.observations import ContingencyTables, CountedBags, FlowCounts, Halves, LabelSums
from agglearn.observations.release import release_bag_counts, release_flow_counts
from agglearn.privacy import Mechanism, calibrate, draw_seeded

SCHEMA = "{{reviewed: true, one_row_per_person: true, label: {{column: y, positive: 1, negative: 0}}, features: {{x: {{values: [{}]}}}}}}"
RECORDS = pd.DataFrame({"x": [1, 2, 3, 1, 2, 1], "y": [1, 0, 1, 0, 1, 0]})
TABLES = ContingencyTables.from_records(RECORDS, schema=Schema.parse(SCHEMA.format("1, 2, 3")))
NARROW = LabelSums.from_records(np.array([[0.5, 1.0], [0.25, 0.0]]), [1, 0], bounds=(0, 1))
WIDE = LabelSums.from_records(np.array([[50.0, 99.0], [25.0, 3.0], [1.0, 2.0]]), [1, 0, 1], bounds=(0, 100))
BAGGED = pd.DataFrame({"x": ["a", "b", "c", "a", "b"], "z": ["a", "b", "a", "a", "b"]})
BAGS = CountedBags(
    FrameEncoder.fit(BAGGED), BAGGED, np.array([4, 0, 2]), np.array([0, 2, 3]), np.array([[1, 1], [0, 1]])
)


def test_features_beyond_the_declared_bounds_are_not_released():
    """With the sensitivity that the bounds declare, noise was 78 times too small."""
    parts = [Halves(NARROW, WIDE).combined, replace(NARROW, frame=WIDE.frame), replace(WIDE, map=NARROW.map)]
    for sums in parts:
        for of in ("declared", "coordinates"):
            with pytest.raises(DataError, match=r"^column 'x0': row \d holds .*, outside the declared 0 to 1"):
                sums.private(1, 1e-6, sensitivity=of, draw=draw_seeded(0))
    Halves(WIDE, NARROW).combined.private(1, 1e-6, draw=draw_seeded(0))


def test_halves_of_one_noise_and_one_encoder():
    noisy = TABLES.private(1, 1e-6, draw=draw_seeded(0))
    private = [replace(noisy, noise=replace(noisy.noise, private=True, epsilon=epsilon)) for epsilon in (1, 2)]
    for pair in ((noisy, TABLES), (TABLES, noisy), (noisy, private[0]), (private[0], private[1])):
        with pytest.raises(DataError, match=r"^halves: with other noise"):
            Halves(*pair)
    fewer = ContingencyTables.from_records(RECORDS, schema=Schema.parse(SCHEMA.format("1, 2")))
    with pytest.raises(DataError, match=r"^halves: of other features, values or pairs"):
        Halves(TABLES, fewer)


def change(**columns) -> dict:
    table = TABLES.tables[0,]
    return {(0,): replace(table, **{name: of(getattr(table, name)) for name, of in columns.items()})}


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"counts": lambda n: n * 1.5}, "not whole"),
        ({"label_sums": lambda n: n / 2}, "not whole"),
        ({"counts": lambda n: n * np.nan}, "not whole"),
        ({"cells": lambda c: c * 0}, "stands twice"),
        ({"cells": lambda c: c[::-1]}, "stands twice"),
    ],
)
def test_exact_tables_count_records(columns, problem):
    with pytest.raises(DataError, match=rf"^table 'x': .*{problem}"):
        replace(TABLES, tables=change(**columns))


@pytest.mark.parametrize("rows", [[4, 0, 4], [4, 0, 5], [4, -1, 2], [0, 0, 0]])
def test_a_record_is_in_one_bag(rows):
    """In two bags one label changes two numbers, and noise is for one."""
    with pytest.raises(DataError, match=r"^rows: each must be one of the 5 records, and in one bag"):
        replace(BAGS, rows=np.array(rows))


@pytest.mark.parametrize("counts", [[[7, 7], [0, 7]], [[2, 1], [0, 1]], [[3, -1], [0, 1]]])
def test_counts_of_bags_are_numbers_of_their_records(counts):
    with pytest.raises(DataError, match=r"^counts: must be numbers of records"):
        replace(BAGS, counts=np.array(counts))


def test_categories_of_rows_that_are_not_there_are_not_saved(tmp_path):
    kinds = pd.CategoricalDtype(["a", "b", "c", "of_another_row"])
    released = release_bag_counts(replace(BAGS, frame=BAGGED.astype(kinds)), 1, draw=draw_seeded(0))
    released.save(tmp_path)
    assert b"of_another_row" not in (tmp_path / "frame.parquet").read_bytes()
    assert CountedBags.load(tmp_path).frame.astype(str).equals(BAGGED)


def test_flows_without_a_table_have_nothing_to_release():
    empty = FlowCounts(node_counts=np.zeros((0, 3)), noise="exact")
    assert release_flow_counts(empty, 1, draw=draw_seeded(0)).node_counts.shape == (0, 3)


@pytest.mark.parametrize("mechanism", ["gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("epsilon", [9e-7, 1e-15, 5e-324])
def test_an_epsilon_too_small_to_compute_with(mechanism, epsilon):
    """At ε = 1e-15 and δ = 1e-20 the least σ had a δ of 1.4e-16."""
    with pytest.raises(ConfigError, match=r"^epsilon: .* is below 1e-06, too small to compute with"):
        calibrate(mechanism, epsilon, 1e-20, 1, 1)


def test_a_discrete_gaussian_too_wide_to_compute():
    """Its calibration would take hours and all memory."""
    for compute in (
        lambda: calibrate("discrete_gaussian", 1e-6, 1e-9, 1, 1, changes=[1]),
        lambda: Mechanism("discrete_gaussian", 1e12).variance,
    ):
        with pytest.raises(ConfigError, match=r"^discrete_gaussian noise of scale .* \(up to 100,000\); use gaussian"):
            compute()
