"""The values of one feature as quantisers see them: ranked by label rate, equal rates merged.

An optimal cluster holds values that are neighbours in that order (Kurkoski and Yagi 2014, lemma 3), and values of equal
rates together: parting them gains nothing. So n distinct rates stand for any number of values.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba
import numpy as np

from agglearn.errors import DataError
from agglearn.vocabulary import kernels
from agglearn.vocabulary.shrinkage import shrunk_sums


@dataclass(frozen=True)
class Ranking:
    """One feature.

    Attributes
    ----------
    name : of the feature.
    units : (V,) int32 unit of each value, −1 for values without records. A unit is what is clustered: a value, or all
        values of fewer records than `min_count` together, which then come last.
    counts, label_sums : (U,) float64 records, and records with label 1, of each unit.
    places : (U,) int32 place of each unit among the n distinct rates, ascending.
    N, C : (n + 1,) float64 prefix sums of records and label sums over places.
    pooled : whether the last unit holds rare values.
    """

    name: str
    units: np.ndarray
    counts: np.ndarray
    label_sums: np.ndarray
    places: np.ndarray
    N: np.ndarray
    C: np.ndarray
    pooled: bool

    @property
    def n_units(self) -> int:
        return len(self.counts)

    @property
    def n_places(self) -> int:
        return len(self.N) - 1

    @property
    def base_rate(self) -> float:
        return self.C[-1] / self.N[-1]

    @property
    def total_information(self) -> float:
        """I(X; C) in nats, of the rates that are ranked."""
        return kernels.single_information(self.N, self.C, self.base_rate)[-1] / self.N[-1]

    def labels(self, cuts: np.ndarray) -> np.ndarray:
        """(U,) int32 cluster of each unit: 0 is the cluster of the lowest label rates."""
        cluster = np.zeros(self.n_places, np.int32)
        cluster[cuts] = 1
        return np.cumsum(cluster, dtype=np.int32)[self.places]

    def borders(self, labels: np.ndarray) -> np.ndarray:
        """(k − 1,) rates half-way between neighbouring clusters, for the clusters (U,) of units."""
        cluster, rates = np.empty(self.n_places, np.int32), np.diff(self.C) / np.diff(self.N)
        cluster[self.places] = labels
        cuts = np.flatnonzero(np.diff(cluster)) + 1
        return (rates[cuts - 1] + rates[cuts]) / 2

    @classmethod
    def of(cls, name: str, counts, label_sums, min_count: float = 0, shrinkage=None) -> "Ranking":
        """Rank one feature; see `Quantizer` for the parameters."""
        units, counts, sums, pooled = _units(counts, label_sums, min_count)
        ranked = sums if shrinkage is None else shrunk_sums(counts, sums, shrinkage)
        places, N, C = ranks(counts, ranked)
        return cls(name, units, counts, sums, places, N, C, pooled)


def ranks(counts: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places by ascending rate, equal rates at one place, and prefix sums over places; see `Ranking`.

    Most values have few records, hence one of few pairs of count and label sum: pairs are sorted, not values.
    """
    keys, times = kernels.pair_keys(counts, sums)
    pairs, large = np.flatnonzero(times), np.flatnonzero(keys < 0)
    n = np.floor((np.sqrt(8.0 * pairs + 1) - 1) / 2)
    c = pairs - n * (n + 1) / 2
    rates, at = np.unique(np.concatenate([c / n, sums[large] / counts[large]]), return_inverse=True)
    place_of = np.zeros(len(times), np.int32)
    place_of[pairs] = at[: len(pairs)]
    places = place_of[keys]
    places[large] = at[len(pairs) :]
    added = [np.concatenate([v * times[pairs], w[large]]) for v, w in ((n, counts), (c, sums))]
    return places, *(np.append(0.0, np.cumsum(np.bincount(at, v, len(rates)))) for v in added)


def _units(counts, sums, min_count) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Values of fewer than `min_count` records become one unit, values without records none."""
    if counts.min() >= max(min_count, np.nextafter(0, 1)):
        return np.arange(len(counts), dtype=np.int32), counts, sums, False
    rare = (counts > 0) & (counts < min_count)
    kept = (counts > 0) & ~rare
    if not rare.any():
        units = np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, -1).astype(np.int32, copy=False)
        return units, counts[kept], sums[kept], False
    units = np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, np.where(rare, kept.sum(), -1)).astype(np.int32)
    return units, np.append(counts[kept], counts[rare].sum()), np.append(sums[kept], sums[rare].sum()), True


def checked(name: str, counts, label_sums, noisy: bool) -> tuple[np.ndarray, np.ndarray]:
    """Counts and label sums of one feature as float64; DataError says what is wrong with them, and where.

    Noisy ones are clipped to 0 ≤ label sum ≤ count, with a warning that says how many.
    """
    where = f"feature {name!r}"
    try:
        n, c = np.asarray(counts, dtype=np.float64), np.asarray(label_sums, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where}: counts and label sums must be numbers") from None
    if n.ndim != 1 or n.shape != c.shape:
        raise DataError(f"{where}: {n.shape} counts and {c.shape} label sums; one of each per value is needed")
    if not (np.isfinite(n).all() and np.isfinite(c).all()):
        at = int(np.argmin(np.isfinite(n) & np.isfinite(c)))
        raise DataError(f"{where}: value {at} has count {n[at]:g} and label sum {c[at]:g}; leave it out, or mend it")
    wrong = (n < 0) | (c < 0) | (c > n)
    if noisy:
        if wrong.any():
            warnings.warn(
                f"{where}: {int(wrong.sum())} of {len(n)} noisy values clipped to 0 ≤ label sum ≤ count", stacklevel=4
            )
            n = np.maximum(n, 0)
            c = np.clip(c, 0, n)
    else:
        fractional = (n != np.floor(n)) | (c != np.floor(c))
        for bad, what in ((wrong, "needs 0 ≤ label sum ≤ count"), (fractional, "needs whole numbers")):
            if bad.any():
                at = int(np.argmax(bad))
                raise DataError(
                    f"{where}: value {at} {what}, it has count {n[at]:g} and label sum {c[at]:g} "
                    f"({int(bad.sum())} such values); mend them, or say that they are noisy (noisy=True)"
                )
    if not n.sum():
        raise DataError(f"{where}: the vocabulary is empty; there is nothing to compress")
    if not 0 < c.sum() < n.sum():
        raise DataError(f"{where}: all {n.sum():g} records have the same label; nothing tells values apart")
    return n, c


def in_threads(work, *items) -> list:
    """`work` for each of the items, side by side where it lets go of the interpreter's lock; results in order."""
    threads = numba.config.NUMBA_NUM_THREADS
    if threads == 1:
        return list(map(work, *items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, *items))
