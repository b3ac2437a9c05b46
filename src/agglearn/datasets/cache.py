"""Files that were downloaded or built, each with a note on the route by which it came."""

import os
from dataclasses import dataclass
from pathlib import Path

from agglearn import local_files
from agglearn.datasets.checking import ChecksumMismatch, Expected
from agglearn.datasets.content import content_digest
from agglearn.inspection.digests import code_digest
from agglearn.storage import digest, read_json, write_json


@dataclass(frozen=True)
class Cached:
    """One file of the cache."""

    path: Path
    spec: dict
    routes: list[dict]

    @property
    def note(self) -> Path:
        """Path of the note on the file's route."""
        return local_files.note_of(self.path)

    def find(self) -> dict | None:
        """The file, if it is there and came by a route of the entry. One that changed since goes aside."""
        if not self.path.is_file():
            return None
        note = read_json(self.note) if self.note.is_file() else {}
        current = next((r for r in self.routes if note.get("route") == key(r)), None)
        expected = self._find_expected(current, note) if current else stated_digests(self.spec)
        if not expected.exists:
            return None  # nothing ties these bytes to the routes of today
        try:
            sha256 = expected.check(self.path, str(self.path))
        except ChecksumMismatch as error:
            if note and not current:
                return None
            aside = self.path.with_name(self.path.name + ".wrong")
            os.replace(self.path, aside)
            raise ChecksumMismatch(f"{error} (moved to {aside.name})") from None
        return describe(self.path, sha256, note.get("origin", "cache"), note.get("kind", "cache"))

    def keep(self, new: Path, route: dict, origin: str) -> dict:
        """Check a new file that came by a route, and put it in place."""
        note = read_json(self.note) if self.note.is_file() else {}
        before = note if note.get("route") == key(route) else {}
        try:
            sha256 = self._find_expected(route, before).check(new, origin)
        except ChecksumMismatch as error:
            if not before or stated_digests(self.spec, route).exists:
                raise
            raise ChecksumMismatch(f"{error} as it first came (delete {self.note} to take the new one)") from None
        written = {"route": key(route), "sha256": sha256, "origin": origin, "kind": route["kind"]}
        if route["kind"] == "build":
            written["content"] = content_digest(new)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.note.unlink(missing_ok=True)  # between the two steps the file has no note rather than a wrong one
        os.replace(new, self.path)
        write_json(self.note, written)
        return describe(self.path, sha256, origin, route["kind"])

    def _find_expected(self, route: dict, note: dict) -> Expected:
        """The digests that the entry states, else those of the first time."""
        expected = stated_digests(self.spec, route)
        return expected if expected.exists else Expected(note.get("sha256"), note.get("content"))


def stated_digests(spec: dict, route: dict | None = None) -> Expected:
    """Digests that an entry states for a file. A build may make another file than the other routes bring."""
    if route and "content" in route:
        return Expected.from_entry(None, route["content"])
    return Expected.from_entry(spec["sha256"], spec.get("content"))


def key(route: dict) -> str:
    """Digest that changes when a route may bring another file."""
    code = code_digest(route["function"]) if "function" in route else ""
    return digest([{k: v for k, v in route.items() if k != "bytes"}, code])


def describe(path: Path, sha256: str, origin: str, kind: str) -> dict:
    """The entry of a file in `files.json`."""
    return {"path": str(path), "sha256": sha256, "bytes": path.stat().st_size, "origin": origin, "kind": kind}


def mirror_urls(folder: str, file: str, config: dict) -> list[dict]:
    """Mirrors that are URLs, as routes."""
    return [{"kind": "mirror", "url": p} for p in local_files.list_mirrors(folder, file, config) if "://" in p]
