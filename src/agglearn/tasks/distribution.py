"""Distribution regression: learners get bags with a target and are judged on held-out bags."""

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from agglearn.datasets import BagPopulation, Census, Dataset, RecordStore
from agglearn.errors import ConfigError
from agglearn.estimator import Estimator
from agglearn.observations import Bags, Observation
from agglearn.seeds import derive_generator
from agglearn.tasks import census_design
from agglearn.tasks.base import Kind, Task, TaskInput, Truth
from agglearn.tasks.keys import CloudKeys, NoKeys, RegionKeys, RegionPersonKeys
from agglearn.tasks.measures import Measurement, Measurements, higher, lower, neither, select

TEST_FRACTION = 0.3  # of the regions
BLOCKS = 16  # of the test bags, for intervals of paired differences
NOT_CONTIGUOUS = ("AK", "HI")
MAX_PREDICTIONS = 64  # test bags whose prediction is recorded


@dataclass(frozen=True)
class HeldOutBags(Truth):
    bags: Bags
    columns: tuple[str, ...] = ()  # names of the target's entries, where it is a vector
    described: dict[str, float] = field(default_factory=dict)  # the data set, see `describe_bags`

    def units(self) -> list[np.ndarray]:
        return [] if self.bags.target is None else [self.bags.target]


SIZES: dict[str, Callable[[np.ndarray], float]] = {
    "bags": len,
    "bag_size": np.mean,
    "bag_size_deviation": np.std,
    "bag_size_median": np.median,
    "bag_size_least": np.min,
    "bag_size_most": np.max,
}


def describe_bags(sizes: np.ndarray, dimension: int) -> dict[str, float]:
    """What Table 4.3 has of a data set: bags, mean, deviation, median and ends of their sizes, input dimension."""
    return {name: float(summary(sizes)) for name, summary in SIZES.items()} | {"dimension": float(dimension)}


