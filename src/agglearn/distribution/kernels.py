"""Compiled float32 sums over the instances of each bag. One thread adds up each bag in the order of its instances."""

import math

import numba
import numpy as np

# sin(2πu) for |u| ≤ 1/4 as u·P(u²): Taylor's series to the 11th power, error below 6e-8
S0, S1, S2, S3, S4, S5 = ((-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(6))
S0, S1, S2, S3, S4, S5 = (np.float32(s) for s in (S0, S1, S2, S3, S4, S5))
QUARTER, HALF = np.float32(0.25), np.float32(0.5)
LANES = 16  # numbers in a vector register


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


@numba.njit(inline="always")
def _maximum(row):
    """Largest entry, by sixteen maxima, for which a compiler uses vector registers, unlike one."""
    lanes = np.full(LANES, row[0])
    aligned = len(row) // LANES * LANES
    for start in range(0, aligned, LANES):
        for k in range(LANES):
            v = row[start + k]
            lanes[k] = v if v > lanes[k] else lanes[k]
    top = row[0]
    for k in range(LANES):
        top = max(top, lanes[k])
    for k in range(aligned, len(row)):
        top = max(top, row[k])
    return top


@numba.njit(parallel=True, cache=True)
def largest(scores, columns):
    """Write the column of the largest value of every row (n, K), the first of equal ones, into `columns` (n,) int64."""
    for i in numba.prange(len(scores)):
        top = _maximum(scores[i])
        k = 0
        while scores[i, k] != top:
            k += 1
        columns[i] = k


@numba.njit(parallel=True, cache=True)
def histogram_sums(words, weights, offsets, out):
    """Add the weight of every word in every bag to `out` (B, K) float32, for weights (n,) or (0,) for 1."""
    for b in numba.prange(len(offsets) - 1):
        for i in range(offsets[b], offsets[b + 1]):
            out[b, words[i]] += weights[i] if len(weights) else np.float32(1)


@numba.njit(parallel=True, cache=True, fastmath=True)
def subtract_row_maximum(scores):
    for i in numba.prange(len(scores)):
        top = _maximum(scores[i])
        for k in range(scores.shape[1]):
            scores[i, k] -= top


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
