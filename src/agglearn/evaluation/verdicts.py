"""Verdicts from estimates: whether a mean lies in a region, and what several cases say of one claim."""

from dataclasses import dataclass

import numpy as np

from agglearn.evaluation.intervals import LEVEL, Estimate

ALPHA = (1 - LEVEL) / 2  # of each one-sided test: a test rejects where the 95 % interval lies beyond the bound


@dataclass(frozen=True)
class Region:
    """Values for which a claim is true: from `low` to `high`. `strict`: the bounds are not among them."""

    low: float = -np.inf
    high: float = np.inf
    strict: bool = False

    def contains(self, values) -> np.ndarray:
        values = np.asarray(values, dtype=float)
        if self.strict:
            return (values > self.low) & (values < self.high)
        return (values >= self.low) & (values <= self.high)

    def p_values(self, found: Estimate) -> tuple[np.ndarray, np.ndarray]:
        """P values of (the mean is outside, the mean is inside); a small first one speaks for the claim, a small second one against.

        With two bounds the first is that of two one-sided tests (Schuirmann 1987).
        """
        bounds = [
            (found.p_at_most(self.low), found.p_at_least(self.low), self.low),
            (found.p_at_least(self.high), found.p_at_most(self.high), self.high),
        ]
        finite = [(outside, inside) for outside, inside, bound in bounds if np.isfinite(bound)]
        outside, inside = zip(*finite, strict=True)
        return np.maximum.reduce(outside), np.minimum.reduce(inside)


def holm(p) -> np.ndarray:
    """P values adjusted so that the chance of any wrong rejection among all stays below the level (Holm 1979).

    Parameters
    ----------
    p : (m,) P values.
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def combined(outside, inside, needed: int) -> tuple[np.ndarray, np.ndarray]:
    """P values of a claim that is true where at least `needed` of m cases are (Benjamini and Heller 2008, eq. 1).

    Where all are needed, the first is the largest of `outside`, and the second is the smallest of `inside` times m.

    Parameters
    ----------
    outside, inside : (..., m) P values of the cases, as from `Region.p_values`.
    """
    outside, inside = np.sort(outside, axis=-1), np.sort(inside, axis=-1)
    m = outside.shape[-1]
    refuting = m - needed + 1  # false cases that make the claim false
    holds = (m - needed + 1) * outside[..., needed - 1]
    fails = (m - refuting + 1) * inside[..., refuting - 1]
    return np.minimum(holds, 1), np.minimum(fails, 1)
