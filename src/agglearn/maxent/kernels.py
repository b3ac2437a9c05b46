"""Numba kernels of the Gibbs sampler and of the PCD step. Pure: arrays in, arrays changed in place, nothing else.

Layout. The K modalities of all features stand in one row; a chain is the D positions of its modalities. Weights of
pair tables are blocks of a symmetric (K, K) matrix, weights of single tables its diagonal. The sampler reads a float32
copy per label whose columns are padded and ordered anew: each feature starts at a multiple of `LANES`, so that inner
loops vectorise, its modalities run from frequent to rare, so that searches end soon, and padding has the weight
`CLOSED`, so that it is never drawn.

Statistics are integers: one 64-bit cell holds a count (high bits) and a sum of P(Y=1|X) in units of 2^-23 (low bits).
Integer sums do not depend on their order, hence neither on the number of threads.

Kernels compile when first called, not when imported: a process that imports this may still fork.
"""

import numpy as np
from numba import njit, prange

LANES = 8
CLOSED = np.float32(-1e30)
SHIFT = 43  # low bits: sums of up to 2^20 probabilities in units of 2^-23
SEGMENT = 1 << 20  # chains that one accumulator can hold
UNIT = float(1 << 23)
FAST = {"nnan", "nsz", "arcp", "contract", "reassoc"}  # infinities keep their meaning

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S40 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(40)


@njit(cache=True, inline="always")
def mix64(z):
    """Finaliser of SplitMix64: a bijection of 64-bit integers."""
    z = (z ^ (z >> _S30)) * _MIX_A
    z = (z ^ (z >> _S27)) * _MIX_B
    return z ^ (z >> _S31)


@njit(cache=True, inline="always")
def stream(seed, chain):
    """State of the random stream that belongs to a chain, whoever computes it."""
    return mix64(mix64(seed) + np.uint64(chain) * _GOLDEN)


@njit(cache=True, inline="always")
def uniform(state):
    """Uniform float32 in [0, 1) with 24 random bits, from a SplitMix64 state."""
    return np.float32(np.float64(mix64(state) >> _S40) * 2.0**-24)


@njit(cache=True, inline="always")
def exp32(x):
    """exp(x) for float32 x ≤ 0, relative error below (5 + |x|)·1e-7; 0 < result ≤ 2e-38 for x below −87."""
    t = max(x, np.float32(-87.0)) * np.float32(1.44269504)
    n = np.floor(t + np.float32(0.5))
    f = t - n  # 2^f on [−1/2, 1/2]: polynomial of degree 5, relative error 9.2e-8
    p = np.float32(1.32647e-3)
    p = p * f + np.float32(9.67151e-3)
    p = p * f + np.float32(5.550734e-2)
    p = p * f + np.float32(2.4022242e-1)
    p = p * f + np.float32(6.9314698e-1)
    p = p * f + np.float32(1.0)
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(cache=True, inline="always")
def sigmoid32(z):
    """1 / (1 + exp(−z)) for float32, without overflow."""
    e = exp32(-abs(z))
    return np.float32(1.0) / (np.float32(1.0) + e) if z >= 0 else e / (np.float32(1.0) + e)


@njit(cache=True, fastmath=FAST)
def logit(x, theta, partners, bounds, intercept):
    """φ(x)·θ + intercept of one chain (eq. 3); feature d has tables with partners[bounds[d]:bounds[d + 1]]."""
    z = intercept
    for d in range(x.size):
        row = theta[x[d]]
        z += row[x[d]]
        for q in range(bounds[d], bounds[d + 1]):
            z += row[x[partners[q]]]
    return z


@njit(cache=True, fastmath=FAST)
def field(x, weights, bias, out):
    """out[k] = log-weight that column k would have, given all other features' modalities, up to a constant."""
    out[:] = bias
    d, last = 0, x.size - x.size % 4
    while d < last:  # four rows at a time: a quarter of the loads and stores of `out`
        a, b, c, e = weights[x[d]], weights[x[d + 1]], weights[x[d + 2]], weights[x[d + 3]]
        for k in range(out.size):
            out[k] += (a[k] + b[k]) + (c[k] + e[k])
        d += 4
    for rest in range(last, x.size):
        row = weights[x[rest]]
        for k in range(out.size):
            out[k] += row[k]


