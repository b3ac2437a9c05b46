"""Sources that tasks observe, and the ways in which they are observed."""

import functools
import json
from dataclasses import dataclass, field

import numpy as np
from census_sample import ENTRY
from samples import people

from agglearn import observations, tasks
from agglearn.datasets import BagPopulation, BirdMigration, Population, RecordStore
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, Halves, LabelSums, Records
from agglearn.tasks import TaskInput, census_design, classification
from agglearn.tasks.base import Task

FRAME = people(400)
CATEGORICAL = {"features": {"categorical": ["zone"]}}
HIDDEN = {"hidden": "DIS", "bag_size": 8, "n_test": 40, "components": 3}
VOTERS = {"election": 2016, "bag_size": 8, "components": 3, "holdout": 0.2}
REGIONS = {"elections": [2016], "columns": "shared", "components": 3, "states": "all"}


# -- sources ----------------------------------------------------------------------------------------------------------


def fixed_rows(folders, **entry) -> TaskInput:
    """Records whose last quarter is tested, whatever the seed."""
    y = FRAME["y"].to_numpy(np.int8)
    population = Population(FRAME.drop(columns="y"), y, np.full(400, 0.5))
    return TaskInput("people", {"split": {"last": 0.25}, **CATEGORICAL, **entry}, {}, population)


def split_by_seed(folders, **params) -> TaskInput:
    return TaskInput("people", {"split": 0.3, **CATEGORICAL}, params, RecordStore.open(folders["records"]))


def stored_in_order(folders, **params) -> TaskInput:
    return TaskInput("people", {"split": {"last": 0.25}, **CATEGORICAL}, params, RecordStore.open(folders["records"]))


def persons(folders, **params) -> TaskInput:
    return TaskInput("acs", ENTRY, params, RecordStore.open(folders["persons"]))


def clouds(folders, **params) -> TaskInput:
    return TaskInput("shapes", {}, params, RecordStore.open(folders["clouds"]))


def birds(folders, years=2) -> TaskInput:
    return TaskInput("birds", {}, {}, BirdMigration(3, 4, 400, (0.5, 1, 1, 1), years).draw(0))


def drawn_bags(folders) -> TaskInput:
    bags = Bags(np.arange(8.0)[:, None], np.arange(0, 9, 2), target=np.arange(4.0))
    return TaskInput("bags", {}, {}, BagPopulation(bags, bags))


