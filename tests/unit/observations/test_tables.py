"""Contingency tables against the paper's example, against counting by hand, and their own laws."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agglearn.encoding import FrameEncoder
from agglearn.errors import DataError
from agglearn.observations import ContingencyTables, NoiseSpec, Table

# Table 2 of the paper with its three wrong cells mended: (1,B), (2,B), (2,a)
TABLE_2 = {
    ("Feature 1", "Feature 2"): {("1", "A"): (1, 0), ("1", "B"): (2, 1), ("2", "A"): (1, 1), ("2", "B"): (1, 1)},
    ("Feature 1", "Feature 3"): {("1", "a"): (1, 1), ("1", "b"): (2, 0), ("2", "a"): (1, 1), ("2", "b"): (1, 1)},
    ("Feature 2", "Feature 3"): {("A", "b"): (2, 1), ("B", "a"): (2, 2), ("B", "b"): (1, 0)},
}


def cells_of(tables: ContingencyTables, key) -> dict:
    """{(modality, …): (count, label sum)} of the occupied cells."""
    d, c = tables.dense(*key)
    names = [tables.encoder.features[i].labels for i in key]
    return {
        tuple(n[i] for n, i in zip(names, at, strict=True)): (int(d[at]), int(c[at]))
        for at in np.ndindex(*d.shape)
        if d[at]
    }


def counted(frame: pd.DataFrame, columns, label) -> dict:
    """The same by counting rows."""
    out = {}
    for values, y in zip(frame[list(columns)].itertuples(index=False), frame[label], strict=True):
        key = tuple("missing" if v is None or v != v else str(v) for v in values)
        d, c = out.get(key, (0, 0))
        out[key] = (d + 1, c + y)
    return out


def test_the_papers_example(toy):
    tables = ContingencyTables.from_records(toy, "label")
    assert [cells_of(tables, k) for k in tables.pairs] == list(TABLE_2.values())
    assert cells_of(tables, (0,)) == {("1",): (3, 1), ("2",): (2, 2)}
    assert (tables.total, tables.positives) == (5, 3)


def test_every_cell_is_what_counting_gives(records):
    tables = ContingencyTables.from_records(records, "y", ["job", "home", "zone"], categorical=["zone"])
    assert len(tables.tables) == 6
    for key in tables.tables:
        assert cells_of(tables, key) == counted(records, [tables.names[i] for i in key], "y")


def test_parquet_missing_marks_and_absent_columns(tmp_path):
    path = tmp_path / "r.parquet"
    frame = pd.DataFrame({"a": ["?", "u", "v", "u"], "n": [1, -1, 2, 3], "y": [0, 1, 0, 1]})
    frame.to_parquet(path, row_group_size=1)
    tables = ContingencyTables.from_parquet(path, "y", missing=["?", "-1"])
    assert [f.has_missing for f in tables.encoder.features] == [True, True]
    assert cells_of(tables, (0,)) == {("u",): (2, 2), ("v",): (1, 0), ("missing",): (1, 0)}
    for wrong in ({"features": ["b"]}, {"categorical": ["b"]}, {"features": ["a", "a"]}):
        with pytest.raises(DataError):
            ContingencyTables.from_parquet(path, "y", **wrong)
    pq.write_table(pa.Table.from_pandas(frame.iloc[:0]), path)
    with pytest.raises(DataError, match="no records"):
        ContingencyTables.from_parquet(path, "y")


def test_matrices(records):
    tables = ContingencyTables.from_records(records, "y", pairs=[("age", "home"), ("job", "zone")])
    at = tables.encoder.offsets
    for matrix, which in zip(tables.matrices(), (0, 1), strict=True):
        np.testing.assert_array_equal(matrix, matrix.T)
        for i in range(4):
            block = matrix[at[i] : at[i + 1], at[i] : at[i + 1]]
            np.testing.assert_array_equal(block, np.diag(tables.dense(i)[which]))
            for j in range(i + 1, 4):
                block = matrix[at[i] : at[i + 1], at[j] : at[j + 1]]
                expected = tables.dense(i, j)[which] if (i, j) in tables.tables else np.zeros(block.shape)
                np.testing.assert_array_equal(block, expected)


def test_pairs_asked_for(records):
    def pairs(wanted):
        return ContingencyTables.from_records(records, "y", pairs=wanted).pairs

    assert pairs("none") == []
    assert len(pairs("all")) == 6
    assert pairs([("home", "age"), ("age", "home"), ("job", "age")]) == [(0, 1), (0, 2)]
    for wrong in ("some", [("age", "age")], [("age", "wage")]):
        with pytest.raises(DataError, match=r"pairs|wage"):
            pairs(wrong)


def test_tables_may_lie_in_any_order_and_have_no_cells(records, tmp_path):
    tables = ContingencyTables.from_records(records, "y")
    empty, some = Table((3,), *np.empty((3, 0), np.int64)), dict(list(tables.tables.items())[1:])
    tables = replace(tables, tables={(0,): replace(empty, shape=tables.tables[0,].shape), **some})
    tables.save(tmp_path)
    rows = pd.read_parquet(tmp_path / "tables.parquet")
    rows.sort_values("code_a", kind="stable").to_parquet(tmp_path / "tables.parquet", index=False)
    assert ContingencyTables.load(tmp_path).digest == tables.digest


def test_damaged_folders_are_data_errors(records, tmp_path):
    def saved():
        ContingencyTables.from_records(records, "y").save(tmp_path / "t")

    with pytest.raises(DataError, match=r"tables\.json is missing"):
        ContingencyTables.load(tmp_path / "nowhere")
    for file, text in (("tables.json", "{"), ("tables.json", "{}"), ("tables.json", "[1]"), ("tables.parquet", "no")):
        saved()
        (tmp_path / "t" / file).write_text(text)
        with pytest.raises(DataError, match="damaged"):
            ContingencyTables.load(tmp_path / "t")
    saved()
    rows = pq.read_table(tmp_path / "t/tables.parquet").to_pandas()
    rows.loc[0, "label_sum"] = rows.loc[0, "count"] + 1
    rows.to_parquet(tmp_path / "t/tables.parquet")
    with pytest.raises(DataError, match="label sum exceeds"):
        ContingencyTables.load(tmp_path / "t")


def tables_with(counts, sums, total=10, positives=4, noise=None, cells=(0, 1)) -> ContingencyTables:
    encoder = FrameEncoder.fit(pd.DataFrame({"f": ["a", "b"]}))
    table = Table((2,), np.array(cells), np.array(counts), np.array(sums))
    return ContingencyTables(encoder, "y", total, positives, {(0,): table}, noise)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"counts": [6, 4], "sums": [7, 0]}, "label sum exceeds"), ({"counts": [-1, 4], "sums": [0, 0]}, "negative"),
        ({"counts": [4, 4], "sums": [-1, 0]}, "negative"), ({"counts": [8, 4], "sums": [2, 2]}, "adds up to 12"),
        ({"counts": [5, 5], "sums": [4, 4]}, "adds up"),
        ({"counts": [6, 4], "sums": [0, 0], "positives": 0}, "same label"),
        ({"counts": [6, 4], "sums": [6, 4], "positives": 10}, "same label"),
        ({"counts": [6.5, 3.5], "sums": [2, 2]}, "table 'f': .*not whole"),
        ({"counts": [6, 4], "sums": [2.5, 1.5]}, "table 'f': .*not whole"),
        ({"counts": [6, np.nan], "sums": [2, 2]}, "table 'f': .*not whole"),
        ({"counts": [6, 4], "sums": [2, 2], "cells": [0, 0]}, "table 'f': .*stands twice"),
        ({"counts": [6, 4], "sums": [2, 2], "cells": [1, 0]}, "table 'f': .*stands twice"),
    ],
)  # fmt: skip
def test_tables_that_no_records_have(wrong, said):
    assert tables_with([6, 4], [2, 2]).total == 10
    assert tables_with([-1.5, 4.0], [2.0, 5.0], noise=NoiseSpec("laplace", 1.0, 1.0)).total == 10
    with pytest.raises(DataError, match=said):
        tables_with(**wrong)


def twice(encoder: FrameEncoder) -> FrameEncoder:
    return FrameEncoder(encoder.features * 2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda r: ContingencyTables.from_records(r, "y", ["wage"]), "no column 'wage'"),
        (lambda r: ContingencyTables.from_records(r, "z"), "no label column 'z'"),
        (lambda r: ContingencyTables.from_records(r, "y", []), "features are needed"),
        (lambda r: ContingencyTables.from_records(r, "y", ["job", "age", "job"]), "'job' is named twice"),
        (lambda r: ContingencyTables.from_records(r[["age", "job", "job", "y"]], "y"), "'job' is there twice"),
        (lambda r: ContingencyTables(twice(FrameEncoder.fit(r[["age"]])), "y", 10, 4, {}), "'age' is named twice"),
    ],
)
def test_features_that_are_not_there_or_there_twice(records, make, said):
    with pytest.raises(DataError, match=said):
        make(records)
