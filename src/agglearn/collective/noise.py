"""Noise models: how an observed count y comes from a true count z (Sun 2019, section 2.1.2.1).

Each gives ℓ(z) = −log p(y | z) with gradient and curvature, and the convex conjugate sup_z λz − ℓ(z) with its first two
derivatives, which is what the dual problem is made of. All work elementwise on arrays. `smooth`: there is a gradient
everywhere; `positive`: a count above zero proves that somebody is there.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlogy

from agglearn.errors import DataError


@dataclass(frozen=True)
class Exact:
    """y = z. The loss is an indicator, its gradient does not exist; the dual variable is free."""

    smooth, positive = False, True

    def loss(self, y, z):
        return np.where(np.abs(y - z) <= 1e-6 * np.maximum(y, 1), 0.0, np.inf)

    def conjugate(self, y, dual):
        return dual * y

    def mean(self, y, dual):
        return y + 0.0 * dual

    def conjugate_curvature(self, y, dual):
        return 0.0 * y

    def bounds(self, y):
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def linear(self, y):
        """Where the loss is linear in z > 0: y = 0 forbids the cell, a slope of +∞."""
        return y == 0, np.full(y.shape, np.inf)

    def sample(self, z, rng):
        return np.asarray(z, float)


@dataclass(frozen=True)
class Poisson:
    """y ~ Poisson(rate · z)."""

    rate: float = 1.0
    smooth, positive = True, True

    def loss(self, y, z):
        return self.rate * z - xlogy(y, self.rate * z) + gammaln(y + 1)

    def gradient(self, y, z):
        return self.rate - np.divide(y, z, out=np.zeros(np.shape(y)), where=y > 0)

    def curvature(self, y, z):
        return np.divide(y, z * z, out=np.zeros(np.shape(y)), where=y > 0)

    def conjugate(self, y, dual):
        left = self.rate - dual
        return xlogy(y, self.rate * y) - xlogy(y, left) - y - gammaln(y + 1)

    def mean(self, y, dual):
        return np.divide(y, self.rate - dual, out=np.zeros(np.shape(y)), where=y > 0)

    def conjugate_curvature(self, y, dual):
        return np.divide(y, (self.rate - dual) ** 2, out=np.zeros(np.shape(y)), where=y > 0)

    def bounds(self, y):
        return np.full(y.shape, -np.inf), np.full(y.shape, self.rate)

    def linear(self, y):
        return y == 0, np.full(y.shape, self.rate)

    def sample(self, z, rng):
        return rng.poisson(self.rate * np.asarray(z)).astype(float)


@dataclass(frozen=True)
class Gaussian:
    """y ~ N(z, scale²)."""

    scale: float = 1.0
    smooth, positive = True, False

    def loss(self, y, z):
        return 0.5 * ((z - y) / self.scale) ** 2 + np.log(self.scale * np.sqrt(2 * np.pi))

    def gradient(self, y, z):
        return (z - y) / self.scale**2

    def curvature(self, y, z):
        return np.full(np.shape(y), self.scale**-2)

    def conjugate(self, y, dual):
        return dual * y + 0.5 * (self.scale * dual) ** 2 - np.log(self.scale * np.sqrt(2 * np.pi))

    def mean(self, y, dual):
        return y + self.scale**2 * dual

    def conjugate_curvature(self, y, dual):
        return np.full(np.shape(y), self.scale**2)

    def bounds(self, y):
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def linear(self, y):
        return np.zeros(y.shape, bool), np.zeros(y.shape)

    def sample(self, z, rng):
        return rng.normal(np.asarray(z, float), self.scale)


@dataclass(frozen=True)
class Laplace:
    """y ~ Laplace(z, scale): the mechanism of differential privacy.

    The gradient at z = y is taken as zero, one of the sub-gradients. In the dual the loss is nothing but a box,
    |λ| ≤ 1/scale, so that it can be minimised without smoothing.
    """

    scale: float = 1.0
    smooth, positive = False, False

    def loss(self, y, z):
        return np.abs(z - y) / self.scale + np.log(2 * self.scale)

    def gradient(self, y, z):
        return np.sign(z - y) / self.scale

    def curvature(self, y, z):
        return np.zeros(np.shape(y))

    def conjugate(self, y, dual):
        return dual * y - np.log(2 * self.scale)

    def mean(self, y, dual):
        return y + 0.0 * dual

    def conjugate_curvature(self, y, dual):
        return np.zeros(np.shape(y))

    def bounds(self, y):
        return np.full(y.shape, -1 / self.scale), np.full(y.shape, 1 / self.scale)

    def linear(self, y):
        return y <= 0, np.full(y.shape, 1 / self.scale)

    def sample(self, z, rng):
        return rng.laplace(np.asarray(z, float), self.scale)


def noise_model(name: str, rate: float = 1.0, scale: float = 1.0):
    """The noise model of a name: `exact`, `poisson` (rate), `gaussian` or `laplace` (scale)."""
    made = {
        "exact": Exact,
        "poisson": lambda: Poisson(float(rate)),
        "gaussian": lambda: Gaussian(float(scale)),
        "laplace": lambda: Laplace(float(scale)),
    }
    if name not in made:
        raise DataError(f"noise: {name!r} is not known; use {', '.join(made)}")
    for what, value in (("rate", rate), ("scale", scale)):
        if not 0 < value < np.inf:
            raise DataError(f"noise: {what} must be a positive number, got {value}")
    return made[name]()
