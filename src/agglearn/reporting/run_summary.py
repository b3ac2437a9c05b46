"""Last words of a run: where the tables are, what was not available, what failed."""

import csv
import json
import re
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from agglearn.text import bytes_text

CELL = ["dataset", "dataset_params", "observation", "observation_params", "method", "params"]  # what tells cells apart
STARTED = time.time()


def lines(results, folder, experiments=None, failed: bool = False) -> list[str]:
    """The last lines of a run.

    Parameters
    ----------
    results : results folder, with data and logs.
    folder : the scale's folder in it, with what was rendered.
    experiments : names; default: all that have a table.
    failed : whether jobs ended with errors, which are then named.
    """
    folder = Path(folder)
    names, without = _rendered(folder, experiments), problems(results, folder, experiments)
    said = without["failed"][:10]
    if len(without["failed"]) > 10:
        said.append(f"… and {len(without['failed']) - 10} more")
    said += without["stopped"] + without["unavailable"]
    said += _not_tracked(folder)
    if failed:
        said += errors(results, folder)
    if names:
        said.append(f"tables: {folder}/tables/ ({len(names)} experiments), figures: {folder}/figures/")
    if (folder / "site/index.html").exists():
        said.append(f"read them at {folder}/site/index.html")
    if without["unavailable"] or without["failed"]:
        said.append(
            f"{len(without['unavailable'])} data sets or packages not available, {len(without['failed'])} cells, tables, figures "
            "or claims failed; `make retry` tries these again"
        )
    return said


def problems(results, folder, experiments=None) -> dict[str, list[str]]:
    """What has no result: a line each for what `failed`, is `unavailable`, or `stopped` at a solver's own limit.

    Stale cells count as failed. What is not available is listed with its size and the command that gets it, where known.
    """
    results, folder = Path(results), Path(folder)
    failed, lacking, stopped = [], {}, Counter()
    names = _rendered(folder, experiments)
    for name in names:
        failed += [f"failed: {name}, {why}" for why in _read(folder / f"tables/{name}.json", {"failed": []})["failed"]]
        for dataset, *_, method, params, status, reason in _without_result(folder, name):
            if status == "unavailable":
                lacking.setdefault((dataset, reason), []).append(name)
            elif status == "stopped":
                stopped[f"stopped: {name}, {method}: {reason}"] += 1
            else:
                failed.append(f"{status}: {name}, {dataset}, {method} {params}: {reason}")
    for claim in _read(folder / "claims.json", []):
        if claim["verdict"] == "failed" and claim["experiment"] in names:
            failed.append(f"failed: claim {claim['name']}: {claim['detail'].removeprefix('failed: ')}")
    return {
        "failed": list(dict.fromkeys(failed)),
        "unavailable": [_lacking(results, *what, sorted(set(where))) for what, where in sorted(lacking.items())],
        "stopped": [f"{line} ({n} cell{'s' * (n > 1)})" for line, n in sorted(stopped.items())],
    }


