import copy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from census_sample import country_for_experiments
from project import CHAIN, REGIONS, ROOT, SPIKE_DATA, Project, adult_like, bank_like

from agglearn_workflow.config.loading import load

# Every kind of data; all experiments in their smoke sizes would take a quarter of an hour. What these leave out,
# `tests/unit/workflow/test_smoke.py` does without a workflow.
WAY = ("maxent_table4", "maxent_figure4", "vocabulary_figure3", "proportions_figure35")


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """Folders of a project and of its cache. All projects lie there, one after the other: numba finds what it has compiled by
    the path of the code."""
    base = tmp_path_factory.mktemp("places")
    return base / "project", base / "cache"


@pytest.fixture(scope="module")
def project(places):
    """A project with small data in the formats of Adult and Bank, and the two spikes."""
    made = Project(*places, shipped=WAY)
    made.write_data("adult", "adult", "adult.data", adult_like(500, 1, test=False))
    made.write_data("adult", "adult", "adult.test", adult_like(250, 2, test=True))
    made.write_data("bank", "bank_marketing", "bank-additional-full.csv", bank_like(600, 3))
    census = load(made.folder)["datasets"]["acs_2024"]["files"]
    made.overlay["datasets"]["acs_2024"] = country_for_experiments(made.folder / "mirror", census)
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] |= copy.deepcopy({"spike_chain": CHAIN, "spike_regions": REGIONS})
    made.overlay["run"] = [*WAY, "spike_chain", "spike_regions"]
    return made


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy of what it is made of."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("src", "config", "docs", "profiles", "rules", "workflow"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "Snakefile", "environment.yml"):
        shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    command = (*pip, "wheel", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", out, source)
    finished = subprocess.run([str(a) for a in command], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    [path] = out.glob("agglearn-*.whl")
    return path
