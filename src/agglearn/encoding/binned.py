"""Bins of one continuous feature as codes."""

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from agglearn.encoding.binning import Binning
from agglearn.encoding.codes import warn_of_codes
from agglearn.encoding.columns import is_missing, numbers, numbers_or_nan
from agglearn.encoding.levels import UNSEEN, Levels
from agglearn.errors import ConfigError


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
    def _n_values(self) -> int:
        return len(self.edges) + 1

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
