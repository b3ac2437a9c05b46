"""The workflow away from its checkout: from an installed wheel, and as a module of somebody's own workflow."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml
from project import run_module, share_kernels
from readme_blocks import ROOT
from samples import OFFLINE

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
METHODS = {"best_pair", "logistic", "maxent", "naive_bayes", "naive_bayes_logistic", "naive_bayes_pcd", "printed"}
SETTINGS = {"scale": "smoke", "tracking": {"uri": "none"}}
DROPPED = dict.fromkeys(sorted(METHODS - {"maxent", "logistic"}))
# The last data set comes with statsmodels.
SMALL = {"datasets": {"bank": None, "adult": None, "fair": {}}, "methods": DROPPED, "reported": []}
SCRIPTS = [f"scripts/{rule}.py" for rule in ("prepare", "fit", "render", "recall", "track", "site", "conclude")]
CARRIED = ["Snakefile", "config", "docs/verdicts.md", "environment.yml", "profiles", "rules"]
CARRIED += [f"workflow/{name}" for name in ("peers", "report", "schemas", *SCRIPTS)]


def environ(package: Path) -> dict[str, str]:
    """Variables for a run with the code of a package."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "AGGLEARN", "PYTHON"))}
    return clean | OFFLINE | {"PYTHONPATH": str(package.parent)}


def call(folder: Path, environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def times(folder: Path) -> dict[Path, int]:
    """When each file was written, but what Python compiles."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def check_table(folder: Path, name: str) -> None:
    """Check that a table has its data set, and a value of maximum entropy, at the scale that the configuration has."""
    table = pd.read_csv(folder / f"results/tables/{name}.csv")
    assert set(table["dataset"]) == {"fair"}
    assert table.query("method == 'maxent' and measure == 'nllh'")["mean"].between(0, 1).tolist() == [True]
    assert json.loads((folder / "results/scale.json").read_text())["scale"] == SETTINGS["scale"]


def test_the_wheel_carries_the_project_as_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("agglearn_workflow/project/")]
        carried = {name.removeprefix("agglearn_workflow/project/"): archive.read(name) for name in names}
    paths = [path for name in CARRIED for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    files = [path for path in paths if path.is_file() and path.suffix != ".pyc"]
    assert carried == {str(path.relative_to(ROOT)): path.read_bytes() for path in files}


def test_a_table_from_the_wheel_in_an_empty_folder(wheel, tmp_path):
    site, folder = tmp_path / "site", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(site)  # as an installer does
    before = times(site / "agglearn_workflow/project")
    (folder / "config").mkdir(parents=True)
    (folder / "config/config.yaml").write_text(yaml.safe_dump(SETTINGS))
    (folder / "mine.yaml").write_text(yaml.safe_dump({"experiments": {"maxent_table4": SMALL}}))
    command = ("agglearn", "reproduce", "maxent_table4", "--cores", "2", "--configfile", "mine.yaml")
    share_kernels(site / "agglearn", site / "agglearn/__pycache__")
    environment = environ(site / "agglearn")
    printed = call(folder, environment, *command)
    assert "agglearn: read them at results/pages/maxent_table4/index.html" in printed
    check_table(folder, "maxent_table4")
    assert not (folder / "results/mlflow.db").exists()  # as config/config.yaml of the folder has it
    assert {path.name for path in folder.iterdir()} == {"config", "mine.yaml", "results", ".snakemake"}
    assert times(site / "agglearn_workflow/project") == before


def test_a_table_from_a_workflow_deployed_as_a_module(tmp_path):
    """The files are those that `snakedeploy deploy-workflow` writes: the configuration as it is, and a Snakefile of these lines."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/Snakefile").write_text(
        'configfile: "config/config.yaml"\n'
        f"module agglearn:\n    snakefile:\n        {str(ROOT / 'workflow/Snakefile')!r}\n    config:\n        config\n"
        "use rule * from agglearn\n"
    )
    settings = tmp_path / "config/config.yaml"
    settings.write_text(yaml.safe_dump(yaml.safe_load(settings.read_text()) | SETTINGS))
    own = {"extends": "maxent_table4", **SMALL}
    (tmp_path / "config/experiments/own_table4.yaml").write_text(yaml.safe_dump(own))
    given = ["--cores", "2", "--quiet", "all", "--", "own_table4"]
    outcome = run_module("snakemake", given, environ(ROOT / "src/agglearn"), tmp_path, tmp_path / "printed.txt")
    assert outcome.status == 0, outcome.text
    check_table(tmp_path, "own_table4")
