"""Observations of data sets with their truths, as products that the runs of a batch learn from and are measured on."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from agglearn.datasets import RecordStore, facts
from agglearn.errors import AgglearnError
from agglearn.registry import resolve
from agglearn.seeds import derive_seed
from agglearn.storage import digest
from agglearn.tasks import TaskInput
from agglearn_workflow.config.entries import essence, has_records
from agglearn_workflow.digests import code_digest
from agglearn_workflow.plan import Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.execution import seed_globals
from agglearn_workflow.runs.isolation import run_isolated


def records_of(config: dict, dataset: str) -> Path | None:
    """Folder of the records of a data set. A simulated one has none, and is drawn."""
    return Path(config["results"], "records", dataset) if has_records(config["datasets"][dataset]) else None


class Source(NamedTuple):
    """What a data set is observed from: the status, reason and content of its records, and how they were made."""

    status: str
    reason: str | None
    recipe: str
    content: str | None
    records: Path | None

    @classmethod
    def of(cls, config: dict, dataset: str) -> "Source":
        entry, records = config["datasets"][dataset], records_of(config, dataset)
        recipe = digest([essence(entry), code_digest(entry["class"])])
        if records is None:
            return cls("ok", None, recipe, None, None)
        manifest = products.manifest(records)
        return cls(manifest["status"], manifest.get("reason"), recipe, digest(manifest["content"]), records)


def observe_runs(
    runs: Iterable[Run],
    experiment: dict,
    entries: Mapping[str, dict],
    sources: Mapping[str, Source],
    out: Path,
    report: Callable[[str, Exception], None],
) -> dict[str, dict]:
    """Write a product for each data set that is here, in a child that alone reads records. Returns data set → manifest.
    An error is a status, and is reported."""
    slots: dict[str, dict[str, Run]] = {}  # of each data set: name → one of the runs that learn from it
    for run in runs:
        slots.setdefault(run.dataset, {})[run.slot] = run

    def observe(dataset: str) -> None:
        def build(folder: Path) -> dict:
            context = experiment, entries[dataset], sources[dataset].records
            return {"data": {name: observe_slot(run, *context, folder) for name, run in slots[dataset].items()}}

        products.build_product(out / dataset, build, on_failure=lambda error: report(dataset, error))

    out.mkdir(parents=True, exist_ok=True)
    available = [dataset for dataset in slots if sources[dataset].status == "ok"]
    states = {dataset: (sources[dataset].status, sources[dataset].reason) for dataset in slots}
    for dataset, reason in run_isolated(observe, available):
        report(dataset, AgglearnError(reason))
        states[dataset] = "failed", reason
    without: dict[str, dict] = {
        d: {"status": status, "reason": reason, "content": {}} for d, (status, reason) in states.items()
    }
    return without | {d: products.manifest(out / d) for d, (status, _) in states.items() if status == "ok"}


def observe_slot(run: Run, experiment: dict, entry: dict, records: Path | None, out: Path) -> dict:
    """Write `observation`, `truth` and `units.json` of a run and of those that share them. Returns facts on data."""
    task = resolve(experiment["task"])()
    params = json.loads(run.dataset_params)
    seed_globals(derive_seed("observe", run.dataset, run.dataset_params, run.seed))  # whatever is observed of them
    if records:
        data = RecordStore.open(records)
    else:
        data = resolve(entry["class"]).from_entry(entry, params).draw(run.seed)
    kind = resolve(experiment["observe"][run.observation]["type"])
    source = TaskInput(run.dataset, entry, params, data)
    observation, truth = task.observe(source, kind, json.loads(run.observation_params), run.seed)
    folder = out / run.slot
    observation.save(folder / "observation")
    truth.save(folder / "truth")
    units = {"tested": truth.tested, "overlap": task.overlap(source)}
    (folder / "units.json").write_text(json.dumps(units))
    return facts.of_records(records) if records else facts.of_draw(entry, run.dataset_params, run.seed, data)
