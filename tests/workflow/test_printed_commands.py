"""Every command that a page, a comment, a message or a template prints runs in the form in which it is printed.

A shell runs it in a copy of what `make` reads. `make` is the real one. What it or the command starts is recorded: the arguments of
Snakemake are then read by Snakemake's parser and its configuration is loaded, those of `agglearn` by the parser of the command line.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from printed_commands import TARGETS, printed
from readme_blocks import ROOT
from snakemake.cli import get_argument_parser, parse_config

from agglearn import cli
from agglearn.errors import ConfigError
from agglearn.privacy.calibration import check_promise
from agglearn_workflow.commands import reproduce
from agglearn_workflow.config.loading import load, parse_scalars, read_mapping, stack
from agglearn_workflow.plan import Plan

COMMANDS = printed()
RECORDER = """#!{python} -SE
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
if "agglearn_workflow.run_summary" in sys.argv:
    print("results/records/adult")  # what is to be tried again
"""
PROGRAMS = ("snakemake", "agglearn", "python", "pip", "uv", "sphinx-build", "ruff", "snakefmt", "lint-imports", "mypy", "coverage", "docker",
            "java", "sh")  # fmt: skip
MINE = {"title": "Mine", "class": "agglearn.datasets.Tabular", "label": {"column": "y", "positive": "yes"}}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what `make` reads, an environment that records what is started, and files that a person adds."""
    base = tmp_path_factory.mktemp("place")
    for name in ("Makefile", "requirements.lock", "requirements-spark.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, base)
    for name in ("config", "workflow", "benchmarks"):
        shutil.copytree(ROOT / name, base / name)
    (base / "config/datasets/mine.yaml").write_text(yaml.safe_dump(MINE))
    (base / "config/experiments/mine.yaml").write_text("extends: maxent_xor\n")
    (base / "archive").symlink_to(ROOT / "archive")
    (base / "tests").mkdir()
    for name in ("site", "docs"):
        (base / "results" / name).mkdir(parents=True)
    (base / "my.yaml").write_text("scale: smoke\n")
    (base / ".venv/bin").mkdir(parents=True)
    for name in PROGRAMS:
        (base / ".venv/bin" / name).write_text(RECORDER.format(python=sys.executable, log=str(base / "log")))
        (base / ".venv/bin" / name).chmod(0o755)
    (base / ".venv/.ready").touch()
    (base / ".lowest").symlink_to(base / ".venv")
    return base


def started(place: Path, command: str) -> list[list[str]]:
    """Programs that a command starts, with their arguments."""
    (place / "log").write_text("")
    environ = os.environ | {"PATH": f"{place}/.venv/bin:{os.environ['PATH']}"}
    for name in ("MAKEFLAGS", "MAKELEVEL", "ARGS", "VENV", "RESULTS"):
        environ.pop(name, None)
    done = subprocess.run(["/bin/bash", "-euc", command], cwd=place, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in (place / "log").read_text().splitlines()]


@functools.cache
def planned(place: Path, overlay: str) -> Plan:
    return Plan(load(ROOT, json.loads(overlay), place, ["all"]))


def check_snakemake(place: Path, arguments: list[str]) -> None:
    """Whether Snakemake takes the arguments, the configuration loads, and every target is one."""
    args = get_argument_parser().parse_args(arguments)
    assert args.logger == []
    over = {}
    for file in args.configfile or ():
        over = stack(over, read_mapping(place / file))
    over = stack(over, parse_scalars(parse_config(args.config or [])))
    plan = planned(place, json.dumps(over))
    allowed = {"all", *plan.experiments, *plan.sources()}
    for target in [*args.targets, *(args.forcerun or ())]:
        assert target in allowed or target.startswith("results/records/"), f"{target!r} is no target"


def check_reproduce(place: Path, arguments: list[str]) -> None:
    """Whether `agglearn reproduce` takes the arguments before `--`, and Snakemake those that it is then given."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    check_agglearn(arguments, in_a_sentence=False)
    args = cli.parser().parse_args(arguments[:end])
    args.snakemake = arguments[end + 1 :]
    check_snakemake(place, reproduce.arguments(args))


def check_agglearn(arguments: list[str], in_a_sentence: bool) -> None:
    """Whether the command line takes the arguments. A sentence may name a command without those that it needs."""
    end = arguments.index("--") if arguments[:1] == ["reproduce"] and "--" in arguments else len(arguments)
    if status(arguments[:end]) and in_a_sentence:
        assert status([*(a for a in arguments if not a.startswith("-")), "--help"]) == 0
    else:
        assert status(arguments[:end]) == 0
        if arguments[0] == "private":
            args = cli.parser().parse_args(arguments)
            check_promise(args.epsilon, args.delta, args.mechanism)


def status(arguments: list[str]) -> int:
    """Exit status of the parser of the command line."""
    try:
        cli.parser().parse_args(arguments)
    except SystemExit as ended:
        return ended.code
    return 0


def test_there_are_commands_of_every_kind():
    pages = ("README.md", "CONTRIBUTING.md", "config/README.md", "docs/archive.md", "docs/extending.md")
    others = ("Makefile", "config/config.yaml", "src/agglearn/cli/__init__.py", "src/agglearn_workflow/tracking/ui.py")
    assert {*pages, *others} <= set(COMMANDS.values())
    under_tables = ("make reproduce ARGS=maxent_table4", 'make reproduce ARGS="maxent_table4 --config scale=smoke"')
    agglearn = ("make archive ARGS=maxent_table4", "agglearn data get adult", "make ui PORT=5001")
    assert {*under_tables, *agglearn, "snakemake --cores 4 maxent_table4"} <= set(COMMANDS)
    assert {word for command in COMMANDS for word in command.split()[1:2] if command.startswith("make")} >= TARGETS


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith("agglearn")])
def test_a_printed_command_of_make_and_snakemake(place, command, capsys):
    calls = started(place, command)
    if command.startswith("make") and command.split()[1] in ("quick", "reproduce", "archive", "retry"):
        assert ["agglearn", "reproduce"] in [call[:2] for call in calls]
    for program, *arguments in calls:
        if program == "snakemake" and arguments != ["--check", "Snakefile", "workflow/Snakefile", "rules"]:
            check_snakemake(place, arguments)
        if program == "agglearn" and arguments[0] == "reproduce":
            check_reproduce(place, arguments)
        elif program == "agglearn":
            check_agglearn(arguments, in_a_sentence=False)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("agglearn")])
def test_a_printed_command_of_agglearn(place, command, capsys):
    [[program, *arguments]] = started(place, command)
    assert program == "agglearn"
    check_agglearn(arguments, in_a_sentence=not re.search(r"[/.=]|\d", command))


@pytest.mark.parametrize("arguments", [["--logger", "none", "maxent_table4"], ["maxent_tabel4"], ["--nothing"]])
def test_a_command_that_snakemake_does_not_take_is_noticed(place, arguments, capsys):
    with pytest.raises((SystemExit, AssertionError, ConfigError)):
        check_snakemake(place, arguments)
