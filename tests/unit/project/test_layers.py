"""Modules import from the layers below their own, as `pyproject.toml` states; planted imports that do not are found."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ROOT

from agglearn_workflow import digests

SOURCES = ROOT / "src"
# Imported inside functions: what loads compiled kernels, scikit-learn, JAX or Spark, which few processes need.
SLOW = (
    "agglearn.collective",
    "agglearn.distribution.embedding",
    "agglearn_workflow.tracking.models",
    "agglearn.networks.training",
    "agglearn.observations.kernels",
    "agglearn.vocabulary",
)
LATE = ("agglearn.cli", "agglearn_workflow.commands", "agglearn_workflow.project", "agglearn_workflow.jobs")
SLOW_IN_THEIR_PACKAGE = ("cluster_network", "jax_chains", "set_network", "spark_chains")


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


def late_imports() -> list[tuple[str, str]]:
    """(module, what one of its functions imports of this package)."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
        nodes = {n for f in functions for n in ast.walk(f) if isinstance(n, ast.ImportFrom) and n.module}
        names = [(n.module, a.name) for n in nodes if n.module.startswith("agglearn") for a in n.names]
        found += [(".".join(parts), digests.origin_of(*name)) for name in names]
    return found


@pytest.mark.slow
def test_imports_inside_functions_are_slow_ones():
    """A command and a job import what they need when they run. Elsewhere an import inside a function could hide a circle."""
    late = [f"{m} -> {t}" for m, t in late_imports() if not m.startswith(LATE)]
    slow = [one for one in late if one.partition(" -> ")[2].startswith(SLOW) or one.endswith(SLOW_IN_THEIR_PACKAGE)]
    assert len(slow) > 10
    assert sorted(set(late) - set(slow)) == []
