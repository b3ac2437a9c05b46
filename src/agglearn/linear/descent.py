"""Gradient descent of the note on WALR. Hybrid steps take the label term from all records, others from a mini-batch."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

from agglearn.progress import track

Iterate = tuple[int, float, np.ndarray, float]  # step, seconds, θ, error of the gradient


@dataclass
class Descent:
    """min F/N by θ ← θ − rate_t · gradient."""

    x: sparse.csr_array  # (n, k) coordinates
    weights: np.ndarray  # (n,), of the records
    penalty: np.ndarray  # (k,) λ_j, as in `Objective`
    label_term: Callable[[int, np.ndarray | None], np.ndarray]  # (step, rows) → (k,) mean of y X over them
    batch_size: int | None  # rows of a mini-batch, drawn with replacement, None for all rows
    rate: float | None  # the note's learning rate, None for `_rates`
    steps: int
    traced: int = 0  # number of steps whose θ is recorded, evenly spaced in their logarithm
    labels: np.ndarray | None = None  # (n,), if the label term comes from the mini-batch, for `gradient_error`
    noise_variance: float = 0.0  # of the noise in N times the label term, for `gradient_error`

    def run(self, rng: np.random.Generator) -> tuple[np.ndarray, list[Iterate]]:
        """(k,) θ and the recorded iterates. With mini-batches θ is the mean over the second half of the steps."""
        n, theta, mean = self.x.shape[0], np.zeros(self.x.shape[1]), None
        rate, trace = self._rates(), []
        marks = set(np.geomspace(1, self.steps, self.traced).round().astype(int).tolist())
        started, half = time.perf_counter(), self.steps // 2
        for t in track(range(1, self.steps + 1), "descent"):
            rows, decay = None, 1.0
            if self.batch_size is not None:
                rows, decay = rng.integers(n, size=self.batch_size), (1 + t * self.batch_size / n) ** -0.5
            gradient = self._model_term(theta, rows) - self.label_term(t, rows) + 2 * self.penalty / n * theta
            theta = theta - decay * rate * gradient
            if rows is not None and t > half:
                mean = theta if mean is None else mean + (theta - mean) / (t - half)
            if t in marks:
                iterate = theta if mean is None else mean
                trace.append((t, time.perf_counter() - started, iterate.copy(), self.gradient_error(iterate)))
        return theta if mean is None else mean, trace

    def _model_term(self, theta: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        x, w = (self.x, self.weights) if rows is None else (self.x[rows], self.weights[rows])
        return x.T @ (w * expit(x @ theta)) / x.shape[0]

    def _rates(self) -> float | np.ndarray:
        """One rate, or (k,) 1/(¼ Σ_i w_i|x_ij|·‖x_i‖₁/N + 2λ_j/N), with which descent on all rows cannot diverge."""
        if self.rate is not None:
            return self.rate
        size = abs(self.x)
        bound = size.T @ (self.weights * np.asarray(size.sum(axis=1)).ravel()) / 4 + 2 * self.penalty
        return self.x.shape[0] / np.maximum(bound, 1e-12)

    def gradient_error(self, theta: np.ndarray) -> float:
        """Root mean square distance √((mean‖v‖² − ‖mean v‖²)/m + kσ²/N²) of one step's gradient from that of F/N."""
        p = expit(self.x @ theta)
        per_row = self.weights * (p if self.labels is None else p - self.labels)
        n, k = self.x.shape
        spread = 0.0
        if self.batch_size is not None:
            squared = np.asarray((self.x * self.x).sum(axis=1)).ravel()
            mean = self.x.T @ per_row / n
            spread = (np.mean(per_row**2 * squared) - mean @ mean) / self.batch_size
        return float(np.sqrt(max(spread, 0.0) + k * self.noise_variance / n**2))
