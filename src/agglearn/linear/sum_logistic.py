"""WALR's objective, N times the note's: F(θ) = Σ_i w_i ln(1 + e^{X_i·θ}) − s·θ + Σ_j λ_j θ_j², s = Σ_i w_i y_i X_i."""

import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.special import expit

from agglearn.linear.lbfgs import lbfgs
from agglearn.linear.sparse_logistic import minimise_scaled
from agglearn.seeds import draw_generator


@dataclass
class Objective:
    x: sparse.csr_array  # (n, k) coordinates
    weights: np.ndarray  # (n,), of the records
    sums: np.ndarray  # (k,) s
    penalty: np.ndarray  # (k,) λ_j
    offset: np.ndarray | float = 0.0  # (n,), added to X_i·θ
    _row_curvature: tuple[np.ndarray, np.ndarray] | None = field(default=None, init=False, repr=False)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        z = self.x @ theta + self.offset
        tail = np.exp(-np.abs(z))  # with log and division faster than logaddexp and expit, and as exact in sums
        model_term = self.x.T @ (self.weights * np.where(z > 0, 1.0, tail) / (1 + tail))
        value = self.weights @ (np.maximum(z, 0) + np.log(1 + tail)) - self.sums @ theta + self.penalty @ theta**2
        return float(value), model_term - self.sums + 2 * self.penalty * theta

    def hessian_product(self, theta: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.x.T @ (self._curvature_of_rows(theta) * (self.x @ v)) + 2 * self.penalty * v

    def _curvature_of_rows(self, theta: np.ndarray) -> np.ndarray:
        """(n,) w p(1 − p), stored for the next products at the same θ."""
        if self._row_curvature is None or not np.array_equal(self._row_curvature[0], theta):
            p = expit(self.x @ theta + self.offset)
            self._row_curvature = theta.copy(), self.weights * p * (1 - p)
        return self._row_curvature[1]

    @property
    def curvature(self) -> np.ndarray:
        """(k,) diagonal of the Hessian at θ = 0, which needs no labels."""
        return curvature(self.x, self.weights) + 2 * self.penalty

    def minimum(self, solver: str, max_iter: int, tol: float) -> tuple[np.ndarray, int]:
        """(k,) θ and number of iterations, until the largest gradient, scaled by the curvature at 0, is below `tol`.

        In coordinates of many rows, which those of pairs repeat, the scale has a part of the curvature: gradients there
        end smaller, after half the steps.
        """
        (n, k), nnz = self.x.shape, max(self.x.nnz, 1)
        frequency = np.bincount(self.x.indices, minlength=k) * k / nnz  # beside their mean
        scale, start = np.sqrt((1 + frequency / 4) / np.maximum(self.curvature, 1e-12)), np.zeros(k)
        if solver == "newton":
            options = {"maxiter": max_iter, "gtol": tol}
            result = minimise_scaled(self.value_and_gradient, start, scale, options, self.hessian_product)
            return result.x, int(result.nit)

        def scaled(v: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.value_and_gradient(v * scale)
            return value, gradient * scale

        taken, largest = itertools.count(), np.full(k, nnz / n)  # the Hessian is of the order of a row's coordinates
        theta = lbfgs(scaled, start, largest, max_iter, 30, tol, 1e-15, on_step=lambda _: next(taken)) * scale
        return theta, next(taken)


def curvature(x: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    """(k,) ¼ Σ_i w_i x_ij²."""
    return x.power(2).T @ weights / 4


def penalties(l2: float, h: np.ndarray, noise_scale: float | np.ndarray, intercept: bool) -> np.ndarray:
    """(k,) λ_j = λ·(1 + σ²/h_j), for curvatures h_j of F, and one σ or (k,). The intercept is free.

    If θ_j has the prior variance 1/2λ, and s_j the variance h_j + σ², these have the least expected excess of F, to
    second order, coordinate by coordinate.
    """
    penalty = l2 * (1 + noise_scale**2 / np.maximum(h, 1e-12))
    if intercept:
        penalty[-1] = 0.0
    return penalty


def curvature_at_rate(x: sparse.csr_array, sums: np.ndarray, n: int | None = None) -> np.ndarray:
    """(k,) diagonal of H = r(1 − r) Σ (X − X̄)(X − X̄)ᵀ, at the rate r of the sums, with the intercept, the last, fitted.

    Rows of x may be a random sample of the n records of the sums, of all of which H then is.
    """
    rate = _rate(sums, n or x.shape[0])
    return rate * (1 - rate) * (n or x.shape[0]) * _variance(x)


def model_term_variance(x: sparse.csr_array, sums: np.ndarray, n: int) -> np.ndarray:
    """(k,) variance of n times a mean of p·x_j over m random rows of n, (n²/m)(1 − m/n)·Var(p·x_j).

    It is that at the rate p of the sums, with the intercept, the last, fitted. The variance of x_j counts one row more
    with its largest value, or 1 where all are 0: the sample may lack what is rare.
    """
    m, largest = x.shape[0], abs(x).max(axis=0).toarray().ravel()
    return _rate(sums, n) ** 2 * n * (n - m) / m * (_variance(x) + np.where(largest > 0, largest, 1) ** 2 / m)


def prior_variance(
    x: sparse.csr_array, sums: np.ndarray, noise_scale: float | np.ndarray, probes: int = 20, n: int | None = None
) -> float:
    """Variance τ² of the coefficients, at least 0.001, by moments of the (noisy) sums, which costs no privacy.

    g = s − r Σ X has E g_j² = τ² Σ_l H_jl² + H_jj + σ², H of `curvature_at_rate`. Random signs estimate Σ_l H_jl².
    The intercept must be last. σ may be one, or (k,). x may have a sample of the n records.
    """
    (m, k), mean, n = x.shape, _mean(x), n or x.shape[0]
    rate = _rate(sums, n)
    g = (sums - rate * n * mean)[:-1]
    variance = (curvature_at_rate(x, sums, n) + noise_scale**2)[:-1]
    rng, products = draw_generator(0), np.zeros(k - 1)
    for _ in range(probes):
        logits = x @ np.append(rng.choice([-1.0, 1.0], k - 1), 0.0)
        products += (rate * (1 - rate) * n / m * (x.T @ (logits - logits.mean())))[:-1] ** 2 / probes
    varies = variance > 0
    excess = (g[varies] ** 2 / variance[varies] - 1).sum()
    return max(float(excess / (products[varies] / variance[varies]).sum()), 1e-3)


def _mean(x: sparse.csr_array) -> np.ndarray:
    return x.T @ np.ones(x.shape[0]) / x.shape[0]


def _variance(x: sparse.csr_array) -> np.ndarray:
    """(k,) of the coordinates, over the rows."""
    return np.maximum(4 * curvature(x, np.full(x.shape[0], 1 / x.shape[0])) - _mean(x) ** 2, 0.0)


def _rate(sums: np.ndarray, n: int) -> float:
    return float(np.clip(sums[-1] / n, 1e-3, 1 - 1e-3))
