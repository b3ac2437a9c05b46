"""Maximum entropy from noisy tables with latent true counts: EM cell by cell, after Sheldon and Dietterich 2011."""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.special import gammaln, log_ndtr, pdtr, wrightomega

from agglearn.maxent.cell_noise import LEAST, Gains, gains, variances
from agglearn.maxent.exact import Enumeration, ExactMaxEntClassifier
from agglearn.maxent.model import MaxEntClassifier, Pair
from agglearn.maxent.pcd_step import SMALLEST_CURVATURE
from agglearn.maxent.penalty import theta_penalty
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables, fill_hidden
from agglearn.observations.tables import hidden_cells
from agglearn.progress import track
from agglearn.settings import Count, NonNegative

SMOOTH = 0.05  # weight of the newest expectations in the average from which the gains are computed
SHARE = 0.3  # least fraction of a weight's information that scales its steps: with less, momentum diverges


def posterior_means(d: np.ndarray, c: np.ndarray, d_hat: np.ndarray, c_hat: np.ndarray, gain: Gains) -> Pair:
    """Return (m,) d* ≥ 0 and 0 ≤ c* ≤ d* of the true counts given observed d, c and expected d̂, ĉ."""
    error_d, error_c = d - d_hat, c - c_hat
    d_star = np.maximum(d_hat + gain.dd * error_d + gain.dc * error_c, 0)
    c_star = c_hat + gain.cd * error_d + gain.cc * error_c
    return d_star, np.clip(c_star, 0, d_star)


