"""The research-object manifest of a site, read by the library for such manifests and held against the plan."""

import json
from importlib import metadata

import pytest
from rocrate.rocrate import ROCrate
from samples import shipped_config

from agglearn import __version__
from agglearn_workflow import digests
from agglearn_workflow.plan import Plan
from agglearn_workflow.site import crate

NAMES = ["labelsums_ladder", "collective_routes"]
STATUS = {"adult": "ok", "bank": "not checked"}
WORDS = {"ok": None, "not checked": "not checked", "unavailable": "not available in this run"}


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
        {"name": d, "title": entry["title"], "state": "600 records", "status": STATUS.get(d, "unavailable")}
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


FORMATS = {"csv": "text/csv", "md": "text/markdown", "tex": "application/x-tex", "svg": "image/svg+xml"}


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_made_from_its_data_by_its_software(site, plan, name):
    """Each table has the software of its own runs."""
    entities, title = graph(site), plan.experiments[name]["title"]
    files = [*(f"tables/{name}.{kind}" for kind in ("csv", "md", "tex")), f"figures/{name}.svg"]
    action = entities[f"#make-{name}"]
    tools = [entities[tool["@id"]] for tool in action.pop("instrument")]
    assert action == {
        "@id": f"#make-{name}",
        "@type": "CreateAction",
        "name": f'make reproduce ARGS="{name} --config scale=smoke"',
        "object": [{"@id": f"#data-{d}"} for d in plan.experiments[name]["datasets"]],
        "result": [{"@id": path} for path in files],
    }
    for path in files:
        kind = path.rpartition(".")[2]
        assert entities[path] == {"@id": path, "@type": "File", "name": title, "encodingFormat": FORMATS[kind], "license": crate.LICENCE}  # fmt: skip
    own, *packages = tools
    assert own == {"@id": "#agglearn", "@type": "SoftwareApplication", "name": "agglearn", "license": crate.LICENCE,
                   "softwareVersion": f"{__version__} at abc123"}  # fmt: skip
    used = {package: version for run in plan.runs(name) for package, version in digests.versions(*run.code).items()}
    assert packages == [
        {"@id": f"#{package}-{version}", "@type": "SoftwareApplication", "name": package, "softwareVersion": version}
        for package, version in sorted(used.items())
    ]
    assert used["numpy"] == metadata.version("numpy")


def test_every_field_of_a_data_set(site, plan):
    """A data set that is here, one that is not, and simulated ones, which have neither licence nor citation."""
    entities, entries = graph(site), plan.config["datasets"]
    used = {d for e in plan.experiments.values() for d in e["datasets"]}
    assert {i.removeprefix("#data-") for i, e in entities.items() if e["@type"] == "Dataset"} - {"./"} == used
    for name in used:
        entry = entries[name]
        expected = {
            "@id": f"#data-{name}", "@type": "Dataset", "name": entry["title"], "license": entry.get("licence"), "citation": entry.get("citation"),
            "url": entry.get("homepage"), "identifier": f"https://doi.org/{entry['doi']}" if "doi" in entry else None,
            "description": "600 records", "creativeWorkStatus": WORDS[STATUS.get(name, "unavailable")],
        }  # fmt: skip
        assert entities[f"#data-{name}"] == {key: value for key, value in expected.items() if value}, name
    assert entities["#data-adult"]["license"] == "CC BY 4.0"
    assert entities["#data-adult"]["identifier"] == "https://doi.org/10.24432/C5XW20"
    assert {part["@id"] for part in entities["./"]["mentions"] if "#data" in part["@id"]} == {
        f"#data-{d}" for d in used
    }


def test_the_command_names_the_scale_unless_it_is_the_usual_one(plan):
    usual = Plan(plan.config | {"scale": "default"})
    assert crate.command(usual, NAMES[0]) == f"make reproduce ARGS={NAMES[0]}"


def test_the_library_reads_it(site):
    read = ROCrate(site)
    assert read.name.endswith('scale "smoke"')
    assert {a.id for a in read.get_by_type("CreateAction")} == {f"#make-{name}" for name in NAMES}
    assert read.get("tables/labelsums_ladder.csv")["encodingFormat"] == "text/csv"
