"""Maximum entropy from noisy tables with the true counts latent: what the paper leaves open.

Given the model, the records of a cell with label 1 and with label 0 are taken for Poisson numbers around its own
expectations; given them, released numbers are normal around their sums with the variance that the release states. Training
alternates between the posterior mean of the true counts (E step) and one step of Algorithm 1 towards them (M step): the view
of collective graphical models (Sheldon and Dietterich 2011), cell by cell.
"""

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from agglearn.maxent.enumeration import Enumeration
from agglearn.maxent.exact import ExactMaxEntClassifier
from agglearn.maxent.model import MaxEntClassifier
from agglearn.maxent.pcd_step import SMALLEST_CURVATURE
from agglearn.maxent.penalty import theta_penalty
from agglearn.maxent.weight_index import Layout
from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import noise_variances
from agglearn.settings import Count, NonNegative

SMOOTH = 0.05  # weight of the newest expectations in those that the gains are made of
LEAST = 1e-9  # records expected in a cell
SHARE = 0.3  # of its information by which a weight's steps are scaled at least: with less, momentum builds up until it diverges


class Gains(NamedTuple):
    """(m,) how far posterior means follow observed counts and label sums: d* = d̂ + dd·(d̃ − d̂) + dc·(c̃ − ĉ), c* likewise."""

    dd: np.ndarray
    dc: np.ndarray
    cd: np.ndarray
    cc: np.ndarray


def gains(d_hat: np.ndarray, c_hat: np.ndarray, var_d: np.ndarray, var_c: np.ndarray) -> Gains:
    """Kalman gains of counts and label sums for expectations (m,) and noise variances (m,); without noise 1, 0, 0, 1."""
    a = np.maximum(c_hat, LEAST)  # variance of the records with label 1, of a Poisson number
    b = np.maximum(d_hat - c_hat, LEAST)
    det = a * b + var_c * (a + b) + var_d * (a + var_c)
    return Gains((a * b + var_c * (a + b)) / det, a * var_d / det, a * var_c / det, a * (b + var_d) / det)


def posterior_means(
    d: np.ndarray, c: np.ndarray, d_hat: np.ndarray, c_hat: np.ndarray, gain: Gains
) -> tuple[np.ndarray, np.ndarray]:
    """(m,) d* and c* of the true counts given observed d, c and expected d̂, ĉ; from 0 on, c* at most d*."""
    gap_d, gap_c = d - d_hat, c - c_hat
    d_star = np.maximum(d_hat + gain.dd * gap_d + gain.dc * gap_c, 0)
    c_star = c_hat + gain.cd * gap_d + gain.cc * gap_c
    return d_star, np.clip(c_star, 0, d_star)


def variances(tables: ContingencyTables) -> tuple[np.ndarray, np.ndarray]:
    """(m,) noise variances of counts and of label sums, cells in the order of `Layout`; 0 where there is no noise."""
    found = noise_variances(tables)
    each = np.concatenate([np.full(int(np.prod(t.shape)), found[k]) for k, t in tables.tables.items()])
    public = tables.noise is not None and tables.noise.adjacency == "label"
    return (np.zeros_like(each) if public else each), each


class NoiseAwareMaxEntClassifier(MaxEntClassifier):
    """`MaxEntClassifier` towards the posterior means of the true counts, where the tables have noise.

    Cells with few records under the model follow noisy observations little: their weights are left to the penalty, as if λ
    were λ(1 + σ²/d). Without noise the same as `MaxEntClassifier`. Parameters and attributes as there.
    """

    accounts_for_noise = True

    def _fit(self, observation):
        self._noise = variances(observation) if observation.noise is not None else None
        self._expected = None
        super()._fit(observation)

    def _gradients(self, layout, mu, theta, d_hat, c_hat, out):
        if self._noise is None:
            return super()._gradients(layout, mu, theta, d_hat, c_hat, out)
        now = np.stack([d_hat, c_hat])
        self._expected = now if self._expected is None else self._expected + SMOOTH * (now - self._expected)
        gain = gains(*self._expected, *self._noise)
        d, c = posterior_means(layout.d, layout.c, d_hat, c_hat, gain)
        super()._gradients(replace(layout, d=d, c=c), mu, theta, d_hat, c_hat, out)
        for h, left, l2 in zip(out[1], (gain.dd, gain.cc), (self.l2_mu, self.l2_theta_), strict=True):
            information = (h - 2 * l2) * np.maximum(left, SHARE)  # what noise leaves of the data's
            h[:] = np.maximum(information + 2 * l2, SMALLEST_CURVATURE)
        return out


class ExactNoiseAwareMaxEntClassifier(ExactMaxEntClassifier):
    """`NoiseAwareMaxEntClassifier` of small tables, with every state enumerated: alternates until nothing changes.

    Parameters
    ----------
    l2_mu, l2_theta : as in `MaxEntClassifier`. max_iter : alternations. tol : largest change of an expectation, records.
    random_state : not used.

    Attributes
    ----------
    n_iter_ : alternations done. counts_ : (2, m) posterior means of counts and label sums.
    """

    accounts_for_noise = True

    def __init__(
        self,
        l2_mu: NonNegative = 1.0,
        l2_theta: Literal["moments"] | NonNegative = "moments",
        max_iter: Count = 500,
        tol: NonNegative = 1e-2,
        random_state=None,
    ):
        super().__init__(l2_mu, l2_theta, random_state)
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, observation):
        model, layout = Enumeration.of(observation), Layout.of(observation)
        noise, seen = variances(observation), (model.d, model.c)
        self.l2_theta_ = theta_penalty(self.l2_theta, observation)
        mu, theta = np.zeros_like(model.d), np.zeros_like(model.c)
        expected = np.stack(model.expected(mu, theta))
        for step in range(1, self.max_iter + 1):
            self.n_iter_ = step
            self.counts_ = np.stack(posterior_means(*seen, *expected, gains(*expected, *noise)))
            model.d, model.c = self.counts_
            mu, theta = model.optimum(self.l2_mu, self.l2_theta_, (mu, theta))
            before, expected = expected, np.stack(model.expected(mu, theta))
            if np.abs(expected - before).max() < self.tol:
                break
        self.mu_, self.theta_ = layout.matrix(mu), layout.matrix(theta)
        self.intercept_, self.encoder_, self.classes_ = model.intercept, observation.encoder, np.array([0, 1])
