"""Ecological inference: who voted how, from the margins of polling places. The tables themselves are secret."""

from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import Margins
from agglearn.progress import track
from agglearn.seeds import draw_generator
from agglearn.settings import Count, NonNegative, Part, Positive
from agglearn.text import list_some

MAX_EXACT = 2e6  # operations for one pass over the units of a district


class MarginEstimator(Estimator):
    """Base of a learner of one table for each district from `Margins`.

    Subclasses write `_infer(groups, votes, weights)`, for (U, R) and (U, C) counts of its units, and (U,) weights.

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
            for name, table in self._infer(*district[:3]).items():
                if number == 0:
                    setattr(self, name, np.full(shape, np.nan))
                getattr(self, name)[np.ix_(np.array([number]), district.rows, district.columns)] = table

    def _infer(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
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

    def _infer(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
        exact = self._is_exact(groups, votes)
        theta, information = self._learn(groups, votes, weights, exact)
        table = unit_sum(groups, votes, softmax(theta), exact)
        minimum, maximum = duncan_davis(groups, votes)
        low, high = self._intervals(table, theta, information)
        strong = np.argsort(-groups[:, groups.sum(axis=0).argmax()] / groups.sum(axis=1), kind="stable")
        halves = []
        for half in np.array_split(strong, 2):
            learned = self._learn(groups[half], votes[half], weights[half], exact)[0]
            halves.append(unit_sum(groups, votes, softmax(learned), exact))
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
        small = self.method == "auto" and are_counts and exact_size(groups, votes) <= MAX_EXACT
        return self.method == "exact" or small

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


def unit_sum(groups: np.ndarray, votes: np.ndarray, p: np.ndarray, exact: bool = False) -> np.ndarray:
    """(R, C) sum of the mean tables of units (U, R) and (U, C), exactly or by their saddle points."""
    if exact:
        return np.array([exact_mean(n, m, p)[1] for n, m in zip(groups, votes, strict=True)]).sum(axis=0)
    return balance(groups[:, :, None] * p, groups, votes).sum(axis=0)


# -- tables of which only the margins are known: balanced tables, exact means, bounds, penalised fits -----------------

FLAT = 10.0  # prior variance of what all groups have in common in an option: nearly nothing is known of it
TINY = 1e-9  # votes added to an expected count, so that an option without votes has a logarithm


def balance(tables: np.ndarray, rows: np.ndarray, columns: np.ndarray, n_iter: int = 60) -> np.ndarray:
    """(…, R, C) tables scaled by row and by column until they have the margins (…, R) and (…, C).

    Among all tables with these margins it is the nearest in relative entropy. It is the saddle-point approximation of
    the mean table, see `exact_mean`.
    """
    tables = tables + TINY
    by_column = np.ones_like(tables[..., 0, :])
    for _ in range(n_iter):
        by_row = rows / (tables @ by_column[..., None])[..., 0]
        sums = (by_row[..., None, :] @ tables)[..., 0, :]
        by_column = columns / np.maximum(sums, 1e-300)
    return tables * by_row[..., :, None] * by_column[..., None, :]


def exact_mean(groups: np.ndarray, votes: np.ndarray, probabilities: np.ndarray) -> tuple[float, np.ndarray]:
    """(log P(votes | groups), mean (R, C) table given both margins) of people who vote by (R, C) probabilities.

    P(votes | groups) is the coefficient of Π_c x_c^votes_c in Π_r (Σ_c p_rc x_c)^groups_r. With one person of group r
    less, who voted for c, it gives the mean of cell (r, c). Counts are whole numbers.
    """
    n, p, exponents = groups.astype(int), probabilities, votes[:-1].astype(int)  # the last follows from the others
    product, mean = _product(n, p, tuple(exponents + 1)), np.zeros_like(p)
    for r in np.flatnonzero(n):
        fewer = n.copy()
        fewer[r] -= 1
        without = _product(fewer, p, tuple(exponents + 1))
        for k in np.flatnonzero(votes):
            remaining = without[tuple(exponents - (np.arange(len(exponents)) == k))]
            mean[r, k] = n[r] * p[r, k] * remaining / product[tuple(exponents)]
    return float(np.log(product[tuple(exponents)])), mean


def _product(n: np.ndarray, p: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Coefficients of Π_r (Σ_c p_rc x_c)^n_r up to the exponents of `shape`, with x = 1 for the last option."""
    product = np.zeros(shape)
    product[(0,) * len(shape)] = 1.0
    for r, count in enumerate(n):
        for _ in range(count):
            grown = p[r, -1] * product
            for k in range(len(shape)):
                ahead, behind = [slice(None)] * len(shape), [slice(None)] * len(shape)
                ahead[k], behind[k] = slice(1, None), slice(None, -1)
                grown[tuple(ahead)] += p[r, k] * product[tuple(behind)]
            product = grown
    return product


