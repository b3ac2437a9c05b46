"""Bags of records with public features, and the number of records with label 1 in each bag."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.encoding.labels import check_labels
from agglearn.errors import DataError
from agglearn.observations.bags import Bags, check_released
from agglearn.observations.base import NoiseSpec, Observation
from agglearn.observations.disclosure import describe_learned, public_features
from agglearn.observations.units import Unit, rows_of


@dataclass(frozen=True, eq=False)
class CountedBags(Observation):
    """Raw features of records, bag after bag, and the labels counted per bag.

    Parameters
    ----------
    encoder, frame : FrameEncoder, DataFrame
        Modalities, and (n,) rows of raw features, in any order. Other columns are left out.
    rows, offsets : ndarray of shape (n,), ndarray of shape (B + 1,)
        Bag b holds rows[offsets[b]:offsets[b + 1]] of the frame. A record is in one bag at most.
    counts, noise : ndarray of shape (B, 2), NoiseSpec or None
        Records with label 0 and 1, which add up to the sizes, and how noise was added to them.
    unit : Unit
        Whose labels these are, all of which a release protects. By default each is a person's only one.
    released : ndarray of shape (B,) or None
        As in `Bags`.
    """

    encoder: FrameEncoder
    frame: pd.DataFrame
    rows: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray
    noise: NoiseSpec | None = None
    unit: Unit = field(default_factory=Unit)
    released: np.ndarray | None = None
    weights: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", public_features(self.frame, self.encoder.names))
        if len(self.counts) != len(self.offsets) - 1 or self.offsets[0] != 0 or self.offsets[-1] != len(self.rows):
            raise DataError(f"{len(self.counts)} counts and {len(self.rows)} rows for offsets {self.offsets[:1]} …")
        used = np.bincount(self.rows, minlength=len(self.frame)) if np.min(self.rows, initial=0) >= 0 else np.array([2])
        if len(used) > len(self.frame) or used.max(initial=0) > 1:
            raise DataError(f"rows: each must be one of the {len(self.frame)} records, and in one bag")
        if (self.counts < 0).any() or (np.sum(self.counts, axis=1) != self.sizes).any():
            raise DataError("counts: must be numbers of records from 0 on, and add up to the size of their bag")
        if self.released is not None:
            object.__setattr__(self, "released", check_released(self.released, self.noise, self.counts))

    @classmethod
    def from_records(
        cls, encoder: FrameEncoder, frame: pd.DataFrame, y: np.ndarray, size: int, rng: np.random.Generator,
        unit: pd.Series | None = None, max_rows: int | None = None,
    ) -> Self:  # fmt: skip
        """Random bags of `size` records with labels y (n,) in {0, 1}. Those that do not fill a bag are left out.

        `unit`: whose each record is (n,), of which `max_rows` count. Others are left out before.
        """
        label, n = getattr(y, "name", None), len(frame)
        counted, whose = rows_of(unit, max_rows, n, label or "label", encoder.names)
        frame, y = public_features(frame, encoder.names, label)[counted], check_labels(y, n)[counted]
        n = len(frame) // size * size if size >= 1 else 0
        if n == 0:
            raise DataError(f"bag_size: must be between 1 and the {len(frame)} records, got {size}")
        rows = rng.permutation(len(frame))[:n]
        positives = y[rows].reshape(-1, size).sum(axis=1).astype(np.int64)
        counts = np.column_stack([size - positives, positives])
        return cls(encoder, frame, rows, np.arange(0, n + 1, size), counts, unit=whose)

    @property
    def exact_facts(self) -> str:
        return describe_learned(self.encoder, features_public=True)

    @property
    def sizes(self) -> np.ndarray:
        """(B,) records per bag."""
        return np.diff(self.offsets)

    def bags(self) -> Bags:
        """The same bags with one coordinate per modality, for learners of bags."""
        x = coordinates(self.encoder, self.frame)[self.rows]
        return Bags(x, self.offsets, self.counts, noise=self.noise, released=self.released)


def coordinates(encoder: FrameEncoder, frame: pd.DataFrame) -> np.ndarray:
    return FeatureMap("onehot", encoder, intercept=False).matrix(frame).astype(np.float32).toarray()
