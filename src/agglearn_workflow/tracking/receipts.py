"""Receipts of what was sent: `attempts`, how often an experiment could not be, `store`, the mark of the store, and `experiments`,
name → state with the `status` `ok` or `pending`. The workflow asks while it plans, so nothing heavy is imported.
"""

import contextlib
import json
import sqlite3
from pathlib import Path

from agglearn.storage import digest

SQLITE = "sqlite:///"
KEY = "agglearn.run"  # tag of MLflow's runs that identifies them
SITE = "/agglearn"  # address of the site on the server of `make ui`


def attempts(receipt: Path | str, uri: str) -> int:
    """How often sending failed so far, one more when the store has vanished since, or another one stands in its place.

    It is a parameter of the rule. It changes, and so the rule runs again, exactly when something is left to be sent.
    """
    try:
        content = json.loads(Path(receipt).read_text())
        return content["attempts"] + (content["store"] != mark_of(uri))
    except (OSError, ValueError, KeyError, TypeError):  # there is none that can be read
        return 0


def mark_of(uri: str) -> int | None:
    """The `user_version` of a SQLite store, which tells it from another one at the same place. None for what is no such store."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{uri.removeprefix(SQLITE)}?mode=ro", uri=True)) as store:
            return store.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error:
        return None


def overview_key(name: str) -> str:
    return digest([name, "overview"])
