"""Receipts of what was sent. The workflow asks while it plans, so nothing heavy is imported."""

import contextlib
import functools
import json
import sqlite3
from pathlib import Path
from typing import TypedDict

SQLITE = "sqlite:///"


class Receipt(TypedDict):
    """What became of the experiments that were sent together.

    Attributes
    ----------
    attempts : int
        How often one of them could not be sent.
    experiments : dict
        Name → its state, with the `status` `ok` or `pending`.
    """

    attempts: int
    experiments: dict[str, dict]


def attempts(receipt: Path | str, uri: str) -> int:
    """How often sending failed so far, one more when the store has lost an experiment since, or has vanished.

    It is a parameter of the rule. It changes, and so the rule runs again, exactly when something is left to be sent.
    """
    content = read_receipt(receipt)
    sent = {s["experiment_id"] for s in content["experiments"].values() if s["status"] == "ok"}
    return content["attempts"] + (uri.startswith(SQLITE) and not sent <= _active(uri))


def read_receipt(receipt: Path | str) -> Receipt:
    """Content of a receipt. It is empty where there is none that can be read."""
    try:
        content = json.loads(Path(receipt).read_text())
        return {"attempts": content["attempts"], "experiments": content["experiments"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"attempts": 0, "experiments": {}}


def away_mark(results: Path | str) -> Path:
    """File that is there once the server has not answered in this run."""
    return Path(results) / ".tracking_away"


@functools.cache
def _active(uri: str) -> set[str]:
    """Ids of the experiments in a SQLite store that nobody has deleted. There are none where no store can be read."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{uri.removeprefix(SQLITE)}?mode=ro", uri=True)) as store:
            rows = store.execute("SELECT experiment_id FROM experiments WHERE lifecycle_stage = 'active'")
            return {str(row[0]) for row in rows}
    except sqlite3.Error:
        return set()
