"""`agglearn reproduce`: names are checked, and Snakemake gets what the command line has."""

import os

import pytest
import yaml
from cli_calls import call, check_refusal, told

from agglearn import machine
from agglearn_workflow.project import project_files

FILE = ["--snakefile", str(project_files() / "Snakefile")]
MEMORY = ["--resources", f"mem_mb={machine.memory_bytes() // 10**6}"]


@pytest.fixture
def started(tmp_path, monkeypatch) -> list:
    """What is executed in the place of this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    calls = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: calls.append(arguments[1:]))
    return calls


def test_names_and_options_reach_snakemake(started):
    assert call("reproduce maxent_xor labelsums --cores 3 --scale smoke -- -k --forceall") == 0
    assert started == [[
        "-m", "snakemake", "-k", "--forceall", *MEMORY, "--config", "scale=smoke", "--cores", "3", *FILE, "--", "maxent_xor", "labelsums",
    ]]  # fmt: skip


def test_without_names_everything_runs(started):
    assert call("reproduce --dry-run") == 0
    assert started[0] == ["-m", "snakemake", *MEMORY, "--dry-run", *FILE]


@pytest.mark.parametrize(("arguments", "error"), [
    ("maxent_tabel4", "there is no experiment or source 'maxent_tabel4' (did you mean 'maxent_table4'?); see `agglearn reproduce --list`"),
    ("maxent_xor --scale tiny", "scale: 'tiny'"),
    ("maxent_xor --set maxent_xor.methods.maxent.params.n_chain=3", "n_chain"),
    ("--configfile absent.yaml", "absent.yaml: no such file"),
    ("--cores none", "'none' is not a whole number"),
])  # fmt: skip
def test_what_is_wrong_is_one_line(arguments, error, started, capsys):
    check_refusal(capsys, f"reproduce {arguments}", 2, error)
    assert not started


@pytest.mark.slow
def test_experiments_of_the_folder_are_listed_and_run(started, tmp_path, capsys):
    (tmp_path / "config/experiments").mkdir(parents=True)
    own = {"extends": "maxent_xor", "title": "Mine", "source": "own"}
    (tmp_path / "config/experiments/own_xor.yaml").write_text(yaml.safe_dump(own))
    printed = told(capsys, "reproduce --list").out.splitlines()
    assert printed[printed.index("own") + 1].split() == ["own_xor", "Mine"]
    assert not started
    assert call("reproduce own_xor") == 0
    assert started[0][-1] == "own_xor"
