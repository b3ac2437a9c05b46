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
from agglearn_workflow.config.loading import essence
from agglearn_workflow.digests import code_digest
from agglearn_workflow.plan import Run, Slot
from agglearn_workflow.runs import products
from agglearn_workflow.runs.execution import seed_globals
from agglearn_workflow.runs.isolation import run_isolated


class Source(NamedTuple):
    """What a data set is observed from: the status, reason and content of its records, and how they were made."""

    status: str
    reason: str | None
    recipe: str
    content: str | None
    records: Path | None

    @classmethod
    def of(cls, entry: dict, records: Path | None) -> "Source":
        """The source of an entry. A simulated data set has no records, and is drawn."""
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
) -> dict[str, Path]:
    """Write what some runs learn from and are measured on: a product per data set, in a child process that alone reads records.

    An error is the status of its product, and `report(dataset, error)` is called.
    """
    slots: dict[str, dict[Slot, None]] = {}
    for run in runs:
        slots.setdefault(run.dataset, {})[run.slot] = None

    def write(dataset: str, build: Callable[[Path], dict | None]) -> None:
        records = sources[dataset].records
        products.build_product(
            out / dataset, build, [records] if records else [], on_failure=lambda error: report(dataset, error)
        )

    def observe(dataset: str) -> None:
        def build(folder: Path) -> dict:
            entry, records = entries[dataset], sources[dataset].records
            return {
                "data": {slot.key: observe_slot(slot, experiment, entry, records, folder) for slot in slots[dataset]}
            }

        write(dataset, build)

    def fail(reason: str) -> dict | None:
        raise AgglearnError(reason)

    out.mkdir(parents=True, exist_ok=True)
    for dataset, reason in run_isolated(observe, list(slots)):
        write(dataset, lambda _, reason=reason: fail(reason))  # type: ignore[misc]
    return {dataset: out / dataset for dataset in slots}


def observe_slot(slot: Slot, experiment: dict, entry: dict, records: Path | None, out: Path) -> dict:
    """Write `<out>/<key>/observation`, `truth` and `units.json` of a slot, and return facts on its data."""
    task = resolve(experiment["task"])()
    params = json.loads(slot.dataset_params)
    seed_globals(derive_seed("observe", slot.dataset, slot.dataset_params, slot.seed))  # whatever is observed of them
    if records:
        data = RecordStore.open(records)
    else:
        data = resolve(entry["class"]).from_entry(entry).draw(slot.seed, **params)
    kind = resolve(experiment["observe"][slot.observation]["type"])
    source = TaskInput(slot.dataset, entry, params, data)
    observation, truth = task.observe(source, kind, json.loads(slot.observation_params), slot.seed)
    folder = out / slot.key
    for name, saved in (("observation", observation), ("truth", truth)):
        saved.save(folder / name)
    units = {"tested": truth.tested, "overlap": task.overlap(source)}
    (folder / "units.json").write_text(json.dumps(units))
    return facts.of_records(records) if records else facts.of_draw(entry, slot.dataset_params, slot.seed, data)
