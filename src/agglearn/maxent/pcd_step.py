"""Arithmetic of one iteration, each in one pass over memory: there can be hundreds of millions of weights."""

from numba import njit

FAST = {"nnan", "nsz", "arcp", "contract", "reassoc"}  # infinities keep their meaning
SMALLEST_CURVATURE = 1e-3  # records (noise can make half of an observed count negative)


@njit(cache=True, fastmath=FAST)
def gradients(d, c, d_hat, c_hat, mu, theta, l2_mu, l2_theta, rescaled, clip_ratio, both, gradient, curvature):
    """Write gradients on μ and θ and their preconditioners (Gilotte et al. 2022, Algorithm 1, lines 8–11), (2, w) each.

    d, c are observed, d̂, ĉ the model's on the scale of the records. `rescaled`: ĉ is rescaled by the ratio of counts
    (eq. 6), else the gradient is exact (lemma 2). `clip_ratio`: the larger count is scaled down to the smaller. `both`:
    curvature comes from observed and predicted counts, else from predicted ones, as printed.
    """
    for k in range(mu.size):
        gradient[0, k] = d_hat[k] - d[k] + 2 * l2_mu * mu[k]
        expected, observed = c_hat[k], c[k]
        if rescaled:
            ratio = (max(d[k], 0.0) + 1) / (d_hat[k] + 1)
            if clip_ratio:
                observed *= min(1 / ratio, 1.0)
                ratio = min(ratio, 1.0)
            expected *= ratio
        gradient[1, k] = expected - observed + 2 * l2_theta * theta[k]
        of_mu, of_theta = d_hat[k], c_hat[k]
        if both:
            of_mu, of_theta = (of_mu + d[k]) / 2, (of_theta + c[k]) / 2
        curvature[0, k] = max(of_mu + 2 * l2_mu, SMALLEST_CURVATURE)
        curvature[1, k] = max(of_theta + 2 * l2_theta, SMALLEST_CURVATURE)


@njit(cache=True, fastmath=FAST)
def advance(gradient, curvature, expected, weights, velocity, step, momentum, total, clip, largest):
    """Move weights against v = g/h, at most `clip`, with momentum (lines 10–13), and add v to `total`.

    Returns Σ h v², and Σ expected/h, its expectation by the randomness of one chain per record alone.
    """
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


@njit(cache=True, fastmath=FAST)
def distance(first, second):
    """Return Σ|first − second|."""
    total = 0.0
    for k in range(first.size):
        total += abs(first[k] - second[k])
    return total


@njit(cache=True)
def average(mean, values, count):
    """Add the `count`-th value of each weight to its running mean."""
    for k in range(mean.size):
        mean[k] += (values[k] - mean[k]) / count
