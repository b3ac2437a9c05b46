"""Logistic regressions under a budget: from sufficient statistics, by a perturbed objective, by noisy gradients."""

import math

import numpy as np
from scipy import sparse
from scipy.special import expit

from agglearn.encoding import FrameEncoder
from agglearn.linear.sum_logistic import Objective
from agglearn.optional import require
from agglearn.privacy import analytic_gaussian_scale
from agglearn.seeds import RandomState, draw_generator
from agglearn.settings import Count, Part, Positive, Share
from arena.accounting import sampled_gaussian_scale
from arena.records import LinearRival, PrivateRecords, choose_by_public

RIDGES = [4.0**k for k in range(-1, 9)]


class SufficientStatistics(LinearRival):
    """A quadratic approximation of the logistic loss needs XᵀX and Xᵀy alone, which are in tables of pairs.

    Ferrando and Sheldon 2025, with the approximation of Huggins, Adams and Broderick 2017 (degree 2). Every pair of
    features, and every feature with the label, is a table with Gaussian noise. λ is chosen by public records.

    Parameters
    ----------
    radius, l2, random_state : float, list of float or None, int or None
        The loss is approximated from −radius to radius. Values of λ to try, by default powers of 4.
    """

    radius: Positive = 4.0
    l2: list[Positive] | None = None
    random_state: RandomState = None

    def _fit(self, observation: PrivateRecords) -> None:
        encoder, rng = observation.encoder, draw_generator(self.random_state)
        n_tables = len(encoder.sizes) * (len(encoder.sizes) + 1) // 2  # one for each pair of features and the label
        sigma = analytic_gaussian_scale(math.sqrt(n_tables), observation.epsilon, observation.delta)
        gram, by_label = noisy_statistics(encoder, observation.codes, observation.y, sigma, rng)
        self._set_from_statistics(observation, gram, by_label)

    def _set_from_statistics(self, observation: PrivateRecords, gram: np.ndarray, by_label: np.ndarray) -> None:
        mapped = self._set_map(observation.encoder)
        moment = by_label[:, 1] - by_label[:, 0]
        values, vectors = np.linalg.eigh(gram)
        values, target = np.maximum(values, 0), vectors.T @ moment
        curvature = -2 * quadratic_coefficient(self.radius)

        def solve(l2: float) -> np.ndarray:
            return vectors @ (target / 2 / (curvature * values + 2 * l2))

        self.l2_ = choose_by_public(
            observation, self.l2 or RIDGES, lambda l2, frame: expit(mapped.matrix(frame) @ solve(l2))
        )
        self.coef_ = solve(self.l2_)


def quadratic_coefficient(radius: float) -> float:
    """Coefficient of s² in the Chebyshev approximation of −ln(1 + e^{−s}) from −radius to radius. That of s is ½."""
    loss = lambda s: -np.logaddexp(0, -radius * s)  # noqa: E731
    series = np.polynomial.chebyshev.chebinterpolate(loss, 64)[:3]
    return float(np.polynomial.chebyshev.cheb2poly(series)[2] / radius**2)


