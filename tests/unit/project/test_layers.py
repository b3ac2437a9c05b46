"""Modules import from the layers below their own, as `pyproject.toml` states; planted imports that do not are found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ROOT

SOURCES = ROOT / "src"


def lint(folder: Path) -> str:
    """What import-linter prints on the package in a folder; empty where every contract is kept."""
    call = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    environment = {"PYTHONPATH": str(folder), "PATH": "", "NO_COLOR": "1"}
    config = ["--config", str(ROOT / "pyproject.toml"), "--no-logo", "--no-cache"]
    done = subprocess.run([*call, *config], cwd=folder, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    return folder


def test_no_import_goes_up_or_round():
    assert lint(SOURCES) == ""


PLANTED = {  # file, what it would import → what the message names
    "up": ("encoding/labels.py", "agglearn_workflow.plan", "agglearn.encoding.labels -> agglearn_workflow.plan"),
    "sibling": ("maxent/penalty.py", "agglearn.vocabulary.kernels", "agglearn.maxent.penalty -> agglearn.vocabulary"),
    "in a function": ("privacy/budget.py", "agglearn.encoding", "agglearn.privacy.budget -> agglearn.encoding"),
    "circle": ("collective/tree.py", "agglearn.collective.propagation", "agglearn.collective"),
    "command": ("cli/predict.py", "agglearn_workflow.render", "agglearn.cli.predict -> agglearn_workflow.render"),
    "no layer": ("homeless.py", "agglearn.errors", "homeless"),
    "library": ("linear/path.py", "agglearn_workflow.plan", "agglearn.linear.path -> agglearn_workflow.plan"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_import_is_found(copy, name):
    file, module, message = PLANTED[name]
    path = copy / "agglearn" / file
    before = path.read_text() if path.exists() else ""
    indent = "def late():\n    " if name == "in a function" else ""
    path.write_text(f"{before}\n{indent}import {module}\n")
    try:
        assert message in lint(copy)
    finally:
        path.write_text(before) if before else path.unlink()
