"""What the submodular method is compared with: bucketing, frequency, divisive and agglomerative clustering."""

from typing import Literal

import numpy as np
from scipy.special import rel_entr

from agglearn.settings import NonNegative, Positive, Whole
from agglearn.vocabulary import kernels
from agglearn.vocabulary.allocation import allocated
from agglearn.vocabulary.quantizer import Budget, Quantizer, Shrinkage
from agglearn.vocabulary.rate_order import in_threads
from agglearn.vocabulary.submodular import ConcatenatedFeatures


class BucketingQuantizer(Quantizer):
    """k intervals of label rate of equal width, [0, 1/k), [1/k, 2/k), …, [(k − 1)/k, 1] (Bateni et al. 2019, section 2.4).

    The intervals are of Pr[C = 0 | X], as in the paper. Empty ones are no clusters.

    Parameters
    ----------
    budget, min_count, shrinkage, noisy : see `Quantizer`.
    allocation : of the budget over features: `uniform`, or `information`, in proportion to I(X; C).
    random_state : not used.

    Attributes
    ----------
    n_buckets_ : {feature: k}. See `Quantizer` for the others.
    """

    def __init__(
        self,
        budget: Budget,
        allocation: Literal["uniform", "information"] = "uniform",
        min_count: NonNegative = 0,
        shrinkage: Shrinkage = None,
        noisy: bool = False,
        random_state=None,
    ):
        super().__init__(budget, min_count, shrinkage, noisy, random_state)
        self.allocation = allocation

    def _quantize(self, rankings, budget):
        shares = allocated(budget, rankings, self.allocation)
        self.n_buckets_ = {r.name: k for r, k in zip(rankings, shares, strict=True)}
        return [r.labels(_bucket_cuts(r, k)) for r, k in zip(rankings, shares, strict=True)]


