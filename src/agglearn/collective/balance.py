"""Sums of noisy flows brought to what a population can have."""

import numpy as np


def balanced(first, last, pairs, allowed, rounds: int = 200):
    """Sums (L,), (L,), (L, L) near the given ones, not negative, with first + arrivals = last + departures in every state.

    Alternating projections (von Neumann). The pairs are those of all steps together; what is not `allowed` (L, L) is zero.
    """
    between = (allowed & ~np.eye(len(first), dtype=bool)).astype(float)  # who stays neither comes nor leaves
    both = between + between.T
    inverse = np.linalg.inv(2 * np.eye(len(first)) + np.diag(both.sum(axis=1)) - both)
    for _ in range(rounds):
        first, last, pairs = np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)
        last = last * (first.sum() / last.sum())
        shift = inverse @ (pairs.sum(axis=1) - pairs.sum(axis=0) - first + last)
        if np.abs(shift).sum() <= 1e-12 * pairs.sum():
            break
        first, last = first + shift, last - shift
        pairs = np.where(allowed, pairs - shift[:, None] + shift[None, :], 0.0)
    return np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)
