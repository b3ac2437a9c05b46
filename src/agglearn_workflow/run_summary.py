"""The last lines of a run: where the tables are, what was not available, what failed."""

import itertools
import json
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from agglearn.errors import AgglearnError
from agglearn.storage import atomic_file
from agglearn.text import bytes_text, count_text

CELL = ["dataset", "dataset_params", "observation", "observation_params", "method", "params"]  # key of a cell
NOT_HAD = " cannot be had ("  # as the reason of a data set without a source goes on
STARTED = time.time()
WIDTH = 100  # letters of a line on the terminal


def summary_lines(results: str | Path, folder: str | Path, experiments: Container[str] | None = None) -> list[str]:
    folder = Path(folder)
    names, without = _rendered(folder, experiments), problems(results, folder, experiments)
    lines = problem_lines(folder, without)
    if names:
        lines.append(f"tables: {folder}/tables/ ({count_text(len(names), 'experiment')}), figures: {folder}/figures/")
    if pages := _newest([folder / "site/index.html", *folder.glob("pages/*/index.html")]):
        lines.append(f"read them at {pages[-1]}")
    if without["unavailable"] or without["failed"]:
        lines.append(
            f"not available: {len(without['unavailable'])} (data sets or packages), failed: {len(without['failed'])} (cells, tables, "
            "figures or claims); `make retry` tries these again"
        )
    return lines


def problem_lines(folder: Path, without: dict[str, list[str]]) -> list[str]:
    lines = without["failed"][:10]
    if len(without["failed"]) > 10:
        lines.append(f"… and {len(without['failed']) - 10} more")
    return lines + without["stopped"] + without["unavailable"] + without["not archived"] + _not_tracked(folder)


def problems(
    results: str | Path, folder: str | Path, experiments: Container[str] | None = None
) -> dict[str, list[str]]:
    """Lines on cells: `failed` (or stale), `unavailable`, `not archived`, or `stopped` at the limit of a solver."""
    folder, failed = Path(folder), []
    users: dict[tuple[str, str], set[str]] = {}  # (data set, reason) → experiments
    stopped: Counter[str] = Counter()
    absent: Counter[str] = Counter()
    names = _rendered(folder, experiments)
    for name in names:
        rendered = {"failed": [], "without": []} | _read(folder / f"tables/{name}.json", {})
        failed += [f"failed: {name}, {text}" for text in rendered["failed"]]
        for dataset, *_, method, params, status, reason in sorted(rendered["without"]):
            if status == "unavailable":
                users.setdefault((dataset, reason), set()).add(name)
            elif status == "not archived":
                absent[name] += 1
            elif status == "stopped":
                stopped[f"stopped: {name}, {method}: {reason}"] += 1
            else:
                failed.append(f"{status}: {name}, {dataset}, {method} {params}: {reason}")
    for claim in _claims(folder):
        if claim["verdict"] == "failed" and claim["experiment"] in names:
            failed.append(f"failed: claim {claim['name']}: {claim['detail']}")
    return {
        "failed": list(dict.fromkeys(failed)),
        "unavailable": [_unavailable(Path(results), *missing, users[missing]) for missing in sorted(users)],
        "not archived": [
            f"not archived: {count_text(sum(absent.values()), 'cell')} of {count_text(len(absent), 'experiment')}; agglearn plan "
            "lists them with prices, make archive computes them"
        ]
        if absent
        else [],
        "stopped": [f"{line} ({count_text(n, 'cell')})" for line, n in sorted(stopped.items())],
    }


def _unavailable(results: Path, dataset: str, reason: str, users: set[str]) -> str:
    source = _read(results / f"records/{dataset}/manifest.json", {"status": "ok"})
    absent = source["status"] != "ok" and source["reason"] in reason
    size = f" ({bytes_text(source['bytes'])})" if absent and source.get("bytes") else ""
    get = f"; get it: agglearn data get {dataset}" if absent else ""
    file, is_file, _ = reason.partition(NOT_HAD)  # what each address answered stands in the log
    return f"not available: {dataset}{size}: {file + ' cannot be had' if is_file else reason} (needed by {', '.join(sorted(users))}){get}"


def _rendered(folder: Path, experiments: Container[str] | None) -> list[str]:
    names = sorted(p.stem for p in (folder / "tables").glob("*.csv"))
    return [n for n in names if experiments is None or n in experiments]


def _claims(folder: Path) -> list[dict]:
    """The newest verdict on each claim."""
    files = _newest([folder / "claims.json", *folder.glob("claims/*.json")])
    return list({claim["name"]: claim for path in files for claim in _read(path, [])}.values())


