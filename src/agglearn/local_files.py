"""Paths of the files of data sets on this machine. Nothing heavy is imported: planning asks."""

from pathlib import Path

DEFAULT_ROUTES = [{"kind": "mirror"}]


def routes(spec: dict) -> list[dict]:
    return spec.get("routes", DEFAULT_ROUTES)


def expand_routes(folder: str, file: str, spec: dict, config: dict) -> list[dict]:
    """Routes in order of trial: the user's own path, then the entry's, with `path` or `url` for each mirror."""
    addresses = [f"{mirror.rstrip('/')}/{folder}/{file}" for mirror in config["mirrors"]]
    mirrors = [{"kind": "mirror", "url" if "://" in address else "path": address} for address in addresses]
    path = [{"kind": "path", "path": spec["path"]}] if "path" in spec else []
    return path + [r for route in routes(spec) for r in (mirrors if route["kind"] == "mirror" else [route])]


def note_of(path: Path) -> Path:
    """File in which the cache notes by which route a file came."""
    return path.with_name(f".{path.name}.json")


def local_candidates(name: str, entry: dict, config: dict, base: Path) -> list[Path]:
    """Local files that could serve an entry, existing or not: what makes fetch run again when it changes."""
    folder, paths = entry.get("mirror", name), []
    for file, spec in entry.get("files", {}).items():
        paths += _list_local(folder, file, spec, config, base)
        for route in routes(spec):
            paths += local_candidates(folder, {"files": route.get("inputs", {})}, config, base)
    return paths


def local_copies(name: str, entry: dict, config: dict, base: Path) -> dict[str, Path | None]:
    """File → path in the cache, of its own or in a mirror, None where it must be fetched. Digests are not checked."""
    copies = {}
    for file, spec in entry.get("files", {}).items():
        local = _list_local(entry.get("mirror", name), file, spec, config, base)
        copies[file] = next((p for p in [base / config["cache"] / name / file, *local] if p.is_file()), None)
    return copies


def _list_local(folder: str, file: str, spec: dict, config: dict, base: Path) -> list[Path]:
    return [base / r["path"] for r in expand_routes(folder, file, spec, config) if "path" in r]
