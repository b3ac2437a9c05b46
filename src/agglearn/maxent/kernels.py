"""Numba kernels of the Gibbs sampler and of prediction. They compile when first called, since importers may fork.

A chain is the D positions of its modalities among all K. Weights of pair tables are blocks of a symmetric (K, K)
matrix, those of single tables its diagonal. Draws of features read a float32 copy (lines, 2 (K + 1), LINE): rows for each
label, with a row more for single weights, and columns in lines of the cache. Small features share a line, so that what
all others add to them is read at once. Many chains pass a line of columns before any goes to the next, since its rows
fit into the nearest cache. Label and statistics go by the m cells with a trained weight: θ (m + 1,) in float32, and
64-bit accumulators (m + 1,), each a count and a sum of P(Y=1|X) in units of 2^-23. The last place is that of cells with
fixed weights: θ = 0, and its sums are not read.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from agglearn.maxent.pcd_step import FAST
from agglearn.maxent.simd import (
    LANES,
    at_most,
    floor,
    integer,
    larger,
    load,
    power_of_two,
    splat,
    store,
    store_integers,
    store_linear,
    store_transposed,
)
from agglearn.observations.kernels import mix

LINE = 16  # float32 weights in a line of the cache
EIGHT, FORM = 4 * LANES, 16  # bytes of LANES numbers, and of a row of `Space.tables` or `Space.rows`
READS = 16  # times that chains which pass a line together read one of its rows, on average
SHIFT = 43  # low bits: sums of up to 2^20 probabilities in units of 2^-23
SEGMENT = 1 << 20  # chains that one accumulator can hold
UNIT = float(1 << 23)

LOG2_E, LOWEST, HALF = np.float32(1.44269504), np.float32(-87.0), np.float32(0.5)
# 2^f on [−1/2, 1/2]: polynomial of degree 5, relative error 9.2e-8
C5, C4, C3 = np.float32(1.32647e-3), np.float32(9.67151e-3), np.float32(5.550734e-2)
C2, C1, C0 = np.float32(2.4022242e-1), np.float32(6.9314698e-1), np.float32(1.0)
_GOLDEN, _S24, _S40 = np.uint64(0x9E3779B97F4A7C15), np.uint64(24), np.uint64(40)


class Space(NamedTuple):
    offsets: np.ndarray
    sizes: np.ndarray
    padded: np.ndarray  # (K,) column of each position
    order: np.ndarray  # (D,) features in the order of their columns, in which they are drawn
    pieces: np.ndarray  # (P, 4) of a feature in a line: its number in `order`, first column, end, first code
    lines: np.ndarray  # (lines + 1,) first piece of each line
    tables: np.ndarray  # (T, 4): i, j, s, f. Codes a of feature i and b of feature j are in cell s·a + b + f
    rows: np.ndarray  # (D + 1, 4): likewise, rows of the features' codes in `order`, and of single weights, times LINE
    number: np.ndarray  # of all cells among the m, m if fixed, empty if m are all


class Proposals(NamedTuple):
    """Metropolis–Hastings within Gibbs: (D,) for which features, (K,) their alias table and log-probabilities.

    Kernels get None where no feature is wide, and are compiled without these steps then.
    """

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
    return fraction(mix64(state))


@njit(cache=True, inline="always")
def fraction(bits):
    """Return a float32 in [0, 1) from the first 24 bits of 64."""
    return np.float32(np.int32(bits >> _S40)) * np.float32(2.0**-24)


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


@njit(cache=True, inline="always")
def add_rows(weights, base, rows, first, stop, sums):
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    for r in range(first, stop):
        s0 += load(weights, base + integer(rows, LANES * r))
        s1 += load(weights, base + integer(rows, LANES * r + 1))
        s2 += load(weights, base + integer(rows, LANES * r + 2))
        s3 += load(weights, base + integer(rows, LANES * r + 3))
        s4 += load(weights, base + integer(rows, LANES * r + 4))
        s5 += load(weights, base + integer(rows, LANES * r + 5))
        s6 += load(weights, base + integer(rows, LANES * r + 6))
        s7 += load(weights, base + integer(rows, LANES * r + 7))
    return s0, s1, s2, s3, s4, s5, s6, s7


@njit(cache=True)
def add_outside(weights, line, rows, n_rows, first, stop, end, sums):
    """Write what rows outside [first, stop) add to columns below `end` of a line to `sums` (LINE, LANES)."""
    for b in range(0, end, LANES):
        zero = splat(np.float32(0.0))
        s = add_rows(weights, line + b, rows, 0, first, (zero, zero, zero, zero, zero, zero, zero, zero))
        s0, s1, s2, s3, s4, s5, s6, s7 = add_rows(weights, line + b, rows, stop, n_rows, s)
        square = LANES * b
        store(sums, square, s0)
        store(sums, square + LANES, s1)
        store(sums, square + 2 * LANES, s2)
        store(sums, square + 3 * LANES, s3)
        store(sums, square + 4 * LANES, s4)
        store(sums, square + 5 * LANES, s5)
        store(sums, square + 6 * LANES, s6)
        store(sums, square + 7 * LANES, s7)


@njit(cache=True)
def add_inside(weights, line, rows, first, k, stop, low, high, sums, out):
    """Add rows [first, stop) but k to `sums`. Write log-weights of columns [low, high) to `out` (LINE, LANES)."""
    for b in range(low // LANES * LANES, high, LANES):
        square = LANES * b
        s = (
            load(sums, square), load(sums, square + LANES), load(sums, square + 2 * LANES), load(sums, square + 3 * LANES),
            load(sums, square + 4 * LANES), load(sums, square + 5 * LANES), load(sums, square + 6 * LANES), load(sums, square + 7 * LANES),
        )  # fmt: skip
        s = add_rows(weights, line + b, rows, first, k, s)
        s0, s1, s2, s3, s4, s5, s6, s7 = add_rows(weights, line + b, rows, k + 1, stop, s)
        store_transposed(out, square, s0, s1, s2, s3, s4, s5, s6, s7)


@njit(cache=True)
def draw(logits, low, high, code, u, v, drawn):
    """Draw in every lane from softmax(logits[low:high]), of which `code` is the first, by uniform numbers u and v.

    `logits` are overwritten. `drawn` (3, LANES) has the largest logit, the sum of weights above it, and what was drawn.
    Pieces of a feature are drawn one after the other, and each replaces what was drawn with the probability of its weight.
    """
    top = load(logits, LANES * low)
    for k in range(low + 1, high):
        top = larger(top, load(logits, LANES * k))
    total, below = splat(np.float32(0.0)), splat(np.float32(code))
    for k in range(low, high):
        total += exp_lanes(load(logits, LANES * k) - top)
        store(logits, LANES * k, total)
    target = total * load(u, 0)
    for k in range(low, high - 1):
        below += at_most(load(logits, LANES * k), target)
    if code > 0:
        before = load(drawn, 0)
        largest = larger(before, top)
        new, old = total * exp_lanes(top - largest), load(drawn, LANES) * exp_lanes(before - largest)
        top, total = largest, new + old
        stays = at_most(new, total * load(v, 0))
        below = below + stays * (load(drawn, 2 * LANES) - below)
    store(drawn, 0, top)
    store(drawn, LANES, total)
    store(drawn, 2 * LANES, below)


@njit(cache=True, inline="always")
def accept(gain, log_q_old, log_q_new, u):
    ratio = gain + log_q_old - log_q_new
    return ratio >= 0 or u < exp32(ratio)


@njit(cache=True, fastmath=False)  # as for `logits`
def log_weights(weights, columns, rows, out):
    """Write the sum of a column of each lane over its rows (D + 1, LANES)."""
    a, b, c, d = columns[0], columns[1], columns[2], columns[3]
    e, f, g, h = columns[4], columns[5], columns[6], columns[7]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0.0)
    for r in range(len(rows)):
        s0 += weights[a + rows[r, 0]]
        s1 += weights[b + rows[r, 1]]
        s2 += weights[c + rows[r, 2]]
        s3 += weights[d + rows[r, 3]]
        s4 += weights[e + rows[r, 4]]
        s5 += weights[f + rows[r, 5]]
        s6 += weights[g + rows[r, 6]]
        s7 += weights[h + rows[r, 7]]
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = s0, s1, s2, s3, s4, s5, s6, s7


@njit(cache=True, fastmath=FAST)
def metropolis(codes, g, d, states, weights, n_rows, rows, space, proposals, n_proposals, new, now, then):
    """Alias proposals (Walker 1977). All chains of a group take a step before any takes the next."""
    columns = np.empty(LANES, np.int64)
    size, offset, first = np.int64(space.sizes[d]), np.int64(space.offsets[d]), g * LANES
    for c in range(LANES):
        columns[c] = first_weight(space.padded[offset + codes[g, d, c]], n_rows)
    log_weights(weights, columns, rows[g], now)
    for _ in range(n_proposals):
        for c in range(LANES):
            states[first + c] += _GOLDEN
            new[c] = offset + min(np.int64(uniform(states[first + c]) * np.float32(size)), size - 1)
            states[first + c] += _GOLDEN
            if uniform(states[first + c]) >= proposals.threshold[new[c]]:
                new[c] = proposals.alias[new[c]]
            columns[c] = first_weight(space.padded[new[c]], n_rows)
        log_weights(weights, columns, rows[g], then)
        for c in range(LANES):
            states[first + c] += _GOLDEN
            log_q_old, log_q_new = proposals.log_q[offset + codes[g, d, c]], proposals.log_q[new[c]]
            if accept(then[c] - now[c], log_q_old, log_q_new, uniform(states[first + c])):
                codes[g, d, c], now[c] = new[c] - offset, then[c]


@njit(cache=True, inline="always")
def first_weight(column, n_rows):
    """Return the index of a column's first weight. A line has its rows one after the other."""
    return np.int64(column) // LINE * n_rows * LINE + column % LINE


