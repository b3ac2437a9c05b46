"""When to average and when to stop: Polyak averaging over the end of training, early when θ has settled."""

import math

import numpy as np

WINDOW = 10  # iterations over which θ is averaged to tell movement from noise


class Schedule:
    """Keeps the running mean of (μ, θ) and says which iteration is the last.

    Parameters
    ----------
    max_iter : iterations at most. average : share of the iterations, at the end, over which the mean is taken.
    tol : θ has settled when ‖θ̄ − θ̄′‖ < tol·‖θ̄‖ for means over successive windows; 0 to never say so.
    weights : (m,) weight of each cell in that norm.
    """

    def __init__(self, max_iter: int, average: float, tol: float, weights: np.ndarray):
        self.average, self.tol, self.weights = average, tol, weights
        self.last, self.first = max_iter, math.ceil(max_iter * (1 - average))
        self.result: np.ndarray | tuple = ()
        self._averaged, self._window, self._before = 0, np.zeros(len(weights)), None

    def add(self, step: int, mu: np.ndarray, theta: np.ndarray) -> None:
        """Take in the iterate of a step; `result` is the model that one would have by stopping here."""
        if step <= self.first:
            self.result = (mu, theta)
            self._watch(step, theta)
            return
        self._averaged += 1
        if self._averaged == 1:
            self.result = np.zeros((2, len(theta)))
        self.result[0] += (mu - self.result[0]) / self._averaged
        self.result[1] += (theta - self.result[1]) / self._averaged

    def _watch(self, step, theta):
        self._window += theta / WINDOW
        if step % WINDOW:
            return
        if self._before is not None and self._moved() < self.tol:
            self.first = step
            more = math.ceil(step * self.average / (1 - self.average)) if self.average < 1 else self.last
            self.last = min(self.last, step + more)
        self._before, self._window = self._window, np.zeros_like(theta)

    def _moved(self) -> float:
        norm, change = (np.sum(self.weights * v**2) for v in (self._window, self._window - self._before))
        return math.sqrt(change / max(norm, 1e-12))
