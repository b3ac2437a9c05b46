"""Numba kernels of the Gibbs sampler and of prediction. They compile when first called, since importers may fork.

A chain is the D positions of its modalities among all K. Weights of pair tables are blocks of a symmetric (K, K)
matrix, those of single tables its diagonal. Draws of features read a float32 copy per label, with a row more for single
weights. Each feature is padded to a multiple of `LANES`. Label and statistics go by the m cells with a trained
weight: θ (m + 1,) in float32, and 64-bit accumulators (m + 1,), each a count and a sum of P(Y=1|X) in units of 2^-23.
The last place is that of cells with fixed weights: θ = 0, and its sums are not read.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from agglearn.maxent.pcd_step import FAST
from agglearn.maxent.simd import (
    LANES,
    at_most,
    floor,
    larger,
    load,
    power_of_two,
    splat,
    store,
    store_cells,
    store_transposed,
)
from agglearn.observations.kernels import mix

WIDE_ROWS = 64  # columns from which a chain reads its rows one by one, not beside those of other chains
SHIFT = 43  # low bits: sums of up to 2^20 probabilities in units of 2^-23
SEGMENT = 1 << 20  # chains that one accumulator can hold
UNIT = float(1 << 23)

LOG2_E, LOWEST, HALF = np.float32(1.44269504), np.float32(-87.0), np.float32(0.5)
# 2^f on [−1/2, 1/2]: polynomial of degree 5, relative error 9.2e-8
C5, C4, C3 = np.float32(1.32647e-3), np.float32(9.67151e-3), np.float32(5.550734e-2)
C2, C1, C0 = np.float32(2.4022242e-1), np.float32(6.9314698e-1), np.float32(1.0)
_GOLDEN, _S40 = np.uint64(0x9E3779B97F4A7C15), np.uint64(40)


class Space(NamedTuple):
    offsets: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    padded: np.ndarray
    tables: np.ndarray  # (T, 4): i, j, s, f. Codes a of feature i and b of feature j are in cell f + s·a + b
    number: np.ndarray  # of all cells among the m, m if fixed, empty if m are all


class Proposals(NamedTuple):
    """Metropolis–Hastings within Gibbs: (D,) for which features, (K,) their alias table and log-probabilities."""

    wide: np.ndarray
    threshold: np.ndarray
    alias: np.ndarray
    log_q: np.ndarray


@njit(cache=True, inline="always")
def mix64(z):
    """SplitMix64's finaliser, a bijection of 64-bit integers. `mix` makes a step before it."""
    return mix(z - _GOLDEN)


@njit(cache=True, inline="always")
def stream(seed, chain):
    return mix64(mix64(seed) + np.uint64(chain) * _GOLDEN)


@njit(cache=True, inline="always")
def uniform(state):
    """Return a float32 in [0, 1) with 24 random bits."""
    return np.float32(np.float64(mix64(state) >> _S40) * 2.0**-24)


@njit(cache=True, inline="always")
def polynomial(f, c5, c4, c3, c2, c1, c0):
    return ((((c5 * f + c4) * f + c3) * f + c2) * f + c1) * f + c0


@njit(cache=True, inline="always")
def exp32(x):
    """Return exp(x) for float32 x ≤ 0 with relative error below (5 + |x|)·1e-7, in (0, 2e-38] for x below −87."""
    t = max(x, LOWEST) * LOG2_E
    n = np.floor(t + HALF)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return polynomial(t - n, C5, C4, C3, C2, C1, C0) * power


@njit(cache=True, inline="always")
def sigmoid32(z):
    e = exp32(-abs(z))
    return np.float32(1.0) / (np.float32(1.0) + e) if z >= 0 else e / (np.float32(1.0) + e)


@njit(cache=True, inline="always")
def exp_lanes(x):
    t = larger(x, splat(LOWEST)) * splat(LOG2_E)
    n = floor(t + splat(HALF))
    p = polynomial(t - n, splat(C5), splat(C4), splat(C3), splat(C2), splat(C1), splat(C0))
    return p * power_of_two(n)


@njit(cache=True)
def conditional(weights, rows, first, width, scratch, out):
    """Write log-weights to `out` (width, LANES). `rows` (D + 1, LANES) has row starts in the flat `weights`."""
    if width >= WIDE_ROWS:
        for c in range(LANES):
            wide_conditional(weights, rows[:, c], first, width, scratch)
            for k in range(width):
                out[k * LANES + c] = scratch[k]
        return
    for b in range(first, first + width, LANES):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = splat(np.float32(0.0))
        for r in range(len(rows)):
            s0 += load(weights, rows[r, 0] + b)
            s1 += load(weights, rows[r, 1] + b)
            s2 += load(weights, rows[r, 2] + b)
            s3 += load(weights, rows[r, 3] + b)
            s4 += load(weights, rows[r, 4] + b)
            s5 += load(weights, rows[r, 5] + b)
            s6 += load(weights, rows[r, 6] + b)
            s7 += load(weights, rows[r, 7] + b)
        store_transposed(out, LANES * (b - first), s0, s1, s2, s3, s4, s5, s6, s7)


