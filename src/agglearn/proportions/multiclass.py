"""Numba kernels of exact inference under known class counts: P(y_i = c | Σ_j 1[y_j = ·] = z), tilted as in `kernels`.

* `box`: prefix and suffix distributions over Π (z_c + 1) of all classes but the most frequent one, O(n·box).
* `lattice`: φ(t) = Π_j Σ_c p_jc e^{i t_c} on C − 1 frequencies, O(n). Those are used for which the bound
  exp(−2 Σ_{a<b} s_ab sin²((t_a − t_b)/2)) of |φ| with s_ab = Σ_j p_ja p_jb exceeds e^−40.
"""

import numpy as np
from numba import njit

from agglearn.linear.kernels import FAST
from agglearn.proportions.kernels import FOURIER, TAIL, grid

STEPS = 200  # of Newton's method for the tilt. Any tilt is exact, and a good one keeps the numbers near 1
DROWNED = 1e-200  # P(z) under a tilt below which sums of positive terms may have underflowed
CANCELLED = 1e-4  # fraction of the sum of absolute terms below which an alternating sum has lost digits
BOX = 4096  # cells up to which the box is taken, whatever the cost of the lattice
CELLS = 250_000_000  # of all prefixes together
FREQUENCIES = 200_000
TOO_LARGE = np.inf  # stands for a log-likelihood where neither algorithm is feasible


@njit(cache=True, error_model="numpy")
def expected_counts(log_p, tilt, z, out, mean, spread):
    """Σ_i log Σ_c p_ic e^tilt_c − ⟨z, tilt⟩, means (gradient + z), covariances (Hessian), ∝ p e^tilt in `out`."""
    n, classes = log_p.shape
    value = 0.0
    mean[:] = 0.0
    spread[:] = 0.0
    for i in range(n):
        top, total = -np.inf, 0.0
        for c in range(classes):
            top = max(top, log_p[i, c] + tilt[c])
        for c in range(classes):
            out[i, c] = np.exp(log_p[i, c] + tilt[c] - top)
            total += out[i, c]
        value += top + np.log(total)
        for c in range(classes):
            out[i, c] /= total
            mean[c] += out[i, c]
            for a in range(c + 1):
                spread[c, a] -= out[i, c] * out[i, a]
    for c in range(classes):
        value -= z[c] * tilt[c]
        spread[c, c] += mean[c]
        for a in range(c):
            spread[a, c] = spread[c, a]
    return value


@njit(cache=True, error_model="numpy")
def damped_step(spread, damping, residual, lower, out):
    """Solve (spread + damping) out = residual by Cholesky. NumPy's solver takes numba six seconds to compile."""
    for a in range(len(residual)):
        out[a] = residual[a]
        for b in range(a + 1):
            value = spread[a, b] + (damping if a == b else 0.0)
            for k in range(b):
                value -= lower[a, k] * lower[b, k]
            lower[a, b] = np.sqrt(value) if a == b else value / lower[b, b]
        for k in range(a):
            out[a] -= lower[a, k] * out[k]
        out[a] /= lower[a, a]
    for a in range(len(residual) - 1, -1, -1):
        for k in range(a + 1, len(residual)):
            out[a] -= lower[k, a] * out[k]
        out[a] /= lower[a, a]


@njit(cache=True, error_model="numpy")
def tilt_classes(log_p, z):
    """(n, C) probabilities under class weights with expected counts near z, and the log of what that divides by."""
    n, classes = log_p.shape
    tilt, damping = np.zeros(classes), 1e-6
    step, lower, moved, residual = np.empty(classes), np.empty((classes, classes)), np.empty(classes), np.empty(classes)
    out, mean, spread = np.empty((n, classes)), np.empty(classes), np.empty((classes, classes))
    new_out, new_mean, new_spread = np.empty((n, classes)), np.empty(classes), np.empty((classes, classes))
    value = expected_counts(log_p, tilt, z, out, mean, spread)
    for _ in range(STEPS):
        worst = 0.0
        for c in range(classes):
            residual[c] = z[c] - mean[c]
            worst = max(worst, abs(residual[c]) / max(1.0, np.sqrt(mean[c])))
        if not worst > 0.05:
            break
        damped_step(spread, damping * n, residual, lower, step)
        for c in range(classes):
            moved[c] = tilt[c] + step[c]
        new_value = expected_counts(log_p, moved, z, new_out, new_mean, new_spread)
        if new_value < value:
            tilt, moved, value, damping = moved, tilt, new_value, max(damping / 8, 1e-10)
            out, new_out, mean, new_mean, spread, new_spread = new_out, out, new_mean, mean, new_spread, spread
        else:
            damping *= 8
    return out, value


