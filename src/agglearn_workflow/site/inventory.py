"""Inventory of data sets: whether they are here, their origin, and the tables that need them."""

from collections import defaultdict
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from agglearn import __version__, local_files, registry, storage
from agglearn.errors import DataError
from agglearn_workflow.config.entries import has_records
from agglearn_workflow.digests import DISTRIBUTIONS
from agglearn_workflow.memory import size_of_files

PACKAGED = "agglearn.datasets.tabular.Packaged"


def kind_of(entry: dict) -> str:
    """`files` that are fetched, `package` for data inside an installed package, or `simulated`."""
    if entry.get("files"):
        return "files"
    if entry_package(entry):
        return "package"
    return "files" if has_records(entry) else "simulated"


def entry_package(entry: dict) -> str | None:
    if registry.is_subclass(entry["class"], PACKAGED):
        module = entry["params"]["loader"].partition(".")[0]
        return DISTRIBUTIONS.get(module, module)
    return registry.constant(entry["class"], "PACKAGE")


def inventory(config: dict, experiments: dict, base: Path) -> list[dict]:
    """A row per data set. `bytes` is None if unknown. `origin` is in parentheses where the files are not here."""
    rows = []
    for name, entry in sorted(config["datasets"].items()):
        kind = kind_of(entry)
        origin = f"inside {entry_package(entry)}" if kind == "package" else kind
        is_here, origin, size = _files(name, entry, config, base) if kind == "files" else (True, origin, None)
        row = {"name": name, "kind": kind, "here": is_here, "origin": origin, "bytes": size}
        row["experiments"] = [e for e, spec in experiments.items() if name in spec["datasets"]]
        texts = ("title", "licence", "citation", "doi", "homepage", "note")
        rows.append(row | {key: entry.get(key, "") for key in texts})
    return rows


def _files(name: str, entry: dict, config: dict, base: Path) -> tuple[bool, str, int | None]:
    """(whether all files are here, their origin or possible origins, bytes)."""
    copies = local_files.local_copies(name, entry, config, base)
    missing = [f for f, path in copies.items() if path is None]
    if missing:
        kinds = [route["kind"] for f in missing for route in local_files.routes(entry["files"][f])]
    else:
        kinds = [_origin(entry["files"][f], path, base) for f, path in copies.items() if path]
    origin = ", ".join(dict.fromkeys(kinds))
    return not missing, f"({origin})" if missing else origin, size_of_files(entry, copies)


def _origin(file: dict, path: Path, base: Path) -> str:
    note = local_files.note_of(path)
    if note.is_file():
        return storage.read_json(note)["kind"]
    return "path" if "path" in file and path == base / file["path"] else "mirror"


SIMULATED = "simulated, nothing to cite"


def used(results: Path) -> tuple[set[str], set[str], dict[str, set[str]]]:
    """(sources, data sets, package → versions) of the successful runs behind the measurements of a results folder."""
    files = sorted(results.glob("measurements/*/*.parquet"))
    if not files:
        raise DataError(f"{results}: has no measurements; give the results folder of a run of the workflow")
    is_ok = pc.field("status") == "ok"
    table = pq.read_table([*map(str, files)], columns=["run", "dataset"], filters=is_ok, partitioning=None)
    rows = table.to_pydict()
    sources: set[str] = set()
    versions: dict[str, set[str]] = defaultdict(set)
    for run in set(rows["run"]):
        # the runs of a smaller scale, whose measurements lie in a folder below, are there too
        paths = [folder / "runs" / run / "run.json" for folder in (results, results.absolute().parent)]
        if not (present := [path for path in paths if path.exists()]):
            raise DataError(f"{results}: the file runs/{run}/run.json is not there; run the workflow again")
        facts = storage.read_json(present[0])
        sources.add(facts["config"]["experiment"]["source"])
        versions["agglearn"].add(f"{__version__} at {facts['commit']}" if facts["commit"] else __version__)
        for package, version in {"Python": facts["python"], **facts["versions"]}.items():
            versions[package].add(version)
    if not sources:
        raise DataError(f"{results}: no run has succeeded; there is nothing to cite")
    return sources, set(rows["dataset"]), versions


def references(config: dict, results: Path) -> list[str]:
    sources, datasets, versions = used(results)
    papers, software = (config["references"].get(key, {}) for key in ("papers", "software"))
    of_papers = [(name, _paper(papers.get(name))) for name in sorted(sources)]
    of_data = [(name, text) for name in sorted(datasets) for text in _data_set(config["datasets"].get(name))]
    of_data.sort(key=lambda reference: reference[1] == SIMULATED)
    packages = []
    for package in sorted(versions, key=str.lower):
        reference = f": {software[package]}" if package in software else ""
        packages.append(f"{package} {', '.join(sorted(versions[package]))}{reference}")
    sections = {"Papers": _grouped(of_papers), "Data sets": _grouped(of_data), "Software": packages}
    return [line for title, texts in sections.items() for line in ("", title, *(f"  {text}" for text in texts))][1:]


def _paper(paper: dict | None) -> str:
    return _joined(paper["citation"], paper.get("url")) if paper else "no reference in config/references.yaml"


def _grouped(references: list[tuple[str, str]]) -> list[str]:
    """A line per reference, after the names of what has it."""
    names: dict[str, list[str]] = {}
    for name, text in references:
        names.setdefault(text, []).append(name)
    return [f"{', '.join(sharing)}: {text}" for text, sharing in names.items()]


def _data_set(entry: dict | None) -> list[str]:
    if entry is None:
        return ["no entry in config/datasets/"]
    return [SIMULATED] if kind_of(entry) == "simulated" else citation_lines(entry)


def citation_lines(entry: dict) -> list[str]:
    package = f"inside {entry_package(entry)}" if kind_of(entry) == "package" else None
    return [
        _joined(c["text"], c["label"], package, f"(licence: {c['licence']})" if c["licence"] else None)
        for c in citations(entry)
    ]


def citations(entry: dict) -> list[dict[str, str]]:
    """`text`, `label`, `url`, `licence` of a data set, then of its files that have references of their own."""
    files = {name: f for name, f in entry.get("files", {}).items() if {"citation", "doi", "licence"} & set(f)}
    references = [_citation(entry, entry["title"]), *(_citation(f, name) for name, f in files.items())]
    return list({c["text"] + c["label"]: c for c in references}.values())


def _citation(source: dict, title: str) -> dict[str, str]:
    url = f"https://doi.org/{source['doi']}" if "doi" in source else source.get("homepage", "")
    label = f"doi:{source['doi']}" if "doi" in source else url
    text = source.get("citation", title).strip()
    return {"text": text, "label": label, "url": url, "licence": source.get("licence", "")}


def _joined(*texts: str | None) -> str:
    return " ".join(text.strip() for text in texts if text)
