"""Persistent Gibbs chains of the pairwise model (Gilotte et al. 2022, section 3.4)."""

import numba
import numpy as np

from agglearn.maxent import kernels
from agglearn.maxent.weight_index import Layout

WIDE = 1000  # modalities from which `auto` takes Metropolis–Hastings: there it is about even with Gibbs, at 300 behind
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
        self, layout: Layout, n: int, intercept: float, seed: int, start="marginals", sampler="gibbs", n_proposals=8,
        first=0, positions=None,
    ):  # fmt: skip
        self.layout, self.n, self.seed, self.intercept = layout, n, seed, np.float32(intercept)
        self.first, self.n_proposals = first, n_proposals
        self.proposals = kernels.Proposals(wide_features(layout, sampler), *proposals(layout))
        self.positions = starting_positions(layout, n, seed, start) if positions is None else positions
        k, padded = layout.n_modalities, int(layout.starts[-1])
        self.weights = np.zeros((2, k + 1, padded), np.float32)
        self.weights[:, -1] = kernels.CLOSED
        self.weights[:, -1, layout.padded] = 0.0
        self.theta = np.zeros((k, k), np.float32)
        self.acc = np.zeros((numba.get_num_threads(), len(layout.rows)), np.int64)

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None:
        """Use these (w,) weights from now on."""
        at = self.layout
        kernels.spread(at.expand(mu), at.expand(theta), at.rows, at.columns, at.padded, self.weights, self.theta)

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Move all chains; (w,) estimates of E[D]·n′/n and E[C]·n′/n: sums over chains (lines 2–7 of Algorithm 1)."""
        counts, sums = np.zeros((2, len(self.layout.rows)), np.int64)
        seed = np.random.SeedSequence([self.seed, iteration]).generate_state(1, np.uint64)[0]
        for first in range(0, self.n, kernels.SEGMENT):
            kernels.gibbs(
                self.positions[first : first + kernels.SEGMENT], self.first + first, self.weights, self.theta,
                self.intercept, self.layout.space, self.proposals, self.n_proposals, seed, n_sweeps, marginalize, self.acc,
            )  # fmt: skip
            kernels.collect(self.acc, counts, sums)
        return self.layout.fold(counts.astype(float)), self.layout.fold(sums / kernels.UNIT)


def wide_features(layout: Layout, sampler: str) -> np.ndarray:
    """(D,) which features are moved by Metropolis–Hastings."""
    return {"gibbs": layout.sizes < 0, "mh": layout.sizes > 0, "auto": layout.sizes >= WIDE}[sampler]


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
