"""Values that are numbers already: a vocabulary of any size without a list of its values."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.encoding.columns import numbers
from agglearn.encoding.levels import UNSEEN
from agglearn.errors import ConfigError
from agglearn.saving import Saved


@dataclass(frozen=True)
class CodedEncoder(Saved):
    """One feature whose values are the whole numbers 0 … size − 1. Anything else is unseen.

    Parameters
    ----------
    name, size : str, int
    """

    name: str
    size: int

    def __post_init__(self) -> None:
        if not 1 <= self.size < 1 << 31:
            raise ConfigError(f"{self.name}: size must be a whole number from 1 on, got {self.size!r}")

    @property
    def labels(self) -> list[str]:
        return list(map(str, range(self.size)))

    def encode(self, column: pd.Series) -> np.ndarray:
        """(n,) int32 codes of raw values.

        Parameters
        ----------
        column : Series
        """
        values = numbers(column)
        valid = (values >= 0) & (values < self.size) & (values == np.floor(values))
        return np.where(valid, np.nan_to_num(values), UNSEEN).astype(np.int32)
