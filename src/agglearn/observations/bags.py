"""Bags of instances with what is known of each bag: how many instances have each label, or a target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np

from agglearn.encoding.labels import check_labels
from agglearn.errors import DataError
from agglearn.observations.base import NoiseSpec, Observation, prepared, reading
from agglearn.products import read_json, write_json

SHOWN = 10  # names listed in an error
CHUNK = 1 << 17  # rows checked at a time


@dataclass(frozen=True, eq=False)
class Bags(Observation):
    """Covariates of instances, in bags, and per bag the count of every label or a target; no label of an instance.

    Attributes
    ----------
    X : (n, d) covariates, bag after bag, floating point.
    offsets : (B + 1,) bag b holds rows offsets[b] to offsets[b + 1] − 1.
    counts : (B, C) instances of each class, adding up to the bag's size (to its weight, where there are weights);
        (B,) numbers of positives are taken as (size − positives, positives). None where there is a target.
    weights : (n,) weight of each instance, or None for 1. An instance of weight 0 counts for nothing.
    target : (B,) or (B, k) target of a bag, or None.
    names, bag_names : of columns and bags, for messages; by default their numbers.
    noise : how noise was added to the counts, or None.
    """

    X: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None
    target: np.ndarray | None = None
    names: tuple[str, ...] = field(default=())
    bag_names: tuple[str, ...] = field(default=())
    noise: NoiseSpec | None = None

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        x = np.ascontiguousarray(self.X)
        put("X", x if np.issubdtype(x.dtype, np.floating) else x.astype(float))
        put("offsets", np.asarray(self.offsets, dtype=np.int64))
        put("names", tuple(map(str, self.names)))
        put("bag_names", tuple(map(str, self.bag_names)))
        self._check_instances()
        if self.weights is not None:
            put("weights", np.asarray(self.weights, dtype=float))
            self._check_weights()
        if self.counts is not None:
            put("counts", self._whole_counts(np.asarray(self.counts)))
        if self.target is not None:
            put("target", np.asarray(self.target))
            self._check_target()

    # -- making -------------------------------------------------------------------------------------------------

    @classmethod
    def from_groups(cls, X, bags: Sequence, counts: Mapping, *, weights=None, names=()) -> Self:
        """Bags from the bag that each instance belongs to.

        Parameters
        ----------
        X : (n, d) covariates in any order.
        bags : (n,) which bag each instance is in.
        counts : bag → number of positives, or → count of every class. Gives the order of the bags.

        Raises
        ------
        DataError : bags without counts, or counts without instances (they are listed).
        """
        bags, keys = np.asarray(bags), list(counts)
        place = {k: i for i, k in enumerate(keys)}
        without = [b for b in dict.fromkeys(bags.tolist()) if b not in place]
        if without:
            raise DataError(f"bags without counts: {_listed(without)}; add their counts or leave their instances out")
        at = np.array([place[b] for b in bags.tolist()], dtype=np.int64)
        sizes = np.bincount(at, minlength=len(keys))
        if empty := [keys[i] for i in np.flatnonzero(sizes == 0)]:
            raise DataError(f"counts without instances: {_listed(empty)}; leave these bags out")
        order = np.argsort(at, kind="stable")
        return cls(
            np.asarray(X)[order],
            np.append(0, np.cumsum(sizes)),
            np.array([counts[k] for k in keys]),
            None if weights is None else np.asarray(weights)[order],
            names=tuple(names),
            bag_names=tuple(map(str, keys)),
        )

    # -- using --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """(B,) instances per bag."""
        return np.diff(self.offsets)

    @property
    def bag_of(self) -> np.ndarray:
        """(n,) the bag of each instance."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def take(self, which) -> Self:
        """Some of the bags, by number, in the order given."""
        which = np.asarray(which, dtype=np.int64)
        starts, sizes = self.offsets[which], self.sizes[which]
        offsets = np.append(0, np.cumsum(sizes))
        rows = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        if len(which) and (which == np.arange(len(which))).all():
            rows = slice(0, offsets[-1])  # a view
        part = lambda a, r: None if a is None else a[r]  # noqa: E731
        return replace(
            self,
            X=self.X[rows],
            offsets=offsets,
            counts=part(self.counts, which),
            weights=part(self.weights, rows),
            target=part(self.target, which),
            bag_names=tuple(self.bag_names[b] for b in which) if self.bag_names else (),
        )

    def persons(self) -> Self:
        """The bags without instances of weight 0, for methods that need whole instances.

        Raises
        ------
        DataError : weights other than 0 and 1, or counts that are not whole.
        """
        if self.counts is not None and (self.counts != np.round(self.counts)).any():
            b = int(np.flatnonzero((self.counts != np.round(self.counts)).any(axis=1))[0])
            raise DataError(f"bag {self._bag(b)}: counts are not whole; this method needs counts of instances")
        if self.weights is None:
            return self
        if not np.isin(self.weights, (0, 1)).all():
            raise DataError("weights other than 0 and 1: this method needs whole instances; draw them by weight first")
        kept = self.weights > 0
        sizes = np.bincount(self.bag_of[kept], minlength=len(self))
        return replace(self, X=self.X[kept], offsets=np.append(0, np.cumsum(sizes)), weights=None)

    # -- checking -----------------------------------------------------------------------------------------------

    def _bag(self, b: int) -> str:
        return repr(self.bag_names[b]) if self.bag_names else str(b)

    def _check_instances(self) -> None:
        x, offsets = self.X, self.offsets
        if x.ndim != 2:
            raise DataError(f"X: must be (instances, covariates), got shape {x.shape}")
        if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(x):
            raise DataError(f"offsets: must go from 0 to the {len(x)} instances, got {offsets[:1]} … {offsets[-1:]}")
        if (np.diff(offsets) < 1).any():
            empty = [self._bag(b) for b in np.flatnonzero(np.diff(offsets) < 1)]
            raise DataError(f"empty bags: {_listed(empty)}; leave them out")
        for values, what in ((self.names, x.shape[1]), (self.bag_names, len(self))):
            if values and len(values) != what:
                raise DataError(f"{len(values)} names for {what} columns or bags")
        for start in range(0, len(x), CHUNK):  # x may be larger than memory
            wrong = np.argwhere(~np.isfinite(x[start : start + CHUNK]))
            if not len(wrong):
                continue
            i, j = wrong[0] + [start, 0]
            column = repr(self.names[j]) if self.names else j
            b = int(np.searchsorted(offsets, i, side="right") - 1)
            raise DataError(f"X: column {column} is not a number in bag {self._bag(b)} (row {i}); fill or drop it")

    def _check_weights(self) -> None:
        if self.weights.shape != (len(self.X),):
            raise DataError(f"weights: must be ({len(self.X)},), got {self.weights.shape}")
        if not (self.weights >= 0).all():
            raise DataError("weights: must be numbers ≥ 0")

    def _whole_counts(self, counts: np.ndarray) -> np.ndarray:
        weighed = self.weights is not None
        sizes = np.add.reduceat(self.weights, self.offsets[:-1]) if weighed else self.sizes
        if len(counts) != len(self) or counts.ndim not in (1, 2):
            raise DataError(f"counts: must have one row for each of the {len(self)} bags, got shape {counts.shape}")
        if not np.issubdtype(counts.dtype, np.number) or not np.isfinite(counts.astype(float)).all():
            raise DataError("counts: must be numbers")
        if counts.ndim == 1:
            if (bad := np.flatnonzero((counts < 0) | (counts > sizes))).size:
                b = bad[0]
                raise DataError(f"bag {self._bag(b)}: {counts[b]} positives among {sizes[b]} instances")
            counts = np.column_stack([sizes - counts, counts])
        if (bad := np.flatnonzero((counts < 0).any(axis=1))).size:
            raise DataError(f"bag {self._bag(bad[0])}: negative count, {counts[bad[0]].tolist()}")
        gap = abs(counts.sum(axis=1) - sizes)
        if (bad := np.flatnonzero(gap > (1e-6 * np.maximum(sizes, 1) if weighed else 0))).size:
            b = bad[0]
            raise DataError(
                f"bag {self._bag(b)}: counts {counts[b].tolist()} add up to {counts[b].sum()}, the bag has {sizes[b]}"
            )
        return counts

    def _check_target(self) -> None:
        if len(self.target) != len(self):
            raise DataError(f"target: {len(self.target)} values for {len(self)} bags")
        if np.issubdtype(self.target.dtype, np.floating) and not np.isfinite(self.target).all():
            b = int(np.argwhere(~np.isfinite(self.target))[0][0])
            raise DataError(f"target: not a number for bag {self._bag(b)}")

    # -- keeping ------------------------------------------------------------------------------------------------

    _ARRAYS = ("X", "offsets", "counts", "weights", "target")

    def save(self, folder) -> None:
        """Write one `.npy` per array and `bags.json`."""
        folder = prepared(folder)
        for name in self._ARRAYS:
            if getattr(self, name) is not None:
                np.save(folder / f"{name}.npy", getattr(self, name))
        noise = self.noise and self.noise.to_dict()
        write_json(folder / "bags.json", {"names": self.names, "bag_names": self.bag_names, "noise": noise})

    @classmethod
    def load(cls, folder) -> Self:
        """Read what `save` wrote; the checks of the constructor apply. Covariates stay on disk until they are used."""
        folder = Path(folder)
        with reading(folder, "bags"):
            header = read_json(folder / "bags.json")
            kept = [(n, p) for n in cls._ARRAYS if (p := folder / f"{n}.npy").exists()]
            arrays = {n: np.load(p, mmap_mode="c" if n == "X" else None) for n, p in kept}
            noise = NoiseSpec.from_dict(header.get("noise"))
            return cls(**arrays, names=tuple(header["names"]), bag_names=tuple(header["bag_names"]), noise=noise)

    def _fingerprint(self, hasher) -> None:
        said = [self.names, self.bag_names, *([self.noise.to_dict()] if self.noise else [])]
        hasher.update(repr(said).encode())
        for name in self._ARRAYS:
            value = getattr(self, name)
            hasher.update(f"{name}{None if value is None else (value.dtype.str, value.shape)}".encode())
            if value is not None:
                hasher.update(np.ascontiguousarray(value).tobytes())


@dataclass(frozen=True, eq=False)
class LabelledBags(Observation):
    """Bags with the label of every instance: what oracles see, and no method for label proportions.

    Attributes
    ----------
    bags : the same bags that the others see.
    y : (n,) classes 0 … C − 1.
    """

    bags: Bags
    y: np.ndarray

    def __post_init__(self):
        counts = self.bags.counts
        check_labels(self.y, len(self.bags.X), None if counts is None else counts.shape[1])

    def save(self, folder) -> None:
        self.bags.save(folder)
        np.save(Path(folder) / "y.npy", self.y)

    @classmethod
    def load(cls, folder) -> Self:
        with reading(folder, "labelled bags"):
            return cls(Bags.load(folder), np.load(Path(folder) / "y.npy"))

    def _fingerprint(self, hasher) -> None:
        self.bags._fingerprint(hasher)
        hasher.update(self.y.tobytes())


def _listed(names) -> str:
    shown = ", ".join(map(str, names[:SHOWN]))
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
