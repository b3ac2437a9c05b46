"""What a release by discrete Gaussian noise promises, to within the resolution of a grid, and never less than the truth.

The privacy loss of one number that neighbours change by v is (2vz + v²)/2σ² with z from the noise's own law (Canonne, Kamath,
Steinke 2020). Losses of independent numbers add up: their law is a convolution, done by FFT on a grid.
"""

import math
from collections.abc import Sequence

import numpy as np

from agglearn.privacy.mechanisms import discrete_gaussian

GRID = 1 << 16  # points; the computed σ is above the least one by less than one part in 1,000
REACH = 16  # standard deviations of the total loss on either side that the grid holds: beyond them lies less than 1e-50


def discrete_gaussian_delta(sigmas: Sequence[float], changes: Sequence[int], epsilon: float) -> float:
    """An upper bound on the least δ at ε of independent discrete Gaussian noise on several numbers.

    Each loss between two points of the grid is split over both so that its probability under either neighbour stays: the
    split pair is at least as easy to tell apart (Doroshenko et al. 2022). Laws are tilted before they are convolved, so that
    rounding errors are small beside δ itself.

    Parameters
    ----------
    sigmas : (m,) σ of the noise on each number. changes : (m,) what a neighbour changes it by at most, whole.
    """
    groups = [(float(s), int(v), n) for (s, v), n in _counted(sigmas, changes) if v]
    variance = sum(n * (v / s) ** 2 for s, v, n in groups)
    spread = math.sqrt(variance)
    tilt = max(epsilon / variance - 0.5, 0.0)
    step = (2 * REACH * spread + 2 * max(v / s for s, v, _ in groups)) / GRID
    log_total, transform = 0.0, 1.0
    for sigma, change, n in groups:
        law, log_mass = _tilted(sigma, change, step, tilt)
        log_total += n * log_mass
        transform = transform * np.fft.rfft(law) ** n
    law = np.maximum(np.fft.irfft(transform, GRID), 0)
    first = round((variance * (0.5 + tilt)) / step) - GRID // 2
    at = first + np.arange(GRID)
    losses = at * step
    above = losses > epsilon
    weights = np.exp(log_total - tilt * losses[above]) * -np.expm1(epsilon - losses[above])
    return float(law[at[above] % GRID] @ weights)


def _counted(sigmas, changes) -> list:
    """((σ, change), how many numbers have them)."""
    pairs, counts = np.unique(np.stack([sigmas, np.abs(changes)], axis=1), axis=0, return_counts=True)
    return [(tuple(pair), int(n)) for pair, n in zip(pairs.tolist(), counts, strict=True)]


def _tilted(sigma: float, change: int, step: float, tilt: float) -> tuple[np.ndarray, float]:
    """(GRID,) law of one number's loss, in circles of the grid, times e^(tilt · loss) and scaled to 1; log of its mass."""
    support, p = discrete_gaussian(sigma)
    loss = (2 * change * support + change**2) / (2 * sigma**2)
    below = np.floor(loss / step)
    share = np.expm1(below * step - loss) / np.expm1(-step)  # of the upper point: e^−loss stays in the mean
    logs = np.concatenate([_log(p * (1 - share)) + tilt * below * step, _log(p * share) + tilt * (below + 1) * step])
    top = logs.max()
    mass = np.exp(logs - top)
    law = np.bincount(np.concatenate([below, below + 1]).astype(np.int64) % GRID, mass, GRID)
    return law / mass.sum(), top + math.log(mass.sum())


def _log(p: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(p, 1e-300))
