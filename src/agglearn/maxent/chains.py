"""Persistent Gibbs chains of the pairwise model (Gilotte et al. 2022, section 3.4)."""

import numba
import numpy as np

from agglearn.maxent import kernels
from agglearn.maxent.layout import Layout

WIDE = (
    256  # modalities from which `auto` takes Metropolis–Hastings; a rough choice: at 1,000 it is near even with Gibbs
)
UNIFORM_SHARE = 0.05  # of proposals, so that every modality is proposed


class Chains:
    """`n` persistent samples of X and what the sampler needs to move them.

    Every chain has a random stream of its own in every iteration, made from (seed, iteration, chain), and statistics
    are exact integer sums: results do not depend on the number of threads.

    A block of more chains can be moved by itself: `first` is the number of its first chain among all, `positions` are
    where its chains stand.

    sampler : `gibbs` draws every feature from its exact conditional law; `mh` moves it by `n_proposals`
        Metropolis–Hastings steps with proposals from its marginal; `auto` does so for features of `WIDE` modalities
        and more.
    """

    def __init__(
        self, layout: Layout, n: int, intercept: float, seed: int, start="marginals", sampler="gibbs", n_proposals=4,
        first=0, positions=None,
    ):  # fmt: skip
        self.n_proposals = n_proposals
        self.wide = {"gibbs": layout.sizes < 0, "mh": layout.sizes > 0, "auto": layout.sizes >= WIDE}[sampler]
        self.threshold, self.alias, self.log_q = proposals(layout)
        self.layout, self.n, self.seed, self.intercept = layout, n, seed, np.float32(intercept)
        k, padded = layout.n_modalities, int(layout.starts[-1])
        self.first = first
        self.positions = starting_positions(layout, n, seed, start) if positions is None else positions
        self.weights = np.zeros((2, k, padded), np.float32)
        self.bias = np.full((2, padded), kernels.CLOSED, np.float32)
        self.bias[:, layout.padded] = 0.0
        self.theta = np.zeros((k, k), np.float32)
        self.acc = np.zeros((numba.get_num_threads(), k, k), np.int64)

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None:
        """Use these (m,) cell weights from now on."""
        at = self.layout
        kernels.spread(mu, theta, at.rows, at.columns, at.padded, self.weights, self.bias, self.theta)

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Move all chains; (m,) estimates of E[D]·n′/n and E[C]·n′/n: sums over chains (lines 2–7 of Algorithm 1)."""
        at = self.layout
        counts, sums = np.zeros(len(at.rows), np.int64), np.zeros(len(at.rows), np.int64)
        seed = np.uint64(np.random.SeedSequence([self.seed, iteration]).generate_state(1, np.uint64)[0])
        seed = seed_from(seed, self.first)
        for first in range(0, self.n, kernels.SEGMENT):
            kernels.gibbs(
                self.positions, self.weights, self.bias, self.theta, self.intercept, at.partners, at.bounds,
                at.starts, at.sizes, at.position, at.padded, at.offsets, self.wide, self.threshold, self.alias,
                self.log_q, self.n_proposals, seed, n_sweeps, marginalize, first, min(first + kernels.SEGMENT, self.n), self.acc,
            )  # fmt: skip
            kernels.collect(self.acc, at.rows, at.columns, counts, sums)
        return counts.astype(float), sums / kernels.UNIT


def seed_from(seed: np.uint64, first: int) -> np.uint64:
    """The seed under which chain i has the stream that chain `first` + i has under `seed` (see `kernels.stream`)."""
    if first == 0:
        return seed
    with np.errstate(over="ignore"):
        return _unmix(kernels.mix64.py_func(seed) + np.uint64(first) * kernels._GOLDEN)


def _unmix(z: np.uint64) -> np.uint64:
    """Inverse of `kernels.mix64`, which is a bijection."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(31)) ^ (z >> np.uint64(62))) * np.uint64(0x319642B2D24D8EC3)
        z = (z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))) * np.uint64(0x96DE1B173F119089)
        return z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60))


def starting_positions(layout: Layout, n: int, seed: int, how: str) -> np.ndarray:
    """(n, D) positions of independent features, drawn from their marginals or uniformly."""
    rng = np.random.default_rng([seed, 0x5747])
    columns = []
    for offset, size, counts in zip(layout.offsets, layout.sizes, layout.marginals, strict=True):
        p = counts / counts.sum() if how == "marginals" else None
        columns.append(offset + rng.choice(size, n, p=p))
    return np.stack(columns, axis=1).astype(np.uint16)


def proposals(layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(K,) thresholds and aliases (positions) of each feature's proposals, and their log-probabilities."""
    parts = []
    for offset, size, counts in zip(layout.offsets, layout.sizes, layout.marginals, strict=True):
        q = (1 - UNIFORM_SHARE) * counts / counts.sum() + UNIFORM_SHARE / size
        threshold, alias = alias_table(q)
        parts.append((threshold, offset + alias, np.log(q)))
    threshold, alias, log_q = (np.concatenate(part) for part in zip(*parts, strict=True))
    return threshold.astype(np.float32), alias.astype(np.uint16), log_q.astype(np.float32)


def alias_table(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds and aliases of a law (Vose 1991): draw i evenly, keep it with probability threshold[i], else alias."""
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
