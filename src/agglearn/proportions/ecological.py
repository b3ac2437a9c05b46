"""Ecological inference: who voted how, from the margins of polling places. The tables themselves are secret."""

from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import Margins
from agglearn.observations.margins import District
from agglearn.progress import track
from agglearn.proportions.margin_tables import MarginFit, balance, duncan_davis, exact_mean, exact_size, softmax
from agglearn.seeds import draw_generator
from agglearn.settings import Count, NonNegative, Part, Positive
from agglearn.text import list_some

MAX_EXACT = 2e6  # operations for one pass over the units of a district


class MarginEstimator(Estimator):
    """Base of a learner of one table for each district from `Margins`. Subclasses write `_infer(district)`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        Unused where the result is deterministic.

    Attributes
    ----------
    tables_ : ndarray of shape (districts, R, C)
        Estimated counts. NaN where a district does not have the group or the option.
    group_names_, vote_names_, district_names_ : list of str
    """

    observes = Margins

    def fit(
        self, groups: Margins | pd.DataFrame | np.ndarray, votes: pd.DataFrame | np.ndarray | None = None,
        districts: ArrayLike | None = None, weights: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn from margins, or from two tables with one row for each unit, see `Margins.from_frames`.

        Parameters
        ----------
        groups, votes, districts, weights : Margins or DataFrame, DataFrame or None, (U,) or None, (U,) or None
        """
        if votes is not None:
            groups = Margins.from_frames(groups, votes, districts, weights)  # type: ignore[arg-type]
        elif districts is not None or weights is not None:
            raise DataError(f"{type(self).__name__}.fit: needs groups and votes, or Margins alone")
        return super().fit(groups)  # type: ignore[arg-type]

    def _fit(self, margins: Margins) -> None:
        self.group_names_, self.vote_names_ = list(margins.group_names), list(margins.vote_names)
        self.district_names_ = list(margins.district_names)
        shape = len(self.district_names_), len(self.group_names_), len(self.vote_names_)
        for number, district in enumerate(track(list(margins.split()), "districts")):
            for name, table in self._infer(district).items():
                if number == 0:
                    setattr(self, name, np.full(shape, np.nan))
                getattr(self, name)[np.ix_(np.array([number]), district.rows, district.columns)] = table

    def _infer(self, district: District) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def table(self, district: str | None = None, of: str = "tables_") -> pd.DataFrame:
        """Return one district's estimated counts, or the sum of all districts.

        Parameters
        ----------
        district, of : str or None, str
            Its name, and the learned tables that are shown, such as `tables_`, or `low_` of one district.
        """
        if district is None and (len(self.district_names_) == 1 or of == "tables_"):
            table = np.nansum(getattr(self, of), axis=0)
        elif district in self.district_names_:
            table = getattr(self, of)[self.district_names_.index(district)]
        else:
            raise DataError(f"district: there is no {district!r}; there are {list_some(self.district_names_)}")
        frame = pd.DataFrame(table, index=self.group_names_, columns=self.vote_names_)
        return frame.dropna(how="all").dropna(axis=1, how="all")


class EcologicalInference(MarginEstimator):
    """Tables of groups by votes from margins, by maximum a posteriori voting probabilities of each district.

    A person of group r votes for c with a probability p_rc that is the same in all units of a district, but for
    overdispersion. Log odds of p_rc scatter around those of the option. Each unit's table is the mean given its
    margins, exactly where it can be enumerated, else by its saddle-point approximation. What is learned agrees with all margins.

    Parameters
    ----------
    spread : float
        Prior standard deviation of a group's log odds around the option's. Small: groups vote alike.
    overdispersion : float
        ρ: a unit of n people counts as n / (1 + ρn), since probabilities differ between units.
    method : {'auto', 'exact', 'approximate'}
        `auto` is exact where the units of a district are small and have few options.
    level, n_draws : float, int
        Of the intervals, and draws from the normal approximation of the posterior that make them.
    random_state : int, RandomState, Generator or None
        Seed of the draws.

    Attributes
    ----------
    tables_, low_, high_ : ndarray of shape (districts, R, C)
        Estimated counts, and ends of their intervals.
    minimum_, maximum_ : ndarray of shape (districts, R, C)
        Duncan–Davis bounds: no table that agrees with the margins of all units lies outside.
    sensitivity_ : ndarray of shape (districts, R, C)
        Difference between two tables for the district, learned from the units where its largest group is strong and
        from those where it is weak. Where it is wider than the interval, units do not vote alike.
    """

    spread: Positive = 0.8
    overdispersion: NonNegative = 0.005
    method: Literal["auto", "exact", "approximate"] = "auto"
    level: Part = 0.95
    n_draws: Count = 400

    def _fit(self, margins: Margins) -> None:
        self._rng = draw_generator(self.random_state)
        super()._fit(margins)

    def _infer(self, district: District) -> dict[str, np.ndarray]:
        groups, votes, weights = district[:3]
        exact = self._is_exact(groups, votes)
        theta, information = self._learn(groups, votes, weights, exact)
        table = _unit_tables(groups, votes, softmax(theta), exact).sum(axis=0)
        minimum, maximum = duncan_davis(groups, votes)
        low, high = self._intervals(table, theta, information)
        strong = np.argsort(-groups[:, groups.sum(axis=0).argmax()] / groups.sum(axis=1), kind="stable")
        halves = []
        for half in np.array_split(strong, 2):
            learned = self._learn(groups[half], votes[half], weights[half], exact)[0]
            halves.append(_unit_tables(groups, votes, softmax(learned), exact).sum(axis=0))
        return {
            "tables_": table,
            "low_": np.clip(low, minimum, maximum),
            "high_": np.clip(high, minimum, maximum),
            "minimum_": minimum,
            "maximum_": maximum,
            "sensitivity_": halves[0] - halves[1],
        }

    def _is_exact(self, groups: np.ndarray, votes: np.ndarray) -> bool:
        are_counts = (groups == groups.round()).all() and (votes == votes.round()).all()
        if self.method == "exact" and not are_counts:
            raise DataError("method exact: counts must be whole numbers; use method approximate")
        return self.method == "exact" or (
            self.method == "auto" and are_counts and exact_size(groups, votes) <= MAX_EXACT
        )

    def _learn(
        self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray, exact: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        weights = weights / (1 + self.overdispersion * groups.sum(axis=1))
        start = np.tile(np.log((votes.sum(axis=0) + 0.5) / votes.sum()), (groups.shape[1], 1))
        return MarginFit(groups, votes, weights, self.spread, exact).solve(start)

    def _intervals(
        self, table: np.ndarray, theta: np.ndarray, information: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ends of intervals: θ is drawn around its maximum, counts around their means, then balanced."""
        factor = np.linalg.cholesky(np.linalg.inv(information))
        draws = theta + (self._rng.standard_normal((self.n_draws, theta.size)) @ factor.T).reshape(-1, *theta.shape)
        means = table * softmax(draws) / softmax(theta)
        counts = self._rng.gamma(means + 0.5)
        counts = balance(counts, table.sum(axis=1), table.sum(axis=0), 20)
        tail = (1 - self.level) / 2
        low, high = np.quantile(counts, [tail, 1 - tail], axis=0)
        return np.floor(low), np.ceil(high)


def _unit_tables(groups: np.ndarray, votes: np.ndarray, p: np.ndarray, exact: bool) -> np.ndarray:
    if exact:
        return np.array([exact_mean(n, m, p)[1] for n, m in zip(groups, votes, strict=True)])
    return balance(groups[:, :, None] * p, groups, votes)
