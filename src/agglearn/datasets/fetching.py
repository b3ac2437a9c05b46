"""Getting the files of a data set: cache, mirrors, then upstream; checked, atomic, resumable.

Files found in a mirror or at a local path are used where they lie. Downloads go to `<cache>/<dataset>/`, into a
`.part` file that a later attempt continues.
"""

import os
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path

from agglearn.errors import DataError, NotAvailable
from agglearn.products import atomic_file, file_digest, write_json

TIMEOUT = 20  # seconds without an answer
BLOCK = 1 << 20


class Mismatch(Exception):
    """A file is there but is not the one that the entry names."""


def fetch(name: str, entry: dict, config: dict, base: Path, out: Path, terminal=sys.stderr) -> dict:
    """Find or download every file of an entry and write `files.json` (name → path, sha256, origin) into `out`.

    Parameters
    ----------
    name, entry : the data set.
    config : effective configuration (`mirrors`, `cache`).
    base : project root; relative paths start there.
    out : product folder being built.
    terminal : where progress goes.

    Raises
    ------
    NotAvailable : a file can be had nowhere; the text lists what was tried.
    DataError : copies were found, but none with the right checksum.
    """
    found = {}
    for file, origin in entry.get("files", {}).items():
        found[file] = _one(name, file, origin, entry.get("mirror", name), config, base, terminal)
    write_json(out / "files.json", found)
    return {"origins": {f: v["origin"] for f, v in found.items()}}


def _one(name, file, origin, folder, config, base, terminal) -> dict:
    cached = base / config["cache"] / name / file
    wanted, tried, wrong = origin["sha256"], [], []
    places: list[tuple[str, object]] = [("cache", cached)]
    if "path" in origin:
        places.append((origin["path"], base / origin["path"]))
    members = {}
    for route in origin.get("routes", [{"kind": "mirror"}]):
        if route["kind"] == "mirror":
            for mirror in config["mirrors"]:
                place = f"{mirror.rstrip('/')}/{folder}/{file}"
                places.append((place, place if "://" in mirror else base / place))
        elif "url" in route:
            places.append((route["url"], route["url"]))
            members[route["url"]] = route.get("member")
    for shown, place in places:
        try:
            if isinstance(place, Path):
                if not place.is_file():
                    if shown != "cache":
                        tried.append(f"{shown}: no such file")
                    continue
                path = place
            else:
                path = _download(place, cached, members.get(place), wanted, terminal)
            return _checked(file, path, wanted, shown, moveable=path == cached)
        except Mismatch as error:
            wrong.append(str(error))
            print(f"agglearn: {error}", file=terminal)
        except (OSError, urllib.error.URLError, zipfile.BadZipFile) as error:
            tried.append(f"{shown}: {getattr(error, 'reason', None) or error}")
    if wrong:
        raise DataError(
            f"{name}: {'; '.join(wrong)}; restore the file, or set its sha256 in config/datasets/{name}.yaml if the new one is right"
        )
    raise NotAvailable(f"{file} cannot be had ({'; '.join(tried) or 'the entry names no place'})")


def _checked(file: str, path: Path, wanted: str, shown: str, moveable: bool) -> dict:
    size = path.stat().st_size
    found = file_digest(path)
    note = path.with_name(path.name + ".sha256")
    if wanted == "unknown":
        # no published digest: what came first is the reference for later
        wanted = note.read_text().strip() if moveable and note.exists() else found
        if moveable and not note.exists():
            note.write_text(found + "\n")
    if found != wanted:
        where = str(path)
        if moveable:
            aside = path.with_name(path.name + ".wrong")
            os.replace(path, aside)
            where = f"{path} (moved to {aside.name})"
        raise Mismatch(f"{where}: sha256 is {found[:12]}…, expected {wanted[:12]}…")
    if size == 0:
        raise DataError(f"{path}: the file is empty; restore it or remove the entry")
    return {"path": str(path), "sha256": found, "origin": shown, "bytes": size}


def _download(url: str, target: Path, member: str | None, wanted: str, terminal) -> Path:
    """Download into the cache, continuing a partial file; of an archive keep the member only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = target if member is None else target.with_name(url.rsplit("/", 1)[-1])
    part = whole.with_name(whole.name + ".part")
    done, total = part.stat().st_size if part.exists() else 0, 0
    request = urllib.request.Request(
        url, headers={"User-Agent": "agglearn"} | ({"Range": f"bytes={done}-"} if done else {})
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            resumed = done and answer.status == 206
            total = int(answer.headers.get("Content-Length") or 0) + (done if resumed else 0)
            with open(part, "ab" if resumed else "wb") as handle:
                _copy(answer, handle, done if resumed else 0, total, whole.name, terminal)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: the partial file is already whole
            raise
    if part.stat().st_size < total:
        raise OSError(f"connection ended after {part.stat().st_size:,} bytes; the next run continues")
    os.replace(part, whole)
    if member:
        _unpack(whole, member, target)
    return target


def _unpack(whole: Path, member: str, target: Path) -> None:
    """Keep one member of an archive; the archive goes, good or bad."""
    try:
        if tarfile.is_tarfile(whole):
            with tarfile.open(whole) as archive, archive.extractfile(member) as inside:
                _keep(inside, target)
        else:
            with zipfile.ZipFile(whole) as archive, archive.open(member) as inside:
                _keep(inside, target)
    except KeyError:
        raise OSError(f"the archive has no member {member!r}") from None
    except (zlib.error, tarfile.TarError, EOFError) as error:
        raise OSError(f"the archive is damaged: {error}") from None
    finally:
        whole.unlink()


def _keep(inside, target: Path) -> None:
    with atomic_file(target) as work, open(work, "wb") as out:
        shutil.copyfileobj(inside, out, BLOCK)


def _copy(source, sink, done: int, total: int, name: str, terminal) -> None:
    shown = time.monotonic()
    while block := source.read(BLOCK):
        sink.write(block)
        done += len(block)
        if time.monotonic() - shown > 2:
            shown = time.monotonic()
            share = f"{100 * done / total:.0f} % of {total / 1e6:,.0f} MB" if total else f"{done / 1e6:,.0f} MB"
            print(f"fetching {name}: {share}", file=terminal, flush=True)
    if total and total > 10 * BLOCK:
        print(f"fetching {name}: done, {done / 1e6:,.0f} MB", file=terminal, flush=True)
