"""Batches of bags as arrays of few shapes, as compiled networks need them.

Bags of one size are (bags, size, covariates). Others are cut into rows of the same number of instances: the last row of a
bag is filled up with instances of weight 0, and empty rows follow until their number is a round one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from agglearn.observations import Bags

PREDICTED = 1 << 15  # instances predicted at a time
LONGEST_ROW = 64  # instances in a row of bags of many sizes
ROWS_PER_BAG = 4  # of bags of many sizes, about; more rows waste less, fewer are faster to add up
SPARE_ROWS = 0.2  # beyond the average of so many bags, so that most batches have the same number of rows
FEW_BAGS = 16  # as with bags of many sizes: single bags of any size, one after the other, then have few shapes


class Batch(NamedTuple):
    """Some bags, for a network.

    Attributes
    ----------
    x : (R, C, d) instances, C in a row. weights : (R, C) weight of each instance, 0 where there is none; None for 1.
    bag : (R,) bag of each row, ascending; None where every bag is one row. total : (B,) weight of each bag.
    """

    x: np.ndarray
    weights: np.ndarray | None
    bag: np.ndarray | None
    total: np.ndarray


@dataclass
class Batches:
    """Bags as training and prediction read them, standardised.

    Attributes
    ----------
    bags : with instances of weight 0 left out. centre, scale : (d,) of covariates.
    """

    bags: Bags
    centre: np.ndarray
    scale: np.ndarray

    def take(self, which: np.ndarray, draw: int | None = None, rng=None, augment=None) -> Batch:
        """Some bags; of each `draw` instances at random, or all where a bag has no more."""
        start, sizes = self.bags.offsets[which], self.bags.sizes[which]
        if draw is not None and (sizes > draw).all():
            within = (rng.random((len(which), draw)) * sizes[:, None]).astype(np.int64)
            return self._batch(start[:, None] + within, None, None, rng, augment)
        if len(self.bags) >= FEW_BAGS and (self.bags.sizes == sizes[0]).all():
            return self._batch(start[:, None] + np.arange(sizes[0]), None, None, rng, augment)
        length, rows = self._row_length(), self._rows(sizes)
        bag = np.repeat(np.arange(len(which)), rows)
        first = (np.arange(len(bag)) - np.repeat(np.cumsum(rows) - rows, rows)) * length
        within = first[:, None] + np.arange(length)
        there = within < sizes[bag, None]
        return self._batch(start[bag, None] + np.minimum(within, sizes[bag, None] - 1), there, bag, rng, augment)

    def _batch(self, at, there, bag, rng, augment) -> Batch:
        """Batch of the instances `at` (R, C); `there` tells which of them count, None for all."""
        x = np.asarray(self.bags.X[at.ravel()], np.float32)
        if augment is not None:
            lengths = np.full(len(at), at.shape[1]) if bag is None else np.bincount(bag) * at.shape[1]
            x = augment(x, lengths, rng)
        x = ((x - self.centre) / self.scale).reshape(*at.shape, -1)
        weights = None if self.bags.weights is None else self.bags.weights[at].astype(np.float32)
        if bag is None:
            total = np.full(len(at), at.shape[1], np.float32) if weights is None else weights.sum(axis=1)
            return Batch(x, weights, None, total)
        weights = there.astype(np.float32) if weights is None else weights * there
        total = np.bincount(bag, weights.sum(axis=1)).astype(np.float32)
        average = self._rows(self.bags.sizes).mean() * len(total)
        rows = _round_up(max(len(bag), int((1 + SPARE_ROWS) * average))) - len(bag)
        return Batch(_filled(x, rows), _filled(weights, rows), _filled(bag, rows, len(total) - 1), total)

    def _row_length(self) -> int:
        """Instances in a row: a power of two."""
        mean = self.bags.offsets[-1] / len(self.bags)
        return int(2 ** np.clip(np.round(np.log2(mean / ROWS_PER_BAG)), 0, np.log2(LONGEST_ROW)))

    def _rows(self, sizes: np.ndarray) -> np.ndarray:
        """Rows that bags of these sizes take."""
        return -(-sizes // self._row_length())

    def parts(self) -> Iterator[tuple[Batch, int]]:
        """All bags in order, in batches of about `PREDICTED` instances whose last bags may be empty; how many are not.

        Those of bags of many sizes have one shape: each further one would be compiled again, which takes longer than all.
        """
        ends = np.searchsorted(self.bags.offsets, np.arange(PREDICTED, self.bags.offsets[-1], PREDICTED))
        borders = np.unique(np.concatenate([[0], ends, [len(self.bags)]]))
        rows = np.add.reduceat(self._rows(self.bags.sizes), borders[:-1]).max()
        most = np.diff(borders).max()
        for first, end in pairwise(borders):
            yield _alike(self.take(np.arange(first, end)), _round_up(rows), _round_up(most)), end - first


def _alike(batch: Batch, rows: int, bags: int) -> Batch:
    """The batch with empty rows up to `rows` and empty bags up to `bags`; where every bag is a row, up to a round number."""
    if batch.bag is None:
        more = _round_up(len(batch.total)) - len(batch.total)
        weights = None if batch.weights is None else _filled(batch.weights, more, 1)
        return Batch(_filled(batch.x, more), weights, None, _filled(batch.total, more, 1))
    kept = slice(None, rows)  # a batch has more empty rows than it needs
    parts = (
        _filled(a[kept], max(rows - len(a), 0), v) for a, v in ((batch.x, 0), (batch.weights, 0), (batch.bag, bags - 1))
    )
    return Batch(*parts, _filled(batch.total, bags - len(batch.total), 1))


def _filled(a: np.ndarray, n: int, value=0) -> np.ndarray:
    """The array with n rows of a value after its own."""
    return np.concatenate([a, np.full((n, *a.shape[1:]), value, a.dtype)])


def _round_up(n: int) -> int:
    """The next of 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, … (four between a power of two and the next)."""
    step = 1 << max(0, int(n - 1).bit_length() - 3)
    return -(-n // step) * step


def turned(x: np.ndarray, sizes: np.ndarray, rng) -> np.ndarray:
    """Clouds turned about the z axis at random and scaled by 0.8 to 1.25, each as a whole (DeepSets' augmentation)."""
    angle, factor = 2 * np.pi * rng.random(len(sizes)), 0.8 + 0.45 * rng.random(len(sizes))
    c, s = (np.repeat(f(angle) * factor, sizes).astype(np.float32) for f in (np.cos, np.sin))
    height = np.repeat(factor, sizes).astype(np.float32)
    return np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], height * x[:, 2]], axis=1)


AUGMENTATIONS = {"turn": turned}
