"""Numba kernels of exact inference under a known sum: P(y_i = 1 | Σ y = z) for independent labels with odds o_i.

A noisy sum has weights w_s in its place, P(noisy sum | S = s), where a known one has the weight 1 at z.
All odds are multiplied by the τ for which the expected sum is z, or the likeliest one, so that nothing underflows.
* `fourier`, O(n): Σ_s w_s P(S = s) = (1/N) Σ_k ŵ(t_k) φ(t_k) at t_k = 2πk/N, φ = Π (1 + p_i(e^{it} − 1)), ŵ = Σ_s w_s e^{−its}.
  Some 15 to 30 frequencies keep the error below e^−40: P(|S − z| ≥ N), and exp(−2(σ²−¼) sin²(t/2)) of an omitted one.
* `direct`: prefix and suffix distributions of positive terms, O(n) for σ² < 4, where width 129 is enough, else O(n²).
"""

import numpy as np
from numba import njit

from agglearn.linear.kernels import FAST

TAIL = 40.0  # -log of what may be lost
SMALL = 4.0  # variance below which the direct method is used
WIDTH = 64  # half the width of the direct method's distributions
BLOCK = 64  # instances between two checkpoints
FOURIER, DIRECT = 0, 1


@njit(cache=True, error_model="numpy", fastmath=FAST)
def moments(odds, tau):
    mean, variance = 0.0, 0.0
    for i in range(len(odds)):
        x = odds[i] * tau
        complement = 1.0 / (1.0 + x)
        p = x * complement
        mean += p
        variance += p * complement
    return mean, variance


@njit(cache=True, error_model="numpy")
def tilt(odds, z):
    """log τ with |E S − z| ≤ 0.05·max(1, σ), and the variance there, for 0 < z < n, by Newton's method in a bracket."""
    log_tau, low, high = 0.0, -350.0, 350.0
    variance = 0.0
    for _ in range(200):
        mean, variance = moments(odds, np.exp(log_tau))
        residual = z - mean
        if abs(residual) <= 0.05 * max(1.0, np.sqrt(variance)):
            break
        if residual > 0:
            low = log_tau
        else:
            high = log_tau
        log_tau += residual / variance if variance > 0 else 1e9
        if not low < log_tau < high:
            log_tau = 0.5 * (low + high)
    return log_tau, variance


@njit(cache=True, error_model="numpy")
def noisy_tilt(odds, log_weights):
    """log τ near the slope of log w at the expected sum, and mean and variance there, for log-concave weights (n + 1,)."""
    n = len(odds)
    low = min(max(log_weights[n] - log_weights[n - 1], -350.0), 350.0)
    high = min(max(log_weights[1] - log_weights[0], -350.0), 350.0)
    mean, variance = 0.0, 0.0
    for _ in range(200):
        log_tau = 0.5 * (low + high)
        mean, variance = moments(odds, np.exp(log_tau))
        if (high - low) * 0.25 * n <= 0.1 * max(1.0, np.sqrt(variance)):  # no variance is larger
            break
        s = min(int(mean), n - 1)
        if log_weights[s + 1] - log_weights[s] > log_tau:
            low = log_tau
        else:
            high = log_tau
    return log_tau, mean, variance


@njit(cache=True, error_model="numpy")
def log_ratio(odds, tau):
    """Σ log((1 + o τ)/(1 + o)): what tilting divides every probability by, up to τ^y."""
    total, product = 0.0, 1.0
    for i in range(len(odds)):
        product *= (1.0 + odds[i] * tau) / (1.0 + odds[i])
        if not 1e-100 < product < 1e100:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)


@njit(cache=True, error_model="numpy")
def grid(variance, n, sides):
    """(N, frequencies used) for a sum of n labels with this variance, near one of them, or of values to both sides.

    `sides` is 1.0 or 2.0: numba would compile for each whole number in the code.
    """
    points = int(sides * np.ceil(TAIL / 3 + np.sqrt(TAIL**2 / 9 + 2 * TAIL * variance))) + 2
    points = min(points, n + 1) | 1  # odd: φ(π), which may vanish, is no point of the grid
    used = points // 2 + 1
    reach = TAIL / (2 * (variance - 0.25))
    if reach < 1:
        used = min(used, int(np.ceil(points * 2 * np.arcsin(np.sqrt(reach)) / (2 * np.pi))) + 1)
    return points, used


