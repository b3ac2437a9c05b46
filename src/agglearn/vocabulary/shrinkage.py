"""Empirical Bayes: c of n records have the rate (c + a) / (n + a + b), for rates from Beta(a, b) without noise."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln

EMPIRICAL = "beta_binomial"


def shrink_sums(counts: np.ndarray, sums: np.ndarray, mode: str | float) -> np.ndarray:
    """Return label sums that have shrunk rates: by the fitted prior, `EMPIRICAL`, or by records at the base rate."""
    if isinstance(mode, str):
        a, b = beta_prior(counts, sums)
    else:
        rate = sums.sum() / counts.sum()
        a, b = mode * rate, mode * (1 - rate)
    return counts * (sums + a) / (counts + a + b)


def remove_noise(
    counts: np.ndarray, sums: np.ndarray, total: float, positives: float, variances: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """(V,) estimates of true counts and label sums: 0 ≤ label sum ≤ count, and counts add up to the total.

    Counts are projected. The excess of a label sum, c̃ − r·ñ, is multiplied by s/(s + σ²), σ² the variance of its noise
    and s = n²τ² + n·r(1 − r) its own, with τ² between rates by moments.
    """
    rate = float(np.clip(positives / total, 1e-9, 1 - 1e-9))
    excess, noise, v = sums - rate * counts, variances[1] + rate**2 * variances[0], rate * (1 - rate)
    n = project_on_simplex(counts, total) if variances[0] else np.maximum(counts, 0)
    squared = max(float(np.sum(counts**2 - variances[0])), float(n @ n))
    spread = max(float(np.sum(excess**2 - noise) - v * n.sum()) / squared, 0.0)
    signal = n**2 * spread + n * v
    return n, np.clip(rate * n + excess * signal / np.maximum(signal + noise, 1e-300), 0, n)


def project_on_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest point (least squares) whose coordinates are not negative and add up to a total."""
    descending = np.sort(values)[::-1]
    shift = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    return np.maximum(values - shift[np.flatnonzero(descending > shift)[-1]], 0)


def beta_prior(counts: np.ndarray, sums: np.ndarray) -> tuple[float, float]:
    """(a, b) of largest likelihood, where the rate of each value is drawn from Beta(a, b)."""
    pairs, times = np.unique(counts + 1j * sums, return_counts=True)  # few, however many values there are
    n, c = pairs.real, pairs.imag
    mean = sums.sum() / counts.sum()

    def parameters(x: np.ndarray) -> tuple[float, float]:
        rate, size = 1 / (1 + np.exp(-x[0])), np.exp(x[1])
        return float(rate * size), float((1 - rate) * size)

    def loss(x: np.ndarray) -> float:
        a, b = parameters(x)
        return -(times @ (betaln(c + a, n - c + b) - betaln(a, b))) / times.sum()

    start = [np.log(mean / (1 - mean)), np.log(10.0)]
    bounds = [(start[0] - 8, start[0] + 8), (np.log(1e-3), np.log(1e9))]
    return parameters(minimize(loss, start, method="L-BFGS-B", bounds=bounds).x)
