"""Verdicts from estimates: tests of whether a mean lies in a region, and tests of a claim on several cases."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agglearn.evaluation.intervals import LEVEL, Estimate

ALPHA = (1 - LEVEL) / 2  # of each one-sided test: a test rejects where the 95 % interval lies beyond the bound


@dataclass(frozen=True)
class Region:
    """Values for which a claim is true.

    Parameters
    ----------
    low, high : float
        Bounds.
    strict : bool
        Whether the bounds themselves are left out.
    """

    low: float = -np.inf
    high: float = np.inf
    strict: bool = False

    def contains(self, values: ArrayLike) -> np.ndarray:
        """Whether each value lies in the region."""
        values = np.asarray(values, dtype=float)
        if self.strict:
            return (values > self.low) & (values < self.high)
        return (values >= self.low) & (values <= self.high)

    def p_values(self, estimate: Estimate) -> tuple[np.ndarray, np.ndarray]:
        """P values of (the mean is outside, the mean is inside). A small first one supports the claim, a small second one refutes it.

        With two bounds the first is that of two one-sided tests (Schuirmann 1987).
        """
        bounds = [
            (estimate.p_at_most(self.low), estimate.p_at_least(self.low), self.low),
            (estimate.p_at_least(self.high), estimate.p_at_most(self.high), self.high),
        ]
        finite = [(outside, inside) for outside, inside, bound in bounds if np.isfinite(bound)]
        outside, inside = zip(*finite, strict=True)
        return np.maximum.reduce(outside), np.minimum.reduce(inside)


def holm(p: ArrayLike) -> np.ndarray:
    """P values adjusted so that the chance of any wrong rejection among all stays below the level (Holm 1979).

    Parameters
    ----------
    p : ArrayLike
        (m,) P values.
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def combine_p_values(outside: ArrayLike, inside: ArrayLike, needed: int) -> tuple[np.ndarray, np.ndarray]:
    """P values of a claim that is true where at least `needed` of m cases are (Benjamini and Heller 2008, eq. 1).

    Where all are needed, the first is the largest of `outside`, and the second is the smallest of `inside` times m.

    Parameters
    ----------
    outside, inside : ArrayLike
        (..., m) P values of the cases, as from `Region.p_values`.
    needed : int
        How many cases must be true.
    """
    outside, inside = np.sort(outside, axis=-1), np.sort(inside, axis=-1)
    m = outside.shape[-1]
    refuting = m - needed + 1  # false cases that make the claim false
    holds = (m - needed + 1) * outside[..., needed - 1]
    fails = (m - refuting + 1) * inside[..., refuting - 1]
    return np.minimum(holds, 1), np.minimum(fails, 1)
