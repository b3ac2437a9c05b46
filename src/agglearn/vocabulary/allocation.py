"""Division of a global budget, for methods that need one per feature beforehand (Bateni et al. 2019, section 3.1)."""

import numpy as np

from agglearn.rounding import round_to_totals
from agglearn.vocabulary.rate_order import Ranking


def allocate(budget: int, rankings: list[Ranking], mode: str, limits: np.ndarray | None = None) -> list[int]:
    """Number of clusters of each feature, at least one.

    `limits` are the largest useful numbers. What a feature gets beyond its own is divided among the others in the same way.
    """
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
    """Whole numbers ≥ 1 in proportion to the weights that add up to the budget (largest remainders)."""
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    exact = (budget - len(weights)) * weights / weights.sum()
    return round_to_totals(exact, budget - len(weights)) + 1
