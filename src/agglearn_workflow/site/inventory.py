"""Inventory of data sets: whether they are here, their origin, and the tables that need them."""

from pathlib import Path

from agglearn import local_files, storage
from agglearn_workflow.config.entries import has_records
from agglearn_workflow.digests import classes

PACKAGED = "agglearn.datasets.tabular.Packaged"
DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # modules whose package has another name


def kind_of(entry: dict) -> str:
    """`files` that are fetched, `package` for data inside an installed package, or `simulated`."""
    if entry.get("files"):
        return "files"
    if entry_package(entry):
        return "package"
    return "files" if has_records(entry) else "simulated"


def entry_package(entry: dict) -> str | None:
    """The installed package that holds the data of an entry, or None."""
    if classes.is_subclass(entry["class"], PACKAGED):
        module = entry["params"]["loader"].partition(".")[0]
        return DISTRIBUTIONS.get(module, module)
    return classes.constant(entry["class"], "PACKAGE")


def inventory(config: dict, experiments: dict, base: Path) -> list[dict]:
    """One row per data set: `name`, `title`, `kind`, `here`, `origin`, `bytes`, `licence`, `citation`, `doi`, `homepage`,
    `note`, `experiments`.

    `bytes` is None for an unknown size. `origin` is the kind of route of the files, in parentheses where they are not here.
    """
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
    return not missing, f"({origin})" if missing else origin, _total_bytes(entry, copies)


def stated_bytes(entry: dict) -> int | None:
    """Size of all files of an entry as the entry states it, or None."""
    return _total_bytes(entry, {})


def _total_bytes(entry: dict, copies: dict[str, Path | None]) -> int | None:
    """Size of all files of an entry, of local copies as they are. None where one is unknown."""
    total = 0
    for name, file in entry.get("files", {}).items():
        stated = [r["bytes"] for r in (file, *file.get("routes", [])) if r.get("bytes")]
        if path := copies.get(name):
            total += path.stat().st_size
        elif stated:
            total += stated[0]
        else:
            return None
    return total


def _origin(file: dict, path: Path, base: Path) -> str:
    note = local_files.note_of(path)
    if note.is_file():
        return storage.read_json(note)["kind"]
    return "path" if "path" in file and path == base / file["path"] else "mirror"
