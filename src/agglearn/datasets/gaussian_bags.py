"""Samples of Gaussians, as bags with a statistic as target, in closed form and in nats (Sun 2019, section 4.3.1)."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np

from agglearn.datasets.base import BagPopulation, Simulated
from agglearn.errors import DataError
from agglearn.observations import Bags
from agglearn.seeds import derive_generator
from agglearn.settings import Count, Range, Whole

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]  # (n, d, d) covariances, (n,) targets, (n,) parameters
Covariances = Callable[[np.ndarray, np.random.Generator], Drawn]  # of (n,) points of (0, 1)


class GaussianBags(Simulated):
    """Samples of Gaussians, one per bag, with a statistic of the Gaussian in nats as target (Sun 2019, section 4.3.1).

    * rotation: N(0, R(α) Σ R(α)ᵀ) in the plane, α in [0, π]. Target: the entropy of the first coordinate.
    * correlation: N(0, [[Σ, αΣ], [αΣ, Σ]]), α in (−1, 1). Target: the mutual information of the halves.
    * rank1: N(0, I + λvvᵀ), ‖v‖ = 1, λ in (0, 1). Target: the mutual information of all coordinates.
    * random: N(0, Σ) with a Σ of its own in every bag. Target: as for rank1.

    Σ = (AAᵀ + I)/Σ_ij A_ij², A of standard normals. α and λ are evenly spaced, also among any first 2^k training bags.

    Parameters
    ----------
    statistic, dimension, n_bags, n_validation, n_test, bag_size : str, int or None, int, int, int, int
        Dimension of an instance (by default 2, 32, 32, 32), training bags, bags for choosing among settings, which come
        first, test bags, and instances per bag.
    """

    KEYS = ()
    PEAK: ClassVar = {"bytes": 12, "n_bags": 1024, "bag_size": 512, "dimension": 32}

    statistic: Literal["rotation", "correlation", "rank1", "random"] = "rotation"
    dimension: Annotated[int, Range(2)] | None = None
    n_bags: Count = 1024
    n_validation: Whole = 512
    n_test: Count = 512
    bag_size: Count = 512

    def draw(self, seed: int) -> BagPopulation:
        family = COVARIANCE_FAMILIES[self.statistic]
        d = self.dimension or (2 if self.statistic == "rotation" else 32)
        rng = derive_generator("gaussian bags", self.statistic, d, seed)
        covariances = family(d, rng)
        size = int(self.bag_size)
        training = np.concatenate([evenly_spaced(int(self.n_validation)), van_der_corput(int(self.n_bags))])
        drawn = {}
        for subset, points in (("train", training), ("test", evenly_spaced(int(self.n_test)))):
            stream = derive_generator(f"gaussian bags, {subset}", self.statistic, d, size, seed)
            drawn[subset] = draw_bags(covariances, points, size, stream)
        return BagPopulation(drawn["train"][0], *drawn["test"])


def evenly_spaced(n: int) -> np.ndarray:
    return (np.arange(n) + 0.5) / max(n, 1)


def van_der_corput(n: int) -> np.ndarray:
    """(n,) points of (0, 1) of which any first 2^k are evenly spaced, each moved by half the last spacing."""
    bits = max(1, int(np.ceil(np.log2(max(n, 2)))))
    k = np.arange(n)
    reversed_bits = np.sum([((k >> b) & 1) << (bits - 1 - b) for b in range(bits)], axis=0)
    return (reversed_bits + 0.5) / (1 << bits)


def draw_bags(
    covariances: Covariances, points: np.ndarray, size: int, rng: np.random.Generator, chunk: int = 256
) -> tuple[Bags, np.ndarray]:
    drawn = []
    for start in range(0, len(points), chunk):
        matrices, target, parameter = covariances(points[start : start + chunk], rng)
        root = np.linalg.cholesky(matrices).astype(np.float32)
        z = rng.standard_normal((len(matrices), size, matrices.shape[-1]), dtype=np.float32)
        drawn.append(((z @ root.transpose(0, 2, 1)).reshape(-1, matrices.shape[-1]), target, parameter))
    x, targets, parameters = map(np.concatenate, zip(*drawn, strict=True))
    return Bags(x, np.arange(0, len(points) * size + 1, size), target=targets), parameters


def marginal_entropy(covariance: np.ndarray) -> np.ndarray:
    """½ log(2πe Σ₁₁), for covariances (…, d, d)."""
    return 0.5 * np.log(2 * np.pi * np.e * covariance[..., 0, 0])


def block_information(alpha: np.ndarray, d: int) -> np.ndarray:
    """Mutual information of the halves of N(0, [[Σ, αΣ], [αΣ, Σ]]), −(d/2) log(1 − α²), whatever Σ is."""
    return -0.5 * d * np.log1p(-np.square(alpha))


def total_correlation(covariance: np.ndarray) -> np.ndarray:
    """Mutual information of all coordinates, ½ Σ log Σ_ii − ½ log |Σ|, for covariances (…, d, d)."""
    diagonal = np.log(np.diagonal(covariance, axis1=-2, axis2=-1)).sum(axis=-1)
    return 0.5 * (diagonal - np.linalg.slogdet(covariance)[1])


def _covariance(d: int, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
    a = rng.standard_normal((*shape, d, d))
    total = np.square(a).sum(axis=(-2, -1))[..., None, None]
    return (a @ a.swapaxes(-2, -1) + np.eye(d)) / total


def _rotation(d: int, rng: np.random.Generator) -> Covariances:
    if d != 2:
        raise DataError(f"gaussian_bags: rotation is for 2 dimensions, not {d}")
    sigma = _covariance(2, rng)

    def covariances(points: np.ndarray, rng: np.random.Generator) -> Drawn:
        alpha = np.pi * points
        r = np.stack([np.cos(alpha), -np.sin(alpha), np.sin(alpha), np.cos(alpha)], axis=-1).reshape(-1, 2, 2)
        turned = r @ sigma @ r.swapaxes(-2, -1)
        return turned, marginal_entropy(turned), alpha

    return covariances


def _correlation(d: int, rng: np.random.Generator) -> Covariances:
    if d % 2:
        raise DataError(f"gaussian_bags: correlation needs an even dimension, not {d}")
    sigma = _covariance(d // 2, rng)

    def covariances(points: np.ndarray, rng: np.random.Generator) -> Drawn:
        alpha = 2 * points - 1
        blocks = np.ones((len(points), 2, 2)) * alpha[:, None, None]
        blocks[:, [0, 1], [0, 1]] = 1
        matrices = np.einsum("bij,kl->bikjl", blocks, sigma).reshape(len(points), d, d)
        return matrices, block_information(alpha, d // 2), alpha

    return covariances


def _rank1(d: int, rng: np.random.Generator) -> Covariances:
    v = rng.standard_normal(d)
    v /= np.linalg.norm(v)

    def covariances(points: np.ndarray, rng: np.random.Generator) -> Drawn:
        matrices = np.eye(d) + points[:, None, None] * np.outer(v, v)
        return matrices, total_correlation(matrices), points

    return covariances


def _random(d: int, rng: np.random.Generator) -> Covariances:
    def covariances(points: np.ndarray, rng: np.random.Generator) -> Drawn:
        matrices = _covariance(d, rng, (len(points),))
        target = total_correlation(matrices)
        return matrices, target, target

    return covariances


COVARIANCE_FAMILIES = {"rotation": _rotation, "correlation": _correlation, "rank1": _rank1, "random": _random}
