"""What the fixed embeddings have in common: a bag becomes the weighted mean of a map of its instances."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import Bags, Observation
from agglearn.observations.bags import order_columns
from agglearn.seeds import derive_generator, draw_generator, draw_seed
from agglearn.settings import check_parameters

ROWS = 1 << 14  # instances in memory at a time
FITTED_ON = 20_000  # instances that bandwidths, words and mixtures are computed from


def as_bags(bags, y=None, names: Sequence[str] = ()) -> Bags:
    """`Bags` from `Bags`, from a list of (N_b, d) arrays or data frames, or from (X, offsets); `y` is laid over their target.
    Columns that have names come in the order of `names`.

    Raises
    ------
    DataError : an empty bag, bags of different dimension, values that are no numbers, targets of another length; the
        bag is named. A column that is missing. Another observation.
    """
    if isinstance(bags, Observation) and not isinstance(bags, Bags):
        raise DataError(f"learning from distributions needs Bags, not {type(bags).__name__}")
    if not isinstance(bags, Bags):
        if isinstance(bags, tuple) and len(bags) == 2 and np.ndim(bags[1]) == 1 and np.ndim(bags[0]) == 2:
            bags = Bags(*bags)
        else:
            bags = _joined(bags)
    if bags.names and len(names) and bags.names != tuple(names):
        bags = replace(bags, X=bags.columns(names), names=tuple(names))
    return bags if y is None else replace(bags, target=np.asarray(y), counts=None)


def _joined(arrays: Sequence) -> Bags:
    if not len(arrays):
        raise DataError("no bags")
    columns = [getattr(a, "columns", ()) for a in arrays]
    names = tuple(map(str, columns[0]))
    arrays = [np.asarray(a, dtype=np.float32 if getattr(a, "dtype", None) == np.float32 else float) for a in arrays]
    arrays = [order_columns(a, have, names) for a, have in zip(arrays, columns, strict=True)]
    for b, a in enumerate(arrays):
        if a.ndim != 2:
            raise DataError(f"bag {b}: must be (instances, covariates), got shape {a.shape}")
        if a.shape[1] != arrays[0].shape[1]:
            raise DataError(f"bag {b}: has {a.shape[1]} covariates, bag 0 has {arrays[0].shape[1]}")
    return Bags(np.concatenate(arrays), np.append(0, np.cumsum([len(a) for a in arrays])), names=names)


def truncate_bags(bags: Bags, size: int | None) -> Bags:
    """The first `size` instances of every bag; all where it is None or the bag is smaller."""
    if size is None or size >= bags.sizes.max():
        return bags
    kept = np.minimum(bags.sizes, size)
    offsets = np.append(0, np.cumsum(kept))
    rows = np.repeat(bags.offsets[:-1] - offsets[:-1], kept) + np.arange(offsets[-1])
    weights = None if bags.weights is None else bags.weights[rows]
    return replace(bags, X=bags.X[rows], offsets=offsets, weights=weights, counts=None)


def total_weights(bags: Bags) -> np.ndarray:
    """(B,) instances of each bag, or their weight.

    Raises
    ------
    DataError : all weights of a bag are zero.
    """
    if bags.weights is None:
        return bags.sizes.astype(float)
    total = np.add.reduceat(bags.weights, bags.offsets[:-1])
    if (total <= 0).any():
        raise DataError(f"bag {bags._bag(int(np.flatnonzero(total <= 0)[0]))}: all weights are zero")
    return total


def blocks(offsets: np.ndarray, rows: int = ROWS) -> Iterator[tuple[int, slice, np.ndarray]]:
    """(first bag, rows, offsets within them) of blocks of at most `rows` rows; a larger bag is spread over several."""
    at, end = int(offsets[0]), int(offsets[-1])
    while at < end:
        first = int(np.searchsorted(offsets, at, side="right")) - 1
        stop = min(at + rows, end)
        last = int(np.searchsorted(offsets, stop, side="right")) - 1  # bags before `last` end here
        if last > first:
            stop = int(offsets[last])
        borders = np.unique(np.clip(offsets[first : max(last, first + 1) + 1], at, stop))
        yield first, slice(at, stop), borders - at
        at = stop


def sampled(bags: Bags, n: int, *stream) -> np.ndarray:
    """(at most n, d) float32 instances, drawn by weight without replacement; all where there are no more."""
    weights = bags.weights
    usable = len(bags.X) if weights is None else int((weights > 0).sum())
    if usable <= n:
        rows = slice(None) if weights is None else np.flatnonzero(weights > 0)
    elif weights is None:
        rows = np.sort(derive_generator(*stream).choice(len(bags.X), n, replace=False, shuffle=False))
    else:  # Efraimidis and Spirakis 2006
        with np.errstate(divide="ignore"):
            keys = np.log(derive_generator(*stream).random(len(weights))) / weights
        rows = np.sort(np.argpartition(-keys, n)[:n])
    return np.asarray(bags.X[rows], dtype=np.float32)


class Embedding(Estimator):
    """Maps bags to vectors: μ_b = Σ_i w_i φ(x_i) / Σ_i w_i over the instances of bag b.

    Subclasses write `_learn(sample)` from (n, d) float32 instances, `_sums(x, weights, offsets)`, the (B, k) float32 sums of
    φ over every bag of a block, and, where the vector is more than the mean of φ, `_finished(means)`.

    Attributes
    ----------
    n_features_in_ : d. n_sums_ : width of φ. feature_names_in_ : names of the covariates, none where the bags have none.
    """

    observes = Bags

    def fit(self, bags, y=None):
        """Learn the map from instances; targets are not looked at. `bags`: see `as_bags`."""
        check_parameters(self)
        self._fit(as_bags(bags))
        return self

    def _fit(self, observation):
        total_weights(observation)
        self.n_features_in_, self.feature_names_in_ = observation.X.shape[1], list(observation.names)
        self._learn(sampled(observation, FITTED_ON, type(self).__name__, draw_seed(self.random_state)))

    def transform(self, bags) -> np.ndarray:
        """(B, width) float32 vectors of bags; instances are read in blocks, so memory is bounded by the result's.

        Raises
        ------
        DataError : bags of another dimension.
        """
        bags = as_bags(bags, names=self.feature_names_in_)
        if bags.X.shape[1] != self.n_features_in_:
            raise DataError(f"bags: have {bags.X.shape[1]} covariates, this embedding knows {self.n_features_in_}")
        total = total_weights(bags)
        means = np.zeros((len(bags), self.n_sums_), np.float32)
        for first, rows, offsets in blocks(bags.offsets):
            x = np.ascontiguousarray(bags.X[rows], dtype=np.float32)
            weights = np.zeros(0, np.float32) if bags.weights is None else bags.weights[rows].astype(np.float32)
            here = slice(first, first + len(offsets) - 1)
            means[here] += self._sums(x, weights, offsets) / total[here, None].astype(np.float32)
        return self._finished(means)

    def fit_transform(self, bags, y=None) -> np.ndarray:
        """Fit, then the vectors of the same bags."""
        return self.fit(bags).transform(bags)

    def _learn(self, sample: np.ndarray) -> None:
        raise NotImplementedError

    def _sums(self, x: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _finished(self, means: np.ndarray) -> np.ndarray:
        return means

    def warm_up(self) -> None:
        """Compile the kernels, or load them."""
        x = draw_generator(0).normal(size=(40, 2)).astype(np.float32)
        from sklearn.base import clone

        small = {"n_frequencies": 2, "n_words": 2, "n_components": 2}
        known = self.get_params(deep=False)
        clone(self).set_params(**{k: v for k, v in small.items() if k in known}).fit_transform([x[:20], x[20:]])
