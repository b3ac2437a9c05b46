"""Movements of a population from its counts and the probabilities of a step, with their spread and the misfit."""

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import softmax

from agglearn.collective.inference import Inference, infer
from agglearn.collective.model import ChainModel
from agglearn.collective.newton import dual_newton
from agglearn.collective.noise import noise_model
from agglearn.collective.population import population_size as estimate_population
from agglearn.collective.problem import Problem
from agglearn.errors import ConfigError, DataError, NotAvailable, PoorFit
from agglearn.observations import FlowCounts

N_ITER, TOLERANCE = 200, 1e-6  # of learning the initial distribution, and its gradient (of shares) at which it ends
ALARM = 4  # standard deviations of the mean square z-value above 1
LARGEST = 5e7  # entries of the covariance between counts and flows
TINY = 1e-9
SMALL = 1e-10  # gap of the objectives that learning the initial distribution compares


@dataclass
class Movements(Inference):
    """Movements of a population, as `reconstruct` returns them.

    Parameters
    ----------
    edge_tables, node_tables, objective, trace, gap, converged, details : see `Inference`
    spread : ndarray of shape (T−1, L, L), or None
        Standard deviation of each flow under the posterior, by the Laplace approximation.
    node_z, edge_z : ndarray of shape (T, L), ndarray of shape (T−1, L, L)
        The misfit: how far each count (or the mean of repeated ones) is from what the step before it leads to, in
        standard deviations. NaN without a count.
    initial, population_size : ndarray of shape (L,), float
        Distribution of the first step, learned or stated, and M, known or estimated.
    places, times : list of str
        Names of the counts' context, or numbers.
    """

    spread: np.ndarray | None = None
    node_z: np.ndarray = None  # type: ignore[assignment]  # as the next ones: after fields with a default
    edge_z: np.ndarray = None  # type: ignore[assignment]
    initial: np.ndarray = None  # type: ignore[assignment]
    population_size: float = np.nan
    places: Sequence[str] = ()
    times: Sequence[str] = ()

    def to_frame(self) -> pd.DataFrame:
        """A row per flow: time of its start, origin, destination, flow, and spread if it was computed."""
        flows = np.array(self.edge_tables)
        names = self.times[: len(flows)], self.places, self.places
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
) -> Movements:
    """Most probable movements of a population behind counts, for known probabilities of a step.

    A warning (`PoorFit`) tells that the model explains the counts worse than chance does. DataError for probabilities
    that do not add up to 1, of another shape than the counts or outside their graph, and counts that cannot be.
    NotAvailable for the spread of very many flows.

    Parameters
    ----------
    counts, transitions : FlowCounts, ndarray of shape (L, L) or (T−1, L, L)
        Counts of one population, and the probability of each destination (a row for each origin), for all steps or
        step by step.
    initial, population_size : str or ndarray of shape (L,), float or None
        `learned` from the counts, or the shares of the places at the first step. M: by default that of the counts, or
        else estimated from their totals.
    spread : bool
        Whether to compute the spread of each flow.
    """
    steps = _check_transitions(counts, transitions)
    n_steps, size, _ = steps.shape
    size_known = population_size is not None or counts.population_size is not None
    m = estimate_population(counts) if population_size is None else float(population_size)
    learned = isinstance(initial, str)
    if learned:
        if initial != "learned":
            raise ConfigError(f"initial: {initial!r} is not known; use learned, or shares of the {size} places")
        uniform = np.full(size, 1 / size)
        start = _learn_start(Problem(_chain(steps, uniform), counts, m), uniform)
    else:
        start = _check_initial(initial, size)
    model = _chain(steps, start)
    inference = infer(model, counts, m)
    nodes = [str(name) for name in counts.context.get("places", range(size))]
    times = [str(time) for time in counts.context.get("times", range(n_steps + 1))]
    y, mean, variance = _expect_counts(counts, np.array(inference.node_tables), steps, m * start)
    z, n_cells = np.divide(y - mean, np.sqrt(variance), out=0 * y, where=variance > TINY), (n_steps + 1) * size
    _warn_of_misfit(y, mean, variance, z, nodes, times)
    return Movements(
        **vars(inference), spread=_spread(Problem(model, counts, m), inference, learned, size_known) if spread else None,
        node_z=z[:n_cells].reshape(-1, size), edge_z=z[n_cells:].reshape(steps.shape), initial=start, population_size=m,
        places=nodes, times=times,
    )  # fmt: skip


