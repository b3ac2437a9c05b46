"""First and second moments of a bag, the plainest fixed embedding."""

from itertools import pairwise
from typing import Literal

import numpy as np

from agglearn.distribution.embedding import Embedding
from agglearn.errors import ConfigError

FLOOR = 1e-3  # of the mean variance: least eigenvalue of a covariance


class MomentEmbedding(Embedding):
    """Mean, and with `order` 2 the covariances of a bag's instances: d, or d + d(d + 1)/2 entries.

    Beyond the thesis. `centre_` (d,) is subtracted before sums are formed.

    Parameters
    ----------
    order, log, random_state : {1, 2}, bool, int or None
        Whether there are covariances, and whether their matrix logarithm takes their place, in which entropies and mutual
        information of Gaussians are linear or nearly so (Arsigny et al. 2007). Eigenvalues below a thousandth of the
        sample's mean variance, `floor_`, count as that. The seed is not used.
    """

    order: Literal[1, 2] = 2
    log: bool = False

    def _learn(self, sample: np.ndarray) -> None:
        d = sample.shape[1]
        if self.log and self.order == 1:
            raise ConfigError("log: is of covariances, which order=2 has")
        self.centre_ = sample.mean(axis=0, dtype=float).astype(np.float32)
        self.floor_ = FLOOR * float(sample.var(axis=0, dtype=float).mean()) or FLOOR
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
        second = means[:, d:].reshape(-1, d, d) - first[:, :, None] * first[:, None]
        if self.log:
            values, vectors = np.linalg.eigh(second)
            second = (vectors * np.log(np.maximum(values, self.floor_))[:, None]) @ vectors.transpose(0, 2, 1)
        row, column = np.triu_indices(d)
        return np.concatenate([first + self.centre_, second[:, row, column]], axis=1)