@njit(cache=True)
def wide_conditional(weights, rows, first, width, out):
    """`conditional` of one chain. Long runs of reads are fastest where no cache helps."""
    out[:width] = np.float32(0.0)
    full = len(rows) // 4 * 4
    for r in range(0, full, 4):
        r0, r1, r2, r3 = rows[r] + first, rows[r + 1] + first, rows[r + 2] + first, rows[r + 3] + first
        for b in range(0, width, LANES):
            some = (load(weights, r0 + b) + load(weights, r1 + b)) + (load(weights, r2 + b) + load(weights, r3 + b))
            store(out, b, load(out, b) + some)
    for r in range(full, len(rows)):
        r0 = rows[r] + first
        for b in range(0, width, LANES):
            store(out, b, load(out, b) + load(weights, r0 + b))


@njit(cache=True)
def draw(logits, size, u, drawn):
    """Draw in every lane a column from softmax(logits[:size]) by a uniform number. `logits` are overwritten."""
    top = load(logits, 0)
    for k in range(1, size):
        top = larger(top, load(logits, LANES * k))
    total = splat(np.float32(0.0))
    for k in range(size):
        total += exp_lanes(load(logits, LANES * k) - top)
        store(logits, LANES * k, total)
    target, below = total * load(u, 0), splat(np.float32(0.0))
    for k in range(size - 1):
        below += at_most(load(logits, LANES * k), target)
    store(drawn, 0, below)


@njit(cache=True, inline="always")
def accept(gain, log_q_old, log_q_new, u):
    ratio = gain + log_q_old - log_q_new
    return ratio >= 0 or u < exp32(ratio)


@njit(cache=True, fastmath=FAST)
def log_weight(x, d, k, weights, padded):
    row, total = weights[k], weights[-1, padded[k]]
    for e in range(x.size):
        if e != d:
            total += row[padded[x[e]]]
    return total


@njit(cache=True, fastmath=FAST)
def metropolis(chains, d, y, states, weights, space, proposals, n_proposals, new, now, then):
    """Alias proposals (Walker 1977). All chains of a group take a step before any takes the next."""
    size = np.int64(space.sizes[d])
    for c in range(len(chains)):
        now[c] = log_weight(chains[c], d, chains[c, d], weights[y[c]], space.padded)
    for _ in range(n_proposals):
        for c in range(len(chains)):
            states[c] += _GOLDEN
            new[c] = space.offsets[d] + min(np.int64(uniform(states[c]) * np.float32(size)), size - 1)
            states[c] += _GOLDEN
            if uniform(states[c]) >= proposals.threshold[new[c]]:
                new[c] = proposals.alias[new[c]]
        for c in range(len(chains)):
            then[c] = log_weight(chains[c], d, new[c], weights[y[c]], space.padded)
        for c in range(len(chains)):
            states[c] += _GOLDEN
            log_q_old, log_q_new = proposals.log_q[chains[c, d]], proposals.log_q[new[c]]
            if accept(then[c] - now[c], log_q_old, log_q_new, uniform(states[c])):
                chains[c, d], now[c] = new[c], then[c]


@njit(cache=True, fastmath=FAST)
def sweep(chains, y, states, weights, rows, space, proposals, n_proposals, scratch, out, u, drawn, new):
    """Gibbs over at most LANES chains, given labels. Wide features take Metropolis–Hastings steps."""
    n, flat = len(chains), weights.reshape(-1)
    label, stride = weights[0].size, weights.shape[2]
    for c in range(n):
        for d in range(chains.shape[1]):
            rows[d, c] = y[c] * label + np.int64(chains[c, d]) * stride
        rows[-1, c] = (y[c] + 1) * label - stride
    for d in range(chains.shape[1]):
        if proposals.wide[d]:
            metropolis(chains, d, y, states, weights, space, proposals, n_proposals, new, u, drawn)
        else:
            for c in range(n):
                states[c] += _GOLDEN
                u[c] = uniform(states[c])
            first, width = np.int64(space.starts[d]), np.int64(space.starts[d + 1] - space.starts[d])
            conditional(flat, rows, first, width, scratch, out)
            draw(out, np.int64(space.sizes[d]), u, drawn)
            for c in range(n):
                chains[c, d] = space.offsets[d] + np.int64(drawn[c])
        for c in range(n):
            rows[d, c] = y[c] * label + np.int64(chains[c, d]) * stride


