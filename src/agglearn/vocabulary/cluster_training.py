"""Training and prediction of networks on clusters. JAX is imported when they are first needed."""

from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple, TypedDict

import numpy as np

from agglearn.networks import start_jax

ROWS = 1 << 14  # predicted at a time
Weights = dict[str, np.ndarray]


class Settings(TypedDict):
    """Learning `rate`, norm `clip` of clipped gradients, and weight `l2`, besides hidden units and layers."""

    hidden: int
    layers: int
    rate: float
    clip: float
    l2: float


class Rows(NamedTuple):
    positions: np.ndarray
    y: np.ndarray
    validation: np.ndarray
    validation_y: np.ndarray


def draw_settings(trial: int, rng: np.random.Generator) -> Settings:
    """From the ranges of Bateni et al. 2019, appendix A.2. The first trial has plain settings."""
    if trial == 0:
        return {"hidden": 128, "layers": 2, "rate": 1e-3, "clip": 10.0, "l2": 1e-6}
    return {
        "hidden": int(rng.integers(100, 1281)),
        "layers": int(rng.integers(1, 6)),
        "rate": float(10 ** rng.uniform(-6, -2)),
        "clip": float(10 ** rng.uniform(0, 3)),
        "l2": float(rng.uniform(0, 1e-4)),
    }


def train(
    rows: Rows, sizes: Sequence[int], settings: Settings, epochs: int, batch_size: int, width: int, state: int
) -> Weights:
    """Weights by name after the epoch with the smallest log loss of the validation rows."""
    (modules, training), rng = jax_modules(), np.random.default_rng(state)
    weights = modules.initial(sum(sizes), [width, *[settings["hidden"]] * settings["layers"]], len(sizes), rng)
    batch = min(batch_size, len(rows.y))
    every = len(rows.y) // batch
    schedule = training.Schedule(settings["rate"], settings["clip"], epochs * every, every, l2=settings["l2"])
    positions, y = rows.positions.astype(np.int32), rows.y.astype(np.float32)
    validation_y = rows.validation_y.astype(np.float32)
    order = training.draw_batches(len(y), batch, schedule.steps, rng)
    batches = ((positions[indices], y[indices]) for indices in order)

    def validation_loss(weights: Weights) -> float:
        return float(training.loss_of("log_loss", _log_odds(weights, rows.validation), validation_y))

    return training.train(modules.log_odds, weights, batches, validation_loss, "log_loss", schedule, state)[0]


def probabilities(weights: Weights, positions: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-_log_odds(weights, positions)[:, 0].astype(float)))


def jax_modules() -> tuple[ModuleType, ModuleType]:
    start_jax()
    from agglearn.networks import training
    from agglearn.vocabulary import cluster_network

    return cluster_network, training


def _log_odds(weights: Weights, positions: np.ndarray) -> np.ndarray:
    (modules, training), outputs = jax_modules(), []
    for start in range(0, len(positions), ROWS):
        block = positions[start : start + ROWS]
        padded = np.zeros((1 << (len(block) - 1).bit_length(), block.shape[1]), np.int32)  # few shapes are compiled
        padded[: len(block)] = block
        outputs.append(np.asarray(training.evaluate(modules.log_odds, weights, padded))[: len(block)])
    return np.concatenate(outputs)
