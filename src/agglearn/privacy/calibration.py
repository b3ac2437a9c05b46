"""Calibration of noise: scales from ε, δ and the sensitivities, which are the largest L1 and L2 distances between exact
releases of neighbours, data sets that differ in one record (or in one label).
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Real

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from agglearn.errors import ConfigError
from agglearn.privacy.mechanisms import MECHANISMS, Mechanism, discrete_gaussian
from agglearn.settings import check_choice

LEAST_EPSILON = 1e-6  # below it `gaussian_delta` loses its digits: at 1e-15 its σ has 10,000 times the promised δ
LEAST_DELTA = 1e-30  # the accountant leaves out tails of probability 1e-32
GRID = 1 << 16  # points of the accountant: the computed σ is above the least one by less than one part in 1,000
REACH = 16  # standard deviations of the total loss on either side that the grid holds: beyond them lies less than 1e-50
CALIBRATIONS = {  # of each Gaussian mechanism, the default first
    "gaussian": ("analytic", "zcdp", "classic"),
    "discrete_gaussian": ("exact", "zcdp"),
}


def check_promise(
    epsilon: Real | Decimal | float, delta: Real | Decimal | float | None, mechanism: str
) -> tuple[float, float]:
    """ε and δ as floats, from real numbers of any type. δ is 0 for Laplace noise."""
    checked_epsilon, checked_delta = _real(epsilon), 0.0 if delta is None else _real(delta)
    if not 0 < checked_epsilon < math.inf:
        raise ConfigError(f"epsilon: must be a number above 0, got {epsilon}")
    check_choice("mechanism", mechanism, MECHANISMS)
    if mechanism.endswith("laplace"):
        if checked_delta:
            raise ConfigError(f"delta: {mechanism} noise promises epsilon alone; leave delta out")
        return checked_epsilon, checked_delta
    if not 0 < checked_delta < 1:
        raise ConfigError(f"delta: {mechanism} noise needs a delta between 0 and 1, got {delta}")
    least = {"delta": (checked_delta, LEAST_DELTA), "epsilon": (checked_epsilon, LEAST_EPSILON)}
    for name, (value, bound) in least.items():
        if value < bound:
            raise ConfigError(f"{name}: {value:g} is below {bound:g}, too small to compute with; use laplace noise")
    return checked_epsilon, checked_delta


def _real(value: object) -> float:
    """A real number (Fraction, Decimal, a NumPy scalar) as a float. NaN for anything else."""
    return float(value) if isinstance(value, Real | Decimal) and not isinstance(value, bool) else math.nan


def calibrate(
    mechanism: str, epsilon: float, delta: float | None, l1: float, l2: float, calibration: str | None = None,
    changes: Sequence[int] | np.ndarray | None = None,
) -> Mechanism:  # fmt: skip
    """The mechanism that guarantees (ε, δ) for numbers of these sensitivities.

    Parameters
    ----------
    mechanism, epsilon, delta, l1, l2 : str, float, float or None, float, float
        One of `MECHANISMS`. Laplace noise takes no delta and uses the L1 sensitivity, Gaussian noise uses that of L2.
    calibration : str or None
        Of a Gaussian: `analytic` (Balle and Wang 2018, the least noise, the default), `zcdp`, or `classic` (for ε < 1
        only). Of a discrete Gaussian: `exact` by `accounting` where `changes` are given, else `zcdp`.
    changes : Sequence[int] or ndarray or None
        Largest change of each number by a neighbour, whole, of norm `l2`.
    """
    epsilon, delta = check_promise(epsilon, delta, mechanism)
    if mechanism.endswith("laplace"):
        if calibration is not None:
            raise ConfigError(f"calibration: {mechanism} noise has one only; leave it out")
        return Mechanism(mechanism, l1 / epsilon)
    allowed = [c for c in CALIBRATIONS[mechanism] if c != "exact" or changes is not None]
    calibration = calibration or allowed[0]
    if calibration not in allowed:
        raise ConfigError(
            f"calibration: {calibration!r} does not go with {mechanism} noise here; use {' or '.join(allowed)}"
        )
    if calibration == "zcdp":
        return Mechanism(mechanism, l2 / math.sqrt(2 * zcdp_budget(epsilon, delta)))
    if calibration == "exact" and changes is not None:
        scales = discrete_gaussian_scales(np.ones(len(changes)), changes, epsilon, delta)
        return Mechanism(mechanism, float(scales[0]))
    scale = {"analytic": analytic_gaussian_scale, "classic": classic_gaussian_scale}[calibration]
    return Mechanism(mechanism, scale(l2, epsilon, delta))


def classic_gaussian_scale(sensitivity: float, epsilon: float, delta: float) -> float:
    """The σ = s·√(2 ln(1.25/δ))/ε of the note on WALR, proven for ε < 1 only (Dwork and Roth 2014, theorem A.1).

    From some ε on it is wrong: `gaussian_delta` is its true δ.

    Parameters
    ----------
    sensitivity, epsilon, delta : float
        The first is an L2 distance, here and in the next functions.
    """
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_delta(sigma: float, sensitivity: float, epsilon: float) -> float:
    """The least δ at ε of Gaussian noise: Φ(s/2σ − εσ/s) − e^ε·Φ(−s/2σ − εσ/s) (Balle and Wang 2018, theorem 8).

    Parameters
    ----------
    sigma, sensitivity, epsilon : float
    """
    half, far = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    first, second = log_ndtr(half - far), epsilon + log_ndtr(-half - far)
    return float(math.exp(first) * -math.expm1(min(second - first, 0.0)))


def analytic_gaussian_scale(sensitivity: float, epsilon: float, delta: float) -> float:
    """The least σ that gives (ε, δ): the root of `gaussian_delta`, from above (Balle and Wang 2018, algorithm 1).

    Parameters
    ----------
    sensitivity, epsilon, delta : float
    """
    delta_of = lambda sigma: gaussian_delta(sigma, 1.0, epsilon)  # noqa: E731
    return sensitivity * _least_factor(delta_of, delta, range(1, 700), 1e-13, 1e-12)


def gaussian_epsilon(sigma: float, sensitivity: float, delta: float) -> float:
    """The least ε from 0 on that Gaussian noise has at δ: the inverse of `gaussian_delta`.

    Parameters
    ----------
    sigma, sensitivity, delta : float
    """
    if gaussian_delta(sigma, sensitivity, 0.0) <= delta:
        return 0.0
    bound = approximate_epsilon((sensitivity / sigma) ** 2 / 2, delta)
    return brentq(lambda epsilon: gaussian_delta(sigma, sensitivity, epsilon) - delta, 0.0, bound)


def discrete_gaussian_scales(
    ratios: Sequence[float] | np.ndarray, changes: Sequence[int] | np.ndarray, epsilon: float, delta: float
) -> np.ndarray:
    """(m,) σ in the given ratios at which several numbers together keep (ε, δ), the least up to the grid's resolution.

    Parameters
    ----------
    ratios, changes, epsilon, delta : Sequence[float] or ndarray of shape (m,), Sequence[int] or ndarray, float, float
        σ of each number up to a common factor, and its largest change by a neighbour, whole.
    """
    ratios, changes = np.asarray(ratios, float), np.asarray(changes)
    start = analytic_gaussian_scale(math.sqrt(np.sum((changes / ratios) ** 2)), epsilon, delta)

    delta_of = lambda factor: discrete_gaussian_delta(start * factor * ratios, changes, epsilon)  # noqa: E731
    factor = _least_factor(delta_of, delta, [0.01 * 2**k for k in range(17)], 1e-6, 1e-6)
    return start * factor * ratios


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


def _least_factor(
    delta_of: Callable[[float], float], delta: float, ends: Sequence[float], tolerance: float, growth: float
) -> float:
    """The least factor of a scale that gives δ, from above. `ends` around 0 are tried for its logarithm."""

    def excess(log_factor: float) -> float:
        return math.log(max(delta_of(math.exp(log_factor)), 1e-300) / delta)

    low, high = next(-end for end in ends if excess(-end) >= 0), next(end for end in ends if excess(end) <= 0)
    factor = math.exp(brentq(excess, low, high, xtol=tolerance))
    while delta_of(factor) > delta:
        factor *= 1 + growth
    return factor


def zcdp_budget(epsilon: float, delta: float) -> float:
    """The largest ρ with ρ + 2·√(ρ·ln(1/δ)) ≤ ε: ρ-zCDP is then (ε, δ)-private (Bun and Steinke 2016, prop. 1.3).

    Parameters
    ----------
    epsilon, delta : float
    """
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


def approximate_epsilon(rho: float, delta: float) -> float:
    """The ε = ρ + 2·√(ρ·ln(1/δ)) of ρ-zCDP, the inverse of `zcdp_budget`.

    Parameters
    ----------
    rho, delta : float
    """
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))
