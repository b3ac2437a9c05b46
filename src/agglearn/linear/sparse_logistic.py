"""L2-regularised logistic regression on sparse binary designs with grouped rows: the solver of all baselines here."""

from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from scipy.optimize import minimize
from scipy.special import expit

PARTS = 4  # fixed runs of rows whose gradients are added in order, whatever the number of threads
WORTH_THREADS = 200_000  # active weights of all rows from which threads pay


@njit(cache=True)
def rows_loss(index, counts, positives, weights, intercept, z, out):
    """Negative log-likelihood of grouped rows and its gradient.

    Table after table, two at a time: the weights of two tables stay in the first cache, those of all do not.

    Parameters
    ----------
    index : (P, n) int32, the active weight of each row in each table.
    counts, positives : (n,) records of the row, and those with label 1.
    weights : (m,); intercept : added to every row. z : (n,) room to work.
    out : (m + 2,), overwritten: the gradient, then that of the intercept, then the loss.
    """
    tables, n, m = index.shape[0], index.shape[1], weights.size
    z[:], out[:] = intercept, 0.0
    for t in range(0, tables - 1, 2):
        one, two = index[t], index[t + 1]
        for i in range(n):
            z[i] += weights[one[i]] + weights[two[i]]
    for i in range(n):
        z_i = z[i] + (weights[index[-1, i]] if tables % 2 else 0.0)
        soft = np.log1p(np.exp(-abs(z_i))) + max(z_i, 0.0)  # log(1 + e^z)
        z[i] = counts[i] * np.exp(z_i - soft) - positives[i]
        out[m] += z[i]
        out[m + 1] += counts[i] * soft - positives[i] * z_i
    for t in range(0, tables - 1, 2):
        one, two = index[t], index[t + 1]
        for i in range(n):
            out[one[i]] += z[i]
            out[two[i]] += z[i]
    if tables % 2:
        for i in range(n):
            out[index[-1, i]] += z[i]


@njit(cache=True, parallel=True)
def parts_loss(index, counts, positives, weights, intercept, z, parts):
    """`rows_loss` of fixed runs of rows, one per row of `parts`, so that their sum has one order."""
    n, p = index.shape[1], parts.shape[0]
    for part in prange(p):
        a, b = part * n // p, (part + 1) * n // p
        rows_loss(index[:, a:b], counts[a:b], positives[a:b], weights, intercept, z[a:b], parts[part])


@dataclass
class SparseLogistic:
    """min over (b, w) of −log-likelihood + λ‖w‖²; the intercept b is not penalised.

    Attributes
    ----------
    index : (P, n) int32 active weight of each row in each table; counts, positives : (n,) float64; size : weights.
    """

    index: np.ndarray
    counts: np.ndarray
    positives: np.ndarray
    size: int

    def __post_init__(self):
        self.parts = np.empty((PARTS if self.index.size > WORTH_THREADS else 1, self.size + 2))
        self.room = np.empty(len(self.counts))

    @property
    def start(self) -> np.ndarray:
        """(size + 1,) no effects, and the intercept at the log-odds."""
        rate = np.clip(self.positives.sum() / self.counts.sum(), 1e-9, 1 - 1e-9)
        return np.append(np.zeros(self.size), np.log(rate / (1 - rate)))

    def objective(self, solution: np.ndarray, l2: float) -> tuple[float, np.ndarray]:
        """Loss and its gradient at (weights, intercept)."""
        weights = solution[:-1]
        rows = self.index, self.counts, self.positives, weights, solution[-1], self.room
        if len(self.parts) > 1:
            parts_loss(*rows, self.parts)
        else:
            rows_loss(*rows, self.parts[0])
        total = self.parts.sum(axis=0)
        gradient = total[:-1]
        gradient[:-1] += 2 * l2 * weights
        return total[-1] + l2 * (weights @ weights), gradient

    def curvature(self, solution: np.ndarray, l2: float) -> np.ndarray:
        """(size + 1,) diagonal of the Hessian, kept positive."""
        p = self.probabilities(solution)
        row = self.counts * np.maximum(p * (1 - p), 1e-6)
        weights = np.bincount(self.index.ravel(), np.tile(row, len(self.index)), self.size)
        return np.append(np.maximum(weights + 2 * l2, 1e-9), max(row.sum(), 1e-9))

    def fit(self, l2: float, start: np.ndarray | None = None, max_iter: int = 200, tol: float = 1e-9) -> np.ndarray:
        """(size + 1,) weights and intercept by L-BFGS, with variables scaled by the diagonal Hessian at the start."""
        start = self.start if start is None else start
        scale = 1 / np.sqrt(self.curvature(start, l2))

        def scaled(v):
            value, gradient = self.objective(v * scale, l2)
            return value, gradient * scale

        options = {"maxiter": max_iter, "ftol": tol, "gtol": 1e-6, "maxfun": 4 * max_iter}
        return minimize(scaled, start / scale, jac=True, method="L-BFGS-B", options=options).x * scale

    def probabilities(self, solution: np.ndarray) -> np.ndarray:
        """(n,) P(Y=1) of each row."""
        return predict(self.index, solution[:-1], solution[-1])


def predict(index: np.ndarray, weights: np.ndarray, intercept: float) -> np.ndarray:
    """(n,) P(Y=1) for rows of active weights, (P, n); the index len(weights) adds nothing."""
    weights, z = np.append(weights, 0.0), np.full(index.shape[1], intercept)
    for active in index:
        z += weights[active]
    return expit(z)
