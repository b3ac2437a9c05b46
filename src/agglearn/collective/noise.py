"""Noise models: ℓ(z) = −log p(y | z) of an observed count y, elementwise (Sun 2019, section 2.1.2.1)."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import gammaln, xlogy

from agglearn.collective.kernels import EXACT, GAUSSIAN, LAPLACE, POISSON
from agglearn.errors import DataError
from agglearn.settings import check_choice


class NoiseModel(Protocol):
    code: ClassVar[int]  # of the model in kernels
    smooth: ClassVar[bool]  # whether the loss has a gradient everywhere
    positive: ClassVar[bool]  # whether a count above zero proves that somebody is there

    @property
    def rate(self) -> float:
        """Expected observed count per individual."""
        return 1.0

    @property
    def parameter(self) -> float:
        """Rate or scale, the one that kernels take."""
        return getattr(self, "scale", self.rate)

    def loss(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """ℓ(z)."""

    def gradient(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """ℓ′(z)."""

    def conjugate(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """sup_z λz − ℓ(z)."""

    def mean(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Gradient of the conjugate: the z at which the supremum is attained."""
        return y + 0.0 * dual

    def conjugate_curvature(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return np.zeros(np.shape(y))

    def bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest λ at which the conjugate is finite."""
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def linear(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether the loss is linear in z ≥ 0, and its slope where it is."""
        return np.zeros(y.shape, bool), np.zeros(y.shape)

    def variance(self, y: np.ndarray) -> np.ndarray | float:
        """Variance of y / rate given z, estimated from y."""

    def true_variance(self, z: np.ndarray) -> np.ndarray:
        """Variance of y / rate given the true counts z."""
        return np.full(np.shape(z), self.variance(z))

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Observed counts of true ones."""


@dataclass(frozen=True)
class Exact(NoiseModel):
    """y = z. The loss is an indicator without a gradient, and the dual variable is free."""

    code, smooth, positive = EXACT, False, True

    def loss(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.where(np.abs(y - z) <= 1e-6 * np.maximum(y, 1), 0.0, np.inf)

    def gradient(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        raise DataError("exact counts have no gradient; use method='dual-newton'")

    def conjugate(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return dual * y

    def linear(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y == 0, np.full(y.shape, np.inf)  # a count of zero forbids the cell

    def variance(self, y: np.ndarray) -> float:
        return 0.0

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(z, float)


@dataclass(frozen=True)
class Poisson(NoiseModel):
    rate: float = 1.0
    code, smooth, positive = POISSON, True, True

    def loss(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return self.rate * z - xlogy(y, self.rate * z) + gammaln(y + 1)

    def gradient(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return self.rate - np.divide(y, z, out=np.zeros(np.shape(y)), where=y > 0)

    def conjugate(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return xlogy(y, self.rate * y) - xlogy(y, self.rate - dual) - y - gammaln(y + 1)

    def mean(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return np.divide(y, self.rate - dual, out=np.zeros(np.shape(y)), where=y > 0)

    def conjugate_curvature(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return np.divide(y, (self.rate - dual) ** 2, out=np.zeros(np.shape(y)), where=y > 0)

    def bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(y.shape, -np.inf), np.full(y.shape, self.rate)

    def linear(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y == 0, np.full(y.shape, self.rate)

    def variance(self, y: np.ndarray) -> np.ndarray:
        return (y + 1) / self.rate**2

    def true_variance(self, z: np.ndarray) -> np.ndarray:
        return z / self.rate

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(self.rate * np.asarray(z)).astype(float)


@dataclass(frozen=True)
class Gaussian(NoiseModel):
    scale: float = 1.0
    code, smooth, positive = GAUSSIAN, True, False

    def loss(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return 0.5 * ((z - y) / self.scale) ** 2 + np.log(self.scale * np.sqrt(2 * np.pi))

    def gradient(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return (z - y) / self.scale**2

    def conjugate(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return dual * y + 0.5 * (self.scale * dual) ** 2 - np.log(self.scale * np.sqrt(2 * np.pi))

    def mean(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return y + self.scale**2 * dual

    def conjugate_curvature(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return np.full(np.shape(y), self.scale**2)

    def variance(self, y: np.ndarray) -> float:
        return self.scale**2

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(np.asarray(z, float), self.scale)


@dataclass(frozen=True)
class Laplace(NoiseModel):
    """Noise of differential privacy. The gradient at z = y is zero. The conjugate is finite in |λ| ≤ 1/scale."""

    scale: float = 1.0
    code, smooth, positive = LAPLACE, False, False

    def loss(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.abs(z - y) / self.scale + np.log(2 * self.scale)

    def gradient(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.sign(z - y) / self.scale

    def conjugate(self, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return dual * y - np.log(2 * self.scale)

    def bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(y.shape, -1 / self.scale), np.full(y.shape, 1 / self.scale)

    def linear(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y <= 0, np.full(y.shape, 1 / self.scale)

    def variance(self, y: np.ndarray) -> float:
        return 2 * self.scale**2

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(np.asarray(z, float), self.scale)


def noise_model(name: str, rate: float = 1.0, scale: float = 1.0) -> NoiseModel:
    """Noise model of a name: `exact`, `poisson` (rate), `gaussian` or `laplace` (scale)."""
    for key, value in (("rate", rate), ("scale", scale)):
        if not 0 < value < np.inf:
            raise DataError(f"noise: {key} must be a positive number, got {value}")
    rate, scale = float(rate), float(scale)
    models = {"exact": Exact(), "poisson": Poisson(rate), "gaussian": Gaussian(scale), "laplace": Laplace(scale)}
    check_choice("noise", name, models)
    return models[name]
