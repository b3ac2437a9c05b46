"""Downloads over HTTP(S), FTP and file URLs: tried again where a host is busy, continued where the file is the same."""

import contextlib
import email.utils
import hashlib
import http.client
import os
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from agglearn.storage import read_json, write_json

TIMEOUT = 20  # seconds without an answer
WAITS = (2, 8)  # seconds before the second and the third try
LONGEST_WAIT = 60  # seconds, whatever the host asks for
WINDOW = 60  # seconds in which a download must bring at least
FLOOR = 60_000  # bytes
BLOCK = 1 << 20
LONGEST_LENGTH = 18  # digits of a Content-Length that states one
BUSY = {408, 425, 429, 500, 502, 503, 504}
AGENT = "agglearn"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"  # where AGENT is refused

Progress = Callable[[str, int, int], None]
T = TypeVar("T")


@dataclass
class Downloads:
    """Whole files from URLs. One that did not come whole is `.part`, beside the host's version in `.part.json`."""

    folder: Path
    progress: Progress
    silent: set[str] = field(default_factory=set)  # hosts that gave no answer: the next file does not wait for them

    def path(self, url: str) -> Path:
        return self.folder / hashlib.sha256(url.encode()).hexdigest()[:16]

    def get(self, url: str, name: str, unproven: bool) -> Path:
        target = self.path(url)
        if not target.exists():
            partial = target.with_name(target.name + ".part")
            self.folder.mkdir(parents=True, exist_ok=True)
            self._patiently(url, lambda agent: self._receive(url, partial, name, agent))
            try:
                _check_plausible(partial, unproven)
                os.replace(partial, target)
            finally:
                _forget(partial)
        return target

    @contextlib.contextmanager
    def stream(self, url: str) -> Iterator[BinaryIO]:
        """Only the bytes that are read are downloaded."""
        with self._patiently(url, lambda agent: _open(url, agent)) as answer:
            if _is_page(answer.headers.get("Content-Type", "")):
                raise OSError("the answer is a web page")
            answer.name = url  # type: ignore[misc]  # for messages
            yield answer

    def _patiently(self, url: str, act: Callable[[str], T]) -> T:
        """`act(agent)`, tried again where the host is busy or slow, and as a browser where it refuses scripts."""
        host, agent, waits = urllib.parse.urlsplit(url).netloc, AGENT, list(WAITS)
        if host in self.silent:
            raise OSError("the host gave no answer before")
        while True:
            try:
                return act(agent)
            except urllib.error.HTTPError as error:
                if error.code == 403 and agent == AGENT:
                    agent = BROWSER
                    continue
                if error.code not in BUSY or not waits:
                    raise OSError(f"{error.code} {error.reason}") from None
                time.sleep(max(_parse_retry_after(error.headers.get("Retry-After", "")), waits.pop(0)))
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = getattr(error, "reason", None) or error
                slow = isinstance(reason, TimeoutError)
                lasting = not slow and not isinstance(error, (ConnectionError, http.client.HTTPException))
                if lasting or not waits:  # no such host, nobody listens there, a redirect to no address, a full disk
                    self.silent |= {host} if slow else set()
                    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
                    raise OSError(text) from None
                time.sleep(waits.pop(0))

    def _receive(self, url: str, partial: Path, name: str, agent: str) -> None:
        version, done = _version(partial)
        if done and done == version["total"]:
            return
        headers = {"Range": f"bytes={done}-", "If-Range": version["validator"]} if done else {}
        try:
            answer = _open(url, agent, headers)
        except urllib.error.HTTPError as error:
            if error.code != 416 or not done:
                raise
            answer = error  # type: ignore[assignment]
        with answer:
            resumed = bool(done) and _continues(answer, version, done)
            if answer.status in (206, 416) and not resumed:
                if not done:
                    raise OSError("206 with a part of the file, where the whole was asked for")
                _forget(partial)
                return self._receive(url, partial, name, agent)
            if not resumed:
                done, version = 0, _describe_version(answer)
                _forget(partial)
                write_json(_beside(partial), version)
            with open(partial, "ab" if resumed else "wb") as sink:
                self._copy(answer, sink, done, version["total"], name)
        if partial.stat().st_size < version["total"]:
            raise ConnectionError(f"connection ended after {partial.stat().st_size:,} of {version['total']:,} bytes")

    def _copy(self, answer: HTTPResponse, sink: BinaryIO, done: int, total: int, name: str) -> None:
        require_room(self.folder, total - done)
        started, before = time.monotonic(), done
        while block := answer.read1(BLOCK):
            sink.write(block)
            done += len(block)
            self.progress(name, done, total)
            if time.monotonic() - started > WINDOW:
                if done - before < FLOOR:
                    raise TimeoutError(f"fewer than {FLOOR:,} bytes in {WINDOW} s")
                started, before = time.monotonic(), done


