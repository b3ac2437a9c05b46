"""The order of routes, the digests, the cache, and where files lie."""

import io
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from fetched_places import BAD, GOOD, SHA, sha, zipped

from agglearn import local_files
from agglearn.datasets.fetching import obtain
from agglearn.errors import DataError


def test_a_mirror_comes_before_upstream(place, host):
    place.mirror.write_bytes(GOOD)
    host.serve("/f", GOOD)
    assert place.get(place.url()) == ("mirror", "mirror/d/f", GOOD)
    assert host.asked == []


def test_routes_are_tried_in_the_order_of_the_entry(place, host):
    host.serve("/g", GOOD)
    host.serve("/f", GOOD)
    routes = [place.url("/nothing"), place.url("/g", "frozen"), place.url("/f")]
    assert place.get(*routes) == ("frozen", f"{host.url}/g", GOOD)
    assert [path for path, _ in host.asked] == ["/nothing", "/g"]
    place.mirror.write_bytes(GOOD)
    found = place.fetch({"h": {"sha256": SHA, "routes": [place.url("/f"), {"kind": "mirror"}]}})
    assert found["h"]["kind"] == "primary"


def test_upstream_then_the_cache(place, host):
    host.serve("/f", GOOD)
    for _ in range(2):
        assert place.get(place.url()) == ("primary", f"{host.url}/f", GOOD)
    assert len(host.asked) == 1
    assert place.cached() == ["f"]


def test_two_that_fetch_at_once_download_once(place, host):
    host.serve("/f", GOOD, pause=0.01)
    files = {"f": {"sha256": SHA, "routes": [place.url()]}}

    def get(_: str) -> str:
        terminal = io.StringIO()
        obtain("d", {"files": files}, {"mirrors": [], "cache": "cache"}, place.base, terminal)
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


def test_after_a_wrong_digest_the_next_route_is_tried(place, host):
    place.mirror.write_bytes(BAD)
    host.serve("/f", BAD)
    host.serve("/g", GOOD)
    assert place.get(place.url(), place.url("/g")) == ("primary", f"{host.url}/g", GOOD)
    for where in ("mirror/d/f", f"{host.url}/f"):
        assert f"{where}: sha256 is {sha(BAD)[:12]}…, expected {SHA[:12]}…" in place.said.getvalue()
    assert place.cached() == ["f"]


def test_wrong_everywhere(place, host):
    place.mirror.write_bytes(BAD)
    host.serve("/f", BAD)
    place.fail(r"sha256 is .* expected .*config/datasets/d\.yaml", place.url(), error=DataError)
    assert place.mirror.read_bytes() == BAD
    assert os.listdir(place.mirror.parent) == ["f"]
    assert place.cached() == []


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
    kept = r"as it first came \(delete .*\.f\.json to take the new one\)"
    place.fail(kept, place.url(), error=DataError, sha256="unknown")
    (place.cache / ".f.json").unlink()
    assert place.get(place.url(), sha256="unknown")[2] == BAD


def test_a_changed_route_or_member_does_not_serve_the_old_bytes(place, host):
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD
    host.serve("/new", BAD)
    assert place.get(place.url("/new"), sha256="unknown")[2] == BAD
    assert place.get(place.url("/other"), place.url("/new"), sha256="unknown")[2] == BAD  # still a route of the entry
    place.fail("404", place.url("/gone"), sha256="unknown")
    host.serve("/a", zipped(x=GOOD, y=BAD))
    for member, data in (("x", GOOD), ("y", BAD)):
        assert place.get(place.url("/a", member=member), sha256="unknown")[2] == data


def test_a_file_in_the_cache_of_which_nothing_is_known(place, host):
    place.cache.mkdir(parents=True)
    (place.cache / "f").write_bytes(BAD)
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD


def test_an_empty_file(place, host):
    place.mirror.write_bytes(b"")
    place.fail("mirror/d/f: the file is empty", error=DataError, sha256="unknown")
    host.serve("/f", GOOD)
    assert place.get(place.url(), sha256="unknown")[2] == GOOD


def test_nowhere(place, host):
    places = ("mirror/d/f: no such file", f"{host.url}/m/d/f: 404 Not Found", f"{host.url}/f: 404 Not Found")
    place.fail(f"f cannot be had.*{'.*'.join(places)}", place.url(), mirrors=["mirror", f"{host.url}/m"])
    place.fail("names no place", mirrors=[])


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_a_name_that_leads_out_of_the_cache(place, host, name):
    host.serve("/f", GOOD)
    name = f"{place.base}{name}" if name.startswith("/") else name
    place.fail("leads out of the cache", place.url(), error=DataError, name=name)
    assert not list(place.base.rglob("evil"))


def test_where_files_lie(place, host):
    entry = {"files": {n: {"sha256": "unknown", "routes": [{"kind": "mirror"}, place.url(f"/{n}")]} for n in "fgh"}}
    config = {"mirrors": ["mirror"], "cache": "cache"}
    place.mirror.write_bytes(GOOD)
    host.serve("/g", GOOD)
    place.get(place.url("/g"), name="g")
    lying = {"f": place.mirror, "g": place.cache / "g", "h": None}
    assert local_files.local_copies("d", entry, config, place.base) == lying
