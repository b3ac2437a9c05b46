"""Posterior of instance labels given how many instances of a bag have each label: the E step, and its likelihood."""

import numpy as np
from numpy.typing import ArrayLike

from agglearn.errors import DataError
from agglearn.linear.kernels import in_threads
from agglearn.proportions import kernels, multiclass
from agglearn.proportions.convolution_tree import tree_posterior
from agglearn.settings import check_choice

ALGORITHMS: dict[str, int | None] = {"fourier": kernels.FOURIER, "tree": None, "direct": kernels.DIRECT}
EXTREME = 345.0  # log-odds beyond which a probability is 0 or 1


def cardinality_posterior(probabilities: ArrayLike, total: ArrayLike, method: str = "fourier") -> np.ndarray:
    """P(y_i | Σ_j y_j = total) (n,) or (n, C) for independent labels of one bag (Sun 2019, sections 3.4.2 and 3.4.3).

    Parameters
    ----------
    probabilities : array-like of shape (n,) or (n, C)
        P(y_i = 1), or class probabilities whose rows add up to 1.
    total : int or array-like of shape (C,)
        Number of labels that are 1, or of instances of each class. DataError if they make it impossible.
    method : {'fourier', 'tree', 'direct'}
        `fourier` is exact in O(n), `direct` in O(n²), both with a relative error below 1e-10. `tree` is the thesis's
        O(n log² n) message passing. DataError if the total is too improbable for its rounding errors.
    """
    check_choice("method", method, ALGORITHMS)
    p = np.asarray(probabilities, dtype=float)
    if p.ndim not in (1, 2) or not len(p):
        raise DataError(f"probabilities: must be (n,) or (n, C) with n ≥ 1, got shape {p.shape}")
    if (bad := np.flatnonzero(~((p >= 0) & (p <= 1)).reshape(len(p), -1).all(axis=1))).size:
        raise DataError(f"probabilities: must lie in [0, 1]; instance {bad[0]} has {p[bad[0]]}")
    return (_binary if p.ndim == 1 else _classes)(p, np.asarray(total), ALGORITHMS[method])


def _binary(p: np.ndarray, total: np.ndarray, algorithm: int | None) -> np.ndarray:
    z, n = int(total), len(p)
    if z != total or not 0 <= z <= n:
        raise DataError(f"total: must be a whole number from 0 to the {n} instances of the bag, got {total}")
    certain, possible = int((p == 1).sum()), int((p > 0).sum())
    if not certain <= z <= possible:
        raise DataError(
            f"total: {z} is impossible; {certain} instances have probability 1 and {possible} have more than 0"
        )
    if algorithm is None:
        return tree_posterior(np.column_stack([p, 1 - p]), np.array([z, n - z]))[0][:, 0]
    with np.errstate(divide="ignore"):
        logits = np.log(p) - np.log1p(-p)
    q, _ = binary_posteriors(logits, [0, n], [z], algorithm)
    return np.where(p == 0, 0.0, np.where(p == 1, 1.0, q))


def _classes(p: np.ndarray, z: np.ndarray, algorithm: int | None) -> np.ndarray:
    if z.shape != (p.shape[1],) or (z < 0).any() or (z != np.round(z)).any() or z.sum() != len(p):
        raise DataError(
            f"total: must be {p.shape[1]} whole numbers ≥ 0 that add up to the {len(p)} instances of the bag, got {z.tolist()}"
        )
    if (abs(p.sum(axis=1) - 1) > 1e-6).any():
        raise DataError("probabilities: the rows must add up to 1")
    if algorithm is None:
        return tree_posterior(p, z)[0]
    with np.errstate(divide="ignore"):
        return class_posteriors(np.log(p), [0, len(p)], z[None, :], algorithm)[0]


def binary_posteriors(
    logits: ArrayLike, offsets: ArrayLike, totals: ArrayLike, algorithm: int = kernels.FOURIER
) -> tuple[np.ndarray, np.ndarray]:
    """(P(y_i = 1 | sum) (n,), log P(sum) (B,)) for log-odds (n,), offsets (B + 1,), totals (B,)."""
    return _posteriors(logits, offsets, _integers(totals), np.zeros(0), algorithm)


def noisy_posteriors(logits: ArrayLike, offsets: ArrayLike, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(P(y_i = 1 | noisy sum) (n,), log P(noisy sum) (B,)), for log P(noisy sum | sum = 0 … size) (n + B,), bag after bag."""
    totals = np.zeros(np.size(offsets) - 1, np.int64)  # of no use
    return _posteriors(logits, offsets, totals, log_weights, kernels.FOURIER)


def _posteriors(
    logits: ArrayLike, offsets: ArrayLike, totals: np.ndarray, log_weights: np.ndarray, algorithm: int
) -> tuple[np.ndarray, np.ndarray]:
    odds = np.exp(np.clip(np.ascontiguousarray(logits, dtype=float), -EXTREME, EXTREME))
    q, log_p = np.empty(len(odds)), np.empty(len(totals))
    data = odds, _integers(offsets), totals, log_weights, algorithm
    in_threads(100 * len(odds), len(totals), kernels.posteriors, *data, q, log_p)
    return q, log_p


def class_posteriors(
    log_p: ArrayLike, offsets: ArrayLike, counts: ArrayLike, algorithm: int = kernels.FOURIER
) -> tuple[np.ndarray, np.ndarray]:
    """(Posteriors (n, C) of labels, log P(counts) (B,)) of several bags, given the counts of the classes in every bag.

    Parameters
    ----------
    log_p, offsets, counts : array-like of shape (n, C), (B + 1,), (B, C)
        Log-probabilities. Bag b holds rows offsets[b] to offsets[b + 1] − 1. DataError if counts are impossible, or a
        bag is too large for exact inference with so many classes.
    algorithm : int
        `kernels.FOURIER` or `kernels.DIRECT`.
    """
    z = _integers(counts)
    data = np.ascontiguousarray(log_p, dtype=float), _integers(offsets), z, algorithm
    q, likelihoods = np.empty_like(data[0]), np.empty(len(z))
    in_threads(500 * q.size, len(z), multiclass.posteriors, *data, q, likelihoods)
    if (bad := np.flatnonzero(~np.isfinite(likelihoods))).size:
        bag = f"bag {bad[0]}: counts {z[bad[0]].tolist()}"
        if likelihoods[bad[0]] == multiclass.TOO_LARGE:
            raise DataError(
                f"{bag} are too large for exact inference over {q.shape[1]} classes; use smaller bags or multiclass='ovr'"
            )
        raise DataError(f"{bag} are impossible with these probabilities, or too improbable to compute with")
    return q, likelihoods


def _integers(numbers: ArrayLike) -> np.ndarray:
    """Integers of one type and layout, for which the kernels compile once."""
    return np.ascontiguousarray(numbers, dtype=np.int64)