def _bucket_cuts(ranking, k: int) -> np.ndarray:
    n, c = np.diff(ranking.N), np.diff(ranking.C)
    bucket = np.minimum((n - c) * k // n, k - 1)
    return np.flatnonzero(np.diff(bucket)) + 1


class FrequencyQuantizer(Quantizer):
    """Keeps the values of at least τ records; all rarer ones of a feature are one cluster (section 2.4).

    τ is one threshold over all features, the smallest at which the vocabulary fits the budget. Clusters are numbered by
    value, the rare ones come last.

    Parameters
    ----------
    budget, min_count, shrinkage, noisy : see `Quantizer`; shrinkage has no effect.
    random_state : not used.

    Attributes
    ----------
    threshold_ : τ. See `Quantizer` for the others.
    """

    uses_labels = False

    def _quantize(self, rankings, budget):
        counts = np.sort(np.concatenate([r.counts for r in rankings]))[::-1]
        levels = np.unique(counts)  # rising thresholds; a higher one never keeps more clusters
        low, high = 0, len(levels)  # at levels[high] the vocabulary fits; above all counts it is one tail per feature
        while low < high:
            middle = (low + high) // 2
            if sum(_kept(r, levels[middle]) for r in rankings) <= budget:
                high = middle
            else:
                low = middle + 1
        self.threshold_ = float(levels[high]) if high < len(levels) else float(levels[-1] + 1)
        return [_frequent(r, self.threshold_) for r in rankings]


def _kept(ranking, threshold: float) -> int:
    """Clusters of a feature at a threshold."""
    kept = int(np.sum(ranking.counts >= threshold))
    return kept + (kept < ranking.n_units)


def _frequent(ranking, threshold: float) -> np.ndarray:
    kept = ranking.counts >= threshold
    return np.where(kept, np.cumsum(kept) - 1, kept.sum()).astype(np.int32)


class DivisiveQuantizer(Quantizer):
    """Divisive clustering: k-means in Kullback–Leibler divergence (Dhillon, Mallela, Kumar 2003).

    It begins with the values of either majority label, each part split into halves of the clusters as its ranks go; then
    values move to the nearest cluster and clusters to the rate of their values, until the loss falls by less than
    `tol` of itself. With two labels the clusters are intervals of rate, so that an iteration costs O(m log n), not
    O(n·m), and its result is the same. Where a cluster loses all its values, the cluster that loses most information is
    split at its own rate, so that the budget is used. Budget that a feature has too few distinct rates for goes to the others.

    Parameters
    ----------
    budget, min_count, shrinkage, noisy : see `Quantizer`.
    allocation : of the budget over features: `uniform`, or `information`, in proportion to I(X; C).
    max_iter, tol : when to stop.
    smoothing : records at the base rate that each cluster's rate is taken with when values are assigned; above 0, so that
        a cluster of rate 0 or 1 is not infinitely far from everything else.
    random_state : not used.

    Attributes
    ----------
    n_iter_ : {feature: iterations}. See `Quantizer` for the others.
    """

    def __init__(
        self,
        budget: Budget,
        allocation: Literal["uniform", "information"] = "uniform",
        max_iter: Whole = 100,
        tol: NonNegative = 1e-3,
        smoothing: Positive = 1e-3,
        min_count: NonNegative = 0,
        shrinkage: Shrinkage = None,
        noisy: bool = False,
        random_state=None,
    ):
        super().__init__(budget, min_count, shrinkage, noisy, random_state)
        self.allocation = allocation
        self.max_iter = max_iter
        self.tol = tol
        self.smoothing = smoothing

    def _quantize(self, rankings, budget):
        shares = allocated(budget, rankings, self.allocation, np.array([r.n_places for r in rankings]))
        found = in_threads(self._divide, rankings, shares)
        self.n_iter_ = {r.name: iterations for r, (_, iterations) in zip(rankings, found, strict=True)}
        return [r.labels(cuts) for r, (cuts, _) in zip(rankings, found, strict=True)]

    def _divide(self, ranking, k: int) -> tuple[np.ndarray, int]:
        rates = np.diff(ranking.C) / np.diff(ranking.N)
        S = kernels.single_information(ranking.N, ranking.C, ranking.base_rate)
        cuts = _refilled(ranking, S, _halves(int(np.searchsorted(rates, 0.5)), len(rates), k), k)
        loss, before, iterations = _loss(ranking, S, cuts), np.inf, 0
        while iterations < self.max_iter and (not iterations or before - loss > self.tol * before):
            cuts, iterations = _refilled(ranking, S, self._assigned(ranking, rates, cuts), k), iterations + 1
            before, loss = loss, _loss(ranking, S, cuts)
        return cuts, iterations

    def _assigned(self, ranking, rates, cuts) -> np.ndarray:
        """Cuts once every value has moved to the cluster of smallest divergence, in order of rate."""
        n, c = _clusters(ranking, cuts)
        q = (c + self.smoothing * ranking.base_rate) / (n + self.smoothing)
        q = np.unique(q)
        low, high = q[:-1], q[1:]
        down = np.log1p(-low) - np.log1p(-high)
        borders = down / (np.log(high) - np.log(low) + down)  # rates equally far from two neighbours
        cuts = np.unique(np.searchsorted(rates, borders))
        return cuts[(cuts > 0) & (cuts < len(rates))]


def _halves(border: int, n: int, k: int) -> np.ndarray:
    """Cuts of n places into k clusters: at the border between majority labels, and evenly on both sides."""
    if k == 1:
        return np.empty(0, np.int64)
    parts = [b for b in ((0, border), (border, n)) if b[0] < b[1]]
    each = [k] if len(parts) == 1 else [k - k // 2, k // 2]
    cuts = [
        np.linspace(a, b, min(m, b - a) + 1).astype(np.int64)[1:] for (a, b), m in zip(parts, each, strict=True) if m
    ]
    cuts = np.unique(np.concatenate(cuts))
    return cuts[cuts < n]


def _clusters(ranking, cuts) -> tuple[np.ndarray, np.ndarray]:
    ends = np.concatenate([[0], cuts, [ranking.n_places]])
    return np.diff(ranking.N[ends]), np.diff(ranking.C[ends])


def _refilled(ranking, S, cuts, k: int) -> np.ndarray:
    """Cuts of k clusters, or of as many as there are places: the clusters that lose most are split at their own rate."""
    rates = np.diff(ranking.C) / np.diff(ranking.N)
    while missing := max(min(k, len(rates)) - len(cuts) - 1, 0):
        ends = np.concatenate([[0], cuts, [len(rates)]])
        lost = np.where(np.diff(ends) > 1, np.diff(S[ends]) - _information(ranking, cuts), -np.inf)
        worst = np.argsort(-lost, kind="stable")[: min(missing, int(np.sum(np.diff(ends) > 1)))]
        n, c = _clusters(ranking, cuts)
        split = np.searchsorted(rates, c[worst] / n[worst]).clip(ends[worst] + 1, ends[worst + 1] - 1)
        cuts = np.sort(np.concatenate([cuts, split]))
    return cuts


def _information(ranking, cuts) -> np.ndarray:
    """(m,) information of each cluster, in nats × records."""
    n, c = _clusters(ranking, cuts)
    return rel_entr(c, n * ranking.base_rate) + rel_entr(n - c, n * (1 - ranking.base_rate))


def _loss(ranking, S, cuts) -> float:
    return S[-1] - _information(ranking, cuts).sum()


class AgglomerativeQuantizer(Quantizer):
    """Agglomerative information bottleneck (Slonim and Tishby 2001): merges the two clusters whose union loses least.

    With two labels the two are always neighbours in rate, so that all merges take O(n log n). Over several features the
    cheapest merge of any feature is made.

    Parameters
    ----------
    budget, min_count, shrinkage, noisy : see `Quantizer`.
    random_state : not used.

    Attributes
    ----------
    See `Quantizer`.
    """

    def _quantize(self, rankings, budget):
        joined = ConcatenatedFeatures.of(rankings)
        merges = max(joined.n_places - budget, 0)
        begins = kernels.agglomerate(joined.N, joined.C, joined.bounds, joined.weights, merges)
        begins[joined.bounds[:-1]] = False
        return [r.labels(c) for r, c in zip(rankings, joined.split(np.flatnonzero(begins)), strict=True)]
