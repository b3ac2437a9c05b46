"""Numeric vectors of raw records for linear models: standardised numbers, one-hot categories, principal components."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from agglearn.errors import DataError


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
        raw = frame[self.numeric].to_numpy(float)
        missing = np.isnan(raw)
        numbers = np.where(missing, 0, (raw - self.mean) / self.scale)
        gaps = [missing[:, self.numeric.index(c)] for c in self.gaps]
        data, columns = [*numbers.T, *gaps], [np.full(n, j) for j in range(head)]
        at = head
        for c in self.categorical:
            found = np.searchsorted(self.values[c], frame[c].to_numpy())
            found = np.minimum(found, len(self.values[c]) - 1)
            data.append(self.values[c][found] == frame[c].to_numpy())
            columns.append(at + found)
            at += len(self.values[c])
        width = len(columns)
        stacked = np.column_stack(data).astype(np.float32).ravel()
        places = np.column_stack(columns).astype(np.int32).ravel()
        return csr_matrix((stacked, places, np.arange(0, n * width + 1, width)), shape=(n, at))

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
