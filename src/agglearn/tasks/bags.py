"""Classification of instances from bags: learners get label counts per bag and are judged on other instances."""

from collections.abc import Callable
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
from agglearn.tasks import census_design, keys
from agglearn.tasks.base import Kind, Task, TaskInput, Truth
from agglearn.tasks.census_design import Persons, education, race
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
        self.check_observation(inputs, kind, params)
        if not census_design.has_regions(inputs):
            return self._observe_records(inputs, kind, seed)
        if "election" in inputs.params:
            return self._observe_election(inputs, params, seed)
        return self._observe_hidden(inputs, kind, seed)

    def _observe_records(self, inputs: TaskInput, kind: Kind, seed: int) -> tuple[Observation, HeldOutPersons]:
        (frame, y), test = split_records(inputs, seed)
        order, offsets, names = group_rows(frame, inputs.params, derive_generator("bags", inputs.name, seed))
        encoder = DenseEncoder(fill_text(frame), text_columns(frame, inputs.entry))
        n_classes = max(2, int(y.max()) + 1, int(test.y.max()) + 1)
        x = encoder.transform(fill_text(frame.iloc[order]))
        bags = census_design.count_bags(x, offsets, y[order], n_classes, names)
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

    def _observe_election(self, inputs: TaskInput, params: dict, seed: int) -> tuple[Observation, HeldOutPersons]:
        p = {"bag_size": 1000, "columns": "shared", "components": 50, "holdout": 0.04} | inputs.params
        folder, columns, year = inputs.data.folder, p["columns"], p["election"]
        state_polls = census_design.read_persons(folder, columns).polls_of(year)
        chosen = {"polled": None if state_polls is None else year, "attributes": p.get("attributes")}
        design = census_design.voter_design(folder, columns, p["holdout"], p["components"], seed, **chosen)
        size = None if params.get("persons", "sample") == "all" else p["bag_size"]
        stream = ("bags", inputs.name, columns, p["bag_size"], seed)
        bags = census_design.voter_bags(design, year, size, *stream)
        groups = groups_of(design.persons, design.test)
        polled = join_polls(p["polls"], state_polls) if p.get("polls") is not None else None
        states = census_design.states_of(design.persons, year)
        return bags, HeldOutPersons(census_design.held_out_bags(design, year), None, groups, polled, states)

    def measure(self, estimator: Estimator, truth: HeldOutPersons, measures: list[str]) -> Measurements:
        p = estimator.predict_proba(truth.bags.X)
        if truth.groups is not None:
            yield from measure_groups(p, truth.groups, truth.polls, measures)
            if truth.states is not None:
                yield from measure_map(p, truth.groups, truth.states, measures)
            if "region_rmse" in measures:
                yield Measurement("region_rmse", region_rmse(estimator.predict_counts(truth.bags), truth.bags))
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


# -- scores of predicted votes against exit polls (Sun 2019, section 3.5.3.2) -----------------------------------------

COVARIATES: dict[str, tuple[Callable[[pd.DataFrame], np.ndarray], tuple[str, ...]]] = {
    "sex": (lambda f: (f["SEX"] == 2).to_numpy().astype(int), ("male", "female")),
    "race": (race, ("hispanic", "white", "black", "asian", "other")),
    "education": (education, ("high school or less", "some college", "college graduate", "postgraduate")),
}
CLOSE = 0.01  # exit polls that differ by less count as equal
MIN_STATES = 5  # that a correlation over states needs


def groups_of(persons: Persons, rows: np.ndarray) -> pd.DataFrame:
    frame = persons.frame[["SEX", "RAC1P", "HISP", "SCHL"]].iloc[rows]
    columns = {"state": persons.regions["state"].to_numpy()[persons.region[rows]], "weight": persons.weight[rows]}
    for name, (code, names) in COVARIATES.items():
        columns[name] = np.array(names, dtype=object)[code(frame)]
    return pd.DataFrame(columns)


def join_polls(nation: dict, states: pd.DataFrame | None) -> pd.DataFrame:
    rows = [("US", c, g, value, size) for c, groups in nation.items() for g, (value, size) in groups.items()]
    frame = pd.DataFrame(rows, columns=["area", "covariate", "group", "share", "size"])
    return frame if states is None else pd.concat([frame, states[states["area"] != "US"]], ignore_index=True)


