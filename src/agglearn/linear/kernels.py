"""Numba kernels of linear scores. One thread adds up each fixed chunk of rows, so their number does not matter."""

import contextlib
from collections.abc import Iterator

import numba
import numpy as np
from numba import njit, prange

FAST = {"nsz", "arcp", "contract", "reassoc"}
WORTH_THREADS = 50_000  # numbers below which waiting for other threads costs more than they save


@contextlib.contextmanager
def threads_for(work: int) -> Iterator[None]:
    threads = numba.get_num_threads()
    numba.set_num_threads(threads if work >= WORTH_THREADS else 1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


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
    """(B,) sums Σ_i w_i log Σ_c exp(s_ic) and (B, K, d + 1) Σ_i w_i P(y_i = k) (x_i, 1), weights (n,) or (0,) for 1."""
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


@njit(cache=True)
def rows_loss(index, counts, positives, weights, intercept, z, out):
    """Write gradient, that of the intercept, and −log-likelihood to `out` (m + 2,). `z` (n,) is scratch."""
    tables, n, m = index.shape[0], index.shape[1], weights.size
    z[:], out[:] = intercept, 0.0
    for t in range(0, tables - 1, 2):
        even, odd = index[t], index[t + 1]
        for i in range(n):
            z[i] += weights[even[i]] + weights[odd[i]]
    for i in range(n):
        z_i = z[i] + (weights[index[-1, i]] if tables % 2 else 0.0)
        soft = np.log1p(np.exp(-abs(z_i))) + max(z_i, 0.0)  # log(1 + e^z)
        z[i] = counts[i] * np.exp(z_i - soft) - positives[i]
        out[m] += z[i]
        out[m + 1] += counts[i] * soft - positives[i] * z_i
    for t in range(0, tables - 1, 2):
        even, odd = index[t], index[t + 1]
        for i in range(n):
            out[even[i]] += z[i]
            out[odd[i]] += z[i]
    if tables % 2:
        for i in range(n):
            out[index[-1, i]] += z[i]


@njit(cache=True, parallel=True)
def blocks_loss(index, counts, positives, weights, intercept, z, blocks):
    """`rows_loss` of fixed runs of rows, one per row of `blocks`, so that their sum has one order."""
    n, b = index.shape[1], blocks.shape[0]
    for k in prange(b):
        i, j = k * n // b, (k + 1) * n // b
        rows_loss(index[:, i:j], counts[i:j], positives[i:j], weights, intercept, z[i:j], blocks[k])
