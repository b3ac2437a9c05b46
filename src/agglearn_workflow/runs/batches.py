"""The job that fits a batch: runs are observed, computed or reused, and archived where that is asked for."""

import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import pandas as pd

from agglearn.errors import AgglearnError, NotAvailable, describe
from agglearn_workflow.archive import store as archive
from agglearn_workflow.config.checks import FOR_READERS
from agglearn_workflow.measurements import write_batch
from agglearn_workflow.plan import Plan
from agglearn_workflow.runs import products
from agglearn_workflow.runs.observing import Source, observe_runs
from agglearn_workflow.runs.store import Store


def fit(plan: Plan, name: str, batch: str, out: str | Path, observations: str | Path, terminal: TextIO) -> None:
    """Write the measurements of a batch, and the observations that were needed for it."""
    config, experiment, runs = plan.config, plan.experiments[name], plan.runs(name, batch)
    results, entries = Path(config["results"]), {d: config["datasets"][d] for d in plan.datasets(name, batch)}
    sources = {dataset: Source.of(config, dataset) for dataset in entries}

    def report(dataset: str, error: Exception) -> None:
        traceback.print_exception(error)  # for the log
        print(f"agglearn: error: {name} {dataset} was not observed: {describe(error)}", file=terminal)

    store = Store(results, sources, effective(config, experiment, entries))
    archived = {} if config["from"] == "data" else archive.read(config["archive"], name)
    missing = store.recall(runs, archived) if config["reuse"] else runs
    observed = observe_runs(missing, experiment, entries, sources, Path(observations), report)
    _refuse(observed, config)
    store.compute(missing, observed, experiment["time_limit"])
    write_batch({run: store.rows(run) for run in runs}, out)
    if config["from"] == "both":
        recipes = {run.key: run.recipe for run in runs}
        archive.add(config["archive"], name, archive.of_results(results, runs), recipes)
    rows = pd.read_parquet(out, columns=["dataset", "method", "seed", "status", "reason"]).drop_duplicates()
    for row in rows[(rows.status == "ok") & rows.reason.notna()].itertuples():
        print(f"agglearn: {name}: {row.dataset}, {row.method}, seed {row.seed}: {row.reason}", file=terminal)
    for row in rows[rows.status == "failed"].itertuples() if config["on_failure"] == "fail" else ():
        raise AgglearnError(f"{row.dataset}, {row.method}, seed {row.seed} failed: {row.reason}")


def _refuse(observed: dict[str, Path], config: dict) -> None:
    """End the job at a data set that is missing or failed, where the configuration asks for it."""
    for product in observed.values():
        manifest = products.manifest(product)
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
