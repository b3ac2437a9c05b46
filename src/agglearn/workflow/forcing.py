"""Batches whose runs are to be computed again although they hold, as `--forceall` and `--forcerun` ask.

The workflow's main process marks a batch before its job starts. The job computes every run that is older than the mark, and
takes the mark away when all are there. A job that is killed goes on from there when it is started again.
"""

from pathlib import Path

FOLDER = "forced"


def mark(results: Path | str, experiment: str, batch: str) -> None:
    """Mark a batch."""
    path = _path(results, experiment, batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")


def marked_at(results: Path | str, experiment: str, batch: str) -> int:
    """Time of a batch's mark, in nanoseconds of the file system's clock, or 0 where it has none."""
    path = _path(results, experiment, batch)
    return path.stat().st_mtime_ns if path.exists() else 0


def unmark(results: Path | str, experiment: str, batch: str) -> None:
    """Take the mark of a batch away."""
    _path(results, experiment, batch).unlink(missing_ok=True)


def _path(results: Path | str, experiment: str, batch: str) -> Path:
    return Path(results) / FOLDER / experiment / batch
