"""Categories of one feature as codes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from agglearn.encoding.columns import as_text, distinct
from agglearn.encoding.levels import Levels


@dataclass(frozen=True)
class CategoricalEncoder(Levels):
    """Categories of one feature as sorted text, then a missing value, if training had any, and `other`, if declared.

    Parameters
    ----------
    name, values, has_missing, has_other : str, tuple[str, ...], bool, bool
    """

    name: str
    values: tuple[str, ...]
    has_missing: bool = False
    has_other: bool = False

    @classmethod
    def fit(cls, column: pd.Series) -> Self:
        index, values = distinct(column)
        return cls(str(column.name), tuple(sorted(set(as_text(values)))), bool((index < 0).any()))

    @property
    def _value_labels(self) -> tuple[str, ...]:
        return self.values

    def _codes(self, texts: pd.Series) -> np.ndarray:
        return pd.Index(self.values, dtype=object).get_indexer(texts).astype(np.int32)
