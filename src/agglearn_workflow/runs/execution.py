"""Runs. What they learn from and what they are measured on are products, saved apart. Then come the fit and the measures."""

import json
import random
import shutil
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agglearn import storage
from agglearn.datasets import RecordStore, facts
from agglearn.errors import AgglearnError, ConfigError, NoiseIgnored, NotAvailable, Stopped, describe
from agglearn.estimator import Estimator
from agglearn.observations import Observation
from agglearn.registry import build, resolve
from agglearn.seeds import derive_seed
from agglearn.tasks import Measurement, Task, TaskInput
from agglearn_workflow.config.entries import essence, has_records
from agglearn_workflow.digests import code_digest
from agglearn_workflow.plan import Run
from agglearn_workflow.runs import products
from agglearn_workflow.runs.isolation import run_isolated


def seed_globals(number: int) -> None:
    """Seed Python's and NumPy's global random states. A forked process would start from that of all others."""
    random.seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002


def records_of(config: dict, dataset: str) -> Path | None:
    """Folder of the records of a data set. A simulated one has none, and is drawn."""
    return Path(config["results"], "records", dataset) if has_records(config["datasets"][dataset]) else None


class Source(NamedTuple):
    """What a data set is observed from: the status, reason and content of its records, how they were made, its entry."""

    status: str
    reason: str | None
    recipe: str
    content: str | None
    records: Path | None
    entry: dict

    @classmethod
    def of(cls, config: dict, dataset: str) -> "Source":
        entry, records = config["datasets"][dataset], records_of(config, dataset)
        recipe = storage.digest([essence(entry), code_digest(entry["class"])])
        if records is None:
            return cls("ok", None, recipe, None, None, entry)
        manifest = products.manifest(records)
        content = storage.digest(manifest["content"])
        return cls(manifest["status"], manifest.get("reason"), recipe, content, records, entry)


Report = Callable[[str, Exception], object]  # of a data set that was not observed


def observe_runs(
    runs: Iterable[Run], experiment: dict, sources: Mapping[str, Source], out: Path, report: Report
) -> dict[str, dict]:
    """Write a product for each data set that is here, in a child that alone reads records. Returns data set → manifest.
    An error is a status, and is reported."""
    slots: dict[str, dict[str, Run]] = {}  # of each data set: name → one of the runs that learn from it
    for run in runs:
        slots.setdefault(run.dataset, {})[run.slot] = run

    def observe(dataset: str) -> None:
        def make(folder: Path) -> dict:
            # one split after another, as a task keeps the last ones
            observed = sorted(slots[dataset].items(), key=lambda item: (item[1].dataset_params, item[1].seed))
            return {"data": {name: observe_slot(run, experiment, sources[dataset], folder) for name, run in observed}}

        products.build_product(out / dataset, make, on_failure=lambda error: report(dataset, error))

    out.mkdir(parents=True, exist_ok=True)
    needed = [(dataset, sources[dataset]) for dataset in slots]
    available = [dataset for dataset, source in needed if source.status == "ok"]
    manifests: dict[str, dict] = {d: {"status": s.status, "reason": s.reason, "content": {}} for d, s in needed}
    for dataset, reason in run_isolated(observe, available):
        report(dataset, AgglearnError(reason))
        manifests[dataset] |= {"status": "failed", "reason": reason}
    return {d: products.manifest(out / d) if m["status"] == "ok" else m for d, m in manifests.items()}


