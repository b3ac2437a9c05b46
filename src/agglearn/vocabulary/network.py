"""Embedding layer and multi-layer perceptron in PyTorch, which is imported when first needed."""

from typing import NamedTuple

import numpy as np

from agglearn.errors import NotAvailable

PLAIN = {"hidden": 128, "layers": 2, "rate": 1e-3, "clip": 10.0, "l2": 1e-6}  # the first settings tried
ROWS = 1 << 14  # predicted at a time


class Rows(NamedTuple):
    """(n, D) int64 clusters and (n,) labels of rows to learn from, and of rows held out."""

    clusters: np.ndarray
    y: np.ndarray
    held: np.ndarray
    held_y: np.ndarray


def torch():
    """PyTorch on one thread; NotAvailable where it is not installed."""
    try:
        import torch as found
    except ImportError:
        raise NotAvailable("the network needs PyTorch; `make torch` installs it") from None
    found.set_num_threads(1)
    return found


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
    t = torch()
    source = t.Generator().manual_seed(state)
    with t.random.fork_rng(devices=[]):
        t.manual_seed(state)
        layers = _layers(sizes, width, chosen["hidden"], chosen["layers"])
    optimiser = t.optim.Adam(layers.parameters(), lr=chosen["rate"], weight_decay=chosen["l2"])
    loss_of, low = t.nn.BCEWithLogitsLoss(), np.inf
    x, y = (t.from_numpy(np.ascontiguousarray(v)) for v in (_flat(rows.clusters, sizes), rows.y.astype(np.float32)))
    held = t.from_numpy(_flat(rows.held, sizes)), t.from_numpy(rows.held_y.astype(np.float32))
    for _ in range(epochs):
        for part in t.randperm(len(x), generator=source).split(batch_size):
            optimiser.zero_grad()
            loss_of(layers(x[part]).squeeze(1), y[part]).backward()
            t.nn.utils.clip_grad_norm_(layers.parameters(), chosen["clip"])
            optimiser.step()
        with t.no_grad():
            loss = float(loss_of(layers(held[0]).squeeze(1), held[1]))
        if loss < low or not np.isfinite(low):
            low, best = loss, {k: v.numpy().copy() for k, v in layers.state_dict().items()}
    return best


def probabilities(weights: dict, clusters: np.ndarray, sizes) -> np.ndarray:
    """(n,) P(Y=1), computed without PyTorch."""
    flat, out = _flat(clusters, sizes), np.empty(len(clusters))
    depth = sorted({int(k.split(".")[0]) for k in weights if k.endswith("bias")})
    for start in range(0, len(flat), ROWS):
        x = weights["0.weight"][flat[start : start + ROWS]].reshape(len(flat[start : start + ROWS]), -1)
        for k in depth:
            x = x @ weights[f"{k}.weight"].T + weights[f"{k}.bias"]
            if k != depth[-1]:
                x = np.maximum(x, 0)
        out[start : start + ROWS] = 1 / (1 + np.exp(-x[:, 0].astype(np.float64)))
    return out


def _layers(sizes, width: int, hidden: int, layers: int):
    nn = torch().nn
    parts, size = [nn.Embedding(sum(sizes), width), nn.Flatten()], len(sizes) * width
    nn.init.normal_(parts[0].weight, std=0.05)
    for _ in range(layers):
        parts += [nn.Linear(size, hidden), nn.ReLU()]
        size = hidden
    return nn.Sequential(*parts, nn.Linear(size, 1))


def _flat(clusters: np.ndarray, sizes) -> np.ndarray:
    """(n, D) position of each cluster among those of all features."""
    return clusters + np.cumsum([0, *sizes[:-1]])
