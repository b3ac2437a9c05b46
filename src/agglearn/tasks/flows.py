"""Flows of a population: reconstruct its tables under a given model, or learn the model of its individuals."""

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar

import numpy as np

from agglearn.datasets import Dataset, FlowPopulation, RecordStore, StateFlows
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, FlowInstances, NoiseSpec, Observation
from agglearn.seeds import derive_generator
from agglearn.tasks.base import Kind, Task, TaskInput, Truth
from agglearn.tasks.keys import FlowKeys, NoKeys, WeekKeys
from agglearn.tasks.measures import Measurement, Measurements, higher, lower, neither

MAX_RELATIVE_GAP, MAX_VIOLATION = 1e-6, 1e-6  # of a solution, the latter per individual and node
RATE_FROM, RATE_DOWN_TO = 10, 1e-8  # first iteration and smallest relative gap that an exponent is fitted to
MAX_FLOWS = 150  # arrows of a map
MAX_CELLS = 2000  # points of a scatter plot
DIGITS = 4  # of a position after the point, in degrees on a map


@dataclass(frozen=True)
class TrueFlows(Truth):
    edge_tables: np.ndarray  # (S, T−1, L, L) counts of S instances
    log_potentials: np.ndarray | None  # (S, T−1, L, L), None for published flows
    theta: np.ndarray | None
    positions: np.ndarray  # (L, 2) x and y of each state
    counts: FlowCounts  # observation of the first instance

    def units(self) -> list[np.ndarray]:
        return [self.edge_tables]


class _Flows(Task[TrueFlows]):
    """Draw noisy counts of flows. Parameters of an observation:

    * `evidence`: `node`, `edge`, or `node_sums`: noisy edge counts added up over destinations, as the thesis does, and
      those of the last step over origins.
    * `noise`, `rate`, and `scale`, or `epsilon` for Laplace noise of scale 1/ε, as a count of persons needs.
    * `summed_as`: likelihood of node_sums, `laplace` (scale of one entry) or `gaussian` (standard deviation of the
      sum).
    """

    OBSERVATIONS: ClassVar = (
        (StateFlows, FlowCounts, WeekKeys, FlowKeys),
        (StateFlows, FlowInstances, WeekKeys, FlowKeys),
        (Dataset, FlowCounts, NoKeys, FlowKeys),
        (Dataset, FlowInstances, NoKeys, FlowKeys),
    )
    truth: ClassVar = TrueFlows

    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, TrueFlows]:
        self.check_observation(inputs, kind, params)
        drawn, positions = _population(inputs)
        counts = []
        for k, (tables, context) in enumerate(zip(drawn.edge_tables, drawn.context, strict=True)):
            rng = derive_generator("flow noise", inputs.name, seed, k)
            counts.append(_add_noise(np.asarray(tables, float), context, drawn.population_size, params, rng))
        log_potentials = np.array(drawn.log_potentials) if drawn.log_potentials else None
        truth = TrueFlows(np.array(drawn.edge_tables), log_potentials, drawn.theta, positions, counts[0])
        if kind is FlowInstances:
            return FlowInstances(tuple(counts)), truth
        if log_potentials is not None:
            return replace(counts[0], context={**counts[0].context, "log_potentials": log_potentials[0]}), truth
        return counts[0], truth


def _population(inputs: TaskInput) -> tuple[FlowPopulation, np.ndarray]:
    """The population, and the positions (L, 2) of its states. Of published flows the first `weeks` are instances."""
    if not isinstance(inputs.data, RecordStore):
        from agglearn.collective.migration import centres

        return inputs.data, centres(*inputs.data.shape)
    flows = inputs.data.features()
    weeks = np.unique(flows["week"])[: inputs.params.get("weeks", 8)]
    flows = flows[flows["week"].isin(weeks)]
    states = np.union1d(flows["origin"], flows["destination"])
    tables = np.zeros((len(weeks), 1, len(states), len(states)))
    origins, destinations = (np.searchsorted(states, flows[end]) for end in ("origin", "destination"))
    np.add.at(tables, (np.searchsorted(weeks, flows["week"]), 0, origins, destinations), flows["flow"].to_numpy(float))
    positions = flows.groupby("origin")[["x", "y"]].mean().reindex(states).to_numpy()
    return FlowPopulation(list(tables), [], 0, None, [{} for _ in weeks]), positions


