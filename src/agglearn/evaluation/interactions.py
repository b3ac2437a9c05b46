"""Pair interactions of a pairwise model, independent of how it spreads its weights over singles and pairs."""

import itertools

import numpy as np


def pair_interactions(weights: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Pair blocks of a symmetric (K, K) weight matrix, rows and columns centred, flattened one after the other."""
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    blocks = [np.zeros(0)]
    for i, j in itertools.combinations(range(len(sizes)), 2):
        block = weights[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]]
        centred = block - block.mean(0, keepdims=True) - block.mean(1, keepdims=True) + block.mean()
        blocks.append(centred.ravel())
    return np.concatenate(blocks)
