"""The thesis's message passing in a binary tree of sums, for comparison (Sun 2019, section 3.4.2, Figure 3.4).

O(n log² n) for two classes. The error of the FFT is relative to the largest entry, so improbable totals are refused.
"""

import numpy as np
from scipy.signal import convolve

from agglearn.errors import DataError

DIRECT_BELOW = 128  # entries of a message up to which it is convolved directly
DROWNED = 1e-8  # probability of the counts below which the FFT's errors of some 1e-15 count


def tree_posterior(probabilities: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """(posteriors (n, C), log P(counts)) of one bag. Messages [0 … m]^{C−1} leave out the last class."""
    free = probabilities.shape[1] - 1
    entries = [tuple(row) for row in np.eye(free + 1, free, dtype=int)]  # of a leaf, for each class
    leaves = np.zeros((len(probabilities), *(2,) * free))
    for entry, p in zip(entries, probabilities.T, strict=True):
        leaves[:, *entry] = p
    levels = pass_up(list(leaves))
    root = levels[-1][0]
    beta = np.zeros_like(root)
    beta[tuple(int(z) for z in counts[:free])] = 1.0
    probability = float((beta * root).sum())
    rounded = any(message.size >= DIRECT_BELOW for level in levels[:-1] for message in level)
    if not probability > (DROWNED if rounded else 0):
        raise DataError(
            f"total: {np.asarray(counts).tolist()} is impossible or too improbable for the tree's rounding errors; use "
            "method='fourier'"
        )
    joint = [leaf * message for leaf, message in zip(leaves, pass_down(levels, beta), strict=True)]
    posteriors = np.array([[cells[entry] for entry in entries] for cells in joint])
    return posteriors / posteriors.sum(axis=1, keepdims=True), float(np.log(probability))


def pass_up(leaves: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Messages α level by level, leaves first: α_p = α_l * α_r (eq. 3.4). An odd one out goes up unchanged."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        above = [_convolve(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
        levels.append(above + below[len(above) * 2 :])
    return levels


def pass_down(levels: list[list[np.ndarray]], beta: np.ndarray) -> list[np.ndarray]:
    """Messages β to the leaves: β_l(z) = Σ_r β_p(z + r) α_r(r) (eq. 3.5)."""
    above = [beta]
    for siblings in reversed(levels[:-1]):
        messages = []
        for p, message in enumerate(above):
            pair = siblings[2 * p : 2 * p + 2]
            messages += [_correlate(message, pair[1]), _correlate(message, pair[0])] if len(pair) == 2 else [message]
        above = messages
    return above


def _convolve(a: np.ndarray, b: np.ndarray, mode: str = "full") -> np.ndarray:
    return convolve(a, b, mode, "direct" if min(a.size, b.size) < DIRECT_BELOW else "fft")


def _correlate(message: np.ndarray, sibling: np.ndarray) -> np.ndarray:
    return np.maximum(_convolve(message, np.flip(sibling), "valid"), 0)
