"""Covariance of the weights of a pairwise model around their truth: Laplace's approximation, with the tables' noise."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

from agglearn.linear.penalised import PenalisedSolution
from agglearn.maxent.cell_noise import gains, variances
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables

SAMPLED, BURN_IN = 10_000, 30  # states of the model that the covariance of its statistics is taken from, and sweeps
LARGEST = 12_000  # weights in μ and θ: five dense matrices of their square, 6 GB


@dataclass(frozen=True)
class Evidence:
    """What a fit knows of its tables."""

    index: WeightIndex
    total: float  # number of records
    noise: np.ndarray  # (2, m) variances of the noise on counts and on label sums
    follows: bool  # whether the learner follows posterior means of the true counts

    @classmethod
    def of(cls, index: WeightIndex, tables: ContingencyTables, follows: bool) -> "Evidence | str":
        """Or the reason why there is none."""
        if index.weight_of is not None:
            return "hashed pairs share their weights"
        if index.number.size:
            return "weights of empty cells are fixed"
        if tables.noise is not None and tables.noise.threshold:
            return "cells below a threshold are hidden"
        if 2 * len(index.d) > LARGEST:
            return f"{2 * len(index.d):,} weights are too many, at most {LARGEST:,}; take fewer pairs"
        return cls(index, tables.total, np.stack(variances(tables)), follows)


def weight_rows(index: WeightIndex, positions: np.ndarray) -> sparse.csr_array:
    """(n, w) φ of rows, from their positions (n, D). A position −1 adds nothing."""
    n, codes = len(positions), positions.astype(np.int64) - index.offsets
    rows, columns = [], []
    for first, second in np.argwhere(index.cells >= 0):
        complete = np.flatnonzero((positions[:, [first, second]] >= 0).all(axis=1))
        within = codes[complete, first] * (index.sizes[second] if first != second else 1)
        rows.append(complete)
        columns.append(index.cells[first, second] + within + (codes[complete, second] if first != second else 0))
    cells = sparse.coo_array((np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(columns))), (n, len(index.rows)))  # fmt: skip
    return cells.tocsr()


def statistics_covariance(
    index: WeightIndex, mu: np.ndarray, theta: np.ndarray, intercept: float
) -> tuple[np.ndarray, np.ndarray]:
    """(2w,) means and (2w, 2w) covariance of (φ(x), y φ(x)) of one record, from states of the model."""
    chains = Chains(index, SAMPLED, intercept, seed=1)
    chains.set_weights(mu, theta)
    chains.sweep(1, BURN_IN)
    states = chains.positions.astype(np.int32)
    phi = weight_rows(index, states)
    p = expit(phi @ theta + intercept)
    labelled = phi * p[:, None]
    means = np.concatenate([phi.mean(axis=0), labelled.mean(axis=0)])
    unlabelled, mixed = (phi.T @ phi).toarray(), (phi.T @ labelled).toarray()
    return means, np.block([[unlabelled, mixed], [mixed, mixed]]) / SAMPLED - np.outer(means, means)


def describe_solution(
    evidence: Evidence, weights: tuple[np.ndarray, np.ndarray], intercept: float, l2_mu: float, l2_theta: np.ndarray,
    upper: float | None = None,
) -> PenalisedSolution:  # fmt: skip
    """Of (μ, θ) with these λ, of θ (w,). `upper` as in `PenalisedSolution`. With noise, gains of the posterior means multiply the statistics."""
    index, total, noise = evidence.index, evidence.total, evidence.noise
    means, covariance = statistics_covariance(index, *weights, intercept)
    slope, variance = total * covariance, total * covariance + np.diag(noise.ravel())
    if evidence.follows:
        gain = gains(*(total * means).reshape(2, -1), *noise)
        follow = sparse.block_array([[sparse.diags_array(a), sparse.diags_array(b)] for a, b in (gain[:2], gain[2:])])
        slope, variance = follow @ slope, follow @ (follow @ variance).T
    penalty = 2 * np.concatenate([np.full_like(l2_theta, l2_mu), l2_theta])
    of_theta = np.concatenate([np.zeros(len(l2_theta), bool), l2_theta > 0])
    with np.errstate(divide="ignore"):
        return PenalisedSolution(np.concatenate(weights), slope, variance, penalty, 1 / penalty, of_theta, upper)
