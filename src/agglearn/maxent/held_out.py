"""Likelihood of the labels behind held-out tables."""

import numpy as np

from agglearn.maxent import kernels
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables

BURN_IN, SAMPLED = 30, 20  # sweeps before samples count, and sweeps that count


def label_log_likelihood(
    index: WeightIndex,
    mu: np.ndarray,
    theta: np.ndarray,
    intercept: float,
    held_out: ContingencyTables,
    n_chains: int,
    seed: int,
) -> float:
    """Return the mean log-likelihood of the labels behind held-out tables, (Σ c·θ + n₁b)/n − E ln(1 + e^{φ(x)·θ + b}).

    P(Y|X) enters through label sums and through one expectation over features. Tables do not have it, so x is drawn from the
    model, whose `mu` and `theta` are (K, K).
    """
    held_out.refuse_hashed_pairs("the choice by held-out tables")
    weights = theta[index.rows, index.columns]
    c = np.concatenate([held_out.dense(*k)[1].ravel() for k in held_out.tables])
    chains = Chains(index, n_chains, intercept, seed)
    chains.set_weights(mu[index.rows, index.columns], weights)
    chains.sweep(1, BURN_IN)
    logits, normaliser = np.empty(n_chains), []
    for sweep in range(SAMPLED):
        chains.sweep(2 + sweep)
        kernels.predict_logits(chains.positions.astype(np.int32), theta, intercept, logits)
        normaliser.append(np.logaddexp(0, logits).mean())
    return float((c @ weights + held_out.positives * intercept) / held_out.total - np.mean(normaliser))
