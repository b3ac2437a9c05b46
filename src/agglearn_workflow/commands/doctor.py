"""Show what a report of a problem should contain: versions of Python and of the packages, extras that are installed or
missing, threads, memory, and which sources of data answer.

example:
  agglearn doctor

reads   the installed packages, and in a folder with the workflow the addresses under config/datasets and the folders under
        `mirrors`. It asks each host once for a few seconds and sends nothing about you or your data.
writes  nothing. A host that does not answer is no error: data can come from elsewhere, see `agglearn data`.
"""

import argparse
import contextlib
import os
import platform
import re
import subprocess
import sys
import textwrap
from importlib import metadata
from pathlib import Path

HELP = "show versions, extras, machine and sources of data"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
HOST = re.compile(r"\burl: *['\"]?(https?://[^/\s'\"]+)")


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--offline", action="store_true", help="do not ask any host")
    command.add_argument("--timeout", type=float, default=3.0, metavar="S", help="seconds per host (default: 3)")


def run(args: argparse.Namespace) -> None:
    from agglearn import __version__

    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    print(f"agglearn {__version__}, Python {platform.python_version()}, {system}\n  {sys.prefix}")
    required = requirements()
    _print("packages", required.pop("", []))
    _print("extras", [describe(extra, packages) for extra, packages in required.items()])
    _print("machine", resources())
    if not args.offline:
        _print("data", sources(Path.cwd(), args.timeout))


def _print(title: str, lines: list[str]) -> None:
    options = {"width": 98, "subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
    wrapped = [text for line in lines for text in textwrap.wrap(line, **options)]  # type: ignore[arg-type]
    print(title, *wrapped, sep="\n  ", flush=True)


def requirements() -> dict[str, list[str]]:
    """Extra → its packages with their versions and the bounds that were tested. "" stands for what is always needed."""
    lines: list[str] = []
    with contextlib.suppress(metadata.PackageNotFoundError):  # imported from a folder of sources that is not installed
        lines = metadata.requires("agglearn") or []
    packages: dict[str, list[str]] = {}
    for line in lines:
        [(package, bounds)] = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if package != "agglearn":
            text = f"{package} {_version(package)} ({bounds.strip()})"
            packages.setdefault(extra[1] if extra else "", []).append(text)
    return packages


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def describe(extra: str, packages: list[str]) -> str:
    is_complete = not any(" missing " in package for package in packages)
    missing = "" if is_complete else f" (pip install 'agglearn[{extra}]')"  # first: no line is broken there
    return f"{extra}{missing}: {', '.join(packages)}"


def resources() -> list[str]:
    from agglearn import machine

    limit, variables = machine.cgroup_limit(), [f"{n}={os.environ[n]}" for n in THREADS if n in os.environ]
    group = f", limit of the control group {limit / 1e9:.1f} GB" if limit else ""
    return [
        f"cores: {machine.cores()} of {os.cpu_count()}",
        f"threads: {', '.join(variables) or 'one per core, no environment variable limits them'}",
        f"memory: {machine.physical_bytes() / 1e9:.1f} GB{group}",
    ]


def sources(base: Path, timeout: float) -> list[str]:
    from concurrent.futures import ThreadPoolExecutor

    import yaml

    config = base / "config/config.yaml"
    mirrors = (yaml.safe_load(config.read_text()) or {}).get("mirrors", []) if config.is_file() else []
    datasets = [path.read_text() for path in (base / "config").glob("datasets/**/*.yaml")]
    hosts = sorted(set(HOST.findall("\n".join([*datasets, *(f"url: {mirror}" for mirror in mirrors)]))))
    lines = [f"package index of pip: {ask_index(timeout)}"]
    lines += [f"mirror {m}: {'present' if (base / m).is_dir() else 'absent'}" for m in mirrors if "://" not in m]
    with ThreadPoolExecutor(32) as pool:
        lines += pool.map(lambda host: f"{host}: {ask(host, timeout)}", hosts)
    return lines + ["no config/datasets here: start in the project's folder to check its sources"] * (not datasets)


def ask(host: str, timeout: float) -> str:
    """Whether a host answers at all. An error status is an answer."""
    import urllib.error
    import urllib.request

    from agglearn import __version__

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
    call += ["--timeout", f"{timeout:g}", "index", "versions", "numpy"]  # a package that every index has
    try:
        finished = subprocess.run(call, capture_output=True, text=True, timeout=timeout + 20)
    except subprocess.TimeoutExpired:
        return "no answer"
    if "No module named pip" in finished.stderr:
        return "not asked, this environment holds no pip"
    return "answers" if finished.returncode == 0 else "no answer"
