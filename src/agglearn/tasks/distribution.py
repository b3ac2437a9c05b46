"""Distribution regression: a target of each bag is learned, bags held out are judged."""

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from agglearn.datasets import BagPopulation, Census, Dataset, RecordStore
from agglearn.errors import ConfigError
from agglearn.observations import Bags, Observation
from agglearn.seeds import derive_generator
from agglearn.settings import check
from agglearn.tasks import census_design
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.keys import CloudKeys, NoKeys, RegionKeys, RegionPersonKeys

HELD_OUT = 0.3  # of the regions
PARTS = 16  # of the test bags, for intervals of paired differences
NOT_CONTIGUOUS = ("AK", "HI")
SHOWN = 64  # test bags whose prediction is kept


@dataclass(frozen=True)
class HeldOutBags(Truth):
    """Held-out bags with their targets.

    Attributes
    ----------
    bags : with target. columns : names of the target's entries, where it is a vector.
    """

    bags: Bags
    columns: tuple[str, ...] = ()

    def save(self, folder: Path) -> None:
        self.bags.save(folder)
        (folder / "columns.txt").write_text("\n".join(self.columns))

    @classmethod
    def load(cls, folder: Path) -> Self:
        return cls(Bags.load(folder), tuple((folder / "columns.txt").read_text().splitlines()))

    def units(self) -> list[np.ndarray]:
        return [self.bags.target]


class DistributionRegression(Task):
    """Bags with a target: a number, a vector or a class. Learners see `Bags` with it.

    Parameters of a data set:

    * simulated bags: those of the simulator.
    * clouds of points: `points`, drawn of each cloud (all where it has no more); `n_clouds` to learn from, at random, null for
      all. Clouds to learn from and clouds to be tested on are prepared alike.
    * census, elections: `elections` (years, the entries of the target: two-party share of D in a region), `columns` (`full` or
      `shared`), `components` of the covariates, `bag_size` persons drawn anew for every seed, per region by survey weight, or
      null for everybody with weights, the default; `states`, `contiguous` (the default, as in the thesis) or `all`. 30 % of the
      regions are held out. The observation's parameter `persons: counties` gives the region's county covariates in the place
      of its persons.

    `mse`, `nmse`, `slope` and `accuracy` have a value for all test bags and, as `mse_of_part` and so on, one for each of 16
    parts: every 16th bag, as test bags may come in the order of their target. `nmse` is the error over the variance of all
    test targets, `slope` that of predictions on them. `tuned` has the value of every parameter that was tuned, `edges` tells how
    many settings were chosen at an end of their grid.
    """

    OBSERVATIONS: ClassVar = ((Census, Bags, RegionKeys, RegionPersonKeys), (Dataset, Bags, CloudKeys, NoKeys))
    MEASURES: ClassVar = {
        "mse": ("", "lower"),
        "nmse": ("", "lower"),
        "slope": ("", ""),
        "mse_of_part": ("", "lower"),
        "nmse_of_part": ("", "lower"),
        "slope_of_part": ("", ""),
        "accuracy": ("", "higher"),
        "accuracy_of_part": ("", "higher"),
        "prediction": ("", ""),
        "target": ("", ""),
        "tuned": ("", ""),
        "edges": ("", "lower"),
    }
    truth: ClassVar = HeldOutBags

    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int):
        self.check_observation(kind, params)
        if isinstance(source.data, BagPopulation):
            check(NoKeys, params, "observe")
            return source.data.train, HeldOutBags(source.data.test)
        if not isinstance(source.data, RecordStore) or "parts" not in source.data.header:
            raise ConfigError(f"{source.name}: has no bags for this task")
        if (source.data.folder / "clouds.npz").exists():
            check(NoKeys, params, "observe")
            check(CloudKeys, source.params, source.name)
            return self._clouds(source, seed)
        if "regions" not in source.data.header:
            raise ConfigError(f"{source.name}: has no bags for this task; use clouds, census persons or simulated bags")
        check(RegionKeys, source.params, source.name)
        return self._regions(source, params, seed)

    def overlap(self, source: Source) -> float:
        regions = isinstance(source.data, RecordStore) and "regions" in source.data.header
        return HELD_OUT / (1 - HELD_OUT) if regions else 0.0

    def _clouds(self, source: Source, seed: int):
        p = {"points": 1000, "n_clouds": None} | source.params
        folder, (first, last) = source.data.folder, source.data.header["parts"]["train"]
        points = np.load(folder / "points.npy", mmap_mode="r")
        with np.load(folder / "clouds.npz") as arrays:
            whole = Bags(points, arrays["offsets"], target=arrays["classes"])
        chosen = derive_generator("clouds", source.name, seed).permutation(np.arange(first, last))[: p["n_clouds"]]
        train, test = (cloud_points(whole.take(w), p["points"]) for w in (chosen, np.arange(last, len(whole))))
        return train, HeldOutBags(test)

    def _regions(self, source: Source, params: dict, seed: int):
        p = {
            "columns": "full",
            "components": 50,
            "bag_size": None,
            "elections": [2016],
            "states": "contiguous",
        } | source.params
        study = census_design.voters_study(source.data.folder, p["columns"], 0.0, p["components"])
        if params.get("persons", "sample") == "counties":
            bags = census_design.county_bags(study.persons)
        else:
            drawn = () if p["bag_size"] is None else ("regions", source.name, p["columns"], seed)
            bags = census_design.region_bags(study, p["bag_size"], *drawn)
        shares = np.column_stack([census_design.democratic_share(study.persons, e) for e in p["elections"]])
        bags, left_out = replace(bags, target=shares), NOT_CONTIGUOUS if p["states"] == "contiguous" else ()
        here = np.flatnonzero(~study.persons.regions["state"].isin(left_out))
        order = here[derive_generator("regions held out", source.name, p["columns"], seed).permutation(len(here))]
        test = round(HELD_OUT * len(order))
        return bags.take(order[test:]), HeldOutBags(bags.take(order[:test]), tuple(map(str, p["elections"])))

    def measure(self, estimator, truth: HeldOutBags, measures: list[str]) -> Iterator[Measurement]:
        yield from _settings(estimator)
        found, target = estimator.predict(truth.bags), truth.bags.target
        if getattr(estimator, "classifies", False):
            right = (found == target).astype(float)
            yield from _both("accuracy", lambda part: float(right[part].mean()), len(right), measures)
            return
        error = np.square(found - target)
        if target.ndim == 1:
            yield from _errors(error, target, measures)
            if target.var() > 0:
                yield from _both("slope", lambda part: _slope(target[part], found[part]), len(target), measures)
        for k, name in enumerate(truth.columns):
            yield from _errors(error[:, k], target[:, k], measures, name)
        if "prediction" in measures and target.ndim == 1:
            for b in np.unique(np.linspace(0, len(target) - 1, min(SHOWN, len(target))).astype(int)):
                yield Measurement("prediction", float(found[b]), item=f"bag {b}")
                yield Measurement("target", float(target[b]), item=f"bag {b}")


