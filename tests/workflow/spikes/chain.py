"""A simulated Markov chain seen through noisy counts per state and time. Curves (`step`) pass through the whole workflow."""

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
    """`population` walkers on `n_states` states, `n_groups` groups with starts of their own."""

    def __init__(self, n_states=3, population=20_000, n_groups=12):
        super().__init__()
        self.n_states, self.population, self.n_groups = n_states, population, n_groups

    def draw(self, seed: int):
        rng = derive_generator("chain", self.n_states, seed)
        transition = rng.dirichlet(np.ones(self.n_states), size=self.n_states)
        starts = rng.dirichlet(np.ones(self.n_states), size=self.n_groups)
        before = np.array([rng.multinomial(self.population, s) for s in starts])
        after = np.array([sum(rng.multinomial(n, transition[i]) for i, n in enumerate(row)) for row in before])
        return before, after, transition


@dataclass(frozen=True)
class NodeCounts(Observation):
    """Walkers per state before and after one step, (n_groups, n_states) each."""

    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True)
class Transition(Truth):
    matrix: np.ndarray

    def units(self):
        return [self.matrix]


class ChainRecovery(Task):
    """How far the learned transition matrix is from the true one, iteration by iteration."""

    MEASURES: ClassVar = {"transition_error": ("", "lower")}
    OBSERVATIONS: ClassVar = ((MarkovChain, NodeCounts, NoKeys, NoKeys),)
    truth: ClassVar = Transition

    def observe(self, source, kind, params, seed):
        before, after, matrix = source.data
        return kind(before, after), Transition(matrix)

    def measure(self, estimator, truth, measures):
        for step, matrix in estimator.trace_:
            yield Measurement("transition_error", float(np.abs(matrix - truth.matrix).mean()), step=step)
        yield Measurement("transition_error", float(np.abs(estimator.transition_ - truth.matrix).mean()))


class ExponentiatedGradient(Estimator):
    """Least squares of after ≈ before·P over stochastic matrices P."""

    observes = NodeCounts

    def __init__(self, step=2.0, max_iter=200, random_state=None):
        self.step = step
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, observation):
        x = observation.before / observation.before.sum(1, keepdims=True)
        y = observation.after / observation.after.sum(1, keepdims=True)
        p, self.trace_ = np.full((x.shape[1],) * 2, 1 / x.shape[1]), []
        for k in range(self.max_iter):
            if k % 20 == 0:
                self.trace_.append((k, p.copy()))
            p = p * np.exp(-self.step * x.T @ (x @ p - y))
            p /= p.sum(1, keepdims=True)
        self.transition_ = p
