"""The command line: the way from records to predictions, and every bad input in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import ROOT, people

from agglearn import __version__
from agglearn.cli import main
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables

QUICK = ["--set", "n_chains=200", "--set", "max_iter=20"]


def state(folder: Path) -> dict:
    """Content of everything below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def at(tmp_path, monkeypatch) -> Path:
    """A folder with data.csv, tables/ and model/, in which commands run."""
    folder = tmp_path / "here"
    shutil.copytree(made(tmp_path), folder)
    monkeypatch.chdir(folder)
    return folder


PREPARED = {}


def made(tmp_path: Path) -> Path:
    """The same folder for all tests, made once."""
    if "folder" not in PREPARED:
        folder = PREPARED["folder"] = tmp_path / "made"
        folder.mkdir()
        frame = people(300)
        frame["y"] = frame.y.map({0: "no", 1: "yes"})
        frame.to_csv(folder / "data.csv", index=False, na_rep="?")
        how = ["--label", "y", "--positive", "yes", "--missing", "?", "--categorical", "zone"]
        assert main(["aggregate", str(folder / "data.csv"), *how, "--out", str(folder / "tables")]) == 0
        out = str(folder / "model")
        assert main(["fit", str(folder / "tables"), "--method", "naive_bayes", "--out", out]) == 0
    return PREPARED["folder"]


def run(*arguments: str) -> int:
    """Exit status of a command."""
    try:
        return main(list(arguments))
    except SystemExit as leaving:
        return leaving.code


# -- the way ----------------------------------------------------------------------------------------------------------


def test_help_is_at_once_and_explains():
    code = "import sys; from agglearn.cli import parser; parser(); print([m for m in ('numpy', 'pandas') if m in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == "[]"
    said = subprocess.check_output([sys.executable, "-m", "agglearn", "--version"], env=environment, text=True)
    assert said.strip() == f"agglearn {__version__}"


@pytest.mark.parametrize("command", ["aggregate", "private", "fit", "predict"])
def test_every_help_has_an_example(capsys, command):
    assert run(command, "--help") == 0
    said = capsys.readouterr().out
    for word in ("example:", f"agglearn {command} ", "reads ", "writes ", "--force"):
        assert word in said


@pytest.mark.parametrize("method", ["maxent", "naive_bayes", "best_pair"])
def test_from_records_to_predictions(at, capsys, method):
    more = QUICK if method == "maxent" else []
    assert run("fit", "tables", "--method", method, "--seed", "3", "--out", "m", *more) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"m: {method} on 4 features and 10 tables of 300 records")
    assert {"maxent": "differ", "naive_bayes": "tables of single features (4;", "best_pair": "×"}[method] in said[1]
    assert run("predict", "m", "data.csv", "--out", "p.csv") == 0
    assert capsys.readouterr().err == ""
    written = pd.read_csv("p.csv")
    assert list(written) == ["probability"]
    frame = pd.read_csv("data.csv", na_values="?")
    expected = Estimator.load("m").predict_proba(frame)[:, 1]
    np.testing.assert_allclose(written.probability, expected, rtol=1e-8)
    assert expected.std() > 0.05
    assert run("fit", "tables", "--method", method, "--seed", "3", "--out", "again", *more) == 0
    np.testing.assert_array_equal(Estimator.load("again").predict_proba(frame)[:, 1], expected)


def test_aggregate_is_what_the_library_does(at, capsys):
    tables = ContingencyTables.load("tables")
    frame = pd.read_csv("data.csv", na_values="?")
    same = ContingencyTables.from_records(frame, "y", categorical=["zone"], positive="yes")
    assert tables.digest == same.digest
    frame.to_parquet("data.parquet", row_group_size=50)
    how = ["--label", "y", "--positive", "yes", "--categorical", "zone"]
    assert run("aggregate", "data.parquet", *how, "--out", "streamed") == 0
    assert ContingencyTables.load("streamed").digest == same.digest
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 4
    assert said[0].startswith("streamed: 300 records, ")
    assert "age (10 bins), job (3 categories), home (2 categories and missing), zone (3 categories)" in said[1]
    assert said[2].startswith("10 tables, ")
    assert "smallest cell" in said[3]


