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
    """One file of the cache.

    Attributes
    ----------
    path : where it lies, whether it is there or not.
    spec : the file's part of the entry.
    routes : the entry's routes, and the mirrors that are URLs.
    """

    path: Path
    spec: dict
    routes: list[dict]

    @property
    def note(self) -> Path:
        return local_files.note_of(self.path)

    def found(self) -> dict | None:
        """The file, if it is there and came by a route of the entry. One that changed since goes aside.

        Raises
        ------
        ChecksumMismatch : it changed since.
        """
        if not self.path.is_file():
            return None
        note = read_json(self.note) if self.note.is_file() else {}
        current = next((r for r in self.routes if note.get("route") == key(r)), None)
        expected = self._expected(current, note) if current else stated(self.spec)
        if not expected.known:
            return None  # nothing ties these bytes to the routes of today
        try:
            sha256 = expected.check(self.path, str(self.path))
        except ChecksumMismatch as error:
            if note and not current:
                return None
            aside = self.path.with_name(self.path.name + ".wrong")
            os.replace(self.path, aside)
            raise ChecksumMismatch(f"{error} (moved to {aside.name})") from None
        return described(self.path, sha256, note.get("origin", "cache"), note.get("kind", "cache"))

    def keep(self, made: Path, route: dict, origin: str) -> dict:
        """Check a file that came by a route, and put it in place.

        Raises
        ------
        ChecksumMismatch : it is not the right one, or not the one that came by this route before.
        """
        note = read_json(self.note) if self.note.is_file() else {}
        before = note if note.get("route") == key(route) else {}
        try:
            sha256 = self._expected(route, before).check(made, origin)
        except ChecksumMismatch as error:
            if not before or stated(self.spec, route).known:
                raise
            raise ChecksumMismatch(f"{error} as it first came (delete {self.note} to take the new one)") from None
        written = {"route": key(route), "sha256": sha256, "origin": origin, "kind": route["kind"]}
        if route["kind"] == "build":
            written["content"] = content_digest(made)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.note.unlink(missing_ok=True)  # between the two steps the file has no note rather than a wrong one
        os.replace(made, self.path)
        write_json(self.note, written)
        return described(self.path, sha256, origin, route["kind"])

    def _expected(self, route: dict, note: dict) -> Expected:
        """The digests that the entry states; where it states none, those of the first time."""
        expected = stated(self.spec, route)
        return expected if expected.known else Expected(note.get("sha256"), note.get("content"))


def stated(spec: dict, route: dict | None = None) -> Expected:
    """Digests that an entry states for a file; a build may make another file than the other routes bring."""
    if route and "content" in route:
        return Expected.of(None, route["content"])
    return Expected.of(spec["sha256"], spec.get("content"))


def key(route: dict) -> str:
    """What changes when a route may bring another file."""
    code = code_digest(route["function"]) if "function" in route else ""
    return digest([{k: v for k, v in route.items() if k != "bytes"}, code])


def described(path: Path, sha256: str, origin: str, kind: str) -> dict:
    """What `files.json` states about a file."""
    return {"path": str(path), "sha256": sha256, "bytes": path.stat().st_size, "origin": origin, "kind": kind}


def mirror_urls(folder: str, file: str, config: dict) -> list[dict]:
    """Mirrors that are URLs, as routes."""
    return [{"kind": "mirror", "url": p} for p in local_files.mirrored(folder, file, config) if "://" in p]
