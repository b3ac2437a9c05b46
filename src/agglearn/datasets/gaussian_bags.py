"""Samples of Gaussians whose statistics are known: bags with a target."""

from typing import Annotated, ClassVar, Literal

import numpy as np

from agglearn.datasets.base import BagPopulation, Simulated
from agglearn.datasets.gaussian_statistics import block_information, marginal_entropy, total_correlation
from agglearn.errors import DataError
from agglearn.observations import Bags
from agglearn.seeds import derive_generator
from agglearn.settings import Count, Range, Whole


class GaussianBags(Simulated):
    """Samples of Gaussians, one per bag, with a statistic of the Gaussian as target (Sun 2019, section 4.3.1; targets in
    `agglearn.datasets.gaussian_statistics`).

    * rotation: N(0, R(α) Σ R(α)ᵀ) in the plane, α in [0, π]; the entropy of the first coordinate.
    * correlation: N(0, [Σ, αΣ; αΣ, Σ]), α in (−1, 1); the mutual information of the halves.
    * rank1: N(0, I + λvvᵀ), ‖v‖ = 1, λ in (0, 1); the mutual information of all coordinates.
    * random: N(0, Σ) with a Σ of its own in every bag; the same.

    Σ = (AAᵀ + I)/Σ_ij A_ij², A of standard normals. Parameters lie evenly spaced; of the bags to learn from any first 2^k do,
    too. The first `n_validation` of them are a set of their own, for choosing among settings.

    Parameters
    ----------
    statistic : of the list above. dimension : of an instance; by default 2, 32, 32, 32.
    n_bags, n_validation, n_test, bag_size : numbers of bags, and of instances in each.
    """

    KEYS = ()
    PEAK: ClassVar = {"bytes": 12, "n_bags": 1024, "bag_size": 512, "dimension": 32}

    def __init__(
        self,
        statistic: Literal["rotation", "correlation", "rank1", "random"] = "rotation",
        dimension: Annotated[int, Range(2)] | None = None,
        n_bags: Count = 1024,
        n_validation: Whole = 512,
        n_test: Count = 512,
        bag_size: Count = 512,
    ):
        super().__init__()
        self.params = {
            "statistic": statistic, "dimension": dimension, "n_bags": n_bags, "n_validation": n_validation,
            "n_test": n_test, "bag_size": bag_size,
        }  # fmt: skip

    def draw(self, seed: int, **params) -> BagPopulation:
        p = self.laid_over(params)
        law = COVARIANCE_FAMILIES[p["statistic"]]
        d = p["dimension"] or (2 if p["statistic"] == "rotation" else 32)
        rng = derive_generator("gaussian bags", p["statistic"], d, seed)
        covariances = law(d, rng)
        n, held, test, size = (int(p[k]) for k in ("n_bags", "n_validation", "n_test", "bag_size"))
        where = np.concatenate([evenly_spaced(held), van_der_corput(n)])
        train, _ = drawn(
            covariances, where, size, derive_generator("gaussian bags, train", p["statistic"], d, size, seed)
        )
        judged, parameter = drawn(
            covariances,
            evenly_spaced(test),
            size,
            derive_generator("gaussian bags, test", p["statistic"], d, size, seed),
        )
        return BagPopulation(train, judged, parameter)


def evenly_spaced(n: int) -> np.ndarray:
    """(n,) middles of n equal parts of (0, 1)."""
    return (np.arange(n) + 0.5) / max(n, 1)


def van_der_corput(n: int) -> np.ndarray:
    """(n,) points of (0, 1) of which any first 2^k are evenly spaced (van der Corput), each moved by half the last spacing."""
    bits = max(1, int(np.ceil(np.log2(max(n, 2)))))
    k = np.arange(n)
    reversed_bits = sum(((k >> b) & 1) << (bits - 1 - b) for b in range(bits))
    return (reversed_bits + 0.5) / (1 << bits)


def drawn(covariances, where: np.ndarray, size: int, rng, chunk: int = 256) -> tuple[Bags, np.ndarray]:
    """(bags of `size` float32 instances for the places in (0, 1), their parameter)."""
    xs, targets, parameters = [], [], []
    for start in range(0, len(where), chunk):
        matrices, target, parameter = covariances(where[start : start + chunk], rng)
        root = np.linalg.cholesky(matrices).astype(np.float32)
        z = rng.standard_normal((len(matrices), size, matrices.shape[-1]), dtype=np.float32)
        xs.append((z @ root.transpose(0, 2, 1)).reshape(-1, matrices.shape[-1]))
        targets.append(target)
        parameters.append(parameter)
    offsets = np.arange(0, len(where) * size + 1, size)
    return Bags(np.concatenate(xs), offsets, target=np.concatenate(targets)), np.concatenate(parameters)


def _covariance(d: int, rng, shape=()) -> np.ndarray:
    a = rng.standard_normal((*shape, d, d))
    total = np.square(a).sum(axis=(-2, -1))[..., None, None]
    return (a @ a.swapaxes(-2, -1) + np.eye(d)) / total


def _rotation(d: int, rng):
    if d != 2:
        raise DataError(f"gaussian_bags: rotation is for 2 dimensions, not {d}")
    sigma = _covariance(2, rng)

    def covariances(where, rng):
        alpha = np.pi * where
        r = np.stack([np.cos(alpha), -np.sin(alpha), np.sin(alpha), np.cos(alpha)], axis=-1).reshape(-1, 2, 2)
        turned = r @ sigma @ r.swapaxes(-2, -1)
        return turned, marginal_entropy(turned), alpha

    return covariances


def _correlation(d: int, rng):
    if d % 2:
        raise DataError(f"gaussian_bags: correlation needs an even dimension, not {d}")
    sigma = _covariance(d // 2, rng)

    def covariances(where, rng):
        alpha = 2 * where - 1
        blocks = np.ones((len(where), 2, 2)) * alpha[:, None, None]
        blocks[:, [0, 1], [0, 1]] = 1
        matrices = np.einsum("bij,kl->bikjl", blocks, sigma).reshape(len(where), d, d)
        return matrices, block_information(alpha, d // 2), alpha

    return covariances


def _rank1(d: int, rng):
    v = rng.standard_normal(d)
    v /= np.linalg.norm(v)

    def covariances(where, rng):
        matrices = np.eye(d) + where[:, None, None] * np.outer(v, v)
        return matrices, total_correlation(matrices), where

    return covariances


def _random(d: int, rng):
    def covariances(where, rng):
        matrices = _covariance(d, rng, (len(where),))
        target = total_correlation(matrices)
        return matrices, target, target

    return covariances


COVARIANCE_FAMILIES = {"rotation": _rotation, "correlation": _correlation, "rank1": _rank1, "random": _random}


# -- clouds -----------------------------------------------------------------------------------------------------------
