"""Fetching by every kind of route, with a server of the test's own."""

import hashlib
import io
import os
import stat
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hosts import free_port, running

from agglearn import local_files
from agglearn.datasets import downloading, packages, unpacking
from agglearn.datasets.content import content_digest
from agglearn.datasets.fetching import fetch
from agglearn.errors import DataError, NotAvailable
from agglearn.inspection import modules
from agglearn.storage import read_json

GOOD = b"0123456789" * 5000
BAD = b"something else"
PAGE = b"\n<!DOCTYPE html>\n<html><body>Log in to the network</body></html>"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


SHA = sha(GOOD)


def zipped(**members: bytes) -> bytes:
    """A zip; `__` in a name stands for a slash, `_D_` for a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_D_", "."), data)
    return out.getvalue()


def tarred(mode: str, *members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def host(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(downloading, "WAITS", (0.01, 0.02))
    monkeypatch.setattr(downloading, "LONGEST_WAIT", 0.03)
    with running() as host:
        yield host


class Place:
    """A project folder with a mirror in it, and one data set of one file, `f` where a test names no other."""

    def __init__(self, base, host):
        self.base, self.host = base, host
        self.cache = base / "cache/d"
        self.mirror = base / "mirror/d/f"
        self.mirror.parent.mkdir(parents=True)
        self.out = base / "out"
        self.out.mkdir()
        self.said = io.StringIO()
        self.progress = []

    def url(self, path="/f", kind="primary", **more) -> dict:
        return {"kind": kind, "url": f"{self.host.url}{path}"} | more

    def fetch(self, files: dict, mirrors=("mirror",)) -> dict:
        config = {"mirrors": list(mirrors), "cache": "cache"}
        entry = {"files": files}
        fetch("d", entry, config, self.base, self.out, self.said, lambda *said: self.progress.append(said))
        return read_json(self.out / "files.json")

    def get(self, *routes: dict, sha256=SHA, mirrors=("mirror",), name="f", **spec):
        """(kind, origin, content) of one file that comes from the mirrors, or by these routes."""
        spec = {"sha256": sha256, "routes": [{"kind": "mirror"}, *routes]} | spec
        found = self.fetch({name: spec}, mirrors)[name]
        with open(found["path"], "rb") as handle:
            data = handle.read()
        assert found["bytes"] == len(data)
        assert found["sha256"] == sha(data)
        return found["kind"], found["origin"], data

    def cached(self) -> list[str]:
        """Files of the cache that are no notes, hidden folders included."""
        if not self.cache.exists():
            return []
        found = [p.relative_to(self.cache).as_posix() for p in self.cache.rglob("*") if p.is_file()]
        return sorted(f for f in found if not (f.startswith(".") and f.count("/") == 0))


@pytest.fixture
def place(tmp_path, host):
    return Place(tmp_path, host)


# -- order and digests --------------------------------------------------------------------------------------------------


def test_a_mirror_comes_before_upstream(place, host):
    place.mirror.write_bytes(GOOD)
    host.serve("/f", GOOD)
    assert place.get(place.url()) == ("mirror", "mirror/d/f", GOOD)
    assert host.asked == []


def test_routes_are_tried_in_the_order_of_the_entry(place, host):
    host.serve("/g", GOOD)
    host.serve("/f", GOOD)
    routes = [place.url("/nothing"), place.url("/g", "archive"), place.url("/f")]
    assert place.get(*routes) == ("archive", f"{host.url}/g", GOOD)
    assert [path for path, _ in host.asked] == ["/nothing", "/g"]
    place.mirror.write_bytes(GOOD)
    found = place.fetch({"h": {"sha256": SHA, "routes": [place.url("/f"), {"kind": "mirror"}]}})
    assert found["h"]["kind"] == "primary"


def test_upstream_then_the_cache(place, host):
    host.serve("/f", GOOD)
    assert place.get(place.url()) == ("primary", f"{host.url}/f", GOOD)
    assert place.get(place.url()) == ("primary", f"{host.url}/f", GOOD)
    assert len(host.asked) == 1
    assert place.cached() == ["f"]


def test_two_that_fetch_at_once_download_once(place, host):
    host.serve("/f", GOOD, pause=0.01)
    files = {"f": {"sha256": SHA, "routes": [place.url()]}}

    def get(name: str) -> str:
        out, terminal = place.base / name, io.StringIO()
        out.mkdir()
        fetch("d", {"files": files}, {"mirrors": [], "cache": "cache"}, place.base, out, terminal)
        assert (place.cache / "f").read_bytes() == GOOD
        return terminal.getvalue()

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(get, ("one", "two")))
    assert len(host.asked) == 1
    assert sum("fetched by another process" in text for text in said) == 1


def test_a_local_path_and_a_mirror_by_url(place, host):
    (place.base / "mine").write_bytes(GOOD)
    assert place.get(path="mine") == ("path", "mine", GOOD)
    host.serve("/m/d/f", GOOD)
    assert place.get(mirrors=[f"{host.url}/m/"]) == ("mirror", f"{host.url}/m/d/f", GOOD)


def test_a_local_file_of_no_stated_digest_may_change(place):
    for data in (GOOD, BAD):
        (place.base / "mine").write_bytes(data)
        assert place.get(path="mine", sha256="unknown")[2] == data


def test_a_wrong_mirror_is_passed_over_and_left_alone(place, host):
    place.mirror.write_bytes(BAD)
    host.serve("/f", GOOD)
    assert place.get(place.url()) == ("primary", f"{host.url}/f", GOOD)
    assert place.mirror.read_bytes() == BAD
    assert "mirror/d/f: sha256 is" in place.said.getvalue()


def test_after_a_wrong_digest_the_next_route_is_tried(place, host):
    host.serve("/f", BAD)
    host.serve("/g", GOOD)
    assert place.get(place.url(), place.url("/g")) == ("primary", f"{host.url}/g", GOOD)
    assert f"{host.url}/f: sha256 is {sha(BAD)[:12]}…, expected {SHA[:12]}…" in place.said.getvalue()
    assert place.cached() == ["f"]


def test_wrong_everywhere(place, host):
    place.mirror.write_bytes(BAD)
    host.serve("/f", BAD)
    with pytest.raises(DataError, match=r"sha256 is .* expected .*config/datasets/d\.yaml"):
        place.get(place.url())
    assert place.mirror.read_bytes() == BAD
    assert os.listdir(place.mirror.parent) == ["f"]
    assert place.cached() == []
    assert os.listdir(place.out) == []


def test_a_cache_that_went_bad_is_moved_aside(place, host):
    host.serve("/f", GOOD)
    place.get(place.url())
    (place.cache / "f").write_bytes(BAD)
    assert place.get(place.url()) == ("primary", f"{host.url}/f", GOOD)
    assert (place.cache / "f.wrong").read_bytes() == BAD


def test_an_unknown_digest_is_remembered(place, host):
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD
    assert place.get(place.url(), sha256="unknown")[2] == GOOD
    assert len(host.asked) == 1
    (place.cache / "f").write_bytes(BAD)
    host.serve("/f", BAD)
    with pytest.raises(DataError, match=r"as it first came \(delete .*\.f\.json to take the new one\)"):
        place.get(place.url(), sha256="unknown")
    (place.cache / ".f.json").unlink()
    assert place.get(place.url(), sha256="unknown")[2] == BAD


def test_a_changed_route_does_not_serve_the_old_bytes(place, host):
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD
    host.serve("/new", BAD)
    assert place.get(place.url("/new"), sha256="unknown")[2] == BAD
    assert place.get(place.url("/other"), place.url("/new"), sha256="unknown")[2] == BAD  # still a route of the entry
    with pytest.raises(NotAvailable):
        place.get(place.url("/gone"), sha256="unknown")


def test_a_changed_member_does_not_serve_the_old_bytes(place, host):
    host.serve("/a", zipped(x=GOOD, y=BAD))
    assert place.get(place.url("/a", member="x"), sha256="unknown")[2] == GOOD
    assert place.get(place.url("/a", member="y"), sha256="unknown")[2] == BAD


def test_a_file_in_the_cache_of_which_nothing_is_known(place, host):
    place.cache.mkdir(parents=True)
    (place.cache / "f").write_bytes(BAD)
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD


def test_an_empty_file(place, host):
    place.mirror.write_bytes(b"")
    with pytest.raises(DataError, match="mirror/d/f: the file is empty"):
        place.get(sha256="unknown")
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD


def test_nowhere(place, host):
    with pytest.raises(NotAvailable) as caught:
        place.get(place.url(), mirrors=["mirror", f"{host.url}/m"])
    said = str(caught.value)
    assert "f cannot be had" in said
    assert "mirror/d/f: no such file" in said
    assert f"{host.url}/m/d/f: 404 Not Found" in said
    assert f"{host.url}/f: 404 Not Found" in said
    with pytest.raises(NotAvailable, match="names no place"):
        place.get(mirrors=[])


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_a_name_that_leads_out_of_the_cache(place, host, name):
    host.serve("/f", GOOD)
    name = f"{place.base}{name}" if name.startswith("/") else name
    with pytest.raises(DataError, match="leads out of the cache"):
        place.get(place.url(), name=name)
    assert not list(place.base.rglob("evil"))


# -- hosts that are dead, slow, busy, refuse, or answer with something else -------------------------------------------------


def test_a_host_that_is_down(place):
    with pytest.raises(NotAvailable, match="refused"):
        place.get({"kind": "primary", "url": f"http://127.0.0.1:{free_port()}/f"})


def test_a_slow_host_is_asked_three_times(place, host, monkeypatch):
    monkeypatch.setattr(downloading, "TIMEOUT", 0.2)
    host.serve("/f", GOOD, delays=2)
    assert place.get(place.url())[2] == GOOD
    assert len(host.asked) == 3


def test_a_host_that_does_not_answer_is_left_alone(place, host, monkeypatch):
    monkeypatch.setattr(downloading, "TIMEOUT", 0.1)
    host.serve("/f", GOOD, delays=99)
    host.serve("/g", GOOD)
    with pytest.raises(NotAvailable, match=r"/f: timed out.*/g: the host gave no answer before"):
        place.get(place.url(), place.url("/g"))
    assert len(host.asked) == 3


def test_a_trickle_counts_as_silence(place, host, monkeypatch):
    monkeypatch.setattr(downloading, "WINDOW", 0.05)
    host.serve("/f", GOOD, pause=0.02)
    with pytest.raises(NotAvailable, match="fewer than 60,000 bytes"):
        place.get(place.url())
    assert len(host.asked) == 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_host_is_asked_again(place, host, status):
    host.serve("/f", GOOD, first=[(status, {}), (status, {"Retry-After": "0"})])
    assert place.get(place.url())[2] == GOOD
    assert len(host.asked) == 3


def test_a_host_that_stays_busy(place, host):
    host.serve("/f", GOOD, first=[(503, {})] * 3)
    with pytest.raises(NotAvailable, match="503"):
        place.get(place.url())
    assert len(host.asked) == 3


def test_the_wait_is_the_hosts_up_to_a_bound(place, host, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(downloading, "WAITS", (2, 8))
    monkeypatch.setattr(downloading, "LONGEST_WAIT", 60)
    host.serve("/f", GOOD, first=[(429, {"Retry-After": "30"}), (429, {"Retry-After": "86400"})])
    assert place.get(place.url())[2] == GOOD
    assert slept == [30, 60]
    slept.clear()
    date = formatdate(time.time() + 20, usegmt=True)
    host.serve("/g", GOOD, first=[(429, {"Retry-After": date}), (429, {"Retry-After": "soon"})])
    assert place.get(place.url("/g"), name="g")[2] == GOOD
    assert slept == [pytest.approx(20, abs=2), 8]


def test_a_missing_file_is_asked_for_once(place, host):
    with pytest.raises(NotAvailable):
        place.get(place.url())
    assert len(host.asked) == 1


def test_a_host_that_refuses_scripts(place, host):
    host.serve("/f", GOOD, agents="Mozilla/")
    assert place.get(place.url())[2] == GOOD
    assert len(host.asked) == 2
    host.serve("/g", GOOD, agents="nobody")
    with pytest.raises(NotAvailable, match="403 Forbidden"):
        place.get(place.url("/g"), name="g")


@pytest.mark.parametrize(
    ("data", "how", "reason"),
    [
        (PAGE, {}, "web page"),
        (b"Sign in", {"kind": "text/html; charset=utf-8"}, "web page"),
        (b"", {}, "empty"),
        (GOOD, {"length": "missing", "cut": 700}, "length"),
        (GOOD, {"length": "chunked", "cut": 700}, "IncompleteRead"),
        (GOOD, {"cut": 700, "tag": None}, "connection ended after 700 of 50,000 bytes"),
    ],
)
def test_what_never_becomes_a_reference(place, host, data, how, reason):
    host.serve("/f", data, **how)
    with pytest.raises(NotAvailable, match=reason):
        place.get(place.url(), sha256="unknown")
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD


def test_a_page_in_place_of_data_is_no_wrong_digest(place, host):
    """Networks that ask for a login answer every request with a page."""
    host.serve("/f", PAGE)
    with pytest.raises(NotAvailable, match="web page"):
        place.get(place.url())


def test_a_body_in_chunks(place, host):
    host.serve("/f", GOOD, length="chunked")
    assert place.get(place.url(), sha256="unknown")[2] == GOOD


def test_a_disk_that_is_full(place, host, monkeypatch):
    monkeypatch.setattr(downloading.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    host.serve("/f", GOOD)
    with pytest.raises(NotAvailable, match="MB on the disk"):
        place.get(place.url())


def test_progress_ends_at_the_whole(place, host):
    host.serve("/f", GOOD)
    place.get(place.url())
    assert place.progress[-1] == ("f", len(GOOD), len(GOOD))


# -- continued downloads --------------------------------------------------------------------------------------------------


def cut_short(place, host, **how):
    """A first visit that ends after 20,000 bytes in each of its tries."""
    host.serve("/f", GOOD, cut=20_000, ranges=False, **how)
    with pytest.raises(NotAvailable, match=r"connection ended after 20,000 of 50,000 bytes"):
        place.get(place.url())
    host.asked.clear()


def test_a_connection_that_ends_early_is_continued_at_once(place, host):
    host.serve("/f", GOOD, cut=20_000)
    assert place.get(place.url())[2] == GOOD
    assert host.requests("/f") == [None, "bytes=20000-", "bytes=40000-"]


@pytest.mark.parametrize("how", [{}, {"tag": None, "modified": formatdate(0, usegmt=True)}])
def test_a_download_is_continued_by_the_next_run(place, host, how):
    cut_short(place, host, **how)
    host.serve("/f", GOOD, **how)
    assert place.get(place.url())[2] == GOOD
    assert host.requests("/f") == ["bytes=20000-"]
    assert place.cached() == ["f"]


@pytest.mark.parametrize("how", [{"tag": None}, {"tag": 'W/"1"'}])
def test_nothing_is_continued_without_proof_that_it_is_the_same(place, host, how):
    cut_short(place, host, **how)
    host.serve("/f", GOOD, **how)
    assert place.get(place.url())[2] == GOOD
    assert host.requests("/f") == [None]


@pytest.mark.parametrize("careless", [False, True])
def test_a_file_that_changed_starts_anew(place, host, careless):
    """Even where the host sends the rest of the new file."""
    cut_short(place, host)
    new = b"abcdefghij" * 5000
    host.serve("/f", new, careless=careless)
    assert place.get(place.url(), sha256="unknown")[2] == new


def test_a_file_that_became_shorter_starts_anew(place, host):
    cut_short(place, host)
    host.serve("/f", GOOD[:10_000], careless=True)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD[:10_000]


def test_a_host_that_does_not_continue(place, host):
    cut_short(place, host)
    host.serve("/f", GOOD, ranges=False)
    assert place.get(place.url())[2] == GOOD


def test_another_url_does_not_continue_the_download(place, host):
    cut_short(place, host)
    host.serve("/g", GOOD)
    assert place.get(place.url("/g"))[2] == GOOD
    assert host.requests("/g") == [None]


# -- archives ---------------------------------------------------------------------------------------------------------------


def test_a_member_of_an_archive(place, host):
    host.serve("/a.zip", zipped(deep__f=GOOD, other=BAD))
    assert place.get(place.url("/a.zip", member="deep/f")) == ("primary", f"{host.url}/a.zip", GOOD)
    assert place.cached() == ["f"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_member_of_a_tar_archive(place, host, mode):
    host.serve("/a", tarred(mode, (tarfile.TarInfo("./x"), BAD), (tarfile.TarInfo("./deep/f"), GOOD)))
    assert place.get(place.url("/a", member="deep/f"))[2] == GOOD


def test_an_archive_in_an_archive(place, host):
    inner = tarred("w:gz", (tarfile.TarInfo("deep/f"), GOOD))
    host.serve("/a.zip", zipped(inner_D_tar=inner, other=BAD))
    assert place.get(place.url("/a.zip", member=["inner.tar", "deep/f"]))[2] == GOOD
    assert place.cached() == ["f"]


def test_an_archive_is_downloaded_once_for_all_its_files(place, host):
    host.serve("/a.zip", zipped(f=GOOD, g=BAD))
    files = {n: {"sha256": "unknown", "routes": [place.url("/a.zip", member=n)]} for n in "fg"}
    assert set(place.fetch(files)) == {"f", "g"}
    assert len(host.asked) == 1
    assert place.cached() == ["f", "g"]


def test_the_digest_of_an_archive(place, host):
    archive = zipped(f=GOOD)
    host.serve("/a.zip", archive)
    with pytest.raises(DataError, match=rf"a\.zip: sha256 is {sha(archive)[:12]}"):
        place.get(place.url("/a.zip", member="f", sha256=sha(BAD)))
    assert place.get(place.url("/a.zip", member="f", sha256=sha(archive)))[2] == GOOD


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


def zip_link() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        member = zipfile.ZipInfo("f")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    return out.getvalue()


def encrypted() -> bytes:
    """A zip that states that its member needs a password."""
    data = bytearray(zipped(f=b"text"))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    return bytes(data)


REFUSED = {
    "no archive": (BAD, "not a zip or tar archive"),
    "cut zip": (zipped(f=GOOD)[:-30], "not a zip or tar archive"),
    "no such member": (zipped(other=BAD), "has no member 'f'"),
    "no such member of a tar": (tarred("w", (tarfile.TarInfo("g"), BAD)), "has no member 'f'"),
    "folder of a tar": (tarred("w", (link("f", tarfile.DIRTYPE), b"")), "'f' is no file"),
    "symbolic link": (tarred("w", (link("f", tarfile.SYMTYPE), b"")), "'f' is no file"),
    "hard link": (tarred("w", (link("f", tarfile.LNKTYPE), b"")), "'f' is no file"),
    "device": (tarred("w", (link("f", tarfile.CHRTYPE), b"")), "'f' is no file"),
    "link of a zip": (zip_link(), "'f' is no file"),
    "password": (encrypted(), "password|encrypted"),
    "cut tar": (tarred("w:gz", (tarfile.TarInfo("f"), os.urandom(90_000)))[:50_000], "damaged"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_archives_that_are_refused(place, host, name):
    data, reason = REFUSED[name]
    host.serve("/a", data)
    with pytest.raises(NotAvailable, match=reason):
        place.get(place.url("/a", member="f"), sha256="unknown")
    assert place.cached() == []
    host.serve("/a", zipped(f=GOOD))
    assert place.get(place.url("/a", member="f"), sha256="unknown")[2] == GOOD


def test_a_damaged_zip(place, host):
    data = bytearray(zipped(f=GOOD))
    data[60] ^= 255
    host.serve("/a", bytes(data))
    with pytest.raises(NotAvailable, match="damaged"):
        place.get(place.url("/a", member="f"))


@pytest.mark.parametrize("mode", ["zip", "tar"])
def test_an_archive_of_zeros_is_bounded(place, host, monkeypatch, mode):
    monkeypatch.setattr(unpacking, "SMALL", 1 << 20)
    zeros = bytes(1 << 25)
    host.serve("/a", zipped(f=zeros) if mode == "zip" else tarred("w:gz", (tarfile.TarInfo("f"), zeros)))
    with pytest.raises(NotAvailable, match="too many for an archive of its size"):
        place.get(place.url("/a", member="f"), sha256="unknown")
    assert place.cached() == []
    assert place.get(place.url("/a", member="f"), sha256="unknown", bytes=len(zeros))[2] == zeros


@pytest.mark.parametrize("evil", ["../evil", "/evil"])
def test_names_in_an_archive_are_never_written_to(place, host, evil):
    host.serve("/a", tarred("w", (tarfile.TarInfo(f"{place.base}{evil}" if evil[0] == "/" else evil), GOOD)))
    member = f"{place.base}{evil}" if evil[0] == "/" else evil
    assert place.get(place.url("/a", member=member))[2] == GOOD
    assert not list(place.base.parent.rglob("evil"))


# -- packages ---------------------------------------------------------------------------------------------------------------

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
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
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
    download = packages.download
    monkeypatch.setattr(packages, "download", lambda *a: times.append(a) or download(*a))
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
    with pytest.raises(NotAvailable, match=r"package carrier==2\.0: No matching distribution"):
        place.get(package(index, version="2.0"))


@pytest.mark.slow
def test_a_package_that_is_no_wheel(place, index, monkeypatch):
    folder = place.base / "sources"
    folder.mkdir()
    text = tarred("w:gz", (tarfile.TarInfo("carrier-3.0/setup.py"), NOISY.encode()))
    (folder / "carrier-3.0.tar.gz").write_bytes(text)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    with pytest.raises(NotAvailable, match="No matching distribution"):
        place.get(package(sha(text), version="3.0"))
    assert not list(place.base.rglob("ran"))


# -- builds -----------------------------------------------------------------------------------------------------------------

RULES = """
import numpy as np
import pandas as pd

