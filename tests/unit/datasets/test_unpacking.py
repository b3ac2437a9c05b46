"""Files out of packed files, and the packed files that are refused."""

import contextlib
import io
import os
import stat
import tarfile
import warnings
import zipfile

import pytest
from fetched_places import BAD, GOOD, sha, tarred, zipped

from agglearn.datasets import fetching
from agglearn.errors import DataError

MEMBERS = (tarfile.TarInfo("./x"), BAD), (tarfile.TarInfo("./deep/f"), GOOD)
TARRED = {mode: tarred(mode, *MEMBERS) for mode in ("w", "w:gz", "w:bz2", "w:xz")}


@pytest.mark.parametrize("data", [zipped(deep__f=GOOD, other=BAD), *TARRED.values()], ids=["zip", *TARRED])
def test_a_member_of_a_packed_file(place, host, data):
    host.serve("/a", data)
    assert place.get(place.url("/a", member="deep/f")) == ("primary", f"{host.url}/a", GOOD)
    assert place.cached() == ["f"]
    host.serve("/b", zipped(inner_D_tar=data, other=BAD))
    assert place.get(place.url("/b", member=["inner.tar", "deep/f"]), name="g")[2] == GOOD
    assert place.cached() == ["f", "g"]


def test_a_packed_file_is_downloaded_once_for_all_its_files(place, host):
    host.serve("/a.zip", zipped(f=GOOD, g=BAD))
    files = {n: {"sha256": "unknown", "routes": [place.url("/a.zip", member=n)]} for n in "fg"}
    assert set(place.fetch(files)) == {"f", "g"}
    assert len(host.asked) == 1
    assert place.cached() == ["f", "g"]


def test_the_digest_of_a_packed_file(place, host):
    pack = zipped(f=GOOD)
    host.serve("/a.zip", pack)
    place.fail(
        rf"a\.zip: sha256 is {sha(pack)[:12]}", place.url("/a.zip", member="f", sha256=sha(BAD)), error=DataError
    )
    assert place.get(place.url("/a.zip", member="f", sha256=sha(pack)))[2] == GOOD


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


def zip_link() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as pack:
        member = zipfile.ZipInfo("f")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        pack.writestr(member, "/etc/passwd")
    return out.getvalue()


def encrypted() -> bytes:
    """A zip that states that its member needs a password."""
    data = bytearray(zipped(f=b"text"))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    return bytes(data)


REFUSED = {
    "damaged zip": (bytes(data ^ 255 * (i == 60) for i, data in enumerate(zipped(f=GOOD))), "damaged"),
    "no packed file": (BAD, "not a zip or tar"),
    "cut zip": (zipped(f=GOOD)[:-30], "not a zip or tar"),
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
def test_packed_files_that_are_refused(place, host, name):
    data, reason = REFUSED[name]
    host.serve("/a", data)
    place.fail(reason, place.url("/a", member="f"), sha256="unknown")
    assert place.cached() == []
    host.serve("/a", zipped(f=GOOD))
    assert place.get(place.url("/a", member="f"), sha256="unknown")[2] == GOOD


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_with_any_wrong_byte(tmp_path, method):
    """Each byte in turn. The member is written, or the packed file is unreadable: no other error leaves."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as pack:
        pack.writestr("é", b"text" * 5)
    for i in range(len(out.getvalue())):
        data = bytearray(out.getvalue())
        data[i] ^= 255
        (tmp_path / "a").write_bytes(data)
        with contextlib.suppress(OSError), warnings.catch_warnings(action="ignore"):
            fetching.unpack(tmp_path / "a", "é", tmp_path / "f")


@pytest.mark.parametrize("mode", ["zip", "tar"])
def test_a_packed_file_of_zeros_is_bounded(place, host, monkeypatch, mode):
    monkeypatch.setattr(fetching, "SMALL", 1 << 20)
    zeros = bytes(1 << 25)
    host.serve("/a", zipped(f=zeros) if mode == "zip" else tarred("w:gz", (tarfile.TarInfo("f"), zeros)))
    place.fail("too many for a packed file of its size", place.url("/a", member="f"), sha256="unknown")
    assert place.cached() == []
    assert place.get(place.url("/a", member="f"), sha256="unknown", bytes=len(zeros))[2] == zeros


@pytest.mark.parametrize("evil", ["../evil", "/evil"])
def test_names_in_a_packed_file_are_never_written_to(place, host, evil):
    member = f"{place.base}{evil}" if evil[0] == "/" else evil
    host.serve("/a", tarred("w", (tarfile.TarInfo(member), GOOD)))
    assert place.get(place.url("/a", member=member))[2] == GOOD
    assert not list(place.base.parent.rglob("evil"))
