"""Base of the fixed embeddings: a bag becomes the weighted mean of a map of its instances."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import Bags, Observation
from agglearn.observations.bags import order_columns
from agglearn.progress import track
from agglearn.seeds import derive_generator, draw_by_weight, draw_seed
from agglearn.settings import check_parameters

ROWS = 1 << 14  # instances in memory at a time
FITTED_ON = 20_000  # instances that bandwidths, words and mixtures are computed from
BagsLike = Observation | Sequence[ArrayLike]  # see `as_bags`


def as_bags(bags: BagsLike, y: ArrayLike | None = None, names: Sequence[str] = ()) -> Bags:
    """`Bags` from (N_b, d) arrays or frames, or (X, offsets), with target `y` and columns in the order of `names`."""
    if isinstance(bags, Observation):
        if not isinstance(bags, Bags):
            raise DataError(f"learning from distributions needs Bags, not {type(bags).__name__}")
    elif isinstance(bags, tuple) and len(bags) == 2 and np.ndim(bags[1]) == 1 and np.ndim(bags[0]) == 2:
        bags = Bags(*bags)  # type: ignore[arg-type]  # it makes arrays of them
    else:
        bags = _concatenate(bags)
    if bags.names and len(names) and bags.names != tuple(names):
        bags = replace(bags, X=bags.columns(names), names=tuple(names))
    return bags if y is None else replace(bags, target=np.asarray(y), counts=None)


def _concatenate(arrays: Sequence[ArrayLike]) -> Bags:
    if not len(arrays):
        raise DataError("no bags")
    columns = [getattr(a, "columns", ()) for a in arrays]
    names = tuple(map(str, columns[0]))
    values = [np.asarray(a, dtype=np.float32 if getattr(a, "dtype", None) == np.float32 else float) for a in arrays]
    values = [order_columns(a, have, names) for a, have in zip(values, columns, strict=True)]
    for b, a in enumerate(values):
        if a.ndim != 2:
            raise DataError(f"bag {b}: must be (instances, covariates), got shape {a.shape}")
        if a.shape[1] != values[0].shape[1]:
            raise DataError(f"bag {b}: has {a.shape[1]} covariates, bag 0 has {values[0].shape[1]}")
    return Bags(np.concatenate(values), np.append(0, np.cumsum([len(a) for a in values])), names=names)


def truncate_bags(bags: Bags, size: int | None) -> Bags:
    """The first `size` instances of every bag, all where `size` is None or the bag is smaller."""
    if size is None or size >= bags.sizes.max():
        return bags
    return keep_instances(bags, np.arange(len(bags.X)) - bags.offsets[bags.bag_of] < size)


def keep_instances(bags: Bags, mask: np.ndarray) -> Bags:
    """The same bags with some of their instances, for truth values (n,)."""
    offsets = np.append(0, np.cumsum(np.bincount(bags.bag_of[mask], minlength=len(bags))))
    weights = None if bags.weights is None else bags.weights[mask]
    return replace(bags, X=bags.X[mask], offsets=offsets, weights=weights, counts=None)


def total_weights(bags: Bags) -> np.ndarray:
    total = bags.totals.astype(float)
    if (total <= 0).any():
        raise DataError(f"bag {bags._bag(int(np.flatnonzero(total <= 0)[0]))}: all weights are zero")
    return total


def row_blocks(offsets: np.ndarray, rows: int = ROWS) -> Iterator[tuple[int, slice, np.ndarray]]:
    """(first bag, rows, offsets within them) of blocks of at most `rows` rows. A larger bag is spread over several."""
    start, end = int(offsets[0]), int(offsets[-1])
    while start < end:
        first = int(np.searchsorted(offsets, start, side="right")) - 1
        stop = min(start + rows, end)
        last = int(np.searchsorted(offsets, stop, side="right")) - 1  # bags before `last` end here
        if last > first:
            stop = int(offsets[last])
        borders = np.unique(np.clip(offsets[first : max(last, first + 1) + 1], start, stop))
        yield first, slice(start, stop), borders - start
        start = stop


def sample_instances(bags: Bags, n: int, *stream: object) -> np.ndarray:
    """(at most n, d) float32 instances, drawn by weight without replacement, or all where there are no more."""
    weights = bags.weights
    usable = len(bags.X) if weights is None else int((weights > 0).sum())
    if usable <= n:
        rows = np.arange(len(bags.X)) if weights is None else np.flatnonzero(weights > 0)
    elif weights is None:
        rows = np.sort(derive_generator(*stream).choice(len(bags.X), n, replace=False, shuffle=False))
    else:
        rows = draw_by_weight(weights, n, derive_generator(*stream))
    return np.asarray(bags.X[rows], dtype=np.float32)


class Embedding(Estimator):
    """Maps bags to vectors: μ_b = Σ_i w_i φ(x_i) / Σ_i w_i over the instances of bag b.

    Subclasses write `_learn(sample)` of (n, d) float32 rows, which sets `n_sums_`, `_sums(x, weights, offsets)`, the
    (B, k) sums of φ over every bag of a block, of `sums_type`, and, if the vector is more, `_finish(means)`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        Seed of what an embedding draws, and of the sample of instances.

    Attributes
    ----------
    n_features_in_, n_sums_, feature_names_in_ : int, int, list of str
        d, the number of covariates, the width of φ, and names of the covariates, empty where the bags have none.
    """

    observes = Bags
    sums_type: ClassVar[type] = np.float32

    def fit(self, bags: BagsLike, y: ArrayLike | None = None) -> Self:
        """Learn the map from instances.

        Parameters
        ----------
        bags, y : Bags, list of ndarray or (X, offsets), None
            Targets are not used.
        """
        check_parameters(self)
        self._fit(as_bags(bags))
        return self

    def _fit(self, observation: Bags) -> None:
        total_weights(observation)
        self.n_features_in_, self.feature_names_in_ = observation.X.shape[1], list(observation.names)
        self._learn(sample_instances(observation, FITTED_ON, type(self).__name__, draw_seed(self.random_state)))

    def transform(self, bags: BagsLike) -> np.ndarray:
        """Float32 vectors (B, width) of bags. Instances are read in blocks, so memory is bounded by the result's.

        Parameters
        ----------
        bags : see `fit`
            Of the same dimension, else DataError.
        """
        bags = as_bags(bags, names=self.feature_names_in_)
        if bags.X.shape[1] != self.n_features_in_:
            raise DataError(f"bags: have {bags.X.shape[1]} covariates, this embedding has {self.n_features_in_}")
        total = total_weights(bags)
        means = np.zeros((len(bags), self.n_sums_), self.sums_type)
        for first, rows, offsets in track(row_blocks(bags.offsets), "blocks"):
            x = np.ascontiguousarray(bags.X[rows], dtype=np.float32)
            weights = np.zeros(0, np.float32) if bags.weights is None else bags.weights[rows].astype(np.float32)
            block = slice(first, first + len(offsets) - 1)
            means[block] += self._sums(x, weights, offsets) / total[block, None].astype(self.sums_type)
        return self._finish(means)

    def fit_transform(self, bags: BagsLike, y: ArrayLike | None = None) -> np.ndarray:
        """Fit, then return the vectors of the same bags.

        Parameters
        ----------
        bags, y : see `fit`
        """
        return self.fit(bags).transform(bags)

    def _learn(self, sample: np.ndarray) -> None:
        raise NotImplementedError

    def _sums(self, x: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _finish(self, means: np.ndarray) -> np.ndarray:
        return means

    def warm_up(self) -> None:
        """Compile or load the kernels."""
        x = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
        small = {"n_frequencies": 2, "n_words": 2, "n_components": 2}
        params = {k: v for k, v in small.items() if k in self.get_params(deep=False)}
        clone(self).set_params(**params).fit_transform([x[:20], x[20:]])
