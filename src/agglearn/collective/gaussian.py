"""GCGM: the Gaussian limit of the CGM distribution of a chain (Liu et al. 2014), by a Kalman filter and smoother."""

import numpy as np
from scipy.linalg import lstsq

from agglearn.collective.kernels import EXACT, GAUSSIAN
from agglearn.collective.noise import NoiseModel, Poisson
from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference
from agglearn.errors import NotAvailable
from agglearn.progress import track
from agglearn.settings import Count, Damping, NonNegative

WIDTH = 8.0  # half the range of a quadrature, in standard deviations
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(48)
FilterStep = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # mean, covariance, gain, innovation


def infer_gaussian(
    problem: Problem, max_iter: Count = 30, damping: Damping = 0.7, tol: NonNegative = 1e-4
) -> Inference:
    """Posterior mean for node counts of chains (GCGM), not clipped: `negative` sums up its negative entries."""
    smoother = _Smoother(problem)
    site_mean, precision = smoother.start()
    last, converged = np.full(site_mean.shape, np.inf), False
    for _ in track(range(max_iter), "rounds"):
        mean, variance = smoother.posterior(site_mean, precision)
        if problem.recorder:
            problem.record(smoother.edge_tables(mean))
        converged = smoother.closed_form or bool(np.abs(mean - last).sum() <= tol * problem.M)
        if converged:
            break
        last = mean
        site_mean, precision = smoother.update_sites(mean, variance, site_mean, precision, damping)
    edges = smoother.edge_tables(mean)
    negative = sum(float(-np.minimum(t, 0).sum()) for t in edges)
    nodes = [row.copy() for row in problem.model.split_nodes(mean)]
    return Inference(edges, nodes, np.nan, converged=converged, details={"negative": negative})


