"""Whose the records are, on the command line: `--unit` and `--max-rows` of `schema`, `aggregate` and `private`."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_calls import run, state
from samples import people

from agglearn.observations import ContingencyTables, Unit

PRIVATE = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def visits(tmp_path, monkeypatch) -> Path:
    """visits.csv, with one to six records of each user, and schema.yaml without a word on whose they are."""
    monkeypatch.chdir(tmp_path)
    frame = people(400)[["job", "zone", "y"]]
    frame["user"] = np.repeat([f"u{k}" for k in range(200)], np.arange(200) % 6 + 1)[:400]
    frame.to_csv("visits.csv", index=False)
    Path("schema.yaml").write_text(
        "reviewed: true\nlabel: {column: y, positive: 1, negative: 0}\nfeatures: {job: {values: [cook, nurse]}}\n"
    )
    return tmp_path


def state_whose(text: str, name: str = "whose.yaml") -> str:
    Path(name).write_text(text + "\n" + Path("schema.yaml").read_text())
    return name


def test_the_draft_states_the_unit_and_leaves_it_out_of_the_features(visits, capsys):
    how = ["schema", "draft", "visits.csv", "--label", "y", "--positive", "1"]
    assert run(*how, "--unit", "user", "--max-rows", "3") == 0
    draft = capsys.readouterr().out
    assert "\nunit: user\nmax_rows: 3\n" in draft
    assert "user" not in draft.partition("features:")[2]
    Path("draft.yaml").write_text(draft.replace("reviewed: false", "reviewed: true"))
    assert run("aggregate", "visits.csv", "--schema", "draft.yaml", "--out", "t") == 0
    assert ContingencyTables.load("t").unit == Unit("user", 3)
    assert run(*how, "--unit", "user") == 0
    assert "\nunit: user\nmax_rows: auto\n" in capsys.readouterr().out
    assert run(*how) == 0
    draft = capsys.readouterr().out
    assert "\none_row_per_person: false\n" in draft
    Path("draft.yaml").write_text(draft.replace("reviewed: false", "reviewed: true"))
    assert run("aggregate", "visits.csv", "--schema", "draft.yaml", "--out", "u") == 0
    assert run("private", "u", *PRIVATE, "--out", "noisy") == 2


def test_a_release_protects_all_records_of_a_unit(visits, capsys):
    how = ["aggregate", "visits.csv", "--schema", "schema.yaml", "--unit", "user", "--max-rows", "2", "--out", "t"]
    assert run(*how) == 0
    said = capsys.readouterr()
    kept = pd.read_csv("visits.csv").groupby("user").size().clip(upper=2).sum()
    left_out = f"unit 'user': {400 - kept} of 400 records are left out, beyond 2 of each"
    assert said.err == f"agglearn: warning: {left_out}\n"
    assert f"t: {kept} records" in said.out
    assert "at most 2 records of each user count" in said.out
    assert run("private", "t", *PRIVATE, "--unit", "user", "--max-rows", "2", "--out", "noisy") == 0
    assert "with all records of any one user as without them" in capsys.readouterr().out
    noise = ContingencyTables.load("noisy").noise
    assert (noise.private, noise.adjacency, noise.unit) == (True, "unit", Unit("user", 2))
    Path("one.yaml").write_text("one_row_per_person: true\n" + Path("schema.yaml").read_text())
    assert run("aggregate", "visits.csv", "--schema", "one.yaml", "--out", "one") == 0
    assert run("private", "one", *PRIVATE, "--out", "per_row") == 0
    assert noise.scale == pytest.approx(2 * ContingencyTables.load("per_row").noise.scale)
    assert run("fit", "noisy", "--set", "n_chains=100", "--set", "max_iter=3", "--out", "model") == 0
    assert run("predict", "model", "visits.csv", "--out", "p.csv") == 0


def test_the_release_chooses_where_the_tables_allow_it(visits, capsys):
    schema = state_whose("unit: user\nmax_rows: auto")
    assert run("aggregate", "visits.csv", "--schema", schema, "--out", "t") == 0
    assert "agglearn private chooses" in capsys.readouterr().out
    assert run("private", "t", *PRIVATE, "--out", "noisy") == 0
    assert ContingencyTables.load("noisy").unit.max_rows in (1, 2, 3, 4, 6)
    for stated in ("1", "4"):
        assert run("private", "t", *PRIVATE, "--max-rows", stated, "--out", stated) == 0
        assert ContingencyTables.load(stated).unit == Unit("user", int(stated))
    assert run("private", "t", *PRIVATE, "--max-rows", "auto", "--out", "again") == 0


WRONG = [
    ("aggregate visits.csv --label y --unit users --max-rows 2", 1, "visits.csv: no column 'users'; the columns are "),
    ("aggregate visits.csv --label y --unit user", 2, "max_rows: how many records of each 'user' count? give a number, or auto"),
    ("aggregate visits.csv --label y --max-rows 2", 2, "max_rows: needs a unit, the column that tells whose a record is"),
    ("aggregate visits.csv --label y --unit user --max-rows 0", 2, "max_rows: '0' is neither a whole number from 1 on nor auto"),
    ("aggregate visits.csv --label y --unit user --max-rows few", 2, "max_rows: 'few' is neither a whole number from 1 on"),
    ("aggregate visits.csv --label y --unit y --max-rows 2", 2, "unit: 'y' is the label too; it tells whose a record is"),
    ("aggregate visits.csv --label y --features job,user --unit user --max-rows 2", 2, "unit: 'user' is a feature too; it tells whose"),
    ("aggregate visits.csv --schema whose.yaml --unit job --max-rows 2", 2, "unit: 'job' is not that of the schema, 'user'"),
    ("aggregate visits.csv --schema whose.yaml --max-rows 3", 2, "max_rows: 3 is not that of the schema, 2; leave it out"),
    ("aggregate visits.csv --schema one.yaml --unit user --max-rows 2", 2, "unit: the schema states one row per person"),
    ("aggregate visits.csv --schema both.yaml", 2, "both.yaml: one_row_per_person: is true, and the unit is 'user'; state one"),
    ("private unstated --epsilon 1 --delta 1e-6", 2, "unit: nobody stated whose the records are"),
    ("private t --epsilon 1 --delta 1e-6 --adjacency record", 2, "adjacency: record does not go with these tables"),
    ("private t --epsilon 1 --delta 1e-6 --unit job", 2, "--unit: t has another unit than 'job', or none; aggregate again"),
    ("private unstated --epsilon 1 --delta 1e-6 --unit user", 2, "--unit: unstated has another unit than 'user', or none"),
    ("private t --epsilon 1 --delta 1e-6 --max-rows 3", 2, "max_rows: 3 does not go with these tables; they allow 2"),
    ("schema draft visits.csv --unit users", 1, "visits.csv: no column 'users'; the columns are "),
    ("schema draft visits.csv --max-rows 2", 2, "max_rows: needs a unit"),
    ("schema draft visits.csv --label y --unit y", 2, "unit: 'y' is the label too"),
]  # fmt: skip


def test_each_wrong_input_gets_one_line(visits, capsys):
    state_whose("unit: user\nmax_rows: 2")
    state_whose("one_row_per_person: true", "one.yaml")
    state_whose("unit: user\none_row_per_person: true", "both.yaml")
    assert run("aggregate", "visits.csv", "--schema", "whose.yaml", "--out", "t") == 0
    assert run("aggregate", "visits.csv", "--schema", "schema.yaml", "--out", "unstated") == 0
    capsys.readouterr()
    before = state(visits)
    for command, status, said in WRONG:
        out = [] if command.startswith("schema") else ["--out", "new"]
        assert run(*command.split(), *out) == status, command
        line = capsys.readouterr().err
        assert said in line, command
        assert line.count("\n") == 1, command
        assert state(visits) == before, command
