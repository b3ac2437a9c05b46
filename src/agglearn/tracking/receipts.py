"""Receipts of what was sent. Imports nothing heavy: the workflow asks while it plans."""

import json
from pathlib import Path


def attempts(receipt, uri: str) -> int:
    """How often sending failed so far, one more when the store has vanished since.

    A parameter of the rule: it changes, and so the rule runs again, exactly when something is left to be sent.
    """
    try:
        count = json.loads(Path(receipt).read_text())["attempts"]
    except (OSError, ValueError, KeyError):
        return 0
    lost = uri.startswith("sqlite:///") and not Path(uri.removeprefix("sqlite:///")).exists()
    return count + lost
