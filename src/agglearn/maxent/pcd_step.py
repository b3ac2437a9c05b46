"""Arithmetic of one iteration on all weights, each in one pass over memory; there can be hundreds of millions."""

from numba import njit

FAST = {"nnan", "nsz", "arcp", "contract", "reassoc"}  # infinities keep their meaning
SMALLEST_CURVATURE = 1e-3  # records; noise can make half of an observed count negative


@njit(cache=True, fastmath=FAST)
def gradients(d, c, d_hat, c_hat, mu, theta, l2_mu, l2_theta, rescaled, clip_ratio, both, gradient, curvature):
    """Gradients on μ and θ and their preconditioners (Gilotte et al. 2022, Algorithm 1, lines 8–11).

    Parameters
    ----------
    d, c : (w,) observed counts and label sums. d_hat, c_hat : the model's, on the scale of the records.
    rescaled : ĉ by the ratio of counts (eq. 6), clipped on both sides or not; else the exact gradient (lemma 2).
    both : curvature from observed and predicted counts; else from predicted ones, as printed.
    gradient, curvature : (2, w) to write, μ first.
    """
    for k in range(mu.size):
        gradient[0, k] = d_hat[k] - d[k] + 2 * l2_mu * mu[k]
        expected, seen = c_hat[k], c[k]
        if rescaled:
            ratio = (max(d[k], 0.0) + 1) / (d_hat[k] + 1)
            if clip_ratio:
                seen *= min(1 / ratio, 1.0)
                ratio = min(ratio, 1.0)
            expected *= ratio
        gradient[1, k] = expected - seen + 2 * l2_theta * theta[k]
        of_mu, of_theta = d_hat[k], c_hat[k]
        if both:
            of_mu, of_theta = (of_mu + d[k]) / 2, (of_theta + c[k]) / 2
        curvature[0, k] = max(of_mu + 2 * l2_mu, SMALLEST_CURVATURE)
        curvature[1, k] = max(of_theta + 2 * l2_theta, SMALLEST_CURVATURE)


@njit(cache=True, fastmath=FAST)
def advance(gradient, curvature, expected, weights, velocity, step, momentum, total, clip, largest):
    """Move weights against v = g/h, clipped, with momentum (lines 10–13).

    Parameters
    ----------
    gradient, curvature, expected : (w,) g, h, and the model's statistics. weights, velocity : (w,), changed in place.
    total : (w,) to which v is added. clip : of v. largest : of a weight.

    Returns
    -------
    Σ h v², and Σ expected/h: what the first would be by the randomness of one chain per record alone.
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
    """Σ|first − second|."""
    total = 0.0
    for k in range(first.size):
        total += abs(first[k] - second[k])
    return total


@njit(cache=True)
def average(mean, values, count):
    """Take the `count`-th value of each weight into its running mean."""
    for k in range(mean.size):
        mean[k] += (values[k] - mean[k]) / count
