"""Research-object manifest of the site (RO-Crate 1.1): data, software, versions, licences, how files were made."""

from pathlib import Path

from agglearn import __version__, storage
from agglearn_workflow import digests
from agglearn_workflow.plan import Plan

MANIFEST = "ro-crate-metadata.json"
LICENCE = "https://spdx.org/licenses/Apache-2.0"
ABOUT = "Tables, figures and verdicts of a run, the data that they were made from, and the software that made them."
TABLES = {"csv": "text/csv", "md": "text/markdown", "tex": "application/x-tex"}
TYPES = TABLES | {"svg": "image/svg+xml", "html": "text/html"}


def files_of(name: str) -> list[str]:
    return [*(f"tables/{name}.{kind}" for kind in TABLES), f"figures/{name}.svg"]


def write(plan: Plan, datasets: list[dict], commit: str, out: Path) -> None:
    from rocrate.model import ContextEntity
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.name = f'What can be learned from aggregated data: results at scale "{plan.config["scale"]}"'
    crate.description = ABOUT
    crate.license = LICENCE
    for page in sorted(out.glob("*.html")):
        crate.add_file(dest_path=page.name, properties=_file(page.name))
    data = {d["name"]: crate.add(ContextEntity(crate, f"#data-{d['name']}", _dataset(d))) for d in datasets}
    crate.root_dataset["mentions"] = list(data.values())
    version = f"{__version__} at {commit}" if commit else __version__
    library = crate.add(ContextEntity(crate, "#agglearn", _software("agglearn", version) | {"license": LICENCE}))
    for name, e in plan.experiments.items():
        versions = digests.versions(*{c for run in plan.runs(name) for c in run.code})
        # one that is added again takes the place of itself
        packages = [
            crate.add(ContextEntity(crate, f"#{package}-{version}", _software(package, version)))
            for package, version in sorted(versions.items())
        ]
        files = [crate.add_file(dest_path=path, properties=_file(e["title"], path)) for path in files_of(name)]
        crate.add_action(
            [library, *packages],
            identifier=f"#make-{name}",
            object=[data[d] for d in e["datasets"] if d in data],
            result=files,
            properties={"name": command(plan, name)},
        )
    storage.write_json(out / MANIFEST, crate.metadata.generate())


def command(plan: Plan, name: str) -> str:
    scale = plan.config["scale"]
    if scale == "default":
        return f"make reproduce ARGS={name}"
    return f'make reproduce ARGS="{name} --config scale={scale}"'


def _file(name: str, path: str | None = None) -> dict:
    return {"name": name, "encodingFormat": TYPES[(path or name).rpartition(".")[2]], "license": LICENCE}


def _dataset(row: dict) -> dict:
    """A row of the page on data with the terms of schema.org."""
    entry = {
        "@type": "Dataset",
        "name": row["title"],
        "license": row["licence"],
        "citation": row["citation"],
        "url": row["homepage"],
        "identifier": f"https://doi.org/{row['doi']}" if row["doi"] else "",
        "description": row["state"],
        "creativeWorkStatus": {"ok": "", "not checked": "not checked"}.get(row["status"], "not available in this run"),
    }
    return {key: value for key, value in entry.items() if value}


def _software(name: str, version: str) -> dict:
    return {"@type": "SoftwareApplication", "name": name, "softwareVersion": version}
