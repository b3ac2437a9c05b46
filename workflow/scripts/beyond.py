"""Packages that were installed beyond the lock, such as PySpark: named before an environment is made anew, then put back.

    .venv/bin/python workflow/scripts/beyond.py                prints their names
    .venv/bin/python workflow/scripts/beyond.py pyspark …      puts them back

The environment's own copy of the lock that it was made from tells what is beyond. This file imports the standard library only.
"""

import re
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from install import LOCK, find_uv, install, pip_settings

SPARK = LOCK.with_name("requirements-spark.lock")
MADE_FROM = Path(sys.prefix) / ".lock"
NEVER = {"agglearn", "pip", "setuptools", "wheel"}


def beyond() -> list[str]:
    """Packages that somebody asked for and that the lock does not name, but for those that lie on this machine only."""
    locked = names(MADE_FROM if MADE_FROM.exists() else LOCK)
    asked = [d for d in metadata.distributions() if d.read_text("REQUESTED") is not None]
    return sorted({normal(d.name) for d in asked if d.read_text("direct_url.json") is None} - locked - NEVER)


def names(lock: Path) -> set[str]:
    """Names of the packages of a lock."""
    return {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(), re.M)}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def put_back(packages: list[str]) -> int:
    """Install packages again, those of Spark's lock as it names them, and return the exit status."""
    uv, pip, status = find_uv(LOCK), pip_settings(), 0
    if set(packages) & names(SPARK):
        status = install(["--no-build-isolation", "--require-hashes", "-r", str(SPARK)], uv, pip)
    if rest := [p for p in packages if p not in names(SPARK)]:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:  # pip takes no hashes beside packages without one
            pins.writelines(f"{pin}\n" for pin in re.findall(r"^[A-Za-z0-9._-]+==[^ \\;]+", LOCK.read_text(), re.M))
            pins.flush()
            status = install(["-c", pins.name, *rest], uv, pip) or status
    return status


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(put_back(sys.argv[1:]))
    print(*beyond())
