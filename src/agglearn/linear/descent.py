"""Gradient descent as the note has it: both sides of the gradient from all records, the left from a mini-batch and the
right from all ("hybrid"), or both from one mini-batch, which needs labels."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit


@dataclass
class Descent:
    """min F/N by θ ← θ − rate_t · gradient.

    Attributes
    ----------
    x : (n, k). weights : (n,). penalty : (k,) λ_j, as in `Objective`.
    right : (step, rows or None) → (k,) the right-hand side, a mean over the records that it takes.
    batch_size : rows of a mini-batch, drawn with replacement; None for all rows.
    rate : the note's learning rate; None for one per coordinate, 1/(¼ Σ_i w_i|x_ij|·‖x_i‖₁/N + 2λ_j/N), at which descent
        on all rows cannot diverge. With mini-batches it falls as (1 + steps·batch/N)^−½.
    steps : how many. traced : how many of them to keep.
    labels, noise_variance : of the right side where it is from the mini-batch, or has noise: for `gradient_error`.
    """

    x: sparse.csr_array
    weights: np.ndarray
    penalty: np.ndarray
    right: Callable
    batch_size: int | None
    rate: float | None
    steps: int
    traced: int = 0
    labels: np.ndarray | None = None
    noise_variance: float = 0.0

    def run(self, rng: np.random.Generator) -> tuple[np.ndarray, list]:
        """(k,) θ, with mini-batches the mean over the second half of the steps; and [(step, seconds, θ, gradient error)]."""
        n, theta, mean = self.x.shape[0], np.zeros(self.x.shape[1]), None
        rate, marks, trace = self._rates(), self._marks(), []
        begin, half = time.perf_counter(), self.steps // 2
        for t in range(1, self.steps + 1):
            rows = None if self.batch_size is None else rng.integers(n, size=self.batch_size)
            gradient = self._left(theta, rows) - self.right(t, rows) + 2 * self.penalty / n * theta
            fall = 1.0 if rows is None else (1 + t * self.batch_size / n) ** -0.5
            theta = theta - fall * rate * gradient
            if rows is not None and t > half:
                mean = theta if mean is None else mean + (theta - mean) / (t - half)
            if t in marks:
                shown = theta if mean is None else mean
                trace.append((t, time.perf_counter() - begin, shown.copy(), self.gradient_error(shown)))
        return theta if mean is None else mean, trace

    def _left(self, theta: np.ndarray, rows) -> np.ndarray:
        """The mean of w p X over all rows or a mini-batch."""
        x, w = (self.x, self.weights) if rows is None else (self.x[rows], self.weights[rows])
        return x.T @ (w * expit(x @ theta)) / x.shape[0]

    def _rates(self):
        if self.rate is not None:
            return self.rate
        size = abs(self.x)
        bound = size.T @ (self.weights * np.asarray(size.sum(axis=1)).ravel()) / 4 + 2 * self.penalty
        return self.x.shape[0] / np.maximum(bound, 1e-12)

    def _marks(self) -> set[int]:
        """Steps to trace, evenly spaced in their logarithm."""
        if not self.traced:
            return set()
        return set(np.unique(np.round(np.geomspace(1, self.steps, self.traced)).astype(int)).tolist())

    def gradient_error(self, theta: np.ndarray) -> float:
        """Root mean square distance of one step's gradient at θ from that of F/N with exact sums, over mini-batches and
        noise: √((mean‖v‖² − ‖mean v‖²)/m + kσ²/N²), v = w p X for hybrid steps, w (p − y) X for traditional ones."""
        p = expit(self.x @ theta)
        per_row = self.weights * (p if self.labels is None else p - self.labels)
        n, k = self.x.shape
        spread = 0.0
        if self.batch_size is not None:
            squared = np.asarray((self.x * self.x).sum(axis=1)).ravel()
            mean = self.x.T @ per_row / n
            spread = (np.mean(per_row**2 * squared) - mean @ mean) / self.batch_size
        return float(np.sqrt(max(spread, 0.0) + k * self.noise_variance / n**2))
