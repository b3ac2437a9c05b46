"""Bins of one continuous feature as codes."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.encoding.binning import Binning
from agglearn.encoding.codes import warn_of_codes
from agglearn.encoding.columns import numbers, numbers_or_nan
from agglearn.encoding.levels import UNSEEN, Levels


@dataclass(frozen=True)
class BinnedEncoder(Levels):
    """Bins of one continuous feature by inner edges; then a missing value, if training had any, and `other`, if declared:
    text that is no number is then `other`, and infinite numbers are in the first or the last bin."""

    name: str
    edges: tuple[float, ...]
    has_missing: bool = False
    has_other: bool = False

    @classmethod
    def fit(cls, column: pd.Series, how: Binning) -> "BinnedEncoder":
        values = numbers(column)
        warn_of_codes(column, values)
        known = values[~np.isnan(values)]
        edges = how.edges(known) if len(known) else ()
        return cls(str(column.name), tuple(map(float, edges)), len(known) < len(values))

    @property
    def _own(self) -> int:
        return len(self.edges) + 1

    @property
    def labels(self) -> list[str]:
        bounds = ["-inf", *(f"{e:g}" for e in self.edges), "inf"]
        bins = [f"({a}, {b}]" for a, b in itertools.pairwise(bounds)]
        return [*bins, *self._last_labels]

    def encode(self, column: pd.Series) -> np.ndarray:
        values = numbers_or_nan(column) if self.has_other else numbers(column)
        codes = np.searchsorted(np.asarray(self.edges), values, side="left").astype(np.int32)
        codes[np.isnan(values)] = UNSEEN
        codes[column.isna().to_numpy()] = self._missing_code
        return self._complete(codes)

    def to_dict(self) -> dict:
        return {"name": self.name, "edges": list(self.edges)} | self._state()