def two_party_shares(votes: np.ndarray, groups: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Two-party share of D among the votes (n, 3: none or other, R, D) of every group, by weight."""
    weights = groups["weight"].to_numpy()
    weighted = pd.DataFrame({"D": weights * votes[:, 2], "R": weights * votes[:, 1]})
    sums = weighted.groupby([groups[k] for k in keys]).sum()
    return (sums["D"] / (sums["D"] + sums["R"])).where(sums["D"] + sums["R"] > 0)


def measure_groups(
    p: np.ndarray, groups: pd.DataFrame, polls: pd.DataFrame | None, measures: list[str]
) -> Measurements:
    """Shares are those of the most probable votes, as in the thesis, and those of expected votes."""
    votes = np.eye(p.shape[1])[p.argmax(axis=1)]
    for covariate, (_, names) in COVARIATES.items():
        predicted, expected = (two_party_shares(v, groups, [covariate]).reindex(list(names)) for v in (votes, p))
        nation = polls[(polls["area"] == "US") & (polls["covariate"] == covariate)] if polls is not None else None
        poll = nation.set_index("group") if nation is not None else pd.DataFrame({"share": [], "size": []})
        for name, value in predicted.items():
            keys = {"covariate": covariate, "group": name}
            keys |= {"exit_poll": float(poll["share"][name])} if name in poll.index else {}
            values = {"share": float(value), "expected_share": float(expected[name])}
            values = {m: s for m, s in values.items() if np.isfinite(s)}  # a group without predicted votes has none
            yield from select(measures, values, keys)
        if len(poll):
            yield from measure_nation(covariate, predicted.reindex(poll.index).to_numpy(), poll, measures)
            error = weighted_rmse(expected.reindex(poll.index).to_numpy(), poll)
            yield from select(measures, {"expected_poll_rmse": error}, {"covariate": covariate})
    if polls is not None:
        yield from measure_states(votes, groups, polls, measures)


def measure_nation(covariate: str, predicted: np.ndarray, poll: pd.DataFrame, measures: list[str]) -> Measurements:
    """Scores of Table 3.3. In `pair_auc_close` pairs of groups whose polls differ by 0.01 count as correct."""
    polled = poll["share"].to_numpy()
    predicted = np.where(np.isnan(predicted), 0.5, predicted)  # one half for a group without a predicted vote
    i, j = np.triu_indices(len(polled), 1)
    correct = (np.sign(predicted[i] - predicted[j]) == np.sign(polled[i] - polled[j])) & (polled[i] != polled[j])
    close = abs(polled[i] - polled[j]) <= CLOSE + 1e-9
    values = {
        "majority": float(((predicted > 0.5) == (polled > 0.5)).sum()),
        "pair_auc": float(correct.mean()),
        "pair_auc_close": float((correct | close).mean()),
        "poll_rmse": weighted_rmse(predicted, poll),
    }
    yield from select(measures, values, {"covariate": covariate})


def weighted_rmse(predicted: np.ndarray, poll: pd.DataFrame) -> float:
    """Weighted by the groups' sizes. A group without votes counts as one half."""
    error = np.where(np.isnan(predicted), 0.5, predicted) - poll["share"].to_numpy()
    return float(np.sqrt(np.average(error**2, weights=poll["size"])))


def measure_states(votes: np.ndarray, groups: pd.DataFrame, polls: pd.DataFrame, measures: list[str]) -> Measurements:
    """Figure 3.6: share and exit poll of every group of every state that has a poll, and how far they agree."""
    for covariate in COVARIATES:
        state_shares = two_party_shares(votes, groups, ["state", covariate])
        points = polls[(polls["area"] != "US") & (polls["covariate"] == covariate)]
        cells = zip(points["area"], points["group"], strict=True)
        points = points.assign(predicted=[state_shares.get(cell, np.nan) for cell in cells]).dropna(subset="predicted")
        if "state_share" in measures:
            for point in points.itertuples():
                keys = {"covariate": covariate, "group": point.group, "state": point.area}
                yield Measurement("state_share", float(point.predicted), keys)
                yield Measurement("state_poll", float(point.share), keys)
        if "state_rmse" in measures and len(points):
            error = float(np.sqrt(((points["predicted"] - points["share"]) ** 2).mean()))
            yield Measurement("state_rmse", error, {"covariate": covariate})
        if "state_correlation" in measures:
            for group, some in points.groupby("group"):
                if len(some) >= MIN_STATES and some["predicted"].std() > 0 and some["share"].std() > 0:
                    correlation = float(some["predicted"].corr(some["share"]))
                    yield Measurement("state_correlation", correlation, {"covariate": covariate, "group": group})


def measure_map(p: np.ndarray, groups: pd.DataFrame, states: pd.DataFrame, measures: list[str]) -> Measurements:
    expected = two_party_shares(p, groups, ["state"])
    for row in states.itertuples():
        keys = {"state": row.state, "longitude": round(row.longitude, 2), "latitude": round(row.latitude, 2)}
        values = {"map_counted": float(row.share)}
        if np.isfinite(expected.get(row.state, np.nan)):
            values["map_share"] = float(expected[row.state])
        yield from select(measures, values, keys)


def region_rmse(votes: np.ndarray, bags: Bags) -> float:
    """Two-party shares of expected `votes` (B, 3: none or other, R, D) against the bags' target, by tested persons."""
    assert bags.weights is not None
    assert bags.target is not None
    expected = votes[:, 2] / (votes[:, 1] + votes[:, 2])
    size = np.add.reduceat(bags.weights, bags.offsets[:-1])
    return float(np.sqrt(np.average((expected - bags.target) ** 2, weights=size)))
