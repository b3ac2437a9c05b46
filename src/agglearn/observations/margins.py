"""Margins of tables: how many people of each group, and how many votes for each option, every unit has."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from agglearn.errors import DataError
from agglearn.observations.base import Observation

ALLOWED = 1e-6  # largest relative difference of a unit's two totals


@dataclass(frozen=True, eq=False)
class Margins(Observation):
    """Both margins of one table for each unit, such as a polling place. The cells are secret.

    DataError for counts that are negative or no numbers, and for units whose two margins have different totals.

    Parameters
    ----------
    groups, votes : ndarray of shape (U, R), ndarray of shape (U, C)
        Counts of each group and of each option. NaN where a group or an option does not occur in the unit's district.
    districts, weights : ndarray of shape (U,) or None, ndarray of shape (U,) or None
        Number of the district of each unit, from 0 on (None: all are in one), and how much each unit counts when
        probabilities are learned (None: 1). The tables add up the counts without weights.
    group_names, vote_names, unit_names, district_names : tuple[str, ...]
        For messages and results.
    """

    groups: np.ndarray
    votes: np.ndarray
    districts: np.ndarray | None = None
    weights: np.ndarray | None = None
    group_names: tuple[str, ...] = field(default=())
    vote_names: tuple[str, ...] = field(default=())
    unit_names: tuple[str, ...] = field(default=())
    district_names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        n = len(self.groups)
        for name, prefix in (("groups", "group"), ("votes", "option")):
            counts = _as_counts(getattr(self, name), name)
            object.__setattr__(self, name, counts)
            names = getattr(self, f"{name[:-1]}_names") or [f"{prefix} {k}" for k in range(counts.shape[1])]
            object.__setattr__(self, f"{name[:-1]}_names", tuple(map(str, names)))
        if len(self.votes) != n:
            raise DataError(f"votes: {len(self.votes)} units, but groups have {n}; both need the same units")
        districts = np.zeros(n, np.int64) if self.districts is None else np.asarray(self.districts, np.int64)
        object.__setattr__(self, "districts", districts)
        if len(districts) != n:
            raise DataError(f"districts: {len(districts)} values for {n} units")
        names = self.district_names or [f"district {k}" for k in range(int(districts.max()) + 1)]
        object.__setattr__(self, "district_names", tuple(map(str, names)))
        object.__setattr__(self, "unit_names", tuple(map(str, self.unit_names or range(n))))
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights, float)
        object.__setattr__(self, "weights", weights)
        if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.sum():
            raise DataError(f"weights: needs {n} finite numbers ≥ 0, one for each unit, and not all of them 0")
        self._check_totals()

    @classmethod
    def from_frames(
        cls, groups: pd.DataFrame | np.ndarray, votes: pd.DataFrame | np.ndarray,
        districts: Sequence[Hashable] | pd.Series | np.ndarray | None = None,
        weights: Sequence[float] | np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        """Margins from two tables with one row for each unit.

        DataError for data frames whose indexes differ, and for what the constructor refuses.

        Parameters
        ----------
        groups, votes : DataFrame or ndarray of shape (U, R), DataFrame or ndarray of shape (U, C)
            Counts. The index of a data frame names the units. The order of the rows may differ.
        districts, weights : Sequence[Hashable] of length U or None, Sequence[float] of length U or None
            In the order of the rows of `groups`.
        """
        units: Sequence = range(len(groups))
        if isinstance(groups, pd.DataFrame) and isinstance(votes, pd.DataFrame):
            units = groups.index
            for name, frame in (("groups", groups), ("votes", votes)):
                if not frame.index.is_unique:
                    raise DataError(f"{name}: unit {frame.index[frame.index.duplicated()][0]!r} occurs more than once")
            if len(strange := groups.index.symmetric_difference(votes.index)):
                missing = "votes" if strange[0] in groups.index else "groups"
                raise DataError(f"{missing}: unit {strange[0]!r} is missing; both tables need the same index")
            votes = votes.reindex(groups.index)
        codes, names = pd.factorize(np.zeros(len(groups)) if districts is None else np.asarray(districts))
        if len(codes) != len(groups):
            raise DataError(f"districts: {len(codes)} values for {len(groups)} units")
        if (codes < 0).any():
            raise DataError(f"districts: unit {units[int(np.argmin(codes))]!r} has none")
        return cls(
            groups, votes, codes, weights, tuple(getattr(groups, "columns", ())), tuple(getattr(votes, "columns", ())),
            tuple(units), ("all",) if districts is None else tuple(names),
        )  # fmt: skip

    def district(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Counts (U_d, R_d) and (U_d, C_d) of one district, weights (U_d,), and which groups and options it has.

        Units without people are left out.

        Parameters
        ----------
        number : int
        """
        rows = (self.districts == number) & (np.nansum(self.groups, axis=1) > 0)
        groups, votes = self.groups[rows], self.votes[rows]
        kept = ~np.isnan(groups).all(axis=0), ~np.isnan(votes).all(axis=0)
        parts = [np.nan_to_num(counts[:, k]) for counts, k in zip((groups, votes), kept, strict=True)]
        return parts[0], parts[1], self.weights[rows], *map(np.flatnonzero, kept)

    def _check_totals(self) -> None:
        people, votes = np.nansum(self.groups, axis=1), np.nansum(self.votes, axis=1)
        wrong = np.flatnonzero(abs(people - votes) > ALLOWED * np.maximum(people, 1))
        if len(wrong):
            u = wrong[0]
            raise DataError(
                f"unit {self.unit_names[u]}: groups add up to {people[u]:g} and votes to {votes[u]:g}; both must count the same "
                "people: give those who did not vote a column of their own"
            )
        if not people.any():
            raise DataError("groups: there are no people in any unit")


def _as_counts(values: pd.DataFrame | np.ndarray, name: str) -> np.ndarray:
    try:
        counts = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{name}: must be a table of numbers, one row for each unit") from None
    if counts.ndim != 2 or not counts.size:
        raise DataError(f"{name}: must be a table with one row for each unit, got shape {counts.shape}")
    if counts.shape[1] < 2:
        raise DataError(f"{name}: needs at least two columns; with one there is nothing to infer")
    if np.isinf(counts).any() or (counts < 0).any():
        u, k = np.argwhere(np.isinf(counts) | (counts < 0))[0]
        raise DataError(f"{name}: row {u}, column {k} is {counts[u, k]:g}; counts are finite numbers ≥ 0")
    return counts
