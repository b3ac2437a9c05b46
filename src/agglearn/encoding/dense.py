"""Numeric vectors of raw records for linear models: standardised numbers, one-hot categories, principal components."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from agglearn.errors import DataError

DENSE = 100_000  # integers between the least and the greatest category up to which a table has the place of each


class DenseEncoder:
    """Vectors of records, as in Sun 2019, sections 3.5.1 and 3.5.2.1.

    A number is standardised (missing: 0, and one more column says so where any is missing); a category has a column per
    value seen, missing being a value; a value never seen has none.

    Attributes
    ----------
    names : (D,) columns before the reduction, as `<attribute>` or `<attribute>=<value>`.
    attributes : (D,) attribute of each.
    """

    def __init__(self, frame: pd.DataFrame, categorical: Iterable[str]):
        if frame.empty:
            raise DataError("no records to encode")
        self.categorical = [c for c in frame if c in set(categorical)]
        self.numeric = [c for c in frame if c not in set(categorical)]
        self.values = {c: np.sort(frame[c].unique()) for c in self.categorical}
        self.places = {c: _places(values) for c, values in self.values.items()}
        numbers = frame[self.numeric].to_numpy(float)
        self.mean = np.nanmean(np.where(np.isnan(numbers).all(axis=0), 0, numbers), axis=0)
        spread = np.nanstd(np.where(np.isnan(numbers).all(axis=0), 0, numbers), axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.gaps = [c for c, some in zip(self.numeric, np.isnan(numbers).any(axis=0), strict=True) if some]
        self.names = [*self.numeric, *(f"{c}=missing" for c in self.gaps)]
        self.attributes = [*self.numeric, *self.gaps]
        for c in self.categorical:
            self.names += [f"{c}={v}" for v in self.values[c]]
            self.attributes += [c] * len(self.values[c])
        self.kept = np.ones(len(self.names), bool)
        self.components: np.ndarray | None = None
        self.centre = np.zeros(0, np.float32)

    def sparse(self, frame: pd.DataFrame) -> csr_matrix:
        """(n, D) all columns, before anything is left out."""
        n, head = len(frame), len(self.numeric) + len(self.gaps)
        width = head + len(self.categorical)
        data, places = np.empty((n, width), np.float32), np.empty((n, width), np.int32)
        data[:, :head] = self._numbers(frame)
        places[:, :head] = np.arange(head)
        at = head
        for j, c in enumerate(self.categorical, head):
            place, known = self._found(c, frame[c].to_numpy())
            data[:, j], places[:, j] = known, at + place
            at += len(self.values[c])
        return csr_matrix((data.ravel(), places.ravel(), np.arange(0, n * width + 1, width)), shape=(n, at))

    def sums(self, frame: pd.DataFrame, groups: np.ndarray, weights: np.ndarray, n_groups: int) -> np.ndarray:
        """(n_groups, D) weighted sums of the rows of `sparse` over groups (n,), without these rows."""
        blocks = [np.bincount(groups, weights * column, n_groups)[:, None] for column in self._numbers(frame).T]
        for c in self.categorical:
            place, known = self._found(c, frame[c].to_numpy())
            k = len(self.values[c])
            blocks.append(np.bincount(groups * k + place, weights * known, n_groups * k).reshape(n_groups, k))
        return np.concatenate(blocks, axis=1)

    def _numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """(n, ·) standardised numbers, then indicators of the missing ones."""
        raw = frame[self.numeric].to_numpy(float)
        missing = np.isnan(raw)
        gaps = [self.numeric.index(c) for c in self.gaps]
        return np.concatenate([np.where(missing, 0, (raw - self.mean) / self.scale), missing[:, gaps]], axis=1)

    def _found(self, name: str, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) place of each value among the categories, and whether it is one of them."""
        values, places = self.values[name], self.places[name]
        if places is not None and column.dtype.kind in "iu":
            place = places[np.clip(column, values[0], values[-1]) - values[0]]
        else:
            place = np.minimum(np.searchsorted(values, column), len(values) - 1)
        return place, values[place] == column

    def drop_correlated(self, frame: pd.DataFrame, labels: np.ndarray, above: float = 0.7) -> list[str]:
        """Leave out every attribute one of whose columns has |Pearson r| > `above` with an indicator of a class.

        Parameters
        ----------
        labels : (n,) classes of these records. Returns the attributes left out.
        """
        x, n = self.sparse(frame), len(frame)
        classes = np.eye(labels.max() + 1)[labels]
        mean_x, mean_y = np.asarray(x.mean(axis=0)).ravel(), classes.mean(axis=0)
        square = np.asarray(x.multiply(x).mean(axis=0)).ravel() - mean_x**2
        covariance = np.asarray(x.T @ classes) / n - np.outer(mean_x, mean_y)
        spread = np.sqrt(np.outer(np.maximum(square, 1e-12), np.maximum(mean_y * (1 - mean_y), 1e-12)))
        strong = (abs(covariance / spread) > above).any(axis=1)
        gone = sorted({a for a, s in zip(self.attributes, strong, strict=True) if s})
        self.kept &= ~np.isin(self.attributes, gone)
        if not self.kept.any():
            raise DataError("every covariate is correlated with the label; none is left")
        return gone

    def reduce(self, frame: pd.DataFrame, components: int) -> float:
        """Keep so many principal components of these records; returns the share of variance that they hold."""
        x = self.sparse(frame)[:, self.kept]
        mean = np.asarray(x.mean(axis=0)).ravel()
        covariance = np.asarray((x.T @ x).todense(), dtype=float) / x.shape[0] - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        first = slice(None, -components - 1, -1)
        # the sign of a component is free: its largest weight is positive
        vectors = vectors[:, first] * np.sign(
            vectors[abs(vectors[:, first]).argmax(axis=0), np.arange(len(values))[first]]
        )
        self.components = vectors.astype(np.float32)
        self.centre = (mean @ vectors).astype(np.float32)
        return float(values[first].sum() / values.sum())

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """(n, d) float32 vectors."""
        x = self.sparse(frame)
        if self.components is not None:
            weights = np.zeros((x.shape[1], self.components.shape[1]), np.float32)
            weights[self.kept] = self.components
            return np.asarray(x @ weights) - self.centre
        return np.asarray(x[:, self.kept].todense(), dtype=np.float32)


def _places(values: np.ndarray) -> np.ndarray | None:
    """Place among sorted values at which each integer from the least to the greatest belongs; None where they are too many."""
    if values.dtype.kind not in "iu" or int(values[-1]) - int(values[0]) >= DENSE:
        return None
    return np.searchsorted(values, np.arange(values[0], values[-1] + 1))
