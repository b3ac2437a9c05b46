"""The routes to a file: local folders, downloads, packages of the index, and functions that build it."""

import contextlib
import http.client
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, TextIO

from agglearn import local_files
from agglearn.datasets import packages
from agglearn.datasets.cache import Cached, describe, mirror_urls, stated_digests
from agglearn.datasets.checking import ChecksumMismatch, Expected
from agglearn.datasets.downloading import Downloads
from agglearn.datasets.unpacking import UnreadableArchive, unpack
from agglearn.errors import DataError, NotAvailable
from agglearn.registry import resolve


class Fetcher:
    """Gets the files of one data set by their routes."""

    def __init__(
        self, name: str, entry: dict, config: dict, base: Path, downloads: Downloads, terminal: TextIO
    ) -> None:
        self.name, self.folder, self.config, self.base = name, entry.get("mirror", name), config, base
        self.downloads, self.terminal = downloads, terminal
        named = [_source(r) for r in _all_routes(entry.get("files", {}))]
        self.shared = {n for n in named if named.count(n) > 1}  # downloads that more than one file needs

    def get(self, file: str, spec: dict, cache: Path) -> dict:
        """One file: from `cache` if it is there, else by the first route that brings the right one."""
        target = cache / file
        if not target.resolve().is_relative_to(cache.resolve()):
            raise DataError(f"{self.name}: the file name {file!r} leads out of the cache; use a path below it")
        cached = Cached(target, spec, [*local_files.routes(spec), *mirror_urls(self.folder, file, self.config)])
        tried, wrong = [], []
        for label, attempt in self._attempts(file, cached):
            try:
                if described := attempt():
                    return described
            except ChecksumMismatch as error:
                wrong.append(str(error))
                print(f"agglearn: {error}", file=self.terminal)
            except (OSError, http.client.HTTPException, DataError, NotAvailable) as error:
                tried.append(f"{label}: {_reason(error)}")
        if wrong:
            advice = f"restore the file, or set its sha256 in config/datasets/{self.name}.yaml if the new one is right"
            raise DataError(f"{self.name}: {'; '.join([*wrong, *tried])}; {advice}")
        raise NotAvailable(f"{file} cannot be had ({'; '.join(tried) or 'the entry names no place'})")

    def _attempts(self, file: str, cached: Cached) -> Iterator[tuple[str, Callable[[], dict | None]]]:
        """(label, function that gets the file), in order of trial."""
        spec = cached.spec
        yield "cache", cached.find
        if "path" in spec:
            yield spec["path"], partial(self._use_local, spec["path"], "path", spec)
        for route in local_files.routes(spec):
            if route["kind"] == "build":
                yield route["function"], partial(self._build, file, cached, route)
            elif route["kind"] != "mirror":
                yield _origin(route), partial(self._download, file, cached, route)
            else:
                for address in local_files.list_mirrors(self.folder, file, self.config):
                    if "://" in address:
                        yield address, partial(self._download, file, cached, {"kind": "mirror", "url": address})
                    else:
                        yield address, partial(self._use_local, address, "mirror", spec)

    def _use_local(self, address: str, kind: str, spec: dict) -> dict:
        """A local file, used where it lies."""
        path = self.base / address
        if not path.is_file():
            raise OSError("no such file")
        return describe(path, stated_digests(spec).check(path, address), address, kind)

    def _download(self, file: str, cached: Cached, route: dict) -> dict:
        """A download, or a member of one."""
        whole = self._whole(file, cached.spec, route)
        new = self.downloads.folder / "made" / cached.path.name
        new.parent.mkdir(exist_ok=True)
        try:
            if "member" in route:
                unpack(whole, route["member"], new, cached.spec.get("bytes", 0))
            else:
                os.replace(whole, new)
            described = cached.keep(new, route, _origin(route))
        except (UnreadableArchive, ChecksumMismatch):
            whole.unlink(missing_ok=True)
            raise
        finally:
            new.unlink(missing_ok=True)
        if _source(route) not in self.shared:
            whole.unlink(missing_ok=True)
        return described

    def _whole(self, file: str, spec: dict, route: dict) -> Path:
        """The download of a route, with the digest that the route states for it."""
        whole, expected = self.downloads.path(_source(route)), Expected.from_entry(route.get("sha256"), None)
        if "package" not in route:
            unproven = not (expected.exists or stated_digests(spec, route).exists)
            self.downloads.get(route["url"], file, unproven)
        elif not whole.exists():
            packages.download(route["package"], route["sha256"], whole)
        try:
            expected.check(whole, _origin(route))
        except ChecksumMismatch:
            whole.unlink()
            raise
        return whole

    def _build(self, file: str, cached: Cached, route: dict) -> dict:
        """A file that a function makes from inputs, which are deleted once all of them were there."""
        folder = cached.path.parent / ".inputs" / cached.path.name
        new = folder / ".made" / cached.path.name
        with contextlib.ExitStack() as stack:
            inputs = {n: self._input(n, given, folder, stack) for n, given in route["inputs"].items()}
            new.parent.mkdir(parents=True, exist_ok=True)
            print(f"building {file}", file=self.terminal, flush=True)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)  # wrong inputs must come again
            resolve(route["function"])(inputs, new, **route.get("params", {}))
            return cached.keep(new, route, route["function"])

    def _input(self, name: str, spec: dict, folder: Path, stack: contextlib.ExitStack) -> Path | BinaryIO:
        """The path of an input, or a stream from its first address that answers."""
        if not spec.get("stream"):
            return Path(self.get(name, spec, folder)["path"])
        tried = []
        for route in local_files.routes(spec):
            is_mirror = route["kind"] == "mirror"
            for address in local_files.list_mirrors(self.folder, name, self.config) if is_mirror else [route["url"]]:
                try:
                    if "://" in address:
                        return stack.enter_context(self.downloads.stream(address))
                    return stack.enter_context(open(self.base / address, "rb"))
                except (OSError, http.client.HTTPException) as error:
                    tried.append(f"{address}: {_reason(error)}")
        raise NotAvailable(f"{name} cannot be had ({'; '.join(tried)})")


def _origin(route: dict) -> str:
    """The name of a download in messages."""
    return route.get("url") or f"package {route['package']}"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _source(route: dict) -> str:
    """The key of a download: a URL, or a wheel by its digest."""
    return route.get("url") or f"{route['package']}#{route['sha256']}"


def _all_routes(files: dict) -> Iterator[dict]:
    """Routes of files and of inputs that download something."""
    for spec in files.values():
        for route in local_files.routes(spec):
            if "inputs" in route:
                yield from _all_routes(route["inputs"])
            elif route["kind"] != "mirror":
                yield route
