"""`agglearn data` and `agglearn cite` in a project of the test's own."""

import hashlib
import os
import pty
import re
import subprocess
import sys
import termios
import zipfile

import pyarrow.parquet as pq
import pytest
import yaml
from cli_calls import call, check_refusal, told
from samples import ROOT, Project, shipped_config

from agglearn.errors import NotAvailable
from agglearn_workflow.commands.data import table
from agglearn_workflow.runs import results_lock
from agglearn_workflow.runs.products import build_product
from agglearn_workflow.site.inventory import inventory

GET = [sys.executable, "-m", "agglearn", "data", "get", "fetched"]
CSV = b"a,y\n1,0\n2,1\n"
PERSONS = "RT,SERIALNO,SPORDER,STATE,PUMA,PWGTP,AGEP\nP,2024HU0000001,1,1,402,7,30\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project with one mirror and some data sets, as the current folder."""
    project = Project(tmp_path / "project")
    for path in (project.base / "config/datasets").glob("*.yaml"):
        if path.stem not in ("fair", "loglinear", "digits"):
            path.unlink()
    (tmp_path / "host").mkdir()
    (tmp_path / "host/upstream.csv").write_bytes(CSV)
    with zipfile.ZipFile(tmp_path / "host/csv_pal.zip", "w") as archive:
        archive.writestr("psam_p01.csv", PERSONS)
    for name, size in (("b.csv", 5000), ("c.csv", 7)):
        (tmp_path / "host" / name).write_bytes(b"x" * size)
    digest, unknown = hashlib.sha256(CSV).hexdigest(), {"sha256": "unknown"}

    def route(file: str, kind: str = "primary", **more) -> dict:
        return {"kind": kind, "url": f"{(tmp_path / 'host').as_uri()}/{file}", **more}

    persons = unknown | {"routes": [route("csv_pal.zip", member="psam_p01.csv")]}
    build = {"kind": "build", "function": "agglearn.datasets.builds.person_columns", "inputs": {"psam_p01.csv": persons},
             "params": {"columns": ["AGEP", "STATE", "PUMA"]}}  # fmt: skip
    upstream = route("upstream.csv")
    files = {
        "mirrored": {"a.csv": {"sha256": digest}},
        "fetched": {"a.csv": {"sha256": digest, "bytes": len(CSV), "routes": [{"kind": "mirror"}, upstream]}},
        "built": {"p_01.parquet": unknown | {"routes": [build]}},
        "several": {"a.csv": unknown} | {name: unknown | {"routes": [route(name)]} for name in ("b.csv", "c.csv")},
        "wrong": {"a.csv": {"sha256": "0" * 64, "routes": [upstream]}},
        "dead": {"a.csv": {"sha256": digest, "routes": [route("gone.csv", "frozen")]}},
    }
    entry = {"title": "Mine", "class": "agglearn.datasets.Tabular", "label": {"column": "y"}, "licence": "MIT"}
    entry |= {"citation": "Me (2020). Mine.", "doi": "10.1234/mine"}
    for name, of_entry in files.items():
        project.path(f"datasets/{name}").write_text(yaml.safe_dump(entry | {"files": of_entry}))
    for name in ("mirrored", "several"):
        (project.base / f"mirror/{name}").mkdir(parents=True)
        (project.base / f"mirror/{name}/a.csv").write_bytes(CSV)
    project.edit("config", lambda c: c.update(mirrors=["mirror"]))
    project.edit("experiments/trial", lambda e: e["datasets"].update(mirrored={}, dead={}))
    monkeypatch.chdir(project.base)
    return project.base


def listed(capsys) -> dict[str, list[str]]:
    """Columns of `agglearn data` by data set."""
    lines = [re.split(r"  +", line) for line in told(capsys, "data").out.splitlines()]
    return {line[0]: line[1:] for line in lines}


