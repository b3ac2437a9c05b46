"""How much noise a promise takes: scales from ε, δ and sensitivities, and back.

Neighbours are two data sets that differ in one record (or in one label); the sensitivities are the largest L1 and L2
distances between what is released of them.
"""

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr

from agglearn.errors import ConfigError
from agglearn.observations.privacy.mechanisms import Mechanism, known_mechanism

CALIBRATIONS = ("analytic", "classic", "zcdp")


def checked(epsilon: float, delta: float | None, mechanism: str) -> None:
    """ConfigError for ε or δ that promise nothing, and for a δ where there is none."""
    if not (isinstance(epsilon, int | float) and 0 < epsilon < math.inf):
        raise ConfigError(f"epsilon: must be a number above 0, got {epsilon}")
    if known_mechanism(mechanism).endswith("laplace"):
        if delta:
            raise ConfigError(f"delta: {mechanism} noise promises epsilon alone; leave delta out")
    elif delta is None or not 0 < delta < 1:
        raise ConfigError(f"delta: {mechanism} noise needs a delta between 0 and 1, got {delta}")


def calibrated(
    mechanism: str, epsilon: float, delta: float | None, l1: float, l2: float, calibration: str | None = None
) -> Mechanism:
    """The mechanism that promises (ε, δ) for numbers of these sensitivities.

    Parameters
    ----------
    calibration : of a Gaussian: `analytic` (Balle and Wang 2018, the least noise), `classic` (for ε < 1 only), `zcdp`.
        Default: `analytic`; for the discrete Gaussian `zcdp`, since the others hold for the continuous one only.
    """
    checked(epsilon, delta, mechanism)
    if mechanism.endswith("laplace"):
        if calibration is not None:
            raise ConfigError(f"calibration: {mechanism} noise has one only; leave it out")
        return Mechanism(mechanism, l1 / epsilon)
    calibration = calibration or ("zcdp" if mechanism == "discrete_gaussian" else "analytic")
    if calibration not in CALIBRATIONS:
        raise ConfigError(f"calibration: {calibration!r} is not known; use {', '.join(CALIBRATIONS)}")
    if mechanism == "discrete_gaussian" and calibration != "zcdp":
        raise ConfigError(
            f"calibration: {calibration} holds for the continuous Gaussian; use zcdp for the discrete one"
        )
    if calibration == "zcdp":
        return Mechanism(mechanism, l2 / math.sqrt(2 * zcdp_budget(epsilon, delta)))
    scale = {"analytic": analytic_gaussian_scale, "classic": classic_gaussian_scale}[calibration]
    return Mechanism(mechanism, scale(l2, epsilon, delta))


def classic_gaussian_scale(sensitivity: float, epsilon: float, delta: float) -> float:
    """σ = s·√(2 ln(1.25/δ))/ε, as the note on WALR writes it. Proven for ε < 1 only (Dwork and Roth 2014, theorem
    A.1); from some ε on it is wrong: `gaussian_delta` says what it gives."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_delta(sigma: float, sensitivity: float, epsilon: float) -> float:
    """The least δ at ε of Gaussian noise: Φ(s/2σ − εσ/s) − e^ε·Φ(−s/2σ − εσ/s) (Balle and Wang 2018, theorem 8)."""
    half, far = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    first, second = log_ndtr(half - far), epsilon + log_ndtr(-half - far)
    return float(math.exp(first) * -math.expm1(min(second - first, 0.0)))


def analytic_gaussian_scale(sensitivity: float, epsilon: float, delta: float) -> float:
    """The least σ that gives (ε, δ): the root of `gaussian_delta`, from above (Balle and Wang 2018, algorithm 1)."""
    excess = lambda log_ratio: math.log(max(gaussian_delta(math.exp(log_ratio), 1.0, epsilon), 1e-300) / delta)  # noqa: E731
    low, high = -1.0, 1.0
    while excess(low) < 0:
        low -= 1
    while excess(high) > 0:
        high += 1
    ratio = math.exp(brentq(excess, low, high, xtol=1e-13))
    while gaussian_delta(ratio, 1.0, epsilon) > delta:
        ratio *= 1 + 1e-12
    return sensitivity * ratio


def zcdp_budget(epsilon: float, delta: float) -> float:
    """The largest ρ with ρ + 2·√(ρ·ln(1/δ)) ≤ ε: ρ-zCDP is then (ε, δ)-private (Bun and Steinke 2016, prop. 1.3)."""
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


def approximate_epsilon(rho: float, delta: float) -> float:
    """ε = ρ + 2·√(ρ·ln(1/δ)), the inverse of `zcdp_budget`."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))
