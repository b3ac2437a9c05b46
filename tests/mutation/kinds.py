"""Bugs of the kinds that people make, planted by hand: the edits of `kinds.toml`."""

import contextlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation import sites

KINDS = Path(__file__).with_name("kinds.toml")


@dataclass(frozen=True, order=True)
class Edit:
    """A bug: `new` in the place of `old`, which stands once in a file. The interface is that of `sites.Mutant`."""

    kind: str
    path: str
    old: str
    new: str

    @property
    def start(self) -> tuple[int, int]:
        """Line (from 1) and column of the old text."""
        before = (sites.ROOT / self.path).read_text().partition(self.old)[0]
        return before.count("\n") + 1, len(before) - before.rfind("\n") - 1

    @property
    def end(self) -> tuple[int, int]:
        """Last line of the old text. Its column is not used."""
        return self.start[0] + self.old.count("\n"), 0

    @property
    def place(self) -> str:
        """Kind, file and line."""
        return f"{self.kind}: {self.path}:{self.start[0]}"

    def line(self) -> str:
        """First line that changes, as it is."""
        return (sites.ROOT / self.path).read_text().splitlines()[self.start[0] - 1].strip()

    def changed(self) -> str:
        """The same line after the edit."""
        text = (sites.ROOT / self.path).read_text()
        return text.replace(self.old, self.new).splitlines()[self.start[0] - 1].strip()

    @contextlib.contextmanager
    def planted(self, root: Path) -> Iterator[None]:
        """Have the bug in a copy of the project."""
        path = root / self.path
        text = path.read_text()
        path.write_text(text.replace(self.old, self.new))
        try:
            yield
        finally:
            path.write_text(text)


def read_kinds() -> list[dict]:
    """The kinds with their `edits`."""
    return tomllib.loads(KINDS.read_text())["kind"]


def read_edits() -> tuple[list[Edit], list[str]]:
    """The edits of today's code, and a line for each whose old text does not stand once in its file."""
    present, absent = [], []
    for kind in read_kinds():
        for entry in kind["edits"]:
            path = sites.ROOT / entry["file"]
            times = path.read_text().count(entry["old"]) if path.is_file() else 0
            if times == 1:
                present.append(Edit(kind["name"], entry["file"], entry["old"], entry["new"]))
            else:
                absent.append(f"{kind['name']}: {entry['file']} has this text {times} times, not once: {entry['old']}")
    return present, absent
