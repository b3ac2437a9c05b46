"""Clusters of the values of one feature by means of a real-valued label, which Bateni et al. 2019 leave open."""

import math

import numpy as np
from numpy.typing import ArrayLike

from agglearn.errors import DataError
from agglearn.settings import check
from agglearn.vocabulary.optimal import solve_budget
from agglearn.vocabulary.quantizer import Budget, budget_of
from agglearn.vocabulary.rate_order import Ranking


class _Means(Ranking):
    base_rate = math.nan  # for which the kernels take squares of sums in place of information


def compress_label_means(counts: ArrayLike, sums: ArrayLike, budget: Budget) -> tuple[np.ndarray, float, float]:
    """Return clusters of the values of a feature that explain most of the variance of a real-valued label, exactly.

    They are those of most mutual information where the label is normal with one variance for all values and its means
    differ little. Optimal clusters are intervals of the means (Fisher 1958). Their loss satisfies the quadrangle
    inequality and is convex in their number, so that the solver is that of `OptimalQuantizer`.

    Parameters
    ----------
    counts, sums : array-like of shape (V,)
        Records of each value, and the sum of their labels.
    budget : int or float
        Largest number of clusters, or, below 1, a fraction of the number of values that have records.

    Returns
    -------
    labels, explained, lost : ndarray of shape (V,), float, float
        Int32 clusters, 0 that of the lowest means. Values without records are in the cluster whose mean is nearest to that
        of all records. Variance of the label between clusters, and that of the values' means within them.

    Raises
    ------
    ConfigError, DataError
        A setting that is not allowed. Counts that are negative or fractional, no records, sums that are no numbers or
        belong to no record, a budget above the number of values.
    """
    check(compress_label_means, {"counts": counts, "sums": sums, "budget": budget})
    n, s = _validate(counts, sums)
    occupied = n > 0
    budget = budget_of(budget, int(occupied.sum()), 1)
    mean = s.sum() / n.sum()
    weights, centred = n[occupied], s[occupied] - mean * n[occupied]
    means, ranks = np.unique(s[occupied] / weights, return_inverse=True)  # equal ones are equal to the bit
    totals, deviations = (np.append(0.0, np.cumsum(np.bincount(ranks, v))) for v in (weights, centred))
    ranking = _Means("", np.arange(len(weights)), weights, centred, ranks, totals, deviations, False)
    [cuts], _ = solve_budget([ranking], min(budget, len(means)))
    clusters = ranking.labels(cuts)
    centres = np.bincount(clusters, centred) / np.bincount(clusters, weights)
    labels = np.full(len(n), abs(centres).argmin(), np.int32)
    labels[occupied] = clusters
    explained = np.bincount(clusters, weights) @ centres**2 / n.sum()
    lost = weights @ (centred / weights - centres[clusters]) ** 2 / n.sum()
    return labels, float(explained), float(lost)


def _validate(counts: ArrayLike, sums: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    try:
        n, s = np.asarray(counts, dtype=np.float64), np.asarray(sums, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("counts and sums must be numbers") from None
    if n.ndim != 1 or n.shape != s.shape:
        raise DataError(f"{n.shape} counts and {s.shape} sums; one of each per value is needed")
    wrong = np.flatnonzero(~(np.isfinite(n) & (n >= 0) & (n == np.floor(n)) & np.isfinite(s) & ((n > 0) | (s == 0))))
    for v in wrong[:1]:
        raise DataError(f"value {v} has {n[v]:g} records of sum {s[v]:g} ({len(wrong)} such values); correct them")
    if not n.any():
        raise DataError("no value has records; there is nothing to compress")
    return n, s
