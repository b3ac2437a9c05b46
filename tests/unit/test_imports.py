"""The methods need the packages of `dependencies` and no other; what an extra brings is imported when it is used."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("maxent", "vocabulary", "collective", "proportions", "distribution", "labelsums")
LIBRARY = (
    *METHODS,
    "observations",
    "encoding",
    "evaluation",
    "estimator",
    "cli",
    "cli.aggregate",
    "diagnosis",
    "registry",
)
OPTIONAL = (
    "snakemake", "mlflow", "matplotlib", "statsmodels", "jinja2", "jsonschema", "pydantic", "opendp", "jax", "optax", "cvxpy",
    "casadi", "clarabel", "markdown2", "pyspark",
)  # fmt: skip


def loaded_after(statement: str) -> set[str]:
    """Top-level packages in memory after a statement in a fresh process."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(finished.stdout.split())


@pytest.mark.parametrize("module", LIBRARY)
def test_import_loads_no_optional_package(module):
    loaded = loaded_after(f"import agglearn.{module}")
    assert "agglearn" in loaded
    assert not loaded & set(OPTIONAL)


def test_commands_load_no_optional_package(tmp_path):
    """aggregate, fit, predict, compress from one end to the other; noise alone needs OpenDP."""
    (tmp_path / "data.csv").write_text("a,b,y\n" + "1,x,0\n2,y,1\n3,x,1\n" * 20)
    runs = [
        ["aggregate", "data.csv", "--label", "y", "--out", "tables"],
        ["fit", "tables", "--set", "n_chains=100", "--set", "max_iter=5", "--out", "model"],
        ["predict", "model", "data.csv", "--out", "p.csv"],
        ["compress", "tables", "--budget", "2", "--out", "clusters.csv"],
    ]
    lines = [f"import os; os.chdir({str(tmp_path)!r})", "import contextlib, io", "from agglearn.cli import main"]
    lines += ["with contextlib.redirect_stdout(io.StringIO()):", f"    assert not any(main(run) for run in {runs})"]
    assert not loaded_after("\n".join(lines)) & set(OPTIONAL)
    assert (tmp_path / "clusters.csv").is_file()


def test_the_optional_packages_here_are_those_of_the_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        line.split(">")[0]
        for extra in ("workflow", "networks", "privacy", "generic", "spark")
        for line in extras[extra]
    }
    assert named <= set(OPTIONAL)
