"""Values that are numbers already: a vocabulary of any size without a list of its values."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.encoding.columns import numbers
from agglearn.encoding.levels import UNSEEN


@dataclass(frozen=True)
class CodedEncoder:
    """One feature whose values are the whole numbers 0 … size − 1; anything else is unseen."""

    name: str
    size: int

    @property
    def labels(self) -> list[str]:
        """Name of each modality."""
        return list(map(str, range(self.size)))

    def encode(self, column: pd.Series) -> np.ndarray:
        values = numbers(column)
        known = (values >= 0) & (values < self.size) & (values == np.floor(values))
        return np.where(known, np.nan_to_num(values), UNSEEN).astype(np.int32)

    def to_dict(self) -> dict:
        return {"name": self.name, "coded": self.size}
