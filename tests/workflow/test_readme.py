"""Every code block of the README runs. What takes long is tried: make and Snakemake plan it, pip finds what it installs.

Snakemake plans once. `test_printed_commands.py` reads the arguments of its other commands, and their configuration.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from project import run_module
from readme_blocks import LONG, ROOT, blocks, check_minute, commands, minute

from agglearn_workflow.commands.doctor import ask_index

LONG_COMMANDS = [c for b in blocks() if b.is_long for c in commands(b)]


def environ() -> dict[str, str]:
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}


def test_every_block_names_its_language_and_is_run_one_way():
    assert {b.language for b in blocks()} == {"sh", "python"}
    assert [b.language for b in minute()] == ["python", "sh", "sh"]
    assert all(c.split()[0] in LONG for c in LONG_COMMANDS)
    assert LONG_COMMANDS[0] == "make quick"


@pytest.mark.slow
def test_the_minute_on_data_inside_scikit_learn(tmp_path):
    if ask_index(10) == "answers":
        pytest.skip("the test of the wheel runs it")
    check_minute(tmp_path, [block.run(tmp_path, environ()) for block in minute()])


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in LONG_COMMANDS if not c.startswith("snakemake") or c == "snakemake -n"])
def test_long_commands_can_be_planned(command, tmp_path):
    program, *arguments = shlex.split(command)
    if program == "make":
        call = ["make", "-n", *arguments]
    elif program == "snakemake":
        given = [*arguments, "--config", f"results={tmp_path}/results", "--quiet"]
        planned = run_module("snakemake", given, environ(), ROOT, tmp_path / "printed.txt")
        assert planned.status == 0, planned.text
        return
    else:
        assert arguments == ["install", "."]
        call = ["pip", "install", "--dry-run", "--no-deps", "--no-build-isolation", "--quiet", "."]
    finished = subprocess.run(call, cwd=ROOT, env=environ(), capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