def _add_noise(
    tables: np.ndarray, context: dict, population_size: int, params: dict, rng: np.random.Generator
) -> FlowCounts:
    from agglearn.collective.noise import noise_model

    noise, rate, scale = params.get("noise", "poisson"), params.get("rate", 1.0), params.get("scale", 1.0)
    privacy = None
    if epsilon := params.get("epsilon"):
        noise, scale = "laplace", 1 / epsilon
        privacy = NoiseSpec("laplace", scale, epsilon)
    mechanism, evidence = noise_model(noise, rate, scale), params.get("evidence", "node")
    stated = {"noise": noise, "rate": rate, "scale": scale, "context": dict(context), "privacy": privacy}
    stated["population_size"] = population_size or None
    if evidence == "node":
        return FlowCounts(node_counts=mechanism.sample(_node_tables(tables), rng), **stated)
    edges = mechanism.sample(tables, rng)
    if evidence == "edge":
        return FlowCounts(edge_counts=edges, **stated)
    if params.get("summed_as", "laplace") == "gaussian":
        stated |= {"noise": "gaussian", "scale": scale * float(np.sqrt(2 * tables.shape[1]))}
    return FlowCounts(node_counts=_node_tables(edges), **stated)


class FlowInference(_Flows):
    """Judge tables of one population under its true model: distance from the optimum of eq. 2.7, and speed.

    * `relative_gap`: |F − F*| / |F*| with F* from a tight solve. `violation`: L1 distance from eq. 2.5 per individual.
    * `time_to_convergence`: seconds after which both stay below 1e-6 (violation: times the number of nodes).
    * `gap_exponent`: slope of log `relative_gap` on log t over iterations t ≥ 10, until the gap is below 1e-8.
    * `map_error`, `mean_error`: ‖n − n*‖₁ / ‖n*‖₁ with n* the exact MAP tables, the exact posterior mean.
    """

    MEASURES: ClassVar = (
        higher("converged", "gibbs_reached")
        | lower("relative_gap", "violation", "negative", "map_error", "mean_error", "edge_error", "node_error")
        | lower("gibbs_error", "gibbs_moves", "reference_error", "gap_exponent")
        | lower("time_to_convergence", "map_seconds", "gibbs_seconds", unit="s")
        | neither("tuned_value", "flow", "true_flow")
    )
    KEYS: ClassVar[tuple[str, ...]] = ("from", "to")

    def measure(self, estimator: Estimator, truth: TrueFlows, measures: list[str]) -> Measurements:
        if hasattr(estimator, "gibbs_seconds_"):
            yield from _gibbs(estimator)
            return
        tables, true = np.array(estimator.edge_tables_), truth.edge_tables[0]
        m = true[0].sum()
        if hasattr(estimator, "value_"):
            yield Measurement("tuned_value", estimator.value_)
        yield Measurement("negative", float(np.maximum(-tables, 0).sum() / m))
        yield Measurement("edge_error", _l1_error(tables, true))
        yield Measurement("node_error", _l1_error(_node_tables(tables), _node_tables(true)))
        if {"relative_gap", "violation", "time_to_convergence"} & set(measures):
            yield from _convergence(estimator, truth)
        if {"map_error", "mean_error"} & set(measures):
            for name, exact in zip(("map_error", "mean_error"), _exact(truth), strict=True):
                yield Measurement(name, _l1_error(tables, exact))
        if "flow" in measures:
            yield from _arrows(tables, true, truth.positions)


def _l1_error(estimated: np.ndarray, true: np.ndarray) -> float:
    return float(np.abs(estimated - true).sum() / true.sum())