@njit(cache=True, error_model="numpy", fastmath=FAST)
def box(p, z, out):
    """Write the posteriors of one bag into `out`, and return log P(z), for z_c > 0 and the most frequent class last."""
    n, classes = p.shape
    free = classes - 1
    strides = np.ones(free, np.int64)
    for c in range(1, free):
        strides[c] = strides[c - 1] * (z[c - 1] + 1)
    size = strides[free - 1] * (z[free - 1] + 1)
    open_ = np.empty((free, size))  # whether a cell has one of class c to take away
    for c in range(free):
        for k in range(size):
            open_[c, k] = 1.0 if (k // strides[c]) % (z[c] + 1) > 0 else 0.0
    prefix = np.zeros((n + 1, size))
    prefix[0, 0] = 1.0
    for i in range(n):
        for k in range(size):
            prefix[i + 1, k] = p[i, free] * prefix[i, k]
        for c in range(free):
            s, w = strides[c], p[i, c]
            for k in range(s, size):
                prefix[i + 1, k] += w * open_[c, k] * prefix[i, k - s]
    suffix, shifted = np.zeros(size), np.zeros(size)
    suffix[size - 1] = 1.0
    for i in range(n - 1, -1, -1):
        total = 0.0
        for c in range(classes):
            s, joint = strides[c] if c < free else 0, 0.0
            if c < free:
                for k in range(s, size):
                    joint += prefix[i, k - s] * open_[c, k] * suffix[k]
            else:
                for k in range(size):
                    joint += prefix[i, k] * suffix[k]
            out[i, c] = p[i, c] * joint
            total += out[i, c]
        for c in range(classes):
            out[i, c] /= total
        for k in range(size):
            shifted[k] = p[i, free] * suffix[k]
        for c in range(free):
            s, w = strides[c], p[i, c]
            for k in range(s, size):
                shifted[k - s] += w * open_[c, k] * suffix[k]
        suffix, shifted = shifted, suffix
    probability = prefix[n, size - 1]
    return np.log(probability) if probability > DROWNED or probability == 0 else np.nan


@njit(cache=True, error_model="numpy")
def frequencies(p, limit):
    """(T, C) half of the frequencies to use, 0 first, none if more than `limit`, and the log of the grid's points."""
    n, classes = p.shape
    free = classes - 1
    shared, expected = np.zeros((classes, classes)), np.zeros(classes)
    for i in range(n):
        for a in range(classes):
            expected[a] += p[i, a]
            for b in range(a + 1):
                shared[a, b] += p[i, a] * p[i, b]
    points, low, position = np.empty(free, np.int64), np.empty(free, np.int64), np.empty(free, np.int64)
    total, log_points = 1.0, 0.0
    for c in range(free):
        points[c] = grid(max(expected[c] - shared[c, c], 1.0), n, 1.0)[0]
        low[c] = position[c] = -(points[c] // 2)
        total *= points[c]
        log_points += np.log(points[c])
    t, chosen, used = np.zeros(classes), np.zeros((limit, classes)), 1
    while total <= 5e7:
        first = 0
        while first < free and position[first] == 0:
            first += 1
        if first < free and position[first] > 0:
            for c in range(free):
                t[c] = 2 * np.pi * position[c] / points[c]
            decay = 0.0
            for a in range(classes):
                for b in range(a):
                    decay += shared[a, b] * np.sin((t[a] - t[b]) / 2) ** 2
            if 2 * decay <= TAIL + 1:
                if used == limit:
                    break
                for c in range(free):
                    chosen[used, c] = t[c]
                used += 1
        c = 0
        while c < free:
            position[c] += 1
            if position[c] <= -low[c]:
                break
            position[c] = low[c]
            c += 1
        if c == free:
            return chosen[:used], log_points
    return chosen[:0], log_points


@njit(cache=True, error_model="numpy", fastmath={"nsz", "arcp", "contract"})
def lattice(p, z, t, log_points, out):
    """As `box`, and NaN where a factor of φ vanishes at a frequency used, or where the terms cancel."""
    n, classes = p.shape
    density, absolute = 0.0, 0.0
    real, imaginary, cosine, sine = np.empty(n), np.empty(n), np.empty(classes), np.empty(classes)
    out[:] = 0.0
    for k in range(len(t)):
        for c in range(classes):
            cosine[c], sine[c] = np.cos(t[k, c]), np.sin(t[k, c])
        u, v, phase = 1.0, 0.0, 0.0
        for i in range(n):
            a, b = 0.0, 0.0
            for c in range(classes):
                a += p[i, c] * cosine[c]
                b += p[i, c] * sine[c]
            real[i], imaginary[i] = a, b
            u, v = u * a - v * b, u * b + v * a
        for c in range(classes):
            phase += t[k, c] * z[c]
        weight = 1.0 if k == 0 else 2.0
        g, h = weight * (u * np.cos(phase) + v * np.sin(phase)), weight * (v * np.cos(phase) - u * np.sin(phase))
        density += g
        absolute += weight * np.sqrt(u * u + v * v)
        for i in range(n):
            square = real[i] * real[i] + imaginary[i] * imaginary[i]
            if square < 1e-12:
                return np.nan
            x, y = (g * real[i] + h * imaginary[i]) / square, (h * real[i] - g * imaginary[i]) / square
            for c in range(classes):
                out[i, c] += x * cosine[c] - y * sine[c]
    if not density > CANCELLED * absolute:
        return np.nan
    for i in range(n):
        for c in range(classes):
            out[i, c] = min(max(p[i, c] * out[i, c] / density, 0.0), 1.0)
    return np.log(density) - log_points


@njit(inline="always", error_model="numpy")  # compiled once, within its caller
def posterior(log_p, z, method, out):
    """Write the posteriors of one bag into `out`, and return log P(z), `TOO_LARGE`, or NaN where no tilt was found."""
    n, classes = log_p.shape
    present, some = np.empty(classes, np.int64), 0  # classes that occur, the most frequent one last
    for c in range(classes):
        if z[c] > 0:
            present[some] = c
            if some > 0 and z[present[some - 1]] > z[c]:
                present[some - 1], present[some] = c, present[some - 1]
            some += 1
    out[:] = 0.0
    if some == 1:
        probability = 0.0
        for i in range(n):
            out[i, present[0]] = 1.0
            probability += log_p[i, present[0]]
        return probability
    logs, counts = np.empty((n, some)), np.empty(some, np.int64)
    for c in range(some):
        counts[c] = z[present[c]]
        for i in range(n):
            logs[i, c] = log_p[i, present[c]]
    within, divided = tilt_classes(logs, counts)
    cells, variance = 1.0, np.inf
    for c in range(some):
        cells *= counts[c] + 1 if c + 1 < some else 1
        of_class = 0.0
        for i in range(n):
            of_class += within[i, c] * (1 - within[i, c])
        variance = min(variance, of_class)
    probability, q = np.nan, np.empty((n, some))
    if method == FOURIER and cells > BOX and variance >= 4:
        t, log_points = frequencies(within, FREQUENCIES)
        if len(t) and (4 * len(t) < cells or cells * (n + 1) > CELLS):
            probability = lattice(within, counts, t, log_points, q)
    if np.isnan(probability):
        if cells * (n + 1) > CELLS:
            return TOO_LARGE
        probability = box(within, counts, q)
    for i in range(n):
        for c in range(some):
            out[i, present[c]] = q[i, c]
    return probability + divided


@njit(cache=True, nogil=True, error_model="numpy")
def posteriors(log_p, offsets, counts, method, out, likelihoods, first, stop):
    """Write posteriors to `out` (n, C) and log P(z) to `likelihoods` (B,), for log-probabilities (n, C), counts (B, C)."""
    for b in range(first, stop):
        low, high = offsets[b], offsets[b + 1]
        likelihoods[b] = posterior(log_p[low:high], counts[b], method, out[low:high])
