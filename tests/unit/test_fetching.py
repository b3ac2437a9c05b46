"""Fetching from mirrors and hosts, with a server of the test's own."""

import hashlib
import io
import os
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agglearn.datasets.fetching import fetch
from agglearn.errors import DataError, NotAvailable
from agglearn.products import read_json

GOOD = b"0123456789" * 5000
BAD = b"something else"
SHA = hashlib.sha256(GOOD).hexdigest()


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/"), data)
    return out.getvalue()


class Host:
    """Files by path; `ranges` whether it continues downloads, `cut` after how many bytes it hangs up."""

    def __init__(self):
        self.files, self.asked, self.ranges, self.cut = {}, [], True, None

        class Handler(BaseHTTPRequestHandler):
            host = self

            def do_GET(self):
                host, wanted = self.host, self.headers.get("Range")
                host.asked.append((self.path, wanted))
                data = host.files.get(self.path)
                if data is None:
                    return self.send_error(404, "Not Found")
                start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and host.ranges else 0
                if start >= len(data) > 0 and start:
                    return self.send_error(416)
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                body = data[start:]
                self.wfile.write(body if host.cut is None else body[: host.cut])

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def host(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    host = Host()
    thread = threading.Thread(target=host.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield host
    host.server.shutdown()
    thread.join()
    host.server.server_close()


class Place:
    """A project folder with a mirror in it, and one data set of one file."""

    def __init__(self, base, host):
        self.base, self.host = base, host
        self.cache = base / "cache/d"
        self.mirror = base / "mirror/d/f"
        self.mirror.parent.mkdir(parents=True)
        self.out = base / "out"
        self.out.mkdir()
        self.said = io.StringIO()

    def get(self, sha256=SHA, mirrors=("mirror",), path=None, **route):
        """One file from the mirrors, then from one URL."""
        route = {"kind": "primary", "url": f"{self.host.url}/f"} | route
        file = {"sha256": sha256, "routes": [{"kind": "mirror"}, *([route] if route["url"] else [])]}
        entry = {"files": {"f": file | ({"path": path} if path else {})}}
        config = {"mirrors": list(mirrors), "cache": "cache"}
        fetch("d", entry, config, self.base, self.out, self.said)
        found = read_json(self.out / "files.json")["f"]
        with open(found["path"], "rb") as handle:
            return found["origin"], handle.read()


@pytest.fixture
def place(tmp_path, host):
    return Place(tmp_path, host)


def test_a_mirror_comes_before_upstream(place, host):
    place.mirror.write_bytes(GOOD)
    host.files["/f"] = GOOD
    assert place.get() == ("mirror/d/f", GOOD)
    assert host.asked == []


def test_upstream_then_the_cache(place, host):
    host.files["/f"] = GOOD
    assert place.get() == (f"{host.url}/f", GOOD)
    assert place.get() == ("cache", GOOD)
    assert len(host.asked) == 1
    assert sorted(os.listdir(place.cache)) == ["f"]


def test_a_local_path_and_a_mirror_by_url(place, host):
    (place.base / "mine").write_bytes(GOOD)
    assert place.get(path="mine", url=None) == ("mine", GOOD)
    host.files["/m/d/f"] = GOOD
    assert place.get(mirrors=[f"{host.url}/m/"], url=None) == (f"{host.url}/m/d/f", GOOD)


def test_a_wrong_mirror_is_passed_over_and_left_alone(place, host):
    place.mirror.write_bytes(BAD)
    host.files["/f"] = GOOD
    assert place.get() == (f"{host.url}/f", GOOD)
    assert place.mirror.read_bytes() == BAD
    assert "sha256 is" in place.said.getvalue()


def test_wrong_everywhere(place, host):
    place.mirror.write_bytes(BAD)
    host.files["/f"] = BAD
    with pytest.raises(DataError, match=r"sha256 is .* expected .*config/datasets/d\.yaml"):
        place.get()
    assert place.mirror.read_bytes() == BAD
    assert os.listdir(place.mirror.parent) == ["f"]
    assert os.listdir(place.cache) == ["f.wrong"]
    assert os.listdir(place.out) == []


def test_a_cache_that_went_bad_is_moved_aside(place, host):
    host.files["/f"] = GOOD
    place.get()
    (place.cache / "f").write_bytes(BAD)
    assert place.get() == (f"{host.url}/f", GOOD)
    assert (place.cache / "f.wrong").read_bytes() == BAD


@pytest.mark.parametrize("ranges", [True, False])
def test_a_partial_download_is_continued(place, host, ranges):
    host.files["/f"], host.ranges = GOOD, ranges
    place.cache.mkdir(parents=True)
    (place.cache / "f.part").write_bytes(GOOD[:12345])
    assert place.get() == (f"{host.url}/f", GOOD)
    assert host.asked == [("/f", "bytes=12345-")]
    assert os.listdir(place.cache) == ["f"]


def test_a_partial_file_that_is_whole(place, host):
    host.files["/f"] = GOOD
    place.cache.mkdir(parents=True)
    (place.cache / "f.part").write_bytes(GOOD)
    assert place.get() == (f"{host.url}/f", GOOD)


def test_a_partial_file_of_another_version_does_not_stay(place, host):
    host.files["/f"] = GOOD
    place.cache.mkdir(parents=True)
    (place.cache / "f.part").write_bytes(b"x" * 500)
    with pytest.raises(DataError, match="sha256"):
        place.get()
    assert place.get() == (f"{host.url}/f", GOOD)


def test_a_connection_that_ends_early_is_continued_next_time(place, host):
    host.files["/f"], host.cut = GOOD, 20_000
    with pytest.raises(NotAvailable, match=r"connection ended|IncompleteRead"):
        place.get()
    assert (place.cache / "f.part").stat().st_size == 20_000
    assert not (place.cache / "f").exists()
    host.cut = None
    assert place.get() == (f"{host.url}/f", GOOD)
    assert host.asked[-1] == ("/f", "bytes=20000-")


def test_a_member_of_an_archive(place, host):
    host.files["/a.zip"] = zipped(deep__f=GOOD, other=BAD)
    assert place.get(url=f"{host.url}/a.zip", member="deep/f") == (f"{host.url}/a.zip", GOOD)
    assert os.listdir(place.cache) == ["f"]


def test_archives_that_are_wrong(place, host):
    host.files["/a.zip"] = BAD
    with pytest.raises(NotAvailable, match="not a zip"):
        place.get(url=f"{host.url}/a.zip", member="f")
    host.files["/a.zip"] = zipped(other=BAD)
    with pytest.raises((NotAvailable, DataError), match="deep/f"):
        place.get(url=f"{host.url}/a.zip", member="deep/f")
    host.files["/a.zip"] = zipped(deep__f=GOOD)
    assert place.get(url=f"{host.url}/a.zip", member="deep/f")[1] == GOOD


def test_an_unknown_digest_is_remembered(place, host):
    host.files["/f"] = GOOD
    assert place.get(sha256="unknown")[1] == GOOD
    assert place.get(sha256="unknown") == ("cache", GOOD)
    (place.cache / "f").write_bytes(BAD)
    host.files["/f"] = BAD
    with pytest.raises(DataError, match="sha256"):
        place.get(sha256="unknown")


def test_an_empty_file(place):
    place.mirror.write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        place.get(sha256="unknown", url=None)


def test_nowhere(place, host):
    with pytest.raises(NotAvailable) as caught:
        place.get(mirrors=["mirror", f"{host.url}/m"])
    said = str(caught.value)
    assert "f cannot be had" in said
    assert "mirror/d/f: no such file" in said
    assert f"{host.url}/m/d/f: Not Found" in said
    assert f"{host.url}/f: Not Found" in said
    with pytest.raises(NotAvailable, match="names no place"):
        place.get(mirrors=[], url=None)


def test_a_host_that_is_down(place):
    with pytest.raises(NotAvailable, match="refused"):
        place.get(url="http://127.0.0.1:9/f")
