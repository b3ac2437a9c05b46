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
from samples import ROOT, empty_environment

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
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://proxy.example:3128")
    assert environ == proxies | {
        "HOME": "/home/me",
        "UV_DEFAULT_INDEX": "https://from-environment.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_INSECURE_HOST": "index.example",
        "UV_HTTP_TIMEOUT": "180",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_COMPILE_BYTECODE": "1",
        "SSL_CERT_FILE": "/etc/company.pem",
    }
    assert install.uv_options(pip) == ["--find-links", "/srv/wheels", "--find-links", "https://wheels.example/"]


def test_settings_of_uv_itself_come_first():
    own = {"UV_DEFAULT_INDEX": "https://uv.example"}
    assert install.uv_environment({"index-url": "https://pip.example"}, own).items() >= own.items()


@pytest.mark.parametrize(("value", "options"), [("true", ["--no-index"]), ("1", ["--no-index"]), ("false", [])])
def test_no_index(value, options):
    assert install.uv_options({"no-index": value}) == options


def wheel(folder: Path, name: str = "tiny-example") -> str:
    """Write a wheel of a tiny package; returns its sha256."""
    module = name.replace("-", "_")
    path, info = folder / f"{module}-1.0-py3-none-any.whl", f"{module}-1.0.dist-info"
    files = {
        f"{module}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    """An environment with nothing but pip, to be copied."""
    return empty_environment(tmp_path_factory.mktemp("empty") / "venv")


class Place:
    """An empty environment, and pip configured to find packages in a folder and no other."""

    def __init__(self, empty: Path, folder: Path):
        shutil.copytree(empty, folder / "venv", symlinks=True)
        (folder / "wheels").mkdir()
        (folder / "pip.conf").write_text(f"[install]\nno-index = true\nfind-links = {folder}/wheels\n")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
        self.environ = clean | {"PIP_CONFIG_FILE": f"{folder}/pip.conf", "UV_CACHE_DIR": f"{folder}/cache"}
        self.folder, self.python = folder, folder / "venv/bin/python"

    def run(self, *command, uv: str = "/nowhere") -> subprocess.CompletedProcess:
        environ = self.environ | {"PATH": f"{uv}:/usr/bin:/bin"}
        return subprocess.run(command, env=environ, capture_output=True, text=True, cwd=self.folder)

    def install(self, digest: str, uv: str = "/nowhere") -> tuple[int, str]:
        """Exit status and errors of the set-up with one wheel of this digest."""
        (self.folder / "lock").write_text(f"tiny-example==1.0 {HASH}{digest}\n")
        finished = self.run(self.python, SCRIPT, "--require-hashes", "-r", self.folder / "lock", uv=uv)
        return finished.returncode, finished.stderr

    def installer(self) -> str:
        """The program that installed the tiny package, by its own record."""
        code = "from importlib.metadata import distribution as d; print(d('tiny-example').read_text('INSTALLER'))"
        return self.run(self.python, "-c", code).stdout.strip()


@pytest.fixture
def place(empty, tmp_path) -> Place:
    return Place(empty, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uv", "by", "said"), [("ours", "uv", ""), ("broken", "pip", "pip tries it now"), ("/nowhere", "pip", "")]
)
def test_uv_installs_from_the_place_that_pip_knows_or_pip_does(place, tmp_path, uv, by, said):
    (tmp_path / "uv").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "uv").chmod(0o755)
    found = {"ours": str(Path(sys.executable).parent), "broken": str(tmp_path)}.get(uv, uv)
    status, errors = place.install(wheel(tmp_path / "wheels"), found)
    assert status == 0, errors
    assert said in errors
    assert place.installer() == by


@pytest.mark.slow
def test_a_wrong_hash_installs_nothing(place, tmp_path):
    wheel(tmp_path / "wheels")
    status, errors = place.install("0" * 64, str(Path(sys.executable).parent))
    assert status != 0
    assert "hash" in errors.lower()
    assert place.installer() == ""


@pytest.mark.slow
def test_pip_takes_the_lock_as_constraints_of_packages_without_hashes(place, tmp_path):
    for name in ("peer", "tiny-example"):
        wheel(tmp_path / "wheels", name)
    call = [place.python, SCRIPT, "-c", tmp_path / "lock", "peer", "tiny-example"]
    (tmp_path / "lock").write_text(f"tiny-example==1.0 \\\n    {HASH}{'0' * 64} \\\n    {HASH}{'1' * 64}\n")
    finished = place.run(*call)
    assert finished.returncode == 0, finished.stderr
    assert place.installer() == "pip"
    (tmp_path / "lock").write_text(f"tiny-example==2.0 {HASH}{'0' * 64}\n")
    assert place.run(*call).returncode != 0


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
def test_a_set_up_installs_what_the_lock_names(place, tmp_path):
    digest = {name: wheel(tmp_path / "wheels", name) for name in ("first", "second", "old")}
    shutil.copytree(ROOT / "workflow/scripts", tmp_path / "workflow/scripts")
    (tmp_path / "backend.py").write_text(BACKEND)
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (tmp_path / "pyproject.toml").write_text(system)
    lock = "".join(f"{name}==1.0 {HASH}{digest[name]}\n" for name in ("first", "second"))
    (tmp_path / "requirements.lock").write_text(lock)

    def call(*command) -> str:
        process = place.run(*command)
        assert process.returncode == 0, process.stderr
        return process.stdout

    call(place.python, "-m", "pip", "install", "first", "old")  # of an earlier lock
    assert "setting up venv" in call("sh", "workflow/scripts/setup.sh", sys.executable, "venv")
    names = call(place.python, "-c", "from importlib.metadata import distributions as d; print(*(x.name for x in d()))")
    assert set(names.split()) - {"pip", "setuptools"} == {"agglearn", "first", "second"}
