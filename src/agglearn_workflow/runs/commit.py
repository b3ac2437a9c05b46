"""The commit of the working tree."""

import functools
import subprocess
from pathlib import Path


@functools.cache
def commit() -> str | None:
    """Commit of the working tree, with a mark when it holds changes. It is None outside a repository."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None
