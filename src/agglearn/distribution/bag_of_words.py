"""Bag of words: instances counted by their nearest centre (Sun 2019, section 4.1.2)."""

import numpy as np
from sklearn.cluster import kmeans_plusplus

from agglearn.distribution.embedding import Embedding
from agglearn.distribution.kernels import histogram_sums, largest
from agglearn.persistence import expect
from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import Count, Whole


class BagOfWordsEmbedding(Embedding):
    """Share of a bag's instances nearest to each of K centres, which k-means finds among all instances.

    Parameters
    ----------
    n_words : K (the thesis: 200); fewer where there are fewer distinct instances.
    max_iter : steps of Lloyd's algorithm.
    random_state : seed of the first centres and of the instances looked at.

    Attributes
    ----------
    centres_ : (K, d) float32.
    """

    def __init__(self, n_words: Count = 200, max_iter: Whole = 25, random_state=None):
        self.n_words = n_words
        self.max_iter = max_iter
        self.random_state = random_state

    def _learn(self, sample):
        self.centres_ = centres_of(
            sample, self.n_words, self.max_iter, derive_seed("words", draw_seed(self.random_state))
        )
        self.n_sums_ = len(self.centres_)

    def _check_state(self):
        expect(self, n_features_in_=int, n_sums_=int)
        expect(self, centres_=("f", (self.n_sums_, self.n_features_in_)))
        if not np.isfinite(self.centres_).all():
            raise ValueError("BagOfWordsEmbedding.centres_: must be finite")

    def _sums(self, x, weights, offsets):
        out = np.zeros((len(offsets) - 1, self.n_sums_), np.float32)
        histogram_sums(nearest(x, self.centres_), weights, offsets, out)
        return out


def nearest(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(n,) number of the nearest centre: the largest x·c − ‖c‖²/2."""
    scores = x @ centres.T
    scores -= 0.5 * (centres * centres).sum(axis=1)
    found = np.empty(len(x), np.int64)
    largest(scores, found)
    return found


def centres_of(sample: np.ndarray, k: int, max_iter: int, random_state: int) -> np.ndarray:
    """(K, d) float32 centres by k-means++ and Lloyd's algorithm; a centre that loses all its instances stays."""
    k = min(k, len(np.unique(sample, axis=0)))
    start, _ = kmeans_plusplus(sample, k, random_state=random_state % (1 << 32))
    centres, labels = start.astype(np.float32), None
    for _ in range(max_iter):
        found = nearest(sample, centres)
        if labels is not None and (found == labels).all():
            break
        labels = found
        sizes = np.bincount(labels, minlength=k)
        sums = np.stack([np.bincount(labels, column, minlength=k) for column in sample.T], axis=1)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres).astype(np.float32)
    return centres
