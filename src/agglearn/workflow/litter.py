"""What killed runs leave in a results folder: products that were being written, and products that were being replaced.

Names are those of `storage.atomic_dir` and `storage.atomic_file`. Only the holder of the folder's lock may sweep.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from agglearn.workflow.scales import SCALES

FOLDERS = (
    "runs", "records", "sources", "observations", "measurements/*", "tables", "figures", "tracking",
    "claims", "outcome",
)  # fmt: skip
REPLACED = re.compile(r"\.(?P<name>.+)\.old\.[a-z0-9_]{8}")
FOLDER = re.compile(r"\..+\.[a-z0-9_]{8}")
FILE = re.compile(r"\.\d+\..+")


def sweep(results: Path | str) -> int:
    """Delete what was being written, put back what was being replaced by it, and return how many things there were."""
    count = 0
    for path in list(_hidden(Path(results))):
        replaced = REPLACED.fullmatch(path.name)
        if path.is_dir() and replaced:
            product, old = path.with_name(replaced["name"]), path / "was"
            if old.exists() and not product.exists():
                os.rename(old, product)
            shutil.rmtree(path)
        elif path.is_dir() and FOLDER.fullmatch(path.name):
            shutil.rmtree(path)
        elif path.is_file() and FILE.fullmatch(path.name):
            path.unlink()
        else:
            continue
        count += 1
    return count


def _hidden(results: Path) -> Iterator[Path]:
    """Hidden things in the folders of products, of all scales."""
    for folder in (results, *(results / scale for scale in SCALES)):
        for parent in (folder, *(p for pattern in FOLDERS for p in folder.glob(pattern))):
            if parent.is_dir():
                yield from (Path(e.path) for e in os.scandir(parent) if e.name.startswith("."))
