"""The thesis's message passing: auxiliary sums in a binary tree, each message a convolution (Sun 2019, 3.4.2, Figure 3.4).

O(n log² n) for two classes, O(n^{C−1} log² n) for C. Convolutions go through the FFT above a size, whose error is
relative to the largest entry: small messages drown in it, which the thesis reports as underflow in large trees. Totals so
improbable are refused. Kept for comparison; `kernels` and `multiclass` have neither the error nor the logarithms.
"""

import numpy as np
from scipy.signal import convolve

from agglearn.errors import DataError

DIRECT_BELOW = 128  # entries of a message up to which it is convolved directly
DROWNED = 1e-8  # probability of the counts below which the FFT's errors of some 1e-15 count


def tree_posterior(probabilities: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """(posteriors (n, C), log P(counts)) of one bag for probabilities (n, C) and counts (C,).

    The last class is left out of the messages: entries are [0 … m]^{C−1}.

    Raises
    ------
    DataError : counts that are impossible, or so improbable that the FFT's rounding errors drown them.
    """
    free = probabilities.shape[1] - 1
    leaves = []
    for row in probabilities:
        leaf = np.zeros((2,) * free)
        leaf[(0,) * free] = row[free]
        for c in range(free):
            leaf[tuple(int(a == c) for a in range(free))] = row[c]
        leaves.append(leaf)
    levels = upward(leaves)
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
    found = np.empty_like(probabilities)
    for i, (leaf, message) in enumerate(zip(leaves, downward(levels, beta), strict=True)):
        joint = leaf * message
        found[i, free] = joint[(0,) * free]
        for c in range(free):
            found[i, c] = joint[tuple(int(a == c) for a in range(free))]
        found[i] /= found[i].sum()
    return found, float(np.log(probability))


def upward(leaves: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Messages α level by level, leaves first; α_p = α_l * α_r (eq. 3.4). An odd one out goes up unchanged."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        above = [product(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
        levels.append(above + below[len(above) * 2 :])
    return levels


def downward(levels: list[list[np.ndarray]], beta: np.ndarray) -> list[np.ndarray]:
    """Messages β to the leaves; β_l(z) = Σ_r β_p(z + r) α_r(r) (eq. 3.5)."""
    messages = [beta]
    for below in reversed(levels[:-1]):
        found = []
        for p, message in enumerate(messages):
            pair = below[2 * p : 2 * p + 2]
            found += [correlated(message, pair[1]), correlated(message, pair[0])] if len(pair) == 2 else [message]
        messages = found
    return messages


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return convolve(a, b, method="direct" if min(a.size, b.size) < DIRECT_BELOW else "fft")


def correlated(message: np.ndarray, sibling: np.ndarray) -> np.ndarray:
    reversed_ = sibling[(slice(None, None, -1),) * sibling.ndim]
    method = "direct" if sibling.size < DIRECT_BELOW else "fft"
    return np.maximum(convolve(message, reversed_, mode="valid", method=method), 0)
