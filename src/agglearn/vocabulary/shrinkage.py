"""Counts and label rates that chance or noise has moved, estimated from all values of a feature: empirical Bayes.

The paper takes rates as counted and leaves better estimates to future work (section 3). Here c of n records with label 1
give the rate (c + a) / (n + a + b), where Beta(a, b) is what the rates of the feature's values look like. Noise of known
variance is taken out before that.
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


def without_noise(
    counts: np.ndarray, sums: np.ndarray, total: float, positives: float, variances: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """(V,) counts and label sums with the noise on them taken out: 0 ≤ label sum ≤ count, counts add up to the total.

    Counts are the nearest ones (least squares) that are not negative and add up to the total: small ones become 0. A label sum
    c̃ keeps the share s/(s + σ²) of its gap to the base rate, c̃ − r·ñ: σ² is the variance of the noise on that gap, and s
    what n records with the variance τ² between rates would give it, n²τ² + n·r(1 − r). τ² is estimated by moments.

    Parameters
    ----------
    total, positives : records, and records with label 1. variances : of the noise on a count and on a label sum.
    """
    rate = float(np.clip(positives / total, 1e-9, 1 - 1e-9))
    gap, noise, v = sums - rate * counts, variances[1] + rate**2 * variances[0], rate * (1 - rate)
    n = on_simplex(counts, total) if variances[0] else np.maximum(counts, 0)
    squared = max(float(np.sum(counts**2 - variances[0])), float(n @ n))
    spread = max(float(np.sum(gap**2 - noise) - v * n.sum()) / squared, 0.0)
    signal = n**2 * spread + n * v
    return n, np.clip(rate * n + gap * signal / np.maximum(signal + noise, 1e-300), 0, n)


def on_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest point (least squares) whose coordinates are not negative and add up to a total."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    return np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0)


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