def _node_tables(tables: np.ndarray) -> np.ndarray:
    return np.concatenate([tables.sum(axis=2), tables[-1:].sum(axis=1)])


def _gibbs(estimator: Estimator) -> Measurements:
    yield Measurement("gibbs_reached", float(estimator.reached_))
    for name in ("map_seconds", "map_error", "gibbs_seconds", "gibbs_error", "gibbs_moves", "reference_error"):
        yield Measurement(name, float(getattr(estimator, f"{name}_")))


def _convergence(estimator: Estimator, truth: TrueFlows) -> Measurements:
    from agglearn.collective import ChainModel, infer
    from agglearn.collective.problem import Problem

    assert truth.log_potentials is not None
    model, m = ChainModel(list(truth.log_potentials[0])), truth.edge_tables[0][0].sum()
    best = infer(model, truth.counts, m, tol=1e-10).objective
    problem, tables = Problem(model, truth.counts, m), list(estimator.edge_tables_)
    violation = model.violation(tables, m) / m
    yield Measurement("violation", violation)
    if not np.isnan(estimator.objective_):  # not for methods that minimise something else
        relative_gap = abs(problem.objective_of(tables) - best) / abs(best)
        if np.isfinite(relative_gap):
            yield Measurement("relative_gap", relative_gap)
        trace = estimator.trace_
        slack, off = MAX_RELATIVE_GAP * abs(best), MAX_VIOLATION * m * model.n_nodes
        good = [abs(f - best) <= slack and v <= off for *_, f, v in trace]
        if trace:
            last_bad = max((k for k, g in enumerate(good) if not g), default=-1)
            yield Measurement("converged", float(good[-1]))
            if good[-1]:
                yield Measurement("time_to_convergence", float(trace[last_bad + 1][1]))
        points = [(t, abs(f - best) / abs(best)) for t, _, f, _ in trace if t >= RATE_FROM and np.isfinite(f)]
        points = list(takewhile(lambda point: point[1] > RATE_DOWN_TO, points))
        if len(points) > 1:
            log_t, log_gap = np.log(points).T
            yield Measurement("gap_exponent", float(np.polyfit(log_t, log_gap, 1)[0]))
        for step, seconds, objective, off_by in trace:
            if np.isfinite(objective):
                yield Measurement("relative_gap", max(abs(objective - best) / abs(best), 1e-12), step=step)
                yield Measurement("violation", max(off_by / m, 1e-14), step=step)
                yield Measurement("seconds", seconds, step=step, unit="s")


def _exact(truth: TrueFlows) -> list[np.ndarray]:
    from agglearn.collective import ChainModel, infer

    assert truth.log_potentials is not None
    potentials, m = truth.log_potentials[0], int(truth.edge_tables[0][0].sum())
    key = truth.counts.digest, potentials.tobytes(), m
    if key not in _EXACT:
        model = ChainModel(list(potentials))
        if len(_EXACT) >= MAX_EXACT:
            _EXACT.clear()
        exact = [infer(model, truth.counts, m, method="exact", kind=kind) for kind in ("map", "marginals")]
        _EXACT[key] = [np.array(tables.edge_tables) for tables in exact]
    return _EXACT[key]


_EXACT: dict[tuple, list[np.ndarray]] = {}  # of this process, which compares several methods with the same tables
MAX_EXACT = 16


def _arrows(tables: np.ndarray, true: np.ndarray, positions: np.ndarray) -> Measurements:
    """The largest flows between two states, summed over time, with the positions (x, y) of the two as keys."""
    points = np.round(positions, DIGITS).tolist()
    for measure, counts in (("flow", tables), ("true_flow", true)):
        total = np.asarray(counts, float).sum(axis=0)
        np.fill_diagonal(total, 0)
        for cell in np.argsort(-total, axis=None)[:MAX_FLOWS]:
            i, j = np.unravel_index(cell, total.shape)
            if total[i, j] > 0:
                yield Measurement(measure, float(total[i, j]), {"from": points[i], "to": points[j]})


