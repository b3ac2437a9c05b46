"""The wheel by itself, in an empty environment: it installs, imports, and runs the README's minute without the workflow."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from project import share_kernels
from readme_blocks import ROOT, Block, check_minute, minute
from samples import empty_environment

from agglearn import __version__
from agglearn_workflow.commands.doctor import ask_index

STATED = """agglearn() { printf '%q ' "$@"; echo; }"""  # in the shell: a call is printed, not carried out
WORKFLOW = ("snakemake", "mlflow", "matplotlib", "jinja2", "pydantic", "statsmodels")
INSTALL = ROOT / "workflow/scripts/install.py"


def call(*arguments, **more) -> str:
    finished = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, **more)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    """An environment with nothing but pip, to be copied."""
    return empty_environment(tmp_path_factory.mktemp("empty") / "venv")


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
    lend_compiled(package.parent)
    # For the same code and the same compilers; with others the environment's own folder has another name.
    share_kernels(package, cache)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return clean | {"PATH": f"{venv}/bin:/usr/bin:/bin", "NUMBA_CACHE_DIR": str(cache)}


def lend_compiled(packages: Path) -> None:
    """Copy what this environment has compiled of the same files. Python itself compiles a file of another time or size."""
    ours = Path(sysconfig.get_path("purelib"))
    for path in packages.rglob("*.py"):
        twin = ours / path.relative_to(packages)
        compiled = Path(cache_from_source(twin))
        if compiled.is_file() and twin.is_file() and twin.stat().st_mtime_ns == path.stat().st_mtime_ns:
            copy = Path(cache_from_source(path))
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(compiled, copy)


@pytest.fixture(scope="module")
def newest(wheel, empty, tmp_path_factory) -> dict[str, str]:
    return installed("highest", wheel, empty, tmp_path_factory.mktemp("newest"))


PACKAGES = ("maxent", "vocabulary", "collective", "proportions", "distribution", "labelsums", "observations")
IMPORTS = "\n".join(f"import agglearn.{name}" for name in PACKAGES)


def learn(folder: Path, environ: dict[str, str]) -> None:
    """Carry out the minute in a folder. One process runs its Python, each `agglearn` of its shell, and the imports of all packages."""
    folder.mkdir()
    python, *shells = minute()
    printed = "".join(Block("sh", f"{STATED}\n{shell.text}").run(folder, environ) for shell in shells)
    calls = [shlex.split(line) for line in printed.splitlines()]
    code = f"from agglearn.cli import main\nfor call in {calls}:\n    assert main(call) == 0, call"
    printed = Block("python", f"exec({python.text!r}, {{}})\n{code}\n{IMPORTS}").run(folder, environ)
    check_minute(folder, printed.splitlines())


@pytest.mark.slow
def test_the_minute_runs_without_the_workflow(newest, tmp_path):
    code = f"from importlib.util import find_spec; print(*(n for n in {WORKFLOW} if find_spec(n)))"
    assert call("python", "-c", code, env=newest, cwd=tmp_path).split() == []
    assert call("agglearn", "--version", env=newest).split() == ["agglearn", __version__]
    learn(tmp_path / "here", newest)


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the lowest versions have wheels for Python 3.11 only")
def test_the_oldest_versions_learn_from_tables_and_release_them(wheel, empty, tmp_path):
    learn(tmp_path / "here", installed("lowest-direct", wheel, empty, tmp_path / "oldest"))
