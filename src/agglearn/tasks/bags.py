"""Classification of instances from bags: learn from counts per bag, judge on persons whose labels were never counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.datasets import Census, Dataset, RecordStore
from agglearn.encoding.dense import DenseEncoder
from agglearn.errors import ConfigError, DataError
from agglearn.evaluation import auc
from agglearn.observations import Bags, LabelledBags, Observation
from agglearn.seeds import derive_generator
from agglearn.settings import check
from agglearn.tasks import census_design, polls
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.classification import split_records
from agglearn.tasks.keys import BagKeys, ElectionKeys, HiddenKeys, NoKeys, VoterKeys
from agglearn.tasks.splitting import split_overlap


@dataclass(frozen=True)
class HeldOutPersons(Truth):
    """Held-out instances, and what is known of them.

    Attributes
    ----------
    bags : their covariates, in bags, with counts where labels are known.
    y : (n,) labels, or None.
    groups : state, weight and demographic groups of every person, where votes are judged by exit polls.
    polls : the exit polls, or None. states : place and counted share of every state, or None.
    """

    bags: Bags
    y: np.ndarray | None = None
    groups: pd.DataFrame | None = None
    polls: pd.DataFrame | None = None
    states: pd.DataFrame | None = None

    def save(self, folder: Path) -> None:
        self.bags.save(folder)
        if self.y is not None:
            np.save(folder / "y.npy", self.y)
        for name in ("groups", "polls", "states"):
            if getattr(self, name) is not None:
                getattr(self, name).to_parquet(folder / f"{name}.parquet", index=False)

    @classmethod
    def load(cls, folder: Path) -> Self:
        y = np.load(folder / "y.npy") if (folder / "y.npy").exists() else None
        frames = {
            n: pd.read_parquet(p) for n in ("groups", "polls", "states") if (p := folder / f"{n}.parquet").exists()
        }
        return cls(Bags.load(folder), y, **frames)

    def units(self) -> list[np.ndarray]:
        return [self.y] if self.y is not None else [self.bags.target, self.bags.weights]


class BagClassification(Task):
    """Instances in bags, with their labels counted per bag; instances held out are judged.

    Learners see `Bags`, oracles `LabelledBags`. Parameters of a data set:

    * records: `bags`, the size of random bags or the name of a column whose values are the bags; `rows`, a random subset.
    * census, a hidden attribute: `hidden` (see `agglearn.tasks.census_design.HIDDEN`), `bag_size` persons drawn per region by
      survey weight, `columns` (`full` or `shared`), `n_test`, `components`. Tested are the same persons in all trials.
    * census, an election: `election` (year), `bag_size`, `columns`, `holdout` (share of the persons in the exit polls'
      states that is tested; drawn anew for every seed), `components`, `polls` (covariate → group → [share, size] of the
      nation's exit poll). The observation's parameter `persons: all` gives the mean of everybody in a region in the place of
      a sample.

    `gap_to_oracle` is twice the accuracy of a learner that has every label, and minus twice that of any other: its mean over
    the two is by how much the oracle is more accurate.
    """

    OBSERVATIONS: ClassVar = (
        (Census, Bags, ElectionKeys, VoterKeys),
        (Census, Bags, HiddenKeys, NoKeys),
        (Census, LabelledBags, HiddenKeys, NoKeys),
        (Dataset, Bags, BagKeys, NoKeys),
        (Dataset, LabelledBags, BagKeys, NoKeys),
    )
    MEASURES: ClassVar = {
        "accuracy": ("", "higher"),
        "auc": ("", "higher"),
        "count_error": ("", "lower"),
        "gap_to_oracle": ("", "lower"),
        "share": ("", ""),
        "expected_share": ("", ""),
        "majority": ("", "higher"),
        "pair_auc": ("", "higher"),
        "pair_auc_close": ("", "higher"),
        "poll_rmse": ("", "lower"),
        "expected_poll_rmse": ("", "lower"),
        "region_rmse": ("", "lower"),
        "map_share": ("", ""),
        "map_counted": ("", ""),
        "state_share": ("", ""),
        "state_poll": ("", ""),
        "state_rmse": ("", "lower"),
        "state_correlation": ("", "higher"),
    }
    truth: ClassVar = HeldOutPersons

    def overlap(self, source: Source) -> float:
        return 0.0 if _has_regions(source) else split_overlap(source)

    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int):
        given, regions = source.params, _has_regions(source)
        way = "records" if not regions else "election" if "election" in given else "hidden"
        self.check_observation(kind, params)
        keys, seen = {
            "records": (BagKeys, NoKeys), "hidden": (HiddenKeys, NoKeys), "election": (ElectionKeys, VoterKeys)
        }[way]  # fmt: skip
        check(seen, params, "observe")
        if isinstance(source.data, RecordStore):
            check(keys, given, source.name)
        if way == "records":
            return self._from_records(source, kind, seed)
        return getattr(self, f"_{way}")(source, kind, params, seed)

    def _from_records(self, source: Source, kind, seed: int):
        (frame, y), test = split_records(source, seed)
        order, offsets, names = grouped(frame, source.params, derive_generator("bags", source.name, seed))
        encoder = DenseEncoder(filled(frame), text_columns(frame, source.entry))
        seen = bags_of(encoder.transform(filled(frame.iloc[order])), offsets, y[order], 2, names)
        chunks = np.unique(np.append(np.arange(0, len(test.y), 100), len(test.y)))
        truth = bags_of(encoder.transform(filled(test.frame)), chunks, test.y, 2)
        return as_seen(kind, seen, y[order]), HeldOutPersons(truth, test.y)

    def _hidden(self, source: Source, kind, params: dict, seed: int):
        p = {"bag_size": 10, "columns": "full", "components": 50, "n_test": 10_000} | source.params
        study = census_design.hidden_study(
            source.data.folder, p["columns"], p.get("hidden"), p["n_test"], p["components"]
        )
        seen, y = census_design.hidden_bags(study, p["bag_size"], "bags", source.name, p["hidden"], p["bag_size"], seed)
        return as_seen(kind, seen, y), HeldOutPersons(census_design.persons_tested(study), study.labels[study.test])

    def _election(self, source: Source, kind, params: dict, seed: int):
        if kind is not Bags:
            raise ConfigError("observe: nobody's vote is known; an election gives Bags only")
        p = {"bag_size": 1000, "columns": "shared", "components": 50, "holdout": 0.04} | source.params
        study = census_design.voters_study(source.data.folder, p["columns"], p["holdout"], p["components"], seed)
        size = None if params.get("persons", "sample") == "all" else p["bag_size"]
        stream = ("bags", source.name, p["columns"], p["bag_size"], seed)
        seen = census_design.voter_bags(study, p["election"], size, *stream)
        groups = polls.groups_of(study.persons, study.test)
        nation = self._polls(p.get("polls"), study.persons.polls)
        states = census_design.states_of(study.persons, p["election"])
        return seen, HeldOutPersons(census_design.persons_tested(study, p["election"]), None, groups, nation, states)

    @staticmethod
    def _polls(nation: dict | None, states: pd.DataFrame | None) -> pd.DataFrame | None:
        """The nation's polls as the configuration has them, and the states' of the data set."""
        if nation is None:
            return None
        rows = [("US", c, g, share, size) for c, groups in nation.items() for g, (share, size) in groups.items()]
        frame = pd.DataFrame(rows, columns=["area", "covariate", "group", "share", "size"])
        return frame if states is None else pd.concat([frame, states[states["area"] != "US"]], ignore_index=True)

    def measure(self, estimator, truth: HeldOutPersons, measures: list[str]) -> Iterator[Measurement]:
        p = estimator.predict_proba(truth.bags.X)
        if truth.groups is not None:
            yield from polls.measured(p, truth.groups, truth.polls, measures)
            if truth.states is not None:
                yield from polls.by_place(p, truth.groups, truth.states, measures)
            if "region_rmse" in measures:
                yield Measurement("region_rmse", polls.region_rmse(estimator.predict_counts(truth.bags), truth.bags))
            return
        accuracy = float((p.argmax(axis=1) == truth.y).mean())
        if "accuracy" in measures:
            yield Measurement("accuracy", accuracy)
        if "gap_to_oracle" in measures:
            yield Measurement("gap_to_oracle", 2 * accuracy if estimator.observes is LabelledBags else -2 * accuracy)
        if "auc" in measures and p.shape[1] == 2:
            yield Measurement("auc", auc(truth.y, p[:, 1]))
        if "count_error" in measures:
            gap = abs(estimator.predict_counts(truth.bags) - truth.bags.counts).sum(axis=1) / 2
            yield Measurement("count_error", float((gap / truth.bags.sizes).mean()))


def _has_regions(source: Source) -> bool:
    """Whether the data are census persons of regions, of whom every seed tests the same."""
    return isinstance(source.data, RecordStore) and "regions" in source.data.header


def as_seen(kind: type[Observation], bags: Bags, y: np.ndarray) -> Observation:
    """What a learner of this kind sees of the bags."""
    if kind is Bags:
        return bags
    if kind is LabelledBags:
        return LabelledBags(bags, y)
    raise ConfigError(f"observe: this task cannot make {kind.__name__}; it makes Bags and LabelledBags")


def bags_of(x, offsets, y, classes: int, names=()) -> Bags:
    """Bags with the labels (n,) counted."""
    bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    counts = np.bincount(bag * classes + y, minlength=(len(offsets) - 1) * classes).reshape(-1, classes)
    return Bags(x, offsets, counts, bag_names=names)


def grouped(frame: pd.DataFrame, params: dict, rng) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """(rows bag after bag, offsets, names of the bags): random bags of one size, or one per value of a column.

    Bags come in random order. Random bags of one size leave a rest of less than a bag unused.
    """
    how, n = params.get("bags", 10), len(frame)
    if isinstance(how, int):
        if not 1 <= how <= n:
            raise ConfigError(f"bags: a size must be between 1 and the {n} training records, got {how}")
        return rng.permutation(n)[: n // how * how], np.arange(0, n // how * how + 1, how), ()
    if how not in frame:
        raise ConfigError(f"bags: {how!r} is neither a size nor a column; there are {', '.join(map(str, frame))}")
    codes, values = pd.factorize(frame[how].astype(str))
    if len(values) < 2:
        raise DataError(f"bags: column {how!r} has one value only; there is nothing to tell bags apart")
    place = rng.permutation(len(values))
    order = np.argsort(place[codes], kind="stable")
    sizes = np.bincount(place[codes])
    return order, np.append(0, np.cumsum(sizes)), tuple(values[np.argsort(place)])


def text_columns(frame: pd.DataFrame, entry: dict) -> list[str]:
    """Columns that are categories: text, and numbers that the entry names so."""
    named = set(entry.get("features", {}).get("categorical", []))
    return [c for c in frame if c in named or not pd.api.types.is_numeric_dtype(frame[c])]


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with missing text as a value of its own."""
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    return frame.assign(**{c: frame[c].astype(object).where(frame[c].notna(), "missing").astype(str) for c in text})