@njit(cache=True, fastmath=FAST)
def draw(logits, size, u, buffer):
    """Column drawn from softmax(logits[:size]) with one uniform number; logits is padded with CLOSED."""
    top = logits[0]
    for j in range(logits.size):
        top = max(top, logits[j])
    total = np.float32(0.0)
    for j in range(logits.size):
        e = exp32(logits[j] - top)
        buffer[j] = e
        total += e
    rest = u * total
    for j in range(size - 1):
        rest -= buffer[j]
        if rest < 0:
            return j
    return size - 1


@njit(cache=True, fastmath=FAST)
def sweep_chain(x, weights, bias, starts, sizes, position, state, out, buffer):
    """One Gibbs sweep over the features of one chain, given its label; returns the state of its stream."""
    field(x, weights, bias, out)
    for d in range(x.size):
        state += _GOLDEN
        first, after = starts[d], starts[d + 1]
        old, new = x[d], position[first + draw(out[first:after], sizes[d], uniform(state), buffer)]
        if new != old:
            x[d] = new
            later, gain, loss = out[after:], weights[new][after:], weights[old][after:]
            for k in range(later.size):
                later[k] += gain[k] - loss[k]
    return state


@njit(cache=True, inline="always")
def accept(gain, log_q_old, log_q_new, u):
    """Metropolis–Hastings: whether to take a proposal whose log-weight is larger by `gain`, drawn from q."""
    ratio = gain + log_q_old - log_q_new
    return ratio >= 0 or u < exp32(ratio)


@njit(cache=True, fastmath=FAST)
def log_weight(x, d, k, weights, bias, padded):
    """Log-weight of position k for feature d, given the other features: one row of weights, D places of it."""
    row, total = weights[k], bias[padded[k]]
    for e in range(x.size):
        if e != d:
            total += row[padded[x[e]]]
    return total


@njit(cache=True, fastmath=FAST)
def metropolis(x, d, weights, bias, padded, size, offset, threshold, alias, log_q, n_proposals, state):
    """Move feature d by proposals from its alias table (Walker 1977); returns the state of the chain's stream."""
    old = np.int64(x[d])
    now = log_weight(x, d, old, weights, bias, padded)
    for _ in range(n_proposals):
        state += _GOLDEN
        new = np.int64(offset + min(np.int64(uniform(state) * np.float32(size)), size - 1))
        state += _GOLDEN
        if uniform(state) >= threshold[new]:
            new = np.int64(alias[new])
        state += _GOLDEN
        if new != old:
            then = log_weight(x, d, new, weights, bias, padded)
            if accept(then - now, log_q[old], log_q[new], uniform(state)):
                old, now = new, then
    x[d] = old
    return state


@njit(cache=True, fastmath=FAST)
def sweep_wide(
    x, weights, bias, starts, sizes, position, padded, offsets, wide, threshold, alias, log_q, n_proposals,
    state, out, buffer,
):  # fmt: skip
    """A sweep like `sweep_chain`, with Metropolis–Hastings within Gibbs for wide features.

    A wide feature costs D reads per proposal, not D for each of its modalities.
    wide : (D,) which features. threshold, alias, log_q : (K,) alias table and log-probabilities of their proposals.
    """
    for d in range(x.size):
        if wide[d]:
            state = metropolis(
                x, d, weights, bias, padded, np.int64(sizes[d]), np.int64(offsets[d]), threshold, alias, log_q,
                n_proposals, state,
            )  # fmt: skip
            continue
        first, after = starts[d], starts[d + 1]
        logits = out[first:after]
        logits[:] = bias[first:after]
        for e in range(x.size):
            if e != d:
                row = weights[x[e]][first:after]
                for k in range(row.size):
                    logits[k] += row[k]
        state += _GOLDEN
        x[d] = position[first + draw(logits, sizes[d], uniform(state), buffer)]
    return state


@njit(cache=True, fastmath=FAST)
def tally(x, p, partners, bounds, acc):
    """Add one chain to the packed statistics: 1 to the counts, p to the label sums."""
    packed = (np.int64(1) << SHIFT) + np.int64(p * np.float32(UNIT) + np.float32(0.5))
    for d in range(x.size):
        row = acc[x[d]]
        row[x[d]] += packed
        for q in range(bounds[d], bounds[d + 1]):
            row[x[partners[q]]] += packed


