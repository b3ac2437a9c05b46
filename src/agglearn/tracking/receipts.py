"""Receipts of what was sent. Imports nothing heavy: the workflow asks while it plans."""

import contextlib
import functools
import json
import sqlite3
from pathlib import Path

SQLITE = "sqlite:///"


def attempts(receipt, uri: str) -> int:
    """How often sending failed so far, one more when the store has lost the experiment since, or has vanished.

    A parameter of the rule: it changes, and so the rule runs again, exactly when something is left to be sent.
    """
    said = read_receipt(receipt)
    lost = said.get("status") == "ok" and uri.startswith(SQLITE) and said["experiment_id"] not in _active(uri)
    return said.get("attempts", 0) + lost


def read_receipt(receipt) -> dict:
    """Content of a receipt; empty where there is none that can be read."""
    try:
        return json.loads(Path(receipt).read_text())
    except (OSError, ValueError):
        return {}


def away_mark(results) -> Path:
    """File that is there once the server has not answered in this run."""
    return Path(results) / ".tracking_away"


@functools.cache
def _active(uri: str) -> set[str]:
    """Ids of the experiments in a SQLite store that nobody has deleted; none where there is no store that can be read."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{uri.removeprefix(SQLITE)}?mode=ro", uri=True)) as store:
            rows = store.execute("SELECT experiment_id FROM experiments WHERE lifecycle_stage = 'active'")
            return {str(row[0]) for row in rows}
    except sqlite3.Error:
        return set()