def _errors(
    error: np.ndarray, target: np.ndarray, measures: list[str], item: str | None = None
) -> Iterator[Measurement]:
    """Mean squared error, and that over the variance of the targets."""
    mean = lambda part: float(error[part].mean())  # noqa: E731
    yield from _both("mse", mean, len(error), measures, item)
    if (variance := target.var()) > 0:
        yield from _both("nmse", lambda part: float(mean(part) / variance), len(error), measures, item)


def _slope(target: np.ndarray, found: np.ndarray) -> float | None:
    """Slope of predictions on targets; None where the targets are all the same."""
    return float(np.polyfit(target, found, 1)[0]) if np.ptp(target) > 0 else None


def _both(
    name: str, value: Callable[[slice], float | None], n: int, measures: list[str], item: str | None = None
) -> Iterator[Measurement]:
    """A value of all n bags, and that of each part of them that has one."""
    yield Measurement(name, value(slice(None)), item=item)
    if f"{name}_of_part" in measures:
        for k in range(min(PARTS, n)):
            label = f"part {k + 1}" if item is None else f"{item}: part {k + 1}"
            if (of_part := value(slice(k, None, PARTS))) is not None:
                yield Measurement(f"{name}_of_part", of_part, item=label)


def _settings(estimator) -> Iterator[Measurement]:
    """Numbers that were tuned, and how many settings were chosen at an end of their grid."""
    for name, value in getattr(estimator, "tuned_", {}).items():
        if isinstance(value, numbers.Real):
            yield Measurement("tuned", float(value), item=name)
    if hasattr(estimator, "edges_"):
        yield Measurement("edges", float(len(estimator.edges_)))


def cloud_points(clouds: Bags, n: int) -> Bags:
    """The first n points of every cloud (they are in random order)."""
    from agglearn.distribution.embedding import truncate_bags

    return truncate_bags(clouds, n)
