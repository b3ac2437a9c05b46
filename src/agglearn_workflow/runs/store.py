"""Runs of one batch: each in a forked child under a time limit, each kept as a folder and reused while it is current.

A finished run is `results/runs/<key>/` with `run.json`, `measurements.parquet` and, where it is kept, `model/`. It is reused
while its fingerprint (key, settings, code, content of its records) is the same and it has a result: it is `ok`, or `stopped` at
its solver's own limit. A run that failed is tried again whenever its batch is.

Runs of this package's methods share a child, which loads compiled code once. Runs of a user's methods have a child each, so
that nothing that one leaves behind in modules or classes reaches the next.
"""

import functools
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from agglearn import machine, storage
from agglearn.registry import resolve
from agglearn.storage import digest
from agglearn_workflow import digests
from agglearn_workflow.archive.store import FINISHED, Archived, ArchivedRun
from agglearn_workflow.measurements import SCHEMA, table_of, write_batch
from agglearn_workflow.plan import Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.commit import commit
from agglearn_workflow.runs.cost import measure_cost
from agglearn_workflow.runs.execution import Outcome, execute_run
from agglearn_workflow.runs.isolation import run_isolated
from agglearn_workflow.runs.observing import Source


def fit_batch(
    runs: list[Run],
    sources: Mapping[str, Source],
    observe: Callable[[list[Run]], Mapping[str, Path]],
    results: str | Path,
    out: str | Path,
    limit: float,
    effective: dict,
    reuse: bool = True,
    archived: Archived | None = None,
) -> None:
    """Compute the runs that are missing and write the batch's measurements.

    `sources` and `observe` are by data set: what it is observed from, and the products with the observations of some runs.
    """
    folders = {run: Path(results) / "runs" / run.key for run in runs}
    todo = [run for run in runs if not (reuse and _is_current(run, folders[run], sources[run.dataset]))]
    restored = []
    for run in todo if reuse else []:
        finished = (archived or {}).get(run.key)
        if finished and _is_todays(run, finished.facts, sources[run.dataset]):
            if run.keeps_model:
                print(f"run {run.key} is in the archive, and is computed because its model is kept")
            else:
                _restore(run, finished, folders[run], effective)
                restored.append(run)
    todo = [run for run in todo if run not in restored]
    observed = observe(todo)
    manifests = {dataset: products.manifest(product) for dataset, product in observed.items()}

    def keep(run: Run, compute: Callable[[Path], Outcome]) -> None:
        _keep(run, compute, folders[run], sources[run.dataset], manifests[run.dataset], effective)

    ready = []
    for run in todo:
        manifest = manifests[run.dataset]
        if manifest["status"] == "ok":
            ready.append(run)
        else:
            keep(run, functools.partial(_refrain, Outcome(manifest["status"], manifest["reason"])))
    classes = [(s.method_class, s.task, s.observation_class) for s in {run.settings for run in ready}]
    for dotted in {name for names in classes for name in names}:
        resolve(dotted)  # imported once here, for all children. Kernels run in children only.

    def work(run: Run) -> None:
        keep(run, lambda folder: execute_run(run, observed[run.dataset], folder))

    apart = [run for run in ready if _is_of_a_user(run)]
    for together in ([run for run in ready if run not in apart], *([run] for run in apart)):
        for run, reason in run_isolated(work, together, limit):
            keep(run, functools.partial(_refrain, Outcome("failed", reason)))
    write_batch(runs, folders, out)
    print(f"{len(todo)} of {len(runs)} runs computed, {len(restored)} taken from the archive, the rest reused")


def _refrain(outcome: Outcome, folder: Path) -> Outcome:
    """The outcome of a run that is not computed."""
    return outcome


def _is_of_a_user(run: Run) -> bool:
    """Whether code from a folder named under `code:` computes the run."""
    return any(digests.is_followed(name) and not name.startswith("agglearn.") for name in run.code)


def fingerprint(run: Run, source: Source) -> str:
    """Digest of all that the run's result depends on: its recipe, and what its data set is observed from."""
    return digest([run.recipe, source.recipe, source.content])


def _is_current(run: Run, folder: Path, source: Source) -> bool:
    """Whether the run is finished and whole, and is the one that would be computed today."""
    try:
        facts = storage.read_json(folder / "run.json")
        rows = pq.read_table(folder / "measurements.parquet", schema=SCHEMA).num_rows
    except (OSError, ValueError):  # Arrow's errors are ValueErrors
        return False
    return facts["status"] in FINISHED and bool(rows) and _is_todays(run, facts, source)


def _is_todays(run: Run, facts: dict, source: Source) -> bool:
    """Whether a run would be computed with the same recipe from the same data today. Without data, its recipes have to be today's."""
    if source.status == "ok":
        return facts["fingerprint"] == fingerprint(run, source)
    return (facts["recipe"], facts["observation_recipe"]) == (run.recipe, source.recipe)


def _restore(run: Run, archived: ArchivedRun, folder: Path, effective: dict) -> None:
    """Write the folder of a run from the archive."""
    with storage.atomic_dir(folder) as work:
        pq.write_table(archived.rows, work / "measurements.parquet")
        outcome = archived.rows.select(["run", "status", "reason"]).slice(0, 1).to_pylist()[0]
        storage.write_json(work / "run.json", outcome | archived.facts | {"config": effective})


def _keep(
    run: Run, compute: Callable[[Path], Outcome], folder: Path, source: Source, manifest: dict, effective: dict
) -> None:
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
                "fingerprint": fingerprint(run, source),
                "recipe": run.recipe,
                "code": digests.code_digest(*run.code),
                "observed": digest({k: v for k, v in manifest["content"].items() if k.startswith(f"{run.slot.key}/")}),
                "observation_recipe": source.recipe,
                "data": manifest.get("data", {}).get(run.slot.key),
                "spec": run.settings.spec,
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
