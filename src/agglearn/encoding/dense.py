"""Numeric vectors of raw records for linear models: standardised numbers, one-hot categories, principal components."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from agglearn.errors import DataError


class DenseEncoder:
    """Vectors of records (Sun 2019, sections 3.5.1, 3.5.2.1). Missing numbers are 0 and flagged."""

    def __init__(self, frame: pd.DataFrame, categorical: Iterable[str]) -> None:
        if frame.empty:
            raise DataError("no records to encode")
        categories = set(categorical)
        self.categorical = [c for c in frame if c in categories]
        self.numeric = [c for c in frame if c not in categories]
        self.values = {c: pd.Index(np.sort(frame[c].unique())) for c in self.categorical}
        numbers = frame[self.numeric].to_numpy(float)
        numbers = np.where(np.isnan(numbers).all(axis=0), 0, numbers)
        self.mean, spread = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.with_missing = [c for c in self.numeric if frame[c].isna().any()]
        self.names = [*self.numeric, *(f"{c}=missing" for c in self.with_missing)]
        self.attributes = [*self.numeric, *self.with_missing]
        for c in self.categorical:
            self.names += [f"{c}={v}" for v in self.values[c]]
            self.attributes += [c] * len(self.values[c])
        self.mask = np.ones(len(self.names), bool)
        self.components: np.ndarray | None = None
        self.centre = np.zeros(0, np.float32)

    def sparse(self, frame: pd.DataFrame) -> csr_matrix:
        """(n, D) all columns, before anything is left out."""
        n, head = len(frame), len(self.numeric) + len(self.with_missing)
        width = head + len(self.categorical)
        data, columns = np.empty((n, width), np.float32), np.empty((n, width), np.int32)
        data[:, :head] = self._numbers(frame)
        columns[:, :head] = np.arange(head)
        n_columns = head
        for j, c in enumerate(self.categorical, head):
            rank, occurs = self._rank(c, frame[c].to_numpy())
            data[:, j], columns[:, j] = occurs, n_columns + rank
            n_columns += len(self.values[c])
        return csr_matrix((data.ravel(), columns.ravel(), np.arange(0, n * width + 1, width)), shape=(n, n_columns))

    def sums(self, frame: pd.DataFrame, groups: np.ndarray, weights: np.ndarray, n_groups: int) -> np.ndarray:
        """(n_groups, D) weighted sums of the rows of `sparse` over groups (n,), without these rows."""
        blocks = [np.bincount(groups, weights * column, n_groups)[:, None] for column in self._numbers(frame).T]
        for c in self.categorical:
            rank, occurs = self._rank(c, frame[c].to_numpy())
            k = len(self.values[c])
            blocks.append(np.bincount(groups * k + rank, weights * occurs, n_groups * k).reshape(n_groups, k))
        return np.concatenate(blocks, axis=1)

    def _numbers(self, frame: pd.DataFrame) -> np.ndarray:
        raw = frame[self.numeric].to_numpy(float)
        missing = np.isnan(raw)
        indices = [self.numeric.index(c) for c in self.with_missing]
        return np.concatenate([np.where(missing, 0, (raw - self.mean) / self.scale), missing[:, indices]], axis=1)

    def _rank(self, name: str, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) rank of each value among the categories, and whether it is one of them."""
        rank = self.values[name].get_indexer(column)
        return np.maximum(rank, 0), rank >= 0

    def drop_correlated(self, frame: pd.DataFrame, labels: np.ndarray, above: float = 0.7) -> list[str]:
        """Attributes that are left out: one of their columns has |Pearson r| > `above` with an indicator of a class."""
        x, n = self.sparse(frame), len(frame)
        classes = np.eye(labels.max() + 1)[labels]
        mean_x, mean_y = np.asarray(x.mean(axis=0)).ravel(), classes.mean(axis=0)
        square = np.asarray(x.multiply(x).mean(axis=0)).ravel() - mean_x**2
        covariance = np.asarray(x.T @ classes) / n - np.outer(mean_x, mean_y)
        spread = np.sqrt(np.outer(np.maximum(square, 1e-12), np.maximum(mean_y * (1 - mean_y), 1e-12)))
        strong = np.flatnonzero((abs(covariance / spread) > above).any(axis=1))
        dropped = sorted({self.attributes[i] for i in strong})
        self.mask &= ~np.isin(self.attributes, dropped)
        if not self.mask.any():
            raise DataError("every covariate is correlated with the label; none is left")
        return dropped

    def reduce(self, frame: pd.DataFrame, components: int) -> float:
        """Fraction of the variance of these records that so many principal components, which are kept, explain."""
        x = self.sparse(frame)[:, self.mask]
        mean = np.asarray(x.mean(axis=0)).ravel()
        covariance = np.asarray((x.T @ x).todense(), dtype=float) / x.shape[0] - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        first = slice(None, -components - 1, -1)
        vectors = vectors[:, first]
        largest = abs(vectors).argmax(axis=0)  # the sign of a component is free: its largest weight is positive
        vectors = vectors * np.sign(np.take_along_axis(vectors, largest[None], axis=0))
        self.components = vectors.astype(np.float32)
        self.centre = (mean @ vectors).astype(np.float32)
        return float(values[first].sum() / values.sum())

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        x = self.sparse(frame)
        if self.components is not None:
            weights = np.zeros((x.shape[1], self.components.shape[1]), np.float32)
            weights[self.mask] = self.components
            return np.asarray(x @ weights) - self.centre
        return np.asarray(x[:, self.mask].todense(), dtype=np.float32)