def _not_tracked(folder: Path) -> list[str]:
    receipts = _newest((folder / "tracking").glob("*.json"))
    states = {name: state for path in receipts for name, state in _read(path, {}).get("experiments", {}).items()}
    pending = {name: state for name, state in sorted(states.items()) if state["status"] != "ok"}
    return [f"not tracked: {name}: {state['reason']} ({state['todo']})" for name, state in pending.items()]


def _newest(paths: Iterable[Path]) -> list[Path]:
    """Those of some files that are there, the newest last."""
    return sorted((path for path in paths if path.exists()), key=lambda path: path.stat().st_mtime_ns)


def _read(path: Path, default: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else default


def errors(*folders: str | Path) -> list[str]:
    """Last lines of the logs of this run, below some folders, that are errors."""
    logs = sorted({log for folder in folders for log in Path(folder, "logs").rglob("*.log")})
    texts = [log.read_text(errors="replace") for log in logs if log.stat().st_mtime >= STARTED - 1]
    lines = [text.rstrip().rpartition("\n")[2] for text in texts]
    return [line for line in lines if line.startswith("error: ")]


def print_summary(
    results: str | Path, folder: str | Path, experiments: Container[str] | None = None, show: Iterable[str] = ()
) -> None:
    """Print what the experiments of this plan have in a folder, which may hold results of other plans too."""
    for name in show:
        path = Path(folder) / f"tables/{name}.md"
        if path.exists():
            print(f"\n{as_text(path.read_text())}\n", file=sys.stderr)
    for line in errors(results, folder) + summary_lines(results, folder, experiments):
        print(f"agglearn: {line}", file=sys.stderr)


def conclude(results: str | Path, folder: str | Path, names: list[str], out: str | Path) -> None:
    """Write the outcome of some experiments. AgglearnError where something that belongs to them has failed."""
    if failed := problems(results, folder, names)["failed"]:
        raise AgglearnError(f"{len(failed)} failed (cells, tables, figures or claims), the first: {failed[0]}")
    with atomic_file(out) as work:
        work.write_text("\n".join(summary_lines(results, folder, names)) + "\n")


def as_text(markdown: str) -> str:
    """A table for the terminal. Columns that do not fit its width stand below, each block beside all labels of rows."""
    title, *lines = markdown.splitlines()
    rows = [[cell.strip().replace("**", "") for cell in row[1:-1].split(" | ")] for row in lines if row.startswith("|")]
    if not rows:
        return "\n".join([title.strip("*"), lines[1]])
    head, *body = [row for row in rows if not row[0].startswith("---")]
    columns = [[*_setting_and_measure(text), *cells] for text, *cells in zip(head, *body, strict=True)]
    n_labels = rows[1].count("---")  # columns of numbers are aligned at the right, `---:`
    labels = columns[:n_labels]
    blocks = [labels]
    for column in columns[n_labels:]:
        if blocks[-1] != labels and max(map(len, _block([*blocks[-1], column]).splitlines())) > WIDTH:
            blocks.append(labels)
        blocks[-1] = [*blocks[-1], column]
    return "\n".join([title.strip("*"), "\n\n".join(map(_block, blocks))])


def _setting_and_measure(head: str) -> tuple[str, str]:
    setting, comma, measure = head.rpartition(", ")
    return (setting, measure) if comma else (head, "")


def _block(columns: list[list[str]]) -> str:
    above = [column[0] for column in columns]
    settings = [_wrapped(text) if i == 0 or text != above[i - 1] else [] for i, text in enumerate(above)]
    table = [*itertools.zip_longest(*settings, fillvalue=""), *zip(*(column[1:] for column in columns), strict=True)]
    table = [row for row in table if any(row)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    aligned = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in table]
    return "\n".join(aligned)


def _wrapped(setting: str) -> list[str]:
    return [line for phrase in setting.split(", ") for line in textwrap.wrap(phrase, 20)]


def retry_targets(results: str | Path) -> list[str]:
    """Files to make anew so that unavailable and failed results are tried again."""
    import pyarrow.parquet as pq

    results = Path(results)
    manifests = sorted(results.glob("records/*/manifest.json"))
    files = [str(path.parent) for path in manifests if _read(path, {})["status"] != "ok"]
    for path in sorted(results.glob("measurements/*/*.parquet")):
        if {"failed", "unavailable"} & set(pq.read_table(path, columns=["status"])["status"].to_pylist()):
            files.append(str(path))
    files += [str(p.with_suffix(".csv")) for p in sorted(results.glob("tables/*.json")) if _read(p, {})["failed"]]
    claims = sorted([*results.glob("claims.json"), *results.glob("claims/*.json")])
    return files + [str(path) for path in claims if any(claim["verdict"] == "failed" for claim in _read(path, []))]


if __name__ == "__main__":
    print("\n".join(retry_targets(sys.argv[1])))