class FlowLearning(_Flows):
    """Judge a model of individuals that was learned from noisy counts of populations.

    * `theta_error`: ‖θ − θ*‖₁ / ‖θ*‖₁. It has a curve over EM iterations. `count`, `true_count`: single cells.
    * `pairwise_mae`, `node_mae`: mean absolute errors of the marginal probabilities under the learned model.
    * `edge_error`: ‖n − n*‖₁ / ‖n*‖₁ of the reconstructed tables. `small_edge_error`: of cells with fewer than 1,000.
      `sized_edge_error`: of the true cells from `size` to ten times as many.
    * `coverage`: share of the true counts within 1.96 `spread_` of the reconstructed ones.
    """

    MEASURES: ClassVar = (
        lower("theta_error", "pairwise_mae", "node_mae")
        | lower("edge_error", "small_edge_error", "sized_edge_error")
        | neither("count", "true_count", "flow", "true_flow", "coverage")
    )
    KEYS: ClassVar[tuple[str, ...]] = ("time", "from", "to", "size")

    def measure(self, estimator: Estimator, truth: TrueFlows, measures: list[str]) -> Measurements:
        if "theta_error" in measures and truth.theta is not None:
            yield from _parameters(estimator, truth.theta)
        if {"pairwise_mae", "node_mae"} & set(measures) and truth.log_potentials is not None:
            yield from _marginals(estimator, truth.log_potentials)
        if tables := getattr(estimator, "edge_tables_", None):
            yield from _reconstruction(np.array(tables), truth, measures)
        if "coverage" in measures and (spread := getattr(estimator, "spread_", None)):
            covered = abs(np.array(tables) - truth.edge_tables) <= 1.96 * np.array(spread)
            yield Measurement("coverage", float(covered.mean()))


def _parameters(estimator: Estimator, true: np.ndarray) -> Measurements:
    norm = np.abs(true).sum()
    for step, seconds, theta in estimator.trace_:
        yield Measurement("theta_error", float(np.abs(theta - true).sum() / norm), step=step)
        yield Measurement("seconds", seconds, step=step, unit="s")
    yield Measurement("theta_error", float(np.abs(estimator.theta_ - true).sum() / norm))


def _marginals(estimator: Estimator, log_potentials: np.ndarray) -> Measurements:
    from agglearn.collective import ChainModel

    true, learned = ChainModel(list(log_potentials[0])), estimator.models()[0]
    for measure, marginals in (("pairwise_mae", "edge_marginals"), ("node_mae", "node_marginals")):
        error = np.abs(np.array(getattr(learned, marginals)) - np.array(getattr(true, marginals)))
        yield Measurement(measure, float(error.mean()))


def _reconstruction(tables: np.ndarray, truth: TrueFlows, measures: list[str]) -> Measurements:
    true = truth.edge_tables
    if tables.shape != true.shape:
        raise DataError(f"reconstructed tables have shape {tables.shape}, the true ones {true.shape}")
    yield Measurement("edge_error", _l1_error(tables, true))
    small = true < 1000
    if small.any() and true[small].sum():
        yield Measurement("small_edge_error", _l1_error(tables[small], true[small]))
    if "sized_edge_error" in measures:
        for size in (1, 10, 100, 1000, 10_000):
            if (cells := (true >= size) & (true < 10 * size)).any():
                yield Measurement("sized_edge_error", _l1_error(tables[cells], true[cells]), {"size": size})
    if "count" in measures:
        cells = np.linspace(0, true[0].size - 1, min(MAX_CELLS, true[0].size)).astype(int)
        for cell in cells:
            t, i, j = map(int, np.unravel_index(cell, true[0].shape))
            keys = {"time": t, "from": i, "to": j}
            yield Measurement("count", float(tables[0].flat[cell]), keys)
            yield Measurement("true_count", float(true[0].flat[cell]), keys)
    if "flow" in measures:
        yield from _arrows(tables[0], true[0], truth.positions)