@pytest.mark.parametrize("mechanism", ["gaussian", "discrete_laplace"])
def test_private_tables(at, capsys, mechanism):
    delta = ["--delta", "1e-6"] if mechanism == "gaussian" else []
    how = ["--epsilon", "2", *delta, "--mechanism", mechanism, "--split", "cells", "--post", "project"]
    assert run("private", "tables", *how, "--out", "noisy") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("epsilon 2")
    assert "does not protect" in said[2]
    noisy, exact = ContingencyTables.load("noisy"), ContingencyTables.load("tables")
    assert noisy.noise.private
    assert (noisy.noise.mechanism, noisy.noise.epsilon) == (mechanism, 2.0)
    assert (noisy.dense(0, 1)[0] != exact.dense(0, 1)[0]).all()
    assert run("fit", "noisy", "--method", "naive_bayes", "--out", "from_noisy") == 0
    assert run("predict", "from_noisy", "data.csv", "--out", "p.csv") == 0


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ([], 2, "--epsilon"),
        (["--epsilon", "0", "--delta", "1e-6"], 2, "epsilon: must be a number above 0"),
        (["--epsilon", "1"], 2, "needs a delta"),
        (["--epsilon", "1", "--delta", "1"], 2, "needs a delta"),
        (["--epsilon", "1", "--delta", "1e-6", "--mechanism", "laplace"], 2, "leave delta out"),
        (["--epsilon", "1", "--mechanism", "noise"], 2, "not known"),
        (["--epsilon", "1", "--delta", "1e-6", "--out", "tables", "--force"], 2, "is the folder to be read"),
    ],
)
def test_no_private_tables(at, capsys, how, status, said):
    before = state(at)
    assert run("private", "tables", *(how if "--out" in how else [*how, "--out", "noisy"])) == status
    assert said in capsys.readouterr().err
    assert state(at) == before


def test_noise_is_not_added_twice(at, capsys):
    how = ["--epsilon", "1", "--mechanism", "laplace"]
    assert run("private", "tables", *how, "--out", "noisy") == 0
    assert run("private", "noisy", *how, "--out", "noisier") == 1
    assert "already" in capsys.readouterr().err


def test_features_and_pairs(at):
    how = ["--label", "y", "--positive", "yes", "--missing", "?", "--binning", "width"]
    assert (
        run(
            "aggregate",
            "data.csv",
            *how,
            "--features",
            "age,job",
            "--features",
            "home",
            "--pairs",
            "age:job",
            "--out",
            "t",
        )
        == 0
    )
    tables = ContingencyTables.load("t")
    assert tables.names == ["age", "job", "home"]
    assert tables.pairs == [(0, 1)]
    assert run("aggregate", "data.csv", *how, "--pairs", "none", "--out", "u") == 0
    assert ContingencyTables.load("u").pairs == []


def test_names_with_commas_and_colons(at):
    Path("odd.csv").write_text('"a,b",c:d,e,y\n1,u,p,0\n2,v,q,1\n')
    how = ["--label", "y", "--features", '"a,b",c:d', "--pairs", '"a,b:c:d"']
    assert run("aggregate", "odd.csv", *how, "--out", "t") == 0
    assert ContingencyTables.load("t").pairs == [(0, 1)]
    assert ContingencyTables.load("t").names == ["a,b", "c:d"]


@pytest.mark.parametrize("separator", [";", "tab", "|"])
def test_separators_and_byte_order_marks(at, separator):
    sign = "\t" if separator == "tab" else separator
    text = Path("data.csv").read_text().replace(",", sign)
    Path("other.csv").write_text(text, encoding="utf-8-sig")
    how = ["--label", "y", "--positive", "yes", "--missing", "?", "--categorical", "zone"]
    assert run("aggregate", "other.csv", "--separator", separator, *how, "--out", "t") == 0
    assert ContingencyTables.load("t").digest == ContingencyTables.load("tables").digest
    assert run("fit", "t", "--method", "naive_bayes", "--out", "m") == 0
    assert run("predict", "m", "other.csv", "--out", "p.csv") == 0  # the separator is remembered
    assert run("predict", "model", "data.csv", "--out", "q.csv") == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_predictions_to_standard_output(at, capsys):
    assert run("predict", "model", "data.csv") == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "probability"
    assert len(lines) == 301
    assert all(0 < float(x) < 1 for x in lines[1:])
    assert said.err.splitlines()[0].startswith("standard output: 300 rows")
    assert "every value was seen" in said.err


