"""Products of the workflow: folders that are there whole or not at all, with their payload and `manifest.json`.

The manifest has the status (`ok`, `unavailable` or `failed`), the reason, the recipe, and the content digest of every payload
file. Data that cannot be had or made become a status, which does not stop the DAG.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from agglearn.errors import AgglearnError, NotAvailable, describe
from agglearn.storage import atomic_dir, atomic_file, digest, file_digest, read_json, write_json

MANIFEST = "manifest.json"


def manifest(product: Path | str) -> dict:
    """Manifest of a product folder."""
    return read_json(Path(product) / MANIFEST)


def require_product(product: Path | str) -> dict:
    """Manifest of a product that is needed."""
    content = manifest(product)
    if content["status"] != "ok":
        raise (NotAvailable if content["status"] == "unavailable" else AgglearnError)(content["reason"])
    return content


def content_digests(folder: Path | str) -> dict[str, str]:
    """Digest of every file below `folder`, by relative path."""
    folder = Path(folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {p.relative_to(folder).as_posix(): file_digest(p) for p in files}


def content_digest(digests: dict[str, str], folder: str) -> str:
    """Digest of the content of a folder in a product, from the digests of the product's files."""
    return digest({name: value for name, value in digests.items() if name.startswith(f"{folder}/")})


def share_copies(folder: Path, digests: dict[str, str]) -> None:
    """Let files of equal content share their bytes, by hard links, where the file system has them."""
    first: dict[str, Path] = {}
    for name, value in digests.items():
        path = folder / name
        original = first.setdefault(value, path)
        if original is not path:
            with contextlib.suppress(OSError), atomic_file(path) as link:
                os.link(original, link)


def build_product(
    out: Path | str,
    build: Callable[[Path], dict | None],
    upstream: Iterable[Path | str] = (),
    on_missing: str = "report",
    on_failure: Callable[[Exception], object] | None = None,
    recipe: str | None = None,
    terminal: TextIO | None = None,
    facts: dict | None = None,
) -> dict:
    """Build a product folder and return its manifest. `build(folder)` fills it and returns further fields of the manifest.

    NotAvailable, raised by `build` or standing in an upstream product, becomes the status of the product. With
    `on_missing="fail"` it is raised. Any other error leaves no product, unless `on_failure` is given.

    An `ok` product of the same recipe is not replaced by one that is not available: it stays, and a line on `terminal`
    states why.
    """
    before = _before(out)
    stays = recipe is not None and before.get("recipe") == recipe
    try:
        with atomic_dir(out) as work:
            has_begun = False
            try:
                for product in upstream:
                    require_product(product)
                has_begun = True
                fields = {"status": "ok", **(build(work) or {})}
            except NotAvailable as error:
                if stays or on_missing == "fail":
                    raise
                _empty(work)
                other = "; the product that was here has another recipe and was removed" if before else ""
                fields = {"status": "unavailable", "reason": f"{error}{other}"}
            except Exception as error:
                if on_failure is None:
                    raise
                _empty(work)
                fields = {"status": "failed", "reason": describe(error)}
                if has_begun:
                    on_failure(error)
            fields |= {**(facts or {}), "content": content_digests(work), "recipe": recipe}
            share_copies(work, fields["content"])
            write_json(work / MANIFEST, fields)
    except NotAvailable as error:
        if not stays:
            raise
        print(f"agglearn: {out} stays as it is: {error}", file=terminal or sys.stderr)
        return before
    return fields


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _before(out: Path | str) -> dict:
    """Manifest of the product that is there and `ok`. It is empty where there is none."""
    try:
        old = manifest(out)
    except (OSError, ValueError):
        return {}
    return old if old["status"] == "ok" else {}
