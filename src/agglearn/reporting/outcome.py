"""First and last words of a run: what cannot be seen, where the tables are, what was not available, what failed."""

import csv
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

STARTED = time.time()


def at_start(results) -> None:
    """Warn when results are there but Snakemake's records of how they were made are not."""
    results = Path(results)
    if (results / "tables").exists() and not Path(".snakemake/metadata").exists():
        print(
            f"agglearn: {results}/ is there but Snakemake's records (.snakemake) are not: changes made since cannot be "
            "seen.\nRun once with --forceall; finished fits are reused.",
            file=sys.stderr,
        )


def lines(results, folder, experiments=None, failed: bool = False) -> list[str]:
    """The last lines of a run.

    Parameters
    ----------
    results : results folder, with the logs.
    folder : the scale's folder in it, with what was rendered.
    experiments : names; default: all that have a table.
    failed : whether the run was stopped by errors, which are then named.
    """
    folder = Path(folder)
    said, counts = [], Counter()
    names = sorted(p.stem for p in (folder / "tables").glob("*.csv"))
    names = [n for n in names if experiments is None or n in experiments]
    lacking: dict[str, set[str]] = {}
    for name in names:
        with open(folder / f"tables/{name}.csv", newline="") as handle:
            rows = list(csv.DictReader(handle))
        for cell in {(r["dataset"], r["method"], r["params"], r["status"], r["reason"]) for r in rows}:
            dataset, method, params, status, reason = cell
            if status == "unavailable":
                lacking.setdefault(f"{dataset}: {reason}", set()).add(name)
            elif status in ("failed", "stale"):
                counts[status] += 1
                said.append(f"{status}: {name}, {dataset}, {method} {params}: {reason}")
            elif "failed:" in reason:
                counts["failed"] += 1
                said.append(f"failed: {name}, {dataset}, {method} {params}: {reason}")
    said = said[:10] + ([f"… and {len(said) - 10} more"] if len(said) > 10 else [])
    for what, where in sorted(lacking.items()):
        said.append(f"not available: {what} (wanted by {', '.join(sorted(where))})")
    for path in sorted((folder / "tracking").glob("*.json")):
        receipt = json.loads(path.read_text())
        if receipt["status"] != "ok":
            said.append(f"not tracked: {path.stem}: {receipt['reason']} (the next run sends it)")
    if failed:
        said += errors(results)
    if names:
        said.append(f"tables: {folder}/tables/ ({len(names)} experiments), figures: {folder}/figures/")
    if (folder / "site/index.html").exists():
        said.append(f"read them at {folder}/site/index.html")
    if lacking or counts:
        said.append(
            f"{len(lacking)} data sets or packages not available, {sum(counts.values())} cells failed; "
            "`make retry` tries these again"
        )
    return said


def errors(results) -> list[str]:
    """Last lines of the logs of this run that end in an error: what stopped it."""
    found = []
    for log in sorted(Path(results, "logs").rglob("*.log")):
        if log.stat().st_mtime < STARTED - 1:
            continue
        last = log.read_text(errors="replace").rstrip().rpartition("\n")[2]
        if last.startswith("error: "):
            found.append(last)
    return found


def at_end(results, folder, experiments=None, failed: bool = False) -> None:
    """Print the last lines, unless `make` does so after Snakemake has left."""
    if os.environ.get("AGGLEARN_OUTCOME") == "make" and not failed:
        return
    for line in lines(results, folder, experiments, failed):
        print(f"agglearn: {line}", file=sys.stderr)


def again(results) -> list[str]:
    """Files to make anew so that what was not available or failed is tried again."""
    results, files = Path(results), []
    for manifest in sorted(results.glob("sources/*/manifest.json")):
        if json.loads(manifest.read_text())["status"] != "ok":
            files.append(str(manifest.parent))
    import pyarrow.parquet as pq

    for path in sorted(results.glob("measurements/*/*.parquet")):
        if {"failed", "unavailable"} & set(pq.read_table(path, columns=["status"])["status"].to_pylist()):
            files.append(str(path))
    return files


if __name__ == "__main__":
    command, folder = sys.argv[1:3]
    print("\n".join(again(folder) if command == "again" else [f"agglearn: {x}" for x in lines(folder, folder)]))
