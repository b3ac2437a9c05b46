"""Submodular maximisation of the information kept (Bateni et al. 2019, section 2.3)."""

import math
from typing import Literal

import numpy as np

from agglearn.seeds import derive_seed, draw_seed
from agglearn.settings import NonNegative, Part
from agglearn.vocabulary import kernels
from agglearn.vocabulary.quantizer import Budget, Quantizer, Shrinkage
from agglearn.vocabulary.rate_order import Ranking, in_threads


class SubmodularQuantizer(Quantizer):
    """Lazier-than-lazy greedy cuts: each is the best of n·log(1/ε)/m random candidates (theorem 4).

    Candidates are the borders between distinct label rates; n is their number and m that of cuts. One feature keeps, in
    expectation, at least 1 − 1/e − ε of the information that the best clusters keep. O(n log n). Over several features
    at once (`joint`) a cut is the best of as many candidates as runs on each feature alone would look at together.

    Parameters
    ----------
    budget, min_count, shrinkage, noisy : see `Quantizer`.
    epsilon : ε, in (0, 1).
    allocation : of the budget over several features. `merged`, the paper's: each feature is cut as if it had the whole
        budget, then the cuts of largest gain are kept. `joint`: one greedy run over the candidates of all features,
        which keeps the guarantee, since the sum over features is submodular too.
    random_state : seed.

    Attributes
    ----------
    See `Quantizer`.
    """

    def __init__(
        self,
        budget: Budget,
        epsilon: Part = 0.01,
        allocation: Literal["merged", "joint"] = "merged",
        min_count: NonNegative = 0,
        shrinkage: Shrinkage = None,
        noisy: bool = False,
        random_state=None,
    ):
        super().__init__(budget, min_count, shrinkage, noisy, random_state)
        self.epsilon = epsilon
        self.allocation = allocation

    def _quantize(self, rankings, budget):
        joined, state = ConcatenatedFeatures.of(rankings), draw_seed(self.random_state)
        cuts = min(budget, joined.n_places) - len(rankings)
        cut = (
            self._joint(joined, cuts, state)
            if self.allocation == "joint"
            else self._merged(rankings, joined, cuts, state)
        )
        return [r.labels(c) for r, c in zip(rankings, joined.split(cut), strict=True)]

    def _joint(self, joined: "ConcatenatedFeatures", cuts: int, state: int) -> np.ndarray:
        return self._greedy(joined, cuts, state, "all")[0]

    def _merged(self, rankings: list[Ranking], joined: "ConcatenatedFeatures", cuts: int, state: int) -> np.ndarray:
        runs = in_threads(
            lambda d: self._greedy(
                ConcatenatedFeatures.of([rankings[d]]), min(cuts, rankings[d].n_places - 1), state, d
            ),
            range(len(rankings)),
        )
        order = np.concatenate([o + joined.bounds[d] for d, (o, _) in enumerate(runs)])
        gains = np.concatenate([g for _, g in runs])
        return order[np.argsort(-gains, kind="stable")[:cuts]]

    def _greedy(self, joined: "ConcatenatedFeatures", cuts: int, state: int, stream) -> tuple[np.ndarray, np.ndarray]:
        candidates = np.diff(joined.bounds) - 1
        share = math.log(1 / self.epsilon) / np.maximum(np.minimum(cuts, candidates), 1)
        sample = int(np.ceil(candidates * share).sum())
        key = np.uint64(derive_seed("submodular", state, stream))
        return kernels.stochastic_greedy(joined.N, joined.C, joined.bounds, joined.weights, cuts, sample, key)


class ConcatenatedFeatures:
    """Features side by side, as kernels take them: prefix sums that go on from one feature to the next.

    Attributes
    ----------
    N, C : (P + 1,) prefix sums over the places of all features. bounds : (D + 1,) where features begin.
    weights : (D,) 1 / records of each feature, which turns gains into nats.
    """

    def __init__(self, N, C, bounds, weights):
        self.N, self.C, self.bounds, self.weights = N, C, bounds, weights

    @classmethod
    def of(cls, rankings: list[Ranking]) -> "ConcatenatedFeatures":
        if len(rankings) == 1:
            N, C = rankings[0].N, rankings[0].C
        else:
            N, C = (_chained([getattr(r, name) for r in rankings]) for name in ("N", "C"))
        bounds = np.cumsum([0, *(r.n_places for r in rankings)])
        return cls(N, C, bounds, np.array([1 / r.N[-1] for r in rankings]))

    @property
    def n_places(self) -> int:
        return int(self.bounds[-1])

    def split(self, cuts: np.ndarray) -> list[np.ndarray]:
        """Cuts of each feature, counted from its own first place."""
        cuts = np.sort(cuts)
        at = np.searchsorted(cuts, self.bounds)
        return [cuts[a:b] - low for a, b, low in zip(at[:-1], at[1:], self.bounds[:-1], strict=True)]


def _chained(prefixes: list[np.ndarray]) -> np.ndarray:
    base = np.cumsum([0.0, *(p[-1] for p in prefixes)])
    return np.concatenate([*(p[:-1] + b for p, b in zip(prefixes, base[:-1], strict=True)), base[-1:]])
