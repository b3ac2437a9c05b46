"""Movements of a population from its counts and the probabilities of a step, with their spread and the misfit."""

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from agglearn.collective.inference import MAP_METHODS, Inference, infer
from agglearn.collective.learning import InstanceTables, ParametricModel, learn
from agglearn.collective.model import ChainModel
from agglearn.collective.noise import Poisson, noise_model
from agglearn.collective.population import population_size as estimate_population
from agglearn.collective.spread import flow_spread
from agglearn.errors import ConfigError, DataError, PoorFit
from agglearn.observations import FlowCounts
from agglearn.settings import check_choice

N_ITER = 200  # of learning the initial distribution
ALARM = 4  # standard deviations of the mean square z-value above 1


@dataclass
class Movements(Inference):
    """Movements of a population, as `reconstruct` returns them.

    Parameters
    ----------
    spread : ndarray of shape (T−1, L, L), or None
        Standard deviation of each flow under the posterior, by the Laplace approximation.
    node_z, edge_z : ndarray of shape (R, T, L), ndarray of shape (R, T−1, L, L)
        The misfit: how far each count is from what the step before it leads to, in standard deviations. NaN without a
        count.
    initial, population_size : ndarray of shape (L,), float
        Distribution of the first step, learned or stated, and M, known or estimated.
    places, times : list of str
        Names of the counts' context, or numbers.
    """

    spread: np.ndarray | None = None
    node_z: np.ndarray = None  # type: ignore[assignment]
    edge_z: np.ndarray = None  # type: ignore[assignment]
    initial: np.ndarray = None  # type: ignore[assignment]
    population_size: float = np.nan
    places: list[str] = None  # type: ignore[assignment]
    times: list[str] = None  # type: ignore[assignment]

    def to_frame(self) -> pd.DataFrame:
        """A row per flow: time of its start, origin, destination, flow, and spread if it was computed."""
        flows = np.array(self.edge_tables)
        names = [self.times[: len(flows)], self.places, self.places]
        frame = pd.DataFrame(itertools.product(*names), columns=["time", "origin", "destination"])
        frame["flow"] = flows.ravel()
        return frame if self.spread is None else frame.assign(spread=self.spread.ravel())


def reconstruct(
    counts: FlowCounts,
    transitions: np.ndarray | Sequence[np.ndarray],
    *,
    initial: str | np.ndarray | Sequence[float] = "learned",
    population_size: float | None = None,
    spread: bool = True,
    method: Annotated[str, MAP_METHODS] = "dual-newton",
) -> Movements:
    """Most probable movements of a population behind counts, for known probabilities of a step.

    A warning (`PoorFit`) tells that the model explains the counts worse than chance does. DataError for probabilities
    that do not add up to 1, of another shape than the counts or outside their graph, and counts that cannot be.

    Parameters
    ----------
    counts, transitions : FlowCounts, ndarray of shape (L, L) or (T−1, L, L)
        Counts of one population, and the probability of each destination (a row for each origin), for all steps or
        step by step.
    initial, population_size : str or ndarray of shape (L,), float or None
        `learned` from the counts, or the shares of the places at the first step. M: by default that of the counts, or
        else estimated from their totals.
    spread, method : bool, str
        Whether to compute the spread of each flow, and a method of `infer` that minimises eq. 2.7.
    """
    check_choice("method", method, MAP_METHODS)
    steps = _check_transitions(counts, transitions)
    size = estimate_population(counts) if population_size is None else float(population_size)
    known = population_size is not None or counts.population_size is not None
    if isinstance(initial, str):
        if initial != "learned":
            raise ConfigError(f"initial: {initial!r} is not known; use learned, or shares of the {steps.shape[1]} places")
        start = np.log(np.full(steps.shape[1], 1 / steps.shape[1]))
        family = _FreeInitial(steps)
        shares = np.exp(learn(family, [counts], [size], start, n_iter=N_ITER, method=method, trace_every=N_ITER).theta)
        learned, shares = True, shares / shares.sum()
    else:
        learned, shares = False, _check_initial(initial, steps.shape[1])
    inference = infer(_chain(steps, shares), counts, size, method=method)
    node_z, edge_z, expected = _misfit(counts, inference, steps, shares, size)
    places = [str(p) for p in counts.context.get("places", range(steps.shape[1]))]
    times = [str(t) for t in counts.context.get("times", range(len(steps) + 1))]
    _warn_of_misfit(counts, (node_z, edge_z), expected, places, times)
    sd = flow_spread(counts, np.array(inference.edge_tables), size, learned, known) if spread else None
    results = {"spread": sd, "node_z": node_z, "edge_z": edge_z, "initial": shares, "population_size": size}
    return Movements(**vars(inference), **results, places=places, times=times)


@dataclass
class _FreeInitial(ParametricModel):
    """Chain of known steps (T−1, L, L) whose initial distribution is the softmax of θ (L,)."""

    steps: np.ndarray

    @property
    def n_parameters(self) -> int:
        return self.steps.shape[1]

    def model(self, theta: np.ndarray, instance: int) -> ChainModel:
        return _chain(self.steps, np.exp(theta - logsumexp(theta)))

    def gradient(self, theta: np.ndarray, tables: InstanceTables) -> tuple[np.ndarray, np.ndarray]:
        first, shares = tables[0][0].sum(axis=1), np.exp(theta - logsumexp(theta))
        return first.sum() * shares - first, np.maximum(first.sum() * shares, 1e-12)


