"""Logistic regression from its sufficient statistics M_c = Σ_i w_i P(y_i = c) (x_i, 1), in which all labels enter.

It minimises Σ_i w_i log Σ_c exp(s_ic) − ⟨θ, M⟩ + λ‖θ‖² with s_ic = θ_c·(x_i, 1) and s_i0 = 0 (Sun 2019, eq. 3.2, and
Quadrianto et al. 2009).
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import logsumexp

from agglearn.linear import kernels
from agglearn.progress import steps

CHUNK = 256  # rows added up by one thread
FEW = 1_000_000  # numbers in the covariates up to which their products are added up in double precision


@dataclass
class LogisticProblem:
    x: np.ndarray  # (n, d) float32 covariates
    offsets: np.ndarray  # (B + 1,) bounds of the runs of rows that are added up together
    weights: np.ndarray | None = None  # (n,), of the rows
    l2: float = 0.5  # λ in λ‖θ‖², without the intercepts
    gram: np.ndarray = field(default=None, repr=False)  # type: ignore[arg-type]  # (d + 1, d + 1) Σ w (x, 1)(x, 1)ᵀ, computed once

    def __post_init__(self) -> None:
        if self.gram is None:
            # few rows may come with λ below the rounding of single precision
            x = np.column_stack([self.x, np.ones(len(self.x), float if self.x.size < FEW else np.float32)])
            weighted = x if self.weights is None else x * self.weights[:, None].astype(x.dtype)
            self.gram = (x.T @ weighted).astype(float)

    @classmethod
    def from_rows(cls, x: np.ndarray, weights: np.ndarray | None = None, l2: float = 0.5) -> Self:
        return cls(as_single(x), np.append(np.arange(0, len(x), CHUNK), len(x)), weights, l2)

    def with_l2(self, l2: float) -> Self:
        return replace(self, l2=l2)

    def moments(self, soft: np.ndarray) -> np.ndarray:
        """(C − 1, d + 1) sufficient statistics of soft labels (n, C)."""
        labels = soft[:, 1:] if self.weights is None else soft[:, 1:] * self.weights[:, None]
        return bag_sums(self.x, labels, self.offsets).sum(axis=0)

    def minimise(
        self, moments: np.ndarray, start: np.ndarray | None = None, max_iter: int = 100, tol: float = 1e-6
    ) -> tuple[np.ndarray, float]:
        """θ and the penalised loss there, within about `tol` nats per instance, scaled so that `bound` + 2λ is I."""
        shape = moments.shape
        root = cholesky(self.bound(shape[0]) + np.diag(2 * self.penalty()), lower=True)
        whiten = lambda g: solve_triangular(root, g.T, lower=True, check_finite=False).T  # noqa: E731
        back = lambda v: solve_triangular(root, v.T, lower=True, trans="T", check_finite=False).T  # noqa: E731

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            theta = back(flat.reshape(shape))
            value, gradient = self.loss(theta, moments)
            return value, whiten(gradient).ravel()

        first = np.zeros(shape) if start is None else start @ root
        gtol = np.sqrt(2 * tol * len(self.x) / first.size)
        options = {"maxiter": max_iter, "gtol": gtol, "ftol": 0.0, "maxcor": 20}
        with steps("L-BFGS", max_iter) as callback:
            result = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=options, callback=callback)
        return back(result.x.reshape(shape)), float(result.fun)

    def loss(self, theta: np.ndarray, moments: np.ndarray) -> tuple[float, np.ndarray]:
        weights = np.zeros(0) if self.weights is None else np.asarray(self.weights, float)
        bags = len(self.offsets) - 1
        normalisers, expected = np.zeros(bags), np.zeros((bags, *theta.shape))
        data = self.x, *_split(theta), weights, self.offsets
        kernels.in_threads(10 * self.x.size, bags, kernels.softmax_sums, *data, normalisers, expected)
        penalty = self.penalty() * theta
        value = normalisers.sum() - (theta * moments).sum() + (penalty * theta).sum()
        return value, expected.sum(axis=0) - moments + 2 * penalty

    def bound(self, scores: int) -> np.ndarray:
        """(d + 1, d + 1) upper bound of the Hessian's diagonal blocks (Böhning 1992)."""
        return self.gram * (0.25 if scores == 1 else 0.5)

    def penalty(self) -> np.ndarray:
        """(d + 1,) λ of each coefficient. The intercept's is 5e-7."""
        return np.append(np.full(self.x.shape[1], self.l2), 5e-7)


def as_single(x: np.ndarray) -> np.ndarray:
    """Contiguous, in single precision, as kernels take it."""
    return np.ascontiguousarray(x, dtype=np.float32)


def scores(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """(n, K) scores θ_k·(x_i, 1) for θ (K, d + 1)."""
    out = np.empty((len(x), len(theta)))
    kernels.in_threads(x.size, len(x), kernels.scores, x, *_split(theta), out)
    return out


def _split(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ascontiguousarray(theta[:, :-1]), np.ascontiguousarray(theta[:, -1])


def bag_sums(x: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(B, K, d + 1) sums Σ_i w_ik (x_i, 1) over bags, for weights (n, K)."""
    out = np.zeros((len(offsets) - 1, weights.shape[1], x.shape[1] + 1))
    kernels.in_threads(x.size, len(out), kernels.bag_sums, x, np.ascontiguousarray(weights), offsets, out)
    return out


def softmax(score: np.ndarray) -> np.ndarray:
    """(n, C) probabilities of scores (n, C − 1). The first class has the score 0."""
    columns = np.ascontiguousarray(score.T)  # few classes, many rows: sums along rows would be slow
    top = np.maximum(columns.max(axis=0), 0)
    out = np.empty((len(columns) + 1, len(score)))
    np.exp(-top, out=out[0])
    np.exp(columns - top, out=out[1:])
    out /= out.sum(axis=0)
    return out.T


def log_softmax(score: np.ndarray) -> np.ndarray:
    """(n, C) logarithms of `softmax`. None of them underflows."""
    scores = np.column_stack([np.zeros(len(score)), score])
    return scores - logsumexp(scores, axis=1, keepdims=True)
