"""Layers as functions of weights, which are a dict of float32 arrays by name. Importing this needs JAX."""

from itertools import pairwise

import numpy as np

from agglearn.optional import require

jax = require("jax", "networks")

ACTIVATIONS = {"elu": jax.nn.elu, "tanh": jax.numpy.tanh, "relu": jax.nn.relu}


def initial_dense(name: str, width: int, out: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights (width, out) and biases (out,) of a dense layer, uniform within 1/√width of 0."""
    bound = 1 / np.sqrt(width)
    shapes = {f"{name}.weight": (width, out), f"{name}.bias": (out,)}
    return {k: rng.uniform(-bound, bound, shape).astype(np.float32) for k, shape in shapes.items()}


def initial_perceptron(name: str, widths, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights of dense layers between successive widths."""
    found = {}
    for k, (width, out) in enumerate(pairwise(widths)):
        found |= initial_dense(f"{name}.{k}", width, out, rng)
    return found


def dense(weights: dict, name: str, x):
    """xW + b."""
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def perceptron(weights: dict, name: str, x, activation: str, dropout: float = 0.0, key=None):
    """All dense layers of a name with an activation between them, for x (n, width); with a key dropout before each."""
    for k in range(sum(f"{name}.{i}.weight" in weights for i in range(len(weights)))):
        if k:
            x = ACTIVATIONS[activation](x)
        if dropout and key is not None:
            x = _dropped(x, dropout, jax.random.fold_in(key, k))
        x = dense(weights, f"{name}.{k}", x)
    return x


def _dropped(x, rate: float, key):
    """x with a share of its entries set to 0, the others scaled so that expectations stay."""
    kept = jax.random.uniform(key, x.shape, jax.numpy.float32) >= rate
    return jax.numpy.where(kept, x / (1 - rate), 0)