@njit(cache=True, error_model="numpy", fastmath=FAST)
def fourier(odds, tau, first_sum, weights, variance, out):
    """Write the posteriors of one bag into `out`, and return log Σ w_s P(S = s) under the tilted odds, for σ² ≥ 1.

    `weights` are of the sums from `first_sum` on, no more than the grid has points.
    """
    n = len(odds)
    points, used = grid(variance, n, min(len(weights), 2.0))
    t, cosine, sine = np.empty(used), np.empty(used), np.empty(used)
    for k in range(used):
        t[k] = 2 * np.pi / points * k
        cosine[k], sine[k] = np.cos(t[k]), np.sin(t[k])
    real, imaginary = np.ones(used), np.zeros(used)
    for i in range(n):
        x = odds[i] * tau
        p = x / (1.0 + x)
        for k in range(used):
            a, b = 1.0 - p * (1.0 - cosine[k]), p * sine[k]
            r = real[k]
            real[k] = r * a - imaginary[k] * b
            imaginary[k] = r * b + imaginary[k] * a
    density = 0.0
    first, second, square = np.empty(used), np.empty(used), np.empty(used)
    for k in range(used):
        c, s = 0.0, 0.0
        x, y = np.cos(t[k] * first_sum), np.sin(t[k] * first_sum)
        for j in range(len(weights)):
            c += weights[j] * x
            s += weights[j] * y
            x, y = x * cosine[k] - y * sine[k], x * sine[k] + y * cosine[k]
        weight = 1.0 if k == 0 else 2.0
        g, h = weight * (real[k] * c + imaginary[k] * s), weight * (imaginary[k] * c - real[k] * s)
        density += g
        first[k] = g * cosine[k] - h * sine[k]  # e^{it}·conj(φ_i) = e^{it} + p(1 − e^{it})
        second[k] = g - first[k]
        square[k] = 2.0 * (1.0 - cosine[k])  # |φ_i|² = 1 − 4 sin²(t/2)·p(1−p)
    for i in range(n):
        x = odds[i] * tau
        complement = 1.0 / (1.0 + x)
        p = x * complement
        v, total = p * complement, 0.0
        for k in range(used):
            total += (first[k] + second[k] * p) / (1.0 - square[k] * v)
        out[i] = min(max(p * total / density, 0.0), 1.0)
    return np.log(density / points)


@njit(cache=True, error_model="numpy")
def step(x):
    """(P(stay), P(move), direction, whether moving is y = 1) of one label: the less likely value moves."""
    complement = 1.0 / (1.0 + x)
    if x > 1.0:
        return x * complement, complement, -1, False
    return complement, x * complement, 1, True


@njit(cache=True, error_model="numpy")
def push(source, target, stay, move, direction):
    """Distribution of the signed sum after one more label."""
    w = len(source)
    for k in range(w):
        target[k] = stay * source[k]
    if direction > 0:
        for k in range(1, w):
            target[k] += move * source[k - 1]
    else:
        for k in range(w - 1):
            target[k] += move * source[k + 1]


@njit(cache=True, error_model="numpy")
def copy(source, target):
    """Compiles faster than an assignment to a slice."""
    for k in range(len(source)):
        target[k] = source[k]


@njit(cache=True, error_model="numpy")
def forward(odds, tau, prefix):
    """Distributions of the signed sum of the first 1, 2, … labels into the rows of `prefix`, from its row 0."""
    for j in range(len(odds)):
        stay, move, direction, _ = step(odds[j] * tau)
        push(prefix[j], prefix[j + 1], stay, move, direction)


