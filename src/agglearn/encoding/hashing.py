"""Hashing of values into a fixed number of modalities (Weinberger et al. 2009, Gilotte et al. 2022, section 4.3)."""

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from agglearn.encoding.columns import is_missing
from agglearn.encoding.levels import Levels
from agglearn.errors import ConfigError


@dataclass(frozen=True)
class HashedEncoder(Levels):
    """Values of one feature by the bucket of their hash, then a missing value, if training had any.

    The hash is 64 bits of BLAKE2b of the spelling in UTF-8, little-endian, modulo `buckets`: the same on every machine.
    No value is unseen, except a missing one where training had none: it is `other`, if declared.

    Parameters
    ----------
    name, buckets, has_missing, has_other : str, int, bool, bool
    """

    name: str
    buckets: int
    has_missing: bool = False
    has_other: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.buckets, int) or not 1 <= self.buckets < 1 << 31:
            raise ConfigError(f"hashing {self.name!r}: buckets must be a whole number from 1 on, got {self.buckets!r}")

    @classmethod
    def fit(cls, column: pd.Series, buckets: int) -> Self:
        return cls(str(column.name), buckets, bool(is_missing(column).any()))

    @property
    def _n_values(self) -> int:
        return self.buckets

    @property
    def _value_labels(self) -> list[str]:
        return [f"#{b}" for b in range(self.buckets)]

    def _codes(self, texts: pd.Series) -> np.ndarray:
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        digests = (hashlib.blake2b(text, digest_size=8).digest() for text in encoded)
        return np.array([int.from_bytes(digest, "little") % self.buckets for digest in digests], dtype=np.int32)
