"""Clusters of the values of one feature by counts of any number of classes, which Bateni et al. 2019 leave open."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from agglearn.errors import ConfigError, DataError
from agglearn.evaluation.information import information_of_table
from agglearn.settings import check
from agglearn.vocabulary.quantizer import Budget, budget_of

Clusters = tuple[np.ndarray, float, float]  # labels, information, information lost
Algorithm = Literal["divisive", "greedy", "agglomerative"]
CELLS = 2**22  # of a table of losses or distances


def compress_class_counts(counts: ArrayLike, budget: Budget, algorithm: Algorithm = "divisive") -> Clusters:
    """Return clusters of the values of a feature that are informative about a label of two or more classes.

    With two classes, `greedy` is `SubmodularQuantizer` with all candidates in each sample, and `agglomerative` is
    `AgglomerativeQuantizer`. With more, no algorithm has a guarantee, since clusters are no intervals of an order.

    Parameters
    ----------
    counts : array-like of shape (V, K)
        Records of each value with each class, such as `pandas.crosstab` returns.
    budget : int or float
        Largest number of clusters, or, below 1, a fraction of the number of values that have records.
    algorithm : str
        `greedy` cuts clusters where the rate of one class passes a threshold, each time by the cut of largest gain.
        `divisive` then moves values to their nearest clusters while that raises the information (Dhillon, Mallela, Kumar
        2003). `agglomerative` joins the two clusters whose union loses least (Slonim and Tishby 2001). It holds the
        losses of all pairs, so that it takes at most 2,048 values of unequal rates.

    Returns
    -------
    labels, information, information_loss : ndarray of shape (V,), float, float
        Int32 clusters, 0 that of the lowest rates of the last class. Values without records are in the cluster whose rates
        are nearest to those of all records. I(Z;C) and I(X;C) − I(Z;C) in nats.

    Raises
    ------
    ConfigError, DataError
        A setting that is not allowed, or too many values for it. Counts that are negative, fractional or NaN, fewer than
        two classes with records, a budget above the number of values.
    """
    check(compress_class_counts, {"counts": counts, "budget": budget, "algorithm": algorithm})
    table = _validate(counts)
    occupied = table.any(axis=1)
    profile = np.unique(_rates(table[occupied]), axis=0, return_inverse=True)[1].reshape(-1)
    rows = _sum_rows(table[occupied], profile)
    find = {"divisive": _divide, "greedy": _split, "agglomerative": _agglomerate}[algorithm]
    groups = find(rows, min(budget_of(budget, int(occupied.sum()), 1), len(rows)), np.zeros(len(rows), np.int64))
    clusters = np.argsort(np.lexsort(_rates(_sum_rows(rows, groups)).T))[groups]
    sums = _sum_rows(rows, clusters)
    labels = np.full(len(table), np.abs(_rates(sums) - _rates(sums.sum(axis=0))).sum(axis=1).argmin(), np.int32)
    labels[occupied] = clusters[profile]
    lost = rel_entr(rows, rows.sum(axis=1, keepdims=True) * _rates(sums)[clusters]).sum() / table.sum()
    return labels, information_of_table(sums), float(lost)


def _validate(counts: ArrayLike) -> np.ndarray:
    try:
        table = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("class counts must be a table of numbers") from None
    if table.ndim != 2:
        raise DataError(f"class counts have the shape {table.shape}; a row per value and a column per class are needed")
    wrong = np.argwhere(~(np.isfinite(table) & (table >= 0) & (table == np.floor(table))))
    for v, k in wrong[:1]:
        raise DataError(f"value {v}, class {k}: {table[v, k]:g} must be a whole number ≥ 0 ({len(wrong)} such cells)")
    if (classes := int(table.any(axis=0).sum())) < 2:
        raise DataError(f"{classes} of {table.shape[1]} classes have records; two are needed")
    return table


def _rates(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(axis=-1, keepdims=True)


def _sum_rows(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.stack([np.bincount(groups, counts) for counts in rows.T], axis=1)


def _union_loss(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Nats × records that joining clusters of class counts (…, K) loses: lemma 1 for any number of classes."""
    q = _rates(a + b)
    return sum(rel_entr(c, c.sum(axis=-1, keepdims=True) * q).sum(axis=-1) for c in (a, b))


def _best_cut(rows: np.ndarray, members: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Gain and both sides of the best cut of a cluster between unequal rates of one class."""
    best, rates = (-np.inf, members, members[:0]), _rates(rows[members])
    for rate in rates.T:
        order = np.argsort(rate, kind="stable")
        low = np.cumsum(rows[members[order]], axis=0)
        cuts = np.flatnonzero(np.diff(rate[order])) + 1
        gains = _union_loss(low[cuts - 1], low[-1] - low[cuts - 1])
        if gains.max(initial=-np.inf) > best[0]:
            cut = cuts[np.argmax(gains)]
            best = (float(gains.max()), members[order[:cut]], members[order[cut:]])
    return best


def _split(rows: np.ndarray, budget: int, groups: np.ndarray) -> np.ndarray:
    clusters = int(groups.max()) + 1
    splits = [_best_cut(rows, np.flatnonzero(groups == k)) for k in range(clusters if clusters < budget else 0)]
    for k in range(clusters, budget):
        i = int(np.argmax([gain for gain, *_ in splits]))
        _, low, high = splits[i]
        groups[high] = k
        splits[i], splits[k:] = _best_cut(rows, low), [_best_cut(rows, high)]
    return groups


def _divide(rows: np.ndarray, budget: int, groups: np.ndarray) -> np.ndarray:
    before, moved = -1.0, _split(rows, budget, groups)
    while (after := information_of_table(_sum_rows(rows, moved))) > before + 1e-12:
        groups, before = moved, after
        q = _rates(_sum_rows(rows, groups)).T
        logs = np.log(q, where=q > 0, out=np.full(q.shape, -1e100))  # no infinity, which times 0 is NaN
        nearest = np.concatenate([(b @ logs).argmax(1) for b in np.array_split(rows, 1 + len(rows) * budget // CELLS)])
        moved = _split(rows, budget, np.unique(nearest, return_inverse=True)[1])  # anew where a cluster lost all
    return groups


def _agglomerate(rows: np.ndarray, budget: int, groups: np.ndarray) -> np.ndarray:
    if len(rows) ** 2 > CELLS:
        raise ConfigError(f"algorithm: 'agglomerative' cannot hold the pairs of {len(rows)} values; use 'divisive'")
    sums, groups = rows.copy(), np.arange(len(rows))
    losses = np.array([_union_loss(row, sums) for row in sums]) + np.diag(np.full(len(rows), np.inf))
    for _ in range(len(rows) - budget):
        i, j = np.unravel_index(np.argmin(losses), losses.shape)
        sums[i] += sums[j]
        groups[groups == j] = i
        losses[j] = losses[:, j] = np.inf
        losses[i] = losses[:, i] = np.where(np.isfinite(losses[i]), _union_loss(sums[i], sums), np.inf)
    return np.unique(groups, return_inverse=True)[1]
