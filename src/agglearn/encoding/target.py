"""Target encoding: a feature of many modalities becomes few, by how often they occur and how often with the label.

Gilotte et al. 2022, section 4.3 (footnote 12): on held-out records, count and label rate of every modality are
computed and discretised together. Records that build the encoding must not be used for anything else: their labels
are in it.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from agglearn.encoding.columns import as_text, distinct

NEVER = "not held out"
MISSING_VALUE = "\0missing"


@dataclass(frozen=True)
class TargetEncoder:
    """Modalities of one feature by count and label rate of its values in held-out records.

    Modality 0 is for values that the held-out records never showed: rare ones, and a missing value where there was
    none. No value is ever unseen.

    Attributes
    ----------
    values, codes : what the held-out records showed, and the modality of each.
    labels : name of each modality.
    """

    from_labels: ClassVar[bool] = True  # what it tells of labels is beyond any noise on what is encoded
    name: str
    values: tuple[str, ...]
    codes: tuple[int, ...]
    labels: tuple[str, ...]

    @classmethod
    def fit(cls, column: pd.Series, y: np.ndarray, modalities: int = 1000, prior: float = 20.0) -> "TargetEncoder":
        """Learn from held-out records.

        Parameters
        ----------
        column, y : feature and 0/1 labels of the held-out records.
        modalities : fewer than this many result; at least 3.
        prior : records at the base rate added to each value before its rate is taken.
        """
        table = pd.DataFrame({"value": _text(column), "y": y}).groupby("value")["y"].agg(["size", "sum"])
        counted = table["size"].to_numpy(), table["sum"].to_numpy()
        return cls.of_counts(str(column.name), tuple(table.index), *counted, float(np.mean(y)), modalities, prior)

    @classmethod
    def of_counts(
        cls, name: str, values: tuple[str, ...], counts, label_sums, base_rate: float, modalities=1000, prior=20.0
    ) -> "TargetEncoder":
        """Learn from (m,) counts and label sums of the values, which may have noise: a count below 1 is taken for 1, a
        label sum for the nearest that its count allows."""
        counts = np.maximum(counts, 1)
        rate = (np.clip(label_sums, 0, counts) + prior * base_rate) / (counts + prior)
        level = np.floor(np.log2(counts)).astype(int)
        levels = int(level.max()) + 1
        if levels > modalities - 2:
            level, levels = level * (modalities - 2) // levels, modalities - 2
        bins = max(1, (modalities - 2) // levels)
        edges = np.unique(np.quantile(rate, np.linspace(0, 1, bins + 1)[1:-1]))
        cell = level * bins + np.searchsorted(edges, rate, side="left")
        kept, codes = np.unique(cell, return_inverse=True)
        labels = [f"{int(counts[cell == k].min())}+ records, rate {rate[cell == k].mean():.3g}" for k in kept]
        return cls(name, values, tuple((codes + 1).tolist()), (NEVER, *labels))

    @property
    def size(self) -> int:
        return len(self.labels)

    def encode(self, column: pd.Series) -> np.ndarray:
        at, values = distinct(column)
        shown = pd.Index(self.values, dtype=object).get_indexer([*as_text(values), MISSING_VALUE])
        return np.where(shown >= 0, np.asarray(self.codes, dtype=np.int32)[shown], np.int32(0))[at]

    def to_dict(self) -> dict:
        return {"name": self.name, "values": list(self.values), "codes": list(self.codes), "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, state: dict) -> "TargetEncoder":
        return cls(state["name"], tuple(state["values"]), tuple(state["codes"]), tuple(state["labels"]))


def _text(column: pd.Series) -> pd.Series:
    return as_text(column).fillna(MISSING_VALUE)
