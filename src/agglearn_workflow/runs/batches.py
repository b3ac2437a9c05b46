"""The job that fits a batch: runs are observed, computed or reused, and archived where that is asked for.

A run is a folder `results/runs/<key>/`, reused while its fingerprint is the same and it has a result. Runs of our methods
share a forked child, which loads compiled code once. Those of a user's methods have one each."""

import platform
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn import machine, storage
from agglearn.errors import AgglearnError, NotAvailable, describe
from agglearn.registry import resolve
from agglearn.text import count_text
from agglearn_workflow.archive import store as archive
from agglearn_workflow.archive.store import SCHEMA, table_of, write_batch
from agglearn_workflow.config.entries import FOR_READERS
from agglearn_workflow.digests import code_digest, commit, is_followed, versions
from agglearn_workflow.memory import measure_cost
from agglearn_workflow.plan import Plan, Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.execution import Outcome, Source, execute_run, observe_runs
from agglearn_workflow.runs.isolation import run_isolated


def fit(plan: Plan, name: str, batch: str, out: str | Path, observations: str | Path, terminal: TextIO) -> None:
    """Write the measurements of a batch, and the observations that were needed for it."""
    config, experiment, runs = plan.config, plan.experiments[name], plan.runs(name, batch)
    results, sources = Path(config["results"]), {d: Source.of(config, d) for d in plan.datasets(name, batch)}

    def report(dataset: str, error: Exception) -> None:
        traceback.print_exception(error)  # for the log
        print(f"agglearn: error: {name} {dataset} was not observed: {describe(error)}", file=terminal)

    store = Store(results, sources, effective(config, experiment, sources))
    archived = {} if config["from"] == "data" else archive.read(config["archive"], name)
    missing = store.recall(runs, archived) if config["reuse"] else runs
    observed = observe_runs(missing, experiment, sources, Path(observations), report)
    _refuse(observed.values(), config)
    store.compute(missing, Path(observations), observed, experiment["time_limit"])
    write_batch({run: store.rows(run) for run in runs}, out)
    if config["from"] == "both":
        recipes = {run.key: run.recipe for run in runs}
        archive.add(config["archive"], name, archive.of_results(results, runs), recipes)
    rows = pd.read_parquet(out, columns=["dataset", "method", "seed", "status", "reason"]).drop_duplicates()
    for row in rows[(rows.status == "ok") & rows.reason.notna()].itertuples():
        print(f"agglearn: {name}: {row.dataset}, {row.method}, seed {row.seed}: {row.reason}", file=terminal)
    for row in rows[rows.status == "failed"].itertuples() if config["on_failure"] == "fail" else ():
        raise AgglearnError(f"{row.dataset}, {row.method}, seed {row.seed} failed: {row.reason}")


def _refuse(manifests: Iterable[dict], config: dict) -> None:
    """End the job at a data set that is missing or failed, where the configuration asks for it."""
    for manifest in manifests:
        if (manifest["status"], config["on_missing"]) == ("unavailable", "fail"):
            raise NotAvailable(manifest["reason"])
        if (manifest["status"], config["on_failure"]) == ("failed", "fail"):
            raise AgglearnError(manifest["reason"])


def effective(config: dict, experiment: dict, names: Iterable[str]) -> dict:
    """The part of the configuration that a run of an experiment records."""
    absent = "experiments", "datasets", "claims", "references", "scale_folder"
    entries, fields = {name: config["datasets"][name] for name in names}, ("class", "params", *FOR_READERS)
    papers = config["references"].get("papers", {})
    source = experiment["source"]
    return {key: value for key, value in config.items() if key not in absent} | {
        "experiment": experiment,
        "datasets": {name: {key: entry[key] for key in fields if key in entry} for name, entry in entries.items()},
        "references": {"papers": {source: papers[source]} if source in papers else {}},
    }


def fingerprint(run: Run, source: Source) -> str:
    return storage.digest([run.recipe, source.recipe, source.content])


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

    def recall(self, runs: Collection[Run], archived: archive.Archived) -> list[Run]:
        """The runs that have to be computed. Others are current, or restored from the archive."""
        missing, n_restored = [], 0
        for run in runs:
            if self.is_current(run, archive.read_finished(self.folder(run))):
                continue
            is_archived = self.is_current(run, archived.get(run.key))
            if is_archived and not run.keeps_model:
                self.restore(run, archived[run.key])
                n_restored += 1
                continue
            if is_archived:
                print(f"run {run.key} is in the archive, and is computed because its model is kept")
            missing.append(run)
        todo = f"{len(missing)} of {count_text(len(runs), 'run')} to compute"
        print(f"{todo}, {n_restored} taken from the archive, the rest reused")
        return missing

    def is_current(self, run: Run, finished: archive.ArchivedRun | None) -> bool:
        """Whether a finished run is the one that would be computed today. Without data, recipes have to be today's."""
        if finished is None:
            return False
        source, facts = self.sources[run.dataset], finished.facts
        if source.status == "ok":
            return facts["fingerprint"] == fingerprint(run, source)
        return (facts["recipe"], facts["observation_recipe"]) == (run.recipe, source.recipe)

    def compute(self, runs: Collection[Run], observations: Path, manifests: Mapping[str, dict], limit: float) -> None:
        """Compute runs, each in at most `limit` seconds, from the products with the observations of each data set."""

        def work(run: Run) -> None:
            self.keep(run, manifests[run.dataset], lambda folder: execute_run(run, observations / run.dataset, folder))

        def keep_without(run: Run, status: str, reason: str) -> None:
            self.keep(run, manifests[run.dataset], lambda folder: Outcome(status, reason))

        apart, together = [], []  # groups of runs, each of which has a child of its own
        for run in runs:
            manifest = manifests[run.dataset]
            if manifest["status"] != "ok":
                keep_without(run, manifest["status"], manifest["reason"])
                continue
            for dotted in run.code[:3]:
                resolve(dotted)  # imported once here, for all children. Kernels run in children only.
            is_of_a_user = any(is_followed(name) and not name.startswith("agglearn.") for name in run.code)
            apart.append([run]) if is_of_a_user else together.append(run)
        for group in (together, *apart):
            for run, reason in run_isolated(work, group, limit):
                keep_without(run, "failed", reason)

    def restore(self, run: Run, archived: archive.ArchivedRun) -> None:
        with storage.atomic_dir(self.folder(run)) as work:
            pq.write_table(archived.rows, work / "measurements.parquet")
            outcome = archived.rows.select(["run", "status", "reason"]).slice(0, 1).to_pylist()[0]
            storage.write_json(work / "run.json", outcome | archived.facts | {"config": self.effective})

    def keep(self, run: Run, manifest: dict, compute: Callable[[Path], Outcome]) -> None:
        source = self.sources[run.dataset]
        with storage.atomic_dir(self.folder(run)) as work:
            with measure_cost() as cost:
                outcome = compute(work)
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
                "spec": run.settings,
                "python": platform.python_version(),
                "machine": machine.describe(),
                "versions": versions(*run.code),
                "commit": commit(),
            }
            storage.write_json(work / "run.json", fields | facts | cost | {"config": self.effective})
