"""Fisher vectors of a mixture of diagonal Gaussians (Sun 2019, section 4.1.2, and Perronnin and Dance 2007)."""

from itertools import pairwise
from typing import Annotated

import numpy as np
from sklearn.utils import gen_batches

from agglearn.distribution.bag_of_words import k_means, nearest
from agglearn.distribution.embedding import Embedding
from agglearn.distribution.kernels import scale_to_sum
from agglearn.progress import track
from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import Count, Range, Whole

FLOOR = 1e-3  # least variance, as a fraction of the covariate's
NOTHING = np.zeros(0, np.float32)
CACHED = 2048  # instances whose posteriors stay in a processor's cache from one pass over them to the next


class FisherVectorEmbedding(Embedding):
    """Mean over instances of φ_k(x) = γ_k/√w_k ((x − μ_k)/σ_k, ((x − μ_k)²/σ_k² − 1)/√2), for K components.

    The gradient of the weights is left out. The thesis normalises nothing. `power` 0.5 with `unit_norm` is the improved
    Fisher vector of Perronnin, Sánchez and Mensink (2010).

    Parameters
    ----------
    n_components, max_iter : int
        K (the thesis: 200, few bags need fewer) and number of EM steps from k-means. Vectors have 2KD entries.
    power, unit_norm : float, bool
        Every entry z becomes sign(z)|z|^power. Whether vectors other than 0 are then scaled to length 1.
    random_state : int, RandomState, Generator or None
        Seed of the first centres and of the sample of instances.

    Attributes
    ----------
    weights_, means_, deviations_, centre_ : ndarray of shape (K,), (K, D), (K, D), (D,)
        w, μ, σ, and the mean of the sample of instances.
    """

    sums_type = float  # differences of large sums remain, and the order of instances must not show in them

    n_components: Count = 200
    max_iter: Whole = 20
    power: Annotated[float, Range(0, 1, open="low")] = 1.0
    unit_norm: bool = False

    def _learn(self, sample: np.ndarray) -> None:
        self.centre_ = sample.mean(axis=0, dtype=float).astype(np.float32)  # near 0 the sums lose fewer digits
        x = sample - self.centre_
        floor = FLOOR * np.maximum(x.var(axis=0, dtype=float), 1e-12)
        centres = k_means(x, self.n_components, 10, derive_seed("components", draw_seed(self.random_state)))
        posteriors = np.eye(len(centres), dtype=np.float32)[nearest(x, centres)]
        for _ in track(range(self.max_iter + 1), "EM"):
            self._maximise(x, posteriors, floor)
            posteriors = self._posteriors(x)
        self.n_sums_ = self.weights_.size * (2 * x.shape[1] + 1)

    def _maximise(self, x: np.ndarray, posteriors: np.ndarray, floor: np.ndarray) -> None:
        size = posteriors.sum(axis=0, dtype=float) + 1e-3  # a component without instances gets a little weight
        self.weights_ = size / size.sum()
        means = (posteriors.T @ x) / size[:, None]
        squares = (posteriors.T @ (x * x)) / size[:, None]
        self.means_ = means + self.centre_
        self.deviations_ = np.sqrt(np.maximum(squares - means**2, floor))

    def _posteriors(self, x: np.ndarray, weights: np.ndarray = NOTHING) -> np.ndarray:
        mean, precision = self.means_ - self.centre_, self.deviations_**-2
        linear = np.concatenate([mean * precision, -0.5 * precision], axis=1).astype(np.float32)
        constant = np.log(self.weights_) + np.log(precision).sum(axis=1) / 2 - (mean**2 * precision).sum(axis=1) / 2
        scores, constant = np.empty((len(x), len(mean)), np.float32), constant.astype(np.float32)
        for rows in gen_batches(len(x), CACHED):
            block, covariates = scores[rows], x[rows]
            np.matmul(np.concatenate([covariates, covariates * covariates], axis=1), linear.T, out=block)
            block += constant
            block -= block.max(axis=1, keepdims=True)
            np.exp(block, out=block)
            scale_to_sum(block, weights[rows])
        return scores

    def _sums(self, x: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        x = x - self.centre_
        posteriors = self._posteriors(x, weights)
        full = np.concatenate([np.ones((len(x), 1), np.float32), x, x * x], axis=1).astype(float)
        out = np.empty((len(offsets) - 1, posteriors.shape[1], full.shape[1]))
        for b, (low, high) in enumerate(pairwise(offsets)):
            np.matmul(posteriors[low:high].T.astype(float), full[low:high], out=out[b])
        return out.reshape(len(out), -1)

    def _finish(self, means: np.ndarray) -> np.ndarray:
        sums = means.reshape(len(means), len(self.weights_), -1)
        d, mean, sd = self.n_features_in_, (self.means_ - self.centre_), self.deviations_
        out = np.empty((len(means), len(self.weights_), 2 * d), np.float32)
        root, first, second = np.sqrt(self.weights_)[:, None], slice(1, 1 + d), slice(1 + d, 1 + 2 * d)
        for target, s in zip(out, sums, strict=True):
            target[:, :d] = (s[:, first] - mean * s[:, :1]) / (sd * root)
            squared = s[:, second] - 2 * mean * s[:, first] + mean**2 * s[:, :1]
            target[:, d:] = (squared / sd**2 - s[:, :1]) / (np.sqrt(2) * root)
        out = out.reshape(len(out), -1)
        if self.power != 1:
            out = np.sign(out) * np.abs(out) ** np.float32(self.power)
        if self.unit_norm:
            length = np.linalg.norm(out, axis=1, keepdims=True)
            out /= np.where(length > 0, length, 1)
        return out
