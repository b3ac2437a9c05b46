"""The distributed algorithm: forced cuts part the candidates over machines (Bateni et al. 2019, section 2.3)."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agglearn.settings import NonNegative, Part
from agglearn.vocabulary import kernels
from agglearn.vocabulary.quantizer import Budget, Quantizer, Shrinkage
from agglearn.vocabulary.rate_order import in_threads
from agglearn.vocabulary.submodular import ConcatenatedFeatures


@dataclass(frozen=True)
class Machine:
    """What one machine holds: prefix sums over its own places, and the factor that turns gains into nats."""

    N: np.ndarray
    C: np.ndarray
    weight: float

    def largest_gain(self) -> float:
        """Of a single cut, in nats."""
        return self.weight * kernels.largest_gain(self.N, self.C)

    def cuts(self, largest: float, epsilon: float, rounds: int, most: int) -> tuple[np.ndarray, np.ndarray]:
        """(cuts, the round of each) by thresholds that decrease from `largest`."""
        return kernels.threshold_cuts(self.N, self.C, largest / self.weight, epsilon, rounds, most)


class Machines:
    """Machines as parts in this process."""

    def __init__(self, machines: list[Machine]):
        self._held = machines

    def ask(self, question: str, *arguments) -> list:
        """What every machine answers, in their order."""
        return in_threads(lambda machine: getattr(machine, question)(*arguments), self._held)

    def close(self) -> None:
        """Nothing is held elsewhere."""


class DistributedSubmodularQuantizer(Quantizer):
    """Decreasing thresholds on εk machines, k the number of cuts that the budget allows (theorem 5).

    The (j·n/εk)-th candidates are cut beforehand, so that no machine needs to know what others do; each machine holds
    n/(εk) places. In round i every cut whose gain is at least w₀(1 − ε)^i is made, w₀ the largest gain of all, until k are
    made; those beyond k are dropped. At least 1 − 1/e − 2ε of the information of the best clusters is kept. The paper stops
    at a threshold of w₀/n, by when small gains are left; here it is w₀/n³. O(n log² n) work.

    Parameters
    ----------
    budget, min_count, shrinkage, noisy : see `Quantizer`.
    epsilon : ε, in (0, 1).
    engine : `local`, machines are parts in this process; `spark`, they are tasks of the active Spark session, and only the
        ranking is done here. Both give the same clusters.
    random_state : not used.

    Attributes
    ----------
    n_machines_ : machines. n_rounds_ : rounds until the budget was spent. See `Quantizer` for the others.
    """

    def __init__(
        self,
        budget: Budget,
        epsilon: Part = 0.1,
        engine: Literal["local", "spark"] = "local",
        min_count: NonNegative = 0,
        shrinkage: Shrinkage = None,
        noisy: bool = False,
        random_state=None,
    ):
        super().__init__(budget, min_count, shrinkage, noisy, random_state)
        self.epsilon = epsilon
        self.engine = engine

    def _quantize(self, rankings, budget):
        joined = ConcatenatedFeatures.of(rankings)
        cuts = min(budget, joined.n_places) - len(rankings)
        borders, machines = split_over_machines(joined, max(1, math.floor(self.epsilon * cuts)))
        self.n_machines_ = len(machines)
        forced = np.setdiff1d(borders[1:-1], joined.bounds)
        rounds = math.ceil(3 * math.log(max(joined.n_places, 2)) / -math.log1p(-self.epsilon)) + 1
        found = self._ask(machines, rounds, cuts - len(forced))
        chosen = np.concatenate([c + low for (c, _), low in zip(found, borders, strict=False)])
        made = np.concatenate([i for _, i in found])
        kept = np.argsort(made, kind="stable")[: cuts - len(forced)]
        self.n_rounds_ = int(made[kept].max(initial=-1)) + 1
        return [r.labels(c) for r, c in zip(rankings, joined.split(np.append(forced, chosen[kept])), strict=True)]

    def _ask(self, machines: list[Machine], rounds: int, most: int) -> list:
        """What every machine cuts: they are asked for their largest gain, then for their cuts."""
        if self.engine == "spark":
            from agglearn.vocabulary.spark_machines import SparkMachines as Asked
        else:
            Asked = Machines
        asked = Asked(machines)
        largest = max(asked.ask("largest_gain"))
        found = asked.ask("cuts", largest, self.epsilon, rounds, most)
        asked.close()
        return found


def split_over_machines(joined: ConcatenatedFeatures, machines: int) -> tuple[np.ndarray, list[Machine]]:
    """Borders of the parts, and what the machine of each holds; a part that spans features falls into one per feature."""
    even = np.arange(machines + 1) * joined.n_places // machines
    borders = np.unique(np.append(even, joined.bounds))
    feature = np.searchsorted(joined.bounds, borders[:-1], side="right") - 1
    return borders, [
        Machine(joined.N[a : b + 1] - joined.N[a], joined.C[a : b + 1] - joined.C[a], float(joined.weights[d]))
        for a, b, d in zip(borders[:-1], borders[1:], feature, strict=True)
    ]
