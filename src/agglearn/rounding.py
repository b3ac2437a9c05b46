"""Whole numbers with a given sum."""

import numpy as np


def round_to_totals(exact: np.ndarray, totals: float | np.ndarray) -> np.ndarray:
    """Whole numbers (…, C) near exact ones ≥ 0 that add up to `totals` (…), by the method of largest remainders.

    Of equal remainders the first is rounded up. Each total lies within C of the sum of the exact numbers.
    """
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    missing = np.asarray(np.round(totals - counts.sum(axis=-1)))
    return counts + (rank < missing[..., None])
