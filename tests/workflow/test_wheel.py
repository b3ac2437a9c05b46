"""The wheel by itself, in an empty environment: it installs, imports, and runs the README's minute without the workflow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import share_kernels
from readme_blocks import ROOT, check_minute, minute

from agglearn import __version__
from agglearn.cli.diagnosis import ask_index

WORKFLOW = ("snakemake", "mlflow", "matplotlib", "jsonschema", "jinja2", "pydantic", "statsmodels")
INSTALL = ROOT / "workflow/scripts/install.py"


def call(*arguments, **more) -> str:
    finished = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, **more)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    """An environment with nothing but pip, to be copied."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    call(sys.executable, "-m", "venv", folder)
    return folder


@pytest.fixture(scope="module", params=["highest", "lowest-direct"])
def environment(request, wheel, empty, tmp_path_factory) -> dict[str, str]:
    """Variables of an environment that holds the wheel, the extra `privacy` and their dependencies, as new or as old as allowed."""
    if ask_index(10) != "answers":
        pytest.skip("the package index does not answer")
    if request.param == "lowest-direct" and sys.version_info >= (3, 12):
        pytest.skip("the lowest versions have wheels for Python 3.11 only")
    folder = tmp_path_factory.mktemp(request.param) / "venv"
    shutil.copytree(empty, folder, symlinks=True)
    install = (folder / "bin/python", INSTALL, "--resolution", request.param, f"{wheel}[privacy]")
    ours = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # uv of this environment: no other has to be installed
    call(*install, env=os.environ | {"UV_COMPILE_BYTECODE": "0", "PATH": ours})
    cache = folder.parent / "numba"
    [package] = folder.glob("lib/python*/site-packages/agglearn")
    # For the same code and the same compilers; with others the environment's own folder has another name.
    share_kernels(package, cache)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return clean | {"PATH": f"{folder}/bin:/usr/bin:/bin", "NUMBA_CACHE_DIR": str(cache)}


@pytest.mark.slow
def test_the_minute_runs_without_the_workflow(environment, tmp_path):
    code = f"from importlib.util import find_spec; print(*(n for n in {WORKFLOW} if find_spec(n)))"
    assert call("python", "-c", code, env=environment, cwd=tmp_path).split() == []
    check_minute(tmp_path, [block.run(tmp_path, environment) for block in minute()])


@pytest.mark.slow
def test_version_doctor_and_what_needs_an_extra(environment, tmp_path):
    assert call("agglearn", "--version", env=environment).split() == ["agglearn", __version__]
    report = call("agglearn", "doctor", "--offline", env=environment, cwd=tmp_path)
    assert "pip install 'agglearn[workflow]'" in report
    assert "pip install 'agglearn[privacy]'" not in report
    packages = ("maxent", "vocabulary", "collective", "proportions", "distribution", "labelsums", "observations")
    call("python", "-c", "\n".join(f"import agglearn.{p}" for p in packages), env=environment, cwd=tmp_path)
    code = "import agglearn.maxent.engines.jax_chains"
    failed = subprocess.run(["python", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert failed.stderr.splitlines()[-1].endswith(
        "jax is not installed; install it with `pip install 'agglearn[networks]'`"
    )
