"""Every code block of the README runs. What takes long is tried: Snakemake plans it.

`test_printed_commands.py` runs the commands of make, and reads the arguments of Snakemake's, and their configuration.
"""

import os
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
    assert "pip install ." in LONG_COMMANDS  # the tests of the wheel build it


@pytest.mark.slow
def test_the_minute_on_data_inside_scikit_learn(tmp_path):
    if ask_index(10) == "answers":
        pytest.skip("the test of the wheel runs it")
    check_minute(tmp_path, [block.run(tmp_path, environ()) for block in minute()])


@pytest.mark.slow
def test_snakemake_plans_the_readme(tmp_path):
    assert "snakemake -n" in LONG_COMMANDS
    given = ["-n", "--config", f"results={tmp_path}/results", "--quiet"]
    planned = run_module("snakemake", given, environ(), ROOT, tmp_path / "printed.txt")
    assert planned.status == 0, planned.text
