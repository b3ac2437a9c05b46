"""Classification of instances from bags: learners get label counts per bag and are judged on other instances."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from agglearn.datasets import Census, Dataset
from agglearn.encoding.dense import DenseEncoder
from agglearn.errors import ConfigError, DataError
from agglearn.estimator import Estimator
from agglearn.evaluation import auc
from agglearn.observations import Bags, LabelledBags, Observation
from agglearn.seeds import derive_generator
from agglearn.settings import check
from agglearn.tasks import census_design, keys, polls
from agglearn.tasks.base import Kind, Task, TaskInput, Truth, check_stored
from agglearn.tasks.classification import split_records
from agglearn.tasks.measures import Measurement, Measurements, higher, lower, neither, select
from agglearn.tasks.splitting import split_overlap


@dataclass(frozen=True)
class HeldOutPersons(Truth):
    bags: Bags
    y: np.ndarray | None = None  # (n,) labels
    groups: pd.DataFrame | None = None  # state, weight and demographic groups of every person
    polls: pd.DataFrame | None = None
    states: pd.DataFrame | None = None  # position and counted share of every state

    def units(self) -> list[np.ndarray]:
        arrays = [self.y] if self.y is not None else [self.bags.target, self.bags.weights]
        return [a for a in arrays if a is not None]


class BagClassification(Task[HeldOutPersons]):
    """Observe label counts of bags (for oracles, labels) and judge on held-out instances.

    Parameters of a data set:

    * records: `bags` (the size of random bags, or the column whose values are the bags), `rows` (a random subset's
      size).
    * census with a hidden attribute: `hidden` (see `agglearn.tasks.census_design.HIDDEN`), `bag_size` persons drawn per
      region by survey weight, `columns` (`full` or `shared`), `n_test`, `components`. All trials test the same persons.
    * census with an election: `election` (year), `bag_size`, `columns`, `holdout` (fraction of the persons that is
      tested, drawn anew for every seed, in the states with an exit poll of the year, or in all where it has none),
      `components`, `polls` (covariate → group → [share, size] of the nation), `attributes` (how many covariates are
      kept: the four that exit polls ask for, and others at random. All where it is not set). With the observation's
      parameter `persons: all`, a region has the mean of all its persons.

    `gap_to_oracle` is twice an oracle's accuracy, and minus twice any other's. The mean is the oracle's advantage.
    """

    OBSERVATIONS: ClassVar = (
        (Census, Bags, keys.ElectionKeys, keys.VoterKeys),
        (Census, Bags, keys.HiddenKeys, keys.NoKeys),
        (Census, LabelledBags, keys.HiddenKeys, keys.NoKeys),
        (Dataset, Bags, keys.BagKeys, keys.NoKeys),
        (Dataset, LabelledBags, keys.BagKeys, keys.NoKeys),
    )
    MEASURES: ClassVar = (
        higher("accuracy", "auc", "majority", "pair_auc", "pair_auc_close", "state_correlation")
        | lower("count_error", "gap_to_oracle", "poll_rmse", "expected_poll_rmse", "region_rmse", "state_rmse")
        | neither("share", "expected_share", "map_share", "map_counted", "state_share", "state_poll")
    )
    KEYS: ClassVar[tuple[str, ...]] = ("covariate", "group", "exit_poll", "state", "longitude", "latitude")
    truth: ClassVar = HeldOutPersons

    def overlap(self, inputs: TaskInput) -> float:
        return 0.0 if census_design.has_regions(inputs) else split_overlap(inputs)

    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, HeldOutPersons]:
        self.check_observation(kind, params)
        regions = census_design.has_regions(inputs)
        election = regions and "election" in inputs.params
        check(keys.VoterKeys if election else keys.NoKeys, params, "observe")
        if not regions:
            check_stored(inputs, keys.BagKeys)
            return self._observe_records(inputs, kind, seed)
        check_stored(inputs, keys.ElectionKeys if election else keys.HiddenKeys)
        if election:
            return self._observe_election(inputs, kind, params, seed)
        return self._observe_hidden(inputs, kind, seed)

    def _observe_records(self, inputs: TaskInput, kind: Kind, seed: int) -> tuple[Observation, HeldOutPersons]:
        (frame, y), test = split_records(inputs, seed)
        order, offsets, names = group_rows(frame, inputs.params, derive_generator("bags", inputs.name, seed))
        encoder = DenseEncoder(fill_text(frame), text_columns(frame, inputs.entry))
        n_classes = max(2, int(y.max()) + 1, int(test.y.max()) + 1)
        bags = census_design.count_bags(
            encoder.transform(fill_text(frame.iloc[order])), offsets, y[order], n_classes, names
        )
        chunks = np.unique(np.append(np.arange(0, len(test.y), 100), len(test.y)))
        truth = census_design.count_bags(encoder.transform(fill_text(test.frame)), chunks, test.y, n_classes)
        return as_observation(kind, bags, y[order]), HeldOutPersons(truth, test.y)

    def _observe_hidden(self, inputs: TaskInput, kind: Kind, seed: int) -> tuple[Observation, HeldOutPersons]:
        p = {"bag_size": 10, "columns": "full", "components": 50, "n_test": 10_000} | inputs.params
        folder, hidden, size = inputs.data.folder, p["hidden"], p["bag_size"]
        design = census_design.hidden_design(folder, p["columns"], hidden, p["n_test"], p["components"])
        bags, y = census_design.hidden_bags(design, size, "bags", inputs.name, hidden, size, seed)
        truth = HeldOutPersons(census_design.held_out_bags(design), design.labels[design.test])
        return as_observation(kind, bags, y), truth

    def _observe_election(
        self, inputs: TaskInput, kind: Kind, params: dict, seed: int
    ) -> tuple[Observation, HeldOutPersons]:
        if kind is not Bags:
            raise ConfigError("observe: votes of single persons are secret; an election gives Bags only")
        p = {"bag_size": 1000, "columns": "shared", "components": 50, "holdout": 0.04} | inputs.params
        folder, columns, year = inputs.data.folder, p["columns"], p["election"]
        state_polls = census_design.read_persons(folder, columns).polls_of(year)
        chosen = {"polled": None if state_polls is None else year, "attributes": p.get("attributes")}
        design = census_design.voter_design(folder, columns, p["holdout"], p["components"], seed, **chosen)
        size = None if params.get("persons", "sample") == "all" else p["bag_size"]
        stream = ("bags", inputs.name, columns, p["bag_size"], seed)
        bags = census_design.voter_bags(design, year, size, *stream)
        groups = polls.groups_of(design.persons, design.test)
        polled = polls.join_polls(p["polls"], state_polls) if p.get("polls") is not None else None
        states = census_design.states_of(design.persons, year)
        return bags, HeldOutPersons(census_design.held_out_bags(design, year), None, groups, polled, states)

    def measure(self, estimator: Estimator, truth: HeldOutPersons, measures: list[str]) -> Measurements:
        p = estimator.predict_proba(truth.bags.X)
        if truth.groups is not None:
            yield from polls.measure_groups(p, truth.groups, truth.polls, measures)
            if truth.states is not None:
                yield from polls.measure_map(p, truth.groups, truth.states, measures)
            if "region_rmse" in measures:
                yield Measurement("region_rmse", polls.region_rmse(estimator.predict_counts(truth.bags), truth.bags))
            return
        assert truth.y is not None
        accuracy = float((p.argmax(axis=1) == truth.y).mean())
        distance = 2 * accuracy if estimator.observes is LabelledBags else -2 * accuracy
        yield from select(measures, {"accuracy": accuracy, "gap_to_oracle": distance})
        if "auc" in measures and p.shape[1] == 2:
            yield Measurement("auc", auc(truth.y, p[:, 1]))
        if "count_error" in measures:
            assert truth.bags.counts is not None
            misplaced = abs(estimator.predict_counts(truth.bags) - truth.bags.counts).sum(axis=1) / 2
            yield Measurement("count_error", float((misplaced / truth.bags.sizes).mean()))


def as_observation(kind: Kind, bags: Bags, y: np.ndarray) -> Observation:
    return bags if kind is Bags else LabelledBags(bags, y)


def group_rows(
    frame: pd.DataFrame, params: dict, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """(rows bag after bag, offsets, names): random bags of one size, or one per value of a column, in random order."""
    by, n = params.get("bags", 10), len(frame)
    if isinstance(by, int):
        if not 1 <= by <= n:
            raise ConfigError(f"bags: a size must be between 1 and the {n} training records, got {by}")
        return rng.permutation(n)[: n // by * by], np.arange(0, n // by * by + 1, by), ()
    if by not in frame:
        raise ConfigError(f"bags: {by!r} is neither a size nor a column; there are {', '.join(map(str, frame))}")
    codes, values = pd.factorize(frame[by].astype(str))
    if len(values) < 2:
        raise DataError(f"bags: column {by!r} has one value; choose a column with several")
    rank = rng.permutation(len(values))
    order = np.argsort(rank[codes], kind="stable")
    sizes = np.bincount(rank[codes])
    return order, np.append(0, np.cumsum(sizes)), tuple(values[np.argsort(rank)])


def text_columns(frame: pd.DataFrame, entry: dict) -> list[str]:
    categories = set(entry.get("features", {}).get("categorical", []))
    return [c for c in frame if c in categories or not pd.api.types.is_numeric_dtype(frame[c])]


def fill_text(frame: pd.DataFrame) -> pd.DataFrame:
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    return frame.assign(**{c: frame[c].astype(object).where(frame[c].notna(), "missing").astype(str) for c in text})
