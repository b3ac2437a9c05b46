"""Adam and early stopping in float32, whatever a program's choice of 64 bits. It imports JAX and optax.

Weights are one vector, because many small arrays take longer. Other rates and limits need no new compilation.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from agglearn.errors import NotAvailable
from agglearn.optional import require
from agglearn.progress import track

if TYPE_CHECKING:
    from jax import Array
    from optax import GradientTransformation, OptState

jax = require("jax", "networks")
jnp = require("jax.numpy", "networks")
optax = require("optax", "networks")

Weights = dict[str, np.ndarray]
Network = Callable[..., "Array"]  # hashable: (weights, batch, key of random numbers or None) → outputs
Shapes = tuple[tuple[str, tuple[int, ...]], ...]  # name and shape of each array


class Schedule(NamedTuple):
    rate: float  # learning rate of Adam
    clip: float  # norm at which gradients are clipped
    steps: int
    every: int  # steps between two evaluations of the validation loss
    patience: int | None = None  # evaluations without improvement that end training, None for never
    l2: float = 0.0  # weight decay: l2·w is added to the gradient of a batch's mean loss
    cosine: bool = False  # whether the rate falls to 0 along a cosine

    def numbers(self, step: int) -> np.ndarray:
        """(3,) learning rate of step 1, 2, …, norm and L2, as compiled steps take them."""
        factor = (1 + np.cos(np.pi * (step - 1) / self.steps)) / 2 if self.cosine else 1.0
        return np.array([self.rate * factor, self.clip, self.l2], np.float32)


def squared_error(outputs: "Array", y: "Array") -> "Array":
    """Mean of (f − y)² for outputs and targets (B, k)."""
    return jnp.mean((outputs - y) ** 2)


def cross_entropy(outputs: "Array", y: "Array") -> "Array":
    """Mean negative log-probability of classes y (B,) for scores (B, C)."""
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(outputs, y))


def log_loss(outputs: "Array", y: "Array") -> "Array":
    """Return the mean negative log-probability of labels y (B,), 0 or 1, for log-odds (B, 1)."""
    return jnp.mean(optax.sigmoid_binary_cross_entropy(outputs[:, 0], y))


LOSSES = {"squared_error": squared_error, "cross_entropy": cross_entropy, "log_loss": log_loss}


def train(
    network: Network,
    weights: Weights,
    batches: Iterable[Iterable[tuple[np.ndarray, np.ndarray]]],
    validate: Callable[[Weights], float],
    loss: str,
    schedule: Schedule,
    seed: int,
) -> tuple[Weights, list[float]]:
    """The checkpoint with the least validation loss, and the losses of all.

    A batch is (inputs, targets) of each of its chunks. Their gradients are computed one after the other, and averaged.
    """
    shapes = tuple((name, np.shape(weights[name])) for name in sorted(weights))
    vector = np.concatenate([np.ravel(weights[name]) for name, _ in shapes])
    state, key, losses = _start(vector), random_key(seed), []
    best, least_loss, failures, draws = weights, np.inf, 0, itertools.count(1)
    for step, chunks in enumerate(track(batches, "steps", schedule.steps), 1):
        mean, n = vector, 0
        for x, y in chunks:
            new = _gradient(network, loss, shapes, vector, x, y, key, np.int32(next(draws)))
            mean = mean + (new - mean) * np.float32(len(y) / (n + len(y))) if n else new
            n += len(y)
            jax.block_until_ready(mean)  # one thread makes batches and computes: a job may have no more
        vector, state = _adam(vector, state, mean, schedule.numbers(step))
        jax.block_until_ready(vector)
        if step % schedule.every and step != schedule.steps:
            continue
        weights = _by_name(np.asarray(vector), shapes, np)
        losses.append(validate(weights))
        if losses[-1] < least_loss or not np.isfinite(least_loss):
            best, least_loss, failures = weights, losses[-1], 0
        elif (failures := failures + 1) == schedule.patience:
            break
    return {name: np.array(v) for name, v in best.items()}, losses


def draw_batches(n: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield indices of the examples of every step. Each pass has a random order and leaves out the rest of a batch."""
    for k in range(steps):
        start = k % (n // batch) * batch
        if start == 0:
            order = rng.permutation(n)
        yield order[start : start + batch]


@functools.partial(jax.jit, static_argnums=0)
def evaluate(network: Network, weights: Weights, x: np.ndarray) -> "Array":
    return network(weights, x)


@functools.partial(jax.jit, static_argnums=0)
def loss_of(name: str, outputs: "Array", y: "Array") -> "Array":
    return LOSSES[name](outputs, y)


def random_key(seed: int) -> "Array":
    """The key of JAX's random numbers for a seed of any size, whatever generator a program has chosen for itself."""
    return jax.random.wrap_key_data(np.random.SeedSequence(seed).generate_state(2), impl="threefry2x32")


def on_device(name: str) -> AbstractContextManager:
    """Compute on JAX's default device (`auto`), on the processor (`cpu`) or on a CUDA device (`cuda`)."""
    try:
        return jax.default_device(None if name == "auto" else jax.devices(name)[0])
    except RuntimeError:
        raise NotAvailable(f"device: JAX has no {name} device here; use device='auto'") from None


def on_processor() -> bool:
    """Whether JAX's default device is the processor."""
    return all(device.platform == "cpu" for device in jnp.zeros(0).devices())


def _optimiser(numbers: "Array") -> "GradientTransformation":
    rate, norm, l2 = numbers
    steps = optax.clip_by_global_norm(norm), optax.add_decayed_weights(l2), optax.scale_by_adam()
    return optax.chain(*steps, optax.scale_by_learning_rate(rate))


@jax.jit
def _start(vector: "Array") -> "OptState":
    return _optimiser(jnp.zeros(3)).init(vector)


@jax.jit
def _adam(vector: "Array", state: "OptState", gradient: "Array", numbers: "Array") -> "tuple[Array, OptState]":
    direction, state = _optimiser(numbers).update(gradient, state, vector)
    return optax.apply_updates(vector, direction), state


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _gradient(
    network: Network, loss: str, shapes: Shapes, vector: "Array", x: "Array", y: "Array", key: "Array", draw: "Array"
) -> "Array":
    dropout = jax.random.fold_in(key, draw)
    return jax.grad(lambda v: loss_of(loss, network(_by_name(v, shapes, jnp), x, dropout), y))(vector)


def _by_name(vector: "np.ndarray | Array", shapes: Shapes, library: ModuleType) -> Weights:
    ends = np.cumsum([math.prod(shape) for _, shape in shapes])
    arrays = library.split(vector, ends[:-1])
    return {name: array.reshape(shape) for (name, shape), array in zip(shapes, arrays, strict=True)}
