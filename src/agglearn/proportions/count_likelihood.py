"""Maximum likelihood of the counts, ℓ(θ) = Σ_b log P(z_b | x_b, θ), by EM or scoring (Sun 2019, section 3.4.1).

Scoring has the gradient Σ (q_i − p_i)(x_i, 1) of posteriors q, and the expected information Σ_b G_bᵀ V_b⁻¹ G_b with
G_b = Σ_i Cov(y_i)(x_i, 1), V_b = Σ_i Cov(y_i), damped towards Σ (x, 1)(x, 1)ᵀ/4, where ℓ cannot fall.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from agglearn.errors import DataError
from agglearn.linear.softmax import LogisticProblem, bag_sums, log_softmax, scores, softmax
from agglearn.observations import Bags
from agglearn.privacy.mechanisms import Mechanism
from agglearn.progress import track
from agglearn.proportions.convolution_tree import tree_posterior
from agglearn.proportions.posterior import binary_posteriors, class_posteriors, noisy_posteriors

Posteriors = tuple[np.ndarray, np.ndarray]  # (n, C) of the labels under the known counts z, and (B,) log P(z)
Infer = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], Posteriors]


def exact_posteriors(scores: np.ndarray, p: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> Posteriors:
    if counts.shape[1] > 2:
        return class_posteriors(log_softmax(scores), offsets, counts)
    q, likelihoods = binary_posteriors(scores[:, 0], offsets, counts[:, 1])
    return np.column_stack([1 - q, q]), likelihoods


def tree_posteriors(scores: np.ndarray, p: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> Posteriors:
    """`exact_posteriors` by the thesis's message passing, from probabilities (n, C)."""
    bags = zip(np.split(p, offsets[1:-1]), counts, strict=True)
    posteriors, likelihoods = zip(*(tree_posterior(rows, z) for rows, z in bags), strict=True)
    return np.concatenate(posteriors), np.array(likelihoods)


def noisy_weights(bags: Bags) -> np.ndarray:
    """(n + B,) log P(number of positives with noise | 0 … size of them), bag after bag."""
    assert bags.noise is not None
    assert bags.uncut_counts is not None
    rows = bags.sizes + 1
    positives = np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows, rows)
    return Mechanism(bags.noise.mechanism, bags.noise.scale).log_density(
        np.repeat(bags.uncut_counts[:, 1], rows) - positives
    )


