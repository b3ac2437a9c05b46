"""Information that clusters carry about a label, in nats."""

import numpy as np
from scipy.special import rel_entr, xlogy


def mutual_information(counts: np.ndarray, label_sums: np.ndarray) -> float:
    """I(Z, C) of a table of records and label sums per cluster, from counted rates (Bateni et al. 2019, eq. 1)."""
    return information_of_table(np.stack([counts - label_sums, label_sums]).astype(float))


def information_of_table(joint: np.ndarray) -> float:
    """Mutual information of the rows and columns of a table of counts."""
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / joint.sum()
    return float(rel_entr(joint, independent).sum() / joint.sum())


def predictive_information(counts: np.ndarray, label_sums: np.ndarray, rates: np.ndarray, base: float) -> float:
    """Mean of log p(y|z)/p(y) over records: the gain of predicting each cluster's rate in place of the base rate."""
    gain = xlogy(label_sums, rates / base) + xlogy(counts - label_sums, (1 - rates) / (1 - base))
    return float(gain.sum() / counts.sum())


def bucketing_bound(buckets: int, base: float) -> float:
    """Δ_max of Bateni et al. 2019, theorem 6: the largest change of f (eq. 3) within one of k equal intervals.

    f is convex and 0 at the base rate, so that it is within the first, the last, or the one of the base rate.
    """
    first = np.array([0, min(int(base * buckets), buckets - 1), buckets - 1])
    edges = np.stack([first, first + 1]) / buckets
    f = xlogy(edges, edges / base) + xlogy(1 - edges, (1 - edges) / (1 - base))
    lowest = np.where((edges[0] <= base) & (base <= edges[1]), 0.0, f.min(axis=0))
    return float(np.max(f.max(axis=0) - lowest))
