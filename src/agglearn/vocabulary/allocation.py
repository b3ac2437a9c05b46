"""Shares of a global budget for methods that need one per feature beforehand (Bateni et al. 2019, section 3.1)."""

import numpy as np

from agglearn.errors import ConfigError
from agglearn.vocabulary.ranking import Ranking


def allocated(budget: int, rankings: list[Ranking], how: str) -> list[int]:
    """Clusters of each feature, at least one: `uniform`, or in proportion to its I(X; C) (`information`).

    A share that a feature's vocabulary is too small for is not passed on.
    """
    if how == "uniform":
        weights = np.ones(len(rankings))
    elif how == "information":
        weights = np.array([r.total_information for r in rankings])
    else:
        raise ConfigError(f"allocation: {how!r} is not known; 'uniform' or 'information'")
    if not weights.sum() > 0:
        weights = np.ones(len(rankings))
    return apportioned(budget, weights).tolist()


def apportioned(budget: int, weights: np.ndarray) -> np.ndarray:
    """Whole numbers ≥ 1 in proportion to the weights that add up to the budget (largest remainders)."""
    exact = (budget - len(weights)) * weights / weights.sum()
    out = np.floor(exact).astype(np.int64)
    out[np.argsort(out - exact, kind="stable")[: budget - len(weights) - out.sum()]] += 1
    return out + 1
