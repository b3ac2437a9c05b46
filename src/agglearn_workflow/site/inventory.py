"""Inventory of data sets: whether they are here, their origin, and the tables that need them."""

from pathlib import Path

from agglearn import local_files, storage
from agglearn_workflow import classes
from agglearn_workflow.config.entries import has_records

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
    return [_row(name, entry, config, experiments, base) for name, entry in sorted(config["datasets"].items())]


def _row(name: str, entry: dict, config: dict, experiments: dict, base: Path) -> dict:
    kind = kind_of(entry)
    is_here, origin, size = True, kind, None
    if kind == "package":
        origin = f"inside {entry_package(entry)}"
    elif kind == "files":
        is_here, origin, size = _files(name, entry, config, base)
    texts = {k: entry.get(k, "") for k in ("title", "licence", "citation", "doi", "homepage", "note")}
    needed = [e for e, spec in experiments.items() if name in spec["datasets"]]
    return {
        "name": name,
        "kind": kind,
        "here": is_here,
        "origin": origin,
        "bytes": size,
        "experiments": needed,
        **texts,
    }


def _files(name: str, entry: dict, config: dict, base: Path) -> tuple[bool, str, int | None]:
    """(whether all files are here, their origin or possible origins, bytes)."""
    copies = local_files.local_copies(name, entry, config, base)
    missing = [f for f, path in copies.items() if path is None]
    if missing:
        kinds = [route["kind"] for f in missing for route in local_files.routes(entry["files"][f])]
    else:
        kinds = [_origin(entry["files"][f], path, base) for f, path in copies.items() if path]
    origin = ", ".join(dict.fromkeys(kinds))
    size = _total([_size(entry["files"][f], path) for f, path in copies.items()])
    return not missing, f"({origin})" if missing else origin, size


def stated_bytes(entry: dict) -> int | None:
    """Size of all files of an entry as the entry states it, or None."""
    return _total([_size(file, None) for file in entry.get("files", {}).values()])


def _total(sizes: list[int | None]) -> int | None:
    """Sum of sizes, None where one is unknown."""
    stated = [size for size in sizes if size is not None]
    return sum(stated) if len(stated) == len(sizes) else None


def _origin(file: dict, path: Path, base: Path) -> str:
    """Kind of the route of a file."""
    note = local_files.note_of(path)
    if note.is_file():
        return storage.read_json(note)["kind"]
    return "path" if "path" in file and path == base / file["path"] else "mirror"


def _size(file: dict, path: Path | None) -> int | None:
    if path:
        return path.stat().st_size
    return file.get("bytes") or next((r["bytes"] for r in file.get("routes", []) if "bytes" in r), None)
