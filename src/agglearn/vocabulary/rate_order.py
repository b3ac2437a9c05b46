"""The values of one feature by label rate. Optimal clusters are neighbours (Kurkoski and Yagi 2014, lemma 3)."""

import functools
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numba
import numpy as np

from agglearn.errors import DataError
from agglearn.progress import track
from agglearn.vocabulary import kernels
from agglearn.vocabulary.shrinkage import shrink_sums

Counts = tuple[np.ndarray, np.ndarray]  # of values or clusters: records, and records with label 1
Result = TypeVar("Result")


@dataclass(frozen=True)
class Ranking:
    """One feature. Its units are values, and last all values of fewer records than `min_count` together."""

    name: str
    units: np.ndarray  # (V,) unit of each value, −1 for values without records
    counts: np.ndarray  # (U,) records of each unit
    label_sums: np.ndarray  # (U,) those with label 1
    ranks: np.ndarray  # (U,) rank of each unit among the n distinct rates, ascending
    N: np.ndarray  # (n + 1,) prefix sums of records over ranks
    C: np.ndarray  # (n + 1,) those of label sums
    pooled: bool  # whether the last unit has the rare values

    @property
    def n_units(self) -> int:
        return len(self.counts)

    @property
    def n_ranks(self) -> int:
        return len(self.N) - 1

    @property
    def base_rate(self) -> float:
        return self.C[-1] / self.N[-1]

    @functools.cached_property
    def S(self) -> np.ndarray:
        """(n + 1,) prefix sums of the information of single ranks, in nats × records."""
        return kernels.single_information(self.N, self.C, self.base_rate)

    @property
    def total_information(self) -> float:
        return self.S[-1] / self.N[-1]

    def labels(self, cuts: np.ndarray) -> np.ndarray:
        """Return the (U,) int32 cluster of each unit: 0 is the cluster of the lowest label rates."""
        cluster = np.zeros(self.n_ranks, np.int32)
        cluster[cuts] = 1
        return np.cumsum(cluster, dtype=np.int32)[self.ranks]

    def borders(self, labels: np.ndarray) -> np.ndarray:
        """Return (k − 1,) rates half-way between neighbouring clusters, for the clusters (U,) of units."""
        cluster, rates = np.empty(self.n_ranks, np.int32), np.diff(self.C) / np.diff(self.N)
        cluster[self.ranks] = labels
        cuts = np.flatnonzero(np.diff(cluster)) + 1
        return (rates[cuts - 1] + rates[cuts]) / 2

    @classmethod
    def from_counts(
        cls, name: str, counts: np.ndarray, sums: np.ndarray, min_count: float = 0, shrinkage: str | float | None = None
    ) -> Self:
        units, counts, sums, pooled = pool_rare(counts, sums, min_count)
        ranked = sums if shrinkage is None else shrink_sums(counts, sums, shrinkage)
        return cls(name, units, counts, sums, *rank_rates(counts, ranked), pooled)


def rank_rates(counts: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `ranks`, `N` and `C` of a `Ranking`. Pairs of count and label sum are sorted, since they are few."""
    keys, times = kernels.pair_keys(counts, sums)
    pairs, large = np.flatnonzero(times), np.flatnonzero(keys < 0)
    n = np.floor((np.sqrt(8.0 * pairs + 1) - 1) / 2)
    c = pairs - n * (n + 1) / 2
    rates, rank = np.unique(np.concatenate([c / n, sums[large] / counts[large]]), return_inverse=True)
    rank_of_pair = np.zeros(len(times), np.int32)
    rank_of_pair[pairs] = rank[: len(pairs)]
    ranks = rank_of_pair[keys]
    ranks[large] = rank[len(pairs) :]
    N, C = (
        np.append(0.0, np.cumsum(np.bincount(rank, np.concatenate([v * times[pairs], w[large]]), len(rates))))
        for v, w in ((n, counts), (c, sums))
    )
    return ranks, N, C


def pool_rare(
    counts: np.ndarray, sums: np.ndarray, min_count: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    rare = (counts > 0) & (counts < min_count)
    frequent = (counts > 0) & ~rare
    others = np.where(rare, frequent.sum(), -1)
    units = np.where(frequent, np.cumsum(frequent, dtype=np.int32) - 1, others).astype(np.int32, copy=False)
    if not rare.any():
        return units, counts[frequent], sums[frequent], False
    return units, np.append(counts[frequent], counts[rare].sum()), np.append(sums[frequent], sums[rare].sum()), True


def validate_counts(name: str, counts: object, label_sums: object, noisy: bool) -> Counts:
    """Return counts and label sums as float64. Noisy ones are clipped to 0 ≤ label sum ≤ count, with a warning."""
    label = f"feature {name!r}"
    try:
        n, c = np.asarray(counts, dtype=np.float64), np.asarray(label_sums, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{label}: counts and label sums must be numbers") from None
    if n.ndim != 1 or n.shape != c.shape:
        raise DataError(f"{label}: {n.shape} counts and {c.shape} label sums; one of each per value is needed")
    if not (np.isfinite(n).all() and np.isfinite(c).all()):
        i = int(np.argmin(np.isfinite(n) & np.isfinite(c)))
        raise DataError(f"{label}: value {i} has count {n[i]:g} and label sum {c[i]:g}; leave it out or correct it")
    wrong = (n < 0) | (c < 0) | (c > n)
    if noisy:
        if wrong.any():
            warnings.warn(
                f"{label}: {int(wrong.sum())} of {len(n)} noisy values clipped to 0 ≤ label sum ≤ count", stacklevel=4
            )
            n, c = np.maximum(n, 0), np.clip(c, 0, np.maximum(n, 0))
    else:
        fractional = (n != np.floor(n)) | (c != np.floor(c))
        for bad, requirement in ((wrong, "needs 0 ≤ label sum ≤ count"), (fractional, "needs whole numbers")):
            if bad.any():
                i = int(np.argmax(bad))
                raise DataError(
                    f"{label}: value {i} {requirement}, it has count {n[i]:g} and label sum {c[i]:g} "
                    f"({int(bad.sum())} such values); correct them, or set noisy=True"
                )
    if not n.sum():
        raise DataError(f"{label}: the vocabulary is empty; there is nothing to compress")
    if not 0 < c.sum() < n.sum():
        raise DataError(f"{label}: all {n.sum():g} records have the same label; two labels are needed")
    return n, c


def in_threads(function: Callable[..., Result], *items: Iterable[Any]) -> list[Result]:
    with ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS) as pool:  # type: ignore[attr-defined]
        return list(track(pool.map(function, *items), "features"))
