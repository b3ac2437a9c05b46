"""Numba kernels of linear scores. One thread adds up each fixed chunk of rows, so their number does not matter."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numba
import numpy as np
from numba import njit, prange

FAST = {"nsz", "arcp", "contract", "reassoc"}
WORTH_THREADS = 400_000  # products, some 0.2 ms, below which waiting for other threads costs more than they save


@cache
def pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay. A forked process has none of its parent's."""
    return ThreadPoolExecutor(threads)


def in_threads(work: int, count: int, kernel: Callable, *arguments) -> None:
    """Run `kernel` on items 0 … count, one slice per thread if `work` is worth it. `parallel=True` compiles seconds longer."""
    threads = min(numba.get_num_threads(), count) if work >= WORTH_THREADS else 1
    if threads < 2:
        return kernel(*arguments, 0, count)
    bounds = np.linspace(0, count, threads + 1).astype(int)
    list(pool(threads, os.getpid()).map(partial(kernel, *arguments), bounds, bounds[1:]))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def scores(x, coef, intercept, out, first, stop):
    """Write scores x·coef_k + intercept_k of rows to `out` (n, K), for x (n, d), coef (K, d)."""
    x, out = x[first:stop], out[first:stop]
    for i in range(len(x)):
        for k in range(len(coef)):
            total = 0.0
            for j in range(x.shape[1]):
                total += x[i, j] * coef[k, j]
            out[i, k] = total + intercept[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def bag_sums(x, weights, offsets, out, first, stop):
    """Add sums Σ_i w_ik (x_i, 1) over bags to `out` (B, K, d + 1), for x (n, d), weights (n, K)."""
    d = x.shape[1]
    for b in range(first, stop):
        for i in range(offsets[b], offsets[b + 1]):
            for k in range(weights.shape[1]):
                w = weights[i, k]
                for j in range(d):
                    out[b, k, j] += w * x[i, j]
                out[b, k, d] += w


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def softmax_sums(x, coef, intercept, weights, offsets, values, out, first, stop):
    """Add Σ_i w_i log Σ_c exp(s_ic) to `values` (B,), Σ_i w_i P(y_i = k) (x_i, 1) to `out`, weights (n,) or (0,) for 1."""
    d, classes = x.shape[1], len(coef)
    s = np.empty(classes)
    for b in range(first, stop):
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
