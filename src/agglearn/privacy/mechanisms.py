"""Noise by seed (experiments, not private) or OpenDP (releases): Laplace, Gaussian (Dwork and Roth 2014), discrete
Laplace (Ghosh et al. 2009), discrete Gaussian (Canonne, Kamath, Steinke 2020).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agglearn.errors import ConfigError, DataError
from agglearn.optional import require
from agglearn.seeds import derive_generator
from agglearn.settings import check_choice

MECHANISMS = ("gaussian", "laplace", "discrete_gaussian", "discrete_laplace")
LARGEST_SIGMA = 100_000  # of a discrete Gaussian: its probabilities are held one by one
TAIL = 12  # standard deviations of a discrete Gaussian that are drawn from: the rest has probability 1e-32


@dataclass(frozen=True)
class Mechanism:
    """Independent noise on every number.

    Parameters
    ----------
    kind, scale : str, float or ndarray
        One of `MECHANISMS`, and its σ or b (Laplace), one for all, or in continuous, seeded noise for every number.
    """

    kind: str
    scale: float | np.ndarray

    def __post_init__(self) -> None:
        check_choice("mechanism", self.kind, MECHANISMS)
        if not (np.all(np.asarray(self.scale) >= 0) and np.all(np.isfinite(self.scale))):
            raise ConfigError(f"scale: must be a number from 0 on, got {self.scale}")

    @property
    def discrete(self) -> bool:
        """Whether the noise is whole, for whole numbers."""
        return self.kind.startswith("discrete_")

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian, discrete or not."""
        return self.kind.endswith("gaussian")

    @property
    def variance(self) -> float:
        """Variance, where all numbers have one scale. A discrete Gaussian's is below σ², hardly so from σ = 1 on."""
        scale = float(self.scale)
        if self.kind == "discrete_laplace":
            return 1 / (2 * math.sinh(1 / (2 * scale)) ** 2)
        if self.kind == "discrete_gaussian":
            support, p = discrete_gaussian(scale)
            return float(p @ support.astype(float) ** 2)
        return scale**2 * (1 if self.gaussian else 2)

    def log_density(self, noise: np.ndarray) -> np.ndarray:
        """Log-density of noise, of discrete kinds the log-probability of whole numbers, where all have one scale.

        Parameters
        ----------
        noise : ndarray
        """
        scale = float(self.scale)
        if self.gaussian:
            z = -0.5 * (np.asarray(noise) / scale) ** 2
            if not self.discrete:
                return z - math.log(scale * math.sqrt(2 * math.pi))
            return z - math.log(np.exp(-0.5 * (discrete_gaussian(scale)[0] / scale) ** 2).sum())
        constant = math.log(math.tanh(0.5 / scale)) if self.discrete else -math.log(2 * scale)
        return constant - np.abs(noise) / scale

    def noise(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
        """Seeded noise of a shape.

        Parameters
        ----------
        rng, shape : Generator, int or tuple[int, ...]
        """
        if self.kind == "gaussian":
            return rng.normal(0, self.scale, shape)
        if self.kind == "laplace":
            return rng.laplace(0, self.scale, shape)
        if self.kind == "discrete_laplace":  # the difference of two geometric numbers
            up, down = rng.geometric(-math.expm1(-1 / self.scale), (2, *np.atleast_1d(shape)))
            return up - down
        support, p = discrete_gaussian(float(self.scale))
        return rng.choice(support, size=shape, p=p)


Draw = Callable[..., np.ndarray]  # (mechanism, values, *names) → the values with noise


def discrete_gaussian(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Support and probabilities, p(k) ∝ exp(−k²/2σ²), within `TAIL` σ. ConfigError above `LARGEST_SIGMA`."""
    if sigma > LARGEST_SIGMA:
        raise ConfigError(
            f"discrete_gaussian noise of scale {sigma:.3g} takes too long to compute (up to {LARGEST_SIGMA:,}); use gaussian "
            "noise, a larger epsilon, or fewer tables"
        )
    reach = math.ceil(TAIL * sigma) + 1
    support = np.arange(-reach, reach + 1)
    p = np.exp(-((support / sigma) ** 2) / 2)
    return support, p / p.sum()


def draw_seeded(seed: int) -> Draw:
    """A function that draws from streams of seed and names: reproducible, hence not private.

    Parameters
    ----------
    seed : int
    """

    def draw(mechanism: Mechanism, values: np.ndarray, *names: object) -> np.ndarray:
        rng = derive_generator(mechanism.kind.replace("_", " ") + " noise", seed, *names)
        return values + mechanism.noise(rng, np.shape(values))

    return draw


def draw_private(mechanism: Mechanism, values: np.ndarray, *names: object) -> np.ndarray:
    """The values with OpenDP's noise from the system's secret randomness, which satisfies the stated guarantee.

    Parameters
    ----------
    mechanism, values, *names : Mechanism, ndarray, object
        DataError for values that are not finite, or not whole under discrete noise. Names are for `draw_seeded` only.
    """
    dp = require("opendp.prelude", "privacy")
    dp.enable_features("contrib")
    discrete = mechanism.discrete
    kind = "i64" if discrete else "f64"
    flat = np.ravel(np.asarray(values))
    if not np.isfinite(flat).all() or (discrete and (flat != np.round(flat)).any()):
        needed = "whole" if discrete else "finite"
        raise DataError(f"{mechanism.kind} noise needs {needed} numbers; use another mechanism")
    domain = dp.vector_domain(dp.atom_domain(T=kind) if discrete else dp.atom_domain(T=kind, nan=False))
    if mechanism.gaussian:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(mechanism.scale))
    else:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=kind), scale=float(mechanism.scale))
    numbers = flat.astype(np.int64 if discrete else np.float64).tolist()
    return np.asarray(measurement(numbers)).reshape(np.shape(values)) if numbers else np.asarray(values)
