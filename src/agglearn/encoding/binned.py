"""Bins of continuous features, e_i < x ≤ e_{i+1} with e_0 = −∞. One without a training value joins the one below."""

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from agglearn.encoding.codes import warn_of_codes
from agglearn.encoding.columns import is_missing, numbers, numbers_or_nan
from agglearn.encoding.levels import UNSEEN, Levels
from agglearn.errors import ConfigError
from agglearn.settings import check_choice


@dataclass(frozen=True)
class Quantiles:
    """Bins of about equal counts. The text of Gilotte et al. 2022 (section 5.1) uses deciles.

    Parameters
    ----------
    bins : int
    """

    bins: int = 10

    def edges(self, values: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """Inner edges of the bins. `counts` are the rows of each value, where values are distinct.

        Parameters
        ----------
        values, counts : ndarray of shape (n,)
        """
        inner = quantiles(values, counts, np.linspace(0, 1, self.bins + 1)[1:-1])
        return _keep_occupied(np.unique(inner), values)


@dataclass(frozen=True)
class EqualWidth:
    """Bins of equal width between minimum and maximum, as in the public code of Gilotte et al. 2022.

    Parameters
    ----------
    bins : int
        Edges are rounded to integers, but for features whose range is below 1.
    """

    bins: int = 10

    def edges(self, values: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """Inner edges of the bins. `counts` are not used.

        Parameters
        ----------
        values, counts : ndarray of shape (n,)
        """
        low, high = values.min(), values.max()
        inner = np.linspace(low, high, self.bins + 1)[1:-1]
        if high - low >= 1:
            inner = np.round(inner)
        return _keep_occupied(np.unique(inner), values)


Binning = Quantiles | EqualWidth
NAMED: dict[str, Binning] = {"deciles": Quantiles(10), "width": EqualWidth(10)}


def binning(spec: str | Binning) -> Binning:
    """A binning by name (`deciles`, `width`, ConfigError for another), or the object itself.

    Parameters
    ----------
    spec : str or Binning
    """
    if not isinstance(spec, str):
        return spec
    check_choice("binning", spec, NAMED)
    return NAMED[spec]


def quantiles(values: np.ndarray, counts: np.ndarray | None, q: np.ndarray) -> np.ndarray:
    """`np.quantile(np.repeat(values, counts), q)`, to the bit, without the repetition. `counts` None for once each."""
    if counts is None:
        return np.quantile(values, q)
    order = np.argsort(values)
    values, until = values[order], np.cumsum(counts[order])
    position = (until[-1] - 1) * q
    below = np.floor(position)
    weight = position - below  # of the upper value
    low, high = (values[np.searchsorted(until, k, side="right")] for k in (below, np.minimum(below + 1, until[-1] - 1)))
    return np.where(weight < 0.5, low + (high - low) * weight, high - (high - low) * (1 - weight))


def _keep_occupied(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The lower edge of every bin that holds a value, but the first such bin's."""
    full = np.unique(np.searchsorted(edges, values, side="left"))
    return edges[full[1:] - 1]


@dataclass(frozen=True)
class BinnedEncoder(Levels):
    """Bins of one feature, then a missing value, if training had any, and `other`, if declared.

    Parameters
    ----------
    name, edges, has_missing, has_other : str, tuple[float, ...], bool, bool
        Inner edges, ascending. `other` is for text that is no number: the outer bins then hold ±∞.
    """

    name: str
    edges: tuple[float, ...]
    has_missing: bool = False
    has_other: bool = False

    def __post_init__(self) -> None:
        if any(not a < b for a, b in itertools.pairwise(self.edges)):
            raise ConfigError(f"feature {self.name!r}: its edges do not ascend")

    @classmethod
    def fit(cls, column: pd.Series, binning: Binning, counts: np.ndarray | None = None) -> Self:
        """Bins of a column of numbers, or of text that spells them. `counts` (n,): rows of each distinct value."""
        values = numbers(column)
        observed = ~np.isnan(values)
        rows = None if counts is None else counts[observed]
        warn_of_codes(column, values[observed], rows)
        edges = binning.edges(values[observed], rows) if observed.any() else np.empty(0)
        return cls(str(column.name), tuple(map(float, edges)), not observed.all())

    @property
    def _value_labels(self) -> list[str]:
        bounds = ["-inf", *(f"{e:g}" for e in self.edges), "inf"]
        return [f"({a}, {b}]" for a, b in itertools.pairwise(bounds)]

    def encode(self, column: pd.Series) -> np.ndarray:
        values = numbers_or_nan(column) if self.has_other else numbers(column)
        codes = np.searchsorted(np.asarray(self.edges), values, side="left").astype(np.int32)
        codes[np.isnan(values)] = UNSEEN
        codes[is_missing(column)] = self._missing_code
        return self._complete(codes)