def require_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(f"needs {size / 1e6:,.0f} MB on the disk, {free / 1e6:,.0f} MB are free")


def _open(url: str, agent: str, headers: dict[str, str] | None = None) -> HTTPResponse:
    sent = {"User-Agent": agent, "Accept-Encoding": "identity"} | (headers or {})
    return urllib.request.urlopen(urllib.request.Request(url, headers=sent), timeout=TIMEOUT)


def _parse_retry_after(retry_after: str) -> float:
    """Seconds that a host asks to wait: a number, or a date. 0 for any other text."""
    wait = 0.0
    with contextlib.suppress(ValueError, OverflowError):
        wait = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
    with contextlib.suppress(ValueError):
        wait = float(retry_after)
    return min(max(0, wait), LONGEST_WAIT)  # in this order NaN is 0


def _beside(partial: Path) -> Path:
    return partial.with_name(partial.name + ".json")


def _forget(partial: Path) -> None:
    partial.unlink(missing_ok=True)
    _beside(partial).unlink(missing_ok=True)


def _describe_version(answer: HTTPResponse) -> dict[str, Any]:
    tag, length = answer.headers.get("ETag", ""), answer.headers.get("Content-Length", "")
    strong = "" if tag.startswith("W/") else tag
    states = length.isdecimal() and len(length) <= LONGEST_LENGTH
    return {
        "validator": strong or answer.headers.get("Last-Modified", ""),
        "total": int(length) if states else 0,
        "end": states or answer.headers.get("Transfer-Encoding", "").lower() == "chunked",
        "type": answer.headers.get("Content-Type", ""),
    }


def _version(partial: Path) -> tuple[dict[str, Any], int]:
    """(version, bytes) of a partial file that can be continued. Zero bytes of any other."""
    if partial.exists() and _beside(partial).exists():
        version, done = read_json(_beside(partial)), partial.stat().st_size
        if version["validator"] and 0 < done <= version["total"]:
            return version, done
    return {}, 0


def _continues(answer: HTTPResponse, version: dict[str, Any], done: int) -> bool:
    validators = {answer.headers.get("ETag"), answer.headers.get("Last-Modified")} - {None}
    completes = answer.headers.get("Content-Range") == f"bytes {done}-{version['total'] - 1}/{version['total']}"
    return answer.status == 206 and completes and (not validators or version["validator"] in validators)


def _is_page(content_type: str) -> bool:
    return content_type.lower().startswith(("text/html", "application/xhtml"))


def _check_plausible(partial: Path, unproven: bool) -> None:
    """Refuse a web page in place of data. Where no digest is stated, also refuse files that may be empty or cut."""
    version = read_json(_beside(partial))
    with open(partial, "rb") as file:
        head = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html")) or (unproven and _is_page(version["type"])):
        raise OSError("the answer is a web page")
    if unproven and not head:
        raise OSError("the file is empty")
    if unproven and not version["end"]:
        raise OSError("the host does not state the length, so that a cut file looks whole")
