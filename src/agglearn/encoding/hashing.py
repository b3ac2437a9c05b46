"""Hashing: a feature of any number of values becomes a fixed number of modalities, without a vocabulary.

Weinberger, Dasgupta, Langford, Smola, Attenberg 2009, *Feature hashing for large scale multitask learning*; used in
Gilotte et al. 2022, section 4.3.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.encoding.encoder import MISSING, UNSEEN, as_text, distinct
from agglearn.errors import ConfigError


@dataclass(frozen=True)
class HashedEncoder:
    """Values of one feature by the bucket of their hash; a missing value, if training had any, comes last.

    The hash (64 bits of BLAKE2b of the value's spelling in UTF-8, little-endian, modulo `buckets`) is the same on every
    machine and in every run. No value is unseen, except a missing one where training had none.
    """

    name: str
    buckets: int
    has_missing: bool = False

    def __post_init__(self):
        if not isinstance(self.buckets, int) or not 1 <= self.buckets < 1 << 31:
            raise ConfigError(f"hashing {self.name!r}: buckets must be a whole number from 1 on, got {self.buckets!r}")

    @classmethod
    def fit(cls, column: pd.Series, buckets: int) -> "HashedEncoder":
        return cls(str(column.name), buckets, bool(column.isna().any()))

    @property
    def size(self) -> int:
        return self.buckets + self.has_missing

    @property
    def labels(self) -> list[str]:
        """Name of each modality."""
        return [*(f"#{b}" for b in range(self.buckets)), *([MISSING] if self.has_missing else [])]

    def encode(self, column: pd.Series) -> np.ndarray:
        at, values = distinct(column)
        missing = np.int32(self.buckets if self.has_missing else UNSEEN)
        return np.append(buckets_of(as_text(values), self.buckets), missing)[at]

    def to_dict(self) -> dict:
        return {"name": self.name, "buckets": self.buckets, "has_missing": self.has_missing}


def buckets_of(values: Iterable[str], buckets: int) -> np.ndarray:
    """(n,) int32 bucket of each text."""
    hashes = (int.from_bytes(hashlib.blake2b(v.encode(), digest_size=8).digest(), "little") for v in values)
    return np.array([h % buckets for h in hashes], dtype=np.int32)
