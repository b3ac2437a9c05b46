"""Maximum likelihood of the counts themselves: ℓ(θ) = Σ_b log P(z_b | x_b; θ) (Sun 2019, section 3.4.1), two ways.

`em` is the thesis's: posteriors q, then a logistic regression on them. With large bags most information is missing and
EM creeps. `scoring` climbs the same ℓ: its gradient is Σ (q_i − p_i)(x_i, 1), from the same E step; its expected
information is, with G_b = Σ_i Cov(y_i)(x_i, 1) and V_b = Σ_i Cov(y_i), about Σ_b G_bᵀ V_b⁻¹ G_b. Steps are damped towards the
matrix Σ (x, 1)(x, 1)ᵀ/4 that bounds the complete-data information: with it a step is one of EM with the M step
replaced by its quadratic bound, which never lowers ℓ. So ℓ never falls, and some ten E steps do instead of hundreds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from agglearn.linear.softmax import Logistic, bag_sums, log_softmax, scores, softmax, solve
from agglearn.proportions.posterior import binary_posteriors, class_posteriors

Infer = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def exact(scores, p, offsets, counts):
    """Posteriors (n, C) and log P(z) (B,) under the known counts."""
    if counts.shape[1] > 2:
        return class_posteriors(log_softmax(scores), offsets, counts)
    q, found = binary_posteriors(scores[:, 0], offsets, counts[:, 1])
    return np.column_stack([1 - q, q]), found


def normal(scores, p, offsets, counts):
    """The same with the sum of a bag taken as normal (Rosenman and Viswanathan 2018); what plays the posterior's part is
    p + ∂ log N(z; Σp, Σp(1−p))/∂ score. Two classes."""
    v = p[:, 1] * p[:, 0]
    mean, variance = (np.add.reduceat(a, offsets[:-1]) for a in (p[:, 1], v))
    variance = np.maximum(variance, 1e-12)
    gap, sizes = counts[:, 1] - mean, np.diff(offsets)
    found = -0.5 * (np.log(2 * np.pi * variance) + gap**2 / variance)
    linear, square = np.repeat(gap / variance, sizes), np.repeat(0.5 * (gap**2 / variance - 1) / variance, sizes)
    q = p[:, 1] + v * (linear + square * (1 - 2 * p[:, 1]))
    return np.column_stack([1 - q, q]), found


@dataclass
class CountLikelihood:
    """Climbs ℓ from a start; `trace` keeps ℓ (unpenalised) at every step.

    Attributes
    ----------
    problem : covariates, λ; its offsets are the bags.
    counts : (B, C) integers.
    infer : the E step, `exact` or `normal`.
    """

    problem: Logistic
    counts: np.ndarray
    infer: Infer = exact
    trace: list[float] = field(default_factory=list)

    def at(self, l2: float) -> Self:
        """The same with another λ and an empty trace."""
        return replace(self, problem=self.problem.with_l2(l2), trace=[])

    def e_step(self, theta):
        """(probabilities, posteriors, ℓ) at θ."""
        found = scores(self.problem.x, theta)
        p = softmax(found)[0]
        q, found = self.infer(found, p, self.problem.offsets, self.counts)
        return p, q, float(found.sum())

    def penalised(self, likelihood: float, theta: np.ndarray) -> float:
        return likelihood - 0.5 * float((self.problem.penalty() * theta**2).sum())

    def em(self, theta: np.ndarray, max_iter: int, tol: float) -> np.ndarray:
        """EM with full M steps, warm-started; stops when ℓ gains less than `tol` per bag."""
        _, q, found = self.e_step(theta)
        self.trace.append(found)
        for _ in range(max_iter):
            best = self.penalised(found, theta)
            theta = self.problem.fit(self.problem.moments(q), theta, tol=1e-9)
            _, q, found = self.e_step(theta)
            self.trace.append(found)
            if self.penalised(found, theta) - best < tol * len(self.counts):
                break
        return theta

    def scoring(self, theta: np.ndarray, max_iter: int, tol: float) -> np.ndarray:
        """Damped Fisher scoring; stops when a step gains less than `tol` per bag."""
        bound = np.kron(np.eye(len(theta)), self.problem.bound(len(theta)))
        ridge = np.tile(self.problem.penalty(), len(theta))
        p, q, found = self.e_step(theta)
        self.trace.append(found)
        damping = 1e-3
        for _ in range(max_iter):
            here = self.penalised(found, theta)
            gradient = self.problem.moments(q - p).ravel() - ridge * theta.ravel()
            information = self.information(p) + np.diag(ridge)
            while True:
                step = solve(information + damping * bound, gradient).reshape(theta.shape)
                p, q, found = self.e_step(theta + step)
                gain = self.penalised(found, theta + step) - here
                if gain >= 0 or damping > 4:
                    break
                damping *= 8
            if gain < 0:  # rounding: nothing is left to gain
                break
            theta, damping = theta + step, max(damping / 4, 1e-6)
            self.trace.append(found)
            if gain < tol * len(self.counts):
                break
        return theta

    def information(self, p: np.ndarray) -> np.ndarray:
        """Σ_b G_bᵀ V_b⁻¹ G_b, over θ in C order."""
        free, width = p.shape[1] - 1, self.problem.x.shape[1] + 1
        pairs = [(a, c) for a in range(free) for c in range(a, free)]
        weights = np.column_stack([p[:, a + 1] * ((a == c) - p[:, c + 1]) for a, c in pairs])
        sums = bag_sums(self.problem.x, weights, self.problem.offsets)
        g = np.empty((len(sums), free, free, width))
        for k, (a, c) in enumerate(pairs):
            g[:, a, c] = g[:, c, a] = sums[:, k]
        root = np.linalg.cholesky(g[..., -1] + 1e-9 * np.eye(free))
        rows = np.linalg.solve(root, g.reshape(len(g), free, free * width)).reshape(-1, free * width)
        return rows.T @ rows