def _learn_start(problem: Problem, uniform: np.ndarray) -> np.ndarray:
    """Shares of the places at the first step, for the problem of a chain whose first step is uniform.

    They minimise the objective, by L-BFGS. The gradient is zero where the shares are those of the fitted first step, as at the end of EM,
    which takes hundreds of steps.
    """
    potentials, dual = problem.base[0, : len(uniform)].copy(), None

    def objective(logits: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective per individual, and its gradient: the shares less those of the fitted first step."""
        nonlocal dual
        start = softmax(logits)
        with np.errstate(divide="ignore"):
            problem.base[0, : len(start)] = potentials + np.log(start / uniform)
        problem.start = problem.beliefs(np.zeros(problem.size))
        point = dual_newton(problem, start=dual, tol=SMALL)
        dual = point.dual
        return point.objective / problem.M, start - point.beliefs.marginals[0, : len(start)]

    options = {"maxiter": N_ITER, "ftol": 0, "gtol": TOLERANCE}
    return softmax(minimize(objective, np.zeros(len(uniform)), jac=True, method="L-BFGS-B", options=options).x)


def _chain(steps: np.ndarray, start: np.ndarray) -> ChainModel:
    with np.errstate(divide="ignore"):
        first, *later = np.log(steps)
        return ChainModel([first + np.log(start)[:, None], *later])


def _check_transitions(counts: FlowCounts, transitions: Any) -> np.ndarray:
    """(T−1, L, L) probabilities."""
    nodes, edges = counts.repeats("node"), counts.repeats("edge")
    n_steps, size = (nodes.shape[1] - 1, nodes.shape[2]) if nodes.size else edges.shape[1:3]
    steps = np.asarray(transitions, float)
    steps = np.repeat(steps[None], n_steps, axis=0) if steps.ndim == 2 else steps
    if n_steps < 1 or steps.shape != (n_steps, size, size):
        stated = f"have shape {np.shape(transitions)}, the counts have {n_steps} steps of {size} places"
        raise DataError(f"transitions: {stated}; give ({size}, {size}) probabilities, or one such table per step")
    wrong = (steps < 0).any(axis=2) | ~np.isclose(steps.sum(axis=2), 1)
    if wrong.any():
        step, row = np.argwhere(wrong)[0]
        advice = "probabilities of the destinations from each origin add up to 1; give these, not their logarithms"
        raise DataError(f"transitions: step {step}, row {row} is {steps[step, row].round(4).tolist()}; {advice}")
    allowed = counts.context.get("allowed")
    if allowed is not None and (outside := np.argwhere((steps > 0) & ~allowed)).size:
        _, i, j = outside[0]
        raise DataError(f"transitions: place {i} to place {j} is no step of the counts' graph; add it, or take 0")
    return steps


def _check_initial(initial: Any, size: int) -> np.ndarray:
    start = np.asarray(initial, float)
    if start.shape != (size,) or not (start >= 0).all() or not np.isclose(start.sum(), 1):
        advice = "give the share of each place at the first step, or 'learned'"
        raise DataError(f"initial: must be {size} shares from 0 on that add up to 1, got {start.tolist()}; {advice}")
    return start


def _expect_counts(
    counts: FlowCounts, nodes: np.ndarray, steps: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each count, of nodes and then of edges (repeated ones: their mean, without one NaN), its expectation, its variance.

    The fitted step before a count is what it is expected from.

    If the model holds, a z-value has a variance of at most 1: an estimated disturbance varies less than the true one.
    """
    noise, flows = noise_model(counts.noise, counts.rate, counts.scale), nodes[:-1, :, None] * steps
    split = flows * (1 - steps)
    true = np.concatenate([first, flows.sum(axis=1), flows], axis=None)
    variance = np.concatenate([first * (1 - first / first.sum()), split.sum(axis=1), split], axis=None)
    repeats = [counts.repeats("node").reshape(-1, nodes.size), counts.repeats("edge").reshape(-1, flows.size)]
    times = np.concatenate([(~np.isnan(r)).sum(axis=0) for r in repeats])
    sums = np.concatenate([np.nansum(r, axis=0) for r in repeats])
    y, mean = np.where(times > 0, sums / np.maximum(times, 1), np.nan), noise.rate * true
    variance = noise.rate**2 * (variance + noise.true_variance(true) / np.maximum(times, 1))
    return y, mean, variance


def _warn_of_misfit(
    y: np.ndarray, mean: np.ndarray, variance: np.ndarray, z: np.ndarray, nodes: list[str], times: list[str]
) -> None:
    """Warn where the mean square of the z-values is further above 1 than chance brings it."""
    uncertain = ~np.isnan(z) & (variance > TINY)
    square = z[uncertain] ** 2
    chance = 5 + 1 / variance[uncertain]  # at most its variance, for Laplace and for Poisson noise
    if square.sum() <= len(square) + ALARM * np.sqrt(chance.sum()):
        return
    worst, size = int(np.nanargmax(abs(z))), len(nodes)
    shape = (len(times), size) if worst < len(times) * size else (len(times), size, size)
    time, *cell = np.unravel_index(worst - (len(times) * size) * (len(shape) > 2), shape)
    warnings.warn(
        f"the model explains the counts worse than chance: z-values have a root mean square of {square.mean() ** 0.5:.2g}, "
        f"the largest at {times[time]}, {' to '.join(nodes[i] for i in cell)} ({y[worst]:.4g} counted, "
        f"{mean[worst]:.4g} expected); check transitions, initial, noise and population_size",
        PoorFit,
        stacklevel=3,
    )


def _spread(problem: Problem, inference: Inference, initial_learned: bool, size_known: bool) -> np.ndarray:
    """(T−1, L, L) standard deviations of the flows, for M individuals who move as the most probable tables say.

    Var(n | y) = C − C_o (C_oo + W)⁻¹ C_oᵀ, with C the covariance of the tables, o the observed cells and W the variances
    of their noise. A learned initial distribution widens C: before the counts, all are equally probable.
    """
    m, (n, size) = problem.M, problem.base.shape
    beliefs = problem.beliefs(inference.details["dual"])
    p = np.concatenate([beliefs.marginals, beliefs.pairs], axis=None)
    observed = problem.list_observed()
    cells = np.concatenate([c for _, c, _ in observed])
    noise = np.concatenate([model.true_variance(m * p[c]) for model, c, _ in observed])
    if len(cells) * len(p) > LARGEST:
        raise NotAvailable(f"spread: {len(cells)} counts of {len(p)} flows are too many; call with spread=False")
    covariance = np.zeros((len(cells) + size, len(p)))  # of the observed cells, then of the first step, with all
    for row, cell in zip(covariance, [*cells, *range(size)], strict=True):
        row[cell] = 1
        nodes, edges = row[: n * size].reshape(n, size), row[n * size :].reshape(n, size, size)
        row[:] = m * np.concatenate(beliefs.covariance_product(nodes, edges), axis=None)  # type: ignore[arg-type]
    c, first = covariance[: len(cells)], covariance[len(cells) :] / np.sqrt(np.maximum(m * p[:size], TINY))[:, None]
    variance = m * p * (1 - p)
    if initial_learned:
        wider = (m - 1) / (1 + size)
        c, variance = c + wider * first[:, cells].T @ first, variance + wider * (first**2).sum(axis=0)
    gain = np.linalg.pinv((c[:, cells] + c[:, cells].T) / 2 + np.diag(noise), hermitian=True)
    variance -= ((gain @ c) * c).sum(axis=0)
    if not size_known:  # M is the mean of the totals
        tables = np.where(cells < n * size, cells // size, n + (cells - n * size) // size**2)
        variance += p**2 * noise.sum() / len(np.unique(tables)) ** 2
    return np.sqrt(np.maximum(variance[n * size :].reshape(n, size, size)[1:], 0.0))