def test_unseen_values_are_reported_and_add_nothing(at, capsys):
    Path("new.csv").write_text("zone,home,job,age\n11,own,cook,30\n11,own,pilot,30\n99,?,,30\n")
    assert run("predict", "model", "new.csv") == 0
    said = capsys.readouterr()
    assert "never seen in the tables, which add nothing: job 2, zone 1" in said.err
    p = [float(x) for x in said.out.splitlines()[1:]]
    model = Estimator.load("model")
    codes = model.encoder_.encode(pd.DataFrame({"age": [30], "job": ["pilot"], "home": ["own"], "zone": ["11"]}))[0]
    known = [d for d in range(4) if codes[d] >= 0]
    assert known == [0, 2, 3]
    logit = model.intercept_ + sum(model.theta_[model.encoder_.offsets[d] + codes[d]] for d in known)
    assert p[1] == pytest.approx(1 / (1 + np.exp(-logit)))


def test_categories_do_not_depend_on_the_rest_of_the_file(at):
    Path("codes.csv").write_text("c,y\n01,0\n1,1\nA,0\n3.0,1\n")
    assert run("aggregate", "codes.csv", "--label", "y", "--out", "t") == 0
    assert ContingencyTables.load("t").encoder.features[0].values == ("01", "1", "3", "A")
    assert run("fit", "t", "--method", "naive_bayes", "--out", "m") == 0
    Path("new.csv").write_text("c\n01\n3\n")
    assert run("predict", "m", "new.csv", "--out", "p.csv") == 0
    p = pd.read_csv("p.csv").probability
    assert p[0] < 0.5 < p[1]


def test_force_replaces_only_its_own_kind(at, capsys):
    before = state(at / "tables")
    how = ["aggregate", "data.csv", "--label", "y", "--positive", "yes", "--pairs", "none"]
    assert run(*how, "--out", "tables") == 2
    assert state(at / "tables") == before
    assert run(*how, "--out", "tables", "--force") == 0
    assert ContingencyTables.load("tables").pairs == []
    for out in (".", "model"):
        kept = state(at)
        assert run(*how, "--out", out, "--force") == 2
        assert "holds something else" in capsys.readouterr().err
        assert state(at) == kept
    (at / "empty").mkdir()
    assert run(*how, "--out", "empty") == 0
    assert run("predict", "model", "data.csv", "--out", "p.csv") == 0
    assert run("predict", "model", "data.csv", "--out", "p.csv") == 2
    assert run("predict", "model", "data.csv", "--out", "p.csv", "--force") == 0


def test_a_reader_that_has_had_enough(at):
    command = f"{sys.executable} -m agglearn predict model data.csv | head -1; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "probability\n")
    assert "Traceback" not in done.stderr


# -- bad inputs -------------------------------------------------------------------------------------------------------

AGG = ["aggregate", "bad.csv", "--label", "y", "--out", "out"]
PREDICT = ["predict", "model", "bad.csv", "--out", "out"]
FIT = ["fit", "tables", "--out", "out"]
NEW = "age,job,home,zone\n30,cook,own,11\n"

