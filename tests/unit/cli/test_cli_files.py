"""Files that commands read and write: pipes, Parquet of any origin; one writer, and nothing else is touched."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_calls import call, check_refusal, state, told

from agglearn.cli.common import TABLES, output_folder
from agglearn.errors import ConfigError
from agglearn.observations import ContingencyTables

HOW = "--label y --positive yes --missing ? --categorical zone"


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def piped(monkeypatch):
    """`piped(*program)`: a pipe in which a program writes, as standard input; `piped(…, file=True)`: its path, as in `<(program)`."""
    ours, writers = os.dup(0), []

    def start(*program: str, file: bool = False) -> str:
        writers.append(subprocess.Popen(program, stdout=subprocess.PIPE))
        number = writers[-1].stdout.fileno()
        if not file:
            os.dup2(number, 0)
            monkeypatch.setattr(sys, "stdin", os.fdopen(0, closefd=False))
        return f"/dev/fd/{number}"

    yield start
    os.dup2(ours, 0)
    os.close(ours)
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd", "redirected"])
def test_pipes_and_redirected_files_are_files(at, piped, capfd, name):
    program = ["gzip", "-c", "data.csv"] if name == "/dev/fd" else ["cat", "data.csv"]
    path = piped(*program, file=name == "/dev/fd")
    if name == "redirected":
        with open("data.csv") as file:
            os.dup2(file.fileno(), 0)
    source = {"/dev/fd": path, "redirected": "/dev/stdin"}.get(name, name)
    assert call(f"aggregate {source} {HOW} --out t") == 0
    assert capfd.readouterr().err == ""
    assert ContingencyTables.load("t").digest == ContingencyTables.load("tables").digest


@pytest.mark.parametrize(
    ("text", "words"), [(r"age\n1\n", "no column 'job'"), ("", "the file is empty; give a CSV with a header line\n")]
)
def test_standard_input_that_cannot_be_predicted_is_named(at, piped, capfd, text, words):
    piped("printf", text)
    check_refusal(capfd, "predict model -", 1, f"agglearn: standard input: {words}")


@pytest.mark.parametrize("name", [None, "person"])
def test_parquet_of_a_filtered_frame(at, name):
    frame = pd.read_csv("data.csv", na_values="?")
    kept = frame[frame.age > 20].rename_axis(name)
    kept.to_parquet("kept.parquet")
    assert call("aggregate kept.parquet --label y --positive yes --categorical zone --out t") == 0
    columns = ["age", "job", "home", "zone"] + ([name] if name else [])
    assert ContingencyTables.load("t").names == columns  # a name makes a column of it, for whoever reads without pandas
    known = kept.reset_index(drop=name is None)[[*columns, "y"]]
    expected = ContingencyTables.from_records(known, "y", positive="yes", categorical=["zone"])
    assert ContingencyTables.load("t").digest == expected.digest
    assert call("fit t --method naive_bayes --out m") == 0
    assert call("predict m kept.parquet --out p.csv") == 0
    assert len(pd.read_csv("p.csv")) == len(kept)


def test_large_codes_stay_apart(at, capsys):
    codes = [1 << 60, (1 << 60) + 1, None] * 40
    pq.write_table(pa.table({"code": codes, "y": [0, 1, 1] * 40}), "codes.parquet")  # without a word on pandas' types
    assert call("aggregate codes.parquet --label y --categorical code --out t") == 0
    assert call("fit t --method naive_bayes --out m") == 0
    assert "every value was seen" in told(capsys, "predict m codes.parquet --out p.csv").out
    p = pd.read_csv("p.csv").probability
    assert p[0] < 0.5 < p[1]


# -- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "out"), [
    (f"aggregate data.csv {HOW} --pairs none", "tables"),
    ("private declared --epsilon 1 --delta 1e-6", "tables"),
    ("fit tables --method naive_bayes --set smoothing=3", "model"),
])  # fmt: skip
def test_force_leaves_what_a_person_put_there(at, command, out):
    folder = Path(out)
    (folder / "notes.txt").write_text("mine")
    (folder / "link").symlink_to("notes.txt")
    folder.chmod(0o700)
    before = state(folder)
    assert call(f"{command} --out {out} --force") == 0
    after = state(folder)
    assert set(after) == set(before)
    changed = {name for name in before if before[name] != after[name]}
    assert set() < changed <= {"tables.json", "tables.parquet", "model.json", "model.npz", "reading.json"}
    assert (folder / "link").is_symlink()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_files_that_are_not_written_again_are_removed(at):
    ContingencyTables.load("tables").save("bare")  # tables without reading.json
    assert call("fit bare --method naive_bayes --out model --force") == 0
    assert not Path("model/reading.json").exists()


COMMANDS = (
    f"aggregate data.csv {HOW}", "fit tables --method naive_bayes", "predict model data.csv", "compress tables --budget 9",
    "schema draft data.csv", "private declared --epsilon 1 --delta 1e-6",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_there_before_it_is_complete(at, monkeypatch, command):
    """A command that stops before its last step leaves nothing, and one that ends leaves its output alone, open to others."""
    before, mkdir = state(at), Path.mkdir

    def stop(path, *arguments, **options):
        if path.name == "new":
            assert state(at) != before  # all is written, but hidden
            raise KeyboardInterrupt
        mkdir(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", stop)
        assert call(f"{command} --out new/out") == 130
    assert state(at) == before
    assert call(f"{command} --out new/out") == 0
    assert os.listdir("new") == ["out"]
    assert Path("new/out").stat().st_mode & 0o044 == 0o044
    assert not [p for p in os.listdir(at) if p.startswith(".")]


def test_two_commands_do_not_mix_their_files(tmp_path, monkeypatch):
    """The folder is that of one of them, whenever the second one comes, and has what a person put there."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "tables.json").write_text("old")
    (out / "notes").mkdir()
    (out / "notes/tables.json").write_text("mine")
    publish, threads = os.rename, []

    def write(text: str) -> None:
        with output_folder(str(out), True, TABLES) as work:
            for name in TABLES:
                (work / name).write_text(text)

    def replace(source: Path, target: Path) -> None:
        if not threads:
            threads.append(threading.Thread(target=write, args=("second",)))
            threads[0].start()
            threads[0].join(0.3)
        publish(source, target)

    monkeypatch.setattr(os, "rename", replace)
    write("first")
    threads[0].join()
    assert state(out) == dict.fromkeys(TABLES, b"first") | {"notes": None, "notes/tables.json": b"mine"}


def test_a_folder_that_appears_meanwhile_stays(at):
    def write():
        with output_folder("out", False, TABLES) as work:
            (work / "tables.json").write_text("ours")
            Path("out").mkdir()
            Path("out/theirs").write_text("theirs")

    with pytest.raises(ConfigError, match="already there"):
        write()
    assert state(Path("out")) == {"theirs": b"theirs"}


@pytest.mark.parametrize("command", ["predict model data.csv", "compress tables --budget 9"])
def test_a_file_of_ones_own_may_stand_beside_a_model_or_tables(at, command):
    assert call(f"{command} --out model/mine.csv") == 0
    assert call(f"{command} --out tables/mine.csv") == 0
