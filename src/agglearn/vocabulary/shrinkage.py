"""Label rates shrunk towards the feature's own prior: beta-binomial, empirical Bayes.

The paper takes rates as counted and leaves better estimates to future work (section 3). Here c of n records with label 1
give the rate (c + a) / (n + a + b), where Beta(a, b) is what the rates of the feature's values look like.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln

from agglearn.errors import ConfigError

EMPIRICAL = "beta_binomial"


def shrunk_sums(counts: np.ndarray, sums: np.ndarray, how) -> np.ndarray:
    """Label sums that have the shrunk rates.

    Parameters
    ----------
    how : `beta_binomial`, or the number of records at the base rate that each value is given besides its own.
    """
    if how == EMPIRICAL:
        a, b = beta_prior(counts, sums)
    elif isinstance(how, (int, float)) and not isinstance(how, bool) and how > 0:
        rate = sums.sum() / counts.sum()
        a, b = how * rate, how * (1 - rate)
    else:
        raise ConfigError(f"shrinkage: {how!r} is not known; None, {EMPIRICAL!r}, or a positive number of records")
    return counts * (sums + a) / (counts + a + b)


def beta_prior(counts: np.ndarray, sums: np.ndarray) -> tuple[float, float]:
    """(a, b) under which the counted labels are likeliest, if each value's rate is drawn from Beta(a, b)."""
    pairs, times = np.unique(counts + 1j * sums, return_counts=True)  # few, however many values there are
    n, c = pairs.real, pairs.imag
    mean = sums.sum() / counts.sum()

    def loss(x):
        rate, strength = 1 / (1 + np.exp(-x[0])), np.exp(x[1])
        a, b = rate * strength, (1 - rate) * strength
        return -(times @ (betaln(c + a, n - c + b) - betaln(a, b))) / times.sum()

    start = [np.log(mean / (1 - mean)), np.log(10.0)]
    bounds = [(start[0] - 8, start[0] + 8), (np.log(1e-3), np.log(1e9))]
    found = minimize(loss, start, method="L-BFGS-B", bounds=bounds).x
    rate, strength = 1 / (1 + np.exp(-found[0])), np.exp(found[1])
    return float(rate * strength), float((1 - rate) * strength)
