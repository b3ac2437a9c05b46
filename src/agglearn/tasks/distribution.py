"""Distribution regression: a target of each bag is learned, bags held out are judged."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from agglearn.datasets import BagPopulation, Census, Dataset, RecordStore
from agglearn.errors import ConfigError
from agglearn.observations import Bags, Observation
from agglearn.seeds import generator
from agglearn.settings import check
from agglearn.tasks import census
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.keys import CloudKeys, NoKeys, RegionKeys, RegionPersonKeys

HELD_OUT = 0.3  # of the regions
PARTS = 16  # of the test bags, for intervals of paired differences
SHOWN = 64  # test bags whose prediction is kept


@dataclass(frozen=True)
class TestBags(Truth):
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
        return cls(Bags.load(folder), tuple((folder / "columns.txt").read_text().split()))

    def units(self) -> list[np.ndarray]:
        return [self.bags.target]


class DistributionRegression(Task):
    """Bags with a target: a number, a vector or a class. Learners see `Bags` with it.

    Parameters of a data set:

    * simulated bags: those of the simulator.
    * clouds of points: `points`, drawn of each cloud (all where it has no more); `n_clouds` to learn from, at random;
      `turned`: clouds to learn from are turned about z at random and their points moved by noise of 0.01 (as default).
    * census, elections: `elections` (years, the entries of the target: two-party share of D in a region), `columns` (`full` or
      `shared`), `components` of the covariates, `bag_size` persons drawn per region by survey weight, null for everybody with
      weights. 30 % of the regions are held out. The observation's parameter `persons: counties` gives the region's county
      covariates in the place of its persons.

    `mse` and `accuracy` have a value for all test bags and, as `mse_of_part` and `accuracy_of_part`, one for each sixteenth of
    them; `nmse` is the error over the variance of the test targets, `slope` that of predictions on them.
    """

    OBSERVATIONS: ClassVar = ((Census, Bags, RegionKeys, RegionPersonKeys), (Dataset, Bags, CloudKeys, NoKeys))
    MEASURES: ClassVar = {
        "mse": ("", "lower"),
        "nmse": ("", "lower"),
        "slope": ("", ""),
        "mse_of_part": ("", "lower"),
        "accuracy": ("", "higher"),
        "accuracy_of_part": ("", "higher"),
        "prediction": ("", ""),
        "target": ("", ""),
    }
    truth: ClassVar = TestBags

    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int):
        self.check_observation(kind, params)
        if isinstance(source.data, BagPopulation):
            check(NoKeys, params, "observe")
            return source.data.train, TestBags(source.data.test)
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
        p = {"points": 1000, "n_clouds": None, "turned": True} | source.params
        folder, (first, last) = source.data.folder, source.data.header["parts"]["train"]
        points = np.load(folder / "points.npy", mmap_mode="r")
        with np.load(folder / "clouds.npz") as arrays:
            whole = Bags(points, arrays["offsets"], target=arrays["classes"])
        chosen = generator("clouds", source.name, seed).permutation(np.arange(first, last))[: p["n_clouds"]]
        train, test = (cloud_points(whole.take(w), p["points"]) for w in (chosen, np.arange(last, len(whole))))
        return turned(train, generator("turns", source.name, seed)) if p["turned"] else train, TestBags(test)

    def _regions(self, source: Source, params: dict, seed: int):
        p = {"columns": "full", "components": 50, "bag_size": 300, "elections": [2016]} | source.params
        study = census.voters_study(source.data.folder, p["columns"], 0.0, p["components"])
        if params.get("persons", "sample") == "counties":
            bags = census.county_bags(study.persons)
        else:
            bags = census.region_bags(study, p["bag_size"], "regions", source.name, p["columns"])
        shares = np.column_stack([census.democratic_share(study.persons, e) for e in p["elections"]])
        bags = replace(bags, target=shares)
        order = generator("regions held out", source.name, p["columns"], seed).permutation(len(bags))
        test = round(HELD_OUT * len(bags))
        return bags.take(order[test:]), TestBags(bags.take(order[:test]), tuple(map(str, p["elections"])))

    def measure(self, estimator, truth: TestBags, measures: list[str]) -> Iterator[Measurement]:
        found, target = estimator.predict(truth.bags), truth.bags.target
        if getattr(estimator, "classifies", False):
            yield from _both("accuracy", (found == target).astype(float), measures)
            return
        error = np.square(found - target)
        if target.ndim == 1:
            yield from _both("mse", error, measures)
            yield from _normalised(error, target)
            if target.var() > 0:
                yield Measurement("slope", float(np.polyfit(target, found, 1)[0]))
        for k, name in enumerate(truth.columns):
            yield from _both("mse", error[:, k], measures, name)
            yield from _normalised(error[:, k], target[:, k], name)
        if "prediction" in measures and target.ndim == 1:
            for b in np.unique(np.linspace(0, len(target) - 1, min(SHOWN, len(target))).astype(int)):
                yield Measurement("prediction", float(found[b]), item=f"bag {b}")
                yield Measurement("target", float(target[b]), item=f"bag {b}")


def _both(name: str, values: np.ndarray, measures: list[str], item: str | None = None) -> Iterator[Measurement]:
    """The mean of a value per bag, and that of each part of the bags."""
    yield Measurement(name, float(values.mean()), item=item)
    if f"{name}_of_part" in measures:
        for k, part in enumerate(np.array_split(values, min(PARTS, len(values)))):
            label = f"part {k + 1}" if item is None else f"{item}: part {k + 1}"
            yield Measurement(f"{name}_of_part", float(part.mean()), item=label)


def _normalised(error: np.ndarray, target: np.ndarray, item: str | None = None) -> Iterator[Measurement]:
    if target.var() > 0:
        yield Measurement("nmse", float(error.mean() / target.var()), item=item)


def cloud_points(clouds: Bags, n: int) -> Bags:
    """The first n points of every cloud (they are in random order)."""
    from agglearn.distribution.embedding import first_instances

    return first_instances(clouds, n)


def turned(clouds: Bags, rng, noise: float = 0.01) -> Bags:
    """Each cloud turned about the z axis at random; every point moved by normal noise."""
    angle = np.repeat(2 * np.pi * rng.random(len(clouds)), clouds.sizes)
    c, s = np.cos(angle), np.sin(angle)
    x, y, z = clouds.X.T
    moved = np.stack([c * x - s * y, s * x + c * y, z], axis=1) + noise * rng.standard_normal((len(x), 3))
    return replace(clouds, X=moved.astype(np.float32))
