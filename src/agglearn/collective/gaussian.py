"""GCGM: the Gaussian limit of the CGM distribution of a chain (Liu et al. 2014), the thesis's rival method.

The node tables of a chain are a linear Gaussian process: n_1 ~ N(Mμ_1, M(diag μ_1 − μ_1 μ_1ᵀ)), n_{t+1} given n_t has mean
P_tᵀ n_t and covariance M(diag μ_{t+1} − P_tᵀ diag(μ_t) P_t). Gaussian noise is conditioned on in closed form by a Kalman
filter and the Bryson–Frazier smoother, which need no inverse of these singular covariances; other noise goes through
expectation propagation (Minka 2001) with one Gaussian site per count. Nothing is clipped: tables can be negative.
"""

import numpy as np
from scipy.linalg import lstsq

from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference, Recorder
from agglearn.errors import DataError, NotAvailable
from agglearn.settings import Count, Damping, NonNegative

WIDTH = 8.0
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(48)


def infer_gaussian(
    model,
    counts,
    population_size,
    *,
    trace=False,
    max_iter: Count = 30,
    damping: Damping = 0.7,
    tol: NonNegative = 1e-4,
):
    """Posterior mean under the Gaussian approximation.

    Node counts of chains only. max_iter, tol, damping : of expectation propagation; it stops when means change by less than
    tol · M. details: `negative`, the sum of negative entries.
    """
    problem = Problem(model, counts, population_size)
    smoother = _Smoother(problem)
    record = Recorder(problem) if trace else None
    site_mean, precision, before, converged = smoother.start()
    for _ in range(max_iter):
        mean, variance = smoother.posterior(site_mean, precision)
        if record:
            record(smoother.edges(mean))
        change = np.abs(mean - before).sum() if before is not None else np.inf
        if (converged := change <= tol * problem.M) or smoother.closed_form:
            break
        before = mean
        site_mean, precision = smoother.sites(mean, variance, site_mean, precision, damping)
    edges = smoother.edges(mean)
    negative = sum(float(-np.minimum(t, 0).sum()) for t in edges)
    rows = record.finish() if record else []
    nodes = [row.copy() for row in model.split_nodes(mean)]
    done = converged or smoother.closed_form
    return Inference(edges, nodes, np.nan, rows, converged=done, details={"negative": negative})


