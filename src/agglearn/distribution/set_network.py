"""Networks on sets: an embedding φ of instances, pooled over each bag, and a function g. It imports JAX."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from agglearn.distribution.set_batches import Batch
from agglearn.networks.layers import ACTIVATIONS, dense, initial_dense, initial_perceptron, perceptron
from agglearn.optional import require

if TYPE_CHECKING:
    from jax import Array

jax = require("jax", "networks")
jnp = require("jax.numpy", "networks")
Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class SetNetwork:
    """g((pool φ(x) − shift)·factor). Equivariant layers are x ↦ Γ(x − max over the bag) (Zaheer et al. 2017)."""

    width: int  # covariates of an instance
    out: int  # outputs of a bag
    features: tuple[int, ...]  # widths of the layers of φ
    regressor: tuple[int, ...]  # and of g
    pooling: str
    layers: str
    activation: str
    dropout: float  # rate before each layer of g
    heads: int  # of attention

    def initial(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        last = self.features[-1]
        weights = initial_perceptron("features", (self.width, *self.features), rng)
        weights |= initial_perceptron("regressor", (last, *self.regressor, self.out), rng)
        if self.pooling == "attention":
            weights |= initial_dense("keys", last, self.heads, rng) | initial_dense("values", last, last, rng)
        return weights | {"shift": np.zeros(last, np.float32), "factor": np.ones(last, np.float32)}

    def standardise(self, weights: Weights, pooled: np.ndarray) -> dict[str, np.ndarray]:
        """The weights with shift and factor that give these pooled values (B, w) mean 0 and standard deviation 1."""
        spread = pooled.std(axis=0, ddof=1) if len(pooled) > 1 else np.zeros(pooled.shape[1])
        factor = np.where(spread > 0, 1 / np.maximum(spread, 1e-6), 1.0)
        return weights | {"shift": pooled.mean(axis=0).astype(np.float32), "factor": factor.astype(np.float32)}

    def __call__(self, weights: Weights, batch: Batch, key: "Array | None" = None) -> "Array":
        """(B, out) outputs, with dropout where a key of random numbers is given."""
        shift, factor = (jax.lax.stop_gradient(weights[name]) for name in ("shift", "factor"))
        pooled = (self.pool_features(weights, batch) - shift) * factor
        return perceptron(weights, "regressor", pooled, self.activation, self.dropout, key)

    def pool_features(self, weights: Weights, batch: Batch) -> "Array":
        x = jnp.reshape(batch.x, (-1, self.width))  # instances in two dimensions: one product of matrices per layer
        if self.layers == "dense" and self.pooling in ("mean", "sum"):
            return self._affine_last(weights, batch, x)
        for k in range(len(self.features)):
            if self.layers == "equivariant":
                x = dense(weights, f"features.{k}", x - spread(batch, pooled_max(batch, x)))
                x = ACTIVATIONS[self.activation](x)
            else:
                x = dense(weights, f"features.{k}", ACTIVATIONS[self.activation](x) if k else x)
        if self.pooling == "attention":
            return self._attention(weights, batch, x)
        return {"max": pooled_max, "mean": pooled_mean, "sum": pooled_sum}[self.pooling](batch, x)

    def _affine_last(self, weights: Weights, batch: Batch, x: "Array") -> "Array":
        """Mean or sum of φ. Its last layer, without activation, is applied to the mean, at a fraction of the cost."""
        last = len(self.features) - 1
        for k in range(last):
            x = ACTIVATIONS[self.activation](dense(weights, f"features.{k}", x))
        mean = dense(weights, f"features.{last}", pooled_mean(batch, x))
        return mean if self.pooling == "mean" else mean * batch.total[:, None]

    def _attention(self, weights: Weights, batch: Batch, h: "Array") -> "Array":
        """Multi-head attention with one learned query per head (Lee et al. 2019, PMA)."""
        score = dense(weights, "keys", h)
        attention = jnp.exp(score - spread(batch, jax.lax.stop_gradient(pooled_max(batch, score))))
        values = dense(weights, "values", h).reshape(len(h), self.heads, -1) * attention[:, :, None]
        total = jnp.repeat(pooled_sum(batch, attention), values.shape[2], axis=1)
        return pooled_sum(batch, values.reshape(len(h), -1)) / total


@functools.partial(jax.jit, static_argnums=0)
def embed(network: SetNetwork, weights: Weights, batch: Batch) -> "Array":
    return network.pool_features(weights, batch)


def pooled_sum(batch: Batch, h: "Array") -> "Array":
    """(B, w) weighted sum over the instances of each bag, for h (R·C, w)."""
    h = h.reshape(*batch.x.shape[:2], -1)
    rows = (h if batch.weights is None else h * batch.weights[:, :, None]).sum(axis=1)
    return rows if batch.bag is None else _sums(batch, rows)


def pooled_mean(batch: Batch, h: "Array") -> "Array":
    return pooled_sum(batch, h) / batch.total[:, None]


def pooled_max(batch: Batch, h: "Array") -> "Array":
    """(B, w) maximum over the instances of each bag. Its gradient goes to all that attain it in equal parts."""
    h = h.reshape(*batch.x.shape[:2], -1)
    if batch.weights is not None:
        h = jnp.where(batch.weights[:, :, None] > 0, h, -jnp.inf)
    rows = h.max(axis=1)
    if batch.bag is None:
        return rows
    maximum = jax.ops.segment_max(jax.lax.stop_gradient(rows), batch.bag, len(batch.total), indices_are_sorted=True)
    attained = (rows == maximum[batch.bag]) & jnp.isfinite(rows)
    return _sums(batch, jnp.where(attained, rows, 0)) / _sums(batch, attained.astype(rows.dtype))


def spread(batch: Batch, v: "Array") -> "Array":
    """(R·C, w) each bag's row of v (B, w) for each of its instances."""
    rows = v if batch.bag is None else v[batch.bag]
    return jnp.repeat(rows, batch.x.shape[1], axis=0)


def _sums(batch: Batch, rows: "Array") -> "Array":
    return jax.ops.segment_sum(rows, batch.bag, len(batch.total), indices_are_sorted=True)