def noisy_statistics(
    encoder: FrameEncoder, codes: np.ndarray, y: np.ndarray, sigma: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """XᵀX (k, k) of the indicators and a last 1, and (k, 2) records by indicator and label, from noisy tables."""
    x = sparse.csr_array(one_hot(encoder, codes))
    k, feature = x.shape[1] + 1, np.repeat(np.arange(len(encoder.sizes)), encoder.sizes)
    labels = sparse.csr_array((np.ones(len(y)), (np.arange(len(y)), np.asarray(y, int))), shape=(len(y), 2))
    by_label = (x.T @ labels).toarray() + rng.normal(0, sigma, (k - 1, 2))
    counts = (x.T @ x).toarray() + rng.normal(0, sigma, (k - 1, k - 1))
    counts = np.where(feature[:, None] < feature[None, :], counts, 0)
    return assemble(counts + counts.T, by_label, feature)


def assemble(pairs: np.ndarray, by_label: np.ndarray, feature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """XᵀX and records by label, with the 1, from tables of pairs and of each feature with the label."""
    singles = by_label.sum(axis=1)
    totals = np.array([by_label[feature == f].sum(axis=0) for f in np.unique(feature)]).mean(axis=0)
    gram = np.block([[pairs + np.diag(singles), singles[:, None]], [singles[None, :], totals.sum()[None, None]]])
    return gram, np.vstack([by_label, totals])


def one_hot(encoder: FrameEncoder, codes: np.ndarray) -> sparse.csr_array:
    """(n, Σ sizes) indicators of codes."""
    first = np.append(0, np.cumsum(encoder.sizes))
    rows = np.repeat(np.arange(len(codes)), codes.shape[1])
    columns = (codes + first[:-1]).ravel()
    return sparse.csr_array((np.ones(columns.size), (rows, columns)), shape=(len(codes), int(first[-1])))


class ObjectivePerturbation(LinearRival):
    """The minimum of Σ ln(1 + e^{φθ}) − yφθ + ½Δ‖θ‖² + b·θ with normal b (Kifer, Smith, Thakurta 2012, algorithm 1).

    One record changes the gradient by at most R = ‖φ‖, and the determinant of the Hessian by 1 + R²/4Δ at most. So
    the privacy loss is at most ln(1 + R²/4Δ) plus that of Gaussian noise on R, or 0. The noise takes what ε leaves.

    Parameters
    ----------
    share, random_state : float, int or None
        Share of ε that the determinant takes, by which Δ is chosen (½ in the source).
    """

    share: Part = 0.1
    random_state: RandomState = None

    def _fit(self, observation: PrivateRecords) -> None:
        mapped, rng = self._set_map(observation.encoder), draw_generator(self.random_state)
        x, squared = mapped.matrix(observation.frame), len(observation.encoder.sizes) + 1
        ridge, sigma = perturbation(squared, self.share, observation.epsilon, observation.delta)
        sums = x.T @ observation.y.astype(float) - rng.normal(0, sigma, x.shape[1])
        problem = Objective(x, np.ones(x.shape[0]), sums, np.full(x.shape[1], ridge / 2))
        self.coef_, _ = problem.minimum("newton", 200, 1e-9)


def perturbation(squared: float, share: float, epsilon: float, delta: float) -> tuple[float, float]:
    """Δ and σ of b, for rows of this squared norm."""
    ridge = squared / 4 / math.expm1(share * epsilon)
    return ridge, analytic_gaussian_scale(math.sqrt(squared), (1 - share) * epsilon, delta)


class NoisyGradient(LinearRival):
    """DP-SGD (Abadi et al. 2016): steps along the sum of clipped gradients of a Poisson sample, with noise.

    Parameters
    ----------
    rate, steps, clip, step_size, random_state : float, int, float, float, int or None
        Share of the records in a step, bound of a gradient's norm as a share of ‖φ‖, and size of a step on the mean.
        The model is the mean of the second half of the iterates.
    """

    rate: Share = 0.1
    steps: Count = 200
    clip: Positive = 0.5
    step_size: Positive = 1.0
    random_state: RandomState = None

    def _fit(self, observation: PrivateRecords) -> None:
        jax = require("jax", "networks")
        encoder = observation.encoder
        self._set_map(encoder)
        sigma = sampled_gaussian_scale(self.rate, self.steps, observation.epsilon, observation.delta)
        first = np.append(0, np.cumsum(encoder.sizes))
        index = np.column_stack([observation.codes + first[:-1], np.full(len(observation.y), first[-1])])
        seed = int(draw_generator(self.random_state).integers(2**31))
        self.coef_ = descend(
            jax, index.astype(np.int32), observation.y.astype(np.float32), int(first[-1]) + 1, self.rate, self.steps,
            self.clip * math.sqrt(index.shape[1]), self.step_size, sigma, seed,
        )  # fmt: skip


def descend(
    jax, index: np.ndarray, y: np.ndarray, k: int, rate: float, steps: int, clip: float, step_size: float,
    sigma: float, seed: int,
) -> np.ndarray:  # fmt: skip
    """(k,) mean of the second half of the iterates. Records have ones at (n, D) indices."""
    jnp, (n, d) = jax.numpy, index.shape

    def step(theta, inputs):
        key, weight = inputs
        sample, noise = jax.random.split(key)
        error = jax.nn.sigmoid(theta[index].sum(axis=1)) - y  # a gradient is φ times this
        error *= jnp.minimum(1, clip / jnp.maximum(jnp.abs(error) * math.sqrt(d), 1e-12))
        error *= jax.random.bernoulli(sample, rate, (n,))
        total = jnp.zeros(k).at[index].add(error[:, None]) + sigma * clip * jax.random.normal(noise, (k,))
        theta = theta - step_size * total / (rate * n)
        return theta, theta * weight

    second_half = (np.arange(steps) >= steps // 2).astype(np.float32)
    keys = jax.random.split(jax.random.PRNGKey(seed), steps)
    _, iterates = jax.jit(lambda: jax.lax.scan(step, jnp.zeros(k), (keys, second_half)))()
    return np.asarray(iterates, float).sum(axis=0) / second_half.sum()
