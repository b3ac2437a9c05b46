"""Runs of one batch: each in a forked child under a time limit, each kept as a folder and reused while it holds.

A finished run is `results/runs/<key>/` with `run.json`, `measurements.parquet` and, where kept, `model/`. It is reused
while its fingerprint (key, code, content of its observation) is the same and it has a result: it is `ok`, or `stopped` at
its solver's own limit. A run that failed is tried again whenever its batch is.

Runs of this package's methods share a child, which loads compiled code once. Runs of a user's methods have a child each, so
that nothing that one leaves behind in modules or classes reaches the next.
"""

import functools
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from agglearn import storage
from agglearn.inspection import digests, modules
from agglearn.registry import resolve
from agglearn.storage import digest
from agglearn.workflow import products
from agglearn.workflow.execution import execute_run, spec_of
from agglearn.workflow.isolation import run_isolated
from agglearn.workflow.measurements import SCHEMA, gather, table_of
from agglearn.workflow.plan import IDENTITY, Run


def fit_batch(
    runs: list[Run], observed: dict[str, str], results, out, limit: float, effective: dict, newer_than: int = 0
) -> None:
    """Compute the runs that are missing and gather the batch's measurements.

    Parameters
    ----------
    runs : the batch.
    observed : data set → its observations' product.
    results : results folder.
    out : Parquet file to write; its metadata hold the recipe of every run.
    limit : seconds per run.
    effective : configuration, kept beside each result.
    newer_than : runs that are not newer are computed again (nanoseconds of the file system's clock).
    """
    store = Path(results) / "runs"
    manifests = {d: products.manifest(o) for d, o in observed.items()}
    prints = {r: fingerprint(r, manifests[r.dataset]) for r in runs}
    homes = {r: store / r.key for r in runs}
    todo = [r for r in runs if not _holds(r, homes[r], prints[r], manifests[r.dataset], newer_than)]
    recipes = {d: m.get("recipe") for d, m in manifests.items()}
    data = {r: manifests[r.dataset].get("data", {}).get(r.slot.key) for r in todo}
    record = functools.partial(_record, prints=prints, homes=homes, recipes=recipes, data=data, effective=effective)
    for dataset in {r.dataset for r in todo}:
        found = manifests[dataset]
        if found["status"] != "ok":
            for run in [r for r in todo if r.dataset == dataset]:
                record(run, lambda folder, found=found: (found["status"], found["reason"], "", []))
    ready = [r for r in todo if manifests[r.dataset]["status"] == "ok"]
    for dotted in {name for r in ready for name in (spec_of(r)["class"], spec_of(r)["task"], spec_of(r)["type"])}:
        resolve(dotted)  # imported once here, for all children; kernels run in children only

    def work(run: Run) -> None:
        record(run, lambda folder: execute_run(run, Path(observed[run.dataset]), folder))

    apart = [run for run in ready if _is_of_a_user(run)]
    for together in ([run for run in ready if run not in apart], *([run] for run in apart)):
        for run, why in run_isolated(work, together, limit):
            record(run, lambda folder, why=why: ("failed", why, "", []))
    gather(runs, homes, out)
    print(f"{len(todo)} of {len(runs)} runs computed, the rest reused")


def _is_of_a_user(run: Run) -> bool:
    """Whether code from a folder named under `code:` computes the run."""
    return any(modules.is_followed(name) and not name.startswith("agglearn.") for name in run.code)


def fingerprint(run: Run, manifest: dict) -> str:
    """Digest of all that the run's result depends on: its recipe and the content of its observation and truth."""
    seen = {k: v for k, v in manifest["content"].items() if k.startswith(f"{run.slot.key}/")}
    return digest([run.recipe, seen, manifest.get("reason")])


def _holds(run: Run, home: Path, wanted: str, manifest: dict, newer_than: int) -> bool:
    """Whether the finished run is whole, and what would be computed; without an observation, whether its recipes are today's."""
    try:
        record = storage.read_json(home / "run.json")
        rows = pq.read_table(home / "measurements.parquet", schema=SCHEMA).num_rows
        written = (home / "run.json").stat().st_mtime_ns
    except (OSError, ValueError):  # Arrow's errors are ValueErrors
        return False
    if record["status"] not in ("ok", "stopped") or not rows or written <= newer_than:
        return False
    if manifest["status"] != "ok" and manifest.get("recipe"):
        return (record["recipe"], record.get("observation_recipe")) == (run.recipe, manifest["recipe"])
    return record["fingerprint"] == wanted


def _record(run: Run, compute: Callable, prints: dict, homes: dict, recipes: dict, data: dict, effective: dict) -> None:
    with storage.atomic_dir(homes[run]) as work:
        began = time.time()
        status, reason, trace, rows = compute(work)
        ended = time.time()
        identity = {"run": run.key, **{f: getattr(run, f) for f in IDENTITY}, "status": status, "reason": reason}
        pq.write_table(table_of([{**identity, **r} for r in rows or [{}]]), work / "measurements.parquet")
        if trace:
            (work / "traceback.txt").write_text(trace)
        storage.write_json(
            work / "run.json",
            {
                **identity,
                "fingerprint": prints[run],
                "recipe": run.recipe,
                "observation_recipe": recipes[run.dataset],
                "data": data[run],
                "spec": spec_of(run),
                "python": platform.python_version(),
                "versions": digests.versions(*run.code),
                "commit": commit(),
                "began": began,  # seconds since 1970, as `ended`
                "ended": ended,
                "config": effective,
            },
        )


@functools.cache
def commit() -> str | None:
    """Commit of the working tree, with a mark when it holds changes; None outside a repository."""
    here = Path(__file__).parent
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None
