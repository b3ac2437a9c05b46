"""Two releases from disjoint random halves of the records. A coin of its own puts each record in one of them, so both
together have the ε of one (parallel composition). Halves of a fixed size would not: one record more moves others.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from agglearn.errors import DataError
from agglearn.observations.base import NoiseSpec, Observation, map_scales
from agglearn.observations.counting import within_memory
from agglearn.observations.label_sums import LabelSums
from agglearn.observations.tables import ContingencyTables, Pairs, check_pairs, encode_records
from agglearn.privacy.mechanisms import draw_private
from agglearn.seeds import RandomState, draw_generator

Half = ContingencyTables | LabelSums


@dataclass(frozen=True, eq=False)
class Halves(Observation):
    """The same aggregate of two halves of the records, over the same features, with the same noise.

    Parameters
    ----------
    first, second : ContingencyTables or LabelSums
    """

    first: Half
    second: Half

    def __post_init__(self) -> None:
        if type(self.first) is not type(self.second) or not isinstance(self.first, Half):
            kinds = f"{type(self.first).__name__} and {type(self.second).__name__}"
            raise DataError(f"halves: must be two of one kind, ContingencyTables or LabelSums, not {kinds}")
        halves = (self.first, self.second)
        if any(getattr(h, "n_records", None) is not None for h in halves):
            raise DataError("halves: with features of a sample; give features of all records")
        noises = [h.noise and replace(h.noise, scale=0.0, scales=None) for h in halves]
        if noises[0] != noises[1] and any(n is None or n.private for n in noises):  # scales follow each half's features
            raise DataError("halves: with other noise; release both at once (Halves.private)")
        over = [(h.names, getattr(h, "encoder", None), set(getattr(h, "tables", ()))) for h in halves]
        if over[0] != over[1]:  # label sums have names alone
            raise DataError(
                "halves: of other features, values or pairs, or in another order; make them with one encoder"
            )

    @classmethod
    def from_records(
        cls, frame: pd.DataFrame, label: str | None = None, features: Iterable[str] | None = None, pairs: Pairs = "all",
        *, random_state: RandomState = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Tables of two random halves of records over one encoder, as by `ContingencyTables.from_records`.

        `random_state` seeds the coins. None takes the system's randomness: a private release refuses any other.
        """
        before = functools.partial(check_pairs, pairs, within_memory)
        encoder, x, y, label, rows = encode_records(frame, label, features, before=before, **options)
        codes, y = encoder.encode(x[counted := rows.counted()]), y[counted]
        first = toss_coins(len(y), draw_generator(random_state))
        halves = (ContingencyTables.from_codes(encoder, codes[p], y[p], label, pairs) for p in (first, ~first))
        return cls(*(replace(half, seeded_coins=random_state is not None, unit=rows.unit) for half in halves))

    def private(self, epsilon: float, delta: float | None = None, **options: Any) -> Self:
        """Both halves with noise that OpenDP draws. Together they guarantee (ε, δ)-differential privacy.

        Parameters
        ----------
        epsilon, delta, **options
            As in `ContingencyTables.private`.
        """
        release = functools.partial(
            type(self.first).private, epsilon=epsilon, delta=delta, draw=draw_private, **options
        )
        return type(self)(release(self.first), release(self.second))

    @property
    def noise(self) -> NoiseSpec | None:
        return self.first.noise

    @property
    def combined(self) -> Half:
        """Both halves added up. Noise adds up too."""
        if isinstance(self.first, ContingencyTables) and isinstance(self.second, ContingencyTables):
            return add_tables(self.first, self.second)
        return add_sums(self.first, self.second)  # type: ignore[arg-type]  # both are of one kind


def toss_coins(n: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) whether each record goes to the first half: independent fair coins."""
    return rng.random(n) < 0.5


def add_tables(a: ContingencyTables, b: ContingencyTables) -> ContingencyTables:
    tables, noise = {key: table + b.tables[key] for key, table in a.tables.items()}, _double(a.noise)
    total, positives = a.total + b.total, a.positives + b.positives
    return replace(a, total=total, positives=positives, tables=tables, noise=noise, seeded_coins=False)


def add_sums(a: LabelSums, b: LabelSums) -> LabelSums:
    frame, weights = pd.concat([a.frame, b.frame], ignore_index=True), None
    if a.weights is not None or b.weights is not None:
        weights = np.concatenate([np.ones(len(s.frame)) if s.weights is None else s.weights for s in (a, b)])
    return replace(a, frame=frame, weights=weights, sums=a.sums + b.sums, noise=_double(a.noise))


def _double(noise: NoiseSpec | None) -> NoiseSpec | None:
    """The noise of a sum of two independent draws: the same guarantee, √2 times the scale."""
    return noise and map_scales(noise, lambda scale: math.sqrt(2) * scale)
