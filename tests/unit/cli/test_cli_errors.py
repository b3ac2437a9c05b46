"""The command line: every bad input is one line, and nothing is lost."""

import errno
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_calls import call, check_refusal, refuse

AGG = "aggregate bad.csv --label y --out out"
DATA = "aggregate data.csv --label y --positive yes --out out"
BY_SCHEMA = "aggregate data.csv --schema schema.yaml --out out"
PRIVATE = "private declared --out out"
FIT = "fit tables --out out"
PREDICT = "predict model bad.csv --out out"
COMPRESS = "compress declared --out out --budget"
COST = "cost data.csv --label y --positive yes --missing ? --epsilon 1"
SHAPE = "cost --rows 50000 --features 10 --values 12 --base-rate .1"
NEW = "age,job,home,zone\n30,cook,own,11\n"
TWO, PAIR = "a,y\n1,0\n2,1\n", "a,b,y\n1,2,0\n2,2,1\n"
MANY = f"{'9' * 5000}"
WHOLE = "is not allowed; it must be a whole number of at least 1"

BAD = [  # content of bad.csv, command, exit status, what the line must say
    (None, AGG, 1, ["bad.csv: no such file"]),
    (None, "aggregate tables --label y --out out", 1, ["tables: is a folder"]),
    ("", AGG, 1, ["bad.csv: the file is empty"]),
    ("a,y\n", AGG, 1, ["bad.csv", "no rows"]),
    ("a,b\n1,0\n2,1\n", AGG, 1, ["bad.csv: no label column 'y'; the columns are a, b"]),
    ("a;y\n1;0\n2;1\n", AGG, 1, ["bad.csv", "--separator ';'"]),
    ("a\ty\n1\t0\n2\t1\n", AGG, 1, ["bad.csv", "--separator 'tab'"]),
    ("a,y\n1,0\n2,1\n3,2\n", AGG, 1, ["bad.csv: label 'y' must have two values, it has 3: 0, 1, 2"]),
    ("a,y\n1,no\n2,yes\n", AGG, 1, ["bad.csv: label 'y'", "no and yes", "--positive"]),
    ("a,y\n1,1\n2,\n3,0\n", AGG, 1, ["bad.csv: label 'y' is missing in 1 row"]),
    ("a,y\n1,no\n2,yes\n", f"{AGG} --positive Yes", 1, ["no value Yes; it has no and yes"]),
    ("a,y\n1,0\n2,1\ninf,1\n", AGG, 1, ["bad.csv: column 'a'", "infinite"]),
    (bytes(range(256)) * 20, AGG, 1, ["bad.csv"]),
    ("a,y\n1,0\n2,1,5\n", AGG, 1, ["bad.csv: cannot be read", "line 3"]),
    ('a,y\n1,0\n"2,1\n', AGG, 1, ["bad.csv: cannot be read"]),
    (b"PAR1" + b"x" * 99, AGG, 1, ["bad.csv: cannot be read as Parquet"]),
    (TWO, f"{AGG} --features b", 1, ["bad.csv: no column 'b'; the columns are a"]),
    (TWO, f"{AGG} --features a,y", 2, ["--features: 'y' is the label"]),
    (TWO, f"{AGG} --categorical b*", 1, ["no column 'b*'"]),
    (TWO, f"{AGG} --hash b*:5", 1, ["no column 'b*'"]),
    (TWO, f"{AGG} --hash a", 2, ["--hash: 'a' is not COLUMN:BUCKETS, as a:1000"]),
    (TWO, f"{AGG} --hash a:{MANY}", 2, ["is not COLUMN:BUCKETS"]),
    (TWO, f"{AGG} --hash-above 1000", 2, ["'1000' is not VALUES:BUCKETS"]),
    (TWO, f"{AGG} --hash-above 5:{MANY}", 2, ["VALUES:BUCKETS"]),
    (PAIR, f"{AGG} --pairs some", 2, ["--pairs: 'some' is no pair"]),
    (PAIR, f"{AGG} --pairs a:c", 1, ["no column 'c'; the columns are a, b"]),
    (PAIR, f"{AGG} --pairs a:a", 1, ["pairs: 'a' is paired with itself"]),
    (TWO, f"{AGG} --separator ;;", 2, ["--separator: ';;'"]),
    (TWO, f"{AGG} --memory -1", 2, ["argument --memory: '-1' is not a number above 0; see"]),
    (TWO, "aggregate bad.csv --out out", 2, ["--label: name the column to be predicted, or give --schema"]),
    (TWO, "aggregate bad.csv --label y", 2, ["--out"]),
    (TWO, "aggregate bad.csv --label y --out tables", 2, ["tables: already there", "--force"]),
    (TWO, "aggregate bad.csv --label y --out data.csv", 2, ["data.csv: is a file"]),
    (TWO, "aggregate bad.csv --label y --out data.csv/out", 1, ["data.csv"]),
    (TWO, "aggregate bad.csv --label y --out . --force", 2, ["holds something else"]),
    (TWO, "aggregate bad.csv --label y --out model --force", 2, ["holds something else"]),
    (TWO, "aggregate bad.csv --label y --out -", 2, ["-: --out names a folder"]),
    (None, "aggregate /dev/zero --label y --out out", 1, ["/dev/zero: is a device"]),
    (None, "aggregate data.csv --label none --out tables --force", 1, ["data.csv: no label column 'none'"]),
    (None, f"{BY_SCHEMA} --label job", 2, ["label: 'job' is not that of the schema"]),
    (None, f"{BY_SCHEMA} --positive yes", 2, ["positive: the schema declares it"]),
    (None, f"{BY_SCHEMA} --binning width", 2, ["binning: the schema declares it"]),
    (None, f"{BY_SCHEMA} --categorical zone", 2, ["categorical: the schema declares it"]),
    (None, f"{BY_SCHEMA} --hash job:3", 2, ["hashed: the schema declares it"]),
    (None, f"{BY_SCHEMA} --features extra", 1, ["no column 'extra'"]),
    (None, f"{BY_SCHEMA} --separator ;", 1, ["is the separator right?"]),
    ("age,job,home,zone,y\n1,a,b,c,perhaps\n", BY_SCHEMA.replace("data", "bad"), 1, ["none of 1 records has the positive value"]),
    (None, "schema draft data.csv --label yy", 1, ["data.csv: no column 'yy'; the columns are"]),
    (None, "schema draft data.csv --positive yes", 2, ["--positive"]),
    (None, "schema draft data.csv --label y --positive JA", 1, ["data.csv: label 'y' has no value 'JA'; it has no, yes\n"]),
    (None, "schema draft data.csv --out model/reading.json --force", 2, ["model/reading.json: is a part of model/"]),
    (None, PRIVATE, 2, ["--epsilon"]),
    (None, f"{PRIVATE} --epsilon 0 --delta 1e-6", 2, ["epsilon: must be a number above 0"]),
    (None, f"{PRIVATE} --epsilon 1", 2, ["needs a delta"]),
    (None, f"{PRIVATE} --epsilon 25 --mechanism laplace", 2, ["above 20", "--allow-large-epsilon"]),
    (None, f"{PRIVATE} --epsilon 1 --mechanism noise", 2, ["not known"]),
    (None, "private declared --epsilon 1 --mechanism laplace --out declared --force", 2, ["is the folder to be read"]),
    (None, f"{FIT} --method maxnt", 2, ["--method", "'maxnt'", "maxent", "naive_bayes", "best_pair"]),
    (None, f"{FIT} --set n_chain=5", 2, ["--set: maxent takes no 'n_chain'", "'n_chains'", "l2_theta"]),
    (None, f"{FIT} --set n_chains", 2, ["--set: 'n_chains' is not NAME=VALUE"]),
    (None, f"{FIT} --set n_chains=many", 2, [f"--set n_chains: 'many' {WHOLE}"]),
    (None, f"{FIT} --set n_chains=0", 2, [f"n_chains: 0 {WHOLE}"]),
    (None, f"{FIT} --set step_mu=fast", 2, ["--set step_mu: 'fast' is not allowed; it must be", "or null"]),
    (None, f"{FIT} --set clip=1 --set clip=2", 2, ["'clip' is given twice"]),
    (None, f"{FIT} --set random_state=1", 2, ["--seed"]),
    (None, f"{FIT} --seed -1", 2, ["--seed", "'-1' is not a whole number from 0 on"]),
    (None, f"{FIT} --tune --method naive_bayes", 2, ["no strength to choose"]),
    (None, f"{FIT} --tune --set l2_theta=3", 2, ["give one of them"]),
    (NEW, f"{FIT} --sample bad.csv", 1, ["'y'"]),
    ("job,home,zone,y\ncook,own,11,yes\n", f"{FIT} --sample bad.csv", 1, ["'age'"]),
    ("age,job,home,zone,y\n30,cook,own,11,yes\n", f"{FIT} --sample bad.csv", 1, ["must have two values, it has 1"]),
    ("age,job,home,zone,y\n30,cook,own,11,yes\nold,cook,own,11,no\n", f"{FIT} --sample bad.csv", 1, ["'old'"]),
    (None, f"{FIT} --sample data.csv --positive perhaps", 1, ["has no value perhaps"]),
    (None, f"{FIT} --sample data.csv --tune", 2, ["leave one of them out"]),
    (None, f"{FIT} --positive yes", 2, ["--positive: is of the label of --sample"]),
    (None, "fit nowhere --out new/deep/model", 1, ["nowhere: no contingency tables here", "agglearn aggregate"]),
    (NEW, "predict tables bad.csv --out out", 1, ["tables: no model here", "agglearn fit"]),
    ("age,job,zone\n30,cook,11\n", PREDICT, 1, ["bad.csv: no column 'home'", "age, job, zone"]),
    (NEW + "old,cook,own,11\n", PREDICT, 1, ["bad.csv: column 'age' is numeric but row 2 holds 'old'", "--missing 'old'"]),
    ("age,job,home,zone\n", PREDICT, 1, ["bad.csv", "no rows"]),
    (NEW, "predict model bad.csv --out bad.csv --force", 2, ["bad.csv: is the file to be read"]),
    (NEW, "predict model bad.csv --out tables --force", 2, ["tables: is a folder"]),
    (NEW, "predict model bad.csv --out /dev/null --force", 2, ["/dev/null: is a device or a pipe"]),
    (NEW, "predict model bad.csv --out model/model.json --force", 2, ["model/model.json: is a part of model/"]),
    (None, f"{COMPRESS} 0", 2, ["argument --budget: '0' is not a number above 0; see"]),
    (None, f"{COMPRESS}s 9,0", 2, ["argument --budgets: '0' is not a number above 0; see"]),
    (None, f"{COMPRESS} 9 --min-count -1", 2, ["argument --min-count: '-1' is not a number of at least 0; see"]),
    (None, f"{COMPRESS} 9 --apply none.csv.gz", 1, ["agglearn: none.csv.gz: the file is empty; give a CSV with a header line\n"]),
    (None, "compress declared --budget 9 --out -", 2, ["-: --out names a file"]),
    (None, "compress declared --budget 9 --out tables/tables.json --force", 2, ["tables/tables.json: is a part of tables/"]),
    (None, "cost --epsilon 1", 2, ["DATA: name a file, or describe records by --rows, --features, --values"]),
    (None, f"{SHAPE} --epsilon 1 --out c", 2, ["--out: goes with DATA alone; leave one of them out"]),
    (None, f"{SHAPE} --epsilon 1,often", 2, ["argument --epsilon: 'often' is not a number"]),
    (None, f"{SHAPE} --epsilon 0", 2, ["argument --epsilon: '0' is not a number above 0"]),
    (None, COST, 2, ["--out: name the folder to write"]),
    (None, f"{COST} --rows 5 --out c", 2, ["--rows: goes without DATA alone"]),
    (None, f"{COST} --splits 1 --out c", 2, ["--splits: take 2 or more"]),
    (None, f"{COST} --unit shoe --max-rows 2 --out c", 1, ["no column 'shoe'"]),
    (None, "cost data.csv --epsilon 1 --out c", 2, ["label: name the column of the label, or give a schema"]),
    (None, "cost data.csv --label y --epsilon 1 --out c", 1, ["say which one is positive"]),
    (None, "track --from . --to sqlite:///x.db", 1, ["no runs here; give a results folder"]),
    (None, "track --from . --to x.db", 2, ["--to: 'x.db' is not allowed; give sqlite:///FILE"]),
    (None, "", 2, ["COMMAND"]),
    (None, "learn", 2, ["'learn'", "aggregate"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "line", "status", "said"), BAD, ids=range(len(BAD)))
def test_bad_input_is_one_line(at, capfd, content, line, status, said):
    Path("none.csv.gz").write_bytes(gzip.compress(b""))
    if content is not None:
        Path("bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    error = check_refusal(capfd, line, status, *said, warnings="--apply" in line)
    assert len(error) < 300 or MANY not in line


PARQUET = {
    "no rows": pa.table({"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())}),
    "column 'a' holds nested values": pa.table({"a": [[1], [2]], "y": [0, 1]}),
    "two columns are named 'a'": pa.table([[1, 2], [1, 2], [0, 1]], names=["a", "a", "y"]),
    "--positive": pa.table({"a": [1, 2], "y": ["n", "p"]}),
    "row 21 holds 'old'": pa.table({"a": [*map(str, range(20)), "old"], "y": [0, 1, 1] * 7}),
    "not a Parquet file": None,
}


@pytest.mark.parametrize("words", PARQUET)
def test_bad_parquet_is_one_line(at, capfd, words):
    if PARQUET[words] is None:
        Path("bad.parquet").write_text("a,y\n")
    else:
        pq.write_table(PARQUET[words], "bad.parquet", row_group_size=5)
    check_refusal(capfd, "aggregate bad.parquet --label y --out out", 1, "agglearn: bad.parquet: ", words)


def test_tables_that_a_method_cannot_use(at, capfd):
    assert call(f"{DATA} --missing ? --pairs none") == 0
    check_refusal(capfd, "fit out --method best_pair --out model2", 1, "agglearn: there are no tables of pairs; ")


DAMAGE = {  # None: the file is gone
    "tables/tables.json": ["", "{", "{}", "[]", '{"encoder": [{"name": 3}]}'],
    "tables/tables.parquet": ["", "PAR1", "text", None],
    "model/model.json": ["", "{", "{}", '{"class": "os.path", "params": {}, "state": {}}', '{"class": "no.module.X"}',
                         '{"class": "agglearn.encoding.FrameEncoder", "params": {"features": []}, "state": {}}'],
    "model/model.npz": ["", "text", "PK", None],
    "model/reading.json": ["{", "[]", "3"],
}  # fmt: skip


@pytest.mark.parametrize(("file", "text"), [(f, t) for f, texts in DAMAGE.items() for t in texts])
def test_damaged_folders_are_one_line(at, capfd, file, text):
    Path(file).unlink() if text is None else Path(file).write_text(text)
    folder = file.split("/")[0]
    line = FIT if folder == "tables" else "predict model data.csv --out out"
    check_refusal(capfd, line, 1, f"agglearn: {folder}: {'damaged' if text is None else ''}")


def test_a_csv_of_too_many_columns_is_refused_from_its_header(at, monkeypatch, capsys):
    Path("bad.csv").write_text(",".join([*(f"c{i}" for i in range(6_000)), "y"]) + "\n" + "1," * 6_000 + "0\n")
    monkeypatch.setattr("agglearn.cli.tabular_input.read_csv", lambda *_: pytest.fail("the records are read"))
    words = "18,003,000 tables take about", "more than the 100 GB that are allowed; use fewer features"
    check_refusal(capsys, f"{AGG} --memory 100", 1, *words)


def test_a_folder_without_rights_is_named_and_not_called_damaged(at, capsys, monkeypatch):
    def refuse_reading(path: object, **_: object) -> None:
        raise PermissionError(f"[Errno 13] Failed to open local file {str(path)!r}")  # pyarrow's has no `filename`

    def no_place(*_: object, **how: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", f"{how['dir']}/{how['prefix']}x7")

    with monkeypatch.context() as patch:
        patch.setattr(pq, "read_table", refuse_reading)
        assert refuse(capsys, f"{COMPRESS} 9") == (1, "agglearn: declared: cannot be read (Permission denied)\n")
    monkeypatch.setattr("tempfile.TemporaryDirectory", no_place)
    assert refuse(capsys, FIT) == (1, f"agglearn: {at / 'out'}: Permission denied\n")


def test_a_file_that_was_cut_off(at, capfd):
    whole = gzip.compress(Path("data.csv").read_bytes())
    for content in (whole[: len(whole) // 2], whole[:40] + b"\0" * 40 + whole[80:]):
        Path("cut.csv.gz").write_bytes(content)
        line = "aggregate cut.csv.gz --label y --positive yes --out out"
        check_refusal(capfd, line, 1, "agglearn: cut.csv.gz: is cut off or damaged")
