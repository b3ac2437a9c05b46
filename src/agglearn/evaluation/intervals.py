"""Estimates of a mean with their uncertainty. The last axis of an array holds the replicates."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

LEVEL = 0.95
NOTHING = 1e-12  # a spread below this fraction of the values is that of rounding


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of means, as Student's t distribution describes it."""

    value: np.ndarray
    error: np.ndarray
    df: np.ndarray
    n: int

    @classmethod
    def of_mean(cls, values: ArrayLike, overlap: float | np.ndarray = 0.0) -> Self:
        values = np.asarray(values, dtype=float)
        n = values.shape[-1]
        mean = values.mean(axis=-1) if n else np.full(values.shape[:-1], np.nan)
        with np.errstate(invalid="ignore"):  # infinite values
            spread = values.std(axis=-1, ddof=1) if n > 1 else np.full(values.shape[:-1], np.nan)
        largest = abs(values).max(axis=-1, initial=0.0)
        error = np.where(spread > NOTHING * largest, spread * np.sqrt(1 / max(n, 1) + overlap), np.nan)
        return cls(mean, error, np.full(mean.shape, float(max(n - 1, 0))), n)

    @classmethod
    def of_difference(cls, first: ArrayLike, second: ArrayLike, overlap: float = 0.0) -> Self:
        """Mean of the first minus mean of the second, of independent samples with their own variances (Welch 1947)."""
        a, b = cls.of_mean(first, overlap), cls.of_mean(second, overlap)
        u, v = a.error**2, b.error**2
        with np.errstate(divide="ignore", invalid="ignore"):
            df = (u + v) ** 2 / (u**2 / a.df + v**2 / b.df)
        return cls(a.value - b.value, np.sqrt(u + v), df, min(a.n, b.n))

    def interval(self, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """(low, high). NaN without a standard error."""
        half = stdtrit(self.df, (1 + level) / 2) * self.error
        return self.value - half, self.value + half

    def p_at_most(self, bound: float) -> np.ndarray:
        """P value of the hypothesis that the mean is at most the bound. 1 without a standard error."""
        return self._p(bound, 1)

    def p_at_least(self, bound: float) -> np.ndarray:
        return self._p(bound, -1)

    def _p(self, bound: float, sign: int) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # infinite values
            p = stdtr(self.df, sign * (bound - self.value) / self.error)
        return np.where(np.isnan(p), 1.0, p)


def mean_interval(values: ArrayLike, overlap: float = 0.0) -> tuple[float, float, float]:
    """Mean with its 95 % interval, (mean, low, high). The bounds are NaN for a single value."""
    values = np.asarray(values, dtype=float)
    estimate = Estimate.of_mean(values[np.isfinite(values)], overlap)
    low, high = estimate.interval()
    return float(estimate.value), float(low), float(high)