def _not_tracked(folder: Path) -> list[str]:
    """A line for each experiment that could not be sent, by the latest receipt that has it."""
    receipts = sorted((folder / "tracking").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    states = {name: state for path in receipts for name, state in _read(path, {}).get("experiments", {}).items()}
    pending = {name: state for name, state in sorted(states.items()) if state["status"] != "ok"}
    return [f"not tracked: {name}: {state['reason']} ({state['todo']})" for name, state in pending.items()]


def _rendered(folder: Path, experiments) -> list[str]:
    names = sorted(p.stem for p in (folder / "tables").glob("*.csv"))
    return [n for n in names if experiments is None or n in experiments]


def _without_result(folder: Path, name: str) -> list[tuple]:
    """`CELL`, status and reason of each cell of a table that lacks a run."""
    with open(folder / f"tables/{name}.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    cells = set()
    for row in rows:
        status, reason = row["status"], row["reason"]
        if status == "ok" and (some := re.match(r"\d+ seeds (\w+): ", reason)):
            status = some.group(1)
        if status != "ok":
            cells.add((*(row[field] for field in CELL), status, reason))
    return sorted(cells)


def _lacking(results: Path, dataset: str, reason: str, names: list[str]) -> str:
    """One line on a data set or package that could not be had."""
    source = _read(results / f"sources/{dataset}/manifest.json", {"status": "ok"})
    absent = source["status"] != "ok" and source["reason"] in reason
    size = f" ({bytes_text(source['bytes'])})" if absent and source.get("bytes") else ""
    get = f"; get it: agglearn data get {dataset}" if absent else ""
    return f"not available: {dataset}{size}: {reason} (wanted by {', '.join(names)}){get}"


def _read(path: Path, default):
    """Content of a JSON file; the default where there is none."""
    return json.loads(path.read_text()) if path.exists() else default


def errors(*folders) -> list[str]:
    """Last lines of the logs of this run, below some folders, that end in an error: what stopped it."""
    found = []
    for log in sorted({log for folder in folders for log in Path(folder, "logs").rglob("*.log")}):
        if log.stat().st_mtime < STARTED - 1:
            continue
        if line := error_in(log):
            found.append(line)
    return found


def error_in(log) -> str | None:
    """The error with which a job ended, if any: the last line of its log."""
    path = Path(log)
    last = path.read_text(errors="replace").rstrip().rpartition("\n")[2] if path.exists() else ""
    return last if last.startswith("error: ") else None


def at_end(results, folder, show: Iterable[str] = (), logs: Iterable = ()) -> None:
    """Print the last words of a run: tables, what has no result, where everything is.

    Parameters
    ----------
    results, folder : as for `lines`.
    show : experiments whose tables are printed as text.
    logs : files with the whole log of the run.
    """
    for name in show:
        path = Path(folder) / f"tables/{name}.md"
        if path.exists():
            print(f"\n{as_text(path.read_text())}\n", file=sys.stderr)
    for line in [*(f"whole log: {path}" for path in logs), *lines(results, folder, failed=True)]:
        print(f"agglearn: {line}", file=sys.stderr)


def as_text(markdown: str) -> str:
    """A Markdown table as text with aligned columns; what stands before and after the rows is left out, but for the title."""
    title, *rest = markdown.splitlines()
    rows = [[cell.strip().replace("**", "") for cell in row[1:-1].split(" | ")] for row in rest if row.startswith("|")]
    head, *body = [row for row in rows if not row[0].startswith("---")]
    above, below = zip(*map(_two_lines, head), strict=True)
    repeated = [text if i == 0 or text != above[i - 1] else "" for i, text in enumerate(above)]
    table = [row for row in (repeated, list(below), *body) if any(row)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    aligned = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in table]
    return "\n".join([title.strip("*"), *aligned])


def _two_lines(head: str) -> tuple[str, str]:
    """A column's heading as its setting, shortened, and its measure."""
    setting, comma, measure = head.rpartition(", ")
    setting = setting if comma else head
    return textwrap.shorten(setting.partition(" (")[0], 20, placeholder=" …"), measure if comma else ""


def again(results) -> list[str]:
    """Files to make anew so that what was not available or failed is tried again."""
    results, files = Path(results), []
    for manifest in sorted([*results.glob("sources/*/manifest.json"), *results.glob("records/*/manifest.json")]):
        if json.loads(manifest.read_text())["status"] != "ok":
            files.append(str(manifest.parent))
    for manifest in sorted(results.glob("observations/*/*.json")):
        if json.loads(manifest.read_text())["status"] == "failed":
            files.append(str(manifest))
    import pyarrow.parquet as pq

    for path in sorted(results.glob("measurements/*/*.parquet")):
        if {"failed", "unavailable"} & set(pq.read_table(path, columns=["status"])["status"].to_pylist()):
            files.append(str(path))
    files += [str(p.with_suffix(".csv")) for p in sorted(results.glob("tables/*.json")) if _read(p, {})["failed"]]
    for path in sorted(results.glob("claims/*.json")):
        if any(claim["verdict"] == "failed" for claim in _read(path, [])):
            files.append(str(path))
    return files


if __name__ == "__main__":
    print("\n".join(again(sys.argv[1])))
