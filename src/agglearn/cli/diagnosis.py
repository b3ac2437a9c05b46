"""Installed packages, resources and reachable sources, for `agglearn doctor` and for reports of problems."""

import concurrent.futures
import os
import platform
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import yaml

from agglearn import __version__, machine

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PROBE = "numpy"  # any package that every index has


class Requirement(NamedTuple):
    """A package that agglearn or one of its extras asks for."""

    package: str
    bounds: str  # as ">=1.2,<3"
    extra: str  # "" for what is always needed

    @property
    def version(self) -> str | None:
        """Installed version, None where there is none."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None

    def describe(self) -> str:
        """Package and version, with the bounds where the version is outside them, or `missing`."""
        if self.version is None:
            return f"{self.package} missing"
        tested = "" if within(self.version, self.bounds) else f" (tested with {self.bounds})"
        return f"{self.package} {self.version}{tested}"


def report(offline: bool, timeout: float) -> Iterator[tuple[str, list[str]]]:
    """(title, lines) of each section of the report, as soon as it is complete."""
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield f"agglearn {__version__}, Python {platform.python_version()}, {system}", [sys.prefix]
    needed = requirements()
    yield "packages", [r.describe() for r in needed if not r.extra]
    yield "extras", extras(needed)
    yield "machine", resources()
    if not offline:
        yield "data", sources(Path.cwd(), timeout)


def requirements() -> list[Requirement]:
    """What the installed agglearn asks for, by its own metadata."""
    try:
        lines = metadata.requires("agglearn") or []
    except metadata.PackageNotFoundError:
        lines = []
    needed = []
    for line in lines:
        [(package, bounds)] = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        needed.append(Requirement(package, bounds.strip(), extra.group(1) if extra else ""))
    return [r for r in needed if r.package != "agglearn"]


def within(version: str, bounds: str) -> bool:
    """Whether a version lies within bounds such as ">=1.2,<3", by its numbers."""
    tests = {"<": lambda a, b: a < b, ">=": lambda a, b: a >= b}
    pairs = [(sign, _numbers(number)) for sign, number in re.findall(r"(>=|<)\s*([\d.]+)", bounds)]
    return all(tests[sign](_numbers(version), number) for sign, number in pairs)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(n) for n in re.findall(r"^[\d.]*", version)[0].split(".") if n]
    return tuple(numbers + [0] * (4 - len(numbers)))


def extras(needed: list[Requirement]) -> list[str]:
    """A line for each extra: its packages, and how to install what is missing."""
    lines = []
    for extra in dict.fromkeys(r.extra for r in needed if r.extra):
        packages = [r for r in needed if r.extra == extra]
        complete = all(r.version for r in packages)
        remedy = "" if complete else f"; pip install 'agglearn[{extra}]'"
        lines.append(f"{extra}: {', '.join(r.describe() for r in packages)}{remedy}")
    return lines


def resources() -> list[str]:
    """Cores, threads and memory."""
    limit, set_here = machine.cgroup_limit(), [f"{n}={os.environ[n]}" for n in THREADS if n in os.environ]
    group = f", limit of the control group {limit / 1e9:.1f} GB" if limit else ""
    return [
        f"cores: {machine.cores()} of {os.cpu_count()}",
        f"threads: {', '.join(set_here) or 'one per core, no environment variable limits them'}",
        f"memory: {machine.physical_bytes() / 1e9:.1f} GB{group}",
    ]


def sources(base: Path, timeout: float) -> list[str]:
    """Lines on the package index, the mirrors and the hosts that the data sets below `base` name."""
    config = _yaml(base / "config/config.yaml")
    datasets = [_yaml(p) for p in sorted((base / "config").glob("datasets/**/*.yaml"))]
    mirrors = [str(m) for m in config.get("mirrors", [])]
    remote = [{"url": m} for m in mirrors if "://" in m]
    hosts = sorted({_host(url) for url in _addresses([datasets, remote])})
    with concurrent.futures.ThreadPoolExecutor(max(len(hosts), 1) + 1) as pool:
        index = pool.submit(ask_index, timeout)
        answers = list(pool.map(lambda host: ask(host, timeout), hosts))
    lines = [f"package index of pip: {index.result()}"]
    lines += [f"mirror {m}: {'present' if (base / m).is_dir() else 'absent'}" for m in mirrors if "://" not in m]
    lines += [f"{host}: {answer}" for host, answer in zip(hosts, answers, strict=True)]
    return (
        lines if datasets else [*lines, "no config/datasets here: start in the project's folder to check its sources"]
    )


def _yaml(path: Path) -> dict:
    return (yaml.safe_load(path.read_text()) or {}) if path.is_file() else {}


def _addresses(value: object) -> Iterator[str]:
    """Every web address under a key `url` within nested lists and dictionaries."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if key == "url" and str(inner).startswith(("http://", "https://")):
                yield inner
            yield from _addresses(inner)


def _host(url: str) -> str:
    address = urllib.parse.urlsplit(url)
    return f"{address.scheme}://{address.netloc}"


def ask(host: str, timeout: float) -> str:
    """Whether a host answers at all. An error status is an answer."""
    request = urllib.request.Request(host, method="HEAD", headers={"User-Agent": f"agglearn/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=timeout):
            return "answers"
    except urllib.error.HTTPError as error:
        return "answers" if error.code < 500 else f"no answer (status {error.code})"
    except (OSError, ValueError) as error:
        return f"no answer ({getattr(error, 'reason', None) or error})"


def ask_index(timeout: float) -> str:
    """Whether pip gets an answer from its index, with all of its configuration."""
    call = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "0"]
    call += ["--timeout", f"{timeout:g}", "index", "versions", PROBE]
    try:
        finished = subprocess.run(call, capture_output=True, text=True, timeout=timeout + 20)
    except subprocess.TimeoutExpired:
        return "no answer"
    if "No module named pip" in finished.stderr:
        return "not asked, this environment holds no pip"
    return "answers" if finished.returncode == 0 else "no answer"
