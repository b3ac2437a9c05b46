"""Target encoding: few modalities in place of many, by count and label rate (Gilotte et al. 2022, section 4.3)."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.encoding.columns import as_text, distinct
from agglearn.errors import ConfigError
from agglearn.saving import Saved

NEVER = "not held out"
MISSING_VALUE = "\0missing"


@dataclass(frozen=True)
class TargetEncoder(Saved):
    """Modalities of one feature by count and label rate of its values in held-out records, whose labels are then in it.

    Modality 0 is for values that no held-out record has, a missing one included. No value is ever unseen.

    Parameters
    ----------
    name, values, codes, labels : str, tuple[str, ...], tuple[int, ...], tuple[str, ...]
        Values of the held-out records, the modality of each, and the name of each modality.
    """

    from_labels: ClassVar[bool] = True  # noise on the encoded records does not hide the labels in it
    name: str
    values: tuple[str, ...]
    codes: tuple[int, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.codes and not 0 <= min(self.codes) <= max(self.codes) < self.size:
            raise ConfigError(f"feature {self.name!r}: it has codes outside its {self.size} modalities")

    @classmethod
    def fit(cls, column: pd.Series, y: np.ndarray, modalities: int = 1000, prior: float = 20.0) -> Self:
        """Learn from a feature of held-out records, used for nothing else, and their labels y (n,) in {0, 1}.

        The encoder has fewer than `modalities` (at least 3). Rates count `prior` more records at the base rate.
        """
        texts = as_text(column).fillna(MISSING_VALUE)
        table = pd.DataFrame({"value": texts, "y": y}).groupby("value")["y"].agg(["size", "sum"])
        counted = table["size"].to_numpy(), table["sum"].to_numpy()
        return cls.from_counts(str(column.name), tuple(table.index), *counted, float(np.mean(y)), modalities, prior)

    @classmethod
    def from_counts(
        cls, name: str, values: tuple[str, ...], counts: np.ndarray, label_sums: np.ndarray, base_rate: float,
        modalities: int = 1000, prior: float = 20.0,
    ) -> Self:  # fmt: skip
        """Learn from the records (m,) of each value and those with label 1.

        Both may have noise: counts below 1 become 1, and label sums are clipped to 0 … count.
        """
        counts = np.maximum(counts, 1)
        rate = (np.clip(label_sums, 0, counts) + prior * base_rate) / (counts + prior)
        level = np.floor(np.log2(counts)).astype(int)
        levels = int(level.max()) + 1
        if levels > modalities - 2:
            level, levels = level * (modalities - 2) // levels, modalities - 2
        bins = max(1, (modalities - 2) // levels)
        edges = np.unique(np.quantile(rate, np.linspace(0, 1, bins + 1)[1:-1]))
        cell = level * bins + np.searchsorted(edges, rate, side="left")
        cells, codes = np.unique(cell, return_inverse=True)
        labels = [f"{int(counts[cell == k].min())}+ records, rate {rate[cell == k].mean():.3g}" for k in cells]
        return cls(name, values, tuple((codes + 1).tolist()), (NEVER, *labels))

    @property
    def size(self) -> int:
        return len(self.labels)

    def encode(self, column: pd.Series) -> np.ndarray:
        """(n,) int32 codes of raw values.

        Parameters
        ----------
        column : Series
        """
        index, values = distinct(column)
        rank = pd.Index(self.values, dtype=object).get_indexer([*as_text(values), MISSING_VALUE])
        return np.where(rank >= 0, np.asarray(self.codes, dtype=np.int32)[rank], np.int32(0))[index]
