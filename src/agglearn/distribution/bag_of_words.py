"""Bag of words: instances counted by their nearest centre (Sun 2019, section 4.1.2)."""

import numpy as np
from sklearn.cluster import kmeans_plusplus

from agglearn.distribution.embedding import Embedding
from agglearn.distribution.kernels import histogram_sums
from agglearn.progress import track
from agglearn.saving import expect
from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import Count, Whole


class BagOfWordsEmbedding(Embedding):
    """Fraction of a bag's instances nearest to each of K `centres_` (K, d), the k-means of all instances.

    Parameters
    ----------
    n_words, max_iter : int
        K (the thesis: 200), at most the number of distinct instances, and largest number of steps of Lloyd's algorithm.
    random_state : int, RandomState, Generator or None
        Seed of the first centres and of the sample of instances.
    """

    n_words: Count = 200
    max_iter: Whole = 25

    def _learn(self, sample: np.ndarray) -> None:
        self.centres_ = k_means(sample, self.n_words, self.max_iter, derive_seed("words", draw_seed(self.random_state)))
        self.n_sums_ = len(self.centres_)

    def _check_state(self) -> None:
        expect(self, n_features_in_=int, n_sums_=int)
        expect(self, centres_=("f", (self.n_sums_, self.n_features_in_)))
        if not np.isfinite(self.centres_).all():
            raise ValueError("BagOfWordsEmbedding.centres_: must be finite")

    def _sums(self, x: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        out = np.zeros((len(offsets) - 1, self.n_sums_), np.float32)
        histogram_sums(nearest(x, self.centres_), weights, offsets, out)
        return out


def nearest(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(n,) index of the nearest centre, which has the largest x·c − ‖c‖²/2."""
    scores = x @ centres.T
    scores -= 0.5 * (centres * centres).sum(axis=1)
    return scores.argmax(axis=1)


def k_means(sample: np.ndarray, k: int, max_iter: int, random_state: int) -> np.ndarray:
    """(K, d) float32 centres by k-means++ and Lloyd's algorithm. A centre that loses all its instances stays."""
    k = min(k, len(np.unique(sample, axis=0)))
    start, _ = kmeans_plusplus(sample, k, random_state=random_state % (1 << 32))
    centres, labels = start.astype(np.float32), None
    for _ in track(range(max_iter), "k-means"):
        indices = nearest(sample, centres)
        if labels is not None and (indices == labels).all():
            break
        labels = indices
        sizes = np.bincount(labels, minlength=k)
        sums = np.stack([np.bincount(labels, column, minlength=k) for column in sample.T], axis=1)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres).astype(np.float32)
    return centres
