"""The observation of a slot with its truth, as files."""

import json
from pathlib import Path

from agglearn.datasets import RecordStore, facts
from agglearn.registry import resolve
from agglearn.seeds import derive_seed
from agglearn.tasks import TaskInput
from agglearn.workflow.execution import seed_globals
from agglearn.workflow.plan import Slot


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
