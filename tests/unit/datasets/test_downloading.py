"""Hosts that are dead, slow, busy, refuse, or answer with something else; downloads that are continued."""

import io
import time
from email.utils import formatdate
from types import SimpleNamespace

import pytest
from fetched_places import BAD, GOOD, PAGE, SHA
from hosts import free_port

from agglearn.datasets import downloading
from agglearn.datasets.fetching import LARGE, _Lines


def test_a_host_that_is_down(place):
    place.fail("refused", {"kind": "primary", "url": f"http://127.0.0.1:{free_port()}/f"})


@pytest.mark.parametrize(
    "how", [{"delays": 2}, *({"first": [(n, {}), (n, {"Retry-After": "0"})]} for n in (429, 500, 503))], ids=str
)
def test_a_slow_or_busy_host_is_asked_three_times(place, host, monkeypatch, how):
    monkeypatch.setattr(downloading, "TIMEOUT", 0.2 if "delays" in how else 20)
    host.serve("/f", GOOD, **how)
    assert place.get(place.url())[2] == GOOD
    assert len(host.asked) == 3


@pytest.mark.parametrize(
    ("how", "reason", "times"),
    [
        ({"delays": 99}, r"/f: timed out.*/g: the host gave no answer before", 3),
        ({"pause": 0.02}, "/f: fewer than 60,000 bytes", 3),  # a trickle counts as silence
        ({"first": [(503, {})] * 3}, "/f: 503", 3),
        ({"first": [(404, {})]}, "/f: 404", 1),
        ({"agents": "nobody"}, "/f: 403 Forbidden", 2),
    ],
)
def test_a_host_is_not_asked_more_often(place, host, monkeypatch, how, reason, times):
    monkeypatch.setattr(downloading, "TIMEOUT", 0.1 if "delays" in how else 20)
    monkeypatch.setattr(downloading, "WINDOW", 0.05 if "pause" in how else 60)
    host.serve("/f", GOOD, **how)
    place.fail(reason, place.url(), place.url("/g"))
    assert len(host.requests("/f")) == times


def test_a_host_that_refuses_scripts(place, host):
    host.serve("/f", GOOD, agents="Mozilla/")
    assert place.get(place.url())[2] == GOOD
    assert len(host.asked) == 2


def test_the_wait_is_the_hosts_up_to_a_bound(place, host, monkeypatch):
    slept = []
    clock = {"sleep": slept.append, "time": time.time, "monotonic": time.monotonic}
    monkeypatch.setattr(downloading, "time", SimpleNamespace(**clock))  # threads that other tests left sleep as before
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


@pytest.mark.parametrize(
    ("data", "how", "reason"),
    [
        (PAGE, {}, "web page"), (b"Sign in", {"kind": "text/html; charset=utf-8"}, "web page"), (b"", {}, "empty"),
        (GOOD, {"length": "missing", "cut": 700}, "length"),
        (GOOD, {"length": "chunked", "cut": 700}, "IncompleteRead"),
        (GOOD, {"cut": 700, "tag": None}, "connection ended after 700 of 50,000 bytes"),
    ],
)  # fmt: skip
def test_what_never_becomes_a_reference(place, host, data, how, reason):
    host.serve("/f", data, **how)
    place.fail(reason, place.url(), sha256="unknown")
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD


JUNK = ("abc", "-5", "", "1e4", "0x10", "9" * 400, "9" * 5000, "50000, 50000", "\xb2\xbc", "NaN")
READ = (
    "Content-Length", "Content-Type", "ETag", "Last-Modified", "Retry-After", "Content-Range", "Transfer-Encoding", "Content-Encoding",
)  # fmt: skip


@pytest.mark.parametrize("value", JUNK, ids=lambda v: v[:8].encode("unicode_escape").decode())
@pytest.mark.parametrize("header", READ)
@pytest.mark.parametrize("sha256", [SHA, "unknown"], ids=["proven", "unproven"])
def test_no_header_stops_the_routes(place, host, header, value, sha256):
    """Whatever the first host sends, the file comes: from it where nothing speaks against it, else from the next route."""
    host.serve("/f", GOOD, headers={header: value}, first=[(503, {header: value})])
    host.serve("/g", GOOD)
    assert place.get(place.url(), place.url("/g"), sha256=sha256)[2] == GOOD


@pytest.mark.parametrize("year", ["0000", "0101", "9" * 20, "9" * 5000])
def test_no_date_stops_the_routes(place, host, year):
    host.serve("/f", GOOD, first=[(503, {"Retry-After": f"Mon, 01 Jan {year} 00:00:00 GMT"})])
    assert place.get(place.url())[2] == GOOD