def posteriors_of(bags: Bags) -> Infer:
    """The exact E step of counts without noise, or of the noisy numbers of these bags."""
    if bags.noise is None:
        return exact_posteriors
    if bags.classes.size > 2:
        raise DataError("counts of more than two classes have noise, which needs multiclass='ovr'")
    log_weights = noisy_weights(bags)

    def infer(scores: np.ndarray, p: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> Posteriors:
        q, likelihoods = noisy_posteriors(scores[:, 0], offsets, log_weights)
        return np.column_stack([1 - q, q]), likelihoods

    return infer


def normal_posteriors(
    scores: np.ndarray, p: np.ndarray, offsets: np.ndarray, counts: np.ndarray, noise: float = 0.0
) -> Posteriors:
    """p + ∂ log N(z | Σp, Σp(1−p) + noise)/∂ score in place of posteriors, for two classes (Rosenman and Viswanathan 2018)."""
    v = p[:, 1] * p[:, 0]
    mean, variance = (np.add.reduceat(a, offsets[:-1]) for a in (p[:, 1], v))
    variance = np.maximum(variance, 1e-12) + noise
    residual, sizes = counts[:, 1] - mean, np.diff(offsets)
    likelihoods = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
    linear = np.repeat(residual / variance, sizes)
    square = np.repeat(0.5 * (residual**2 / variance - 1) / variance, sizes)
    q = p[:, 1] + v * (linear + square * (1 - 2 * p[:, 1]))
    return np.column_stack([1 - q, q]), likelihoods


@dataclass
class CountLikelihood:
    problem: LogisticProblem  # covariates, bags and λ
    counts: np.ndarray  # (B, C)
    infer: Infer = exact_posteriors  # the E step
    noise: float = 0.0  # variance of the noise on a count
    trace: list[float] = field(default_factory=list)  # ℓ, unpenalised, at every step

    def with_l2(self, l2: float) -> Self:
        return replace(self, problem=self.problem.with_l2(l2), trace=[])

    def e_step(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """(probabilities, posteriors, ℓ) at θ."""
        p, q, likelihoods = self.infer_at(theta)
        return p, q, float(likelihoods.sum())

    def infer_at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(probabilities, posteriors, ℓ of each bag) at θ."""
        score = scores(self.problem.x, theta)
        p = softmax(score)
        return p, *self.infer(score, p, self.problem.offsets, self.counts)

    def penalised(self, likelihood: float, theta: np.ndarray) -> float:
        return likelihood - float((self.problem.penalty() * theta**2).sum())

    def em(self, theta: np.ndarray, max_iter: int, tol: float) -> np.ndarray:
        """EM with full, warm-started M steps. It stops when ℓ gains less than `tol` per bag."""
        _, q, likelihood = self.e_step(theta)
        self.trace.append(likelihood)
        for _ in track(range(max_iter), "EM"):
            best = self.penalised(likelihood, theta)
            theta = self.problem.minimise(self.problem.moments(q), theta, tol=1e-9)[0]
            _, q, likelihood = self.e_step(theta)
            self.trace.append(likelihood)
            if self.penalised(likelihood, theta) - best < tol * len(self.counts):
                break
        return theta

    def scoring(self, theta: np.ndarray, max_iter: int, tol: float) -> np.ndarray:
        """Damped Fisher scoring. It stops when a step gains less than `tol` per bag."""
        bound = np.kron(np.eye(len(theta)), self.problem.bound(len(theta)))
        ridge = 2 * np.tile(self.problem.penalty(), len(theta))  # the penalty's Hessian
        p, q, likelihood = self.e_step(theta)
        self.trace.append(likelihood)
        damping = 1e-3
        for _ in track(range(max_iter), "scoring"):
            current = self.penalised(likelihood, theta)
            gradient = self.problem.moments(q - p).ravel() - ridge * theta.ravel()
            information = self.information(p) + np.diag(ridge)
            while True:
                factor = cho_factor(information + damping * bound, lower=True)
                step = cho_solve(factor, gradient).reshape(theta.shape)
                p, q, likelihood = self.e_step(theta + step)
                gain = self.penalised(likelihood, theta + step) - current
                if gain >= 0 or damping > 4:
                    break
                damping *= 8
            if gain < 0:  # rounding: nothing is left to gain
                break
            theta, damping = theta + step, max(damping / 4, 1e-6)
            self.trace.append(likelihood)
            if gain < tol * len(self.counts):
                break
        return theta

    def scores_of_bags(self, theta: np.ndarray) -> np.ndarray:
        """(B, K (d + 1)) gradients of log P(z_b) at θ, in C order."""
        p, q, _ = self.e_step(theta)
        return bag_sums(self.problem.x, (q - p)[:, 1:], self.problem.offsets).reshape(len(self.counts), -1)

    def observed_information(self, theta: np.ndarray, step: float = 1e-4) -> np.ndarray:
        """−∇²ℓ(θ) in C order, by central differences of the gradient."""
        columns = []
        for unit in np.eye(theta.size).reshape(-1, *theta.shape) * step:
            low, high = (self.scores_of_bags(theta + sign * unit).sum(axis=0) for sign in (-1, 1))
            columns.append((low - high) / (2 * step))
        return (np.array(columns) + np.transpose(columns)) / 2

    def information(self, p: np.ndarray) -> np.ndarray:
        """Σ_b G_bᵀ V_b⁻¹ G_b, over θ in C order, where V_b has the noise too."""
        free, width = p.shape[1] - 1, self.problem.x.shape[1] + 1
        pairs = [(a, c) for a in range(free) for c in range(a, free)]
        weights = np.column_stack([p[:, a + 1] * ((a == c) - p[:, c + 1]) for a, c in pairs])
        sums = bag_sums(self.problem.x, weights, self.problem.offsets)
        g = np.empty((len(sums), free, free, width))
        for k, (a, c) in enumerate(pairs):
            g[:, a, c] = g[:, c, a] = sums[:, k]
        root = np.linalg.cholesky(g[..., -1] + (self.noise + 1e-9) * np.eye(free))
        rows = np.linalg.solve(root, g.reshape(len(g), free, free * width)).reshape(-1, free * width)
        return rows.T @ rows
