"""Whose the records are, on the command line: `--unit` and `--max-rows` of `schema`, `aggregate` and `private`."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_calls import call, check_refusal, told
from samples import people

from agglearn.observations import ContingencyTables, Unit

PRIVATE = "--epsilon 1 --delta 1e-6"


@pytest.fixture
def visits(tmp_path, monkeypatch) -> Path:
    """visits.csv, with one to six records of each user, and schema.yaml without a word on whose they are."""
    monkeypatch.chdir(tmp_path)
    frame = people(400)[["job", "zone", "y"]]
    frame["user"] = np.repeat([f"u{k}" for k in range(200)], np.arange(200) % 6 + 1)[:400]
    frame.to_csv("visits.csv", index=False)
    features = "features: {job: {values: [cook, nurse]}}\n"
    Path("schema.yaml").write_text(f"reviewed: true\nlabel: {{column: y, positive: 1, negative: 0}}\n{features}")
    return tmp_path


def state_whose(text: str, name: str = "whose.yaml") -> str:
    Path(name).write_text(text + "\n" + Path("schema.yaml").read_text())
    return name


@pytest.mark.parametrize(("more", "unit", "status"), [(" --unit user --max-rows 3", Unit("user", 3), 0), ("", None, 2)])
def test_a_draft_is_a_schema_and_without_a_unit_none_for_a_release(visits, capsys, more, unit, status):
    draft = told(capsys, f"schema draft visits.csv --label y --positive 1{more}").out
    assert ("user" in draft.partition("features:")[2]) == (unit is None)
    Path("draft.yaml").write_text(draft.replace("reviewed: false", "reviewed: true"))
    assert call("aggregate visits.csv --schema draft.yaml --out drafted") == 0
    assert ContingencyTables.load("drafted").unit == unit
    assert call(f"private drafted {PRIVATE} --out noisy") == status


def test_a_release_protects_all_records_of_a_unit(visits, capsys):
    said = told(capsys, "aggregate visits.csv --schema schema.yaml --unit user --max-rows 2 --out t")
    kept = pd.read_csv("visits.csv").groupby("user").size().clip(upper=2).sum()
    left_out = f"unit 'user': {400 - kept} of 400 records are left out, beyond 2 of each"
    assert said.err == f"agglearn: warning: {left_out}\n"
    assert f"t: {kept} records" in said.out
    assert "at most 2 records of each user count" in said.out
    assert call(f"private t {PRIVATE} --unit user --max-rows 2 --out noisy") == 0
    assert "with all records of any one user as without them" in capsys.readouterr().out
    noise = ContingencyTables.load("noisy").noise
    assert (noise.private, noise.adjacency, noise.unit) == (True, "unit", Unit("user", 2))
    one = state_whose("one_row_per_person: true")
    assert call(f"aggregate visits.csv --schema {one} --out one") == 0
    assert call(f"private one {PRIVATE} --out per_row") == 0
    assert noise.scale == pytest.approx(2 * ContingencyTables.load("per_row").noise.scale)
    assert call("fit noisy --set n_chains=100 --set max_iter=3 --out model") == 0
    assert call("predict model visits.csv --out p.csv") == 0


def test_the_release_chooses_where_the_tables_allow_it(visits, capsys):
    schema = state_whose("unit: user\nmax_rows: auto")
    assert "agglearn private chooses" in told(capsys, f"aggregate visits.csv --schema {schema} --out t").out
    for stated, allowed in (("", {1, 2, 3, 4, 6}), ("auto", {1, 2, 3, 4, 6}), ("1", {1}), ("4", {4})):
        more = f"--max-rows {stated}" if stated else ""
        assert call(f"private t {PRIVATE} {more} --out noisy --force") == 0
        assert ContingencyTables.load("noisy").unit.max_rows in allowed


WRONG = [
    ("aggregate visits.csv --label y --unit users --max-rows 2", 1, "visits.csv: no column 'users'; the columns are "),
    ("aggregate visits.csv --label y --unit user", 2, "max_rows: how many records of each 'user' count? give a number, or auto"),
    ("aggregate visits.csv --label y --unit user --max-rows few", 2, "max_rows: 'few' is neither a whole number from 1 on"),
    ("aggregate visits.csv --schema whose.yaml --unit job --max-rows 2", 2, "unit: 'job' is not that of the schema, 'user'"),
    ("aggregate visits.csv --schema whose.yaml --max-rows 3", 2, "max_rows: 3 is not that of the schema, 2; leave it out"),
    ("private t --epsilon 1 --delta 1e-6 --unit job", 2, "--unit: t has another unit than 'job', or none; aggregate again"),
    ("private unstated --epsilon 1 --delta 1e-6 --unit user", 2, "--unit: unstated has another unit than 'user', or none"),
    ("schema draft visits.csv --unit users", 1, "visits.csv: no column 'users'; the columns are "),
    ("schema draft visits.csv --max-rows 2", 2, "max_rows: needs a unit"),
    ("schema draft visits.csv --label y --unit y", 2, "unit: 'y' is the label too"),
]  # fmt: skip


def test_each_wrong_input_gets_one_line(visits, capsys):
    state_whose("unit: user\nmax_rows: 2")
    assert call("aggregate visits.csv --schema whose.yaml --out t") == 0
    assert call("aggregate visits.csv --schema schema.yaml --out unstated") == 0
    for command, status, said in WRONG:
        check_refusal(capsys, command + " --out new" * (not command.startswith("schema")), status, said)
