"""The clusters of most information, exactly. The smallest loss in m clusters is convex in m (Aggarwal et al. 1994)."""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agglearn.errors import ConfigError
from agglearn.progress import track
from agglearn.vocabulary import kernels
from agglearn.vocabulary.quantizer import Quantizer
from agglearn.vocabulary.rate_order import Ranking, in_threads

MAX_CELLS = 400_000_000  # of a dynamic program's tables
ROUNDING = 1e-13  # fraction of all information that rounding may seem to gain
MAX_GUESSES = 30  # before every step is along a chord


class OptimalQuantizer(Quantizer):
    """Clusters of the largest possible information for the budget, over one feature or many.

    Where the budget exceeds the number of distinct label rates, as many clusters as these are used: they lose nothing.
    `penalty_` is the λ at which the budget is spent (`lagrangian`): about the nats that one more cluster would gain.

    Parameters
    ----------
    budget, algorithm, random_state, min_count, shrinkage, noisy
        As in `Quantizer`. `lagrangian` takes O(n log n) for each λ, `divide`, a dynamic program, O(n·m·log n), and
        `quadratic`, that of Kurkoski and Yagi 2014, O(n²·m). All three find the same loss.
    """

    algorithm: Literal["lagrangian", "divide", "quadratic"] = "lagrangian"

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        budget = min(budget, sum(r.n_ranks for r in rankings))
        if self.algorithm == "lagrangian":
            cuts, self.penalty_ = solve_budget(rankings, budget)
        else:
            cuts = dynamic_program(rankings, budget, self.algorithm)
        return [r.labels(c) for r, c in zip(rankings, cuts, strict=True)]


@dataclass(frozen=True)
class Solution:
    cuts: list[np.ndarray]
    clusters: int
    loss: float


def solve_budget(rankings: list[Ranking], budget: int) -> tuple[list[np.ndarray], float]:
    """Return cuts that lose least with exactly `budget` clusters, and their penalty, bracketed by two solutions."""
    everything, sizes = sum(r.total_information for r in rankings), [r.n_ranks for r in rankings]
    few = Solution([np.empty(0, np.int64)] * len(rankings), len(rankings), everything)
    many = Solution([np.arange(1, n) for n in sizes], sum(sizes), 0.0)
    scratch = [(np.empty(n + 1), *np.empty((3, n + 1), np.int32)) for n in sizes]
    penalties: dict[int, float] = {}  # by number of clusters
    penalty = everything * len(rankings) ** 2 / max(budget, 2) ** 3
    for attempt in track(itertools.count(), "penalties"):
        if not few.clusters < budget < many.clusters:
            break
        chord = many.clusters - few.clusters < max(8, budget // 200) or attempt > MAX_GUESSES
        if chord:
            penalty = (few.loss - many.loss) / (many.clusters - few.clusters)
        elif penalties:
            penalty = _interpolate(penalties, budget)
        solution = _solve(rankings, scratch, penalty)
        gain = few.loss - solution.loss + penalty * (few.clusters - solution.clusters)
        if chord and (gain <= ROUNDING * everything or solution.clusters in (few.clusters, many.clusters)):
            break
        penalties[solution.clusters] = penalty
        few, many = (solution, many) if solution.clusters <= budget else (few, solution)
    return combine(few, many, budget), penalty


def _interpolate(penalties: dict[int, float], budget: int) -> float:
    """The penalty of `budget` clusters by a power law through the nearest solutions, or one of slope −3 through one."""
    below = [m for m in penalties if m <= budget]
    above = [m for m in penalties if m > budget]
    if not (below and above):
        m = max(below) if below else min(above)
        return penalties[m] * (m / budget) ** 3 * (0.9 if below else 1.1)
    m, q = max(below), min(above)
    fraction = np.clip(np.log(budget / m) / np.log(q / m), 0.05, 0.95)
    return float(penalties[m] ** (1 - fraction) * penalties[q] ** fraction)


def _solve(rankings: list[Ranking], scratch: list[tuple], penalty: float) -> Solution:
    """Cheapest cuts, and their loss in nats, at a penalty in nats per cluster."""

    def solve(r: Ranking, arrays: tuple) -> tuple[np.ndarray, float]:
        cuts, loss = kernels.penalised(r.N, r.C, r.S, r.base_rate, penalty * r.N[-1], *arrays)
        return cuts, loss / r.N[-1]

    cuts, losses = zip(*in_threads(solve, rankings, scratch), strict=True)
    return Solution(list(cuts), sum(len(c) + 1 for c in cuts), sum(losses))


def combine(few: Solution, many: Solution, budget: int) -> list[np.ndarray]:
    left, out = budget - few.clusters, []
    for a, b in zip(few.cuts, many.cuts, strict=True):
        take = min(left, max(len(b) - len(a), 0))
        out.append(a if take == 0 else b if take == len(b) - len(a) else splice(a, b, len(a) + take))
        left -= len(out[-1]) - len(a)
    return out


def splice(few: np.ndarray, many: np.ndarray, cuts: int) -> np.ndarray:
    """Return the first cuts of `many` and the last of `few`, joined at a cluster of `many` within one of `few`."""
    a, b = (np.concatenate([[-1], c, [np.iinfo(np.int64).max]]) for c in (few, many))
    extra = cuts - len(few)
    i = extra + int(np.argmax(b[extra + 1 :][: len(a) - 1] <= a[1:]))
    return np.concatenate([b[1 : i + 1], a[i - extra + 1 : -1]])


def dynamic_program(rankings: list[Ranking], budget: int, algorithm: str) -> list[np.ndarray]:
    """Losses are convex, so that the largest savings win."""
    spare, tables, savings = budget - len(rankings), [], []
    for r in track(rankings, "features"):
        limit = min(r.n_ranks, spare + 1)
        if limit * r.n_ranks > MAX_CELLS:
            raise ConfigError(f"algorithm: {algorithm!r} would need tables of {r.n_ranks} × {limit}; use 'lagrangian'")
        loss, starts = kernels.dynamic_program(r.N, r.C, r.S, r.base_rate, limit, algorithm == "divide")
        tables.append(starts)
        savings.append(-np.diff(loss[1:, -1]) / r.N[-1])
    feature = np.repeat(np.arange(len(rankings)), [len(s) for s in savings])
    chosen = feature[np.argsort(-np.concatenate(savings), kind="stable")[:spare]]
    clusters = 1 + np.bincount(chosen, minlength=len(rankings))
    return [_trace_cuts(starts, m) for starts, m in zip(tables, clusters, strict=True)]


def _trace_cuts(starts: np.ndarray, clusters: int) -> np.ndarray:
    cuts, j = [], starts.shape[1] - 1
    for m in range(clusters, 1, -1):
        j = int(starts[m, j])
        cuts.append(j)
    return np.array(cuts[::-1], dtype=np.int64)
