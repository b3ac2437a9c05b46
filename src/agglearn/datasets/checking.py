"""Checks that a file is the one that an entry names: by its bytes, or by its content."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agglearn.datasets.content import content_digest
from agglearn.errors import DataError
from agglearn.storage import file_digest


class ChecksumMismatch(Exception):
    """A file is there but is not the one that the entry names."""


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

    def check(self, path: Path, shown: str) -> str:
        """The sha256 of a file that is right."""
        if path.stat().st_size == 0:
            raise ChecksumMismatch(f"{shown}: the file is empty")
        sha256 = file_digest(path)
        if not self.exists or sha256 == self.sha256:
            return sha256
        if self.content:
            content = _content(path, shown)
            if content != self.content:
                raise ChecksumMismatch(differs(shown, content, self.content, "digest of the content"))
        elif self.sha256:
            raise ChecksumMismatch(differs(shown, sha256, self.sha256))
        return sha256


def _content(path: Path, shown: str) -> str:
    try:
        return content_digest(path)
    except DataError as error:
        raise ChecksumMismatch(f"{shown}: {error}") from None


def differs(shown: str, actual: str, expected: str, kind: str = "sha256") -> str:
    """The message on a wrong digest."""
    return f"{shown}: {kind} is {actual[:12]}…, expected {expected[:12]}…"
