"""Arithmetic of one iteration, each in one pass over memory: there can be hundreds of millions of weights."""

from numba import njit

FAST = {"nnan", "nsz", "arcp", "contract", "reassoc"}  # infinities keep their meaning
SMALLEST_CURVATURE = 1e-3  # records (noise can make half of an observed count negative)


@njit(cache=True, fastmath=FAST)
def gradients(d, c, d_hat, c_hat, mu, theta, l2_mu, l2_theta, rescaled, clip_ratio, both, gradient, curvature):
    """Write gradients on μ and θ and their preconditioners (Algorithm 1, lines 8–11), (2, w) each. λθ is of each weight."""
    for k in range(mu.size):
        gradient[0, k] = d_hat[k] - d[k] + 2 * l2_mu * mu[k]
        expected, observed = c_hat[k], c[k]
        if rescaled:
            ratio = (max(d[k], 0.0) + 1) / (d_hat[k] + 1)
            if clip_ratio:
                observed *= min(1 / ratio, 1.0)
                ratio = min(ratio, 1.0)
            expected *= ratio
        gradient[1, k] = expected - observed + 2 * l2_theta[k] * theta[k]
        of_mu, of_theta = d_hat[k], c_hat[k]
        if both:
            of_mu, of_theta = (of_mu + d[k]) / 2, (of_theta + c[k]) / 2
        curvature[0, k] = max(of_mu + 2 * l2_mu, SMALLEST_CURVATURE)
        curvature[1, k] = max(of_theta + 2 * l2_theta[k], SMALLEST_CURVATURE)


@njit(cache=True, fastmath=FAST)
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


@njit(cache=True, fastmath=FAST)
def distance(first, second):
    total = 0.0
    for k in range(first.size):
        total += abs(first[k] - second[k])
    return total


@njit(cache=True)
def average(mean, values, count):
    for k in range(mean.size):
        mean[k] += (values[k] - mean[k]) / count