# -- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What is observed. `seeded`: whether the observation depends on the seed; `tested`: whether the tested units do.
    `noise`: keys of `params` that add noise; without them the same is observed exactly."""

    task: type[Task]
    kind: type
    source: object
    params: dict = field(default_factory=dict)
    seeded: bool = True
    tested: bool = False
    noise: tuple[str, ...] = ()

    def __str__(self):
        given = getattr(self.source, "keywords", {}) | self.params
        source = getattr(self.source, "func", self.source).__name__
        return f"{self.task.__name__} {self.kind.__name__} {source} {json.dumps(given)}"

    def observe(self, folders, seed: int, exactly=False):
        params = {k: v for k, v in self.params.items() if not (exactly and k in self.noise)}
        return self.task().observe(self.source(folders), self.kind, params, seed)


def noisy(kind, params: dict, *keys: str, task=tasks.Classification, source=fixed_rows) -> Row:
    return Row(task, kind, source, params, noise=(*keys, "mechanism", "adjacency", "split", "postprocessing"))


LAPLACE = {"epsilon": 3.0, "mechanism": "laplace"}
PUBLIC = {"features": "scaled", "ranges": "features", "sensitivity": "features"}
CODED = {"encoding": {"target": {"above": 1, "modalities": 8, "holdout": 0.3}}}
C, S, B, D = tasks.Classification, tasks.SubsetClassification, tasks.BagClassification, tasks.DistributionRegression
INFERENCE, LEARNING = tasks.FlowInference, tasks.FlowLearning

NOISY = [
    noisy(ContingencyTables, {"gaussian_noise": 3.0}, "gaussian_noise"),
    noisy(ContingencyTables, {"noise_share": 0.01}, "noise_share"),
    *(noisy(ContingencyTables, {"epsilon": 3.0, "mechanism": m}, "epsilon") for m in ("gaussian", "discrete_gaussian")),
    noisy(ContingencyTables, {**LAPLACE, "split": "cells", "postprocessing": "project"}, "epsilon"),
    noisy(ContingencyTables, {"epsilon": 3.0, "mechanism": "discrete_laplace", "adjacency": "label"}, "epsilon"),
    noisy(CountedBags, {"epsilon": 0.3, "bag_size": 20}, "epsilon"),
    noisy(LabelSums, {"epsilon": 3.0}, "epsilon"),
    noisy(LabelSums, {**LAPLACE, **PUBLIC}, "epsilon"),
    noisy(Halves, {"gaussian_noise": 3.0}, "gaussian_noise"),
    noisy(Halves, LAPLACE, "epsilon"),
    noisy(Halves, {"of": "label_sums", "epsilon": 3.0}, "epsilon"),
]
ROWS = [
    *NOISY,
    Row(C, ContingencyTables, fixed_rows, seeded=False),
    Row(C, ContingencyTables, functools.partial(fixed_rows, **CODED)),
    Row(C, ContingencyTables, fixed_rows, {"encode_noisy": {"above": 2, "modalities": 8}, "gaussian_noise": 3.0}),
    Row(C, ContingencyTables, split_by_seed, tested=True),
    Row(C, ContingencyTables, functools.partial(stored_in_order, rows=200), tested=True),
    Row(C, CountedBags, fixed_rows),
    Row(C, Halves, fixed_rows),
    Row(C, Halves, fixed_rows, {"of": "label_sums"}),
    Row(C, LabelSums, fixed_rows, seeded=False),
    Row(C, LabelSums, split_by_seed, tested=True),
    Row(C, Records, fixed_rows, seeded=False),
    Row(C, Records, split_by_seed, tested=True),
    *(Row(S, kind, split_by_seed, tested=True) for kind in (ContingencyTables, CountedBags, Halves, LabelSums, Records)),
    Row(C, observations.TablesAndSample, fixed_rows, {"sample": 40}),
    Row(C, Records, fixed_rows, {"sample": 40}),
    Row(S, observations.TablesAndSample, split_by_seed, {"sample": 40}, tested=True),
    Row(B, Bags, functools.partial(stored_in_order, bags=10)),
    Row(B, Bags, functools.partial(stored_in_order, bags="age")),
    Row(B, observations.LabelledBags, functools.partial(split_by_seed, bags=10), tested=True),
    Row(B, Bags, functools.partial(persons, **HIDDEN)),
    Row(B, observations.LabelledBags, functools.partial(persons, **HIDDEN)),
    Row(B, Bags, functools.partial(persons, **VOTERS), tested=True),
    Row(B, Bags, functools.partial(persons, **VOTERS), {"persons": "all"}, tested=True),
    Row(tasks.Compression, ContingencyTables, fixed_rows, seeded=False),
    Row(tasks.Compression, ContingencyTables, split_by_seed, tested=True),
    Row(D, Bags, functools.partial(clouds, n_clouds=5, points=4)),
    Row(D, Bags, functools.partial(persons, **REGIONS, bag_size=8)),
    Row(D, Bags, functools.partial(persons, **REGIONS)),
    Row(D, Bags, drawn_bags, seeded=False),
    *(Row(task, kind, birds, {"evidence": e, "scale": 3.0, "noise": n})
      for task in (INFERENCE, LEARNING) for kind in (FlowCounts, observations.FlowInstances)
      for e, n in (("node", "poisson"), ("edge", "gaussian"), ("node_sums", "laplace"))),
    Row(INFERENCE, FlowCounts, birds, {"epsilon": 0.5}),
    Row(INFERENCE, FlowCounts, birds, {"noise": "exact"}, seeded=False),
]  # fmt: skip


# -- what is observed -------------------------------------------------------------------------------------------------


def forget() -> None:
    """Whatever this process has kept of earlier observations."""
    classification._SPLITS.clear()
    for value in vars(census_design).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def parts_of(observation, name="") -> dict[str, np.ndarray]:
    """Numbers that noise is added to, part by part."""
    if isinstance(observation, Halves):
        return parts_of(observation.first, "first ") | parts_of(observation.second, "second ")
    if isinstance(observation, LabelSums):
        return {f"{name}sums": observation.sums}
    if isinstance(observation, CountedBags):
        return {"counts": observation.counts[:, 1]}
    found = {}
    for key in observation.tables:
        counts, sums = observation.dense(*key)
        found |= {f"{name}counts {key}": counts.ravel(), f"{name}sums {key}": sums.ravel()}
    return found
