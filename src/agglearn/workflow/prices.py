"""What runs cost: a power law of CPU time and memory in the sizes of a run, fitted to runs that were measured.

Sizes are the positive whole numbers and the lengths of lists among the parameters of a run: numbers of rows, chains, steps. The
logarithm of the time is linear in their logarithms. Measurements of two sizes tell a slope. Otherwise time is linear in the
size: the prior of a slope is N(1, 1), and N(0, 1) for sizes of data that grow along with others. A run of less than a second
tells little, as most of its time is not spent on its size.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agglearn import storage
from agglearn.workflow import memory, record
from agglearn.workflow.plan import Plan, Run

DATA, PARAMETERS = "data", ("observation_params", "params")
# Held-out records cost little, and no feature has more values than there are records.
ALONG = {"n_test", "n_validation", "n_values"}
SPREAD, CLOCK = 0.2, 0.3  # standard deviation of the logarithm of a time between equal runs, and of seconds
LIBRARIES = 300e6  # bytes of a process with small data
LEAST = 1.0  # seconds: an error of less matters to nobody


class Timing(NamedTuple):
    """A measured run: what it is, its sizes, CPU seconds, and bytes of memory where they were measured."""

    experiment: str
    dataset: str
    method: str
    observation: str
    method_class: str
    sizes: dict[str, float]
    seconds: float
    memory: float | None


def sizes_of(fields: Mapping[str, str], rows: int | None = None) -> dict[str, float]:
    """Sizes by the path of their parameter, with the numbers of rows where the data set has no sizes of its own.

    Parameters
    ----------
    fields : mapping
        `dataset_params`, `observation_params` and `params` as JSON.
    rows : int, optional
        Number of records of the data set.
    """
    data = dict(_flat(json.loads(fields["dataset_params"]), DATA))
    sizes = data if data or rows is None else {f"{DATA}.rows": float(rows)}
    for name in PARAMETERS:
        sizes |= dict(_flat(json.loads(fields[name]), name))
    return sizes


def _flat(value: Any, path: str) -> Iterable[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}.length", float(max(len(value), 1))
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        yield path, float(value)


def timings(results: Iterable[Path | str], folder: Path | str) -> list[Timing]:
    """Finished runs of results folders and of a record. One that stands in both counts once."""
    runs: dict[str, dict] = {}
    for name in record.experiments(folder):
        runs |= {key: one.facts | {"status": "ok"} for key, one in record.read(folder, name).items()}
    for path in (p for result in results for p in Path(result).glob("runs/*/run.json")):
        facts = storage.read_json(path)
        if facts["status"] == "ok":
            runs[path.parent.name] = facts
    return [_timing(facts) for facts in runs.values()]


def _timing(facts: dict) -> Timing:
    seconds = facts.get("cpu_seconds")
    return Timing(
        facts["experiment"],
        facts["dataset"],
        facts["method"],
        facts["observation"],
        facts["spec"]["class"],
        sizes_of(facts, ((facts.get("data") or {}).get("sizes") or {}).get("rows")),
        facts["ended"] - facts["began"] if seconds is None else seconds,
        facts.get("peak_memory"),
    )


# -- the power law ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PowerLaw:
    """log y = level + Σ slope · (log size − centre).

    Parameters
    ----------
    centres, slopes : dict
        By the name of a size.
    level : float
        Logarithm of y where all sizes are at their centres.
    """

    level: float
    centres: dict[str, float]
    slopes: dict[str, float]

    def __call__(self, sizes: Mapping[str, float]) -> float:
        """The expected number for some sizes. A size that is not there has its centre."""
        shifts = (s * (math.log(sizes[n]) - self.centres[n]) for n, s in self.slopes.items() if n in sizes)
        return math.exp(self.level + sum(shifts))


def fit_power_law(
    sizes: Sequence[Mapping[str, float]], y: Sequence[float], expected: Mapping[str, float], noise: Sequence[float]
) -> PowerLaw:
    """The most probable power law: Gaussian noise in log y, slopes N(`expected`, 1), any level.

    Parameters
    ----------
    sizes : sequence of mapping
        Sizes of each of the n measurements.
    y : sequence of float
        Positive numbers.
    expected : mapping
        Prior mean of the slope of each size.
    noise : sequence of float
        Standard deviations of log y.
    """
    names = [name for name in expected if all(name in one for one in sizes)]
    x = np.log([[one[name] for name in names] for one in sizes]).reshape(len(sizes), len(names))
    weights = 1 / np.square(noise)
    centre = np.average(x, axis=0, weights=weights)
    prior = np.array([expected[name] for name in names])
    shifted, log_y = x - centre, np.log(y)
    level = np.average(log_y, weights=weights)
    gram = (shifted * weights[:, None]).T @ shifted + np.eye(len(names))
    slopes = prior + np.linalg.solve(gram, (shifted * weights[:, None]).T @ (log_y - level - shifted @ prior))
    return PowerLaw(
        float(level), dict(zip(names, centre.tolist(), strict=True)), dict(zip(names, slopes.tolist(), strict=True))
    )


def time_law(measured: Sequence[Timing]) -> PowerLaw:
    """Power law of CPU seconds, linear in each size but those of `ALONG` where the measurements do not tell."""
    y = [max(t.seconds, 1e-3) for t in measured]
    noise = [math.hypot(SPREAD, CLOCK / seconds) for seconds in y]
    return fit_power_law(
        [t.sizes for t in measured], y, {name: float(not _is_along(name)) for name in _names(measured)}, noise
    )


def memory_law(measured: Sequence[Timing]) -> PowerLaw | None:
    """Power law of the bytes beyond those of libraries: linear in sizes of data, constant in others. None where none is measured."""
    measured = [t for t in measured if t.memory]
    if not measured:
        return None
    y = [max((t.memory or 0.0) - LIBRARIES, 1e6) for t in measured]
    expected = {name: float(name.startswith(DATA) and not _is_along(name)) for name in _names(measured)}
    return fit_power_law([t.sizes for t in measured], y, expected, [SPREAD] * len(y))


def _is_along(name: str) -> bool:
    return name.rpartition(".")[2] in ALONG


def _names(measured: Sequence[Timing]) -> list[str]:
    return sorted(set().union(*(t.sizes for t in measured)))


# -- prices -----------------------------------------------------------------------------------------------------------


class PriceModel:
    """Prices of planned runs.

    A run is priced by measured runs of its experiment with its method and data set, else of its experiment with its method, else of
    the class of its method.

    Parameters
    ----------
    measured : list of Timing
        Measured runs.
    """

    def __init__(self, measured: Iterable[Timing]):
        self._groups: dict[tuple, list[Timing]] = defaultdict(list)
        self._rows: dict[str, float] = {}
        self._power_laws: dict[tuple, tuple[PowerLaw, PowerLaw | None]] = {}
        for t in measured:
            for key in _keys(t.experiment, t.method, t.observation, t.dataset, t.method_class):
                self._groups[key].append(t)
            if rows := t.sizes.get(f"{DATA}.rows"):
                self._rows[t.dataset] = max(rows, self._rows.get(t.dataset, 0.0))

    def price(self, run: Run) -> tuple[float, float | None] | None:
        """(CPU seconds, bytes of memory) of a run. None where nothing like it was measured."""
        keys = _keys(run.experiment, run.method, run.observation, run.dataset, run.settings.method_class)
        key = next((k for k in keys if k in self._groups), None)
        if key is None:
            return None
        if key not in self._power_laws:
            self._power_laws[key] = time_law(self._groups[key]), memory_law(self._groups[key])
        of_time, of_memory = self._power_laws[key]
        rows = self._rows.get(run.dataset)
        sizes = sizes_of(run.identity, int(rows) if rows else None)
        return of_time(sizes), LIBRARIES + of_memory(sizes) if of_memory else None

    def errors(self) -> dict[str, list[float]]:
        """Experiment → log(predicted time / measured time) of each size of each method, predicted from its other sizes.

        Times below `LEAST` count as `LEAST`.
        """
        errors = defaultdict(list)
        for key, measured in self._groups.items():
            if len(key) < 4:
                continue
            by_size = defaultdict(list)
            for t in measured:
                by_size[json.dumps(t.sizes, sort_keys=True)].append(t)
            for left_out in by_size.values() if len(by_size) > 1 else ():
                predict = time_law([t for t in measured if t not in left_out])
                real = float(np.mean([t.seconds for t in left_out]))
                errors[key[0]].append(math.log(max(predict(left_out[0].sizes), LEAST) / max(real, LEAST)))
        return dict(errors)


def _keys(experiment: str, method: str, observation: str, dataset: str, method_class: str) -> list[tuple]:
    return [(experiment, method, observation, dataset), (experiment, method), (method_class,)]


def factor(errors: Sequence[float]) -> float | None:
    """exp of the root mean square of logarithms: the factor by which a prediction is usually wrong. None for no errors."""
    return math.exp(math.sqrt(float(np.mean(np.square(errors))))) if errors else None


@dataclass(frozen=True)
class Price:
    """What an experiment costs.

    Parameters
    ----------
    experiment : str
        Its name.
    runs, missing, unknown, over : int
        Numbers of runs: all, those that the record lacks, those of which nothing like it was measured, and those that would pass the
        experiment's time limit.
    seconds, missing_seconds : float
        CPU seconds of all runs, and of those that the record lacks.
    memory : float or None
        Bytes of the largest run.
    disk : float
        Bytes of its observations and runs.
    error : float or None
        Factor by which a time is usually wrong. None where fewer than two sizes of a method were measured.
    """

    experiment: str
    runs: int
    missing: int = 0
    unknown: int = 0
    over: int = 0
    seconds: float = 0.0
    missing_seconds: float = 0.0
    memory: float | None = None
    disk: float = 0.0
    error: float | None = None


PER_RUN = 40e3  # bytes of the folder of a run without a model


def price_plan(plan: Plan, measured: Sequence[Timing], folder: Path | str, results: Path | str) -> list[Price]:
    """Prices of the experiments of a plan, the cheapest first. Those without any measurement come last.

    Parameters
    ----------
    folder : path
        The record.
    results : path
        Results folder, whose stored records tell the sizes of data sets.
    """
    model = PriceModel(measured)
    errors = model.errors()
    prices = []
    for name, experiment in plan.experiments.items():
        runs, recorded, limit = plan.runs(name), record.read(folder, name), experiment["time_limit"]
        lacking = [r.key not in recorded or bool(record.outdated(r, recorded[r.key])) for r in runs]
        priced = [(p, is_lacking) for r, is_lacking in zip(runs, lacking, strict=True) if (p := model.price(r))]
        price = Price(
            name,
            runs=len(runs),
            missing=sum(lacking),
            unknown=len(runs) - len(priced),
            over=sum(seconds > limit for (seconds, _), _ in priced),
            seconds=sum(min(seconds, limit) for (seconds, _), _ in priced),
            missing_seconds=sum(min(seconds, limit) for (seconds, _), is_lacking in priced if is_lacking),
            memory=max((size for (_, size), _ in priced if size), default=None),
            disk=PER_RUN * len(runs) + sum(_observed_bytes(plan, name, d, Path(results)) for d in plan.datasets(name)),
            error=factor(errors.get(name, [])),
        )
        prices.append(price)
    return sorted(prices, key=lambda p: (p.unknown == p.runs, p.missing_seconds, p.experiment))


def _observed_bytes(plan: Plan, experiment: str, dataset: str, results: Path) -> float:
    """Bytes of all observations of a data set: what is drawn for each slot, or as much as its stored records."""
    entry, slots = plan.config["datasets"][dataset], plan.slots(experiment, dataset)
    drawn = sum(memory.drawn(entry, [json.loads(slot.dataset_params)]) for slot in slots)
    manifest = results / "records" / dataset / "manifest.json"
    stored = storage.read_json(manifest).get("memory", 0) if manifest.exists() else 0
    return drawn + stored * len(slots)


def affordable(prices: Iterable[Price], hours: float) -> list[Price]:
    """The cheapest experiments that fit into some CPU hours together, of those with a price for every run."""
    left, bought = 3600 * hours, []
    for price in prices:
        if price.missing and not price.unknown and price.missing_seconds <= left:
            left -= price.missing_seconds
            bought.append(price)
    return bought