def exact_size(groups: np.ndarray, votes: np.ndarray) -> float:
    """About how many operations `exact_mean` needs for units (U, R) and (U, C)."""
    states = np.prod(votes[:, :-1] + 1, axis=1)
    return float((states * groups.sum(axis=1) * (groups > 0).sum(axis=1) * votes.shape[1]).sum())


def duncan_davis(groups: np.ndarray, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest (R, C) sums of cells that the margins (U, R) and (U, C) of the units allow."""
    n, m, total = groups[:, :, None], votes[:, None, :], groups.sum(axis=1)[:, None, None]
    return np.maximum(0, n + m - total).sum(axis=0), np.minimum(n, m).sum(axis=0)


def softmax(theta: np.ndarray) -> np.ndarray:
    p = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


class MarginFit:
    """Maximum a posteriori probabilities of (R, C) log odds θ from the margins of units.

    Log likelihood Σ_u w_u log P(votes_u | groups_u, softmax θ). With `exact` it is the one of `exact_mean`, else
    Σ_c votes_uc log Σ_r groups_ur p_rc: each voter is drawn from the unit's people. Both grow with expected tables.
    Prior: θ_rc = β_c + e_rc with e_rc ~ N(0, spread²) and β_c ~ N(0, 10).
    """

    def __init__(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray, spread: float, exact: bool):
        self.groups, self.votes, self.weights, self.exact = groups, votes, weights, exact
        n_rows, self.n_options = groups.shape[1], votes.shape[1]
        within = np.eye(n_rows) / spread**2
        shared = within.sum(axis=1)
        within -= np.outer(shared, shared) / (1 / FLAT + shared.sum())
        self.precision = np.kron(within, np.eye(self.n_options))

    def _likelihood(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """(log likelihood, (R, C) its gradient in log p): the expected table, by weighted units."""
        p = softmax(theta)
        if self.exact:
            posteriors = [exact_mean(n, m, p) for n, m in zip(self.groups, self.votes, strict=True)]
            tables = np.array([table for _, table in posteriors])
            return float(self.weights @ [value for value, _ in posteriors]), np.tensordot(self.weights, tables, 1)
        expected = self.groups @ p + TINY
        value = self.weights @ (self.votes * np.log(expected)).sum(axis=1)
        return float(value), p * (self.groups.T @ (self.weights[:, None] * self.votes / expected))

    def _information(self, theta: np.ndarray) -> np.ndarray:
        p = softmax(theta)
        slopes = p[:, :, None] * np.eye(self.n_options) - p[:, :, None] * p[:, None, :]  # of p_rc in θ_rk
        expected = self.groups @ p + TINY
        jacobian = np.einsum("ur,rck->ucrk", self.groups, slopes).reshape(expected.size, -1)
        jacobian *= np.sqrt(self.weights[:, None] / expected).reshape(-1, 1)
        return jacobian.T @ jacobian + self.precision

    def solve(self, theta: np.ndarray, n_iter: int = 30, tol: float = 1e-7) -> tuple[np.ndarray, np.ndarray]:
        """(R, C) θ at the maximum and the (RC, RC) inverse covariance there, by Fisher scoring from a start."""

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, table = self._likelihood(theta)
            pull = (self.precision @ theta.ravel()).reshape(theta.shape)
            gradient = table - softmax(theta) * table.sum(axis=1, keepdims=True) - pull
            return value - 0.5 * float(theta.ravel() @ pull.ravel()), gradient

        value, gradient = objective(theta)
        if not np.isfinite(value):
            raise DataError("votes: the likelihood of the margins is no number; units are too large for method exact")
        for _ in range(n_iter):
            information = self._information(theta)
            step = np.linalg.solve(information, gradient.ravel()).reshape(theta.shape)
            gain = float(step.ravel() @ gradient.ravel())
            length = 1.0
            while (ahead := objective(theta + length * step))[0] < value and length > 1e-6:
                length /= 2
            if ahead[0] >= value:
                theta, (value, gradient) = theta + length * step, ahead
            if gain < tol * max(1.0, abs(value)) or length <= 1e-6:
                break
        return theta, self._information(theta)
