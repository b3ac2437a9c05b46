"""Pair interactions of a pairwise model, in the one spelling that does not depend on how weights are spread.

Adding a constant to a row of a pair table and subtracting it from a single weight changes no probability; centring
rows and columns of every pair table removes that freedom (the interaction term of a two-way analysis of variance).
"""

import numpy as np


def pair_interactions(weights: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Centred pair blocks of a symmetric (K, K) weight matrix, flattened one after the other.

    Parameters
    ----------
    weights : (K, K), features' blocks in order.
    sizes : (D,) modalities per feature, K = Σ sizes.
    """
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    parts = []
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            block = weights[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]]
            centred = block - block.mean(0, keepdims=True) - block.mean(1, keepdims=True) + block.mean()
            parts.append(centred.ravel())
    return np.concatenate(parts) if parts else np.zeros(0)
