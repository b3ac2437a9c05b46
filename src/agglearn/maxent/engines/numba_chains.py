"""Persistent Gibbs chains of the pairwise model (Gilotte et al. 2022, section 3.4)."""

import math
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from agglearn.maxent import kernels
from agglearn.maxent.weight_index import WeightIndex

WIDE = 1000  # modalities from which `auto` takes Metropolis–Hastings: as fast as Gibbs there, slower at 300
UNIFORM_SHARE = 0.05  # of proposals, so that every modality is proposed


class Chains:
    """`n` persistent samples of X. Each (seed, iteration, chain) has its own random stream, whatever the threads."""

    def __init__(
        self, index: WeightIndex, n: int, intercept: float, seed: int, start: str = "marginals", sampler: str = "gibbs",
        n_proposals: int = 8, first: int = 0, positions: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.index, self.space, self.n, self.seed, self.intercept = index, index.space, n, seed, np.float32(intercept)
        self.first, self.n_proposals = first, n_proposals
        self.proposals = kernels.Proposals(wide_features(index, sampler), *proposals(index))
        self.positions = starting_positions(index, n, seed, start) if positions is None else positions
        n_rows = index.n_modalities + 1  # of a label
        self.weights = aligned_zeros(len(self.space.lines) - 1, 2 * n_rows, kernels.LINE)
        self.theta = np.zeros(len(index.rows) + 1, np.float32)
        for i, j, block in index.fixed_mu():
            for d, e, values in ((i, j, block), (j, i, block.T)):
                lines, lanes = np.divmod(index.padded[index.span(e)], kernels.LINE)
                rows = np.arange(index.offsets[d], index.offsets[d] + index.sizes[d])[:, None]
                self.weights[lines, rows, lanes] = self.weights[lines, n_rows + rows, lanes] = values
        self.threads = ThreadPoolExecutor(numba.get_num_threads())
        self.acc = np.zeros((numba.get_num_threads(), len(index.rows) + 1), np.int64)

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None:
        cells = self.index.rows, self.index.columns, self.index.padded
        kernels.spread(self.index.expand(mu), self.index.expand(theta), *cells, self.weights, self.theta)

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Move all chains, and return (w,) sums over them, which estimate E[D]·n′/n and E[C]·n′/n (lines 2–7)."""
        counts, sums = np.zeros((2, len(self.index.rows)))  # of integers below 2^53, hence exact
        seed = np.random.SeedSequence([self.seed, iteration]).generate_state(1, np.uint64)[0]
        where_wide = self.proposals if self.proposals.wide.any() else None
        settings = where_wide, self.n_proposals, seed, n_sweeps, marginalize
        model = self.weights, self.theta, self.intercept, self.space

        def run(acc: np.ndarray, first: int, stop: int) -> None:
            kernels.gibbs(self.positions[first:stop], self.first + first, *model, *settings, acc)

        for first in range(0, self.n, kernels.SEGMENT):
            bounds = np.linspace(first, min(first + kernels.SEGMENT, self.n), len(self.acc) + 1).astype(int)
            list(self.threads.map(run, self.acc, bounds, bounds[1:]))
            kernels.collect(self.acc[:, :-1], counts, sums)
        sums /= kernels.UNIT
        return self.index.fold(counts), self.index.fold(sums)


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return float32 zeros from a multiple of 64 bytes on, where a line of the cache begins."""
    size = math.prod(shape)
    padded = np.zeros(size + 16, np.float32)
    first = -padded.ctypes.data % 64 // 4
    return padded[first : first + size].reshape(shape)


def wide_features(index: WeightIndex, sampler: str) -> np.ndarray:
    return {"gibbs": index.sizes < 0, "mh": index.sizes > 0, "auto": index.sizes >= WIDE}[sampler]


def starting_positions(index: WeightIndex, n: int, seed: int, start: str) -> np.ndarray:
    """Return (n, D) positions of independent features, drawn from their `marginals`, or `uniform`."""
    rng = np.random.default_rng([seed, 0x5747])
    columns = []
    for offset, size, counts in zip(index.offsets, index.sizes, index.marginals, strict=True):
        p = counts / counts.sum() if start == "marginals" else None
        columns.append(offset + rng.choice(size, n, p=p))
    return np.stack(columns, axis=1).astype(np.uint16)


def proposals(index: WeightIndex) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (K,) thresholds and aliases (positions) of each feature's proposals, and their log-probabilities."""
    tables = []
    for offset, size, counts in zip(index.offsets, index.sizes, index.marginals, strict=True):
        q = (1 - UNIFORM_SHARE) * counts / counts.sum() + UNIFORM_SHARE / size
        threshold, alias = alias_table(q)
        tables.append((threshold, offset + alias, np.log(q)))
    threshold, alias, log_q = (np.concatenate(columns) for columns in zip(*tables, strict=True))
    return threshold.astype(np.float32), alias.astype(np.uint16), log_q.astype(np.float32)


def alias_table(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return thresholds and aliases (Vose 1991): a sample is an even i with probability threshold[i], else alias[i]."""
    threshold, alias = q * len(q), np.arange(len(q))
    small, large = (list(np.flatnonzero(side)) for side in (threshold < 1, threshold >= 1))
    while small and large:
        i, j = small.pop(), large[-1]
        alias[i] = j
        threshold[j] -= 1 - threshold[i]
        if threshold[j] < 1:
            small.append(large.pop())
    threshold[small + large] = 1.0
    return threshold, alias