class DistributionRegression(Task[HeldOutBags]):
    """Observe bags with a target, which is a number, a vector or a class, and judge on held-out bags.

    Parameters of a data set:

    * clouds of points: `points` (drawn from each, all where it has no more), `n_clouds` to learn from (null for all).
    * census with elections: `elections` (years, the entries of the target: two-party share of D in a region), `columns`
      (`full` or `shared`), `components` of the covariates, `bag_size` persons drawn anew for every seed, per region by
      survey weight (null, the default, for all with weights), `states` (`contiguous`, the default, or `all`). 30 % of
      the regions are held out. With the observation's parameter `persons: counties`, a region has its county
      covariates.

    `mse`, `nmse` (over the variance of all test targets), `slope` (of predictions on targets) and `accuracy` have a
    value for all test bags and, as `mse_of_part` and so on, for each of 16 blocks of every 16th bag, since targets may
    be sorted. `bags` to `dimension` describe the data set: bags to learn from (of regions, all, as each seed splits them
    anew), instances of each, and covariates before any reduction. `embedding_dimension` is the length of the vector that
    a bag becomes. `tuned` has the value of every tuned parameter, `edges` the number of settings at an end of their grid.
    """

    OBSERVATIONS: ClassVar = ((Census, Bags, RegionKeys, RegionPersonKeys), (Dataset, Bags, CloudKeys, NoKeys))
    MEASURES: ClassVar = (
        higher("accuracy", "accuracy_of_part")
        | lower("mse", "nmse", "mse_of_part", "nmse_of_part", "edges")
        | neither("slope", "slope_of_part", "prediction", "target", "tuned", "embedding_dimension", "dimension", *SIZES)
    )
    KEYS: ClassVar[tuple[str, ...]] = ("target", "part", "bag", "parameter")
    truth: ClassVar = HeldOutBags

    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, HeldOutBags]:
        self.check_observation(inputs, kind, params)
        if census_design.has_regions(inputs):
            return self._regions(inputs, params, seed)
        if isinstance(inputs.data, BagPopulation):
            train, test = inputs.data.train, inputs.data.test
        elif isinstance(inputs.data, RecordStore) and (inputs.data.folder / "clouds.npz").exists():
            train, test = self._clouds(inputs, seed)
        else:
            raise ConfigError(f"{inputs.name}: has no bags for this task; use clouds, census persons or simulated bags")
        return train, HeldOutBags(test, described=describe_bags(train.sizes, train.X.shape[1]))

    def overlap(self, inputs: TaskInput) -> float:
        return TEST_FRACTION / (1 - TEST_FRACTION) if census_design.has_regions(inputs) else 0.0

    def _clouds(self, inputs: TaskInput, seed: int) -> tuple[Bags, ...]:
        from agglearn.distribution.embedding import truncate_bags

        p = {"points": 1000, "n_clouds": None} | inputs.params  # the points of a cloud are in random order
        folder, (first, last) = inputs.data.folder, inputs.data.header["parts"]["train"]
        points = np.load(folder / "points.npy", mmap_mode="r")
        with np.load(folder / "clouds.npz") as arrays:
            clouds = Bags(points, arrays["offsets"], target=arrays["classes"])
        chosen = derive_generator("clouds", inputs.name, seed).permutation(np.arange(first, last))[: p["n_clouds"]]
        return tuple(truncate_bags(clouds.take(w), p["points"]) for w in (chosen, np.arange(last, len(clouds))))

    def _regions(self, inputs: TaskInput, params: dict, seed: int) -> tuple[Observation, HeldOutBags]:
        p: dict = {"columns": "full", "components": 50, "bag_size": None, "elections": [2016], "states": "contiguous"}
        p |= inputs.params
        design = census_design.voter_design(inputs.data.folder, p["columns"], 0.0, p["components"])
        if params.get("persons", "sample") == "counties":
            bags = census_design.county_bags(design.persons)
            dimension = bags.X.shape[1]
        else:
            dimension = len(design.encoder.names)
            stream = () if p["bag_size"] is None else ("regions", inputs.name, p["columns"], seed)
            bags = census_design.region_bags(design, p["bag_size"], *stream)
        targets = np.column_stack([census_design.democratic_share(design.persons, e) for e in p["elections"]])
        bags = replace(bags, target=np.nan_to_num(targets))  # those that are not counted are left out below
        left_out = NOT_CONTIGUOUS if p["states"] == "contiguous" else ()
        counted = np.isfinite(targets).all(axis=1)
        regions = np.flatnonzero(~design.persons.regions["state"].isin(left_out).to_numpy() & counted)
        order = regions[derive_generator("regions held out", inputs.name, p["columns"], seed).permutation(len(regions))]
        n_test = round(TEST_FRACTION * len(order))
        described = describe_bags(bags.sizes[regions], dimension)
        truth = HeldOutBags(bags.take(order[:n_test]), tuple(map(str, p["elections"])), described)
        return bags.take(order[n_test:]), truth

    def measure(self, estimator: Estimator, truth: HeldOutBags, measures: list[str]) -> Measurements:
        yield from _settings(estimator)
        yield from select(measures, truth.described)
        if "embedding_dimension" in measures and hasattr(estimator, "embedding_"):
            vectors = estimator.embedding_.transform(truth.bags.take([0]))
            yield Measurement("embedding_dimension", float(vectors.shape[1]))
        predicted, target = estimator.predict(truth.bags), truth.bags.target
        assert target is not None
        if getattr(estimator, "classifies", False):
            correct = (predicted == target).astype(float)
            yield from _with_blocks("accuracy", lambda block: float(correct[block].mean()), len(correct), measures)
            return
        error = np.square(predicted.reshape(target.shape) - target)  # of one election, regressors predict (B,)
        if target.ndim == 1:
            yield from _errors(error, target, measures)
            if target.var() > 0:
                slope = lambda block: _slope(target[block], predicted[block])  # noqa: E731
                yield from _with_blocks("slope", slope, len(target), measures)
        for k, name in enumerate(truth.columns):
            yield from _errors(error[:, k], target[:, k], measures, {"target": name})
        if "prediction" in measures and target.ndim == 1:
            for b in np.unique(np.linspace(0, len(target) - 1, min(MAX_PREDICTIONS, len(target))).astype(int)):
                yield Measurement("prediction", float(predicted[b]), {"bag": int(b)})
                yield Measurement("target", float(target[b]), {"bag": int(b)})


def _errors(error: np.ndarray, target: np.ndarray, measures: list[str], keys: dict | None = None) -> Measurements:
    mean = lambda block: float(error[block].mean())  # noqa: E731
    yield from _with_blocks("mse", mean, len(error), measures, keys)
    if (variance := target.var()) > 0:
        yield from _with_blocks("nmse", lambda block: float(mean(block) / variance), len(error), measures, keys)


def _slope(target: np.ndarray, predicted: np.ndarray) -> float | None:
    return float(np.polyfit(target, predicted, 1)[0]) if np.ptp(target) > 0 else None


def _with_blocks(
    name: str, value: Callable[[slice], float | None], n: int, measures: list[str], keys: dict | None = None
) -> Measurements:
    """A value of all n bags, and that of each block. There is no measurement where the value is None."""
    if (overall := value(slice(None))) is not None:
        yield Measurement(name, overall, keys)
    if f"{name}_of_part" in measures:
        for k in range(min(BLOCKS, n)):
            if (of_block := value(slice(k, None, BLOCKS))) is not None:
                yield Measurement(f"{name}_of_part", of_block, {**(keys or {}), "part": k + 1})


def _settings(estimator: Estimator) -> Measurements:
    for name, value in getattr(estimator, "tuned_", {}).items():
        if isinstance(value, numbers.Real):
            yield Measurement("tuned", float(value), {"parameter": name})
    if hasattr(estimator, "edges_"):
        yield Measurement("edges", float(len(estimator.edges_)))
