"""What the tests of fetching share: contents, packed files, and a project folder with a mirror in it."""

import hashlib
import io
import tarfile
import zipfile

import pytest

from agglearn.datasets.fetching import obtain
from agglearn.errors import NotAvailable

GOOD = b"0123456789" * 5000
BAD = b"something else"
PAGE = b"\n<!DOCTYPE html>\n<html><body>Log in to the network</body></html>"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


SHA = sha(GOOD)


def zipped(**members: bytes) -> bytes:
    """A zip; `__` in a name stands for a slash, `_D_` for a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, data in members.items():
            pack.writestr(name.replace("__", "/").replace("_D_", "."), data)
    return out.getvalue()


def tarred(mode: str, *members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as pack:
        for member, data in members:
            member.size = len(data)
            pack.addfile(member, io.BytesIO(data))
    return out.getvalue()


class Place:
    """A project folder with a mirror in it, and one data set of one file, `f` where a test names no other."""

    def __init__(self, base, host):
        self.base, self.host = base, host
        self.cache = base / "cache/d"
        self.mirror = base / "mirror/d/f"
        self.mirror.parent.mkdir(parents=True)
        self.said = io.StringIO()
        self.progress = []

    def url(self, path="/f", kind="primary", **more) -> dict:
        return {"kind": kind, "url": f"{self.host.url}{path}"} | more

    def fetch(self, files: dict, mirrors=("mirror",)) -> dict:
        config = {"mirrors": list(mirrors), "cache": "cache"}
        entry = {"files": files}
        return obtain("d", entry, config, self.base, self.said, lambda *said: self.progress.append(said))

    def get(self, *routes: dict, sha256=SHA, mirrors=("mirror",), name="f", **spec):
        """(kind, origin, content) of one file that comes from the mirrors, or by these routes."""
        spec = {"sha256": sha256, "routes": [{"kind": "mirror"}, *routes]} | spec
        found = self.fetch({name: spec}, mirrors)[name]
        with open(found["path"], "rb") as handle:
            data = handle.read()
        assert (found["bytes"], found["sha256"]) == (len(data), sha(data))
        return found["kind"], found["origin"], data

    def fail(self, reason: str, *routes: dict, error=NotAvailable, **how):
        """The same file cannot be had, for a reason, and leaves nothing behind but what is to be continued."""
        with pytest.raises(error, match=reason):
            self.get(*routes, **how)

    def cached(self) -> list[str]:
        """Files of the cache that are no notes, hidden folders included."""
        if not self.cache.exists():
            return []
        found = [p.relative_to(self.cache).as_posix() for p in self.cache.rglob("*") if p.is_file()]
        return sorted(f for f in found if not (f.startswith(".") and f.count("/") == 0))
