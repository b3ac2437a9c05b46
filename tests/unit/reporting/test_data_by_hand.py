"""Data sets for readers, field by field: the inventory, `agglearn data`, and the site's page on data."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from agglearn.storage import write_json
from agglearn_workflow.commands import data
from agglearn_workflow.memory import size_of_files
from agglearn_workflow.site import pages
from agglearn_workflow.site.inventory import inventory

TABULAR = "agglearn.datasets.Tabular"
PRIMARY = {"kind": "primary", "url": "https://p.org/x", "bytes": 700}
FROZEN = {"kind": "frozen", "url": "https://a.org/x", "bytes": 9}
FROM_PACKAGE = {"kind": "package", "package": "pkg"}
DATASETS = {
    "all_here": {"title": "All", "class": TABULAR, "licence": "MIT", "citation": "A (2001).", "doi": "10.1/a", "note": "Two files.",
                 "files": {"one.csv": {"bytes": 1, "routes": [PRIMARY]}, "two.csv": {"path": "own/two.csv"}, "three.csv": {}}},
    "half_here": {"title": "Half", "class": TABULAR, "homepage": "https://h.org",
                  "files": {"one.csv": {"bytes": 5}, "far.csv": {"routes": [FROM_PACKAGE, PRIMARY, FROZEN]}, "off.csv": {"bytes": 20, "routes": [FROZEN]}}},
    "unknown": {"title": "Unknown", "class": TABULAR, "files": {"a": {"bytes": 3}, "b": {"routes": [FROM_PACKAGE]}}},
    "fair": {"title": "Affairs", "class": "agglearn.datasets.Packaged", "citation": "F (1978).", "licence": "PD",
             "params": {"loader": "statsmodels.datasets.fair.load_pandas"}},
    "xor": {"title": "Xor", "class": "agglearn.datasets.Xor"},
}  # fmt: skip
EXPERIMENTS = {
    "first": {"source": "s1", "datasets": {"all_here": {}, "xor": {}}},
    "second": {"source": "s2", "datasets": {"xor": {}, "half_here": {}}},
    "third": {"source": "s1", "datasets": {"xor": {}, "unknown": {}}},
}
# here, origin, bytes, experiments
STATES = {
    "all_here": (True, "frozen, path, mirror", 12_000 + 30 + 4, ["first"]),
    "fair": (True, "inside statsmodels", None, []),
    "half_here": (False, "(package, primary, frozen)", 2 + 700 + 20, ["second"]),
    "unknown": (False, "(mirror, package)", None, ["third"]),
    "xor": (True, "simulated", None, ["first", "second", "third"]),
}


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Files of several sizes in the cache, at their own path, and in the second of two mirrors."""
    places = {"cache/all_here/one.csv": 12_000, "own/two.csv": 30, "m2/all_here/three.csv": 4}
    places["m1/half_here/one.csv"] = 2
    for name, size in places.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    write_json(tmp_path / "cache/all_here/.one.csv.json", {"kind": "frozen"})
    monkeypatch.chdir(tmp_path)
    return {"datasets": DATASETS, "experiments": EXPERIMENTS, "cache": "cache", "mirrors": ["m1", "m2", "https://m.org/"],
            "results": str(tmp_path / "results"), "from": "data"}  # fmt: skip


