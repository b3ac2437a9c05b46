"""Training and prediction of networks on clusters. JAX is imported when they are first needed."""

from typing import NamedTuple

import numpy as np

from agglearn.networks import start_jax

PLAIN = {"hidden": 128, "layers": 2, "rate": 1e-3, "clip": 10.0, "l2": 1e-6}  # the first settings tried
ROWS = 1 << 14  # predicted at a time


class Rows(NamedTuple):
    """(n, D) int64 clusters and (n,) labels of rows to learn from, and of rows held out."""

    clusters: np.ndarray
    y: np.ndarray
    held: np.ndarray
    held_y: np.ndarray


def settings(trial: int, rng: np.random.Generator) -> dict:
    """Settings of a try, from the ranges of Bateni et al. 2019, appendix A.2."""
    if trial == 0:
        return dict(PLAIN)
    return {
        "hidden": int(rng.integers(100, 1281)),
        "layers": int(rng.integers(1, 6)),
        "rate": float(10 ** rng.uniform(-6, -2)),
        "clip": float(10 ** rng.uniform(0, 3)),
        "l2": float(rng.uniform(0, 1e-4)),
    }


def trained(rows: Rows, sizes, chosen: dict, epochs: int, batch_size: int, width: int, state: int) -> dict:
    """{name: array} weights after the epoch with the smallest log loss of held-out rows."""
    (modules, training), rng = imported(), np.random.default_rng(state)
    weights = modules.initial(sum(sizes), [width, *[chosen["hidden"]] * chosen["layers"]], len(sizes), rng)
    batch = min(batch_size, len(rows.y))
    every = len(rows.y) // batch
    schedule = training.Schedule(chosen["rate"], chosen["clip"], epochs * every, every, l2=chosen["l2"])
    positions, y = _positions(rows.clusters, sizes), rows.y.astype(np.float32)
    held_y = rows.held_y.astype(np.float32)
    order = training.shuffled(len(y), batch, schedule.steps, rng)
    batches = ((positions[which], y[which]) for which in order)
    held_out = lambda w: float(training.loss_of("log_loss", _log_odds(w, rows.held, sizes), held_y))  # noqa: E731
    return training.train(modules.log_odds, weights, batches, held_out, "log_loss", schedule, state)[0]


def probabilities(weights: dict, clusters: np.ndarray, sizes) -> np.ndarray:
    """(n,) P(Y=1)."""
    return 1 / (1 + np.exp(-_log_odds(weights, clusters, sizes)[:, 0].astype(float)))


def imported():
    """The modules on JAX, imported when they are first needed."""
    start_jax()
    from agglearn.networks import training
    from agglearn.vocabulary import cluster_network

    return cluster_network, training


def _log_odds(weights: dict, clusters: np.ndarray, sizes) -> np.ndarray:
    """(n, 1) float32 log-odds of the label."""
    modules, training = imported()
    positions, found = _positions(clusters, sizes), []
    for start in range(0, len(positions), ROWS):
        part = positions[start : start + ROWS]
        filled = np.zeros((1 << (len(part) - 1).bit_length(), part.shape[1]), part.dtype)  # few shapes are compiled
        filled[: len(part)] = part
        found.append(np.asarray(training.evaluate(modules.log_odds, weights, filled))[: len(part)])
    return np.concatenate(found)


def _positions(clusters: np.ndarray, sizes) -> np.ndarray:
    """(n, D) int32 position of each cluster among those of all features."""
    return (clusters + np.cumsum([0, *sizes[:-1]])).astype(np.int32)
