"""Batches of bags as arrays of few shapes: (bags, size, covariates), or rows of one length, filled with weight 0."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from agglearn.observations import Bags

CACHED = 1 << 12  # instances whose layers stay in a processor's cache
PREDICTED = 1 << 15  # instances predicted at a time
LONGEST_ROW = 64  # instances in a row of bags of many sizes
ROWS_PER_BAG = 4  # of bags of many sizes, about. More rows waste less, fewer are faster to add up
SPARE_ROWS = 0.2  # beyond the average of so many bags, so that most batches have the same number of rows
FEW_BAGS = 16  # treated as bags of many sizes, so that single bags, one after the other, have few shapes


class Batch(NamedTuple):
    x: np.ndarray  # (R, C, d) instances, C in a row
    weights: np.ndarray | None  # of each instance, 0 where there is none. None: all are 1
    bag: np.ndarray | None  # of each row, ascending. None: every bag is one row
    total: np.ndarray  # (B,) weight of each bag


@dataclass
class Batches:
    bags: Bags  # no instance has weight 0
    centre: np.ndarray  # (d,)
    scale: np.ndarray
    turn: bool = False  # whether batches that are drawn have their clouds turned

    def take(self, indices: np.ndarray, rng: np.random.Generator | None = None, draw: int | None = None) -> Batch:
        """The bags with these indices: with a generator `draw` random instances of each, or all if a bag has no more."""
        start, sizes = self.bags.offsets[indices], self.bags.sizes[indices]
        if draw is not None and rng is not None and (sizes > draw).all():
            within = (rng.random((len(indices), draw)) * sizes[:, None]).astype(np.int64)
            return self._batch(start[:, None] + within, None, None, rng)
        if len(self.bags) >= FEW_BAGS and (self.bags.sizes == sizes[0]).all():
            return self._batch(start[:, None] + np.arange(sizes[0]), None, None, rng)
        length, rows = self._row_length(), self._rows(sizes)
        bag = np.repeat(np.arange(len(indices)), rows)
        first = (np.arange(len(bag)) - np.repeat(np.cumsum(rows) - rows, rows)) * length
        within = first[:, None] + np.arange(length)
        exists = within < sizes[bag, None]
        return self._batch(start[bag, None] + np.minimum(within, sizes[bag, None] - 1), exists, bag, rng)

    def split(self, indices: np.ndarray, draw: int | None = None) -> list[np.ndarray]:
        """Parts of few instances each, of which `draw` are taken of a bag. One where bags have many sizes, hence shapes."""
        sizes = self.bags.sizes
        if draw is not None and (sizes > draw).all():
            size = draw
        elif (sizes == sizes[0]).all():
            size = int(sizes[0])
        else:
            return [indices]
        return np.array_split(indices, min(len(indices), -(-len(indices) * size // CACHED)))

    def _batch(
        self, rows: np.ndarray, exists: np.ndarray | None, bag: np.ndarray | None, rng: np.random.Generator | None
    ) -> Batch:
        """The batch of the instances in `rows` (R, C) that exist (None: all)."""
        x = np.asarray(self.bags.X[rows.ravel()], np.float32)
        if self.turn and rng is not None:
            sizes = np.full(len(rows), rows.shape[1]) if bag is None else np.bincount(bag) * rows.shape[1]
            x = turn_clouds(x, sizes, rng)
        x = ((x - self.centre) / self.scale).reshape(*rows.shape, -1)
        weights = None if self.bags.weights is None else self.bags.weights[rows].astype(np.float32)
        if bag is None or exists is None:
            total = np.full(len(rows), rows.shape[1], np.float32) if weights is None else weights.sum(axis=1)
            return Batch(x, weights, None, total)
        weights = exists.astype(np.float32) if weights is None else weights * exists
        total = np.bincount(bag, weights.sum(axis=1)).astype(np.float32)
        average = self._rows(self.bags.sizes).mean() * len(total)
        n = _round_up(max(len(bag), int((1 + SPARE_ROWS) * average))) - len(bag)
        return Batch(_fill(x, n), _fill(weights, n), _fill(bag, n, len(total) - 1), total)

    def _row_length(self) -> int:
        mean = self.bags.offsets[-1] / len(self.bags)
        return int(2 ** np.clip(np.round(np.log2(mean / ROWS_PER_BAG)), 0, np.log2(LONGEST_ROW)))

    def _rows(self, sizes: np.ndarray) -> np.ndarray:
        return -(-sizes // self._row_length())

    def blocks(self) -> Iterator[tuple[Batch, int]]:
        """(batch, number of its bags) of all bags in order, of one shape: to compile another takes long."""
        ends = np.searchsorted(self.bags.offsets, np.arange(PREDICTED, self.bags.offsets[-1], PREDICTED))
        borders = np.unique(np.concatenate([[0], ends, [len(self.bags)]]))
        rows = np.add.reduceat(self._rows(self.bags.sizes), borders[:-1]).max()
        bags = np.diff(borders).max()
        for first, end in pairwise(borders):
            yield _pad(self.take(np.arange(first, end)), _round_up(rows), _round_up(bags)), end - first


def _pad(batch: Batch, rows: int, bags: int) -> Batch:
    if batch.bag is None or batch.weights is None:
        n = _round_up(len(batch.total)) - len(batch.total)
        weights = None if batch.weights is None else _fill(batch.weights, n, 1)
        return Batch(_fill(batch.x, n), weights, None, _fill(batch.total, n, 1))
    n = max(rows - len(batch.x), 0)  # a batch has more empty rows than it needs
    x, weights, bag = _fill(batch.x[:rows], n), _fill(batch.weights[:rows], n), _fill(batch.bag[:rows], n, bags - 1)
    return Batch(x, weights, bag, _fill(batch.total, bags - len(batch.total), 1))


def _fill(a: np.ndarray, n: int, value: float = 0) -> np.ndarray:
    return np.concatenate([a, np.full((n, *a.shape[1:]), value, a.dtype)])


def _round_up(n: int) -> int:
    step = 1 << max(0, int(n - 1).bit_length() - 3)
    return -(-n // step) * step


def turn_clouds(x: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Clouds turned about the z axis by a random angle and scaled by a random factor (DeepSets' augmentation)."""
    angle, factor = 2 * np.pi * rng.random(len(sizes)), 0.8 + 0.45 * rng.random(len(sizes))
    c, s = (np.repeat(f(angle) * factor, sizes).astype(np.float32) for f in (np.cos, np.sin))
    height = np.repeat(factor, sizes).astype(np.float32)
    return np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], height * x[:, 2]], axis=1)
