"""Submodular maximisation of the preserved information (Bateni et al. 2019, section 2.3)."""

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import Part
from agglearn.vocabulary import kernels
from agglearn.vocabulary.quantizer import Quantizer
from agglearn.vocabulary.rate_order import Ranking, in_threads


class SubmodularQuantizer(Quantizer):
    """Lazier-than-lazy greedy cuts: each is the best of n·log(1/ε)/m random candidates (theorem 4).

    Candidates are the n borders between distinct label rates, and m is the number of cuts. In expectation the clusters
    of one feature have at least 1 − 1/e − ε of the information of the best ones. O(n log n).

    Parameters
    ----------
    budget, epsilon, allocation, random_state, min_count, shrinkage, noisy
        As in `Quantizer`. ε is in (0, 1). `merged` is the paper's: each feature is cut as if it had the whole budget,
        then the cuts of largest gain are taken. `joint` is one greedy run over all features with the same guarantee.
    """

    epsilon: Part = 0.01
    allocation: Literal["merged", "joint"] = "merged"

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        joined, state = ConcatenatedFeatures.from_rankings(rankings), draw_seed(self.random_state)
        cuts = min(budget, joined.n_ranks) - len(rankings)
        if self.allocation == "joint":
            chosen = self._run_greedy(joined, cuts, state, "all")[0]
        else:
            chosen = self._merge(rankings, joined, cuts, state)
        return [r.labels(c) for r, c in zip(rankings, joined.split(chosen), strict=True)]

    def _merge(self, rankings: list[Ranking], joined: "ConcatenatedFeatures", cuts: int, state: int) -> np.ndarray:
        def run(d: int, ranking: Ranking) -> tuple[np.ndarray, np.ndarray]:
            alone = ConcatenatedFeatures.from_rankings([ranking])
            return self._run_greedy(alone, min(cuts, ranking.n_ranks - 1), state, d)

        runs = in_threads(run, range(len(rankings)), rankings)
        order = np.concatenate([o + joined.bounds[d] for d, (o, _) in enumerate(runs)])
        gains = np.concatenate([g for _, g in runs])
        return order[np.argsort(-gains, kind="stable")[:cuts]]

    def _run_greedy(
        self, joined: "ConcatenatedFeatures", cuts: int, state: int, stream: str | int
    ) -> tuple[np.ndarray, np.ndarray]:
        candidates = np.diff(joined.bounds) - 1
        fraction = math.log(1 / self.epsilon) / np.maximum(np.minimum(cuts, candidates), 1)
        sample = int(np.ceil(candidates * fraction).sum())
        key = np.uint64(derive_seed("submodular", state, stream))
        return kernels.stochastic_greedy(joined.N, joined.C, joined.bounds, joined.weights, cuts, sample, key)


@dataclass(frozen=True)
class ConcatenatedFeatures:
    """Features side by side, as kernels take them: prefix sums that go on from one feature to the next."""

    N: np.ndarray  # (P + 1,) prefix sums of records over the ranks of all features
    C: np.ndarray  # (P + 1,) those of label sums
    bounds: np.ndarray  # (D + 1,) starts of the features, and the end
    weights: np.ndarray  # (D,) 1 / records of each feature, which turns gains into nats

    @classmethod
    def from_rankings(cls, rankings: list[Ranking]) -> Self:
        bounds = np.cumsum([0, *(r.n_ranks for r in rankings)])
        weights = np.array([1 / r.N[-1] for r in rankings])
        return cls(_chain([r.N for r in rankings]), _chain([r.C for r in rankings]), bounds, weights)

    @property
    def n_ranks(self) -> int:
        return int(self.bounds[-1])

    def split(self, cuts: np.ndarray) -> list[np.ndarray]:
        cuts = np.sort(cuts)
        ends = np.searchsorted(cuts, self.bounds)
        return [cuts[a:b] - low for a, b, low in zip(ends[:-1], ends[1:], self.bounds[:-1], strict=True)]


def _chain(prefixes: list[np.ndarray]) -> np.ndarray:
    base = np.cumsum([0.0, *(p[-1] for p in prefixes)])
    return np.concatenate([*(p[:-1] + b for p, b in zip(prefixes, base[:-1], strict=True)), base[-1:]])
