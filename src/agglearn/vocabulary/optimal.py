"""The clusters that keep the most information, exactly and at any size.

Beyond the paper, which has the quadratic dynamic program of Kurkoski and Yagi 2014 for small vocabularies only. The loss
of a cluster satisfies the quadrangle inequality, so that the smallest loss L(m) in m clusters is convex in m
(Aggarwal, Schieber, Tokuyama 1994). A penalty λ per cluster then turns the budget into a least-weight subsequence,
solved in O(n log n); with one λ for all features a global budget is divided optimally too.
"""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agglearn.errors import ConfigError
from agglearn.settings import NonNegative
from agglearn.vocabulary import kernels
from agglearn.vocabulary.quantizer import Budget, Quantizer, Shrinkage
from agglearn.vocabulary.rate_order import Ranking, in_threads

MOST_CELLS = 400_000_000  # of a dynamic program's tables
ROUNDING = 1e-13  # of all information: what rounding may seem to win
MOST_GUESSES = 30  # before every step is along a chord


class OptimalQuantizer(Quantizer):
    """Clusters of the largest possible information for the budget, over one feature or many.

    Where the budget exceeds the number of distinct label rates, as many clusters as these are used: they lose nothing.

    Parameters
    ----------
    budget, min_count, shrinkage, noisy : see `Quantizer`.
    algorithm : `lagrangian`, O(n log n) for each λ tried; `divide`, the dynamic program by divide and conquer, O(n·m·
        log n); `quadratic`, over all beginnings, O(n²·m). All three find the same loss.
    random_state : not used.

    Attributes
    ----------
    penalty_ : λ at which the budget is spent (`lagrangian`): nats that one more cluster would win, about.
    See `Quantizer` for the others.
    """

    def __init__(
        self,
        budget: Budget,
        algorithm: Literal["lagrangian", "divide", "quadratic"] = "lagrangian",
        min_count: NonNegative = 0,
        shrinkage: Shrinkage = None,
        noisy: bool = False,
        random_state=None,
    ):
        super().__init__(budget, min_count, shrinkage, noisy, random_state)
        self.algorithm = algorithm

    def _quantize(self, rankings, budget):
        budget = min(budget, sum(r.n_places for r in rankings))
        if self.algorithm == "lagrangian":
            found, self.penalty_ = spend([Curve(r) for r in rankings], budget)
        else:
            found = dynamic_program(rankings, budget, self.algorithm)
        return [r.labels(c) for r, c in zip(rankings, found, strict=True)]


@dataclass(frozen=True)
class Solution:
    """Cuts of every feature that are best at some penalty; clusters and loss (nats) of all together."""

    cuts: list[np.ndarray]
    clusters: int
    loss: float


class Curve:
    """The best clusters of one feature for any penalty."""

    def __init__(self, ranking: Ranking):
        self.ranking, self.p = ranking, ranking.base_rate
        self.S = kernels.single_information(ranking.N, ranking.C, self.p)
        n = ranking.n_places + 1
        self.scratch = np.empty(n), *(np.empty(n, np.int32) for _ in range(3))

    def at(self, penalty: float) -> tuple[np.ndarray, float]:
        """(cuts, loss in nats) at a penalty in nats per cluster."""
        r = self.ranking
        cuts, loss = kernels.penalised(r.N, r.C, self.S, self.p, penalty * r.N[-1], *self.scratch)
        return cuts, loss / r.N[-1]


