"""The command line: every bad input is one line, and nothing is lost."""

import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_calls import run, state
from samples import ROOT

AGG = ["aggregate", "bad.csv", "--label", "y", "--out", "out"]
PREDICT = ["predict", "model", "bad.csv", "--out", "out"]
FIT = ["fit", "tables", "--out", "out"]
COMPRESS = ["compress", "tables", "--out", "out", "--budget"]
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
    "label missing": ("a,y\n1,1\n2,\n3,0\n", AGG, 1, ["bad.csv: label 'y' is missing in 1 row"]),
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
    "feature that is not there": ("a,y\n1,0\n2,1\n", [*AGG, "--features", "b"], 1, ["bad.csv: no column 'b'; the columns are a"]),
    "label as feature": ("a,y\n1,0\n2,1\n", [*AGG, "--features", "a,y"], 2, ["--features: 'y' is the label"]),
    "feature twice": ("a,y\n1,0\n2,1\n", [*AGG, "--features", "a,a"], 1, ["bad.csv: column 'a' is named twice"]),
    "categorical not there": ("a,y\n1,0\n2,1\n", [*AGG, "--categorical", "b"], 1, ["bad.csv: categorical: no column 'b'"]),
    "no pair": ("a,b,y\n1,2,0\n2,2,1\n", [*AGG, "--pairs", "some"], 2, ["--pairs: 'some' is no pair"]),
    "pair not there": ("a,b,y\n1,2,0\n2,2,1\n", [*AGG, "--pairs", "a:c"], 1, ["no column 'c'; the columns are a, b"]),
    "pair with itself": ("a,b,y\n1,2,0\n2,2,1\n", [*AGG, "--pairs", "a:a"], 1, ["pairs: 'a' is paired with itself"]),
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
    "value of another type": (None, [*FIT, "--set", "n_chains=many"], 2, ["--set n_chains: 'many' is not allowed; it must be a whole number of at least 1"]),
    "part of a chain": (None, [*FIT, "--set", "n_chains=1.5"], 2, ["--set n_chains: 1.5 is not allowed; it must be a whole number of at least 1"]),
    "not a number": (None, [*FIT, "--set", "l2_mu=nan"], 2, ["--set l2_mu: nan is not allowed; it must be"]),
    "number or none": (None, [*FIT, "--set", "step_mu=fast"], 2, ["--set step_mu: 'fast' is not allowed; it must be", "or null"]),
    "neither true nor false": (None, [*FIT, "--set", "clip_ratio=1"], 2, ["--set clip_ratio: 1 is not allowed; it must be true or false"]),
    "unknown choice": (None, [*FIT, "--set", "gradient=steep"], 2, ["gradient: 'steep' is not allowed", "rescaled, exact"]),
    "parameter out of range": (None, [*FIT, "--set", "n_chains=0"], 2, ["n_chains: 0 is not allowed; it must be a whole number of at least 1"]),
    "parameter twice": (None, [*FIT, "--set", "clip=1", "--set", "clip=2"], 2, ["'clip' is given twice"]),
    "seed by set": (None, [*FIT, "--set", "random_state=1"], 2, ["--seed"]),
    "seed in words": (None, [*FIT, "--seed", "one"], 2, ["--seed", "'one'"]),
    "seed below zero": (None, [*FIT, "--seed", "-1"], 2, ["--seed", "'-1' is not a whole number from 0 on"]),
    "seed of a clustering": (None, [*COMPRESS, "5", "--seed", "-1"], 2, ["--seed", "'-1' is not a whole number from 0 on"]),
    "budget not a number": (None, [*COMPRESS, "nan"], 2, ["--budget", "'nan' is not a number"]),
    "budget without end": (None, [*COMPRESS, "inf"], 2, ["--budget", "'inf' is not a number"]),
    "part of a cluster": (None, [*COMPRESS, "20.5"], 2, ["--budget: '20.5' is neither a whole number nor a share below 1"]),
    "count not a number": (None, [*COMPRESS, "20", "--min-count", "nan"], 2, ["--min-count", "'nan' is not a number"]),
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


@pytest.mark.slow
def test_a_subprocess_says_one_line_too(at):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "agglearn", "aggregate", "none.csv", "--label", "y", "--out", "out"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "agglearn: none.csv: no such file\n"


def test_a_csv_of_too_many_columns_is_refused_from_its_header(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text(",".join([*(f"c{i}" for i in range(6_000)), "y"]) + "\n" + "1," * 6_000 + "0\n")
    monkeypatch.setattr("agglearn.cli.tabular_input.read_csv", lambda *_: pytest.fail("the records are read"))
    assert run(*AGG, "--memory", "100") == 1
    assert "18,003,000 tables take about" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            "aggregate data.csv --label y --positive yes --missing ? --memory -1",
            "argument --memory: '-1' is not a number above 0; see",
        ),
        ("compress tables --budget 0", "argument --budget: '0' is not a number above 0; see"),
        ("compress tables --budget -4", "argument --budget: '-4' is not a number above 0; see"),
        ("compress tables --budgets 9,0", "argument --budgets: '0' is not a number above 0; see"),
        ("compress tables --budget 9 --min-count -1", "argument --min-count: '-1' is not a number of at least 0; see"),
        ("compress tables --budget 9 --apply none.csv", "none.csv: no such file\n"),
        (
            "compress tables --budget 9 --apply data.csv.gz",
            "data.csv.gz: the file is empty; give a CSV with a header line\n",
        ),
        ("schema draft data.csv --label y --positive JA", "data.csv: label 'y' has no value 'JA'; it has no, yes\n"),
    ],
)
def test_the_line_names_the_option_or_the_file_once(at, capsys, command, line):
    with gzip.open("data.csv.gz", "w"):
        pass
    before = state(at)
    assert run(*command.split(), "--out", "new") in (1, 2)
    [*_, error] = capsys.readouterr().err.splitlines(keepends=True)
    assert error.startswith(f"agglearn: {line}")
    assert state(at) == before


def test_a_folder_without_rights_is_named_and_not_called_damaged(at, capsys, monkeypatch):
    def refuse(path: object, **_: object) -> None:
        raise PermissionError(
            f"[Errno 13] Failed to open local file {str(path)!r}"
        )  # as pyarrow does, without `filename`

    def no_place(*_: object, **how: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", f"{how['dir']}/{how['prefix']}x7")

    with monkeypatch.context() as patch:
        patch.setattr(pq, "read_table", refuse)
        assert run("compress", "tables", "--budget", "9", "--out", "new") == 1
    assert capsys.readouterr().err == "agglearn: tables: cannot be read (Permission denied)\n"
    monkeypatch.setattr("tempfile.TemporaryDirectory", no_place)
    assert run("fit", "tables", "--out", "new") == 1
    assert capsys.readouterr().err == f"agglearn: {at / 'new'}: Permission denied\n"


def test_a_full_disk_is_named(at, capsys, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("agglearn.cli.compress.write_csv", full)
    assert run("compress", "tables", "--budget", "9", "--out", "new") == 1
    assert capsys.readouterr().err.splitlines()[-1] == "agglearn: new: No space left on device"
    assert not (at / "new").exists()
