"""Data sets of the project: whether they are here, from where, size, licence, and which tables need them.

examples:
  agglearn data                    all of them
  agglearn data show adult         all about one: files, routes, citation, tables
  agglearn data get adult          fetch its files, where the workflow looks for them

reads   config/datasets/, the mirrors and the cache that config/config.yaml names.
writes  `get` alone: files into the cache. Files found in a mirror are used where they lie.

Origins: `mirror` is a folder or address of yours. `package` is a file inside a package of the Python index, which is
downloaded and never installed. `primary` is the publisher. `frozen` is a copy elsewhere. `build` is made here from the
publisher's files. In parentheses: not here, could come from there.
"""

import argparse
import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from agglearn.text import bytes_text, count_text
from agglearn_workflow.project import add_project_options, project_config

HELP = "data sets: what is here, from where; `get NAME` fetches one"
STOPPED = "the next attempt continues what was begun"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", nargs="?", choices=["list", "show", "get"], default="list", help="default: list")
    command.add_argument("name", nargs="?", metavar="NAME", help="data set, for `show` and `get`")
    add_project_options(command)


def run(args: argparse.Namespace) -> None:
    from agglearn.errors import ConfigError

    if (args.action == "list") != (args.name is None):
        raise ConfigError("data: `show` and `get` take the name of one data set, `list` takes none")
    config = project_config(args.configfile, targets=[args.name] if args.name else [])
    from agglearn_workflow.config.forms import check_name
    from agglearn_workflow.site.inventory import inventory

    rows = inventory(config, config["experiments"], Path.cwd())
    if args.action == "list":
        return print("\n".join(table(rows)))
    check_name(args.name, config["datasets"], "data", args.action)
    [row] = [row for row in rows if row["name"] == args.name]
    if args.action == "show":
        return print("\n".join(details(config, row)))
    if row["kind"] != "files":
        return print(f"{args.name}: {row['origin']}, nothing to fetch")
    get(config, args.name)


def table(datasets: list[dict]) -> list[str]:
    cells = [["data set", "here", "from", "size", "licence", "needed by"]]
    for row in datasets:
        size = "" if row["kind"] != "files" else bytes_text(row["bytes"])
        needed = count_text(len(row["experiments"]), "table") if row["experiments"] else "no table"
        licence = textwrap.shorten(row["licence"], 26, placeholder=" …")
        cells.append([row["name"], "yes" if row["here"] else "no", row["origin"], size, licence, needed])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells]


def details(config: dict, row: dict) -> list[str]:
    from agglearn.local_files import local_copies, routes
    from agglearn_workflow.site.inventory import citation_lines

    name, entry = row["name"], config["datasets"][row["name"]]
    lines = [f"{name}: {row['title']}", *(f"{key}: {row[key]}" for key in ("licence", "homepage", "note") if row[key])]
    if row["kind"] != "simulated":
        lines += [f"cite: {text}" for text in citation_lines(entry)]
    lines.append(f"needed by: {', '.join(row['experiments']) or 'no table'}")
    if row["kind"] != "files":
        return [*lines, f"here: {row['origin']}, nothing to fetch"]
    for file, path in local_copies(name, entry, config, Path.cwd()).items():
        tried = ", ".join(map(_route, routes(entry["files"][file])))
        lines.append(f"file {file}: {os.path.normpath(path) if path else f'not here; tried in turn: {tried}'}")
    return lines


def _route(route: dict) -> str:
    return " ".join([route["kind"], *(route[k] for k in ("url", "package", "function") if k in route)])


def get(config: dict, name: str) -> None:
    """Fetch the files of a data set into the cache. It raises the errors of `agglearn.datasets.fetching.obtain`."""
    from agglearn.datasets.fetching import obtain
    from agglearn_workflow.runs import products, results_lock

    base = Path.cwd()
    results = base / config["results"]
    records = results / "records" / name
    with results_lock.acquire(results / ".lock"), _progress(sys.stderr) as (lines, progress):
        files = obtain(name, config["datasets"][name], config, base, lines, progress)
        if records.exists() and products.manifest(records)["status"] != "ok":
            shutil.rmtree(records)  # the next run parses what is here now
    size, kinds = sum(f["bytes"] for f in files.values()), dict.fromkeys(f["kind"] for f in files.values())
    folder = os.path.normpath(Path(next(iter(files.values()))["path"]).parent)
    print(f"{name}: {count_text(len(files), 'file')}, {bytes_text(size)}, from {', '.join(kinds)}, in {folder}")


@contextlib.contextmanager
def _progress(terminal: TextIO) -> Iterator[tuple[TextIO, Callable[[str, int, int], None] | None]]:
    """(stream for lines, callback of downloads), with a bar of each file. Without a terminal there is no callback."""
    if not terminal.isatty():
        yield terminal, None
        return
    from tqdm import tqdm
    from tqdm.contrib import DummyTqdmFile

    with tqdm(file=terminal, unit="B", unit_scale=True, leave=False) as bar:

        def show(file: str, done: int, total: int) -> None:
            bar.total = total or None
            bar.set_description(Path(file).name)
            bar.update(done - bar.n)  # back to the beginning where the next file begins

        yield DummyTqdmFile(terminal), show
