"""The likelihood of labels behind held-out tables."""

import numpy as np

from agglearn.maxent import kernels
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import Layout
from agglearn.observations import ContingencyTables

BURN_IN, KEPT = 30, 20  # sweeps before samples count, and sweeps that count


def label_log_likelihood(
    layout: Layout,
    mu: np.ndarray,
    theta: np.ndarray,
    intercept: float,
    held: ContingencyTables,
    n_chains: int,
    seed: int,
) -> float:
    """Mean log-likelihood of the labels behind held-out tables, Σ c·θ + n₁b − n E ln(1 + e^{φ(x)·θ + b}), with x drawn from
    the model: P(Y|X) enters through label sums and through one expectation over features, which tables do not have.

    Parameters
    ----------
    mu, theta : (K, K) weights of the model. intercept : b. n_chains, seed : of the samples.
    """
    held.refuse_hashed_pairs("the choice by held-out tables")
    weights = theta[layout.rows, layout.columns]
    c = np.concatenate([held.dense(*k)[1].ravel() for k in held.tables])
    chains = Chains(layout, n_chains, intercept, seed)
    chains.set_weights(mu[layout.rows, layout.columns], weights)
    chains.sweep(1, BURN_IN)
    normaliser = []
    for sweep in range(KEPT):
        chains.sweep(2 + sweep)
        kernels.predict_logits(chains.positions.astype(np.int32), theta, intercept, z := np.empty(n_chains))
        normaliser.append(np.logaddexp(0, z).mean())
    return float((c @ weights + held.positives * intercept) / held.total - np.mean(normaliser))