ADDRESSES = (
    "file:///etc/passwd", "data:text/plain,a", "/f", "", "http://[::1", "http://[x]y/", "http://a..b/", "http://\xe9/", "http://%00/",
    "http://127.0.0.1:x/", "http://\x01/",
)  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_redirect_stops_the_routes(place, host, address):
    host.serve("/f", BAD, first=[(302, {"Location": address})] * 20)
    host.serve("/g", GOOD)
    assert place.get(place.url(), place.url("/g"), sha256="unknown")[1] == f"{host.url}/g"


@pytest.mark.parametrize("status", [206, 416])
def test_an_answer_about_a_part_is_not_the_whole(place, host, status):
    host.serve("/f", GOOD, first=[(status, {"Content-Range": "bytes 5-18/1000"}, BAD)] * 20)
    host.serve("/g", GOOD)
    assert place.get(place.url(), place.url("/g"), sha256="unknown")[1] == f"{host.url}/g"
    assert len(host.requests("/f")) == 1


@pytest.mark.parametrize("value", JUNK, ids=lambda v: v[:8].encode("unicode_escape").decode())
def test_a_length_that_is_none_is_not_stated(place, host, value):
    host.serve("/f", GOOD, headers={"Content-Length": value})
    place.fail(r"length|MB on the disk|connection ended", place.url(), sha256="unknown")


@pytest.mark.parametrize("header", ["ETag", "Last-Modified", "Content-Range", "Content-Length"])
@pytest.mark.parametrize("value", JUNK, ids=lambda v: v[:8].encode("unicode_escape").decode())
def test_no_header_stops_a_continued_download(place, host, header, value):
    cut_short(place, host)
    host.serve("/f", GOOD, headers={header: value})
    host.serve("/g", GOOD)
    assert place.get(place.url(), place.url("/g"))[2] == GOOD


def test_a_page_in_place_of_data_is_no_wrong_digest(place, host):
    """Networks that ask for a login answer every request with a page."""
    host.serve("/f", PAGE)
    place.fail("web page", place.url())


def test_a_body_in_chunks_and_its_progress(place, host):
    host.serve("/f", GOOD, length="chunked")
    assert place.get(place.url(), sha256="unknown")[2] == GOOD
    host.serve("/g", GOOD)
    place.get(place.url("/g"), name="g")
    assert place.progress[-1] == ("g", len(GOOD), len(GOOD))


def test_the_end_of_a_large_file_is_shown_at_once_and_no_part_of_it():
    terminal = io.StringIO()
    lines = _Lines(terminal)
    for name, part, whole in (("small", LARGE, LARGE), ("large", LARGE, 3 * LARGE), ("unknown", LARGE, 0)):
        lines(name, part, whole)
    assert terminal.getvalue() == ""
    lines("large", 3 * LARGE, 3 * LARGE)
    assert terminal.getvalue().startswith("fetching large: 100 % of")


def test_a_disk_that_is_full(place, host, monkeypatch):
    monkeypatch.setattr(downloading.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    host.serve("/f", GOOD)
    place.fail("MB on the disk", place.url())


# -- continued downloads ----------------------------------------------------------------------------------------------


def cut_short(place, host, **how):
    """A first visit that ends after 20,000 bytes in each of its tries."""
    host.serve("/f", GOOD, cut=20_000, ranges=False, **how)
    place.fail("connection ended after 20,000 of 50,000 bytes", place.url())
    host.asked.clear()


def test_a_connection_that_ends_early_is_continued_at_once(place, host):
    host.serve("/f", GOOD, cut=20_000)
    assert place.get(place.url())[2] == GOOD
    assert host.requests("/f") == [None, "bytes=20000-", "bytes=40000-"]


@pytest.mark.parametrize(
    ("how", "start"),
    [
        ({}, "bytes=20000-"),
        ({"tag": None, "modified": formatdate(0, usegmt=True)}, "bytes=20000-"),
        ({"tag": None}, None),  # nothing is continued without proof that it is the same
        ({"tag": 'W/"1"'}, None),
    ],
)
def test_a_download_is_continued_by_the_next_run(place, host, how, start):
    cut_short(place, host, **how)
    host.serve("/f", GOOD, **how)
    assert place.get(place.url())[2] == GOOD
    assert host.requests("/f") == [start]
    assert place.cached() == ["f"]


@pytest.mark.parametrize(
    ("data", "how"),
    [
        (b"abcdefghij" * 5000, {}),
        (b"abcdefghij" * 5000, {"careless": True}),  # the host sends the rest of the new file
        (GOOD[:10_000], {"careless": True}),
        (GOOD, {"ranges": False}),
    ],
)
def test_a_file_that_changed_or_is_not_continued_starts_anew(place, host, data, how):
    cut_short(place, host)
    host.serve("/f", data, **how)
    assert place.get(place.url(), sha256="unknown")[2] == data


def test_another_url_does_not_continue_the_download(place, host):
    cut_short(place, host)
    host.serve("/g", GOOD)
    assert place.get(place.url("/g"))[2] == GOOD
    assert host.requests("/g") == [None]
