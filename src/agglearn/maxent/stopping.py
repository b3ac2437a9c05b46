"""When training starts to average, when it stops, and when its steps are too large."""

import math
from collections.abc import Iterator, Sequence
from itertools import count, takewhile

import numpy as np

from agglearn.maxent import pcd_step

WINDOW = 20  # iterations in the first window (later ones grow with the iterations done)
GROWTH = 0.25
RESTLESS = 6.0  # a step is too large if the variance of directions is as many times that of the chains (otherwise < 5)
NEARLY, STALLED = 5.0, 0.8
ROUNDS = 10  # how often as many chains as records are averaged over, so that chains add 5 % to the data's own error


class DirectionMonitor:
    """Mean directions v = g/h over windows of iterations. Σ h·v̄·v̄′ of two windows estimates what is not noise."""

    def __init__(self, effective: tuple[float, ...], size: int) -> None:
        self.effective = effective
        self.sum, self.energy = np.zeros((len(effective), size), np.float32), np.zeros((len(effective), 2))
        self.restart(0)

    def restart(self, step: int) -> None:
        self.sum, self.energy = np.zeros_like(self.sum), np.zeros_like(self.energy)
        self.before: np.ndarray | None = None
        self.unrest, self.unstable = math.inf, False
        self.first, self.end = step, step + WINDOW

    def add(
        self, step: int, curvatures: Sequence[np.ndarray], energy: Sequence[float], noise: Sequence[float]
    ) -> float | None:
        """Return the largest systematic part plus one standard error of it at the end of a window, else None."""
        self.energy += np.transpose([energy, noise])
        if step < self.end:
            return None
        steps, systematic = step - self.first, None
        mean = self.sum / np.float32(steps)
        if self.before is not None:
            systematic = max(map(self._systematic, mean, self.before, curvatures, self.effective))
        still = [steps * np.sum(curvature * v**2) for v, curvature in zip(mean, curvatures, strict=True)]
        unrest = float(np.max((self.energy[:, 0] - still) / (self.energy[:, 1] + 1e-9)))
        unstable = unrest > RESTLESS and unrest > 0.7 * self.unrest
        self.restart(step)
        self.unstable = unstable
        self.before, self.unrest = mean, unrest
        self.end = step + max(WINDOW, math.ceil(GROWTH * step))
        return systematic

    @staticmethod
    def _systematic(now: np.ndarray, before: np.ndarray, curvature: np.ndarray, effective: float) -> float:
        product = now * before * curvature
        return (product.sum() + math.sqrt(np.sum(product**2))) / effective


class StoppingRule:
    """Running mean `result` of (μ, θ), over `at_least` so many iterations once settled, and the `last` iteration."""

    def __init__(self, max_iter: int, average: float, tol: float, at_least: int = 0) -> None:
        self.average, self.tol, self.at_least = average, tol, at_least
        self.last, self.first = max_iter, math.ceil(max_iter * (1 - average))
        self.settled = False
        self.result: np.ndarray | tuple[np.ndarray, np.ndarray] = np.empty((2, 0))
        self._averaged = 0
        self._history: list[float] = []

    def steps(self) -> Iterator[int]:
        return takewhile(lambda step: step <= self.last, count(1))

    def add(self, step: int, mu: np.ndarray, theta: np.ndarray, systematic: float | None) -> None:
        if step <= self.first:
            self.result = (mu, theta)
            if systematic is not None and self.tol > 0 and self._quiet(systematic):
                self._settle(step)
            return
        self._averaged += 1
        if self._averaged == 1:
            self.result = np.zeros((2, len(theta)))
        pcd_step.average(self.result[0], mu, self._averaged)
        pcd_step.average(self.result[1], theta, self._averaged)

    def _quiet(self, systematic: float) -> bool:
        """Whether nothing systematic is left, or little that has not fallen by a fifth over two windows."""
        self._history.append(systematic)
        stalled = len(self._history) > 2 and systematic > STALLED * self._history[-3]
        return systematic < self.tol**2 or (stalled and systematic < (NEARLY * self.tol) ** 2)

    def _settle(self, step: int) -> None:
        self.first, self.settled = step, True
        if 0 < self.average < 1:
            remaining = max(self.at_least, math.ceil(step * self.average / (1 - self.average)))
            self.last = min(self.last, step + remaining)
        elif self.average == 0:
            self.last = step


def effective_weights(counts: np.ndarray, l2: float) -> float:
    """Return the number of weights that the data determine, Σ h/(h + 2λ) over cells with information h, at least 1."""
    h = np.maximum(counts, 0.0)
    return max(float(np.sum(h / (h + 2 * l2 + 1e-9))), 1.0)
