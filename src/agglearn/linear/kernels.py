"""Numba kernels of linear scores over rows: sums over rows, softmax, its normalisers.

Kernels compile when first called, not when imported. Rows are added up in fixed chunks, each by one thread, so results do not
depend on their number.
"""

import contextlib
from collections.abc import Iterator

import numba
import numpy as np
from numba import njit, prange

FAST = {"nsz", "arcp", "contract", "reassoc"}
WORTH_THREADS = 50_000  # numbers below which waiting for other threads costs more than they bring


@contextlib.contextmanager
def threads_for(work: int) -> Iterator[None]:
    """One thread where there is little to do."""
    had = numba.get_num_threads()
    numba.set_num_threads(had if work >= WORTH_THREADS else 1)
    try:
        yield
    finally:
        numba.set_num_threads(had)


@njit(cache=True, parallel=True, error_model="numpy", fastmath=FAST)
def scores(x, coef, intercept):
    """(n, K) scores x·coef_k + intercept_k for x (n, d), coef (K, d)."""
    n, d = x.shape
    classes = len(coef)
    out = np.empty((n, classes))
    for i in prange(n):
        for k in range(classes):
            total = 0.0
            for j in range(d):
                total += x[i, j] * coef[k, j]
            out[i, k] = total + intercept[k]
    return out


@njit(cache=True, parallel=True, error_model="numpy", fastmath=FAST)
def bag_sums(x, weights, offsets):
    """(B, K, d + 1) sums Σ_i w_ik (x_i, 1) over every bag for x (n, d), weights (n, K)."""
    bags, d = len(offsets) - 1, x.shape[1]
    classes = weights.shape[1]
    out = np.zeros((bags, classes, d + 1))
    for b in prange(bags):
        for i in range(offsets[b], offsets[b + 1]):
            for k in range(classes):
                w = weights[i, k]
                for j in range(d):
                    out[b, k, j] += w * x[i, j]
                out[b, k, d] += w
    return out


@njit(cache=True, parallel=True, error_model="numpy", fastmath=FAST)
def softmax_sums(x, coef, intercept, weights, offsets):
    """(B,) sums Σ_i w_i log Σ_c exp(s_ic) and (B, K, d + 1) sums Σ_i w_i P(y_i = k) (x_i, 1) over every bag, in one pass.

    s : scores of K classes, as of `scores`, and 0 of the first class. weights : (n,), or empty where all are 1.
    """
    bags, d, classes = len(offsets) - 1, x.shape[1], len(coef)
    values, out = np.zeros(bags), np.zeros((bags, classes, d + 1))
    for b in prange(bags):
        s = np.empty(classes)
        for i in range(offsets[b], offsets[b + 1]):
            top = 0.0
            for k in range(classes):
                total = 0.0
                for j in range(d):
                    total += x[i, j] * coef[k, j]
                s[k] = total + intercept[k]
                top = max(top, s[k])
            total = np.exp(-top)
            for k in range(classes):
                s[k] = np.exp(s[k] - top)
                total += s[k]
            weight = weights[i] if len(weights) else 1.0
            values[b] += weight * (top + np.log(total))
            for k in range(classes):
                w = weight * s[k] / total
                for j in range(d):
                    out[b, k, j] += w * x[i, j]
                out[b, k, d] += w
    return values, out
