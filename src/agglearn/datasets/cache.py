"""Files that were downloaded or built, each checked, with a note on the route by which it came."""

import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agglearn import local_files
from agglearn.datasets.content import content_digest
from agglearn.errors import DataError
from agglearn.registry import resolve
from agglearn.storage import digest, file_digest, read_json, write_json


class ChecksumMismatch(Exception):
    @classmethod
    def between(cls, name: str, actual: str, expected: str, kind: str = "sha256") -> Self:
        return cls(f"{name}: {kind} is {actual[:12]}…, expected {expected[:12]}…")


Digests = tuple[str | None, str | None]  # sha256 of a file, and digest of its content: None where none is stated


def stated_digests(spec: dict, route: dict | None = None) -> Digests:
    """Digests that an entry states. A build may make another file than the other routes bring."""
    if route and "content" in route:
        spec = {"sha256": None, "content": route["content"]}
    sha256, content = (None if d == "unknown" else d for d in (spec.get("sha256"), spec.get("content")))
    return sha256, content


def check_digest(path: Path, name: str, expected: Digests) -> str:
    if path.stat().st_size == 0:
        raise ChecksumMismatch(f"{name}: the file is empty")
    actual, (sha256, content) = file_digest(path), expected
    if actual == sha256 or not any(expected):
        return actual
    if not content:
        raise ChecksumMismatch.between(name, actual, str(sha256))
    try:
        actual_content = content_digest(path)
    except DataError as error:
        raise ChecksumMismatch(f"{name}: {error}") from None
    if actual_content != content:
        raise ChecksumMismatch.between(name, actual_content, content, "digest of the content")
    return actual


@dataclass(frozen=True)
class Cached:
    path: Path
    spec: dict
    routes: list[dict]

    @property
    def note(self) -> Path:
        return local_files.note_of(self.path)

    def find(self) -> dict | None:
        """The note, if the file came by a route of the entry. A file that changed since goes aside."""
        if not self.path.is_file():
            return None
        note = self._read_note()
        current = next((r for r in self.routes if note.get("route") == key(r)), None)
        expected = self._find_expected(current, note) if current else stated_digests(self.spec)
        if not any(expected):
            return None  # nothing ties these bytes to the routes of today
        try:
            sha256 = check_digest(self.path, str(self.path), expected)
        except ChecksumMismatch as error:
            if note and not current:
                return None
            aside = self.path.with_name(self.path.name + ".wrong")
            os.replace(self.path, aside)
            raise ChecksumMismatch(f"{error} (moved to {aside.name})") from None
        return describe(self.path, sha256, note.get("origin", "cache"), note.get("kind", "cache"))

    def keep(self, new: Path, route: dict, origin: str) -> dict:
        note = self._read_note()
        before = note if note.get("route") == key(route) else {}
        try:
            sha256 = check_digest(new, origin, self._find_expected(route, before))
        except ChecksumMismatch as error:
            if not before or any(stated_digests(self.spec, route)):
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

    def _find_expected(self, route: dict, note: dict) -> Digests:
        expected = stated_digests(self.spec, route)
        return expected if any(expected) else (note.get("sha256"), note.get("content"))


def key(route: dict) -> str:
    """Digest that changes when a route may bring another file."""
    code = _code_digests(route["function"]) if "function" in route else []
    return digest([{k: v for k, v in route.items() if k != "bytes"}, code])


def _code_digests(function: str) -> list[str]:
    folder = Path(inspect.getfile(resolve(function))).parent
    return [file_digest(path) for path in sorted(folder.glob("*.py"))]


def describe(path: Path, sha256: str, origin: str, kind: str) -> dict:
    return {"path": str(path), "sha256": sha256, "bytes": path.stat().st_size, "origin": origin, "kind": kind}
