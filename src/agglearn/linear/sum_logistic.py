"""The objective of WALR: convex, and it sees labels through one vector only.

F(θ) = Σ_i w_i ln(1 + e^{X_i·θ}) − s·θ + Σ_j λ_j θ_j², with s = Σ_i w_i y_i X_i; its gradient is N times the note's.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from agglearn.seeds import draw_generator


@dataclass
class Objective:
    """F for one set of features and one vector.

    Attributes
    ----------
    x : (n, k) coordinates. weights : (n,). sums : (k,) s. penalty : (k,) λ_j.
    """

    x: sparse.csr_array
    weights: np.ndarray
    sums: np.ndarray
    penalty: np.ndarray
    _kept: tuple | None = field(default=None, init=False, repr=False)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        z = self.x @ theta
        left = self.x.T @ (self.weights * expit(z))
        value = self.weights @ np.logaddexp(0, z) - self.sums @ theta + self.penalty @ theta**2
        return float(value), left - self.sums + 2 * self.penalty * theta

    def hessian_product(self, theta: np.ndarray, v: np.ndarray) -> np.ndarray:
        """∇²F(θ)·v."""
        return self.x.T @ (self._bend(theta) * (self.x @ v)) + 2 * self.penalty * v

    def _bend(self, theta: np.ndarray) -> np.ndarray:
        """(n,) w p(1 − p), kept for the products at the same θ that follow."""
        if self._kept is None or not np.array_equal(self._kept[0], theta):
            p = expit(self.x @ theta)
            self._kept = theta.copy(), self.weights * p * (1 - p)
        return self._kept[1]

    @property
    def curvature(self) -> np.ndarray:
        """(k,) diagonal of the Hessian at θ = 0: what every coordinate weighs, known without labels."""
        return curvature(self.x, self.weights) + 2 * self.penalty

    def minimum(self, solver: str, max_iter: int, tol: float) -> tuple[np.ndarray, int]:
        """(k,) θ and the iterations used, by L-BFGS or by Newton's method with a trust region; variables are scaled by the
        curvature at 0. Stops when the largest scaled gradient is below `tol`."""
        scale = 1 / np.sqrt(np.maximum(self.curvature, 1e-12))

        def scaled(v):
            value, gradient = self.value_and_gradient(v * scale)
            return value, gradient * scale

        start = np.zeros(len(scale))
        if solver == "lbfgs":
            options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": 1e-15, "gtol": tol, "maxcor": 20}
            found = minimize(scaled, start, jac=True, method="L-BFGS-B", options=options)
        else:
            product = lambda v, d: self.hessian_product(v * scale, d * scale) * scale  # noqa: E731
            options = {"maxiter": max_iter, "gtol": tol}
            found = minimize(scaled, start, jac=True, hessp=product, method="trust-ncg", options=options)
        return found.x * scale, int(found.nit)


def curvature(x: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    """(k,) ¼ Σ_i w_i x_ij²."""
    return (x * x).T @ weights / 4


def penalties(l2: float, x: sparse.csr_array, weights: np.ndarray, noise_scale: float, intercept: bool) -> np.ndarray:
    """(k,) λ_j = λ·(1 + σ²/h_j), h_j the curvature at 0; the intercept is free.

    Where θ_j has the variance 1/2λ before anything is seen and s_j the variance h_j + σ² around its expectation, this
    diagonal quadratic penalty has the least expected excess of F, to second order and coordinate by coordinate. It needs
    features and the noise's variance, no labels. With σ = 0 it is plain L2.
    """
    h = np.maximum(curvature(x, weights), 1e-12)
    found = l2 * (1 + noise_scale**2 / h)
    if intercept:
        found[-1] = 0.0
    return found


def prior_variance(x: sparse.csr_array, sums: np.ndarray, noise_scale: float, probes: int = 20) -> float:
    """Variance τ² of the coefficients by moments of the (noisy) sums; their use costs no privacy.

    Near the base rate r, g = s − r Σ X has E g_j² = τ² Σ_l H_jl² + H_jj + σ², H = r(1 − r) XᵀX. Coordinates are weighted by
    1/(H_jj + σ²); Σ_l H_jl² is estimated by random signs. The intercept must be last; the result is at least 0.001.
    """
    n, k = x.shape
    rate = float(np.clip(sums[-1] / n, 1e-3, 1 - 1e-3))
    gap = (sums - rate * (x.T @ np.ones(n)))[:-1]
    variance = 4 * rate * (1 - rate) * curvature(x, np.ones(n))[:-1] + noise_scale**2
    rng, products = draw_generator(0), np.zeros(k - 1)
    for _ in range(probes):
        signs = np.append(rng.choice([-1.0, 1.0], k - 1), 0.0)
        products += (rate * (1 - rate) * (x.T @ (x @ signs)))[:-1] ** 2 / probes
    seen = variance > 0
    found = (gap[seen] ** 2 / variance[seen] - 1).sum() / (products[seen] / variance[seen]).sum()
    return max(float(found), 1e-3)
