"""The wheel by itself, in an empty environment: it installs, imports, and runs the README's minute without the workflow."""

import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from project import share_kernels
from readme_blocks import ROOT, Block, check_minute, minute

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


def installed(resolution: str, wheel: Path, empty: Path, folder: Path) -> dict[str, str]:
    """Variables of an environment in a folder that holds the wheel, the extra `privacy` and their dependencies, as new or as old as allowed."""
    if ask_index(10) != "answers":
        pytest.skip("the package index does not answer")
    venv, cache = folder / "venv", folder / "numba"
    shutil.copytree(empty, venv, symlinks=True)
    install = (venv / "bin/python", INSTALL, "--resolution", resolution, f"{wheel}[privacy]")
    ours = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # uv of this environment: no other has to be installed
    call(*install, env=os.environ | {"UV_COMPILE_BYTECODE": "0", "PATH": ours})
    [package] = venv.glob("lib/python*/site-packages/agglearn")
    # For the same code and the same compilers; with others the environment's own folder has another name.
    share_kernels(package, cache)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return clean | {"PATH": f"{venv}/bin:/usr/bin:/bin", "NUMBA_CACHE_DIR": str(cache)}


@pytest.fixture(scope="module")
def newest(wheel, empty, tmp_path_factory) -> dict[str, str]:
    return installed("highest", wheel, empty, tmp_path_factory.mktemp("newest"))


IMPORTS = "\n".join(
    f"import agglearn.{p}"
    for p in ("maxent", "vocabulary", "collective", "proportions", "distribution", "labelsums", "observations")
)


@pytest.mark.slow
def test_the_minute_runs_without_the_workflow(newest, tmp_path):
    code = f"from importlib.util import find_spec; print(*(n for n in {WORKFLOW} if find_spec(n)))"
    assert call("python", "-c", code, env=newest, cwd=tmp_path).split() == []
    check_minute(tmp_path, [block.run(tmp_path, newest) for block in minute()])


@pytest.mark.slow
def test_version_doctor_and_what_needs_an_extra(newest, tmp_path):
    assert call("agglearn", "--version", env=newest).split() == ["agglearn", __version__]
    report = call("agglearn", "doctor", "--offline", env=newest, cwd=tmp_path)
    assert "pip install 'agglearn[workflow]'" in report
    assert "pip install 'agglearn[privacy]'" not in report
    code = f"{IMPORTS}\nimport agglearn.maxent.engines.jax_chains"
    failed = subprocess.run(["python", "-c", code], env=newest, cwd=tmp_path, capture_output=True, text=True)
    assert failed.stderr.splitlines()[-1].endswith(
        "jax is not installed; install it with `pip install 'agglearn[networks]'`"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the lowest versions have wheels for Python 3.11 only")
def test_the_oldest_versions_learn_from_tables_and_release_them(wheel, empty, tmp_path):
    """The Python of the minute, every package, and each command that learns, predicts or calls OpenDP, in two processes."""
    oldest = installed("lowest-direct", wheel, empty, tmp_path / "oldest")
    python, commands, private = minute()
    folder = tmp_path / "here"
    folder.mkdir()
    printed = Block("python", f"{IMPORTS}\n{python.text}").run(folder, oldest)
    lines = [line for line in (commands.text + private.text).splitlines() if line.startswith("agglearn")]
    calls = [shlex.split(line, comments=True)[1:] for line in lines]
    wanted = {"aggregate": 2, "fit": 2, "predict": 1, "compress": 1, "private": 1}
    assert Counter(call[0] for call in calls) == wanted
    data = commands.text.partition("END'\n")[2].partition("END\n")[0]
    schema = private.text.partition("END'\n")[2].partition("END\n")[0]
    code = (
        f"{data}\nfrom pathlib import Path\nfrom agglearn.cli import main\nPath('schema.yaml').write_text({schema!r})\n"
        f"for call in {calls}:\n    assert main(call) == 0, call"
    )
    Block("python", code).run(folder, oldest)
    check_minute(folder, [printed])
