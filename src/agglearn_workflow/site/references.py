"""References of a results folder: papers, data sets, and software with the versions that its runs recorded."""

from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

from agglearn import __version__, storage
from agglearn.errors import DataError
from agglearn_workflow.site.inventory import entry_package, kind_of

SIMULATED = "simulated, nothing to cite"
NO_REFERENCE = "no reference in config/references.yaml"


def used(results: Path) -> tuple[set[str], set[str], dict[str, set[str]]]:
    """(sources, data sets, package → versions) of the successful runs behind the measurements of a results folder."""
    files = sorted(results.glob("measurements/*/*.parquet"))
    if not files:
        raise DataError(f"{results}: has no measurements; give the results folder of a run of the workflow")
    runs: dict[str, str] = {}
    for file in files:
        rows = pq.read_table(file, columns=["run", "dataset", "status"]).to_pylist()
        runs |= {r["run"]: r["dataset"] for r in rows if r["status"] == "ok"}
    sources: set[str] = set()
    versions: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        paths = [folder / "runs" / run / "run.json" for folder in (results, results.absolute().parent)]
        if (
            path := next((p for p in paths if p.exists()), None)
        ) is None:  # that of a smaller scale lies below the runs
            raise DataError(f"{results}: the file runs/{run}/run.json is not there; run the workflow again")
        facts = storage.read_json(path)
        sources.add(facts["config"]["experiment"]["source"])
        versions["agglearn"].add(f"{__version__} at {facts['commit']}" if facts["commit"] else __version__)
        versions["Python"].add(facts["python"])
        for package, version in facts["versions"].items():
            versions[package].add(version)
    if not runs:
        raise DataError(f"{results}: no run has succeeded; there is nothing to cite")
    return sources, set(runs.values()), versions


def references(config: dict, results: Path) -> list[str]:
    sources, datasets, versions = used(results)
    papers, software = (config["references"].get(key, {}) for key in ("papers", "software"))
    of_papers = [
        (name, _joined(papers[name]["citation"], papers[name].get("url")) if name in papers else NO_REFERENCE)
        for name in sorted(sources)
    ]
    of_data = [(name, text) for name in sorted(datasets) for text in _data_set(config["datasets"].get(name))]
    of_data.sort(key=lambda reference: reference[1] == SIMULATED)
    packages = [
        f"{package} {', '.join(sorted(versions[package]))}" + (f": {software[package]}" if package in software else "")
        for package in sorted(versions, key=str.lower)
    ]
    sections = {"Papers": _grouped(of_papers), "Data sets": _grouped(of_data), "Software": packages}
    return [line for title, texts in sections.items() for line in ("", title, *(f"  {text}" for text in texts))][1:]


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
