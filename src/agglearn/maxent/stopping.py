"""How training runs itself: when to begin to average, when to stop, and when a step was too large."""

import math

import numpy as np

from agglearn.maxent import pcd_step

WINDOW = 20  # iterations in a window at first; later windows grow with the iterations done
GROWTH = 0.25
RESTLESS = (
    6.0  # times the noise of the chains that directions fluctuate by when the steps are too large (seen otherwise: < 5)
)
NEARLY, STALLED = 5.0, 0.8
ROUNDS = 10  # how often as many chains as records are averaged over, so that chains add 5 % to the data's own error


class DirectionMonitor:
    """Mean directions over successive windows of iterations, which tell what is systematic from what is noise.

    Noise has no correlation between windows, so that Σ h·v̄·v̄′ over two of them estimates the systematic part of
    v = g/h alone. Divided by the number of weights that the data determine, it is in squared standard errors of the
    data: a gradient of d has variance d ≈ h.

    Parameters
    ----------
    effective : number of weights that the data determine, for each kind of weight.
    size : of each direction.

    Attributes
    ----------
    sum : directions since the window began, for each kind; whoever moves weights adds to it.
    unstable : whether in the last window directions fluctuated far more than the randomness of the chains explains, and
        no less than before: the steps are too large. Slow but steady progress is not fluctuation.
    """

    def __init__(self, effective: tuple[float, ...], size: int):
        self.effective = effective
        self.sum, self.energy = np.zeros((len(effective), size), np.float32), np.zeros((len(effective), 2))
        self.restart(0)

    def add(self, step: int, curvatures, energy, noise) -> float | None:
        """At the end of a window the largest systematic part, plus one standard error of it; else None.

        The directions v of this step are in `sum` already.

        Parameters
        ----------
        curvatures : h, for each kind. energy : Σ h·v² of this step. noise : what the randomness of the chains alone would
            give for it.
        """
        self.energy += np.transpose([energy, noise])
        if step < self.end:
            return None
        steps, found = step - self.first, None
        mean = self.sum / np.float32(steps)
        if self.before is not None:
            found = max(map(self._systematic, mean, self.before, curvatures, self.effective))
        still = [steps * np.sum(curvature * v**2) for v, curvature in zip(mean, curvatures, strict=True)]
        unrest = float(np.max((self.energy[:, 0] - still) / (self.energy[:, 1] + 1e-9)))
        unstable = unrest > RESTLESS and unrest > 0.7 * self.unrest
        self.restart(step)
        self.unstable = unstable
        self.before, self.unrest = mean, unrest
        self.end = step + max(WINDOW, math.ceil(GROWTH * step))
        return found

    def restart(self, step: int) -> None:
        """Forget all windows; the next one begins after this step."""
        self.sum, self.energy = np.zeros_like(self.sum), np.zeros_like(self.energy)
        self.before, self.unrest, self.unstable = None, math.inf, False
        self.first, self.end = step, step + WINDOW

    @staticmethod
    def _systematic(now, before, curvature, effective):
        product = now * before * curvature
        return (product.sum() + math.sqrt(np.sum(product**2))) / effective


class Schedule:
    """Keeps the running mean of (μ, θ) and says which iteration is the last.

    Parameters
    ----------
    max_iter : iterations at most. average : share of the iterations, at the end, over which the mean is taken.
    tol : training has settled when the systematic part of the directions is below this many standard errors of the
        data, per weight, or below five times as many and no longer falling; 0 to never say so.
    at_least : iterations to average over once settled.
    """

    def __init__(self, max_iter: int, average: float, tol: float, at_least: int = 0):
        self.average, self.tol, self.at_least = average, tol, at_least
        self.last, self.first = max_iter, math.ceil(max_iter * (1 - average))
        self.settled = False
        self.result: np.ndarray | tuple = ()
        self._averaged, self._said = 0, []

    def add(self, step: int, mu: np.ndarray, theta: np.ndarray, systematic: float | None) -> None:
        """Take in the iterate of a step and what `DirectionMonitor` say; `result` is the model if one stopped here."""
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
        self._said.append(systematic)
        stalled = len(self._said) > 2 and systematic > STALLED * self._said[-3]
        return systematic < self.tol**2 or (stalled and systematic < (NEARLY * self.tol) ** 2)

    def _settle(self, step):
        self.first, self.settled = step, True
        if 0 < self.average < 1:
            more = max(self.at_least, math.ceil(step * self.average / (1 - self.average)))
            self.last = min(self.last, step + more)
        elif self.average == 0:
            self.last = step


def effective(counts: np.ndarray, l2: float) -> float:
    """Number of weights that the data determine, Σ h/(h + 2λ) over cells with information h; at least 1."""
    h = np.maximum(counts, 0.0)
    return max(float(np.sum(h / (h + 2 * l2 + 1e-9))), 1.0)