def observe_slot(run: Run, experiment: dict, source: Source, out: Path) -> dict:
    """Write `observation`, `truth` and `units.json` of a run and of those that share them. Returns facts on data."""
    task, entry, records = resolve(experiment["task"])(), source.entry, source.records
    params = json.loads(run.dataset_params)
    seed_globals(derive_seed("observe", run.dataset, run.dataset_params, run.seed))  # whatever is observed of them
    if records:
        data = RecordStore.open(records)
    else:
        data = resolve(entry["class"]).from_entry(entry, params).draw(run.seed)
    kind = resolve(experiment["observe"][run.observation]["type"])
    task_input = TaskInput(run.dataset, entry, params, data)
    observation, truth = task.observe(task_input, kind, json.loads(run.observation_params), run.seed)
    folder = out / run.slot
    observation.save(folder / "observation")
    truth.save(folder / "truth")
    units = {"tested": truth.tested, "overlap": task.overlap(task_input)}
    (folder / "units.json").write_text(json.dumps(units))
    return facts.of_records(records) if records else facts.of_draw(entry, run.dataset_params, run.seed, data)


def fit_seed(run: Run) -> int:
    """Seed of the method of a run, whatever the experiment: equal runs of two experiments have equal results."""
    return derive_seed("fit", run.dataset, run.dataset_params, run.observation_params, run.method, run.params, run.seed)


class Outcome(NamedTuple):
    status: str
    reason: str | None = None
    trace: str = ""
    rows: Sequence[dict] = ()


def execute_run(run: Run, observed: Path, folder: Path) -> Outcome:
    """Fit and measure. An error of a method is a result, not the end of the table."""
    settings = run.settings
    task = resolve(settings["task"])()
    started = time.perf_counter()
    try:
        slot = observed / run.slot
        observation = resolve(settings["type"]).load(slot / "observation")
        random_state = fit_seed(run)
        seed_globals(random_state)
        recipe = {"class": settings["class"], "params": json.loads(run.params)}
        estimator = build(recipe, random_state=random_state)
        if hasattr(estimator, "warm_up"):
            estimator.warm_up()  # compilation is no part of the time of a fit
        _check_noise(estimator, observation, settings["ignore_noise"])
        fit_started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseIgnored)  # it was asked for
            estimator.fit(observation)
        seconds = time.perf_counter() - fit_started
        truth = task.truth.load(slot / "truth")
        units = {name: unit for name, (unit, _) in task.MEASURES.items()}
        rows = [
            {"measure": m.measure, "keys": _keys_text(m, task), "step": m.step, "value": m.value,
             "unit": units.get(m.measure, "") if m.unit is None else m.unit}
            for m in task.measure(estimator, truth, settings["measures"])
        ]  # fmt: skip
        reason, trace = None, ""
        if run.keeps_model:
            reason, trace = _save_model(estimator, folder / "model")
        elapsed = time.perf_counter() - started
        rows += [{"measure": m, "value": v, "unit": "s"} for m, v in (("seconds", seconds), ("elapsed", elapsed))]
        tested = storage.read_json(slot / "units.json")
        return Outcome("ok", reason, trace, [row | tested for row in rows])
    except NotAvailable as error:
        return Outcome("unavailable", str(error))
    except Stopped as error:
        return Outcome("stopped", str(error))
    except Exception as error:
        return Outcome("failed", describe(error), traceback.format_exc())


def _keys_text(measurement: Measurement, task: Task) -> str | None:
    if unknown := set(measurement.keys or ()) - set(task.KEYS):
        raise ConfigError(
            f"{type(task).__name__}: {measurement.measure} has the keys {', '.join(sorted(unknown))}, which KEYS lacks"
        )
    return json.dumps(measurement.keys, ensure_ascii=False) if measurement.keys else None


def _save_model(estimator: Estimator, folder: Path) -> tuple[str | None, str]:
    """(reason, traceback) of a model that cannot be saved. Nothing of it stays. Its measurements count."""
    try:
        estimator.save(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        return f"its model could not be saved: {describe(error)}", traceback.format_exc()
    return None, ""


def _check_noise(estimator: Estimator, observation: Observation, ignore_noise: bool) -> None:
    if (reason := estimator.describe_ignored_noise(observation)) and not ignore_noise:
        raise ConfigError(f"{reason}; or state `ignore_noise: true` beside the method's class")
    if ignore_noise and estimator.accounts_for_noise:
        raise ConfigError(f"ignore_noise: {type(estimator).__name__} accounts for noise; leave it out")
