"""Modalities of features: a missing value and anything else among them, and the cells of tables over them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pandas as pd

from agglearn.encoding.columns import by_text
from agglearn.saving import Saved

UNSEEN = -1
MISSING = "missing"
OTHER = "other"


class Levels(ABC, Saved):
    """Base of encoders whose last modalities may be a missing value and anything else."""

    has_missing: bool
    has_other: bool

    @property
    @abstractmethod
    def _value_labels(self) -> Sequence[str]:
        """Names of the other modalities."""

    @property
    def _n_values(self) -> int:
        return len(self._value_labels)

    def _codes(self, texts: pd.Series) -> np.ndarray:
        raise NotImplementedError

    @property
    def size(self) -> int:
        return self._n_values + self.has_missing + self.has_other

    @property
    def labels(self) -> list[str]:
        return [*self._value_labels, *[MISSING] * self.has_missing, *[OTHER] * self.has_other]

    def encode(self, column: pd.Series) -> np.ndarray:
        """(n,) int32 codes of raw values."""
        return self._complete(by_text(column, self._codes, self._missing_code))

    @property
    def _missing_code(self) -> np.int32:
        return np.int32(self._n_values if self.has_missing else UNSEEN)

    def _complete(self, codes: np.ndarray) -> np.ndarray:
        """The codes with `other` in place of UNSEEN, where there is such a modality."""
        return np.where(codes == UNSEEN, np.int32(self.size - 1), codes) if self.has_other else codes


def flat_cells(codes: np.ndarray, sizes: Sequence[int] | np.ndarray, features: Sequence[int]) -> np.ndarray:
    """(n,) int64 C-order index of each row's cell in a table of these features, −1 where a code (n, D) is negative."""
    cells, observed = np.zeros(len(codes), np.int64), np.ones(len(codes), bool)
    for i in features:
        cells = cells * int(sizes[i]) + codes[:, i]
        observed &= codes[:, i] >= 0
    return np.where(observed, cells, -1)