BAD = {
    # content of bad.csv, command, exit status, what the line must say
    "absent file": (None, AGG, 1, ["bad.csv: no such file"]),
    "a folder": (None, ["aggregate", "tables", *AGG[2:]], 1, ["tables: is a folder"]),
    "empty file": ("", AGG, 1, ["bad.csv: the file is empty"]),
    "blank lines": ("\n\n", AGG, 1, ["bad.csv: the file is empty"]),
    "header only": ("a,y\n", AGG, 1, ["bad.csv", "no rows"]),
    "no label column": ("a,b\n1,0\n2,1\n", AGG, 1, ["bad.csv: no label column 'y'; the columns are a, b"]),
    "wrong separator": ("a;y\n1;0\n2;1\n", AGG, 1, ["bad.csv", "--separator ';'"]),
    "wrong tab": ("a\ty\n1\t0\n2\t1\n", AGG, 1, ["bad.csv", "--separator 'tab'"]),
    "no features": ("y\n0\n1\n", AGG, 1, ["bad.csv", "features are needed"]),
    "three labels": ("a,y\n1,0\n2,1\n3,2\n", AGG, 1, ["bad.csv: label 'y' must have two values, it has 3: 0, 1, 2"]),
    "one label": ("a,y\n1,1\n2,1\n", AGG, 1, ["bad.csv: label 'y' must have two values, it has 1: 1"]),
    "label in words": ("a,y\n1,no\n2,yes\n", AGG, 1, ["bad.csv: label 'y'", "no and yes", "--positive"]),
    "label 1 and 2": ("a,y\n1,1\n2,2\n", AGG, 1, ["1 and 2", "--positive"]),
    "label missing": ("a,y\n1,1\n2,\n3,0\n", AGG, 1, ["bad.csv: label 'y' is missing in 1 rows"]),
    "no such positive": ("a,y\n1,no\n2,yes\n", [*AGG, "--positive", "Yes"], 1, ["no value Yes; it has no and yes"]),
    "text in numbers": (
        "a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(20)) + "n/a,1\n",
        AGG,
        1,
        ["bad.csv: column 'a' is numeric but row 21 holds 'n/a'", "--missing 'n/a'", "--categorical 'a'"],
    ),
    "infinite": ("a,y\n1,0\n2,1\ninf,1\n", AGG, 1, ["bad.csv: column 'a'", "infinite"]),
    "columns named twice": ("a,b,a,y\n1,2,3,0\n1,2,3,1\n", AGG, 1, ["bad.csv: two columns are named 'a'"]),
    "column without name": ("a,,y\n1,2,0\n1,3,1\n", AGG, 1, ["bad.csv: column 2 has no name"]),
    "not UTF-8": ("a,y\né,0\nb,1\n".encode("latin-1"), AGG, 1, ["bad.csv: not UTF-8"]),
    "not text": (bytes(range(256)) * 20, AGG, 1, ["bad.csv"]),
    "rows too long": ("a,y\n1,0\n2,1,5\n", AGG, 1, ["bad.csv: cannot be read", "line 3"]),
    "all rows too long": ("a,y\n1,0,5\n2,1,5\n", AGG, 1, ["bad.csv", "more fields than the header"]),
    "open quote": ('a,y\n1,0\n"2,1\n', AGG, 1, ["bad.csv: cannot be read"]),
    "no Parquet": ("a,y\n", ["aggregate", "bad.parquet", *AGG[2:]], 1, ["bad.parquet: not a Parquet file"]),
    "cut Parquet": (b"PAR1" + b"x" * 99, AGG, 1, ["bad.csv: cannot be read as Parquet"]),
    "feature that is not there": ("a,y\n1,0\n2,1\n", [*AGG, "--features", "b"], 2, ["--features: no column 'b'; there are a, y"]),
    "label as feature": ("a,y\n1,0\n2,1\n", [*AGG, "--features", "a,y"], 2, ["--features: 'y' is the label"]),
    "feature twice": ("a,y\n1,0\n2,1\n", [*AGG, "--features", "a,a"], 2, ["--features: 'a' is named twice"]),
    "categorical not there": ("a,y\n1,0\n2,1\n", [*AGG, "--categorical", "b"], 2, ["--categorical: no column 'b'"]),
    "no pair": ("a,b,y\n1,2,0\n2,2,1\n", [*AGG, "--pairs", "some"], 2, ["--pairs: 'some' is no pair"]),
    "pair not there": ("a,b,y\n1,2,0\n2,2,1\n", [*AGG, "--pairs", "a:c"], 2, ["--pairs: no feature 'c'; there are a, b"]),
    "pair with itself": ("a,b,y\n1,2,0\n2,2,1\n", [*AGG, "--pairs", "a:a"], 2, ["--pairs: 'a' is paired with itself"]),
    "long separator": ("a,y\n", [*AGG, "--separator", ";;"], 2, ["--separator: ';;'"]),
    "unknown binning": ("a,y\n", [*AGG, "--binning", "tens"], 2, ["--binning", "'tens'", "deciles", "width"]),
    "unknown option": ("a,y\n", [*AGG, "--labels", "y"], 2, ["--labels"]),
    "no label option": ("a,y\n", ["aggregate", "bad.csv", "--out", "out"], 2, ["--label"]),
    "no out": ("a,y\n", AGG[:-2], 2, ["--out"]),
    "out exists": ("a,y\n1,0\n2,1\n", [*AGG[:-1], "tables"], 2, ["tables: already there", "--force"]),
    "out is a file": ("a,y\n1,0\n2,1\n", [*AGG[:-1], "data.csv"], 2, ["data.csv: is a file"]),
    "out below a file": ("a,y\n1,0\n2,1\n", [*AGG[:-1], "data.csv/out"], 1, ["data.csv"]),
    "unknown method": (None, [*FIT, "--method", "maxnt"], 2, ["--method", "'maxnt'", "maxent", "naive_bayes", "best_pair"]),
    "unknown parameter": (None, [*FIT, "--set", "n_chain=5"], 2, ["--set: maxent takes no 'n_chain'", "'n_chains'", "l2_theta"]),
    "no value": (None, [*FIT, "--set", "n_chains"], 2, ["--set: 'n_chains' is not NAME=VALUE"]),
    "value of another type": (None, [*FIT, "--set", "n_chains=many"], 2, ["--set n_chains: 'many' is not a number"]),
    "part of a chain": (None, [*FIT, "--set", "n_chains=1.5"], 2, ["--set n_chains: '1.5' is not a whole number"]),
    "not a number": (None, [*FIT, "--set", "l2_mu=nan"], 2, ["--set l2_mu: 'nan' is not a number"]),
    "number or none": (None, [*FIT, "--set", "step_mu=fast"], 2, ["--set step_mu: 'fast' is not a number or none"]),
    "neither true nor false": (None, [*FIT, "--set", "clip_ratio=1"], 2, ["--set clip_ratio: '1' is not true or false"]),
    "unknown choice": (None, [*FIT, "--set", "gradient=steep"], 2, ["gradient: 'steep' is not known", "rescaled, exact"]),
    "parameter out of range": (None, [*FIT, "--set", "n_chains=0"], 2, ["n_chains: must be at least 1"]),
    "parameter twice": (None, [*FIT, "--set", "clip=1", "--set", "clip=2"], 2, ["'clip' is given twice"]),
    "seed by set": (None, [*FIT, "--set", "random_state=1"], 2, ["--seed"]),
    "seed in words": (None, [*FIT, "--seed", "one"], 2, ["--seed", "'one'"]),
    "no tables": (None, ["fit", "nowhere", "--out", "out"], 1, ["nowhere: no contingency tables here", "agglearn aggregate"]),
    "a file as tables": (None, ["fit", "data.csv", "--out", "out"], 1, ["data.csv: no contingency tables here"]),
    "a model as tables": (None, ["fit", "model", "--out", "out"], 1, ["model: no contingency tables here"]),
    "tables as model": (NEW, ["predict", "tables", "bad.csv", "--out", "out"], 1, ["tables: no model here", "agglearn fit"]),
    "feature absent": ("age,job,zone\n30,cook,11\n", PREDICT, 1, ["bad.csv: no column 'home'", "age, job, zone"]),
    "text where numbers were": (
        NEW + "old,cook,own,11\n",
        PREDICT,
        1,
        ["bad.csv: column 'age' is numeric but row 2 holds 'old'", "--missing 'old'"],
    ),
    "new file absent": (None, PREDICT, 1, ["bad.csv: no such file"]),
    "new file empty": ("", PREDICT, 1, ["bad.csv: the file is empty"]),
    "new file without rows": ("age,job,home,zone\n", PREDICT, 1, ["bad.csv", "no rows"]),
    "predictions over the data": (NEW, [*PREDICT[:-1], "bad.csv", "--force"], 2, ["bad.csv: is the file to be read"]),
    "predictions over a folder": (NEW, [*PREDICT[:-1], "tables", "--force"], 2, ["tables: is a folder"]),
    "predictions exist": (NEW, [*PREDICT[:-1], "data.csv"], 2, ["data.csv: already there"]),
    "no command": (None, [], 2, ["COMMAND"]),
    "unknown command": (None, ["learn"], 2, ["'learn'", "aggregate"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(at, capfd, name):
    content, command, status, said = BAD[name]
    if content is not None:
        file = next((c for c in command if c.startswith("bad.")), "bad.csv")
        Path(file).write_bytes(content if isinstance(content, bytes) else content.encode())
    before, folders = state(at), sorted(os.listdir(at))
    assert run(*command) == status
    found = capfd.readouterr()
    assert found.out == ""
    assert found.err.startswith("agglearn: ")
    assert found.err.count("\n") == 1
    assert found.err.endswith("\n")
    for words in said:
        assert words in found.err
    assert state(at) == before
    assert sorted(os.listdir(at)) == folders


PARQUET = {
    "no rows": (pa.table({"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())}), "no rows"),
    "nested": (pa.table({"a": [[1], [2]], "y": [0, 1]}), "column 'a' holds nested values"),
    "twice": (pa.table([[1, 2], [1, 2], [0, 1]], names=["a", "a", "y"]), "two columns are named 'a'"),
    "no label": (pa.table({"a": [1, 2], "b": [0, 1]}), "no label column 'y'; the columns are a, b"),
    "label in words": (pa.table({"a": [1, 2], "y": ["n", "p"]}), "--positive"),
    "text in numbers": (pa.table({"a": [*map(str, range(20)), "old"], "y": [0, 1, 1] * 7}), "row 21 holds 'old'"),
}


@pytest.mark.parametrize("name", PARQUET)
def test_bad_parquet_is_one_line(at, capfd, name):
    table, words = PARQUET[name]
    pq.write_table(table, "bad.parquet", row_group_size=5)
    before = state(at)
    assert run("aggregate", "bad.parquet", "--label", "y", "--out", "out") == 1
    said = capfd.readouterr().err
    assert said.startswith("agglearn: bad.parquet: ")
    assert words in said
    assert said.count("\n") == 1
    assert state(at) == before


def test_tables_that_a_method_cannot_use(at, capfd):
    how = ["--label", "y", "--positive", "yes", "--missing", "?", "--pairs", "none"]
    assert run("aggregate", "data.csv", *how, "--out", "singles") == 0
    capfd.readouterr()
    assert run("fit", "singles", "--method", "best_pair", "--out", "out") == 1
    assert capfd.readouterr().err.startswith("agglearn: there are no tables of pairs")
    assert not Path("out").exists()


def test_compressed_files(at):
    pd.read_csv("data.csv").to_csv("data.csv.gz", index=False)
    how = ["--label", "y", "--positive", "yes", "--missing", "?", "--categorical", "zone"]
    assert run("aggregate", "data.csv.gz", *how, "--out", "t") == 0
    assert ContingencyTables.load("t").digest == ContingencyTables.load("tables").digest
    Path("bad.csv.gz").write_text("a,y\n")
    assert run("aggregate", "bad.csv.gz", "--label", "y", "--out", "u") == 1


DAMAGE = {
    "tables/tables.json": ["", "{", "{}", "[]", '{"encoder": [{"name": 3}]}'],
    "tables/tables.parquet": ["", "PAR1", "text"],
    "model/model.json": ["", "{", "{}", '{"class": "os.path", "params": {}, "state": {}}', '{"class": "no.module.X"}',
                         '{"class": "agglearn.encoding.FrameEncoder", "params": {"features": []}, "state": {}}'],
    "model/model.npz": ["", "text", "PK"],
    "model/reading.json": ["{", "[]", "3"],
}  # fmt: skip


@pytest.mark.parametrize(("file", "text"), [(f, t) for f, texts in DAMAGE.items() for t in texts])
def test_damaged_folders_are_one_line(at, capfd, file, text):
    Path(file).write_text(text)
    before = state(at)
    command = FIT if file.startswith("tables") else ["predict", "model", "data.csv", "--out", "out"]
    assert run(*command) == 1
    said = capfd.readouterr().err
    assert said.startswith(f"agglearn: {file.split('/')[0]}: ")
    assert said.count("\n") == 1
    assert state(at) == before


@pytest.mark.parametrize("file", ["tables/tables.parquet", "model/model.npz"])
def test_files_that_are_gone(at, capfd, file):
    Path(file).unlink()
    command = FIT if file.startswith("tables") else ["predict", "model", "data.csv", "--out", "out"]
    assert run(*command) == 1
    assert capfd.readouterr().err.startswith(f"agglearn: {file.split('/')[0]}: damaged")


def test_a_subprocess_says_one_line_too(at):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "agglearn", "aggregate", "none.csv", "--label", "y", "--out", "out"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "agglearn: none.csv: no such file\n"
