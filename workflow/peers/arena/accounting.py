"""Budget of a mechanism of many steps: Rényi differential privacy of the sampled Gaussian, and concentrated privacy."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

ORDERS = np.concatenate([np.arange(2, 64), np.unique(np.geomspace(64, 4096, 60).astype(int))])


def sampled_gaussian_epsilon(rate: float, sigma: float, steps: int, delta: float) -> float:
    """ε of steps that add N(0, σ²) to a sum of norm 1 over a Poisson sample (Mironov, Talwar, Zhang 2019).

    Orders are whole numbers. Conversion to (ε, δ) is that of Canonne, Kamath, Steinke 2020, proposition 12.
    """
    return min(epsilon_of_rdp(order, steps * _sampled_rdp(rate, sigma, int(order)), delta) for order in ORDERS)


def _sampled_rdp(rate: float, sigma: float, order: int) -> float:
    if rate == 1:
        return order / (2 * sigma**2)
    k = np.arange(order + 1)
    binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = binomial + k * math.log(rate) + (order - k) * math.log1p(-rate) + (k * k - k) / (2 * sigma**2)
    return float(logsumexp(terms)) / (order - 1)


def epsilon_of_rdp(order: float, rdp: float, delta: float) -> float:
    """ε of a mechanism with Rényi divergence `rdp` of an order."""
    return max(rdp + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1), 0.0)


def sampled_gaussian_scale(rate: float, steps: int, epsilon: float, delta: float) -> float:
    """The least σ at which so many steps keep (ε, δ)."""

    def excess(log_sigma: float) -> float:
        return sampled_gaussian_epsilon(rate, math.exp(log_sigma), steps, delta) - epsilon

    return math.exp(brentq(excess, math.log(0.1), math.log(1e5), xtol=1e-4)) * (1 + 1e-3)


def concentrated_budget(epsilon: float, delta: float) -> float:
    """The largest ρ whose zero-concentrated privacy is (ε, δ)-private, by the best real order."""

    def excess(log_rho: float) -> float:
        rho, orders = math.exp(log_rho), 1 + np.geomspace(1e-2, 1e5, 4000)
        return min(epsilon_of_rdp(order, order * rho, delta) for order in orders) - epsilon

    return math.exp(brentq(excess, math.log(1e-9), math.log(1e3), xtol=1e-5)) * (1 - 1e-4)
