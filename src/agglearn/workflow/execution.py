"""One run: its seeds, the fit, what is measured."""

import json
import random
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from agglearn import storage
from agglearn.errors import ConfigError, NoiseIgnored, NotAvailable, Stopped, described
from agglearn.registry import build, resolve
from agglearn.seeds import derive_seed
from agglearn.workflow.plan import Run


def seed_globals(number: int) -> None:
    """Give Python's and NumPy's global random state to this run: a forked process has that of all others."""
    random.seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002


def fit_seed(run: Run) -> int:
    """Seed of the method of a run. It does not depend on the experiment, so equal runs of two experiments have equal results."""
    return derive_seed("fit", run.dataset, run.dataset_params, run.observation_params, run.method, run.params, run.seed)


def execute_run(run: Run, observed: Path, folder: Path) -> tuple[str, str | None, str, list[dict]]:
    """Fit and measure: (status, reason, traceback, rows). An error of a method is a result, not the end of the table."""
    spec = spec_of(run)
    task = resolve(spec["task"])()
    start = time.perf_counter()
    try:
        slot = observed / run.slot.key
        observation = resolve(spec["type"]).load(slot / "observation")
        random_state = fit_seed(run)
        seed_globals(random_state)
        estimator = build({"class": spec["class"], "params": json.loads(run.params)}, random_state=random_state)
        if hasattr(estimator, "warm_up"):
            estimator.warm_up()  # compilation is no part of the time of a fit
        _check_noise(estimator, observation, spec["ignore_noise"])
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseIgnored)  # it was asked for
            estimator.fit(observation)
        seconds = time.perf_counter() - begin
        truth = task.truth.load(slot / "truth")
        units = {name: unit for name, (unit, _) in task.MEASURES.items()}
        rows = [
            {"measure": m.measure, "item": m.item, "step": m.step, "value": m.value,
             "unit": units.get(m.measure, "") if m.unit is None else m.unit}
            for m in task.measure(estimator, truth, spec["measures"])
        ]  # fmt: skip
        if spec["keep_model"] == "all" or (spec["keep_model"] == "first_seed" and run.seed == 0):
            estimator.save(folder / "model")
        elapsed = time.perf_counter() - start
        rows += [{"measure": m, "value": v, "unit": "s"} for m, v in (("seconds", seconds), ("elapsed", elapsed))]
        units = storage.read_json(slot / "units.json")
        return "ok", None, "", [row | units for row in rows]
    except NotAvailable as error:
        return "unavailable", str(error), "", []
    except Stopped as error:
        return "stopped", str(error), "", []
    except Exception as error:
        return "failed", described(error), traceback.format_exc(), []


def _check_noise(estimator, observation, ignore_noise: bool) -> None:
    """ConfigError where noise would be ignored and the experiment does not ask for it, or asks in vain."""
    if (wrong := estimator.describe_ignored_noise(observation)) and not ignore_noise:
        raise ConfigError(f"{wrong}; or state `ignore_noise: true` beside the method's class")
    if ignore_noise and estimator.accounts_for_noise:
        raise ConfigError(f"ignore_noise: {type(estimator).__name__} accounts for noise; leave it out")


def spec_of(run: Run) -> dict:
    return json.loads(run.spec)
