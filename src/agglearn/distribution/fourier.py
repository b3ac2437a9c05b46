"""Kernel mean embeddings of the Gaussian kernel by random features (Sun 2019, section 4.1.1, eq. 4.3)."""

from typing import Literal

import numpy as np
from scipy.spatial.distance import pdist

from agglearn.distribution.embedding import Embedding
from agglearn.distribution.kernels import fourier_sums
from agglearn.saving import expect
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, Positive

PAIRED = 1000  # instances whose distances give the median


class RandomFourierEmbedding(Embedding):
    """Mean of √(1/F) (cos ω_f·x, sin ω_f·x) over F random frequencies (Rahimi and Recht 2008).

    Inner products of vectors estimate the mean of exp(−‖x − x'‖²/2s²) over pairs of instances, up to about 1/√F.

    Parameters
    ----------
    n_frequencies : int
        F. Vectors have 2F entries.
    bandwidth, scale : float or 'median', float
        s, or the median distance of two instances, and a factor on it.
    random_state : int, RandomState, Generator or None
        Seed of the frequencies and of the sample of instances.

    Attributes
    ----------
    bandwidth_, frequencies_ : float, ndarray of shape (d, F)
        s, with the factor, and frequencies in turns, ω/2π.
    """

    n_frequencies: Count = 512
    bandwidth: Literal["median"] | Positive = "median"
    scale: Positive = 1.0

    def _learn(self, sample: np.ndarray) -> None:
        if self.bandwidth == "median":
            rows = np.linspace(0, len(sample) - 1, min(PAIRED, len(sample))).astype(int)
            spread = float(np.median(pdist(sample[rows])))
            spread = spread if spread > 0 else 1.0
        else:
            spread = float(self.bandwidth)
        self.bandwidth_ = spread * self.scale
        drawn = self._draw(sample.shape[1], derive_generator("frequencies", draw_seed(self.random_state)))
        self.frequencies_ = (drawn / (2 * np.pi * self.bandwidth_)).astype(np.float32)
        self.n_sums_ = 2 * self.n_frequencies

    def _draw(self, d: int, rng: np.random.Generator) -> np.ndarray:
        """(d, F) frequencies for bandwidth 1."""
        return rng.standard_normal((d, self.n_frequencies))

    def _check_state(self) -> None:
        expect(self, n_features_in_=int, n_sums_=int)
        expect(self, frequencies_=("f", (self.n_features_in_, self.n_sums_ // 2)))

    def _sums(self, x: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        out = np.empty((len(offsets) - 1, self.n_sums_), np.float32)
        fourier_sums(x @ self.frequencies_, weights, offsets, out)
        return out

    def _finish(self, means: np.ndarray) -> np.ndarray:
        means *= np.float32(1 / np.sqrt(self.n_frequencies))
        return means


class OrthogonalRandomEmbedding(RandomFourierEmbedding):
    """The thesis's RFF: frequencies are orthogonal within blocks of d (Yu et al. 2016), for a smaller variance.

    Parameters
    ----------
    n_frequencies, bandwidth, scale, random_state : see `RandomFourierEmbedding`
    """

    def _draw(self, d: int, rng: np.random.Generator) -> np.ndarray:
        blocks = []
        for _ in range(-(-self.n_frequencies // d)):
            q, r = np.linalg.qr(rng.standard_normal((d, d)))
            directions = q * np.sign(np.diag(r))  # uniform over the orthogonal group
            blocks.append(directions * np.sqrt(rng.chisquare(d, d)))
        return np.concatenate(blocks, axis=1)[:, : self.n_frequencies]