class _Smoother:
    def __init__(self, problem: Problem) -> None:
        model = problem.model
        if any(model.rooted.parent[1:] != np.arange(model.n_nodes - 1)):
            raise NotAvailable("gaussian: only chains; use another method for trees")
        if problem.has_edges:
            raise NotAvailable("gaussian: only node counts; edge tables would need covariances of L² × L²")
        self.problem, shape = problem, (model.n_nodes, model.size)
        observed = problem.list_observed()
        if any(noise.code == EXACT for noise, _, _ in observed):
            raise NotAvailable("gaussian: exact counts have no noise to approximate; use another method")
        problem.evidence()  # refuses several counts of a cell
        self.counts = [(noise, np.unravel_index(c, shape), y) for noise, c, y in observed]
        self.closed_form = all(noise.code == GAUSSIAN for noise, _, _ in observed)
        conditionals, self.first = model.beliefs.conditionals()
        self.steps, self.mu = conditionals[1:], model.beliefs.marginals

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, L) means and precisions of the first sites: the counts with their own variances, none without a count."""
        mean, precision = np.zeros(self.mu.shape), np.zeros(self.mu.shape)
        for noise, cells, y in self.counts:
            mean[cells] = y / noise.rate
            precision[cells] = 1 / noise.variance(y)
        return mean, precision

    def posterior(self, site_mean: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N, L) means and variances of the node tables given Gaussian sites."""
        m, n = self.problem.M, len(self.mu)
        mean, cov = m * self.first, m * (np.diag(self.first) - np.outer(self.first, self.first))
        filtered: list[FilterStep] = []
        for t in range(n):
            # (I + WP)⁻¹W covers infinite variances of a site and singular P
            gain = np.linalg.solve(np.eye(len(mean)) + precision[t][:, None] * cov, np.diag(precision[t]))
            innovation = gain @ (site_mean[t] - mean)
            filtered.append((mean, cov, gain, innovation))
            mean, cov = mean + cov @ innovation, cov - cov @ gain @ cov
            if t < n - 1:
                a = self.steps[t]
                noise = m * (np.diag(self.mu[t + 1]) - a.T @ (self.mu[t][:, None] * a))
                mean, cov = a.T @ mean, a.T @ cov @ a + noise
        return self._smooth(filtered)

    def _smooth(self, filtered: list[FilterStep]) -> tuple[np.ndarray, np.ndarray]:
        """Bryson–Frazier smoothing: it needs no inverse of the singular covariance."""
        means, variances = np.empty(self.mu.shape), np.empty(self.mu.shape)
        size = self.mu.shape[1]
        vector, matrix = np.zeros(size), np.zeros((size, size))
        for t in range(len(filtered) - 1, -1, -1):
            mean, cov, gain, innovation = filtered[t]
            if t < len(filtered) - 1:
                a = self.steps[t]
                vector, matrix = a @ vector, a @ matrix @ a.T
            complement = np.eye(size) - gain @ cov
            vector, matrix = innovation + complement @ vector, gain + complement @ matrix @ complement.T
            means[t] = mean + cov @ vector
            variances[t] = np.maximum(np.diag(cov) - ((cov @ matrix) * cov.T).sum(axis=1), 0)
        return means, variances

    def update_sites(
        self, mean: np.ndarray, variance: np.ndarray, site_mean: np.ndarray, precision: np.ndarray, damping: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """New sites from the moments of cavity times likelihood, with natural parameters damped (Minka 2001)."""
        natural = precision * site_mean
        precision = precision.copy()
        for noise, cells, y in self.counts:
            v = np.maximum(variance[cells], 1e-10)
            cavity_precision = np.maximum(1 / v - precision[cells], 1e-6 / v)
            cavity = (mean[cells] / v - natural[cells]) / cavity_precision
            new_mean, new_variance = _tilted_moments(noise, y, cavity, 1 / cavity_precision)
            new_precision = np.maximum(1 / np.maximum(new_variance, 1e-12) - cavity_precision, 0.0)
            shift = new_mean / np.maximum(new_variance, 1e-12) - cavity * cavity_precision
            shift = np.where(new_precision > 0, shift, 0.0)
            natural[cells] += damping * (shift - natural[cells])
            precision[cells] += damping * (new_precision - precision[cells])
        return np.divide(natural, precision, out=np.zeros_like(natural), where=precision > 0), precision

    def edge_tables(self, nodes: np.ndarray) -> list[np.ndarray]:
        """Conditional mean of each edge table given its node tables: Mμ_ij (1 + a_i + b_j), a and b by regression."""
        tables = []
        for t, step in enumerate(self.steps):
            mu = self.mu[t][:, None] * step
            size = len(mu)
            system = np.block([[np.diag(mu.sum(axis=1)), mu], [mu.T, np.diag(mu.sum(axis=0))]])
            target = np.concatenate([nodes[t], nodes[t + 1]]) / self.problem.M - np.concatenate([mu.sum(1), mu.sum(0)])
            shift = lstsq(system, target, cond=1e-12, lapack_driver="gelsy")[0]  # a third of the time of the default
            tables.append(self.problem.M * mu * (1 + shift[:size, None] + shift[None, size:]))
        return tables


def _tilted_moments(
    noise: NoiseModel, y: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of N(n | mean, variance) p(y | n), n ≥ 0 under Poisson noise, by Gauss–Legendre quadrature."""
    deviation = np.sqrt(variance)
    low, high = mean - WIDTH * deviation, mean + WIDTH * deviation
    if isinstance(noise, Poisson):
        spread = np.sqrt(y + 1) / noise.rate
        low = np.maximum(low, 0.0)
        high = np.maximum(np.minimum(high, np.maximum(y / noise.rate, mean) + WIDTH * spread), low + 1e-3 * deviation)
        high = np.where(high <= low, low + deviation, high)
    n = low[:, None] + (high - low)[:, None] * (POINTS + 1) / 2
    with np.errstate(divide="ignore"):
        log_likelihood = -noise.loss(np.broadcast_to(y[:, None], n.shape), n)
        log_p = log_likelihood - 0.5 * (n - mean[:, None]) ** 2 / variance[:, None]
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True)) * WEIGHTS
    p /= p.sum(axis=1, keepdims=True)
    first = (p * n).sum(axis=1)
    return first, (p * (n - first[:, None]) ** 2).sum(axis=1)
