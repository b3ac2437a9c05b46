"""A simulated Markov chain of two states, seen through noisy shares of groups. Curves (`step`) pass through the whole workflow."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agglearn.datasets import Simulated
from agglearn.estimator import Estimator
from agglearn.observations import Observation
from agglearn.seeds import derive_generator
from agglearn.tasks import Measurement, Task, Truth
from agglearn.tasks.keys import NoKeys


class MarkovChain(Simulated):
    """`n_groups` groups of `population` walkers, of whom each leaves with one hidden rate."""

    def __init__(self, population=20_000, n_groups=12):
        super().__init__()
        self.population, self.n_groups = population, n_groups

    def draw(self, seed: int):
        rng = derive_generator("chain", seed)
        rate = rng.uniform(0.6, 0.9, 1)
        return rng.binomial(self.population, rate, self.n_groups) / self.population, rate


@dataclass(frozen=True)
class NodeCounts(Observation):
    """Shares of walkers who left, (n_groups,)."""

    left: np.ndarray


@dataclass(frozen=True)
class Transition(Truth):
    rate: np.ndarray

    def units(self):
        return [self.rate]


class ChainRecovery(Task):
    """How far the learned rate is from the true one, iteration by iteration."""

    MEASURES: ClassVar = {"transition_error": ("", "lower")}
    OBSERVATIONS: ClassVar = ((MarkovChain, NodeCounts, NoKeys, NoKeys),)
    truth: ClassVar = Transition

    def observe(self, source, kind, params, seed):
        left, rate = source.data
        return kind(left), Transition(rate)

    def measure(self, estimator, truth, measures):
        for step, rate in (*estimator.trace_, (None, estimator.rate_)):
            yield Measurement("transition_error", float(np.abs(rate - truth.rate).mean()), step=step)


class ExponentiatedGradient(Estimator):
    """Least squares of the shares, by steps of the gradient."""

    observes = NodeCounts

    def __init__(self, step=2.0, random_state=None):
        self.step = step
        self.random_state = random_state

    def _fit(self, observation):
        self.rate_, self.trace_ = np.full(1, 0.5), []
        for k in range(200):
            if k % 20 == 0:
                self.trace_.append((k, self.rate_))
            self.rate_ = self.rate_ - self.step * (self.rate_ - observation.left.mean()) / 100
