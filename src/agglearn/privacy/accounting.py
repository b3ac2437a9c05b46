"""Guarantee of a release by discrete Gaussian noise: an upper bound on δ, exact to within the resolution of a grid."""

import math
from collections.abc import Sequence

import numpy as np

from agglearn.privacy.mechanisms import discrete_gaussian

GRID = 1 << 16  # points: the computed σ is above the least one by less than one part in 1,000
REACH = 16  # standard deviations of the total loss on either side that the grid holds: beyond them lies less than 1e-50


def discrete_gaussian_delta(
    sigmas: Sequence[float] | np.ndarray, changes: Sequence[int] | np.ndarray, epsilon: float
) -> float:
    """An upper bound on the least δ at ε of independent discrete Gaussian noise on several numbers.

    A loss between two points of the grid is split over both: at least as easy to tell apart (Doroshenko et al. 2022).

    Parameters
    ----------
    sigmas, changes, epsilon : Sequence[float] or ndarray of shape (m,), Sequence[int] or ndarray of shape (m,), float
        σ of the noise on each number, and its largest change by a neighbour, whole.
    """
    pairs, counts = np.unique(np.stack([sigmas, np.abs(changes)], axis=1), axis=0, return_counts=True)
    groups = [(s, int(v), int(n)) for (s, v), n in zip(pairs.tolist(), counts, strict=True) if v]
    variance = sum(n * (v / s) ** 2 for s, v, n in groups)
    spread = math.sqrt(variance)
    tilt = max(epsilon / variance - 0.5, 0.0)  # makes rounding errors small beside δ
    step = (2 * REACH * spread + 2 * max(v / s for s, v, _ in groups)) / GRID
    log_total, transform = 0.0, np.ones(GRID // 2 + 1, complex)
    for sigma, change, n in groups:
        mass, log_mass = _tilt_loss(sigma, change, step, tilt)
        log_total += n * log_mass
        transform = transform * np.fft.rfft(mass) ** n
    mass = np.maximum(np.fft.irfft(transform, GRID), 0)
    first = round((variance * (0.5 + tilt)) / step) - GRID // 2
    points = first + np.arange(GRID)
    losses = points * step
    above = losses > epsilon
    weights = np.exp(log_total - tilt * losses[above]) * -np.expm1(epsilon - losses[above])
    return float(mass[points[above] % GRID] @ weights)


def _tilt_loss(sigma: float, change: int, step: float, tilt: float) -> tuple[np.ndarray, float]:
    """(GRID,) probabilities of one number's loss times e^(tilt · loss), scaled to 1, and the log of their sum."""
    support, p = discrete_gaussian(sigma)
    loss = (2 * change * support + change**2) / (2 * sigma**2)  # Canonne, Kamath, Steinke 2020
    below = np.floor(loss / step)
    upper = np.expm1(below * step - loss) / np.expm1(-step)  # fraction at the upper point: e^−loss stays in the mean
    logs = np.concatenate([_log(p * (1 - upper)) + tilt * below * step, _log(p * upper) + tilt * (below + 1) * step])
    top = logs.max()
    mass = np.exp(logs - top)
    tilted = np.bincount(np.concatenate([below, below + 1]).astype(np.int64) % GRID, mass, GRID)
    return tilted / mass.sum(), top + math.log(mass.sum())


def _log(p: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(p, 1e-300))
