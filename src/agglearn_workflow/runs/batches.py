"""The job that fits a batch: its runs are observed, computed or reused, and added to the archive where that is asked for."""

import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import pandas as pd

from agglearn.errors import AgglearnError, NotAvailable, describe
from agglearn_workflow.archive import store
from agglearn_workflow.config.checks import FOR_READERS
from agglearn_workflow.config.entries import has_records
from agglearn_workflow.plan import Plan, Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.observing import Source, observe_runs
from agglearn_workflow.runs.store import fit_batch


def fit(plan: Plan, name: str, batch: str, out: str | Path, observations: str | Path, terminal: TextIO) -> None:
    """Write the measurements of a batch, and the observations that were needed for it."""
    config, experiment, runs = plan.config, plan.experiments[name], plan.runs(name, batch)
    results, entries = (
        config["results"],
        {dataset: config["datasets"][dataset] for dataset in plan.datasets(name, batch)},
    )
    sources = {
        dataset: Source.of(entry, Path(results, "records", dataset) if has_records(entry) else None)
        for dataset, entry in entries.items()
    }

    def report(dataset: str, error: Exception) -> None:
        traceback.print_exception(error)  # for the log
        print(f"agglearn: error: {name} {dataset} was not observed: {describe(error)}", file=terminal)

    def observe(missing: list[Run]) -> dict[str, Path]:
        observed = observe_runs(missing, experiment, entries, sources, Path(observations), report)
        _refuse(observed, config)
        return observed

    archived = {} if config["from"] == "data" else store.read(config["archive"], name)
    limit, settings = experiment["time_limit"], effective(config, experiment, entries)
    fit_batch(runs, sources, observe, results, out, limit, settings, config["reuse"], archived)
    if config["from"] == "both":
        finished = store.of_results(results, runs)
        store.add(config["archive"], name, finished, {run.key: run.recipe for run in runs})
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
    papers = {
        name: paper for name, paper in config["references"].get("papers", {}).items() if name == experiment["source"]
    }
    return {key: value for key, value in config.items() if key not in absent} | {
        "experiment": experiment,
        "datasets": {name: _described(config["datasets"][name]) for name in names},
        "references": {"papers": papers},
    }


def _described(entry: dict) -> dict:
    """The fields of a data set's entry that a run records."""
    return {key: entry[key] for key in ("class", "params", *FOR_READERS) if key in entry}
