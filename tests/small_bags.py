"""Small bags with counts: from a logistic model, and five of unequal sizes with columns of unequal scales."""

import numpy as np

from agglearn.linear.softmax import softmax
from agglearn.observations import Bags, LabelledBags


def persons(n_bags=120, size=12, classes=2, d=3, seed=0):
    """Bags that differ in their covariates, with labels from a logistic model: (LabelledBags, true scores)."""
    theta = np.random.default_rng(classes).normal(0, 1.5, (classes - 1, d))
    rng = np.random.default_rng(seed)
    x = (rng.normal(0, 0.7, (n_bags, 1, d)) + rng.normal(size=(n_bags, size, d))).reshape(-1, d).astype(np.float32)
    p = softmax(x @ theta.T)
    y = (rng.random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)
    offsets = np.arange(0, len(x) + 1, size)
    counts = np.stack([np.add.reduceat((y == c).astype(int), offsets[:-1]) for c in range(classes)], axis=1)
    return LabelledBags(Bags(x, offsets, counts), y), theta


OFFSETS = np.array([0, 2, 7, 10, 18, 19])
SIZES = np.diff(OFFSETS)
X = np.random.default_rng(0).normal([1.0, -3.0], [0.5, 4.0], (19, 2)).astype(np.float32)
COUNTS = np.array([[1, 1, 0], [2, 0, 3], [0, 3, 0], [4, 3, 1], [0, 0, 1]])
TWO = Bags(X, OFFSETS, [1, 5, 0, 3, 1])
