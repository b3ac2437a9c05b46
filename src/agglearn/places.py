"""Where a data set's files may lie on this machine. Imports nothing heavy: the workflow asks while it plans."""

from pathlib import Path


def local_candidates(name: str, entry: dict, config: dict, base: Path) -> list[Path]:
    """Local files that could serve an entry, existing or not: what makes fetch run again when it changes."""
    paths = []
    for file, origin in entry.get("files", {}).items():
        if "path" in origin:
            paths.append(base / origin["path"])
        if {"kind": "mirror"} in origin.get("routes", [{"kind": "mirror"}]):
            paths += [base / m / entry.get("mirror", name) / file for m in config["mirrors"] if "://" not in m]
    return paths
