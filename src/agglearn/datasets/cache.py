"""Files that were downloaded or built, each checked, with a note on the route by which it came."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agglearn import local_files
from agglearn.datasets.content import content_digest
from agglearn.errors import DataError
from agglearn.inspection.digests import code_digest
from agglearn.storage import digest, file_digest, read_json, write_json


class ChecksumMismatch(Exception):
    """A file is there but is not the one that the entry names."""

    @classmethod
    def between(cls, name: str, actual: str, expected: str, kind: str = "sha256") -> Self:
        """The error on a wrong digest."""
        return cls(f"{name}: {kind} is {actual[:12]}…, expected {expected[:12]}…")


@dataclass(frozen=True)
class Expected:
    """Digests of the right file, None where none is stated. One of the two suffices."""

    sha256: str | None
    content: str | None

    @classmethod
    def from_entry(cls, sha256: str | None, content: str | None) -> Self:
        """From an entry, in which `unknown` means that none is stated."""
        return cls(*(None if d in (None, "unknown") else d for d in (sha256, content)))

    @property
    def exists(self) -> bool:
        """Whether there is a digest."""
        return bool(self.sha256 or self.content)

    def check(self, path: Path, name: str) -> str:
        """The sha256 of a file that is right."""
        if path.stat().st_size == 0:
            raise ChecksumMismatch(f"{name}: the file is empty")
        sha256 = file_digest(path)
        if not self.exists or sha256 == self.sha256:
            return sha256
        if not self.content:
            raise ChecksumMismatch.between(name, sha256, str(self.sha256))
        try:
            content = content_digest(path)
        except DataError as error:
            raise ChecksumMismatch(f"{name}: {error}") from None
        if content != self.content:
            raise ChecksumMismatch.between(name, content, self.content, "digest of the content")
        return sha256


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
        note = self._read_note()
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
        note = self._read_note()
        before = note if note.get("route") == key(route) else {}
        try:
            sha256 = self._find_expected(route, before).check(new, origin)
        except ChecksumMismatch as error:
            if not before or stated_digests(self.spec, route).exists:
                raise
            raise ChecksumMismatch(f"{error} as it first came (delete {self.note} to take the new one)") from None
        note = {"route": key(route), "sha256": sha256, "origin": origin, "kind": route["kind"]}
        if route["kind"] == "build":
            note["content"] = content_digest(new)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.note.unlink(missing_ok=True)  # between the two steps the file has no note rather than a wrong one
        os.replace(new, self.path)
        write_json(self.note, note)
        return describe(self.path, sha256, origin, route["kind"])

    def _read_note(self) -> dict:
        return read_json(self.note) if self.note.is_file() else {}

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