def poisson_mean(observed: np.ndarray, expected: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return (m,) n with n + σ² ln n = observed + σ² ln expected, near the mean of a Poisson number seen with noise.

    n lies between the mode of the posterior and that of n times the posterior. It is the rule of the public code of
    Gilotte et al. (`expectedGaussianApprox`), which takes each number by itself. Without noise it is the observed one.
    """
    s = np.maximum(variance, 1e-12)
    return np.where(variance > 0, s * wrightomega(observed / s + np.log(np.maximum(expected, LEAST) / s)), observed)


def hidden_mean(d_hat: np.ndarray, threshold: float, noise: np.ndarray) -> Pair:
    """Return (h,) means of true counts d below the threshold, d ~ Poisson(d̂), and their derivatives by d̂.

    With noise of variance `noise` (h,), d ~ N(d̂, d̂) and the noisy count is below the threshold.
    """
    rate = np.maximum(d_hat, LEAST)
    if not noise.any():
        below = math.ceil(threshold) - 1  # the largest count that is hidden
        log_p = [log_poisson_cdf(below - k, rate) for k in range(3)]
        mean = np.minimum(rate * np.exp(log_p[1] - log_p[0]), below)
        square = rate**2 * np.exp(log_p[2] - log_p[0])
        return mean, np.clip((square + mean - mean**2) / rate, 0, 1)
    scale = np.sqrt(rate + noise)
    z = (threshold - rate) / scale
    hazard = np.exp(-(z**2) / 2 - log_ndtr(z)) / math.sqrt(2 * math.pi)
    ratio = rate / scale  # of the shift that is the count's, not the noise's
    return np.maximum(rate - ratio * hazard, 0), np.clip(1 - ratio / scale * hazard * (z + hazard), 0, 1)


def log_poisson_cdf(k: int, rate: np.ndarray) -> np.ndarray:
    """Return log P(N ≤ k) of N ~ Poisson(rate), by its largest term where the sum underflows."""
    if k < 0:
        return np.full(rate.shape, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.log(pdtr(k, rate))
        largest = k * np.log(rate) - rate - gammaln(k + 1) - np.log1p(-k / rate)
    return np.where(np.isfinite(log_p), log_p, largest)


def find_hidden(tables: ContingencyTables) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return (h,) cells that a threshold hides, the threshold, and the variances of their counts' noise, or None."""
    if tables.noise is None or not tables.noise.threshold or not (hidden := hidden_cells(tables)).any():
        return None
    return np.flatnonzero(hidden), tables.noise.threshold, variances(tables)[0][hidden]


class NoiseAwareMaxEntClassifier(MaxEntClassifier):
    """`MaxEntClassifier` towards the posterior means of the true counts, for tables with noise.

    Cells with few records under the model hardly follow noisy observations. Their weights are left to the penalty, as
    if λ were λ(1 + σ²/d). Cells that a threshold hides follow their mean in [0, threshold), at the model's rate of the
    label. Without noise and threshold it is the same as `MaxEntClassifier`.

    Parameters
    ----------
    n_chains, l2_mu, l2_theta, max_iter, step_mu, step_theta, momentum, n_sweeps, sampler, n_proposals
    gradient, clip_ratio, preconditioner, clip, marginalize_label, average, initial_chains, missing
    rare_cells, trace_every, tol, engine
        As in `MaxEntClassifier`, and so are the attributes.
    posterior, random_state : str, see `MaxEntClassifier`
        `joint` (counts and label sums of a cell together, linear) or `apart` (each by `poisson_mean`).
    """

    accounts_for_noise = True

    posterior: Literal["joint", "apart"] = "joint"

    def _fit(self, observation: ContingencyTables) -> None:
        self._noise = variances(observation) if observation.noise is not None else None
        self._hidden = find_hidden(observation)
        self._expected: np.ndarray | None = None
        super()._fit(fill_hidden(observation))
        if self.posterior == "apart" and self._noise is not None:
            self._evidence = "they assume posterior='joint'"

    def _gradients(self, index: WeightIndex, weights: Pair, expected: Pair, out: np.ndarray) -> np.ndarray:
        if self._noise is None:
            return super()._gradients(index, weights, expected, out)
        now = np.stack(expected)
        self._expected = now if self._expected is None else self._expected + SMOOTH * (now - self._expected)
        gain = gains(self._expected[0], self._expected[1], *self._noise)
        if self.posterior == "joint":
            d, c = posterior_means(index.d, index.c, *expected, gain)
        else:
            d, c = map(poisson_mean, (index.d, index.c), expected, self._noise)
        if self._hidden is not None:  # linear in d̂, whose chains are noisy, about the average
            cells, threshold, noise = self._hidden
            mean, slope = hidden_mean(self._expected[0][cells], threshold, noise)
            d_hat, c_hat = (e[cells] for e in expected)
            d[cells] = np.clip(mean + slope * (d_hat - self._expected[0][cells]), 0, d_hat)
            c[cells] = d[cells] * (c_hat / np.maximum(d_hat, LEAST))
            gain.dd[cells], gain.cc[cells] = 1 - slope, 0.0
        super()._gradients(replace(index, d=d, c=c), weights, expected, out)
        penalties: tuple[float | np.ndarray, ...] = (self.l2_mu, self._l2_theta)
        for h, follows, l2 in zip(out[1], (gain.dd, gain.cc), penalties, strict=True):
            information = (h - 2 * l2) * np.maximum(follows, SHARE)  # the data's information that noise leaves
            h[:] = np.maximum(information + 2 * l2, SMALLEST_CURVATURE)
        return out


class ExactNoiseAwareMaxEntClassifier(ExactMaxEntClassifier):
    """`NoiseAwareMaxEntClassifier` of small tables, with every state enumerated. It alternates until nothing changes.

    Parameters
    ----------
    l2_mu, l2_theta, max_iter, tol, random_state
        As in `ExactMaxEntClassifier`, alternations at most, and the change of expectations in records that ends them.
        Attributes: `n_iter_` alternations, `counts_` (2, m), posterior means of counts and label sums.
    """

    accounts_for_noise = True

    max_iter: Count = 500
    tol: NonNegative = 1e-2

    def _fit(self, observation: ContingencyTables) -> None:
        noise, hidden, observation = variances(observation), find_hidden(observation), fill_hidden(observation)
        self.l2_theta_, model = theta_penalty(self.l2_theta, observation), Enumeration.from_tables(observation)
        d, c = model.d, model.c
        mu, theta, penalties = np.zeros_like(model.d), np.zeros_like(model.c), model.index.spread(*self.l2_theta_)
        expected = np.stack(model.compute_expectations(mu, theta))
        for step in track(range(1, self.max_iter + 1), "alternations"):
            self.n_iter_ = step
            d_hat, c_hat = expected
            self.counts_ = np.stack(posterior_means(d, c, d_hat, c_hat, gains(d_hat, c_hat, *noise)))
            if hidden is not None:
                cells, threshold, hidden_noise = hidden
                mean = hidden_mean(d_hat[cells], threshold, hidden_noise)[0]
                self.counts_[:, cells] = mean, mean * c_hat[cells] / np.maximum(d_hat[cells], LEAST)
            model.d, model.c = self.counts_
            mu, theta = model.optimum(self.l2_mu, penalties, (mu, theta))
            before, expected = expected, np.stack(model.compute_expectations(mu, theta))
            if np.abs(expected - before).max() < self.tol:
                break
        self._set_model(model, observation, mu, theta)
