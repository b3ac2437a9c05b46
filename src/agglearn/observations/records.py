"""Records with their labels, for skylines and oracles. Methods for aggregated data refuse them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from agglearn.encoding import FrameEncoder
from agglearn.encoding.columns import as_frame
from agglearn.encoding.labels import check_labels
from agglearn.observations.base import Observation
from agglearn.observations.tables import encode_records


@dataclass(frozen=True)
class Records(Observation):
    """Individual records.

    Parameters
    ----------
    encoder, frame, y : FrameEncoder, DataFrame, ndarray of shape (n,)
        The modalities that tables of these records have, (n,) rows of raw features, and int8 labels in {0, 1}.
    label, cross_buckets : str, int or None
        Its name, and the buckets of crosses with more cells than these. None for no hashing.
    """

    encoder: FrameEncoder
    frame: pd.DataFrame
    y: np.ndarray
    label: str = "label"
    cross_buckets: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame, self.encoder.names))
        check_labels(self.y, len(self.frame))

    @classmethod
    def from_records(
        cls, frame: pd.DataFrame, label: str | None = None, features: Iterable[str] | None = None, **options: Any
    ) -> Self:
        """Records from raw columns, with the `options` of `ContingencyTables.from_records` but for tables."""
        encoder, x, y, label, rows = encode_records(frame, label, features, **options)
        return cls(encoder, x[counted := rows.counted()].reset_index(drop=True), y[counted], label)

    @property
    def codes(self) -> np.ndarray:
        """(n, D) int32 codes of the features."""
        return self.encoder.encode(self.frame)

    def select(self, names: Iterable[str]) -> Self:
        """The same records with some features only, in the encoder's order.

        Parameters
        ----------
        names : Iterable[str]
        """
        requested = set(map(str, names))
        names = [n for n in self.encoder.names if n in requested]
        return replace(self, encoder=self.encoder.select(names), frame=self.frame[names])
