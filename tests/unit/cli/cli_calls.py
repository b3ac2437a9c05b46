"""Calls of the command line within a test's process."""

from pathlib import Path

from agglearn.cli import main


def state(folder: Path) -> dict:
    """Content of everything below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def run(*arguments: str) -> int:
    """Exit status of a command."""
    try:
        return main(list(arguments))
    except SystemExit as leaving:
        return leaving.code