@njit(cache=True, parallel=True, fastmath=FAST)
def gibbs(
    chains, weights, bias, theta, intercept, partners, bounds, starts, sizes, position, padded, offsets,
    wide, threshold, alias, log_q, n_proposals, seed, n_sweeps, marginalize, first, last, acc,
):  # fmt: skip
    """Lines 2–7 of Algorithm 1 for chains first … last − 1: draw y, sweep x, count.

    Parameters
    ----------
    chains : (n, D) positions, changed in place.
    weights, bias : (2, K, Kp) pair weights and (2, Kp) single weights by label, columns padded.
    theta : (K, K) weights of P(Y|X).
    partners, bounds : later features that feature d has a table with, partners[bounds[d]:bounds[d + 1]].
    starts, sizes : first padded column (D + 1), modalities of each feature. position : (Kp,) position of each column.
    padded, offsets : (K,) column of each position; (D,) first position of each feature.
    wide, threshold, alias, log_q, n_proposals : see `sweep_wide`.
    marginalize : count P(Y=1|X) (line 7) instead of the label drawn.
    acc : (parts, K, K) packed statistics to add to, upper triangle; chains are dealt to parts in contiguous runs.
    """
    parts, mixed = acc.shape[0], wide.any()
    for part in prange(parts):
        out = np.empty(bias.shape[1], np.float32)
        buffer = np.empty(bias.shape[1], np.float32)
        for i in range(first + part * (last - first) // parts, first + (part + 1) * (last - first) // parts):
            state, x = stream(seed, i), chains[i]
            y = np.int64(0)
            for _ in range(n_sweeps):
                state += _GOLDEN
                y = np.int64(uniform(state) < sigmoid32(logit(x, theta, partners, bounds, intercept)))
                if mixed:
                    state = sweep_wide(
                        x, weights[y], bias[y], starts, sizes, position, padded, offsets, wide, threshold, alias,
                        log_q, n_proposals, state, out, buffer,
                    )  # fmt: skip
                else:
                    state = sweep_chain(x, weights[y], bias[y], starts, sizes, position, state, out, buffer)
            p = sigmoid32(logit(x, theta, partners, bounds, intercept)) if marginalize else np.float32(y)
            tally(x, p, partners, bounds, acc[part])


@njit(cache=True)
def collect(acc, rows, columns, counts, sums):
    """Unpack the statistics of the cells (rows, columns), add them to counts and sums, and clear `acc`."""
    low = (np.int64(1) << SHIFT) - 1
    for k in range(rows.size):
        for part in range(acc.shape[0]):
            packed = acc[part, rows[k], columns[k]]
            counts[k] += packed >> SHIFT
            sums[k] += packed & low
            acc[part, rows[k], columns[k]] = 0


@njit(cache=True)
def spread(mu, theta, rows, columns, padded, weights, bias, theta32):
    """Write the weights of all cells where the sampler reads them: both halves, both labels; diagonal = bias.

    padded : (K,) padded column of each position.
    """
    for k in range(rows.size):
        i, j = rows[k], columns[k]
        without, with_label, t = np.float32(mu[k]), np.float32(mu[k] + theta[k]), np.float32(theta[k])
        theta32[i, j], theta32[j, i] = t, t
        if i == j:
            bias[0, padded[i]], bias[1, padded[i]] = without, with_label
        else:
            weights[0, i, padded[j]], weights[0, j, padded[i]] = without, without
            weights[1, i, padded[j]], weights[1, j, padded[i]] = with_label, with_label


@njit(cache=True)
def predict_logits(positions, theta, intercept, out):
    """out[i] = φ(x_i)·θ + intercept for (n, D) positions; a position of −1 (unseen) adds nothing."""
    for i in range(positions.shape[0]):
        x, z = positions[i], intercept
        for d in range(x.size):
            if x[d] >= 0:
                z += theta[x[d], x[d]]
                for e in range(d):
                    if x[e] >= 0:
                        z += theta[x[e], x[d]]
        out[i] = z
