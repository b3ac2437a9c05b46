"""Whether a file is the one that an entry names: by its bytes, or by what it holds."""

from dataclasses import dataclass
from pathlib import Path

from agglearn.datasets.content import content_digest
from agglearn.errors import DataError
from agglearn.storage import file_digest


class ChecksumMismatch(Exception):
    """A file is there but is not the one that the entry names."""


@dataclass(frozen=True)
class Expected:
    """Digests of the right file; None where nobody states one.

    Attributes
    ----------
    sha256 : of the bytes.
    content : of what the file holds, see `content_digest`. One of the two suffices.
    """

    sha256: str | None
    content: str | None

    @classmethod
    def of(cls, sha256: str | None, content: str | None) -> "Expected":
        """From an entry, in which `unknown` means that nobody states one."""
        return cls(*(None if d in (None, "unknown") else d for d in (sha256, content)))

    @property
    def known(self) -> bool:
        return bool(self.sha256 or self.content)

    def check(self, path: Path, shown: str) -> str:
        """The sha256 of a file that is right.

        Parameters
        ----------
        shown : what the message calls the file.

        Raises
        ------
        ChecksumMismatch : it is empty or another one.
        """
        if path.stat().st_size == 0:
            raise ChecksumMismatch(f"{shown}: the file is empty")
        found = file_digest(path)
        if not self.known or found == self.sha256:
            return found
        if not self.content:
            raise ChecksumMismatch(differs(shown, found, self.sha256))
        content = _content(path, shown)
        if content != self.content:
            raise ChecksumMismatch(differs(shown, content, self.content, "digest of the content"))
        return found


def _content(path: Path, shown: str) -> str:
    try:
        return content_digest(path)
    except DataError as error:
        raise ChecksumMismatch(f"{shown}: {error}") from None


def differs(shown: str, found: str, expected: str, kind: str = "sha256") -> str:
    """The words for a wrong digest."""
    return f"{shown}: {kind} is {found[:12]}…, expected {expected[:12]}…"