@njit(cache=True, fastmath=FAST)
def sweep(groups, codes, states, weights, n_rows, rows, space, proposals, n_proposals, drawn, sums, out, u, new):
    """Gibbs over groups of LANES chains, given labels. Wide features take Metropolis–Hastings steps."""
    summed = rows.shape[1]
    at_weights, at_sums, at_out, at_u = weights.ctypes.data, sums.ctypes.data, out.ctypes.data, u.ctypes.data
    at_codes, at_rows, at_drawn, forms = codes.ctypes.data, rows.ctypes.data, drawn.ctypes.data, space.rows.ctypes.data
    for number in range(len(space.lines) - 1):
        line, some, end = number * n_rows * LINE, space.lines[number], space.lines[number + 1]
        first, stop, used = space.pieces[some, 0], space.pieces[end - 1, 0] + 1, space.pieces[end - 1, 2]
        all_wide = False
        if proposals is not None:
            all_wide = True
            for piece in range(some, end):
                all_wide &= proposals.wide[space.order[space.pieces[piece, 0]]]
        for g in range(groups):
            its_codes, its_rows = at_codes + g * summed * EIGHT, at_rows + g * summed * EIGHT
            its_drawn, its_states = at_drawn + 3 * g * EIGHT, g * LANES
            if not all_wide:
                add_outside(at_weights, line, its_rows, summed, first, stop, used, at_sums)
            for piece in range(some, end):
                k, low, high, code = space.pieces[piece]
                d, half = space.order[k], (piece - some) % 2
                if half == 0 and not all_wide:  # 64 bits are two numbers
                    for c in range(its_states, its_states + LANES):
                        states[c] += _GOLDEN
                        bits = mix64(states[c])
                        u[0, c - its_states], u[1, c - its_states] = fraction(bits), fraction(bits << _S24)
                if proposals is not None:  # noqa: SIM102 - numba leaves out what a test for None alone guards
                    if proposals.wide[d]:
                        if code == 0:
                            metropolis(
                                codes,
                                g,
                                d,
                                states,
                                weights,
                                n_rows,
                                rows,
                                space,
                                proposals,
                                n_proposals,
                                new,
                                out[0],
                                out[1],
                            )
                            store_linear(its_rows + k * EIGHT, its_codes, forms + k * FORM)
                        continue
                if code > 0:
                    for c in range(its_states, its_states + LANES):
                        states[c] += _GOLDEN
                        u[2, c - its_states] = uniform(states[c])
                add_inside(at_weights, line, its_rows, first, k, stop, low, high, at_sums, at_out)
                draw(at_out, low, high, code, at_u + half * EIGHT, at_u + 2 * EIGHT, its_drawn)
                if code + high - low == space.sizes[d]:
                    store_integers(its_codes + d * EIGHT, load(its_drawn, 2 * LANES))
                    store_linear(its_rows + k * EIGHT, its_codes, forms + k * FORM)


