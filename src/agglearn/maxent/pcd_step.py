"""Arithmetic of one iteration, each in one pass over memory: there can be hundreds of millions of weights."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numba import njit

SLICE = 1 << 19  # weights that a thread takes at a time: fixed, so that sums do not depend on the number of threads
FAST = {"nnan", "nsz", "arcp", "contract", "reassoc"}  # infinities keep their meaning
SMALLEST_CURVATURE = 1e-3  # records (noise can make half of an observed count negative)


def in_threads(kernel: Callable) -> Callable:
    """Return the function that runs `kernel` on slices of its arrays (w,), and adds up what it returns."""

    @functools.wraps(kernel)
    def run(*arguments):
        def run_from(first: int):
            stop = first + SLICE
            return kernel(*(a[first:stop] if isinstance(a, np.ndarray) else a for a in arguments))

        firsts = range(0, len(arguments[0]), SLICE)
        if len(firsts) < 2:
            return kernel(*arguments)
        with ThreadPoolExecutor(numba.get_num_threads()) as pool:
            returned = list(pool.map(run_from, firsts))
        return None if returned[0] is None else np.sum(returned, axis=0)

    return run


@in_threads
@njit(cache=True, nogil=True, fastmath=FAST)
def gradients(
    d, c, d_hat, c_hat, mu, theta, l2_mu, l2_theta, rescaled, clip_ratio, both,
    of_mu, of_theta, curvature_mu, curvature_theta,
):  # fmt: skip
    """Write gradients on μ and θ and their preconditioners (Algorithm 1, lines 8–11). λθ is of each weight."""
    for k in range(mu.size):
        of_mu[k] = d_hat[k] - d[k] + 2 * l2_mu * mu[k]
        expected, observed = c_hat[k], c[k]
        if rescaled:
            ratio = (max(d[k], 0.0) + 1) / (d_hat[k] + 1)
            if clip_ratio:
                observed *= min(1 / ratio, 1.0)
                ratio = min(ratio, 1.0)
            expected *= ratio
        of_theta[k] = expected - observed + 2 * l2_theta[k] * theta[k]
        count, positives = d_hat[k], c_hat[k]
        if both:
            count, positives = (count + d[k]) / 2, (positives + c[k]) / 2
        curvature_mu[k] = max(count + 2 * l2_mu, SMALLEST_CURVATURE)
        curvature_theta[k] = max(positives + 2 * l2_theta[k], SMALLEST_CURVATURE)


@in_threads
@njit(cache=True, nogil=True, fastmath=FAST)
def advance(gradient, curvature, expected, weights, velocity, step, momentum, total, clip, largest):
    """Add v = g/h, at most `clip`, to `total`, and step against it. Returns Σ h v² and Σ expected/h."""
    energy = noise = 0.0
    for k in range(weights.size):
        h = curvature[k]
        v = min(max(gradient[k] / h, -clip), clip)
        total[k] += v
        energy += h * v * v
        noise += expected[k] / h
        velocity[k] = momentum * velocity[k] - step * v
        weights[k] = min(max(weights[k] + velocity[k], -largest), largest)
    return energy, noise


@in_threads
@njit(cache=True, nogil=True, fastmath=FAST)
def distance(first, second):
    total = 0.0
    for k in range(first.size):
        total += abs(first[k] - second[k])
    return total


@in_threads
@njit(cache=True, nogil=True)
def average(mean, values, count):
    for k in range(mean.size):
        mean[k] += (values[k] - mean[k]) / count
