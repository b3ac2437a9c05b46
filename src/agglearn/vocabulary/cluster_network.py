"""The network on clusters: embeddings, then dense layers with ReLU. Importing this needs JAX."""

import numpy as np
from jax import Array

from agglearn.networks.layers import initial_perceptron, perceptron

EMBEDDING_STD = 0.05


def initial(n_clusters: int, widths: list[int], n_features: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    table = rng.normal(0, EMBEDDING_STD, (n_clusters, widths[0])).astype(np.float32)
    return {"embedding": table} | initial_perceptron("layers", [n_features * widths[0], *widths[1:], 1], rng)


def log_odds(weights: dict[str, Array], positions: Array, key: Array | None = None) -> Array:
    x = weights["embedding"][positions].reshape(len(positions), -1)
    return perceptron(weights, "layers", x, "relu")
