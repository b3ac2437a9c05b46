"""Receipts of what was sent: `attempts` that failed, `store` (its mark), `experiments`: name → state, of which `status`
is `ok` or `pending`. The workflow asks while it plans, so nothing heavy is imported."""

import contextlib
import json
import sqlite3
from pathlib import Path

from agglearn.storage import digest

SQLITE = "sqlite:///"
KEY = "agglearn.run"  # tag of MLflow's runs that identifies them
SITE = "/agglearn"  # address of the site on the server of `make ui`


def attempts(receipt: Path | str, uri: str) -> int:
    """Failed attempts, one more if the store is gone or another one. Its change makes the rule run again."""
    try:
        content = json.loads(Path(receipt).read_text())
        return content["attempts"] + (content["store"] != mark_of(uri))
    except (OSError, ValueError, KeyError, TypeError):  # there is none that can be read
        return 0


def mark_of(uri: str) -> int | None:
    """The `user_version` of a SQLite store, which differs from that of another one in its place, or None.

    The store is opened for writing, since SQLite then takes back what a killed process was writing.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"file:{uri.removeprefix(SQLITE)}?mode=rw", uri=True)) as store:
            return store.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error:
        return None


def overview_key(name: str) -> str:
    return digest([name, "overview"])
