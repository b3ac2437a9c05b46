"""Products of the workflow: folders, there whole or not at all, with payload and `manifest.json`: status (`ok`,
`unavailable` or `failed`), reason, recipe, digests of the payload. Data that cannot be had do not stop the DAG."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from agglearn.errors import NotAvailable, describe
from agglearn.storage import atomic_dir, digest, file_digest, read_json, write_json

MANIFEST = "manifest.json"


def manifest(product: Path | str) -> dict:
    return read_json(Path(product) / MANIFEST)


def content_digests(folder: Path | str) -> dict[str, str]:
    """Digest of every file below `folder`, by relative path."""
    folder = Path(folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {p.relative_to(folder).as_posix(): file_digest(p) for p in files}


def content_digest(digests: dict[str, str], folder: str) -> str:
    """Digest of the content of a folder in a product, from the digests of the product's files."""
    return digest({name: value for name, value in digests.items() if name.startswith(f"{folder}/")})


def build_product(
    out: Path | str,
    build: Callable[[Path], dict | None],
    on_missing: str = "report",
    on_failure: Callable[[Exception], object] | None = None,
    terminal: TextIO | None = None,
    **stated: object,
) -> dict:
    """Build a product by `build(folder)`, which returns further fields of the manifest, and return the manifest.
    NotAvailable is the status of the product, or raised with `on_missing="fail"`. Other errors leave no product, unless
    `on_failure` is given. The manifest has the `stated` fields as well. An `ok` product of the same `recipe` stays when
    data are gone, with a line on `terminal`."""
    try:
        return _write(out, lambda work: {"status": "ok", **(build(work) or {})}, stated)
    except NotAvailable as error:
        before = {"status": "absent"}
        with contextlib.suppress(OSError, ValueError):
            before = manifest(out)
        was_ok = before["status"] == "ok"
        if was_ok and "recipe" in stated and before.get("recipe") == stated["recipe"]:
            print(f"agglearn: {out} stays as it is: {error}", file=terminal or sys.stderr)
            return before
        if on_missing == "fail":
            raise
        note = "; the product that was here has another recipe and was removed" if was_ok else ""
        outcome = {"status": "unavailable", "reason": f"{error}{note}"}
    except Exception as error:
        if on_failure is None:
            raise
        on_failure(error)
        outcome = {"status": "failed", "reason": describe(error)}
    return _write(out, lambda work: outcome, stated)


def _write(out: Path | str, build: Callable[[Path], dict], stated: dict) -> dict:
    with atomic_dir(out) as work:
        fields = build(work) | stated
        fields["content"] = content_digests(work)
        write_json(work / MANIFEST, fields)
    return fields
