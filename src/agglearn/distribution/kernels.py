"""Compiled float32 sums over the instances of each bag. One thread adds up each bag in the order of its instances."""

import math

import numba
import numpy as np

# sin(2πu) for |u| ≤ 1/4 as u·P(u²): Taylor's series to the 11th power, error below 6e-8
S0, S1, S2, S3, S4, S5 = ((-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(6))
S0, S1, S2, S3, S4, S5 = (np.float32(s) for s in (S0, S1, S2, S3, S4, S5))
QUARTER, HALF = np.float32(0.25), np.float32(0.5)


@numba.njit(inline="always")
def _cosine(turns):
    """cos(2π·turns), by a polynomial on a quarter turn, for which vector registers can be used."""
    u = QUARTER - abs(turns - np.floor(turns + HALF))
    q = u * u
    return u * (S0 + q * (S1 + q * (S2 + q * (S3 + q * (S4 + q * S5)))))


@numba.njit(parallel=True, cache=True, fastmath=True)
def fourier_sums(turns, weights, offsets, out):
    """Write Σ_i w_i (cos 2πt_i, sin 2πt_i) of every bag into `out`, for weights (n,) or (0,) for 1."""
    width = turns.shape[1]
    for b in numba.prange(len(offsets) - 1):
        cosines, sines = np.zeros(width, np.float32), np.zeros(width, np.float32)
        for i in range(offsets[b], offsets[b + 1]):
            w = weights[i] if len(weights) else np.float32(1)
            for f in range(width):
                cosines[f] += w * _cosine(turns[i, f])
                sines[f] += w * _cosine(turns[i, f] - QUARTER)
        out[b, :width], out[b, width:] = cosines, sines


@numba.njit(parallel=True, cache=True)
def histogram_sums(words, weights, offsets, out):
    """Add the weight of every word in every bag to `out` (B, K) float32, for weights (n,) or (0,) for 1."""
    for b in numba.prange(len(offsets) - 1):
        for i in range(offsets[b], offsets[b + 1]):
            out[b, words[i]] += weights[i] if len(weights) else np.float32(1)


@numba.njit(parallel=True, cache=True, fastmath=True)
def scale_to_sum(values, weights):
    """Scale every row to the sum w_i, in place: (n, K) float32, weights (n,) or (0,) for 1."""
    for i in numba.prange(len(values)):
        total = np.float32(0)
        for k in range(values.shape[1]):
            total += values[i, k]
        scale = (weights[i] if len(weights) else np.float32(1)) / total
        for k in range(values.shape[1]):
            values[i, k] *= scale
