"""Scores of predicted votes against exit polls (Sun 2019, section 3.5.3.2)."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from agglearn.observations import Bags
from agglearn.tasks.census_design import Persons, education, race
from agglearn.tasks.measures import Measurement, Measurements, select

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
            if "expected_poll_rmse" in measures:
                error = weighted_rmse(expected.reindex(poll.index).to_numpy(), poll)
                yield Measurement("expected_poll_rmse", error, {"covariate": covariate})
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
