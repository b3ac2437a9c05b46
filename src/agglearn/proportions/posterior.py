"""Posterior of instance labels given how many instances of a bag have each label: the E step, and its likelihood."""

import numpy as np

from agglearn.errors import ConfigError, DataError
from agglearn.linear.kernels import threads_for
from agglearn.proportions import kernels, multiclass
from agglearn.proportions.convolution_tree import tree_posterior

METHODS = ("fourier", "tree", "direct")
EXTREME = 345.0  # log-odds beyond which a probability is 0 or 1


def cardinality_posterior(probabilities, total, method: str = "fourier") -> np.ndarray:
    """P(y_i | Σ_j y_j = total) for independent labels of one bag (Sun 2019, sections 3.4.2 and 3.4.3).

    Parameters
    ----------
    probabilities : (n,) P(y_i = 1), or (n, C) class probabilities whose rows add up to 1.
    total : how many labels are 1; or (C,) how many instances each class has.
    method : `fourier`, exact in O(n): see `agglearn.proportions.kernels` (sums of small variance go the direct way);
        `tree`, the thesis's O(n log² n) message passing, where its rounding errors allow; `direct`, a dynamic program,
        O(n²).

    Returns
    -------
    (n,) or (n, C) posteriors. For `fourier` and `direct` the relative error is below 1e-10, and they add up to the
    total.

    Raises
    ------
    DataError : probabilities outside [0, 1], totals outside [0, n] or not adding up to n, a total that these
        probabilities make impossible, or too improbable for the errors of `tree`.
    """
    if method not in METHODS:
        raise ConfigError(f"method: {method!r} is not known; one of {', '.join(METHODS)}")
    p = np.asarray(probabilities, dtype=float)
    if p.ndim not in (1, 2) or not len(p):
        raise DataError(f"probabilities: must be (n,) or (n, C) with n ≥ 1, got shape {p.shape}")
    if not ((p >= 0) & (p <= 1)).all():
        i = int(np.flatnonzero(~((p >= 0) & (p <= 1)).reshape(len(p), -1).all(axis=1))[0])
        raise DataError(f"probabilities: must lie in [0, 1]; instance {i} has {p[i]}")
    return _binary(p, total, method) if p.ndim == 1 else _classes(p, total, method)


def _binary(p: np.ndarray, total, method: str) -> np.ndarray:
    z, n = int(total), len(p)
    if z != total or not 0 <= z <= n:
        raise DataError(f"total: must be a whole number from 0 to the {n} instances of the bag, got {total}")
    least, most = int((p == 1).sum()), int((p > 0).sum())
    if not least <= z <= most:
        raise DataError(f"total: {z} is impossible; {least} instances have probability 1 and {most} have more than 0")
    if method == "tree":
        return tree_posterior(np.column_stack([p, 1 - p]), np.array([z, n - z]))[0][:, 0]
    with np.errstate(divide="ignore"):
        logits = np.log(p) - np.log1p(-p)
    how = kernels.DIRECT if method == "direct" else kernels.FOURIER
    q, _ = binary_posteriors(logits, np.array([0, n]), np.array([z]), how)
    return np.where(p == 0, 0.0, np.where(p == 1, 1.0, q))


def _classes(p: np.ndarray, total, method: str) -> np.ndarray:
    z = np.asarray(total)
    if z.shape != (p.shape[1],) or (z < 0).any() or (z != np.round(z)).any() or z.sum() != len(p):
        raise DataError(
            f"total: must be {p.shape[1]} whole numbers ≥ 0 that add up to the {len(p)} instances of the bag, got {total}"
        )
    if (abs(p.sum(axis=1) - 1) > 1e-6).any():
        raise DataError("probabilities: the rows must add up to 1")
    if method == "tree":
        return tree_posterior(p, z)[0]
    how = multiclass.DIRECT if method == "direct" else multiclass.FOURIER
    with np.errstate(divide="ignore"):
        return class_posteriors(np.log(p), np.array([0, len(p)]), z[None, :], how)[0]


def binary_posteriors(logits, offsets, totals, how: int = kernels.FOURIER) -> tuple[np.ndarray, np.ndarray]:
    """(P(y_i = 1 | bag's sum) (n,), log P(sum) per bag (B,)) for log-odds (n,), offsets (B + 1,), totals (B,)."""
    odds = np.exp(np.clip(np.ascontiguousarray(logits, dtype=float), -EXTREME, EXTREME))
    with threads_for(20 * len(odds)):
        return kernels.posteriors(odds, whole(offsets), whole(totals), how)


def class_posteriors(log_p, offsets, counts, how: int = multiclass.FOURIER, names=()) -> tuple[np.ndarray, np.ndarray]:
    """(posteriors (n, C), log P(counts) per bag (B,)) for log-probabilities (n, C), counts (B, C).

    Raises
    ------
    DataError : a bag is too large for exact inference with so many classes, or its counts are impossible; it is named, by
        `names` where there are any.
    """
    q, found = multiclass.posteriors(np.ascontiguousarray(log_p, dtype=float), whole(offsets), whole(counts), how)
    if (bad := np.flatnonzero(~np.isfinite(found))).size:
        b = bad[0]
        where = f"bag {names[b] if len(names) else b}: counts {np.asarray(counts)[b].tolist()}"
        if found[b] == multiclass.TOO_LARGE:
            raise DataError(
                f"{where} are too large for exact inference over {q.shape[1]} classes; use smaller bags or multiclass='ovr'"
            )
        raise DataError(f"{where} are impossible with these probabilities, or too improbable to compute with")
    return q, found


def whole(numbers) -> np.ndarray:
    """Integers as the kernels take them: one type and layout, so that they compile once."""
    return np.ascontiguousarray(numbers, dtype=np.int64)
