"""Runs of a batch: folders `results/runs/<key>/`, reused while the fingerprint is the same and the run has a result.
Runs of our methods share a forked child, which loads compiled code once. Those of a user's methods have one each."""

import platform
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from agglearn import machine, storage
from agglearn.registry import resolve
from agglearn.storage import digest
from agglearn_workflow.archive.store import Archived, ArchivedRun, read_finished
from agglearn_workflow.digests import code_digest, is_followed, versions
from agglearn_workflow.measurements import SCHEMA, table_of
from agglearn_workflow.plan import Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.circumstances import commit, measure_cost
from agglearn_workflow.runs.execution import Outcome, execute_run
from agglearn_workflow.runs.isolation import run_isolated
from agglearn_workflow.runs.observing import Source


def _is_of_a_user(run: Run) -> bool:
    """Whether code from a folder named under `code:` computes the run."""
    return any(is_followed(name) and not name.startswith("agglearn.") for name in run.code)


def fingerprint(run: Run, source: Source) -> str:
    return digest([run.recipe, source.recipe, source.content])


@dataclass
class Store:
    """Folders of runs. `sources` are by data set, `effective` is the configuration that runs record."""

    results: Path
    sources: Mapping[str, Source]
    effective: dict

    def folder(self, run: Run) -> Path:
        return self.results / "runs" / run.key

    def rows(self, run: Run) -> pa.Table:
        return pq.read_table(self.folder(run) / "measurements.parquet", schema=SCHEMA)

    def recall(self, runs: Collection[Run], archived: Archived) -> list[Run]:
        """The runs that have to be computed. Others are current, or restored from the archive."""
        missing, n_restored = [], 0
        for run in runs:
            if self.is_current(run, read_finished(self.folder(run))):
                continue
            is_archived = self.is_current(run, archived.get(run.key))
            if is_archived and not run.keeps_model:
                self.restore(run, archived[run.key])
                n_restored += 1
                continue
            if is_archived:
                print(f"run {run.key} is in the archive, and is computed because its model is kept")
            missing.append(run)
        print(f"{len(missing)} of {len(runs)} runs to compute, {n_restored} taken from the archive, the rest reused")
        return missing

    def is_current(self, run: Run, finished: ArchivedRun | None) -> bool:
        """Whether a finished run is the one that would be computed today. Without data, recipes have to be today's."""
        if finished is None:
            return False
        source, facts = self.sources[run.dataset], finished.facts
        if source.status == "ok":
            return facts["fingerprint"] == fingerprint(run, source)
        return (facts["recipe"], facts["observation_recipe"]) == (run.recipe, source.recipe)

    def compute(self, runs: Collection[Run], observed: Mapping[str, Path], limit: float) -> None:
        """Compute runs, each in at most `limit` seconds, from the products with the observations of each data set."""
        manifests = {dataset: products.manifest(product) for dataset, product in observed.items()}
        ready = [run for run in runs if manifests[run.dataset]["status"] == "ok"]

        def work(run: Run) -> None:
            self.keep(run, manifests[run.dataset], lambda folder: execute_run(run, observed[run.dataset], folder))

        def keep_without(run: Run, status: str, reason: str) -> None:
            self.keep(run, manifests[run.dataset], lambda folder: Outcome(status, reason))

        for run in runs:
            if run not in ready:
                keep_without(run, manifests[run.dataset]["status"], manifests[run.dataset]["reason"])
        for settings in {run.settings for run in ready}:
            for dotted in (settings.method_class, settings.task, settings.observation_class):
                resolve(dotted)  # imported once here, for all children. Kernels run in children only.
        apart = [run for run in ready if _is_of_a_user(run)]
        for together in ([run for run in ready if run not in apart], *([run] for run in apart)):
            for run, reason in run_isolated(work, together, limit):
                keep_without(run, "failed", reason)

    def restore(self, run: Run, archived: ArchivedRun) -> None:
        with storage.atomic_dir(self.folder(run)) as work:
            pq.write_table(archived.rows, work / "measurements.parquet")
            outcome = archived.rows.select(["run", "status", "reason"]).slice(0, 1).to_pylist()[0]
            storage.write_json(work / "run.json", outcome | archived.facts | {"config": self.effective})

    def keep(self, run: Run, manifest: dict, compute: Callable[[Path], Outcome]) -> None:
        source = self.sources[run.dataset]
        with storage.atomic_dir(self.folder(run)) as work:
            began = time.time()
            with measure_cost() as cost:
                outcome = compute(work)
            ended = time.time()
            fields = {"run": run.key, **run.identity, "status": outcome.status, "reason": outcome.reason}
            pq.write_table(table_of([fields | row for row in outcome.rows or [{}]]), work / "measurements.parquet")
            if outcome.trace:
                (work / "traceback.txt").write_text(outcome.trace)
            facts = {
                "fingerprint": fingerprint(run, source),
                "recipe": run.recipe,
                "code": code_digest(*run.code),
                "observed": products.content_digest(manifest["content"], run.slot),
                "observation_recipe": source.recipe,
                "data": manifest.get("data", {}).get(run.slot),
                "spec": run.settings.spec,
                "python": platform.python_version(),
                "machine": machine.describe(),
                "versions": versions(*run.code),
                "commit": commit(),
                "began": began,  # seconds since 1970, as `ended`
                "ended": ended,
            }
            storage.write_json(work / "run.json", fields | facts | cost | {"config": self.effective})