def joined(inputs, out, times=1):
    out.write_bytes(b"".join(inputs[n].read_bytes() for n in sorted(inputs)) * times)

def head(inputs, out, size):
    out.write_bytes(inputs["log"].read(size))

def frame(inputs, out, compression):
    pd.DataFrame({"x": np.arange(5)}).to_parquet(out, compression=compression)
"""


@pytest.fixture
def rules(tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/rules_for_test.py").write_text(RULES)
    monkeypatch.setattr(modules, "ROOTS", list(modules.ROOTS))
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    modules.add_root(tmp_path / "code")
    return "rules_for_test"


def build(function: str, inputs: dict, **more) -> dict:
    return {"kind": "build", "function": function, "inputs": inputs} | more


def test_a_file_that_is_built(place, host, rules):
    host.serve("/a", zipped(x=GOOD[:100]))
    host.serve("/b", GOOD[100:])
    inputs = {
        "a": {"sha256": sha(GOOD[:100]), "routes": [place.url("/a", member="x")]},
        "b": {"sha256": "unknown", "routes": [place.url("/b")]},
    }
    route = build(f"{rules}.joined", inputs)
    assert place.get(route) == ("build", f"{rules}.joined", GOOD)
    assert place.get(route)[2] == GOOD
    assert len(host.asked) == 2
    assert place.cached() == ["f"]
    with pytest.raises(DataError, match="sha256 is"):
        place.get(route | {"params": {"times": 2}}, name="g")


def test_inputs_come_from_mirrors_too(place, rules):
    (place.mirror.parent / "log.txt").write_bytes(GOOD)
    route = build(f"{rules}.joined", {"log.txt": {"sha256": SHA}})
    assert place.get(route)[0] == "build"
    entry = {"files": {"f": {"sha256": "unknown", "routes": [route]}}}
    config = {"mirrors": ["mirror", "http://h"]}
    assert local_files.local_candidates("d", entry, config, place.base) == [place.mirror.parent / "log.txt"]


def test_inputs_that_came_stay_until_the_file_is_built(place, host, rules):
    host.serve("/a", GOOD[:100])
    inputs = {n: {"sha256": "unknown", "routes": [place.url(f"/{n}")]} for n in "ab"}
    with pytest.raises(NotAvailable, match=r"joined: b cannot be had .*404"):
        place.get(build(f"{rules}.joined", inputs))
    host.serve("/b", GOOD[100:])
    assert place.get(build(f"{rules}.joined", inputs))[2] == GOOD
    assert host.requests("/a") == [None]


def test_inputs_that_made_a_wrong_file_come_again(place, host, rules):
    host.serve("/a", BAD)
    route = build(f"{rules}.joined", {"a": {"sha256": "unknown", "routes": [place.url("/a")]}})
    with pytest.raises(DataError, match="sha256 is"):
        place.get(route)
    host.serve("/a", GOOD)
    assert place.get(route)[2] == GOOD


def test_a_stream_is_read_no_further_than_needed(place, host, rules):
    host.serve("/log", GOOD + bytes(50_000_000), cut=len(GOOD) + 1000)  # a read beyond would fail
    inputs = {"log": {"sha256": "unknown", "stream": True, "routes": [place.url("/gone"), place.url("/log")]}}
    assert place.get(build(f"{rules}.head", inputs, params={"size": len(GOOD)}))[2] == GOOD


def test_a_stream_from_a_mirror_and_one_that_is_a_page(place, host, rules):
    host.serve("/log", PAGE, kind="text/html")
    inputs = {"log": {"sha256": "unknown", "stream": True, "routes": [place.url("/log"), {"kind": "mirror"}]}}
    route = build(f"{rules}.head", inputs, params={"size": len(GOOD)})
    with pytest.raises(NotAvailable, match="web page"):
        place.get(route)
    (place.mirror.parent / "log").write_bytes(GOOD + b"more")
    assert place.get(route)[2] == GOOD


def test_a_build_is_compared_by_its_content(place, rules):
    pd.DataFrame({"x": np.arange(5)}).to_parquet(place.base / "right.parquet", compression="zstd")
    content, other = content_digest(place.base / "right.parquet"), sha((place.base / "right.parquet").read_bytes())
    place.mirror.write_bytes(GOOD)
    inputs = {"f": {"sha256": SHA}}
    route = build(f"{rules}.frame", inputs, params={"compression": "none"})
    kind, _, data = place.get(route, sha256=other, content=content, name="x.parquet")
    assert kind == "build"
    assert sha(data) != other
    assert place.get(route, sha256=other, content=content, name="x.parquet")[2] == data
    with pytest.raises(DataError, match="digest of the content is"):
        place.get(route, sha256=other, content=sha(b"other"), name="y.parquet")


def test_a_build_of_another_file_than_the_other_routes_bring(place, rules):
    """The rule's result is not the mirror's file; its own first result is the reference."""
    place.mirror.write_bytes(GOOD)
    route = build(f"{rules}.frame", {"f": {"sha256": SHA}}, params={"compression": "none"}, content="unknown")
    kind, _, data = place.get(route, sha256=sha(BAD), name="x.parquet")
    assert kind == "build"
    assert place.get(route, sha256=sha(BAD), name="x.parquet")[2] == data
    assert "content" in read_json(place.cache / ".x.parquet.json")


def test_a_changed_rule_builds_again(place, rules, monkeypatch):
    place.mirror.write_bytes(GOOD)
    route = build(f"{rules}.joined", {"f": {"sha256": SHA}}, content="unknown")
    assert place.get(route, name="g", sha256="unknown")[2] == GOOD
    assert place.get(route | {"params": {"times": 2}}, name="g", sha256="unknown")[2] == GOOD * 2


def test_where_files_lie(place, host):
    entry = {"files": {n: {"sha256": "unknown", "routes": [{"kind": "mirror"}, place.url(f"/{n}")]} for n in "fgh"}}
    config = {"mirrors": ["mirror"], "cache": "cache"}
    place.mirror.write_bytes(GOOD)
    host.serve("/g", GOOD)
    place.get(place.url("/g"), name="g")
    assert local_files.local_copies("d", entry, config, place.base) == {
        "f": place.mirror,
        "g": place.cache / "g",
        "h": None,
    }
