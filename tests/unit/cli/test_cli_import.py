"""`agglearn import` and `agglearn schema query`: records, a GROUP BY, a file of cells, tables, a model."""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
from cli_calls import call, refuse, state, told

from agglearn.encoding import Schema
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables

pytestmark = pytest.mark.filterwarnings("ignore::agglearn.errors.RecordsLeftOut")
SCHEMA = """
reviewed: true
label: {column: y, positive: 'yes', negative: 'no'}
features:
  age: {edges: [30, 45.5, 60], missing: true}
  job: {values: [cook, nurse, "clerk's"]}
  zip: {values: [0, 1, 2, 3], missing: true}
"""
CELLS = """age,job,count,label_sum
,,3000,1120
"(-inf, 30]",,1190,300
"(30, inf]",,1810,820
,nurse,995,471
,cook,2005,649
"(30, inf]",nurse,960,451
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a schema, records of it, and a file of cells."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    (tmp_path / "cells.csv").write_text(CELLS)
    rng, n = np.random.default_rng(0), 800
    frame = pd.DataFrame({"age": rng.integers(18, 80, n).astype(float), "zip": rng.integers(0, 5, n)})
    frame["job"] = rng.choice(["cook", "nurse", "clerk's", "ghost"], n)
    frame["y"] = rng.choice(["yes", "no", "?"], n, p=[0.3, 0.6, 0.1])
    frame.loc[rng.random(n) < 0.05, "age"] = np.nan
    frame.to_csv(tmp_path / "records.csv", index=False)
    return tmp_path


def grouping_sets(frame: pd.DataFrame, schema: Schema, threshold: int) -> pd.DataFrame:
    """What the query gives: the levels of every feature and pair, counted by pandas."""
    frame = frame[frame["y"].isin([schema.positive, schema.negative])].reset_index(drop=True)
    codes = schema.encoder.encode(frame)
    levels = {f.name: np.array(f.labels, object)[codes[:, i]] for i, f in enumerate(schema.encoder.features)}
    encoded, names = pd.DataFrame(levels).assign(one=(frame["y"] == schema.positive).astype(int)), list(levels)
    parts = [pd.DataFrame({"count": [len(encoded)], "label_sum": [encoded["one"].sum()]})]
    for group in (g for k in (1, 2) for g in itertools.combinations(names, k)):
        counted = encoded.groupby(list(group))["one"].agg(count="size", label_sum="sum").reset_index()
        parts.append(counted[counted["count"] >= threshold])
    return pd.concat(parts)[[*names, "count", "label_sum"]]


def executed(folder, threshold: int) -> pd.DataFrame:
    """The cells of the query, from DuckDB where it is installed, else from pandas."""
    assert call(f"schema query schema.yaml --threshold {threshold} --out query.sql --force") == 0
    records = pd.read_csv(folder / "records.csv")
    try:
        import duckdb
    except ImportError:
        return grouping_sets(records, Schema.parse(SCHEMA), threshold)
    return duckdb.sql((folder / "query.sql").read_text()).df()


def test_query_import_and_fit_equal_aggregate_and_fit(folder):
    executed(folder, 0).to_csv("all.csv", index=False)
    assert call("import all.csv --schema schema.yaml --out imported") == 0
    assert call("aggregate records.csv --schema schema.yaml --out counted") == 0
    a, b = (ContingencyTables.load(name) for name in ("counted", "imported"))
    assert a.digest == b.digest
    for name in ("counted", "imported"):
        assert call(f"fit {name} --out {name}_model --set n_chains=100 --set max_iter=5") == 0
    first, second = (state(folder / f"{name}_model")["model.npz"] for name in ("counted", "imported"))
    assert first == second


def test_a_threshold_in_the_query_is_that_of_the_tables(folder):
    cells = executed(folder, 40)
    expected = grouping_sets(pd.read_csv(folder / "records.csv"), Schema.parse(SCHEMA), 40)
    read, true = (ContingencyTables.from_frame(c, schema=Schema.parse(SCHEMA), threshold=40) for c in (cells, expected))
    assert read.digest == true.digest
    assert min(t.counts.min() for t in read.tables.values()) >= 40


def test_imported_tables_learn_and_predict_raw_records(folder, capsys):
    assert told(capsys, "import cells.csv --threshold 900 --out tables").out.splitlines() == [
        "tables: 3,000 records, 1,120 with label 1 (37.3 %)",
        "2 features, by a learned schema: age (2 bins), job (2 categories)",
        "taken for numbers, in bins: age",
        "3 tables, 5 cells with records",
        "the smallest cell holds 960; 0 cells with fewer than 10 records. Stated: a threshold of 900",
        "hidden: 3 cells",
    ]
    assert call("fit tables --out model --set n_chains=200 --set max_iter=20") == 0
    (folder / "new.csv").write_text("age,job\n25,nurse\n50,cook\n")
    assert "every value was seen" in told(capsys, "predict model new.csv --out p.csv").out
    assert pd.read_csv("p.csv")["probability"].between(0.05, 0.8).all()
    assert Estimator.load("model").encoder_.names == ["age", "job"]


def test_saved_cells_have_values_and_can_be_imported_again(folder):
    assert call("import cells.csv --threshold 900 --out tables") == 0
    cells = pd.read_parquet("tables/cells.parquet")
    assert set(cells["job"].dropna()) == {"nurse", "cook"}
    assert call("import tables/cells.parquet --threshold 900 --out again") == 0
    assert ContingencyTables.load("tables").digest == ContingencyTables.load("again").digest
    assert call("aggregate records.csv --schema schema.yaml --out tables --force") == 0
    assert not (folder / "tables/cells.parquet").exists()  # of other tables


WRONG = [
    ("import cells.csv", 1, "table age × job: 960 records, where all tables have 3,000; leave it out"),
    ("import cells.csv --noise laplace:-1", 2, "noise: 'laplace:-1' is not known; write none, gaussian:20 (σ), or laplace:5 (scale)"),
    ("import cells.csv --threshold -1", 2, "argument --threshold: '-1' is not a number of at least 0; see `agglearn import --help`"),
    ("import cells.csv cells.csv", 2, "the same file is named twice; name each once"),
    ("import absent.csv", 1, "absent.csv: no such file"),
    ("import cells.csv --count n", 1, "cells.csv: no column 'n'; the columns are age, job, count, label_sum"),
    ("schema query schema.yaml --dialect oracle", 2, "dialect: 'oracle' is not known; use duckdb, spark, bigquery, snowflake"),
    ("schema query hashed.yaml", 2, "features.email: is hashed, which SQL does not do alike; list values or edges"),
    ("schema query owned.yaml", 2, "unit: a query counts all rows of each owner; write a schema without unit, or run `agglearn aggregate`"),
    ("schema query schema.yaml --label y", 2, "--label: is no option of `schema query`; leave it out"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "status", "line"), WRONG)
def test_wrong_input_gets_one_line(folder, capsys, command, status, line):
    (folder / "hashed.yaml").write_text(SCHEMA + "  email: {buckets: 10}\n")
    (folder / "owned.yaml").write_text("unit: owner\nmax_rows: 2" + SCHEMA)
    assert refuse(capsys, f"{command} --out out") == (status, f"agglearn: {line}\n")


@pytest.mark.parametrize("dialect", ["spark", "bigquery", "snowflake"])
def test_queries_of_other_dialects_are_parsed(folder, capsys, dialect):
    sqlglot = pytest.importorskip("sqlglot")
    assert call(f"schema query schema.yaml --dialect {dialect} --threshold 50") == 0
    query = sqlglot.parse_one(capsys.readouterr().out, read=dialect)
    assert query.find(sqlglot.exp.GroupingSets) is not None
    assert [column.alias_or_name for column in query.selects] == ["age", "job", "zip", "count", "label_sum"]


def test_the_reader_needs_no_sqlglot_for_duckdb(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert told(capsys, "schema query schema.yaml").out.startswith("SELECT")
