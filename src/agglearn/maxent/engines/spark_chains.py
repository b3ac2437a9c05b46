"""Lines 2–7 of Algorithm 1 of Gilotte et al. 2022 on executors. Sums are exact, whatever the blocks and losses."""

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agglearn.maxent.engines.numba_chains import Chains, starting_positions
from agglearn.maxent.weight_index import WeightIndex
from agglearn.optional import active_session

if TYPE_CHECKING:
    from pyspark import Broadcast

REFRESH = 20  # iterations after which positions pass through the driver, lest lost blocks be moved from the start

Block = tuple[int, np.ndarray]  # number of the first chain, positions
MovedBlock = tuple[int, np.ndarray, np.ndarray]  # with (2, w) sums


class SparkChains:
    def __init__(
        self, index: WeightIndex, n: int, intercept: float, seed: int, start: str = "marginals", sampler: str = "gibbs",
        n_proposals: int = 8, partitions: int | None = None,
    ) -> None:  # fmt: skip
        self.index, self.n, self._context = index, n, active_session().sparkContext
        self._fixed = self._context.broadcast((index, intercept, seed, sampler, n_proposals))
        n_blocks = min(n, partitions or self._context.defaultParallelism)
        positions = starting_positions(index, n, seed, start)
        bounds = [n * k // n_blocks for k in range(n_blocks + 1)]
        self._distribute([(a, positions[a:b]) for a, b in itertools.pairwise(bounds)])

    def _distribute(self, blocks: Sequence[Block]) -> None:
        self._blocks, self._moves = self._context.parallelize(blocks, len(blocks)), 0
        self._weights: list[Broadcast] = []

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None:
        self._weights.append(self._context.broadcast((mu, theta)))

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> tuple[np.ndarray, np.ndarray]:
        sweep = iteration, n_sweeps, marginalize
        work = functools.partial(move, fixed=self._fixed, weights=self._weights[-1], sweep=sweep)
        before, self._blocks = self._blocks, self._blocks.map(work).cache()
        sums = self._blocks.map(lambda block: block[2]).treeReduce(np.add)
        before.unpersist()
        self._moves += 1
        if self._moves == REFRESH:
            self._refresh()
        return sums[0], sums[1]

    def positions(self) -> np.ndarray:
        return np.concatenate([block for _, block in sorted(self._collect(), key=lambda block: block[0])])

    def _collect(self) -> list[Block]:
        return self._blocks.map(lambda block: block[:2]).collect()

    def _refresh(self) -> None:
        positions, blocks, (*weights, last) = self._collect(), self._blocks, self._weights
        self._distribute(positions)
        self._weights.append(last)
        blocks.unpersist()
        for old in weights:
            old.destroy()


def move(block: Block | MovedBlock, fixed: "Broadcast", weights: "Broadcast", sweep: tuple) -> MovedBlock:
    """Return (number of the first chain, positions, (2, w) sums) of a block after `Chains.sweep`. Runs on executors."""
    import numba

    numba.set_num_threads(1)  # a task has one core
    (index, intercept, seed, sampler, n_proposals), (first, positions) = fixed.value, block[:2]
    chains = Chains(
        index, len(positions), intercept, seed, sampler=sampler, n_proposals=n_proposals,
        first=first, positions=positions.copy(),
    )  # fmt: skip
    chains.set_weights(*weights.value)
    return first, chains.positions, np.stack(chains.sweep(*sweep))