@njit(cache=True)
def find(codes, forms, n, out):
    """Write n integers of each chain to `out` (n, LANES), each linear in two of its `codes`: cells or rows."""
    for t in range(n):
        store_linear(out + t * EIGHT, codes, forms + t * FORM)


@njit(cache=True)
def find_cells(codes, tables, number, cells):
    find(codes, tables, len(cells), cells.ctypes.data)
    if number.size:
        for t in range(len(cells)):
            for c in range(LANES):
                cells[t, c] = np.uint32(number[cells[t, c]])


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
    n_features, n_rows, flat = chains.shape[1], weights.shape[1], weights.reshape(-1)
    together = min(READS * n_rows // (n_features + 1), len(chains)) // LANES + 1  # groups that pass a line together
    codes, rows = np.zeros((2, together, n_features + 1, LANES), np.int32)  # the last of `codes` stands for the label
    states, drawn = np.zeros(together * LANES, np.uint64), np.zeros((together, 3, LANES), np.float32)
    sums, out = np.zeros((LINE, LANES), np.float32), np.empty((LINE, LANES), np.float32)
    u, z, new = np.zeros((3, LANES), np.float32), np.empty(LANES, np.float32), np.zeros(LANES, np.int64)
    cells, offsets = np.empty((len(space.tables), LANES), np.uint32), space.offsets
    group_bytes, with_label = (n_features + 1) * EIGHT, LINE * (n_rows // 2)
    at_codes, at_rows, tables, forms = (
        codes.ctypes.data,
        rows.ctypes.data,
        space.tables.ctypes.data,
        space.rows.ctypes.data,
    )
    for first in range(0, len(chains), together * LANES):
        n = min(together * LANES, len(chains) - first)
        groups = (n + LANES - 1) // LANES
        for i in range(n):
            states[i] = stream(seed, number + first + i)
            for d in range(n_features):
                codes[i // LANES, d, i % LANES] = np.int32(chains[first + i, d]) - offsets[d]
        for _ in range(n_sweeps):
            for g in range(groups):
                find_cells(at_codes + g * group_bytes, tables, space.number, cells)
                logits(cells, theta, intercept, z)
                for c in range(LANES):
                    states[g * LANES + c] += _GOLDEN
                    codes[g, -1, c] = with_label if uniform(states[g * LANES + c]) < sigmoid32(z[c]) else 0
                find(at_codes + g * group_bytes, forms, n_features + 1, at_rows + g * group_bytes)
            sweep(groups, codes, states, flat, n_rows, rows, space, proposals, n_proposals, drawn, sums, out, u, new)
        for g in range(groups):
            find_cells(at_codes + g * group_bytes, tables, space.number, cells)
            logits(cells, theta, intercept, z)
            for c in range(min(LANES, n - g * LANES)):
                tally(cells, c, sigmoid32(z[c]) if marginalize else np.float32(codes[g, -1, c] > 0), acc)
                for d in range(n_features):
                    chains[first + g * LANES + c, d] = offsets[d] + codes[g, d, c]


@njit(cache=True)
def collect(acc, counts, sums):
    low = (np.int64(1) << SHIFT) - 1
    for run in range(acc.shape[0]):
        for k in range(acc.shape[1]):
            counts[k] += acc[run, k] >> SHIFT
            sums[k] += acc[run, k] & low
            acc[run, k] = 0


@njit(cache=True, inline="always")
def write(weights, column, row, without, with_label):
    line, lane = column // LINE, column % LINE
    weights[line, row, lane], weights[line, weights.shape[1] // 2 + row, lane] = without, with_label


@njit(cache=True)
def spread(mu, theta, rows, columns, padded, weights, theta32):
    label = weights.shape[1] // 2
    for k in range(rows.size):
        i, j = rows[k], columns[k]
        without, with_label, t = np.float32(mu[k]), np.float32(mu[k] + theta[k]), np.float32(theta[k])
        theta32[k] = t
        if i == j:
            write(weights, padded[i], label - 1, without, with_label)
        else:
            write(weights, padded[j], i, without, with_label)
            write(weights, padded[i], j, without, with_label)


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
