"""Paths of files on this machine: those of the project, and those of data sets.

The workflow asks while it plans, so nothing heavy is imported.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SHIPPED = PACKAGE / "project"  # in a wheel, where `setup.py` puts the files
DEFAULT_ROUTES = [{"kind": "mirror"}]


def project_files() -> Path:
    """Folder with the files of the project besides the package: Snakefile, `rules/`, `workflow/`, `config/`, `profiles/`, `docs/`.

    It is the root of a checkout, or a folder inside an installed package. Nothing is written there: relative folders of the
    configuration (`results`, `cache`, `mirrors`, `code`) and its own `config/` belong to the current folder.
    """
    checkout = PACKAGE.parents[1]
    return checkout if (checkout / "Snakefile").is_file() else SHIPPED


def routes(spec: dict) -> list[dict]:
    """Routes of a file in order of trial."""
    return spec.get("routes", DEFAULT_ROUTES)


def list_mirrors(folder: str, file: str, config: dict) -> list[str]:
    """Paths and URLs of a file in the mirrors."""
    return [f"{mirror.rstrip('/')}/{folder}/{file}" for mirror in config["mirrors"]]


def note_of(path: Path) -> Path:
    """File in which the cache notes by which route a file came."""
    return path.with_name(f".{path.name}.json")


def local_candidates(name: str, entry: dict, config: dict, base: Path) -> list[Path]:
    """Local files that could serve an entry, existing or not: what makes fetch run again when it changes."""
    paths = []
    for file, spec in entry.get("files", {}).items():
        paths += _candidates(entry.get("mirror", name), file, spec, config, base)
    return paths


def local_copies(name: str, entry: dict, config: dict, base: Path) -> dict[str, Path | None]:
    """File → its path on this machine now, in the cache, at its own path or in a mirror. It is None where it must be fetched.

    Digests are not checked.
    """
    copies = {}
    for file, spec in entry.get("files", {}).items():
        paths = [
            base / config["cache"] / name / file,
            *_user_paths(entry.get("mirror", name), file, spec, config, base),
        ]
        copies[file] = next((p for p in paths if p.is_file()), None)
    return copies


def _user_paths(folder: str, file: str, spec: dict, config: dict, base: Path) -> list[Path]:
    """The user's own path and local mirrors of one file."""
    paths = [base / spec["path"]] if "path" in spec else []
    if any(r["kind"] == "mirror" for r in routes(spec)):
        paths += [base / p for p in list_mirrors(folder, file, config) if "://" not in p]
    return paths


def _candidates(folder: str, file: str, spec: dict, config: dict, base: Path) -> list[Path]:
    paths = _user_paths(folder, file, spec, config, base)
    for route in routes(spec):
        for name, required in route.get("inputs", {}).items():
            paths += _candidates(folder, name, required, config, base)
    return paths
