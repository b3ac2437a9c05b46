"""Baselines of the submodular method: bucketing, frequency, divisive and agglomerative clustering."""

import bisect
from typing import Literal

import numpy as np
from scipy.special import rel_entr

from agglearn.rounding import round_to_totals
from agglearn.settings import NonNegative, Positive, Whole
from agglearn.vocabulary import kernels
from agglearn.vocabulary.quantizer import Quantizer
from agglearn.vocabulary.rate_order import Counts, Ranking, in_threads
from agglearn.vocabulary.submodular import ConcatenatedFeatures

MAX_BUCKETS = 2**32  # as finely as double precision tells counts times buckets apart


def allocate(budget: int, rankings: list[Ranking], mode: str, limits: np.ndarray | None = None) -> list[int]:
    """Return clusters per feature, at least one (section 3.1). What exceeds a feature's `limits` goes to the others."""
    weights = np.ones(len(rankings)) if mode == "uniform" else np.array([r.total_information for r in rankings])
    limits = np.full(len(rankings), np.inf) if limits is None else limits
    clusters, free = np.zeros(len(rankings), np.int64), np.ones(len(rankings), bool)
    while free.any():
        clusters[free] = apportion(budget - clusters[~free].sum(), weights[free])
        over = free & (clusters > limits)
        if not over.any():
            break
        clusters[over], free = limits[over], free & ~over
    return clusters.tolist()


def apportion(budget: int, weights: np.ndarray) -> np.ndarray:
    """Return whole numbers ≥ 1 in proportion to the weights that add up to the budget (largest remainders)."""
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    exact = (budget - len(weights)) * weights / weights.sum()
    return round_to_totals(exact, budget - len(weights)) + 1


class BucketingQuantizer(Quantizer):
    """Intervals of label rate, k of equal width, [0, 1/k), [1/k, 2/k), …, [(k − 1)/k, 1] (Bateni et al. 2019, 2.4).

    The intervals are of Pr[C = 0 | X], as in the paper. Empty ones are no clusters. `n_buckets_` has k of each feature.

    Parameters
    ----------
    budget, allocation : int or float, str
        As in `Quantizer`, and divided evenly (`uniform`) or in proportion to I(X;C) (`information`).
    fill : bool
        Whether empty intervals cost nothing: k grows until the others are as many as the feature's share of the budget.
        What a feature cannot use goes to the others. The paper counts empty intervals.
    random_state, min_count, shrinkage, noisy
        As in `Quantizer`.
    """

    allocation: Literal["uniform", "information"] = "uniform"
    fill: bool = False

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        if self.fill:
            clusters = allocate(budget, rankings, self.allocation, np.array([r.n_ranks for r in rankings]))
            buckets = in_threads(_most_buckets, rankings, clusters)
        else:
            buckets = allocate(budget, rankings, self.allocation)
        self.n_buckets_ = {r.name: k for r, k in zip(rankings, buckets, strict=True)}
        return [r.labels(_bucket_cuts(r, k)) for r, k in zip(rankings, buckets, strict=True)]


def _most_buckets(ranking: Ranking, clusters: int) -> int:
    """Some k of at most `clusters` occupied buckets, where k + 1 has more. Their number is not monotone in k."""
    low, high = clusters, 2 * clusters
    while high < MAX_BUCKETS and len(_bucket_cuts(ranking, high)) < clusters:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if len(_bucket_cuts(ranking, middle)) < clusters else (low, middle)
    return low


