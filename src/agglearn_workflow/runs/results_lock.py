"""One workflow per results folder, by a kernel lock: unlike a lock file it vanishes with a killed process."""

import fcntl
import sys
from pathlib import Path
from typing import TextIO

_handles: list[TextIO] = []


def acquire(path: Path | str) -> TextIO:
    """Take the lock until the file is closed, or leave with one line. Without locks in the file system, only warn."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open(path, "w")  # noqa: SIM115
    except OSError as error:
        sys.exit(f"agglearn: {path}: {error.strerror}; `results:` in config/config.yaml names another folder")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        sys.exit(f"agglearn: {path}: another run is working in this folder; wait for it or stop it")
    except OSError as error:
        print(
            f"agglearn: {path}: this file system has no locks ({error.strerror}); start no second run in this folder",
            file=sys.stderr,
        )
    _handles.append(handle)
    return handle
