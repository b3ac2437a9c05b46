"""Shares of a global budget for methods that need one per feature beforehand (Bateni et al. 2019, section 3.1)."""

import numpy as np

from agglearn.vocabulary.rate_order import Ranking


def allocated(budget: int, rankings: list[Ranking], how: str, most: np.ndarray | None = None) -> list[int]:
    """Clusters of each feature, at least one: `uniform`, or in proportion to its I(X; C) (`information`).

    Parameters
    ----------
    most : (D,) clusters that each feature can use, or None for no limit. What a share has beyond it is divided among
        the other features in the same way.
    """
    weights = np.ones(len(rankings)) if how == "uniform" else np.array([r.total_information for r in rankings])
    most = np.full(len(rankings), np.inf) if most is None else most
    shares, free = np.zeros(len(rankings), np.int64), np.ones(len(rankings), bool)
    while free.any():
        shares[free] = apportioned(budget - shares[~free].sum(), weights[free])
        over = free & (shares > most)
        if not over.any():
            break
        shares[over], free = most[over], free & ~over
    return shares.tolist()


def apportioned(budget: int, weights: np.ndarray) -> np.ndarray:
    """Whole numbers ≥ 1 in proportion to the weights that add up to the budget (largest remainders)."""
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    exact = (budget - len(weights)) * weights / weights.sum()
    out = np.floor(exact).astype(np.int64)
    out[np.argsort(out - exact, kind="stable")[: budget - len(weights) - out.sum()]] += 1
    return out + 1
