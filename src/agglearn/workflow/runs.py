"""Runs of one batch: each in a forked child under a time limit, each kept as a folder and reused while it is current.

A finished run is `results/runs/<key>/` with `run.json`, `measurements.parquet` and, where it is kept, `model/`. It is reused
while its fingerprint (key, code, content of its observation) is the same and it has a result: it is `ok`, or `stopped` at
its solver's own limit. A run that failed is tried again whenever its batch is.

Runs of this package's methods share a child, which loads compiled code once. Runs of a user's methods have a child each, so
that nothing that one leaves behind in modules or classes reaches the next.
"""

import functools
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from agglearn import machine, storage
from agglearn.inspection import digests, modules
from agglearn.registry import resolve
from agglearn.storage import digest
from agglearn.workflow import products
from agglearn.workflow.cost import measure_cost
from agglearn.workflow.execution import Outcome, execute_run
from agglearn.workflow.isolation import run_isolated
from agglearn.workflow.measurements import SCHEMA, table_of, write_batch
from agglearn.workflow.plan import Run
from agglearn.workflow.record import FINISHED, Recorded, RecordedRun


def fit_batch(
    runs: list[Run],
    observed: Mapping[str, str | Path],
    results: str | Path,
    out: str | Path,
    limit: float,
    effective: dict,
    newer_than: int = 0,
    recorded: Recorded | None = None,
) -> None:
    """Compute the runs that are missing and write the batch's measurements."""
    manifests = {dataset: products.manifest(product) for dataset, product in observed.items()}
    folders = {run: Path(results) / "runs" / run.key for run in runs}
    todo = [run for run in runs if not _is_current(run, folders[run], manifests[run.dataset], newer_than)]
    taken = []
    for run in [] if newer_than else todo:
        one = (recorded or {}).get(run.key)
        if one and _is_todays(run, one.facts, manifests[run.dataset]):
            if run.keeps_model:
                print(f"run {run.key} is in the record, and is computed because its model is kept")
            else:
                _restore(run, one, folders[run], effective)
                taken.append(run)
    todo = [run for run in todo if run not in taken]

    def record(run: Run, compute: Callable[[Path], Outcome]) -> None:
        _record(run, compute, folders[run], manifests[run.dataset], effective)

    ready = []
    for run in todo:
        manifest = manifests[run.dataset]
        if manifest["status"] == "ok":
            ready.append(run)
        else:
            record(run, functools.partial(_refrain, Outcome(manifest["status"], manifest["reason"])))
    classes = [(s.method_class, s.task, s.observation_class) for s in {run.settings for run in ready}]
    for dotted in {name for names in classes for name in names}:
        resolve(dotted)  # imported once here, for all children. Kernels run in children only.

    def work(run: Run) -> None:
        record(run, lambda folder: execute_run(run, Path(observed[run.dataset]), folder))

    apart = [run for run in ready if _is_of_a_user(run)]
    for together in ([run for run in ready if run not in apart], *([run] for run in apart)):
        for run, reason in run_isolated(work, together, limit):
            record(run, functools.partial(_refrain, Outcome("failed", reason)))
    write_batch(runs, folders, out)
    print(f"{len(todo)} of {len(runs)} runs computed, {len(taken)} taken from the record, the rest reused")


def _refrain(outcome: Outcome, folder: Path) -> Outcome:
    """The outcome of a run that is not computed."""
    return outcome


def _is_of_a_user(run: Run) -> bool:
    """Whether code from a folder named under `code:` computes the run."""
    return any(modules.is_followed(name) and not name.startswith("agglearn.") for name in run.code)


def fingerprint(run: Run, manifest: dict) -> str:
    """Digest of all that the run's result depends on: its recipe and the content of its observation and truth."""
    return digest([run.recipe, _content(run, manifest), manifest.get("reason")])


def _content(run: Run, manifest: dict) -> dict[str, str]:
    """Digests of the files of a run's observation and truth."""
    return {k: v for k, v in manifest["content"].items() if k.startswith(f"{run.slot.key}/")}


def _is_current(run: Run, folder: Path, manifest: dict, newer_than: int) -> bool:
    """Whether the run is finished and whole, and is the one that would be computed today."""
    try:
        record = storage.read_json(folder / "run.json")
        rows = pq.read_table(folder / "measurements.parquet", schema=SCHEMA).num_rows
        written = (folder / "run.json").stat().st_mtime_ns
    except (OSError, ValueError):  # Arrow's errors are ValueErrors
        return False
    return record["status"] in FINISHED and bool(rows) and written > newer_than and _is_todays(run, record, manifest)


def _is_todays(run: Run, record: dict, manifest: dict) -> bool:
    """Whether a run would be computed with the same recipe from the same observation today.

    Without an observation, its recipes have to be those of today.
    """
    if manifest["status"] != "ok" and manifest.get("recipe"):
        return (record["recipe"], record.get("observation_recipe")) == (run.recipe, manifest["recipe"])
    return record["fingerprint"] == fingerprint(run, manifest)


def _restore(run: Run, recorded: RecordedRun, folder: Path, effective: dict) -> None:
    """Write the folder of a run from the record."""
    with storage.atomic_dir(folder) as work:
        pq.write_table(recorded.rows, work / "measurements.parquet")
        outcome = recorded.rows.select(["run", "status", "reason"]).slice(0, 1).to_pylist()[0]
        storage.write_json(work / "run.json", outcome | recorded.facts | {"config": effective})


def _record(run: Run, compute: Callable[[Path], Outcome], folder: Path, manifest: dict, effective: dict) -> None:
    """Write the folder of a run."""
    with storage.atomic_dir(folder) as work:
        began = time.time()
        with measure_cost() as cost:
            outcome = compute(work)
        ended = time.time()
        own = {"run": run.key, **run.identity, "status": outcome.status, "reason": outcome.reason}
        pq.write_table(table_of([own | row for row in outcome.rows or [{}]]), work / "measurements.parquet")
        if outcome.trace:
            (work / "traceback.txt").write_text(outcome.trace)
        storage.write_json(
            work / "run.json",
            {
                **own,
                "fingerprint": fingerprint(run, manifest),
                "recipe": run.recipe,
                "code": digests.code_digest(*run.code),
                "observed": digest(_content(run, manifest)),
                "observation_recipe": manifest.get("recipe"),
                "data": manifest.get("data", {}).get(run.slot.key),
                "spec": run.settings.record(),
                "python": platform.python_version(),
                "machine": machine.describe(),
                "versions": digests.versions(*run.code),
                "commit": commit(),
                "began": began,  # seconds since 1970, as `ended`
                "ended": ended,
                **cost,
                "config": effective,
            },
        )


@functools.cache
def commit() -> str | None:
    """Commit of the working tree, with a mark when it holds changes. It is None outside a repository."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None