def spend(curves: list[Curve], budget: int) -> tuple[list[np.ndarray], float]:
    """Cuts of every feature that lose least with exactly `budget` clusters in all, and the penalty that leads there.

    The penalty is bracketed by two solutions, one of too few and one of too many clusters, and moved by a power law; in
    the end by the chord between them: where no solution lies below the chord, both are best at its slope, and so is
    every mixture of their cuts.
    """
    everything = sum(c.S[-1] / c.ranking.N[-1] for c in curves)
    few = Solution([np.empty(0, np.int64)] * len(curves), len(curves), everything)
    sizes = [c.ranking.n_places for c in curves]
    many = Solution([np.arange(1, n) for n in sizes], sum(sizes), 0.0)
    known, penalty = {}, everything * len(curves) ** 2 / max(budget, 2) ** 3
    for attempt in itertools.count():
        if not few.clusters < budget < many.clusters:
            break
        chord = many.clusters - few.clusters < max(8, budget // 200) or attempt > MOST_GUESSES
        if chord:
            penalty = (few.loss - many.loss) / (many.clusters - few.clusters)
        elif known:
            penalty = _next(known, budget)
        found = solved(curves, penalty)
        ahead = few.loss - found.loss + penalty * (few.clusters - found.clusters)
        if chord and (ahead <= ROUNDING * everything or found.clusters in (few.clusters, many.clusters)):
            break
        known[found.clusters] = penalty
        few, many = (found, many) if found.clusters <= budget else (few, found)
    return mixed(few, many, budget), penalty


def _next(known: dict[int, float], budget: int) -> float:
    """The penalty at which a power law through the nearest solutions has `budget` clusters; alone, one of slope −3."""
    below = [m for m in known if m <= budget]
    above = [m for m in known if m > budget]
    if not (below and above):
        m = max(below) if below else min(above)
        return known[m] * (m / budget) ** 3 * (0.9 if below else 1.1)
    m, q = max(below), min(above)
    share = np.clip(np.log(budget / m) / np.log(q / m), 0.05, 0.95)
    return float(known[m] ** (1 - share) * known[q] ** share)


def solved(curves: list[Curve], penalty: float) -> Solution:
    found = in_threads(lambda c: c.at(penalty), curves)
    return Solution([c for c, _ in found], sum(len(c) + 1 for c, _ in found), sum(loss for _, loss in found))


def mixed(few: Solution, many: Solution, budget: int) -> list[np.ndarray]:
    """Cuts of exactly `budget` clusters from two solutions that are best at the same penalty."""
    left, out = budget - few.clusters, []
    for a, b in zip(few.cuts, many.cuts, strict=True):
        take = min(left, max(len(b) - len(a), 0))
        out.append(a if take == 0 else b if take == len(b) - len(a) else splice(a, b, len(a) + take))
        left -= len(out[-1]) - len(a)
    return out


def splice(few: np.ndarray, many: np.ndarray, cuts: int) -> np.ndarray:
    """The beginning of `many` and the end of `few`, joined where a cluster of `many` lies within one of `few`.

    Exchanging the ends there costs nothing by the quadrangle inequality, and of `cuts` cuts there always is such a
    place (Aggarwal, Schieber, Tokuyama 1994).
    """
    a, b = (np.concatenate([[-1], c, [np.iinfo(np.int64).max]]) for c in (few, many))
    more = cuts - len(few)
    i = more + int(np.argmax(b[more + 1 :][: len(a) - 1] <= a[1:]))
    return np.concatenate([b[1 : i + 1], a[i - more + 1 : -1]])


def dynamic_program(rankings: list[Ranking], budget: int, algorithm: str) -> list[np.ndarray]:
    """Cuts of every feature by a dynamic program; since losses are convex, the largest savings of all features win."""
    program = kernels.divided_program if algorithm == "divide" else kernels.quadratic_program
    spare, tables, savings = budget - len(rankings), [], []
    for r in rankings:
        most = min(r.n_places, spare + 1)
        if most * r.n_places > MOST_CELLS:
            raise ConfigError(f"algorithm: {algorithm!r} would need tables of {r.n_places} × {most}; use 'lagrangian'")
        S = kernels.single_information(r.N, r.C, r.base_rate)
        loss, begins = program(r.N, r.C, S, r.base_rate, most)
        tables.append(begins)
        savings.append(-np.diff(loss[1:, -1]) / r.N[-1])
    feature = np.repeat(np.arange(len(rankings)), [len(s) for s in savings])
    chosen = feature[np.argsort(-np.concatenate(savings), kind="stable")[:spare]]
    clusters = 1 + np.bincount(chosen, minlength=len(rankings))
    return [_traced(begins, m) for begins, m in zip(tables, clusters, strict=True)]


def _traced(begins: np.ndarray, clusters: int) -> np.ndarray:
    cuts, j = [], begins.shape[1] - 1
    for m in range(clusters, 1, -1):
        j = int(begins[m, j])
        cuts.append(j)
    return np.array(cuts[::-1], dtype=np.int64)