class _Smoother:
    """Kalman filter, smoother and sites of one problem."""

    def __init__(self, problem: Problem):
        model = problem.model
        if any(model.rooted.parent[1:] != np.arange(model.n_nodes - 1)):
            raise NotAvailable("gaussian: only chains; use another method for trees")
        if problem.has_edges:
            raise NotAvailable("gaussian: only node counts; edge tables would need covariances of L² × L²")
        self.problem, self.model = problem, model
        shape = (model.n_nodes, model.size)
        self.counts = [(t.noise, np.unravel_index(t.cells, shape), t.y) for t in problem.terms] + [
            (noise, np.unravel_index(cells, shape), y) for noise, cells, y in problem.settled
        ]
        if any(type(noise).__name__ == "Exact" for noise, _, _ in self.counts):
            raise NotAvailable("gaussian: exact counts have no noise to approximate; use another method")
        cells = np.concatenate([np.ravel_multi_index(c, shape) for _, c, _ in self.counts])
        if len(np.unique(cells)) < len(cells):
            raise DataError("gaussian: takes one count per cell")
        self.closed_form = all(type(noise).__name__ == "Gaussian" for noise, _, _ in self.counts)
        conditionals, self.first = model._beliefs.conditionals()
        self.steps, self.mu = conditionals[1:], model._beliefs.marginals

    def start(self):
        """Sites with the count as mean and its own variance; none where nothing was observed."""
        mean, precision = np.zeros(self.mu.shape), np.zeros(self.mu.shape)
        for noise, at, y in self.counts:
            name = type(noise).__name__
            mean[at] = y / noise.rate if name == "Poisson" else y
            spread = (y + 1) / noise.rate**2 if name == "Poisson" else noise.scale**2 * (2 if name == "Laplace" else 1)
            precision[at] = 1 / spread
        return mean, precision, None, False

    def posterior(self, site_mean, precision) -> tuple[np.ndarray, np.ndarray]:
        """(N, L) means and variances of the node tables given Gaussian sites."""
        m, n = self.problem.M, len(self.mu)
        mean, cov, kept = m * self.first, m * (np.diag(self.first) - np.outer(self.first, self.first)), []
        for t in range(n):
            # (I + WP)⁻¹W serves infinite variances of a site and singular P alike
            gain = np.linalg.solve(np.eye(len(mean)) + precision[t][:, None] * cov, np.diag(precision[t]))
            innovation = gain @ (site_mean[t] - mean)
            kept.append((mean, cov, gain, innovation))
            mean, cov = mean + cov @ innovation, cov - cov @ gain @ cov
            if t < n - 1:
                a = self.steps[t]
                noise = m * (np.diag(self.mu[t + 1]) - a.T @ (self.mu[t][:, None] * a))
                mean, cov = a.T @ mean, a.T @ cov @ a + noise
        return self._smooth(kept)

    def _smooth(self, kept):
        """Bryson–Frazier: adjoint vectors and matrices backwards; the state's covariance is never inverted."""
        means, variances = np.empty(self.mu.shape), np.empty(self.mu.shape)
        size = self.mu.shape[1]
        vector, matrix = np.zeros(size), np.zeros((size, size))
        for t in range(len(kept) - 1, -1, -1):
            mean, cov, gain, innovation = kept[t]
            if t < len(kept) - 1:
                a = self.steps[t]
                vector, matrix = a @ vector, a @ matrix @ a.T
            rest = np.eye(size) - gain @ cov
            vector, matrix = innovation + rest @ vector, gain + rest @ matrix @ rest.T
            means[t] = mean + cov @ vector
            variances[t] = np.maximum(np.diag(cov) - ((cov @ matrix) * cov.T).sum(axis=1), 0)
        return means, variances

    def sites(self, mean, variance, site_mean, precision, damping):
        """New sites from the moments of cavity times likelihood, all at once; damped in natural parameters."""
        natural = precision * site_mean
        for noise, at, y in self.counts:
            v = np.maximum(variance[at], 1e-10)
            left = np.maximum(1 / v - precision[at], 1e-6 / v)
            cavity = (mean[at] / v - natural[at]) / left
            new_mean, new_variance = _tilted_moments(noise, y, cavity, 1 / left)
            more = np.maximum(1 / np.maximum(new_variance, 1e-12) - left, 0.0)
            shift = new_mean / np.maximum(new_variance, 1e-12) - cavity * left
            shift = np.where(more > 0, shift, 0.0)
            natural[at] += damping * (shift - natural[at])
            precision = precision.copy()
            precision[at] += damping * (more - precision[at])
        return np.divide(natural, precision, out=np.zeros_like(natural), where=precision > 0), precision

    def edges(self, nodes) -> list[np.ndarray]:
        """Conditional mean of each edge table given its node tables: Mμ_ij (1 + a_i + b_j), a and b by regression."""
        found = []
        for t, step in enumerate(self.steps):
            mu = self.mu[t][:, None] * step
            size = len(mu)
            system = np.block([[np.diag(mu.sum(axis=1)), mu], [mu.T, np.diag(mu.sum(axis=0))]])
            gap = np.concatenate([nodes[t], nodes[t + 1]]) / self.problem.M - np.concatenate([mu.sum(1), mu.sum(0)])
            shift = lstsq(system, gap, cond=1e-12, lapack_driver="gelsy")[0]  # a third of the time of the default
            found.append(self.problem.M * mu * (1 + shift[:size, None] + shift[None, size:]))
        return found


def _tilted_moments(noise, y, mean, variance):
    """Mean and variance of N(n; mean, variance) p(y | n), n ≥ 0 under Poisson noise, by Gauss–Legendre quadrature."""
    deviation = np.sqrt(variance)
    low, high = mean - WIDTH * deviation, mean + WIDTH * deviation
    if type(noise).__name__ == "Poisson":
        spread = np.sqrt(y + 1) / noise.rate
        low = np.maximum(low, 0.0)
        high = np.maximum(np.minimum(high, np.maximum(y / noise.rate, mean) + WIDTH * spread), low + 1e-3 * deviation)
        high = np.where(high <= low, low + deviation, high)
    n = low[:, None] + (high - low)[:, None] * (POINTS + 1) / 2
    with np.errstate(divide="ignore"):
        log_p = (
            -noise.loss(np.broadcast_to(y[:, None], n.shape), n) - 0.5 * (n - mean[:, None]) ** 2 / variance[:, None]
        )
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True)) * WEIGHTS
    p /= p.sum(axis=1, keepdims=True)
    first = (p * n).sum(axis=1)
    return first, (p * (n - first[:, None]) ** 2).sum(axis=1)
