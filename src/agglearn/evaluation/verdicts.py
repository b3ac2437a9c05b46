"""Comparisons of numbers with the values for which a statement is true, and tests of claims on several cases."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from agglearn.evaluation.intervals import LEVEL, Estimate

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
ALPHA = (1 - LEVEL) / 2  # of each one-sided test: a test rejects where the 95 % interval lies beyond the bound


@dataclass(frozen=True)
class Region:
    low: float = -np.inf
    high: float = np.inf
    strict: bool = False

    def contains(self, values: ArrayLike) -> np.ndarray:
        values = np.asarray(values, dtype=float)
        if self.strict:
            return (values > self.low) & (values < self.high)
        return (values >= self.low) & (values <= self.high)

    def p_values(self, estimate: Estimate) -> tuple[np.ndarray, np.ndarray]:
        """P values of (the mean is outside, it is inside). Two bounds: two one-sided tests (Schuirmann 1987)."""
        bounds = [
            (estimate.p_at_most(self.low), estimate.p_at_least(self.low), self.low),
            (estimate.p_at_least(self.high), estimate.p_at_most(self.high), self.high),
        ]
        outside, inside = zip(*((out, within) for out, within, bound in bounds if np.isfinite(bound)), strict=True)
        return np.maximum.reduce(outside), np.minimum.reduce(inside)


@dataclass(frozen=True)
class Comparison:
    """A measured number against the region where a claim, or nearness to a printed number, is true."""

    value: float
    low: float
    high: float
    region: Region
    outcome: str

    @classmethod
    def by_interval(cls, value: float, low: float, high: float, region: Region) -> Self:
        """The comparison is decided where the whole interval lies in the region, or wholly beyond a bound."""
        inside, beyond = low >= region.low and high <= region.high, high <= region.low or low >= region.high
        return cls(value, low, high, region, HOLDS if inside else FAILS if beyond else UNDECIDED)

    @classmethod
    def by_every_value(cls, values: np.ndarray, region: Region) -> Self:
        outcome = HOLDS if region.contains(values).all() else FAILS
        return cls(float(values.mean()), float(values.min()), float(values.max()), region, outcome)


def holm(p: ArrayLike) -> np.ndarray:
    """P values adjusted so that the chance of any wrong rejection among all stays below the level (Holm 1979)."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def combine_p_values(outside: ArrayLike, inside: ArrayLike, needed: int) -> tuple[np.ndarray, np.ndarray]:
    """P values of a claim that is true where at least `needed` of m cases are (Benjamini and Heller 2008, eq. 1)."""
    outside, inside = np.sort(outside, axis=-1), np.sort(inside, axis=-1)
    m = outside.shape[-1]
    refuting = m - needed + 1  # false cases that make the claim false
    holds = (m - needed + 1) * outside[..., needed - 1]
    fails = (m - refuting + 1) * inside[..., refuting - 1]
    return np.minimum(holds, 1), np.minimum(fails, 1)
