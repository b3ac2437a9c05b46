"""One workflow per results folder, by a kernel lock: unlike a lock file it vanishes with a killed process."""

import fcntl
import sys
from pathlib import Path

_held = []


def hold(path):
    """Take the lock for the life of this process, or leave with one line; closing what is returned gives it back."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = open(path, "w")  # noqa: SIM115
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"agglearn: {path}: another run is working in this folder; wait for it or stop it")
    _held.append(handle)
    return handle
