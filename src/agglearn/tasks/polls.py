"""Predicted votes of groups beside exit polls (Sun 2019, section 3.5.3.2)."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from agglearn.observations import Bags
from agglearn.tasks.base import Measurement
from agglearn.tasks.census_design import Persons, education, race

COVARIATES = {
    "sex": (lambda f: (f["SEX"] == 2).to_numpy().astype(int), ("male", "female")),
    "race": (race, ("hispanic", "white", "black", "asian", "other")),
    "education": (education, ("high school or less", "some college", "college graduate", "postgraduate")),
}
CLOSE = 0.01  # exit polls this near to each other are not told apart
FEWEST = 5  # states that a correlation over states needs


def groups_of(persons: Persons, rows: np.ndarray) -> pd.DataFrame:
    """State, weight and group of every covariate for some persons."""
    frame = persons.frame[["SEX", "RAC1P", "HISP", "SCHL"]].iloc[rows]
    found = {"state": persons.regions["state"].to_numpy()[persons.region[rows]], "weight": persons.weight[rows]}
    for name, (code, names) in COVARIATES.items():
        found[name] = np.array(names, dtype=object)[code(frame)]
    return pd.DataFrame(found)


def hard(p: np.ndarray) -> np.ndarray:
    """(n, 3) votes of persons who all do what is most probable."""
    return np.eye(p.shape[1])[p.argmax(axis=1)]


def shares(votes: np.ndarray, groups: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Two-party share of D among the votes (n, 3: none or other, R, D) of every group, by weight."""
    weights = groups["weight"].to_numpy()
    sums = (
        pd.DataFrame({"D": weights * votes[:, 2], "R": weights * votes[:, 1]}).groupby([groups[k] for k in keys]).sum()
    )
    return (sums["D"] / (sums["D"] + sums["R"])).where(sums["D"] + sums["R"] > 0)


def measured(
    p: np.ndarray, groups: pd.DataFrame, polls: pd.DataFrame | None, wanted: list[str]
) -> Iterator[Measurement]:
    """National shares of hard predictions, as in the thesis, and of expected votes; their scores against the polls; scores of
    the shares by state.

    Parameters
    ----------
    p : (n, 3) probabilities of none or other, R, D.
    polls : area, covariate, group, share, size; the nation is `US`.
    """
    voted = hard(p)
    for covariate, (_, names) in COVARIATES.items():
        found, expected = (shares(votes, groups, [covariate]).reindex(list(names)) for votes in (voted, p))
        nation = polls[(polls["area"] == "US") & (polls["covariate"] == covariate)] if polls is not None else None
        poll = nation.set_index("group") if nation is not None else pd.DataFrame({"share": [], "size": []})
        for name, value in found.items():
            beside = f", exit poll {poll['share'][name]:.2f}" if name in poll.index else ""
            item = f"{covariate}: {name}{beside}"
            if "share" in wanted and np.isfinite(value):  # no predicted vote has no share
                yield Measurement("share", float(value), item=item)
            if "expected_share" in wanted and np.isfinite(expected[name]):
                yield Measurement("expected_share", float(expected[name]), item=item)
        if len(poll):
            yield from scores(covariate, found.reindex(poll.index).to_numpy(), poll, wanted)
            if "expected_poll_rmse" in wanted:
                soft = expected.reindex(poll.index).to_numpy()
                yield Measurement("expected_poll_rmse", weighted_rmse(soft, poll), item=covariate)
    if polls is not None:
        yield from by_state(voted, groups, polls, wanted)


def scores(covariate: str, found: np.ndarray, poll: pd.DataFrame, wanted: list[str]) -> Iterator[Measurement]:
    """The scores of Table 3.3: groups with the right majority, pairs of groups in the right order (`pair_auc_close`: pairs
    whose polls differ by 0.01 count as right), root mean squared error weighted by the polls' sizes."""
    share = poll["share"].to_numpy()
    found = np.where(np.isnan(found), 0.5, found)  # one half for a group without a predicted vote
    i, j = np.triu_indices(len(share), 1)
    right = (np.sign(found[i] - found[j]) == np.sign(share[i] - share[j])) & (share[i] != share[j])
    close = abs(share[i] - share[j]) <= CLOSE + 1e-9
    values = {
        "majority": float(((found > 0.5) == (share > 0.5)).sum()),
        "pair_auc": float(right.mean()),
        "pair_auc_close": float((right | close).mean()),
        "poll_rmse": weighted_rmse(found, poll),
    }
    for name, value in values.items():
        if name in wanted:
            yield Measurement(name, value, item=covariate)


def weighted_rmse(found: np.ndarray, poll: pd.DataFrame) -> float:
    """Root mean squared error of groups' shares, weighted by the groups' sizes; a group without votes counts as one half."""
    error = np.where(np.isnan(found), 0.5, found) - poll["share"].to_numpy()
    return float(np.sqrt(np.average(error**2, weights=poll["size"])))


def by_state(voted: np.ndarray, groups: pd.DataFrame, polls: pd.DataFrame, wanted: list[str]) -> Iterator[Measurement]:
    """Figure 3.6: share and exit poll of every group of every state that has a poll; their root mean squared difference for
    each covariate; over the states, the correlation of the two for each group."""
    for covariate in COVARIATES:
        found = shares(voted, groups, ["state", covariate])
        there = polls[(polls["area"] != "US") & (polls["covariate"] == covariate)]
        points = there.assign(found=[found.get(key, np.nan) for key in zip(there["area"], there["group"], strict=True)])
        points = points.dropna(subset="found")
        if "state_share" in wanted:
            for point in points.itertuples():
                item = f"{covariate}: {point.group}, {point.area}"
                yield Measurement("state_share", float(point.found), item=item)
                yield Measurement("state_poll", float(point.share), item=item)
        if "state_rmse" in wanted and len(points):
            error = float(np.sqrt(((points["found"] - points["share"]) ** 2).mean()))
            yield Measurement("state_rmse", error, item=covariate)
        if "state_correlation" in wanted:
            for group, some in points.groupby("group"):
                if len(some) >= FEWEST and some["found"].std() > 0 and some["share"].std() > 0:
                    found_of_group = float(some["found"].corr(some["share"]))
                    yield Measurement("state_correlation", found_of_group, item=f"{covariate}: {group}")


def by_place(p: np.ndarray, groups: pd.DataFrame, states: pd.DataFrame, wanted: list[str]) -> Iterator[Measurement]:
    """For a map: counted share of every state, and expected share of those whose persons are tested."""
    expected = shares(p, groups, ["state"])
    for row in states.itertuples():
        item = f"{row.state}: {row.longitude:.4g},{row.latitude:.4g}"
        if "map_counted" in wanted:
            yield Measurement("map_counted", float(row.share), item=item)
        if "map_share" in wanted and np.isfinite(expected.get(row.state, np.nan)):
            yield Measurement("map_share", float(expected[row.state]), item=item)


def region_rmse(votes: np.ndarray, bags: Bags) -> float:
    """Root mean squared error of regions' two-party shares, expected for the persons tested against counted, weighted by
    these persons' weights. `votes` (B, 3): none or other, R, D; the counted share is the bags' target."""
    found = votes[:, 2] / (votes[:, 1] + votes[:, 2])
    size = np.add.reduceat(bags.weights, bags.offsets[:-1])
    return float(np.sqrt(np.average((found - bags.target) ** 2, weights=size)))
