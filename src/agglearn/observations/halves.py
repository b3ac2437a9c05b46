"""Two releases from disjoint random halves of the records: what a model is chosen by, where no record may be seen.

A record is in one half only, and which one depends on nothing but a coin of its own. So both together promise the ε of one
(parallel composition). Halves of a fixed size would not: one record more moves others from half to half.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from agglearn.errors import DataError
from agglearn.observations.base import NoiseSpec, Observation, prepared, reading
from agglearn.observations.label_sums import LabelSums
from agglearn.observations.table import Table
from agglearn.observations.tables import ContingencyTables, encoded
from agglearn.privacy.mechanisms import secret
from agglearn.seeds import draw_generator
from agglearn.storage import read_json, write_json

KINDS = {"ContingencyTables": ContingencyTables, "LabelSums": LabelSums}


@dataclass(frozen=True, eq=False)
class Halves(Observation):
    """The same aggregate of two halves of the records, over the same encoder.

    Attributes
    ----------
    first, second : ContingencyTables or LabelSums, both of one kind.
    """

    first: Observation
    second: Observation

    def __post_init__(self):
        kinds = type(self.first).__name__, type(self.second).__name__
        if kinds[0] != kinds[1] or kinds[0] not in KINDS:
            raise DataError(f"halves: must be two of one kind, {' or '.join(KINDS)}, not {' and '.join(kinds)}")
        if self.first.names != self.second.names:
            raise DataError("halves: of other features, or in another order; make them with one encoder")

    @classmethod
    def from_records(cls, frame, label=None, features=None, pairs="all", *, random_state=None, **how) -> Self:
        """Tables of two random halves of records, each record in one by a coin of its own.

        Parameters
        ----------
        frame, label, features, pairs, how : as in `ContingencyTables.from_records`; one encoder serves both halves.
        random_state : seed of the coins; None for the system's randomness, as a private release needs.
        """
        encoder, x, y, label = encoded(frame, label, features, **how)
        codes, first = encoder.encode(x), coins(len(y), draw_generator(random_state))
        parts = (ContingencyTables.from_codes(encoder, codes[p], y[p], label, pairs) for p in (first, ~first))
        return cls(*parts)

    def private(self, epsilon: float, delta: float | None = None, **how) -> Self:
        """Both halves with noise that OpenDP draws and that promises (ε, δ) for both together; see `release_tables`."""
        return Halves(*(half.private(epsilon, delta, draw=secret, **how) for half in (self.first, self.second)))

    @property
    def noise(self) -> NoiseSpec | None:
        return self.first.noise

    @property
    def whole(self) -> Observation:
        """Both halves added up; noise adds up too."""
        return (added_tables if isinstance(self.first, ContingencyTables) else added_sums)(self.first, self.second)

    def save(self, folder) -> None:
        folder = prepared(folder)
        self.first.save(folder / "first")
        self.second.save(folder / "second")
        write_json(folder / "halves.json", {"of": type(self.first).__name__})

    @classmethod
    def load(cls, folder) -> Self:
        folder = Path(folder)
        with reading(folder, "halves"):
            kind = KINDS[read_json(folder / "halves.json")["of"]]
            return cls(kind.load(folder / "first"), kind.load(folder / "second"))

    def _fingerprint(self, hasher) -> None:
        self.first._fingerprint(hasher)
        self.second._fingerprint(hasher)


def coins(n: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) whether each record goes to the first half: independent fair coins."""
    return rng.random(n) < 0.5


def added_tables(a: ContingencyTables, b: ContingencyTables) -> ContingencyTables:
    """Tables of the records of both."""
    tables = {}
    for key, t in a.tables.items():
        cells, inverse = np.unique(np.concatenate([t.cells, b.tables[key].cells]), return_inverse=True)
        parts = [(t.counts, b.tables[key].counts), (t.label_sums, b.tables[key].label_sums)]
        sums = [np.bincount(inverse, np.concatenate(p), len(cells)).astype(p[0].dtype) for p in parts]
        tables[key] = Table(t.shape, cells, *sums)
    total, positives = a.total + b.total, a.positives + b.positives
    return replace(a, total=total, positives=positives, tables=tables, noise=_added(a.noise))


def added_sums(a: LabelSums, b: LabelSums) -> LabelSums:
    """Label sums over the records of both."""
    frame = pd.concat([a.frame, b.frame], ignore_index=True)
    return replace(a, frame=frame, sums=a.sums + b.sums, noise=_added(a.noise))


def _added(noise: NoiseSpec | None) -> NoiseSpec | None:
    """Of two independent draws: the same promise, √2 times the scale."""
    if noise is None:
        return None
    root = math.sqrt(2)
    scales = noise.scales and {k: root * s for k, s in noise.scales.items()}
    return replace(noise, scale=root * noise.scale, scales=scales)
