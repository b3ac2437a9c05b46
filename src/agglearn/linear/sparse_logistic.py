"""L2-regularised logistic regression on sparse binary designs with grouped rows: the solver of all baselines."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit

from agglearn.linear.kernels import blocks_loss, rows_loss
from agglearn.progress import steps

BLOCKS = 4  # fixed runs of rows whose gradients are added in order, whatever the number of threads
WORTH_THREADS = 200_000  # active weights of all rows from which threads pay


def log_odds(positives: float, total: float) -> float:
    """log(r/(1 − r)) of the rate r = positives / total, which stays 1e-9 away from 0 and 1."""
    rate = np.clip(positives / total, 1e-9, 1 - 1e-9)
    return float(np.log(rate / (1 - rate)))


@dataclass
class SparseLogistic:
    """min over (b, w) of −log-likelihood + λ‖w‖², without a penalty on the intercept b."""

    index: np.ndarray  # (P, n) int32 active weight of each row in each table
    counts: np.ndarray  # (n,) float64 records of each row
    positives: np.ndarray  # (n,) float64, those with label 1
    size: int  # number of weights

    def __post_init__(self) -> None:
        self.blocks = np.empty((BLOCKS if self.index.size > WORTH_THREADS else 1, self.size + 2))
        self.scratch = np.empty(len(self.counts))

    @property
    def start(self) -> np.ndarray:
        return np.append(np.zeros(self.size), log_odds(self.positives.sum(), self.counts.sum()))

    def objective(self, solution: np.ndarray, l2: float) -> tuple[float, np.ndarray]:
        weights = solution[:-1]
        rows = self.index, self.counts, self.positives, weights, solution[-1], self.scratch
        if len(self.blocks) > 1:
            blocks_loss(*rows, self.blocks)
        else:
            rows_loss(*rows, self.blocks[0])
        total = self.blocks.sum(axis=0)
        gradient = total[:-1]
        gradient[:-1] += 2 * l2 * weights
        return total[-1] + l2 * (weights @ weights), gradient

    def curvature(self, solution: np.ndarray, l2: float) -> np.ndarray:
        """(size + 1,) diagonal of the Hessian, at least 1e-9."""
        p = self.probabilities(solution)
        row = self.counts * np.maximum(p * (1 - p), 1e-6)
        weights = np.bincount(self.index.ravel(), np.tile(row, len(self.index)), self.size)
        return np.append(np.maximum(weights + 2 * l2, 1e-9), max(row.sum(), 1e-9))

    def fit(self, l2: float, start: np.ndarray | None = None, max_iter: int = 200, tol: float = 1e-9) -> np.ndarray:
        """(size + 1,) weights and intercept by L-BFGS. The diagonal Hessian at the start scales the variables."""
        start = self.start if start is None else start
        scale = 1 / np.sqrt(self.curvature(start, l2))
        options = {"maxiter": max_iter, "ftol": tol, "gtol": 1e-6, "maxfun": 4 * max_iter}
        return minimise_scaled(lambda v: self.objective(v, l2), start, scale, options).x

    def probabilities(self, solution: np.ndarray) -> np.ndarray:
        """(n,) P(Y=1) of each row."""
        return predict(self.index, solution[:-1], solution[-1])


def minimise_scaled(
    objective: Callable, start: np.ndarray, scale: np.ndarray, options: dict, product: Callable | None = None
) -> OptimizeResult:
    """SciPy's result by L-BFGS or, with a product (x, v) ↦ ∇²F(x)·v, Newton, in variables divided by `scale`."""

    def scaled(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(v * scale)
        return value, gradient * scale

    method = "L-BFGS-B" if product is None else "trust-ncg"
    hessp = product and (lambda v, d: product(v * scale, d * scale) * scale)
    with steps(method, options["maxiter"]) as callback:
        result = minimize(
            scaled, start / scale, jac=True, hessp=hessp, method=method, options=options, callback=callback
        )
    result.x = result.x * scale
    return result


def predict(index: np.ndarray, weights: np.ndarray, intercept: float) -> np.ndarray:
    """(n,) P(Y=1) for rows of active weights, (P, n). The index len(weights) adds nothing."""
    weights, z = np.append(weights, 0.0), np.full(index.shape[1], intercept)
    for active in index:
        z += weights[active]
    return expit(z)
