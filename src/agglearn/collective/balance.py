"""Projection of noisy flow sums to those that a population can have."""

import numpy as np


def balance_flows(
    first: np.ndarray, last: np.ndarray, pairs: np.ndarray, allowed: np.ndarray, rounds: int = 200
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums (L,), (L,), (L, L) ≥ 0 near the given ones and consistent, by alternating projections (von Neumann)."""
    # an individual that stays is neither arrival nor departure
    moves = (allowed & ~np.eye(len(first), dtype=bool)).astype(float)
    neighbours = moves + moves.T
    inverse = np.linalg.inv(2 * np.eye(len(first)) + np.diag(neighbours.sum(axis=1)) - neighbours)
    for _ in range(rounds):
        first, last, pairs = np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)
        last = last * (first.sum() / last.sum())
        shift = inverse @ (pairs.sum(axis=1) - pairs.sum(axis=0) - first + last)
        if np.abs(shift).sum() <= 1e-12 * pairs.sum():
            break
        first, last = first + shift, last - shift
        pairs = np.where(allowed, pairs - shift[:, None] + shift[None, :], 0.0)
    return np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)