@njit(cache=True)
def find_cells(chains, space, codes, cells):
    """Write the number of each chain's cell in each table to `cells` (T, LANES)."""
    for c in range(len(chains)):
        for d in range(chains.shape[1]):
            codes[d, c] = np.int32(chains[c, d]) - space.offsets[d]
    for t in range(len(space.tables)):
        left, right, size, first = space.tables[t]
        store_cells(cells, t, codes, left, right, np.int32(size), np.int32(first))
    if space.number.size:
        for t in range(len(cells)):
            for c in range(LANES):
                cells[t, c] = np.uint32(space.number[cells[t, c]])


@njit(cache=True, fastmath=False)  # else a caller's holds, and sums over tables are vectorised by slow gathers
def logits(cells, theta, intercept, z):
    """Write φ(x)·θ + intercept of every lane to `z` (eq. 3)."""
    z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = intercept
    for t in range(len(cells)):
        z0 += theta[cells[t, 0]]
        z1 += theta[cells[t, 1]]
        z2 += theta[cells[t, 2]]
        z3 += theta[cells[t, 3]]
        z4 += theta[cells[t, 4]]
        z5 += theta[cells[t, 5]]
        z6 += theta[cells[t, 6]]
        z7 += theta[cells[t, 7]]
    z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = z0, z1, z2, z3, z4, z5, z6, z7


@njit(cache=True)
def tally(cells, c, p, acc):
    """Count the cells of the chain in lane c, and add its P(Y=1|X) to their label sums."""
    packed = (np.int64(1) << SHIFT) + np.int64(p * np.float32(UNIT) + np.float32(0.5))
    for t in range(len(cells)):
        acc[cells[t, c]] += packed


@njit(cache=True, nogil=True, fastmath=FAST)
def gibbs(
    chains, number, weights, theta, intercept, space, proposals, n_proposals, seed, n_sweeps, marginalize, acc
):  # fmt: skip
    """Lines 2–7 of Algorithm 1: draw y, sweep x, count. `number` of the first of the chains names its stream."""
    n_features = chains.shape[1]
    out, scratch = np.empty(LANES * weights.shape[2], np.float32), np.empty(weights.shape[2], np.float32)
    u, drawn, z = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32), np.empty(LANES, np.float32)
    rows, codes = np.zeros((n_features + 1, LANES), np.int64), np.zeros((n_features, LANES), np.int32)
    cells, states = np.empty((len(space.tables), LANES), np.uint32), np.zeros(LANES, np.uint64)
    y, new = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    for first in range(0, len(chains), LANES):
        group = chains[first : first + LANES]
        for c in range(len(group)):
            states[c] = stream(seed, number + first + c)
        for _ in range(n_sweeps):
            find_cells(group, space, codes, cells)
            logits(cells, theta, intercept, z)
            for c in range(len(group)):
                states[c] += _GOLDEN
                y[c] = np.int64(uniform(states[c]) < sigmoid32(z[c]))
            sweep(group, y, states, weights, rows, space, proposals, n_proposals, scratch, out, u, drawn, new)
        find_cells(group, space, codes, cells)
        logits(cells, theta, intercept, z)
        for c in range(len(group)):
            tally(cells, c, sigmoid32(z[c]) if marginalize else np.float32(y[c]), acc)


@njit(cache=True)
def collect(acc, counts, sums):
    low = (np.int64(1) << SHIFT) - 1
    for run in range(acc.shape[0]):
        for k in range(acc.shape[1]):
            counts[k] += acc[run, k] >> SHIFT
            sums[k] += acc[run, k] & low
            acc[run, k] = 0


@njit(cache=True)
def spread(mu, theta, rows, columns, padded, weights, theta32):
    for k in range(rows.size):
        i, j = rows[k], columns[k]
        without, with_label, t = np.float32(mu[k]), np.float32(mu[k] + theta[k]), np.float32(theta[k])
        theta32[k] = t
        if i == j:
            weights[0, -1, padded[i]], weights[1, -1, padded[i]] = without, with_label
        else:
            weights[0, i, padded[j]], weights[0, j, padded[i]] = without, without
            weights[1, i, padded[j]], weights[1, j, padded[i]] = with_label, with_label


@njit(cache=True)
def predict_logits(positions, theta, intercept):
    """(n,) φ(x_i)·θ + intercept. A position of −1 (unseen) adds nothing."""
    out = np.empty(len(positions))
    for i in range(positions.shape[0]):
        x, z = positions[i], intercept
        for d in range(x.size):
            if x[d] >= 0:
                z += theta[x[d], x[d]]
                for e in range(d):
                    if x[e] >= 0:
                        z += theta[x[e], x[d]]
        out[i] = z
    return out