def _bucket_cuts(ranking: Ranking, k: int) -> np.ndarray:
    n, c = np.diff(ranking.N), np.diff(ranking.C)
    bucket = np.minimum((n - c) * k // n, k - 1)
    return np.flatnonzero(np.diff(bucket)) + 1


class FrequencyQuantizer(Quantizer):
    """Every value of at least τ records is a cluster, and all rarer ones of a feature are one (section 2.4).

    Parameters
    ----------
    budget, random_state, min_count, shrinkage, noisy
        As in `Quantizer`. Shrinkage has no effect. `threshold_` is τ, the smallest one over all features at which the
        vocabulary fits the budget. Clusters are numbered by value, the rare ones come last.
    """

    uses_labels = False

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        levels = np.unique(np.concatenate([r.counts for r in rankings]))

        def fits(level: float) -> bool:  # at a higher one, too
            return sum(min(int(np.sum(r.counts >= level)) + 1, r.n_units) for r in rankings) <= budget

        first = bisect.bisect_left(levels, True, key=fits)  # above all counts there is one tail per feature
        self.threshold_ = float(np.append(levels, levels[-1] + 1)[first])
        return [_frequency_labels(r, self.threshold_) for r in rankings]


def _frequency_labels(ranking: Ranking, threshold: float) -> np.ndarray:
    frequent = ranking.counts >= threshold
    return np.where(frequent, np.cumsum(frequent) - 1, frequent.sum()).astype(np.int32)


class DivisiveQuantizer(Quantizer):
    """Divisive clustering: k-means in Kullback–Leibler divergence (Dhillon, Mallela, Kumar 2003).

    The values of either majority label are the first two groups, each split evenly into half of the clusters. Then
    values move to the nearest cluster and clusters to the rate of their values, O(m log n) per iteration. A cluster
    without values is made anew from the one that loses most. Budget beyond a feature's rates goes to the others.

    Parameters
    ----------
    budget, allocation
        As in `BucketingQuantizer`.
    max_iter, tol, smoothing : int, float, float
        Iterations at most, and relative fall of the loss below which they end. Records at the base rate added to each
        cluster when values are assigned, lest one of rate 0 or 1 is infinitely far.
    random_state, min_count, shrinkage, noisy
        As in `Quantizer`. The attribute `n_iter_` maps each feature to its number of iterations.
    """

    allocation: Literal["uniform", "information"] = "uniform"
    max_iter: Whole = 100
    tol: NonNegative = 1e-3
    smoothing: Positive = 1e-3

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        clusters = allocate(budget, rankings, self.allocation, np.array([r.n_ranks for r in rankings]))
        results = in_threads(self._divide, rankings, clusters)
        self.n_iter_ = {r.name: iterations for r, (_, iterations) in zip(rankings, results, strict=True)}
        return [r.labels(cuts) for r, (cuts, _) in zip(rankings, results, strict=True)]

    def _divide(self, ranking: Ranking, k: int) -> tuple[np.ndarray, int]:
        rates = np.diff(ranking.C) / np.diff(ranking.N)
        cuts = _refill(ranking, _even_cuts(int(np.searchsorted(rates, 0.5)), len(rates), k), k)
        loss, before, iterations = _loss(ranking, cuts), np.inf, 0
        while iterations < self.max_iter and (not iterations or before - loss > self.tol * before):
            cuts, iterations = _refill(ranking, self._assign(ranking, rates, cuts), k), iterations + 1
            before, loss = loss, _loss(ranking, cuts)
        return cuts, iterations

    def _assign(self, ranking: Ranking, rates: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        n, c = _clusters(ranking, cuts)
        q = np.unique((c + self.smoothing * ranking.base_rate) / (n + self.smoothing))
        low, high = q[:-1], q[1:]
        down = np.log1p(-low) - np.log1p(-high)
        borders = down / (np.log(high) - np.log(low) + down)  # rates equally far from two neighbours
        cuts = np.unique(np.searchsorted(rates, borders))
        return cuts[(cuts > 0) & (cuts < len(rates))]


def _even_cuts(border: int, n: int, k: int) -> np.ndarray:
    """Cuts of n ranks into k clusters: at the border between majority labels, and evenly on both sides."""
    if k == 1:
        return np.empty(0, np.int64)
    sides = [b for b in ((0, border), (border, n)) if b[0] < b[1]]
    sizes = [k] if len(sides) == 1 else [k - k // 2, k // 2]
    ends = [np.linspace(a, b, min(m, b - a) + 1)[1:] for (a, b), m in zip(sides, sizes, strict=True) if m]
    cuts = np.unique(np.concatenate(ends).astype(np.int64))
    return cuts[cuts < n]


def _clusters(ranking: Ranking, cuts: np.ndarray) -> Counts:
    ends = np.concatenate([[0], cuts, [ranking.n_ranks]])
    return np.diff(ranking.N[ends]), np.diff(ranking.C[ends])


def _refill(ranking: Ranking, cuts: np.ndarray, k: int) -> np.ndarray:
    """Cuts of k clusters, or as many as there are ranks. The clusters that lose most are split at their own rate."""
    rates = np.diff(ranking.C) / np.diff(ranking.N)
    while missing := max(min(k, len(rates)) - len(cuts) - 1, 0):
        ends = np.concatenate([[0], cuts, [len(rates)]])
        lost = np.where(np.diff(ends) > 1, np.diff(ranking.S[ends]) - _information(ranking, cuts), -np.inf)
        worst = np.argsort(-lost, kind="stable")[: min(missing, int(np.sum(np.diff(ends) > 1)))]
        n, c = _clusters(ranking, cuts)
        split = np.searchsorted(rates, c[worst] / n[worst]).clip(ends[worst] + 1, ends[worst + 1] - 1)
        cuts = np.sort(np.concatenate([cuts, split]))
    return cuts


def _information(ranking: Ranking, cuts: np.ndarray) -> np.ndarray:
    n, c = _clusters(ranking, cuts)
    return rel_entr(c, n * ranking.base_rate) + rel_entr(n - c, n * (1 - ranking.base_rate))


def _loss(ranking: Ranking, cuts: np.ndarray) -> float:
    return ranking.S[-1] - _information(ranking, cuts).sum()


class AgglomerativeQuantizer(Quantizer):
    """Agglomerative information bottleneck (Slonim and Tishby 2001): merges the two clusters whose union loses least.

    Parameters
    ----------
    budget, random_state, min_count, shrinkage, noisy
        As in `Quantizer`. The cheapest merge of any feature is made. All merges take O(n log n).
    """

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        joined = ConcatenatedFeatures.from_rankings(rankings)
        merges = max(joined.n_ranks - budget, 0)
        starts = kernels.agglomerate(joined.N, joined.C, joined.bounds, joined.weights, merges)
        starts[joined.bounds[:-1]] = False
        return [r.labels(c) for r, c in zip(rankings, joined.split(np.flatnonzero(starts)), strict=True)]
