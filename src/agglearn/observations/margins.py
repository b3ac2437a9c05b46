"""Margins of tables: how many people of each group, and how many votes for each option, every unit has."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from agglearn.errors import DataError
from agglearn.observations.base import Observation, check_weights

ALLOWED = 1e-6  # largest relative difference of a unit's two totals


class District(NamedTuple):
    """Units of one district: (U, R) and (U, C) counts, (U,) weights, and numbers of its groups and options."""

    groups: np.ndarray
    votes: np.ndarray
    weights: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


@dataclass(frozen=True, eq=False)
class Margins(Observation):
    """Both margins of one table for each unit, such as a polling place. The cells are secret. Made by `from_frames`.

    Parameters
    ----------
    groups, votes : ndarray of shape (U, R), ndarray of shape (U, C)
        Counts of each group and of each option. NaN where a group or an option does not occur in the unit's district.
    weights, districts : ndarray of shape (U,), ndarray of shape (U,)
        How much each unit counts when probabilities are learned (tables add up the counts without weights), and number
        of its district.
    group_names, vote_names, unit_names, district_names : tuple[str, ...]
    """

    groups: np.ndarray
    votes: np.ndarray
    weights: np.ndarray
    districts: np.ndarray
    group_names: tuple[str, ...]
    vote_names: tuple[str, ...]
    unit_names: tuple[str, ...]
    district_names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_weights(self.weights, len(self.groups))
        people, votes = np.nansum(self.groups, axis=1), np.nansum(self.votes, axis=1)
        for u in np.flatnonzero(abs(people - votes) > ALLOWED * np.maximum(people, 1)):
            raise DataError(
                f"unit {self.unit_names[u]}: groups add up to {people[u]:g} and votes to {votes[u]:g}; both must count the same "
                "people: give those who did not vote a column of their own"
            )

    @classmethod
    def from_frames(
        cls, groups: pd.DataFrame | np.ndarray, votes: pd.DataFrame | np.ndarray,
        districts: ArrayLike | None = None, weights: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Margins from two tables with one row for each unit.

        DataError for counts that are negative or no numbers, data frames whose indexes differ, and units whose two
        margins have different totals.

        Parameters
        ----------
        groups, votes : DataFrame or ndarray of shape (U, R), DataFrame or ndarray of shape (U, C)
            Counts. The index of a data frame names the units. The order of the rows may differ.
        districts, weights : array-like of shape (U,) or None, array-like of shape (U,) or None
            Names of districts and weights, in the order of `groups` (None: one district, weights of 1).
        """
        sides = {"groups": pd.DataFrame(groups), "votes": pd.DataFrame(votes)}
        units = sides["groups"].index
        for name, frame in sides.items():
            if frame.shape[1] < 2:
                raise DataError(f"{name}: needs at least two columns; with one there is nothing to infer")
            if not frame.index.is_unique:
                raise DataError(f"{name}: unit {frame.index[frame.index.duplicated()][0]!r} occurs more than once")
        for unit in units.symmetric_difference(sides["votes"].index):
            missing = "votes" if unit in units else "groups"
            raise DataError(f"{missing}: unit {unit!r} is missing; both tables need the same units")
        counts = [_as_counts(frame.reindex(units), name) for name, frame in sides.items()]
        codes, names = pd.factorize(np.repeat("all", len(units)) if districts is None else np.asarray(districts))
        if len(codes) != len(units) or (codes < 0).any():
            raise DataError(f"districts: needs a name for each of the {len(units)} units")
        columns = [frame.columns for frame in sides.values()]
        group_names, vote_names, unit_names, district_names = (tuple(map(str, v)) for v in (*columns, units, names))
        each = np.ones(len(units)) if weights is None else np.asarray(weights, float)
        return cls(counts[0], counts[1], each, codes, group_names, vote_names, unit_names, district_names)

    def split(self) -> Iterator[District]:
        """Yield the units of each district, without those that have no people.

        DataError for a count that is missing in some of its units only, and for a district without people or weight.
        """
        for number, name in enumerate(self.district_names):
            units = np.flatnonzero((self.districts == number) & (np.nansum(self.groups, axis=1) > 0))
            if not self.weights[units].sum():
                raise DataError(f"district {name}: has no units with people and weight")
            sides, columns = [], []
            for counts, names in ((self.groups, self.group_names), (self.votes, self.vote_names)):
                columns.append(np.flatnonzero(~np.isnan(counts[units]).all(axis=0)))
                sides.append(counts[np.ix_(units, columns[-1])])
                for u, k in np.argwhere(np.isnan(sides[-1])):
                    raise DataError(
                        f"unit {self.unit_names[units[u]]}: the count of {names[columns[-1][k]]} is missing"
                    )
            yield District(sides[0], sides[1], self.weights[units], columns[0], columns[1])


def _as_counts(frame: pd.DataFrame, name: str) -> np.ndarray:
    try:
        counts = frame.to_numpy(dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{name}: must be a table of numbers, one row for each unit") from None
    for u, k in np.argwhere(np.isinf(counts) | (counts < 0)):
        cell = f"unit {frame.index[u]!r}, column {frame.columns[k]!r}"
        raise DataError(f"{name}: {cell} is {counts[u, k]:g}; counts are finite numbers ≥ 0")
    return counts