@njit(cache=True, error_model="numpy")
def direct(odds, tau, first_sum, weights, half, out):
    """As `fourier`, with any number of weights. Distributions reach `half` to both sides: exact for n, and to rounding for σ² < 4 and `WIDTH`."""
    n = len(odds)
    down = 0
    for i in range(n):
        down += odds[i] * tau > 1.0
    low, high = min(down, half), min(n - down, half)
    width = low + high + 1
    blocks = (n + BLOCK - 1) // BLOCK
    checkpoints = np.zeros((blocks + 1, width))
    prefix = np.zeros((min(n, BLOCK) + 1, width))
    checkpoints[0, low] = 1.0
    for b in range(blocks):
        block = odds[b * BLOCK : (b + 1) * BLOCK]
        copy(checkpoints[b], prefix[0])
        forward(block, tau, prefix)
        copy(prefix[len(block)], checkpoints[b + 1])
    suffix, following = np.zeros(width), np.zeros(width)
    density = 0.0
    for k in range(width):
        j = k - low + down - first_sum
        if 0 <= j < len(weights):
            suffix[k] = weights[j]
            density += weights[j] * checkpoints[blocks, k]
    for b in range(blocks - 1, -1, -1):
        block = odds[b * BLOCK : (b + 1) * BLOCK]
        if b < blocks - 1:  # the last block's are still there
            copy(checkpoints[b], prefix[0])
            forward(block, tau, prefix)
        for j in range(len(block) - 1, -1, -1):
            stay, move, direction, up = step(block[j] * tau)
            push(suffix, following, stay, move, -direction)
            stayed = 0.0
            for k in range(width):
                stayed += prefix[j, k] * suffix[k]
            stayed *= stay
            moved = 0.0
            for k in range(max(0, -direction), width - max(0, direction)):
                moved += prefix[j, k] * suffix[k + direction]
            moved *= move
            out[b * BLOCK + j] = (moved if up else stayed) / (moved + stayed)
            suffix, following = following, suffix
    return np.log(density)


@njit(inline="always", error_model="numpy")  # compiled once, within its caller
def posterior(odds, z, log_weights, method, out):
    """Write P(y_i = 1 | S = z) of one bag into `out`, and return log P(S = z). Odds lie in [1e-150, 1e150].

    With log w (n + 1,), log-concave, they are P(y_i = 1 | noisy sum) and log Σ_s w_s P(S = s), whatever z.
    """
    n, noisy = len(odds), len(log_weights) > 0
    if not noisy and (z == 0 or z == n):
        probability = 0.0
        for i in range(n):
            out[i] = 0.0 if z == 0 else 1.0
            probability -= np.log1p(odds[i] if z == 0 else 1.0 / odds[i])
        return probability
    if noisy:
        log_tau, mean, variance = noisy_tilt(odds, log_weights)
        low, high = 0, n + 1
        if variance >= SMALL:
            points = grid(variance, n, 2.0)[0]
            low = min(max(0, int(mean) - points // 2), max(0, n + 1 - points))
            high = min(low + points, n + 1)
        weights, shift = np.empty(high - low), -np.inf
        for k in range(high - low):
            weights[k] = log_weights[low + k] - log_tau * (low + k)
            shift = max(shift, weights[k])
        for k in range(high - low):
            weights[k] = np.exp(weights[k] - shift)
    else:
        log_tau, variance = tilt(odds, z)
        low, weights, shift = z, np.ones(1), -log_tau * z
    tau = np.exp(log_tau)
    if method == DIRECT or variance < SMALL:
        log_p = direct(odds, tau, low, weights, n if method == DIRECT else WIDTH, out)
    else:
        log_p = fourier(odds, tau, low, weights, variance, out)
    return log_p + log_ratio(odds, tau) + shift


@njit(cache=True, nogil=True, error_model="numpy")
def posteriors(odds, offsets, totals, log_weights, method, out, log_p, first, stop):
    """Write posteriors to `out` (n,) and log P(Σy = z) to `log_p` (B,), or of noisy sums with log w (n + B,), else (0,)."""
    for b in range(first, stop):
        low, high = offsets[b], offsets[b + 1]
        log_p[b] = posterior(odds[low:high], totals[b], log_weights[low + b : high + b + 1], method, out[low:high])


@njit(cache=True, error_model="numpy")
def label_highest(score, offsets, totals):
    """(n,) 1.0 for the z highest scores of every bag, else 0.0. Ties go to the earlier instance."""
    out = np.empty(len(score))
    for b in range(len(totals)):
        low, high, remaining = offsets[b], offsets[b + 1], totals[b]
        bag = score[low:high]
        below = high - low - remaining
        threshold = np.inf if remaining <= 0 else -np.inf if below <= 0 else np.partition(bag, below)[-remaining]
        for i in range(low, high):
            remaining -= score[i] > threshold
        for i in range(low, high):
            tie = score[i] == threshold and remaining > 0
            remaining -= tie
            out[i] = 1.0 if tie or score[i] > threshold else 0.0
    return out
