"""The set-up gives uv what pip is configured with, and pip takes over where uv fails."""

import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from samples import empty_environment

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "workflow/scripts/install.py"
HASH = "--hash=sha256:"

install = SimpleNamespace(**runpy.run_path(str(SCRIPT)))

CONFIGURED = r"""
global.cert='/etc/company.pem'
global.index-url='https://user:pass@index.example/simple'
global.extra-index-url='\nhttps://one.example/simple\nhttps://two.example/simple'
global.proxy='http://proxy.example:3128'
global.trusted-host='index.example'
download.timeout='1'
install.find-links='/srv/wheels https://wheels.example/'
install.timeout='99'
:env:.default-timeout='180'
:env:.index-url='https://from-environment.example/simple'
"""


def test_uv_gets_every_setting_of_pip_install():
    pip = install.settings(CONFIGURED)
    environ = install.uv_environment(pip, {"HOME": "/home/me"})
    assert environ == {
        "HOME": "/home/me",
        "UV_DEFAULT_INDEX": "https://from-environment.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_INSECURE_HOST": "index.example",
        "UV_HTTP_TIMEOUT": "180",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_COMPILE_BYTECODE": "1",
        "SSL_CERT_FILE": "/etc/company.pem",
        "HTTP_PROXY": "http://proxy.example:3128",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "ALL_PROXY": "http://proxy.example:3128",
    }
    assert install.uv_options(pip) == ["--find-links", "/srv/wheels", "--find-links", "https://wheels.example/"]


def test_settings_of_uv_itself_come_first():
    environ = install.uv_environment({"index-url": "https://pip.example"}, {"UV_DEFAULT_INDEX": "https://uv.example"})
    assert environ["UV_DEFAULT_INDEX"] == "https://uv.example"


@pytest.mark.parametrize(("value", "options"), [("true", ["--no-index"]), ("1", ["--no-index"]), ("false", [])])
def test_no_index(value, options):
    assert install.uv_options({"no-index": value}) == options


def wheel(folder: Path, name: str = "tiny-example") -> str:
    """Write a wheel of a tiny package; returns its sha256."""
    module = name.replace("-", "_")
    path = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        info = f"{module}-1.0.dist-info"
        archive.writestr(f"{module}.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    """An environment with nothing but pip, to be copied."""
    return empty_environment(tmp_path_factory.mktemp("empty") / "venv")


@pytest.fixture
def place(empty, tmp_path):
    """An empty environment, and pip configured to find one package in a folder and no other."""
    shutil.copytree(empty, tmp_path / "venv", symlinks=True)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "pip.conf").write_text(f"[install]\nno-index = true\nfind-links = {tmp_path}/wheels\n")
    digest = wheel(tmp_path / "wheels")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    environ = clean | {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "UV_CACHE_DIR": str(tmp_path / "cache")}

    def run(digest=digest, uv: str = "/nowhere"):
        (tmp_path / "lock").write_text(f"tiny-example==1.0 {HASH}{digest}\n")
        call = [tmp_path / "venv/bin/python", SCRIPT, "--require-hashes", "-r", tmp_path / "lock"]
        finished = subprocess.run(
            call, env=environ | {"PATH": f"{uv}:/usr/bin:/bin"}, capture_output=True, text=True, cwd=tmp_path
        )
        return finished.returncode, finished.stderr

    run.python, run.environ = tmp_path / "venv/bin/python", environ
    return run


def installer(python) -> str:
    """The program that installed the tiny package, by its own record."""
    code = "from importlib.metadata import distribution as d; print(d('tiny-example').read_text('INSTALLER'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_uv_installs_from_the_place_that_pip_knows(place):
    status, errors = place(uv=str(Path(sys.executable).parent))
    assert status == 0, errors
    assert installer(place.python) == "uv"


@pytest.mark.slow
def test_pip_takes_over_where_uv_fails(place, tmp_path):
    (tmp_path / "uv").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "uv").chmod(0o755)
    status, errors = place(uv=str(tmp_path))
    assert status == 0
    assert "pip tries it now" in errors
    assert installer(place.python) == "pip"


@pytest.mark.slow
def test_pip_installs_where_there_is_no_uv(place):
    status, errors = place()
    assert status == 0, errors
    assert installer(place.python) == "pip"


@pytest.mark.slow
def test_a_wrong_hash_installs_nothing(place):
    status, errors = place(digest="0" * 64, uv=str(Path(sys.executable).parent))
    assert status != 0
    assert "hash" in errors.lower()


@pytest.mark.slow
def test_pip_takes_the_lock_as_constraints_of_packages_without_hashes(place, tmp_path):
    wheel(tmp_path / "wheels", "peer")
    (tmp_path / "lock").write_text(f"tiny-example==1.0 \\\n    {HASH}{'0' * 64} \\\n    {HASH}{'1' * 64}\n")
    call = [place.python, SCRIPT, "-c", tmp_path / "lock", "peer", "tiny-example"]
    environ = place.environ | {"PATH": "/nowhere:/usr/bin:/bin"}
    finished = subprocess.run(call, env=environ, capture_output=True, text=True, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert installer(place.python) == "pip"
    (tmp_path / "lock").write_text(f"tiny-example==2.0 {HASH}{'0' * 64}\n")
    finished = subprocess.run(call, env=environ, capture_output=True, text=True, cwd=tmp_path)
    assert finished.returncode != 0


# -- the environment ---------------------------------------------------------------------------------------------------

BACKEND = """
import zipfile
from pathlib import Path

def build_editable(folder, config_settings=None, metadata_directory=None):
    name, info = "agglearn-0-py3-none-any.whl", "agglearn-0.dist-info"
    with zipfile.ZipFile(Path(folder) / name, "w") as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: agglearn\\nVersion: 0\\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/RECORD", "")
    return name
"""


@pytest.mark.slow
def test_a_set_up_installs_what_the_lock_names(empty, tmp_path):
    (tmp_path / "wheels").mkdir()
    digest = {name: wheel(tmp_path / "wheels", name) for name in ("first", "second", "old")}
    shutil.copytree(ROOT / "workflow/scripts", tmp_path / "workflow/scripts")
    (tmp_path / "backend.py").write_text(BACKEND)
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (tmp_path / "pip.conf").write_text(f"[install]\nno-index = true\nfind-links = {tmp_path}/wheels\n")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    environ = clean | {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "PATH": "/nowhere:/usr/bin:/bin"}

    def call(*command) -> str:
        process = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=tmp_path)
        assert process.returncode == 0, process.stderr
        return process.stdout

    def lock(*names) -> str:
        return "".join(f"{n}==1.0 {HASH}{digest[n]}\n" for n in names)

    def installed() -> set[str]:
        code = "from importlib.metadata import distributions as d; print(*(x.name for x in d()))"
        return set(call("venv/bin/python", "-c", code).split()) - {"pip", "setuptools"}

    shutil.copytree(empty, tmp_path / "venv", symlinks=True)
    call("venv/bin/python", "-m", "pip", "install", "first", "old")  # of an earlier lock
    (tmp_path / "requirements.lock").write_text(lock("first", "second"))
    assert "setting up venv" in call("sh", "workflow/scripts/setup.sh", sys.executable, "venv")
    assert installed() == {"agglearn", "first", "second"}
