"""The research-object manifest of a site, read by the library for such manifests and held against the plan."""

import json

import pytest
from rocrate.rocrate import ROCrate
from samples import shipped_config

from agglearn.reporting import crate
from agglearn.workflow.plan import Plan

NAMES = ["labelsums_ladder", "collective_routes"]


@pytest.fixture(scope="module")
def plan():
    return Plan(shipped_config() | {"scale": "smoke", "run": NAMES})


@pytest.fixture(scope="module")
def site(plan, tmp_path_factory):
    """The files of a site with two tables, and its manifest."""
    out = tmp_path_factory.mktemp("site")
    (out / "index.html").write_text("")
    for folder, kinds in (("tables", ("csv", "md", "tex")), ("figures", ("svg",))):
        (out / folder).mkdir()
        for name in NAMES:
            for kind in kinds:
                (out / folder / f"{name}.{kind}").write_text("")
    fields = ("licence", "citation", "homepage", "doi")
    rows = [
        {"name": d, "title": entry["title"], "state": "600 records", "status": "ok" if d == "adult" else "unavailable"}
        | {field: entry.get(field, "") for field in fields}
        for d, entry in plan.config["datasets"].items()
        if any(d in e["datasets"] for e in plan.experiments.values())
    ]
    crate.write(plan, rows, "abc123", out)
    return out


def graph(site) -> dict[str, dict]:
    manifest = json.loads((site / crate.MANIFEST).read_text())
    assert manifest["@context"] == "https://w3id.org/ro/crate/1.1/context"
    return {entity["@id"]: entity for entity in manifest["@graph"]}


def references(value):
    """Identifiers that an entity refers to."""
    if isinstance(value, dict):
        return [value["@id"]] if set(value) == {"@id"} else [i for v in value.values() for i in references(v)]
    return [i for v in value for i in references(v)] if isinstance(value, list) else []


def test_every_file_is_there_and_every_reference_leads_somewhere(site):
    entities = graph(site)
    assert entities[crate.MANIFEST]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    files = {i for i, e in entities.items() if e["@type"] == "File"}
    assert files == {str(p.relative_to(site)) for p in site.rglob("*.*") if p.name != crate.MANIFEST}
    parts = {part["@id"] for part in entities["./"]["hasPart"]}
    assert files <= parts
    led = {i for e in entities.values() for i in references({k: v for k, v in e.items() if k != "@id"})}
    assert led - set(entities) == {"https://w3id.org/ro/crate/1.1"}


def test_a_table_is_made_from_its_data_by_its_software(site, plan):
    entities = graph(site)
    for name in NAMES:
        action = entities[f"#make-{name}"]
        assert action["@type"] == "CreateAction"
        assert [d["@id"] for d in action["object"]] == [f"#data-{d}" for d in plan.experiments[name]["datasets"]]
        assert f"tables/{name}.csv" in [f["@id"] for f in action["result"]]
        tools = {entities[t["@id"]]["name"] for t in action["instrument"]}
        assert {"agglearn", "numpy"} <= tools
    assert entities["#agglearn"]["softwareVersion"].endswith("at abc123")


def test_data_have_licences_and_what_is_missing_is_said(site):
    entities = graph(site)
    assert entities["#data-adult"]["license"] == "CC BY 4.0"
    assert entities["#data-adult"]["identifier"] == "https://doi.org/10.24432/C5XW20"
    assert "creativeWorkStatus" not in entities["#data-adult"]
    assert entities["#data-bank"]["creativeWorkStatus"] == "not available in this run"


def test_the_library_reads_it(site):
    read = ROCrate(site)
    assert read.name.endswith('scale "smoke"')
    assert {a.id for a in read.get_by_type("CreateAction")} == {f"#make-{name}" for name in NAMES}
    assert read.get("tables/labelsums_ladder.csv")["encodingFormat"] == "text/csv"
