"""Training with Adam and early stopping, and prediction. Importing this needs JAX and optax.

Everything is float32 by explicit types, so a program's own choice of 64 bits changes nothing. Gradients are compiled once per
network and shape of a batch, Adam once per number of weights. Weights are one vector to both: many small arrays take longer,
to compile above all. Rates and limits are arguments, so that other settings need no new compilation.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from agglearn.errors import NotAvailable
from agglearn.optional import require

jax = require("jax", "networks")
jnp = require("jax.numpy", "networks")
optax = require("optax", "networks")


class Schedule(NamedTuple):
    """Course of a training: Adam's learning rate and for how long, norm at which gradients are clipped, weight of L2.

    steps : in all. every : steps between two looks at the held-out loss. patience : looks without improvement after
    which training ends, None for never. cosine : whether the rate falls to 0 along a cosine.
    """

    rate: float
    clip: float
    steps: int
    every: int
    patience: int | None = None
    l2: float = 0.0
    cosine: bool = False

    def numbers(self, step: int) -> np.ndarray:
        """(3,) learning rate of step 1, 2, …, norm and L2, as compiled steps take them."""
        share = (1 + np.cos(np.pi * (step - 1) / self.steps)) / 2 if self.cosine else 1.0
        return np.array([self.rate * share, self.clip, self.l2], np.float32)


def squared_error(outputs, y):
    """Mean of (f − y)² for outputs and targets (B, k)."""
    return jnp.mean((outputs - y) ** 2)


def cross_entropy(outputs, y):
    """Mean negative log-probability of classes y (B,) for scores (B, C)."""
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(outputs, y))


def log_loss(outputs, y):
    """Mean negative log-probability of labels y (B,), 0 or 1, for log-odds (B, 1)."""
    return jnp.mean(optax.sigmoid_binary_cross_entropy(outputs[:, 0], y))


LOSSES = {"squared_error": squared_error, "cross_entropy": cross_entropy, "log_loss": log_loss}


def train(
    network,
    weights: dict,
    batches: Iterable,
    held_out: Callable[[dict], float],
    loss: str,
    schedule: Schedule,
    seed: int,
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Train a network and keep the weights of the look with the least held-out loss.

    Parameters
    ----------
    weights : at the start. batches : (inputs, targets) of every step. held_out : weights → their held-out loss.
    loss : key of `LOSSES`. seed : of dropout.

    Returns
    -------
    Weights, and the held-out loss at every look.
    """
    shapes = tuple((name, np.shape(weights[name])) for name in sorted(weights))
    vector = np.concatenate([np.ravel(weights[name]) for name, _ in shapes])
    state, key, losses, best, since = _start(vector), random_key(seed), [], np.inf, 0
    for step, (x, y) in enumerate(batches, 1):
        gradient = _gradient(network, loss, shapes, vector, x, y, key, np.int32(step))
        vector, state = _adam(vector, state, gradient, schedule.numbers(step))
        jax.block_until_ready(vector)  # one thread makes batches and computes: a job may have no more
        if step % schedule.every and step != schedule.steps:
            continue
        weights = _by_name(np.asarray(vector), shapes, np)
        losses.append(held_out(weights))
        if losses[-1] < best or not np.isfinite(best):
            best, since, kept = losses[-1], 0, weights
        elif (since := since + 1) == schedule.patience:
            break
    return {name: np.array(v) for name, v in kept.items()}, losses


def shuffled(n: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Numbers of the examples of every step: passes over all in random order, a rest of less than a batch left out."""
    done = 0
    while done < steps:
        order = rng.permutation(n)
        for start in range(0, n - batch + 1, batch):
            if done < steps:
                yield order[start : start + batch]
                done += 1


@functools.partial(jax.jit, static_argnums=0)
def evaluate(network, weights: dict, x):
    """Outputs of a network, compiled."""
    return network(weights, x)


@functools.partial(jax.jit, static_argnums=0)
def loss_of(name: str, outputs, y):
    """A loss of `LOSSES`, compiled."""
    return LOSSES[name](outputs, y)


def random_key(seed: int):
    """Key of JAX's random numbers for a seed of any size; the same whatever generator a program has set for itself."""
    return jax.random.wrap_key_data(np.random.SeedSequence(seed).generate_state(2), impl="threefry2x32")


@contextlib.contextmanager
def on_device(name: str) -> Iterator[None]:
    """Compute on JAX's default device (`auto`), on the processor (`cpu`) or on a CUDA device (`cuda`).

    Raises
    ------
    NotAvailable : there is no such device.
    """
    try:
        device = None if name == "auto" else jax.devices(name)[0]
    except RuntimeError:
        raise NotAvailable(f"device: JAX has no {name} device here; use device='auto'") from None
    with jax.default_device(device):
        yield


def _optimiser(numbers) -> optax.GradientTransformation:
    """Adam for (rate, norm, L2)."""
    rate, norm, l2 = numbers
    parts = optax.clip_by_global_norm(norm), optax.add_decayed_weights(l2), optax.scale_by_adam()
    return optax.chain(*parts, optax.scale_by_learning_rate(rate))


@jax.jit
def _start(vector):
    return _optimiser(jnp.zeros(3)).init(vector)


@jax.jit
def _adam(vector, state, gradient, numbers):
    """Weights and state after one step."""
    direction, state = _optimiser(numbers).update(gradient, state, vector)
    return optax.apply_updates(vector, direction), state


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _gradient(network, loss, shapes, vector, x, y, key, step):
    """Gradient of the loss with dropout, as one vector."""
    dropout = jax.random.fold_in(key, step)
    return jax.grad(lambda v: loss_of(loss, network(_by_name(v, shapes, jnp), x, dropout), y))(vector)


def _by_name(vector, shapes: tuple, library) -> dict:
    """{name: array} of weights that lie in one vector, in the order of (name, shape)."""
    ends = np.cumsum([math.prod(shape) for _, shape in shapes])
    parts = library.split(vector, ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes, parts, strict=True)}
