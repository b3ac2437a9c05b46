"""Bags of instances, with the count of every label in each bag, or a target."""

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeAlias

import numpy as np
import pandas as pd

from agglearn.encoding.labels import check_labels
from agglearn.errors import DataError
from agglearn.observations.base import NoiseSpec, Observation, check_weights
from agglearn.rounding import round_to_totals
from agglearn.seeds import RandomState, draw_generator
from agglearn.text import count_text, list_some

CHUNK = 1 << 17  # rows checked at a time
ROUNDED = 0.02  # largest distance from 1 of the sum of a bag's published proportions

Values: TypeAlias = Mapping[Hashable, object] | pd.Series | pd.DataFrame


@dataclass(frozen=True, eq=False)
class Bags(Observation):
    """Covariates of instances, in bags, and per bag the count of every label or a target. No label of an instance.

    Parameters
    ----------
    X, offsets : ndarray of shape (n, d), ndarray of shape (B + 1,)
        Covariates, floating point: bag b holds rows offsets[b] to offsets[b + 1] − 1.
    counts : ndarray of shape (B, C) or None
        Whole numbers that add up to the bag's size (with weights: any that add up to its weight). (B,) are positives.
    weights, target : ndarray of shape (n,) or None, ndarray of shape (B,) or (B, k) or None
        Finite weight of each instance (None for 1, and 0 counts for nothing), and target of a bag in place of counts.
    names, bag_names, noise : tuple[str, ...], tuple[str, ...], NoiseSpec or None
        Names of columns and of bags, for messages, and how noise was added to the counts.
    class_names : tuple
        Names of the classes, one for each column of the counts. Without them the classes are 0 … C − 1. The columns are
        brought into the ascending order of their names.
    released : ndarray of shape (B,) or None
        Numbers of positives with their noise, before they were cut to 0 … size. None where the counts were not cut.
    """

    X: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None
    target: np.ndarray | None = None
    names: tuple[str, ...] = field(default=())
    bag_names: tuple[str, ...] = field(default=())
    noise: NoiseSpec | None = None
    class_names: tuple[Hashable, ...] = field(default=())
    released: np.ndarray | None = None

    def __post_init__(self) -> None:
        put = functools.partial(object.__setattr__, self)
        put("names", tuple(map(str, self.names or getattr(self.X, "columns", ()))))
        x = np.ascontiguousarray(self.X)
        put("X", x if np.issubdtype(x.dtype, np.floating) else x.astype(float))
        put("offsets", np.asarray(self.offsets, dtype=np.int64))
        put("bag_names", tuple(map(str, self.bag_names)))
        self._check_instances()
        if self.weights is not None:
            put("weights", check_weights(self.weights, len(x)))
        if self.counts is not None:
            put("counts", self._check_counts(np.asarray(self.counts)))
        if self.released is not None:
            put("released", check_released(self.released, self.noise, self.counts))
        if len(self.class_names):
            names, counts = self._sort_classes()
            if self.released is not None and names != tuple(self.class_names):
                put("released", self.sizes - self.released)
            put("class_names", names)
            put("counts", counts)
        if self.target is not None:
            put("target", self._check_target(np.asarray(self.target)))

    # -- making -------------------------------------------------------------------------------------------------

    @classmethod
    def from_groups(
        cls, X: pd.DataFrame | np.ndarray, bags: Sequence[Hashable] | np.ndarray | pd.Series,
        counts: Values | None = None, *, proportions: Values | None = None, totals: Values | None = None,
        weights: np.ndarray | Sequence[float] | None = None, names: Sequence[str] = (),
        class_names: Sequence[Hashable] = (),
    ) -> Self:  # fmt: skip
        """Bags from the bag of each instance, and the counts or the proportions of every bag.

        DataError for bags without counts or instances, or proportions that are none or do not add up to 1.

        Parameters
        ----------
        X, bags : DataFrame or ndarray of shape (n, d), Sequence[Hashable] or ndarray of shape (n,) or Series
            Covariates in any order, and the bag of each instance.
        counts, proportions, totals : Values or None
            {bag: number of positives, or of every class}, a Series or a data frame, which gives the order of the bags.
            The columns of a data frame name the classes.
            Proportions become whole counts by largest remainder, but fractions with weights other than 0 and 1. Totals
            are numbers of every class in the population that a bag samples, taken as proportions.
        weights, names, class_names
            As in `Bags`.
        """
        labels = np.asarray(bags)
        if labels.shape != (len(X),):
            raise DataError(f"bags: must name the bag of each of the {len(X)} instances, got shape {labels.shape}")
        stated = {"counts": counts, "proportions": proportions, "totals": totals}
        if len(stated := {name: numbers for name, numbers in stated.items() if numbers is not None}) != 1:
            raise DataError("counts, proportions, totals: give one of them, for every bag")
        [(name, numbers)] = stated.items()
        keys, values = _table(numbers, name)
        number = {k: i for i, k in enumerate(keys)}
        if without := [b for b in dict.fromkeys(labels.tolist()) if b not in number]:
            raise DataError(f"bags without {name}: {list_some(without)}; add their {name} or leave their instances out")
        bag = np.array([number[b] for b in labels.tolist()], dtype=np.int64)
        sizes = np.bincount(bag, minlength=len(keys))
        if empty := [keys[i] for i in np.flatnonzero(sizes == 0)]:
            raise DataError(f"{name} without instances: {list_some(empty)}; leave these bags out")
        order = np.argsort(bag, kind="stable")
        bare = cls(
            np.asarray(X)[order],
            np.append(0, np.cumsum(sizes)),
            weights=None if weights is None else check_weights(weights, len(X))[order],
            names=tuple(names) or tuple(getattr(X, "columns", ())),
            bag_names=tuple(map(str, keys)),
        )
        if name == "totals":
            values = bare._proportions_of(values)
        if isinstance(numbers, pd.DataFrame) and not len(class_names):
            class_names = numbers.columns.tolist()
        counts = values if name == "counts" else bare._counts_of(values)
        return replace(bare, counts=counts, class_names=tuple(class_names))

    # -- using --------------------------------------------------------------------------------------------------

    exact_facts: ClassVar[str] = ""  # covariates are public

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """(B,) instances per bag."""
        return np.diff(self.offsets)

    @property
    def classes(self) -> np.ndarray:
        """(C,) names of the classes, ascending, or their numbers."""
        if self.counts is None:
            raise DataError("these bags have no counts; learning with label proportions needs them")
        return np.asarray(self.class_names) if self.class_names else np.arange(self.counts.shape[1])

    @property
    def bag_of(self) -> np.ndarray:
        """(n,) the bag of each instance."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def totals(self) -> np.ndarray:
        """(B,) instances per bag, or their weight where there are weights."""
        return self.sizes if self.weights is None else np.add.reduceat(self.weights, self.offsets[:-1])

    @property
    def uncut_counts(self) -> np.ndarray | None:
        """(B, C) counts, with their noise where they have some, not cut to 0 … size."""
        return self.counts if self.released is None else np.column_stack([self.sizes - self.released, self.released])

    def take(self, indices: np.ndarray | Sequence[int]) -> Self:
        """Some of the bags, in the given order.

        Parameters
        ----------
        indices : ndarray or Sequence[int]
        """
        indices = np.asarray(indices, dtype=np.int64)
        sizes = self.sizes[indices]
        offsets = np.append(0, np.cumsum(sizes))
        rows: np.ndarray | slice = slice(0, offsets[-1])  # a view
        if not len(indices) or (indices != np.arange(len(indices))).any():
            rows = np.repeat(self.offsets[indices] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return replace(
            self,
            X=self.X[rows],
            offsets=offsets,
            counts=None if self.counts is None else self.counts[indices],
            weights=None if self.weights is None else self.weights[rows],
            target=None if self.target is None else self.target[indices],
            bag_names=tuple(self.bag_names[b] for b in indices) if self.bag_names else (),
            released=None if self.released is None else self.released[indices],
        )

    def drop_zero_weights(self) -> Self:
        """The bags without instances of weight 0. DataError for weights other than 0, 1, or for fractional counts."""
        if self.counts is not None and (b := _first(self.counts != np.round(self.counts))) is not None:
            raise DataError(f"bag {self._bag(b)}: counts are not whole; this method needs counts of instances")
        if self.weights is None:
            return self
        if not np.isin(self.weights, (0, 1)).all():
            raise DataError("weights other than 0 and 1: this method needs whole instances; draw them with bags.draw()")
        mask = self.weights > 0
        sizes = np.bincount(self.bag_of[mask], minlength=len(self))
        return replace(self, X=self.X[mask], offsets=np.append(0, np.cumsum(sizes)), weights=None)

    def draw(self, random_state: RandomState = None) -> Self:
        """Bags of as many instances each, drawn by weight, with whole counts in the same proportions.

        Methods that count persons learn from survey weights in this way. The draw is systematic, so an instance is
        drawn once where all weights are equal.

        Parameters
        ----------
        random_state : int, RandomState, Generator or None
        """
        rng, bag, totals = draw_generator(random_state), self.bag_of, self.totals
        if (b := _first(totals <= 0)) is not None:
            raise DataError(f"bag {self._bag(b)}: all weights are 0; leave the bag out")
        ends = np.cumsum(np.ones(len(bag)) if self.weights is None else self.weights)
        steps = (np.arange(len(bag)) - self.offsets[bag] + rng.random(len(self))[bag]) / self.sizes[bag]
        rows = np.searchsorted(ends, (ends[self.offsets[1:] - 1] - totals)[bag] + steps * totals[bag], side="right")
        counts = None if self.counts is None else apportion(self.counts, self.sizes)
        return replace(
            self, X=self.X[np.clip(rows, self.offsets[bag], self.offsets[bag + 1] - 1)], weights=None, counts=counts
        )

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """(n, d) covariates in this order, as they are where either side has no names. DataError for an unknown name.

        Parameters
        ----------
        names : Sequence[str]
        """
        return order_columns(self.X, self.names, names)

    def _proportions_of(self, totals: np.ndarray) -> np.ndarray:
        sums = totals.sum(axis=1, keepdims=True) if totals.ndim == 2 else np.zeros((len(totals), 1))
        if (b := _first((sums <= 0) | ~(totals.reshape(len(totals), -1) >= 0))) is not None:
            raise DataError(f"totals: bag {self._bag(b)} has {totals[b].tolist()}; give a number ≥ 0 for every class")
        return totals / sums

    def _counts_of(self, proportions: np.ndarray) -> np.ndarray:
        if (b := _first(~((proportions >= 0) & (proportions <= 1)))) is not None:
            values = proportions[b].tolist()
            raise DataError(f"proportions: bag {self._bag(b)} has {values}; shares lie between 0 and 1")
        if proportions.ndim == 1:
            proportions = np.column_stack([1 - proportions, proportions])
        if (b := _first(abs(proportions.sum(axis=1) - 1) > ROUNDED)) is not None:
            raise DataError(f"proportions: those of bag {self._bag(b)} add up to {proportions[b].sum():g}, not to 1")
        if self.weights is None or np.isin(self.weights, (0, 1)).all():
            return apportion(proportions, self.totals)
        return proportions / proportions.sum(axis=1, keepdims=True) * self.totals[:, None]

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
            empty = [self._bag(b) for b in np.flatnonzero(np.diff(offsets) < 1).tolist()]
            raise DataError(f"empty bags: {list_some(empty)}; leave them out")
        for names, number in ((self.names, x.shape[1]), (self.bag_names, len(self))):
            if names and len(names) != number:
                raise DataError(f"{len(names)} names for {number} columns or bags")
        for start in range(0, len(x), CHUNK):  # x may be larger than memory
            if not (finite := np.isfinite(x[start : start + CHUNK])).all():
                i, j = np.argwhere(~finite)[0] + [start, 0]
                column = repr(self.names[j]) if self.names else j
                bag = self._bag(int(np.searchsorted(offsets, i, side="right") - 1))
                raise DataError(f"X: column {column} is not a number in bag {bag} (row {i}); fill or drop it")

    def _check_counts(self, counts: np.ndarray) -> np.ndarray:
        weighted, sizes = self.weights is not None, self.totals
        if len(counts) != len(self) or counts.ndim not in (1, 2):
            raise DataError(f"counts: must have one row for each of the {len(self)} bags, got shape {counts.shape}")
        if not np.issubdtype(counts.dtype, np.number) or not np.isfinite(counts.astype(float)).all():
            raise DataError("counts: must be numbers")
        if not weighted and (b := _first(counts != np.round(counts))) is not None:
            raise DataError(
                f"bag {self._bag(b)}: counts {counts[b].tolist()} are not whole; for shares use "
                "Bags.from_groups(X, bags, proportions=…)"
            )
        if counts.ndim == 1:
            if (b := _first((counts < 0) | (counts > sizes))) is not None:
                raise DataError(f"bag {self._bag(b)}: {counts[b]} positives among {sizes[b]} instances")
            counts = np.column_stack([sizes - counts, counts])
        if (b := _first(counts < 0)) is not None:
            raise DataError(f"bag {self._bag(b)}: negative count, {counts[b].tolist()}")
        tolerance = 1e-6 * np.maximum(sizes, 1) if weighted else 0
        if (b := _first(abs(counts.sum(axis=1) - sizes) > tolerance)) is not None:
            added = f"{counts[b].tolist()} add up to {counts[b].sum()}"
            raise DataError(
                f"bag {self._bag(b)}: counts {added}, the bag has {sizes[b]}; for numbers of a population that the bag "
                "samples use Bags.from_groups(X, bags, totals=…)"
            )
        return counts

    def _sort_classes(self) -> tuple[tuple[Hashable, ...], np.ndarray]:
        names, counts = self.class_names, np.empty((0, 0)) if self.counts is None else self.counts
        if len(set(names)) != len(names) or len(names) != counts.shape[1]:
            advice = f"name each of the {counts.shape[1]} columns of the counts once"
            raise DataError(f"class_names: {list_some(names)}; {advice}")
        order = np.argsort(np.asarray(names), kind="stable")
        return tuple(np.asarray(names)[order].tolist()), np.ascontiguousarray(counts[:, order])

    def _check_target(self, target: np.ndarray) -> np.ndarray:
        if len(target) != len(self):
            raise DataError(f"target: {count_text(len(target), 'value')} for {count_text(len(self), 'bag')}")
        if np.issubdtype(target.dtype, np.floating) and (b := _first(~np.isfinite(target))) is not None:
            raise DataError(f"target: not a number for bag {self._bag(b)}")
        return target


@dataclass(frozen=True, eq=False)
class LabelledBags(Observation):
    """Bags with the label of every instance, for oracles. Methods for label proportions refuse them.

    Parameters
    ----------
    bags, y : Bags, ndarray of shape (n,)
        Classes 0 … C − 1 of the instances, which agree with the bags' counts, unless these have noise.
    """

    bags: Bags
    y: np.ndarray

    def __post_init__(self) -> None:
        bags, counts = self.bags, self.bags.counts
        y = check_labels(self.y, len(bags.X), None if counts is None else counts.shape[1])
        if counts is None or bags.noise is not None:
            return
        cells = bags.bag_of * counts.shape[1] + y.astype(np.int64)
        labelled = np.bincount(cells, bags.weights, counts.size).reshape(counts.shape)
        wrong = abs(labelled - counts).max(axis=1) > 1e-6 * np.maximum(bags.totals, 1)
        if (b := _first(wrong)) is not None:
            by_labels, counted = labelled[b].tolist(), counts[b].tolist()
            raise DataError(
                f"labels: bag {bags._bag(b)} has {by_labels} of each class by its labels, and counts {counted}"
            )


def check_released(released: np.ndarray, noise: NoiseSpec | None, counts: np.ndarray | None) -> np.ndarray:
    """(B,) released numbers as floats."""
    released = np.asarray(released, dtype=float)
    if noise is None or counts is None or counts.shape != (len(released), 2) or not np.isfinite(released).all():
        raise DataError("released: must be a finite number for each bag, beside a noise and counts of two classes")
    return released


def _first(wrong: np.ndarray) -> int | None:
    rows = np.flatnonzero(wrong.any(axis=tuple(range(1, wrong.ndim))))
    return int(rows[0]) if rows.size else None


def order_columns(x: np.ndarray, names: Sequence[str], expected: Sequence[str]) -> np.ndarray:
    """(n, d) covariates with columns `names` in the order `expected`, as they are where either has no names."""
    names, expected = tuple(map(str, names)), tuple(expected)
    if not names or not expected or names == expected:
        return x
    if missing := [name for name in expected if name not in names]:
        raise DataError(
            f"columns that were learned from are missing: {list_some(missing)}; there are {list_some(names)}"
        )
    return x[:, [names.index(name) for name in expected]]


def apportion(proportions: np.ndarray, sizes: int | np.ndarray) -> np.ndarray:
    """(B, C) whole counts that add up to `sizes`, one number or (B,), by largest remainder of proportions (B, C)."""
    sizes = np.broadcast_to(np.asarray(sizes, dtype=np.int64), len(proportions))
    return round_to_totals(proportions / proportions.sum(axis=1, keepdims=True) * sizes[:, None], sizes)


def _table(numbers: object, name: str) -> tuple[list, np.ndarray]:
    """(bags, a number of each or one for every class)."""
    if isinstance(numbers, pd.Series | pd.DataFrame):
        if not numbers.index.is_unique:
            raise DataError(f"{name}: bag {numbers.index[numbers.index.duplicated()][0]!r} occurs more than once")
        keys, rows = numbers.index.tolist(), list(numbers.to_numpy())
    elif isinstance(numbers, Mapping):
        keys, rows = list(numbers), list(numbers.values())
    else:
        raise DataError(
            f"{name}: must map bags to numbers (a dict, Series or data frame), got {type(numbers).__name__}"
        )
    try:
        return keys, np.array(rows, dtype=float if name == "proportions" else None)
    except (TypeError, ValueError):
        raise DataError(f"{name}: every bag needs one number, or one for each class") from None
