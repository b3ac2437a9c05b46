"""Persistent Gibbs chains on executors: Algorithm 1 of Gilotte et al. 2022 with lines 2–7 where the chains are.

Blocks of chains stay on executors. In every iteration weights are broadcast, each block is moved by the kernels of one
machine, and the sums over chains come back. Random streams belong to chains and iterations, and the sums are exact
(multiples of 2^-23 below 2^53): results do not depend on the number of blocks, and a block that is lost with its
executor is moved again to the same place.
"""

import functools
import itertools

import numpy as np

from agglearn.maxent.engines.numba_chains import Chains, starting_positions
from agglearn.maxent.weight_index import Layout
from agglearn.optional import active_session

REFRESH = 20  # iterations after which positions pass through the driver, lest lost blocks be moved from the start


class SparkChains:
    """What `agglearn.maxent.engines.numba_chains.Chains` is, over a Spark session.

    Parameters
    ----------
    layout, n, intercept, seed, start, sampler, n_proposals : as in `Chains`.
    partitions : blocks of chains; None for the session's default parallelism.
    session : None for the active one.
    """

    def __init__(
        self, layout: Layout, n: int, intercept: float, seed: int, start="marginals", sampler="gibbs", n_proposals=8,
        partitions=None, session=None,
    ):  # fmt: skip
        self.layout, self.n = layout, n
        self._context = (session or active_session()).sparkContext
        self._fixed = self._context.broadcast((layout, intercept, seed, sampler, n_proposals))
        parts = min(n, partitions or self._context.defaultParallelism)
        positions = starting_positions(layout, n, seed, start)
        bounds = [n * k // parts for k in range(parts + 1)]
        self._spread([(a, positions[a:b]) for a, b in itertools.pairwise(bounds)])

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None:
        """Use these (w,) weights from now on."""
        self._weights.append(self._context.broadcast((mu, theta)))

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Move all chains; as `Chains.sweep`, to the bit."""
        how = {"iteration": iteration, "n_sweeps": n_sweeps, "marginalize": marginalize}
        work = functools.partial(move, fixed=self._fixed, weights=self._weights[-1], how=how)
        before, self._blocks = self._blocks, self._blocks.map(work).cache()
        sums = self._blocks.map(lambda block: block[2]).treeReduce(np.add)
        before.unpersist()
        self._moves += 1
        if self._moves == REFRESH:
            found, blocks, weights = (
                self._blocks.map(lambda block: block[:2]).collect(),
                self._blocks,
                self._weights[:-1],
            )
            last = self._weights[-1]
            self._spread(found)
            self._weights = [last]
            blocks.unpersist()
            for old in weights:
                old.destroy()
        return sums[0], sums[1]

    def positions(self) -> np.ndarray:
        """(n, D) positions of all chains, collected."""
        found = sorted(self._blocks.map(lambda block: block[:2]).collect(), key=lambda block: block[0])
        return np.concatenate([block for _, block in found])

    def _spread(self, blocks) -> None:
        """Put blocks of chains on executors anew; what is known of earlier moves is not needed any more."""
        self._blocks, self._moves, self._weights = self._context.parallelize(blocks, len(blocks)), 0, []


def move(block, fixed, weights, how: dict):
    """(number of the first chain, positions, (2, w) sums) of a block after an iteration. Runs on executors."""
    import numba

    numba.set_num_threads(1)  # a task has one core
    (layout, intercept, seed, sampler, n_proposals), (first, positions) = fixed.value, block[:2]
    block_of = {"sampler": sampler, "n_proposals": n_proposals, "first": first, "positions": positions.copy()}
    chains = Chains(layout, len(positions), intercept, seed, **block_of)
    chains.set_weights(*weights.value)
    return first, chains.positions, np.stack(chains.sweep(**how))