def test_what_is_fetched_is_here_afterwards(here, capsys):
    for name, kind in (("fetched", "primary"), ("built", "build")):
        assert re.match(rf"{name}: 1 file, \S+ k?B, from {kind}, in ", told(capsys, f"data get {name}").out)
    assert (here / "results/cache/fetched/a.csv").read_bytes() == CSV
    built = pq.read_table(here / "results/cache/built/p_01.parquet").to_pylist()
    assert built == [{"AGEP": 30, "STATE": "01", "PUMA": "00402"}]
    rows = listed(capsys)
    assert rows["fetched"][:3] == ["yes", "primary", f"{len(CSV)} B"]
    assert rows["built"][:2] == ["yes", "build"]
    (here.parent / "host/upstream.csv").unlink()
    assert call("data get fetched") == 0  # from the cache


def test_the_size_of_all_files_and_each_origin_are_told(here, capsys):
    """One file of 12 bytes from a mirror, one of 5,000 and one of 7 from the publisher."""
    assert re.match(r"several: 3 files, 5\.02 kB, from mirror, primary, in \S+$", told(capsys, "data get several").out)
    assert listed(capsys)["several"] == ["yes", "mirror, primary", "5.02 kB", "MIT", "no table"]


def test_what_was_unavailable_becomes_available_for_the_next_run(here):
    def fail(folder):
        raise NotAvailable("no network")

    records = here / "results/records/fetched"
    build_product(records, fail)
    assert call("data get fetched") == 0
    assert not records.exists()  # so that the next run parses them
    build_product(records, fail)
    (here / "results/cache/fetched/a.csv").unlink()
    (here.parent / "host/upstream.csv").unlink()
    assert call("data get fetched") == 1
    assert records.exists()


@pytest.mark.parametrize(("line", "status", "words"), [
    ("data get fetchd", 2, ["'fetchd'", "did you mean 'fetched'?"]),
    ("data show nothing", 2, ["'nothing'", "fetched"]),
    ("data get", 2, ["name of one data set"]),
    ("data list fetched", 2, ["`list` takes none"]),
    ("data fetch fetched", 2, ["fetch", "list", "show", "get"]),
    ("cite", 1, ["results: has no measurements"]),
])  # fmt: skip
def test_trouble_is_one_line(here, capsys, line, status, words):
    check_refusal(capsys, line, status, *words)


@pytest.mark.parametrize(
    ("name", "told"), [("wrong", ["wrong", "upstream.csv", "sha256"]), ("dead", ["a.csv", "gone.csv"])]
)
def test_a_file_of_another_digest_or_of_none_is_named(here, capsys, name, told):
    assert call(f"data get {name}") == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("agglearn: ")
    assert all(word in line for word in told), line


def test_data_that_need_no_download(here, capsys):
    """Files of a mirror stay where they are."""
    assert [call(f"data get {name}") for name in ("fair", "loglinear", "mirrored")] == [0, 0, 0]
    inside, simulated, mirrored = capsys.readouterr().out.splitlines()
    assert inside == "fair: inside statsmodels, nothing to fetch"
    assert simulated == "loglinear: simulated, nothing to fetch"
    assert mirrored.endswith(f"from mirror, in {here}/mirror/mirrored")
    assert not (here / "results/cache/mirrored/a.csv").exists()


def test_a_running_workflow_is_not_disturbed(here):
    with results_lock.acquire(here / "results/.lock"):
        assert "another run is working in this folder" in call("data get fetched")
    assert call("data get fetched") == 0


def test_a_terminal_gets_a_bar(here):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(GET, cwd=here, stderr=theirs, stdout=subprocess.PIPE)
    assert process.communicate()[0].startswith(b"fetched: 1 file")
    os.close(theirs)
    assert b"/12.0" in os.read(ours, 10_000)


def test_the_list_of_the_shipped_data_fits_100_columns():
    config = shipped_config()
    assert max(map(len, table(inventory(config, config["experiments"], ROOT)))) <= 100


def test_outside_of_a_project_its_files_are_used_from_where_the_package_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "10.24432/C5XW20" in told(capsys, "data show adult").out
