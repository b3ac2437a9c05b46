"""Spread of the flows of a chain: the Gaussian posterior around the most probable tables (Laplace approximation)."""

import numpy as np

from agglearn.collective.noise import Poisson, noise_model
from agglearn.errors import NotAvailable
from agglearn.observations import FlowCounts

MAX_COUNTS = 4000  # whose covariance is inverted


def flow_spread(
    counts: FlowCounts, flows: np.ndarray, population_size: float, initial_learned: bool, size_known: bool
) -> np.ndarray:
    """(T−1, L, L) standard deviations, for M individuals who move as in the fitted tables `flows`.

    Var(n | y) = C − C_o (C_oo + W)⁻¹ C_oᵀ, with C the covariance of the tables, o the observed cells and W the variances
    of their noise. A learned initial distribution widens C: before the counts, all are equally probable.
    """
    p, (n_steps, size, _) = flows / population_size, flows.shape
    cells, noise = _observed(counts, flows)
    if len(noise) > MAX_COUNTS:
        raise NotAvailable(f"spread: {len(noise)} counts are more than {MAX_COUNTS}; call with spread=False")
    step, is_edge, i, j = cells.T
    forward, backward = (_divide(p, p.sum(axis=axis, keepdims=True)) for axis in (2, 1))
    position, k = 2 * step + is_edge, np.arange(len(noise))
    after, before = np.zeros((2, n_steps + 1, size, len(noise)))  # P(o | x_t) of cells from t on, and up to t
    for t in range(n_steps, -1, -1):
        if t < n_steps:
            own = position == 2 * t + 1
            after[t] = forward[t] @ after[t + 1]
            after[t][i[own], k[own]] = forward[t][i[own], j[own]]
        after[t][i[position == 2 * t], k[position == 2 * t]] = 1
    for t in range(n_steps + 1):
        if t:
            own = position == 2 * t - 1
            before[t] = backward[t - 1].T @ before[t - 1]
            before[t][j[own], k[own]] = backward[t - 1][i[own], j[own]]
        before[t][i[position == 2 * t], k[position == 2 * t]] = 1
    first, passed = p[0].sum(axis=1), np.eye(size)
    share, wider = first @ after[0], (population_size - 1) / (1 + size) * initial_learned
    covariances, variances = [], []
    for t, table in enumerate(p):
        own, ways = position == 2 * t + 1, passed[:, :, None] * forward[t]  # P(i, j at t | x_0)
        linked = np.where(position > 2 * t + 1, after[t + 1][None], before[t][:, None])
        linked[:, :, own] = 0
        linked[i[own], j[own], k[own]] = 1
        between = np.einsum("a,aij,ao->ijo", first, ways, after[0] - share) * wider
        covariances.append(population_size * (table[:, :, None] * (linked - share) + between))
        variances.append(table * (1 - table) + wider * (np.einsum("a,aij->ij", first, ways**2) - table**2))
        passed = passed @ forward[t]
    c = np.array(covariances)
    nodes = np.concatenate([c.sum(axis=2), c[-1:].sum(axis=1)])  # (T, L, K)
    joint = np.where(is_edge[:, None] > 0, c[np.minimum(step, n_steps - 1), i, j], nodes[step, i])
    gain = np.linalg.pinv((joint + joint.T) / 2 + np.diag(noise), hermitian=True)
    out = population_size * np.array(variances) - ((c @ gain) * c).sum(axis=3)
    if not size_known:  # M is the mean of the totals
        out += p**2 * noise.sum() / len(np.unique(position)) ** 2
    return np.sqrt(np.maximum(out, 0.0))


def _observed(counts: FlowCounts, flows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(K, 4) observed cells (step, whether an edge, state or origin, destination), and the variance of their noise."""
    model, rows, variances = noise_model(counts.noise, counts.rate, counts.scale), [], []
    for kind, z in (("node", np.concatenate([flows.sum(axis=2), flows[-1:].sum(axis=1)])), ("edge", flows)):
        times = (~np.isnan(counts.repeats(kind))).sum(axis=0)
        index = np.argwhere(times)
        rows += [(t, kind == "edge", i, (*j, 0)[0]) for t, i, *j in index]
        at = z[tuple(index.T)]
        noise = at / model.rate if isinstance(model, Poisson) else np.full(at.shape, model.variance(at))
        variances.append(noise / times[tuple(index.T)])
    return np.array(rows, int), np.concatenate(variances)


def _divide(tables: np.ndarray, sums: np.ndarray) -> np.ndarray:
    return np.divide(tables, sums, out=np.zeros_like(tables), where=sums > 0)
