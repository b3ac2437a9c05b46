"""Predicted votes of groups beside exit polls (Sun 2019, section 3.5.3.2)."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from agglearn.observations import Bags
from agglearn.tasks.base import Measurement
from agglearn.tasks.census import Persons, education, race

COVARIATES = {
    "sex": (lambda f: (f["SEX"] == 2).to_numpy().astype(int), ("male", "female")),
    "race": (race, ("hispanic", "white", "black", "asian", "other")),
    "education": (education, ("high school or less", "some college", "college graduate", "postgraduate")),
}
CLOSE = 0.01  # exit polls this near to each other are not told apart


def groups_of(persons: Persons, rows: np.ndarray) -> pd.DataFrame:
    """State, weight and group of every covariate for some persons."""
    frame = persons.frame[["SEX", "RAC1P", "HISP", "SCHL"]].iloc[rows]
    found = {"state": persons.regions["state"].to_numpy()[persons.region[rows]], "weight": persons.weight[rows]}
    for name, (code, names) in COVARIATES.items():
        found[name] = np.array(names, dtype=object)[code(frame)]
    return pd.DataFrame(found)


def shares(voted: np.ndarray, groups: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Two-party share of D among the predicted votes (0 none or other, 1 R, 2 D) of every group, by weight."""
    weights = groups["weight"].to_numpy()
    sums = (
        pd.DataFrame({"D": weights * (voted == 2), "R": weights * (voted == 1)})
        .groupby([groups[k] for k in keys])
        .sum()
    )
    return (sums["D"] / (sums["D"] + sums["R"])).where(sums["D"] + sums["R"] > 0)


def measured(
    voted: np.ndarray, groups: pd.DataFrame, polls: pd.DataFrame | None, wanted: list[str]
) -> Iterator[Measurement]:
    """National shares, their scores against the polls, and shares by state.

    Parameters
    ----------
    voted : (n,) hard predictions.
    polls : area, covariate, group, share, size; the nation is `US`.
    """
    for covariate, (_, names) in COVARIATES.items():
        found = shares(voted, groups, [covariate]).reindex(list(names))
        nation = polls[(polls["area"] == "US") & (polls["covariate"] == covariate)] if polls is not None else None
        poll = nation.set_index("group") if nation is not None else pd.DataFrame({"share": [], "size": []})
        for name, value in found.items():
            beside = f", exit poll {poll['share'][name]:.2f}" if name in poll.index else ""
            if "share" in wanted and np.isfinite(value):  # no predicted vote has no share
                yield Measurement("share", float(value), item=f"{covariate}: {name}{beside}")
        if len(poll):
            yield from scores(covariate, found.reindex(poll.index).to_numpy(), poll, wanted)
    if polls is not None and "state_share" in wanted:
        yield from by_state(voted, groups, polls)


def scores(covariate: str, found: np.ndarray, poll: pd.DataFrame, wanted: list[str]) -> Iterator[Measurement]:
    """The scores of Table 3.3: groups with the right majority, pairs of groups in the right order (`pair_auc_close`: pairs
    whose polls differ by 0.01 count as right), root mean squared error weighted by the polls' sizes."""
    share, size = poll["share"].to_numpy(), poll["size"].to_numpy() / poll["size"].sum()
    found = np.where(np.isnan(found), 0.5, found)  # a group without any predicted vote
    i, j = np.triu_indices(len(share), 1)
    right = (np.sign(found[i] - found[j]) == np.sign(share[i] - share[j])) & (share[i] != share[j])
    close = abs(share[i] - share[j]) <= CLOSE + 1e-9
    values = {
        "majority": float(((found > 0.5) == (share > 0.5)).sum()),
        "pair_auc": float(right.mean()),
        "pair_auc_close": float((right | close).mean()),
        "poll_rmse": float(np.sqrt((size * (found - share) ** 2).sum())),
    }
    for name, value in values.items():
        if name in wanted:
            yield Measurement(name, value, item=covariate)


def by_state(voted: np.ndarray, groups: pd.DataFrame, polls: pd.DataFrame) -> Iterator[Measurement]:
    """Share and exit poll of every group of every state that has a poll."""
    for covariate in COVARIATES:
        found = shares(voted, groups, ["state", covariate])
        there = polls[(polls["area"] != "US") & (polls["covariate"] == covariate)]
        for area, group, share in zip(there["area"], there["group"], there["share"], strict=True):
            value = found.get((area, group), np.nan)
            if np.isfinite(value):
                item = f"{covariate}: {group}, {area}"
                yield Measurement("state_share", float(value), item=item)
                yield Measurement("state_poll", float(share), item=item)


def region_rmse(votes: np.ndarray, bags: Bags) -> float:
    """Root mean squared error of regions' two-party shares, expected for the persons tested against counted, weighted by
    these persons' weights. `votes` (B, 3): none or other, R, D; the counted share is the bags' target."""
    found = votes[:, 2] / (votes[:, 1] + votes[:, 2])
    size = np.add.reduceat(bags.weights, bags.offsets[:-1])
    return float(np.sqrt(np.average((found - bags.target) ** 2, weights=size)))
