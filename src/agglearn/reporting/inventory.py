"""What data sets there are, whether they are here and where they came from, which tables need them."""

from pathlib import Path

from agglearn import local_files, storage
from agglearn.inspection import classes
from agglearn.workflow.checks import SIMULATED

PACKAGED = "agglearn.datasets.tabular.Packaged"
DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # where the name of a module is not that of its package


def kind_of(entry: dict) -> str:
    """`files` that are fetched, `package` for data inside an installed package, or `simulated`."""
    if entry.get("files"):
        return "files"
    if entry_package(entry):
        return "package"
    return "simulated" if classes.is_subclass(entry["class"], SIMULATED) else "files"


def entry_package(entry: dict) -> str | None:
    """The installed package that holds the data of an entry, or None."""
    if classes.is_subclass(entry["class"], PACKAGED):
        module = entry["params"]["loader"].partition(".")[0]
        return DISTRIBUTIONS.get(module, module)
    return classes.constant(entry["class"], "PACKAGE")


def inventory(config: dict, experiments: dict, base: Path) -> list[dict]:
    """One row per data set: `name`, `title`, `kind`, `here`, `origin`, `bytes`, `licence`, `citation`, `doi`, `homepage`,
    `note`, `experiments`.

    `bytes` is None where the size is not known. `origin` is the kind of route by which the files came; in parentheses, those by
    which they could come.

    Parameters
    ----------
    config : effective configuration.
    experiments : those of the plan, or all: which tables need a data set.
    base : project root.
    """
    return [_row(name, entry, config, experiments, base) for name, entry in sorted(config["datasets"].items())]


def _row(name: str, entry: dict, config: dict, experiments: dict, base: Path) -> dict:
    kind = kind_of(entry)
    here, origin, size = True, kind, None
    if kind == "package":
        origin = f"inside {entry_package(entry)}"
    elif kind == "files":
        here, origin, size = _files(name, entry, config, base)
    shown = {k: entry.get(k, "") for k in ("title", "licence", "citation", "doi", "homepage", "note")}
    needed = [e for e, spec in experiments.items() if name in spec["datasets"]]
    return {"name": name, "kind": kind, "here": here, "origin": origin, "bytes": size, "experiments": needed, **shown}


def _files(name: str, entry: dict, config: dict, base: Path) -> tuple[bool, str, int | None]:
    """(all there, where they are from or could come from, bytes)."""
    copies = local_files.local_copies(name, entry, config, base)
    missing = [f for f, path in copies.items() if path is None]
    if missing:
        kinds = [route["kind"] for f in missing for route in local_files.routes(entry["files"][f])]
    else:
        kinds = [_origin(entry["files"][f], path, base) for f, path in copies.items()]
    sizes = [_size(entry["files"][f], path) for f, path in copies.items()]
    origin = ", ".join(dict.fromkeys(kinds))
    return not missing, f"({origin})" if missing else origin, None if None in sizes else sum(sizes)


def stated_bytes(entry: dict) -> int | None:
    """Size of all files of an entry as the entry has it; None where it has not."""
    sizes = [_size(file, None) for file in entry.get("files", {}).values()]
    return None if None in sizes else sum(sizes)


def _origin(file: dict, path: Path, base: Path) -> str:
    """Kind of the route by which a file came."""
    note = local_files.note_of(path)
    if note.is_file():
        return storage.read_json(note)["kind"]
    return "path" if "path" in file and path == base / file["path"] else "mirror"


def _size(file: dict, path: Path | None) -> int | None:
    if path:
        return path.stat().st_size
    return file.get("bytes") or next((r["bytes"] for r in file.get("routes", []) if "bytes" in r), None)