def test_every_field_of_the_inventory(config, tmp_path, monkeypatch):
    """Paths start from the folder of the project, whatever the current one is."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    rows = inventory(config, EXPERIMENTS, tmp_path)
    kinds = {"fair": "package", "xor": "simulated"}
    texts = ("title", "licence", "citation", "doi", "homepage", "note")
    assert rows == [
        {"name": name, "kind": kinds.get(name, "files"), "here": here, "origin": origin, "bytes": size, "experiments": needed}
        | {text: DATASETS[name].get(text, "") for text in texts}
        for name, (here, origin, size, needed) in STATES.items()
    ]  # fmt: skip
    assert {name: size_of_files(entry) for name, entry in DATASETS.items()} == {
        "all_here": None, "half_here": 725, "unknown": None, "fair": 0, "xor": 0,
    }  # fmt: skip


def rows_of(config: dict) -> list[dict]:
    return inventory(config, config["experiments"], Path.cwd())


def details(config: dict, name: str) -> list[str]:
    [row] = [row for row in rows_of(config) if row["name"] == name]
    return data.details(config, row)


def test_every_line_of_the_list(config):
    assert data.table(rows_of(config)) == [
        "data set   here  from                        size     licence  needed by",
        "all_here   yes   frozen, path, mirror        12 kB    MIT      1 table",
        "fair       yes   inside statsmodels                   PD       no table",
        "half_here  no    (package, primary, frozen)  722 B             1 table",
        "unknown    no    (mirror, package)           unknown           1 table",
        "xor        yes   simulated                                     3 tables",
    ]


def test_every_line_on_one_data_set(config, tmp_path):
    assert details(config, "all_here") == [
        "all_here: All",
        "licence: MIT",
        "note: Two files.",
        "cite: A (2001). doi:10.1/a (licence: MIT)",
        "needed by: first",
        f"file one.csv: {tmp_path}/cache/all_here/one.csv",
        f"file two.csv: {tmp_path}/own/two.csv",
        f"file three.csv: {tmp_path}/m2/all_here/three.csv",
    ]
    assert details(config, "half_here") == [
        "half_here: Half",
        "homepage: https://h.org",
        "cite: Half https://h.org",
        "needed by: second",
        f"file one.csv: {tmp_path}/m1/half_here/one.csv",
        "file far.csv: not here; tried in turn: package pkg, primary https://p.org/x, frozen https://a.org/x",
        "file off.csv: not here; tried in turn: frozen https://a.org/x",
    ]
    assert details(config, "xor")[1:] == ["needed by: first, second, third", "here: simulated, nothing to fetch"]
    assert details(config, "fair") == [
        "fair: Affairs", "licence: PD", "cite: F (1978). inside statsmodels (licence: PD)", "needed by: no table",
        "here: inside statsmodels, nothing to fetch",
    ]  # fmt: skip


@pytest.mark.parametrize("origin", ["data", "archive"])
def test_every_row_of_the_page_on_data(config, tmp_path, origin):
    """Results of the archive rest on no data that are here."""
    manifests = {
        "all_here": {"status": "ok", "rows": 12345, "columns": 7, "rate": 0.24078},
        "half_here": {"status": "unavailable", "reason": "far.csv cannot be had"},
        "xor": {"status": "ok", "rows": 4, "columns": 2},
    }
    for name, manifest in manifests.items():
        write_json(tmp_path / f"results/records/{name}/manifest.json", manifest)
    states = {
        "all_here": ("ok", "12,345 records, 7 features, rate 0.241"),
        "half_here": ("unavailable", "far.csv cannot be had"),
        "unknown": ("ok", ""),
        "xor": ("ok", "4 records, 2 features"),
    }
    if origin == "archive":
        states = dict.fromkeys(states, ("not checked", "not looked at: results come from the archive"))
    rows = pages._datasets(SimpleNamespace(config=config | {"from": origin}, experiments=EXPERIMENTS), tmp_path)
    assert {row["name"]: (row["status"], row["state"]) for row in rows} == states
    assert [row["size"] for row in rows] == ["12 kB", "722 B", "unknown", ""]
    assert [[c["text"] for c in row["citations"]] for row in rows] == [["A (2001)."], ["Half"], ["Unknown"], []]
    assert [[(e["name"], e["source"]) for e in row["experiments"]] for row in rows] == [
        [("first", "s1")], [("second", "s2")], [("third", "s1")], [("first", "s1"), ("second", "s2"), ("third", "s1")],
    ]  # fmt: skip