def _chain(steps: np.ndarray, shares: np.ndarray) -> ChainModel:
    with np.errstate(divide="ignore"):
        tables = np.log(steps)
        return ChainModel([tables[0] + np.log(shares)[:, None], *tables[1:]])


def _check_transitions(counts: FlowCounts, transitions: Any) -> np.ndarray:
    """(T−1, L, L) probabilities."""
    nodes, edges = counts.repeats("node"), counts.repeats("edge")
    n_steps, size = (nodes.shape[1] - 1, nodes.shape[2]) if nodes.size else (edges.shape[1], edges.shape[2])
    steps = np.asarray(transitions, float)
    if steps.ndim == 2:
        steps = np.repeat(steps[None], n_steps, axis=0)
    if n_steps < 1 or steps.shape != (n_steps, size, size):
        raise DataError(
            f"transitions: have shape {np.shape(transitions)}, the counts have {n_steps} steps of {size} places; give "
            f"({size}, {size}) probabilities, or one such table per step"
        )
    sums = steps.sum(axis=2)
    if not (steps >= 0).all() or not np.allclose(sums, 1):
        advice = "give the probabilities of the destinations from each origin, not their logarithms"
        step, place = np.unravel_index(np.argmax(np.where((steps < 0).any(2), np.inf, abs(sums - 1))), sums.shape)
        raise DataError(f"transitions: row {place} of step {step} adds up to {sums[step, place]:.4g}, not to 1; {advice}")
    allowed = counts.context.get("allowed")
    if allowed is not None and ((steps > 0) & ~allowed).any():
        _, i, j = np.argwhere((steps > 0) & ~allowed)[0]
        raise DataError(f"transitions: from place {i} to {j} is possible here, and not in the graph of the counts")
    return steps


def _check_initial(initial: Any, size: int) -> np.ndarray:
    shares = np.asarray(initial, float)
    if shares.shape != (size,) or not (shares >= 0).all() or not np.isclose(shares.sum(), 1):
        advice = "give the share of each place at the first step, or 'learned'"
        raise DataError(f"initial: must be {size} shares from 0 on that add up to 1, got {list(shares.flat)}; {advice}")
    return shares


Expected = list[tuple[np.ndarray, np.ndarray]]


def _misfit(
    counts: FlowCounts, inference: Inference, steps: np.ndarray, shares: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray, Expected]:
    """z-values of node and edge counts, and what was expected, with its variance, of each.

    If the model holds, the variance of a z-value is at most 1: a smoothed disturbance varies less than the disturbance.
    """
    noise = noise_model(counts.noise, counts.rate, counts.scale)
    nodes = np.array(inference.node_tables)
    flows, split = nodes[:-1, :, None] * steps, nodes[:-1, :, None] * steps * (1 - steps)
    means = np.vstack([size * shares, flows.sum(axis=1)]), flows
    variances = np.vstack([size * shares * (1 - shares), split.sum(axis=1)]), split
    expected, z_values = [], []
    for kind, mean, variance in zip(("node", "edge"), means, variances, strict=True):
        added = noise.rate * mean if isinstance(noise, Poisson) else noise.variance(mean)
        mean, variance = noise.rate * mean, noise.rate**2 * variance + added
        excess, deviation = counts.repeats(kind).reshape(-1, *mean.shape) - mean, np.sqrt(variance)
        z_values.append(np.divide(excess, deviation, out=np.where(np.isnan(excess), excess, 0.0), where=deviation > 1e-9))
        expected.append((mean, variance))
    return z_values[0], z_values[1], expected


def _warn_of_misfit(
    counts: FlowCounts, z_values: tuple[np.ndarray, np.ndarray], expected: Expected, places: list[str], times: list[str]
) -> None:
    """Warn where the mean square of the z-values is further above 1 than chance brings it."""
    squares, fourth = [], []
    for z, (_, variance) in zip(z_values, expected, strict=True):
        seen = ~np.isnan(z) & (variance > 1e-9)
        squares.append(z[seen] ** 2)
        fourth.append((5 + 1 / np.broadcast_to(variance, z.shape))[seen])  # at most, of Laplace and of Poisson noise
    square, chance = np.concatenate(squares), np.concatenate(fourth)
    if not len(square) or square.mean() <= 1 + ALARM * np.sqrt(chance.sum()) / len(chance):
        return
    k = int(np.argmax([np.nanmax(abs(z), initial=0) for z in z_values]))
    worst = tuple(np.unravel_index(np.nanargmax(abs(z_values[k])), z_values[k].shape))
    count, mean = counts.repeats(("node", "edge")[k])[worst], expected[k][0][worst[1:]]
    cell = f"time {times[worst[1]]}, {' to '.join(places[i] for i in worst[2:])}"
    warnings.warn(
        f"the model explains the counts worse than chance: their z-values have a root mean square of "
        f"{np.sqrt(square.mean()):.2g}, the largest at {cell} ({count:.4g} counted, {mean:.4g} expected); check transitions, "
        "initial, noise and population_size",
        PoorFit,
        stacklevel=3,
    )
