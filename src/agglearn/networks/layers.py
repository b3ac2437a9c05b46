"""Layers as functions of weights. This module imports JAX."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from agglearn.optional import require

if TYPE_CHECKING:
    from jax import Array

jax = require("jax", "networks")

ACTIVATIONS = {"elu": jax.nn.elu, "tanh": jax.numpy.tanh, "relu": jax.nn.relu}


def initial_dense(name: str, width: int, out: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights (width, out) and biases (out,), uniform within 1/√width of 0."""
    bound = 1 / np.sqrt(width)
    shapes = {f"{name}.weight": (width, out), f"{name}.bias": (out,)}
    return {k: rng.uniform(-bound, bound, shape).astype(np.float32) for k, shape in shapes.items()}


def initial_perceptron(name: str, widths: Sequence[int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    weights: dict[str, np.ndarray] = {}
    for k, (width, out) in enumerate(pairwise(widths)):
        weights |= initial_dense(f"{name}.{k}", width, out, rng)
    return weights


def dense(weights: "Mapping[str, Array | np.ndarray]", name: str, x: "Array") -> "Array":
    """xW + b."""
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def perceptron(
    weights: "Mapping[str, Array | np.ndarray]",
    name: str,
    x: "Array",
    activation: str,
    dropout: float = 0.0,
    key: "Array | None" = None,
) -> "Array":
    """Output of all dense layers of a name for x (n, width). With a key there is dropout before each layer."""
    for k in range(sum(f"{name}.{i}.weight" in weights for i in range(len(weights)))):
        if k:
            x = ACTIVATIONS[activation](x)
        if dropout and key is not None:
            mask = jax.random.uniform(jax.random.fold_in(key, k), x.shape, jax.numpy.float32) >= dropout
            x = jax.numpy.where(mask, x / (1 - dropout), 0)  # expectations stay
        x = dense(weights, f"{name}.{k}", x)
    return x
