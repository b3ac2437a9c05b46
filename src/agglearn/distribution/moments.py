"""First and second moments of a bag, the plainest fixed embedding."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from agglearn.distribution.embedding import Embedding
from agglearn.seeds import RandomState


@dataclass(eq=False, repr=False)
class MomentEmbedding(Embedding):
    """Mean, and with `order` 2 the covariances of a bag's instances: d, or d + d(d + 1)/2 entries.

    Beyond the thesis. Its tasks are functions of the covariance, and nothing simpler could be enough for them.

    Parameters
    ----------
    order : {1, 2}
        Whether there are covariances.
    random_state : int, RandomState, Generator or None
        Not used.

    Attributes
    ----------
    centre_ : ndarray of shape (d,)
        Subtracted before sums are formed.
    """

    order: Literal[1, 2] = 2
    random_state: RandomState = None

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
