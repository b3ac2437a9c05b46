"""The distributed algorithm: forced cuts split the candidates over machines (Bateni et al. 2019, section 2.3)."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from agglearn.optional import active_session
from agglearn.settings import Part
from agglearn.vocabulary import kernels
from agglearn.vocabulary.quantizer import Quantizer
from agglearn.vocabulary.rate_order import Ranking, in_threads
from agglearn.vocabulary.submodular import ConcatenatedFeatures


class Machine(NamedTuple):
    """Data of one machine: prefix sums over its own ranks, and the factor that turns gains into nats."""

    N: np.ndarray
    C: np.ndarray
    weight: float


@contextlib.contextmanager
def on_machines(machines: list[Machine], engine: str) -> Iterator[Callable[[Callable[[Machine], Any]], list]]:
    """A function that runs a function on all machines: in threads, or as tasks of a Spark session (theorem 5).

    To Spark, data are sent once, and again if their executor is lost.
    """
    if engine == "local":
        yield lambda work: in_threads(work, machines)
        return
    data = active_session().sparkContext.parallelize(machines, len(machines)).cache()
    yield lambda work: data.map(work).collect()
    data.unpersist()


class DistributedSubmodularQuantizer(Quantizer):
    """Decreasing thresholds on εk machines, k the number of cuts that the budget allows (theorem 5).

    The (j·n/εk)-th candidates are cut beforehand, so that no machine depends on the others. In round i every cut whose
    gain is at least w₀(1 − ε)^i is made, w₀ the largest gain, until there are k. The paper stops at w₀/n, here the last
    threshold is w₀/n³. The clusters have at least 1 − 1/e − 2ε of the information of the best ones. O(n log² n).
    The attributes `n_machines_` and `n_rounds_` are the numbers of machines and of rounds, `machine_size_` is the largest
    number of ranks on a machine, of `n_ranks_` distinct rates in all.

    Parameters
    ----------
    budget, epsilon, engine, random_state, min_count, shrinkage, noisy
        As in `Quantizer`. ε is in (0, 1). Machines are threads (`local`) or Spark tasks (`spark`), with equal results.
    """

    epsilon: Part = 0.1
    engine: Literal["local", "spark"] = "local"

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        joined = ConcatenatedFeatures.from_rankings(rankings)
        cuts = min(budget, joined.n_ranks) - len(rankings)
        borders, machines = split_over_machines(joined, max(1, math.floor(self.epsilon * cuts)))
        self.n_machines_, self.machine_size_ = len(machines), max(len(machine.N) - 1 for machine in machines)
        self.n_ranks_ = joined.n_ranks
        forced = np.setdiff1d(borders[1:-1], joined.bounds)
        rounds = math.ceil(3 * math.log(max(joined.n_ranks, 2)) / -math.log1p(-self.epsilon)) + 1
        limit, epsilon = cuts - len(forced), self.epsilon
        with on_machines(machines, self.engine) as run:
            largest = max(run(lambda m: m.weight * kernels.largest_gain(m.N, m.C)))
            results = run(lambda m: kernels.threshold_cuts(m.N, m.C, largest / m.weight, epsilon, rounds, limit))
        candidates = np.concatenate([c + low for (c, _), low in zip(results, borders, strict=False)])
        round_of = np.concatenate([i for _, i in results])
        first = np.argsort(round_of, kind="stable")[:limit]
        self.n_rounds_ = int(round_of[first].max(initial=-1)) + 1
        return [r.labels(c) for r, c in zip(rankings, joined.split(np.append(forced, candidates[first])), strict=True)]


def split_over_machines(joined: ConcatenatedFeatures, machines: int) -> tuple[np.ndarray, list[Machine]]:
    """Borders of the ranks of each machine, and the machines. No machine has ranks of two features."""
    even = np.arange(machines + 1) * joined.n_ranks // machines
    borders = np.unique(np.append(even, joined.bounds))
    feature = np.searchsorted(joined.bounds, borders[:-1], side="right") - 1
    return borders, [
        Machine(joined.N[a : b + 1] - joined.N[a], joined.C[a : b + 1] - joined.C[a], float(joined.weights[d]))
        for a, b, d in zip(borders[:-1], borders[1:], feature, strict=True)
    ]
