"""Files out of packages of an index."""

import os
import tarfile
import zipfile

import pytest
from fetched_places import BAD, GOOD, sha, tarred

from agglearn.datasets import fetching

NOISY = 'import pathlib\npathlib.Path("ran").touch()\n'  # what must not happen


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A local index of one wheel with data; its digest."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "index"
    folder.mkdir()
    info = "carrier-1.0.dist-info"
    files = {
        "carrier/__init__.py": NOISY,
        "carrier/data/f": GOOD,
        "carrier/data/g": BAD,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\nRequires-Dist: nothing-like-this\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    wheel = folder / "carrier-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as pack:
        for name, data in files.items():
            pack.writestr(name, data)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return sha(wheel.read_bytes())


def package(digest: str, member="carrier/data/f", version="1.0") -> dict:
    return {"kind": "package", "package": f"carrier=={version}", "sha256": digest, "member": member}


def test_a_file_in_a_package(place, index):
    assert place.get(package(index)) == ("package", "package carrier==1.0", GOOD)
    assert place.cached() == ["f"]
    assert not list(place.base.rglob("ran"))


def test_a_package_is_downloaded_once_for_all_its_files(place, index, monkeypatch):
    times = []
    download = fetching.download_wheel
    monkeypatch.setattr(fetching, "download_wheel", lambda *a: times.append(a) or download(*a))
    files = {n: {"sha256": "unknown", "routes": [package(index, f"carrier/data/{n}")]} for n in "fg"}
    assert {n: f["bytes"] for n, f in place.fetch(files).items()} == {"f": len(GOOD), "g": len(BAD)}
    assert len(times) == 1
    assert place.cached() == ["f", "g"]


@pytest.mark.slow
def test_a_package_of_another_digest(place, host, index):
    host.serve("/f", GOOD)
    assert place.get(package(sha(BAD)), place.url()) == ("primary", f"{host.url}/f", GOOD)
    assert f"carrier==1.0: sha256 is {index[:12]}…, expected {sha(BAD)[:12]}…" in place.said.getvalue()


@pytest.mark.slow
def test_a_package_that_the_index_has_not(place, index):
    place.fail(r"package carrier==2\.0: No matching distribution", package(index, version="2.0"))


@pytest.mark.slow
def test_a_package_that_is_no_wheel(place, index, monkeypatch):
    folder = place.base / "sources"
    folder.mkdir()
    text = tarred("w:gz", (tarfile.TarInfo("carrier-3.0/setup.py"), NOISY.encode()))
    (folder / "carrier-3.0.tar.gz").write_bytes(text)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    place.fail("No matching distribution", package(sha(text), version="3.0"))
    assert not list(place.base.rglob("ran"))
