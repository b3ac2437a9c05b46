"""First and second moments of a bag, the plainest fixed embedding."""

from itertools import pairwise
from typing import Literal

import numpy as np

from agglearn.distribution.embedding import Embedding


class MomentEmbedding(Embedding):
    """Mean, and with `order` 2 the covariances of a bag's instances: d, or d + d(d + 1)/2 entries.

    Beyond the thesis. `centre_` (d,) is subtracted before sums are formed.

    Parameters
    ----------
    order, random_state : {1, 2}, int or None
        Whether there are covariances. The seed is not used.
    """

    order: Literal[1, 2] = 2

    def _learn(self, sample: np.ndarray) -> None:
        d = sample.shape[1]
        self.centre_ = sample.mean(axis=0, dtype=float).astype(np.float32)
        self.n_sums_ = d if self.order == 1 else d + d * d

    def _sums(self, x: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        x = x - self.centre_
        weighted = x * weights[:, None] if len(weights) else x
        first = np.add.reduceat(weighted, offsets[:-1], axis=0)
        if self.order == 1:
            return first
        second = [weighted[low:high].T @ x[low:high] for low, high in pairwise(offsets)]
        return np.concatenate([first, np.array(second).reshape(len(first), -1)], axis=1)

    def _finish(self, means: np.ndarray) -> np.ndarray:
        d = self.n_features_in_
        first = means[:, :d]
        if self.order == 1:
            return first + self.centre_
        row, column = np.triu_indices(d)
        second = means[:, d:].reshape(-1, d, d)[:, row, column] - first[:, row] * first[:, column]
        return np.concatenate([first + self.centre_, second], axis=1)
