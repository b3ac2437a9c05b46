"""One run: its seeds, the fit, what is measured."""

import json
import random
import shutil
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from agglearn import storage
from agglearn.errors import ConfigError, NoiseIgnored, NotAvailable, Stopped, describe
from agglearn.registry import build, resolve
from agglearn.seeds import derive_seed
from agglearn_workflow.plan import Run

if TYPE_CHECKING:
    from agglearn.estimator import Estimator
    from agglearn.observations import Observation
    from agglearn.tasks import Measurement, Task


def seed_globals(number: int) -> None:
    """Seed Python's and NumPy's global random states. A forked process would start from that of all others."""
    random.seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002


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


def _keys_text(measurement: "Measurement", task: "Task") -> str | None:
    if unknown := set(measurement.keys or ()) - set(task.KEYS):
        raise ConfigError(
            f"{type(task).__name__}: {measurement.measure} has the keys {', '.join(sorted(unknown))}, which KEYS lacks"
        )
    return json.dumps(measurement.keys, ensure_ascii=False) if measurement.keys else None


def _save_model(estimator: "Estimator", folder: Path) -> tuple[str | None, str]:
    """(reason, traceback) of a model that cannot be saved. Nothing of it stays. Its measurements count."""
    try:
        estimator.save(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        return f"its model could not be saved: {describe(error)}", traceback.format_exc()
    return None, ""


def _check_noise(estimator: "Estimator", observation: "Observation", ignore_noise: bool) -> None:
    if (reason := estimator.describe_ignored_noise(observation)) and not ignore_noise:
        raise ConfigError(f"{reason}; or state `ignore_noise: true` beside the method's class")
    if ignore_noise and estimator.accounts_for_noise:
        raise ConfigError(f"ignore_noise: {type(estimator).__name__} accounts for noise; leave it out")
