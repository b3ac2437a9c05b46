"""Population statistics of Gaussians in closed form, in nats (Sun 2019, section 4.3.1)."""

import numpy as np


def marginal_entropy(covariance: np.ndarray) -> np.ndarray:
    """Entropy of the first coordinate, ½ log(2πe Σ₁₁), for covariances (…, d, d)."""
    return 0.5 * np.log(2 * np.pi * np.e * covariance[..., 0, 0])


def block_information(alpha: np.ndarray, d: int) -> np.ndarray:
    """Mutual information of the halves of N(0, [[Σ, αΣ], [αΣ, Σ]]), −(d/2) log(1 − α²), whatever the (d, d) matrix Σ."""
    return -0.5 * d * np.log1p(-np.square(alpha))


def total_correlation(covariance: np.ndarray) -> np.ndarray:
    """Mutual information of all coordinates, ½ Σ log Σ_ii − ½ log |Σ|, for covariances (…, d, d)."""
    diagonal = np.log(np.diagonal(covariance, axis1=-2, axis2=-1)).sum(axis=-1)
    return 0.5 * (diagonal - np.linalg.slogdet(covariance)[1])
