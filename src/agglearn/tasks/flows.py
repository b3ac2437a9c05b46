"""Flows of a population: reconstruct its tables under a known law, or learn the law of its individuals."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from agglearn.datasets import Dataset, FlowPopulation, RecordStore, StateFlows
from agglearn.errors import DataError
from agglearn.observations import FlowCounts, FlowInstances, NoiseSpec, Observation
from agglearn.seeds import derive_generator
from agglearn.settings import check
from agglearn.tasks.base import Measurement, Source, Task, Truth
from agglearn.tasks.keys import FlowKeys, NoKeys, WeekKeys

ENOUGH, CONSISTENT = 1e-6, 1e-6  # converged: relative gap of the objective, violation per individual and node
MOST_FLOWS = 150  # arrows of a map
MOST_CELLS = 2000  # points of a scatter plot


@dataclass(frozen=True)
class TrueFlows(Truth):
    """What happened.

    Attributes
    ----------
    edge_tables : (S, T−1, L, L) true counts of S instances. log_potentials : the same shape, or None where no law is known.
    theta : true parameters, or None. places : (L, 2) x and y of each state. counts : what the learner saw.
    """

    edge_tables: np.ndarray
    log_potentials: np.ndarray | None
    theta: np.ndarray | None
    places: np.ndarray
    counts: FlowCounts

    def save(self, folder: Path) -> None:
        known = {"edge_tables": self.edge_tables, "places": self.places}
        for name in ("log_potentials", "theta"):
            if (value := getattr(self, name)) is not None:
                known[name] = value
        np.savez(folder / "truth.npz", **known)
        self.counts.save(folder / "counts")

    @classmethod
    def load(cls, folder: Path) -> Self:
        with np.load(folder / "truth.npz") as arrays:
            known = {k: arrays[k] for k in arrays.files}
        return cls(
            known["edge_tables"], known.get("log_potentials"), known.get("theta"), known["places"],
            FlowCounts.load(folder / "counts"),
        )  # fmt: skip

    def units(self) -> list[np.ndarray]:
        return [self.edge_tables]


class _Flows(Task):
    """Draws noisy counts of flows.

    Parameters of an observation: `evidence` (node, edge, or node_sums: noisy edge counts added up over where people go, as
    the thesis does, and those of the last step over where they come from), `noise`, `rate`, `scale`, or `epsilon` instead
    of scale: Laplace noise of scale 1/ε, which a count of persons needs. `summed_as` (laplace or gaussian): the likelihood
    of node_sums, with the scale of one entry, or with the standard deviation of the sum.
    """

    OBSERVATIONS: ClassVar = (
        (StateFlows, FlowCounts, WeekKeys, FlowKeys),
        (StateFlows, FlowInstances, WeekKeys, FlowKeys),
        (Dataset, FlowCounts, NoKeys, FlowKeys),
        (Dataset, FlowInstances, NoKeys, FlowKeys),
    )
    truth: ClassVar = TrueFlows

    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int):
        self.check_observation(kind, params)
        if isinstance(source.data, RecordStore):
            check(WeekKeys, source.params, source.name)
        drawn, places = _drawn(source)
        counts = [
            _noisy(np.asarray(tables, float), context, drawn.population_size, params, derive_generator("flow noise", source.name, seed, k))
            for k, (tables, context) in enumerate(zip(drawn.edge_tables, drawn.context, strict=True))
        ]  # fmt: skip
        known = np.array(drawn.log_potentials) if drawn.log_potentials else None
        truth = TrueFlows(np.array(drawn.edge_tables), known, drawn.theta, places, counts[0])
        if kind is FlowInstances:
            return FlowInstances(tuple(counts)), truth
        if known is not None:
            return replace(counts[0], context={**counts[0].context, "log_potentials": known[0]}), truth
        return counts[0], truth


def _drawn(source: Source) -> tuple[FlowPopulation, np.ndarray]:
    """The population, and the places of its states."""
    if isinstance(source.data, RecordStore):
        return _published(source)
    rows, columns = source.data.shape
    y, x = np.divmod(np.arange(rows * columns), columns)
    return source.data, np.stack([x, y], axis=1).astype(float)


def _published(source: Source) -> tuple[FlowPopulation, np.ndarray]:
    """Published tables of flows: one instance per week, the first `weeks` of them."""
    flows = source.data.features()
    weeks = sorted(flows["week"].unique())[: source.params.get("weeks", 8)]
    flows = flows[flows["week"].isin(weeks)]
    states = sorted(set(flows["origin"]) | set(flows["destination"]))
    place = {s: k for k, s in enumerate(states)}
    tables = np.zeros((len(weeks), 1, len(states), len(states)))
    at = (
        flows["week"].map({w: k for k, w in enumerate(weeks)}),
        flows["origin"].map(place),
        flows["destination"].map(place),
    )
    np.add.at(tables, (at[0], 0, at[1], at[2]), flows["flow"].to_numpy(float))
    middle = flows.groupby("origin")[["x", "y"]].mean().reindex(states).to_numpy()
    return FlowPopulation(list(tables), [], 0, None, [{} for _ in weeks]), middle


def _noisy(tables: np.ndarray, context: dict, population_size: int, params: dict, rng) -> FlowCounts:
    from agglearn.collective.noise import noise_model

    noise, rate, scale = params.get("noise", "poisson"), params.get("rate", 1.0), params.get("scale", 1.0)
    privacy = None
    if epsilon := params.get("epsilon"):
        noise, scale = "laplace", 1 / epsilon
        privacy = NoiseSpec("laplace", scale, epsilon)
    law, on = noise_model(noise, rate, scale), params.get("evidence", "node")
    more = {"noise": noise, "rate": rate, "scale": scale, "context": dict(context), "privacy": privacy}
    more["population_size"] = population_size or None
    if on == "node":
        return FlowCounts(node_counts=law.sample(_nodes(tables), rng), **more)
    edges = law.sample(tables, rng)
    if on == "edge":
        return FlowCounts(edge_counts=edges, **more)
    sums = _nodes(edges)
    if params.get("summed_as", "laplace") == "gaussian":
        more |= {"noise": "gaussian", "scale": scale * float(np.sqrt(2 * tables.shape[1]))}
    return FlowCounts(node_counts=sums, **more)


class FlowInference(_Flows):
    """Tables of one population under its true law: how near the optimum of eq. 2.7, and how fast.

    `relative_gap` is |F − F*| / |F*| with F* from a tight solve, `violation` the L1 distance from eq. 2.5 per individual;
    both have curves over iterations. `time_to_convergence`: seconds until both are below 1e-6 (violation: times the number
    of nodes) from then on. `map_error`, `mean_error`: ‖n − n*‖₁ / ‖n*‖₁ with n*
    the exact MAP tables, the exact posterior mean.
    """

    MEASURES: ClassVar = {
        "relative_gap": ("", "lower"),
        "violation": ("", "lower"),
        "negative": ("", "lower"),
        "time_to_convergence": ("s", "lower"),
        "converged": ("", "higher"),
        "map_error": ("", "lower"),
        "mean_error": ("", "lower"),
        "edge_error": ("", "lower"),
        "node_error": ("", "lower"),
        "map_seconds": ("s", "lower"),
        "gibbs_seconds": ("s", "lower"),
        "gibbs_error": ("", "lower"),
        "gibbs_reached": ("", "higher"),
        "gibbs_moves": ("", "lower"),
        "reference_error": ("", "lower"),
        "tuned_value": ("", ""),
        "flow": ("", ""),
        "true_flow": ("", ""),
    }

    def measure(self, estimator, truth: TrueFlows, measures: list[str]) -> Iterator[Measurement]:
        if hasattr(estimator, "gibbs_seconds_"):
            yield from _gibbs(estimator)
            return
        found, true = np.array(estimator.edge_tables_), truth.edge_tables[0]
        m = true[0].sum()
        if hasattr(estimator, "value_"):
            yield Measurement("tuned_value", estimator.value_)
        yield Measurement("negative", float(np.maximum(-found, 0).sum() / m))
        yield Measurement("edge_error", float(np.abs(found - true).sum() / true.sum()))
        yield Measurement("node_error", float(np.abs(_nodes(found) - _nodes(true)).sum() / _nodes(true).sum()))
        if {"relative_gap", "violation", "time_to_convergence"} & set(measures):
            yield from _convergence(estimator, truth)
        if {"map_error", "mean_error"} & set(measures):
            yield from _beside_exact(found, truth)
        if "flow" in measures:
            yield from _arrows("flow", found, truth.places)
            yield from _arrows("true_flow", true, truth.places)


def _nodes(tables: np.ndarray) -> np.ndarray:
    """(T, L) node tables."""
    return np.concatenate([tables.sum(axis=2), tables[-1:].sum(axis=1)])


def _gibbs(estimator) -> Iterator[Measurement]:
    yield Measurement("map_seconds", estimator.map_seconds_)
    yield Measurement("map_error", estimator.map_error_)
    yield Measurement("gibbs_seconds", estimator.gibbs_seconds_)
    yield Measurement("gibbs_error", estimator.gibbs_error_)
    yield Measurement("gibbs_reached", float(estimator.reached_))
    yield Measurement("gibbs_moves", float(estimator.gibbs_moves_))
    yield Measurement("reference_error", estimator.reference_error_)


def _convergence(estimator, truth: TrueFlows) -> Iterator[Measurement]:
    """Distance from the optimum, of the result and of every iterate."""
    from agglearn.collective import ChainModel, infer
    from agglearn.collective.problem import Problem

    model, m = ChainModel(list(truth.log_potentials[0])), truth.edge_tables[0][0].sum()
    best = infer(model, truth.counts, m, tol=1e-10).objective
    problem, tables = Problem(model, truth.counts, m), list(estimator.edge_tables_)
    violation = model.violation(tables, m) / m
    yield Measurement("violation", violation)
    if not np.isnan(estimator.objective_):  # not for methods that minimise something else
        gap = abs(problem.objective_of(tables) - best) / abs(best)
        if np.isfinite(gap):
            yield Measurement("relative_gap", gap)
        trace = estimator.trace_
        good = [abs(f - best) <= ENOUGH * abs(best) and v <= CONSISTENT * m * model.n_nodes for *_, f, v in trace]
        if trace:
            last_bad = max((k for k, g in enumerate(good) if not g), default=-1)
            yield Measurement("converged", float(good[-1]))
            if good[-1]:
                yield Measurement("time_to_convergence", float(trace[last_bad + 1][1]))
        for step, seconds, objective, off in trace:
            if np.isfinite(objective):
                yield Measurement("relative_gap", max(abs(objective - best) / abs(best), 1e-12), step=step)
                yield Measurement("violation", max(off / m, 1e-14), step=step)
                yield Measurement("seconds", seconds, step=step, unit="s")


def _beside_exact(found: np.ndarray, truth: TrueFlows) -> Iterator[Measurement]:
    for measure, exact in zip(("map_error", "mean_error"), _exact(truth), strict=True):
        yield Measurement(measure, float(np.abs(found - exact).sum() / exact.sum()))


def _exact(truth: TrueFlows) -> list[np.ndarray]:
    """Exact MAP tables and exact posterior mean, beside which every method is measured."""
    from agglearn.collective import ChainModel, infer

    potentials, m = truth.log_potentials[0], int(truth.edge_tables[0][0].sum())
    key = truth.counts.digest, potentials.tobytes(), m
    if key not in _EXACT:
        model = ChainModel(list(potentials))
        if len(_EXACT) >= KEPT_EXACT:
            _EXACT.clear()
        _EXACT[key] = [
            np.array(infer(model, truth.counts, m, method="exact", kind=kind).edge_tables)
            for kind in ("map", "marginals")
        ]
    return _EXACT[key]


_EXACT: dict = {}  # of this process, which measures several methods beside the same tables
KEPT_EXACT = 16


def _arrows(measure: str, tables: np.ndarray, places: np.ndarray) -> Iterator[Measurement]:
    """Individuals that moved between two places at any time, the largest flows; `item` is where from and where to."""
    total = np.asarray(tables, float).sum(axis=0)
    np.fill_diagonal(total, 0)
    for cell in np.argsort(-total, axis=None)[:MOST_FLOWS]:
        i, j = np.unravel_index(cell, total.shape)
        if total[i, j] > 0:
            (a, b), (c, d) = places[i], places[j]
            yield Measurement(measure, float(total[i, j]), item=f"{a:g},{b:g} > {c:g},{d:g}")


class FlowLearning(_Flows):
    """The law of individuals from noisy counts of populations.

    `theta_error` is ‖θ − θ*‖₁ / ‖θ*‖₁ (with a curve over EM iterations); `pairwise_mae` and `node_mae` are mean absolute
    errors of the marginal probabilities under the learned law; `edge_error` is ‖n − n*‖₁ / ‖n*‖₁ of the reconstructed
    tables, `small_edge_error` that of the cells with fewer than 1,000; `count` and `true_count` are single cells.
    """

    MEASURES: ClassVar = {
        "theta_error": ("", "lower"),
        "pairwise_mae": ("", "lower"),
        "node_mae": ("", "lower"),
        "edge_error": ("", "lower"),
        "small_edge_error": ("", "lower"),
        "count": ("", ""),
        "true_count": ("", ""),
        "flow": ("", ""),
        "true_flow": ("", ""),
    }

    def measure(self, estimator, truth: TrueFlows, measures: list[str]) -> Iterator[Measurement]:
        if "theta_error" in measures and truth.theta is not None:
            yield from _parameters(estimator, truth)
        if {"pairwise_mae", "node_mae"} & set(measures) and truth.log_potentials is not None:
            yield from _marginals(estimator, truth)
        if tables := getattr(estimator, "edge_tables_", None):
            yield from _reconstruction(np.array(tables), truth, measures)


def _parameters(estimator, truth: TrueFlows) -> Iterator[Measurement]:
    size = np.abs(truth.theta).sum()
    for step, seconds, theta in estimator.trace_:
        yield Measurement("theta_error", float(np.abs(theta - truth.theta).sum() / size), step=step)
        yield Measurement("seconds", seconds, step=step, unit="s")
    yield Measurement("theta_error", float(np.abs(estimator.theta_ - truth.theta).sum() / size))


def _marginals(estimator, truth: TrueFlows) -> Iterator[Measurement]:
    from agglearn.collective import ChainModel

    true = ChainModel(list(truth.log_potentials[0]))
    found = estimator.models()[0]
    gaps = np.abs(np.array(found.edge_marginals) - np.array(true.edge_marginals))
    yield Measurement("pairwise_mae", float(gaps.mean()))
    gaps = np.abs(np.array(found.node_marginals) - np.array(true.node_marginals))
    yield Measurement("node_mae", float(gaps.mean()))


def _reconstruction(found: np.ndarray, truth: TrueFlows, measures: list[str]) -> Iterator[Measurement]:
    true = truth.edge_tables
    if found.shape != true.shape:
        raise DataError(f"reconstructed tables have shape {found.shape}, the true ones {true.shape}")
    yield Measurement("edge_error", float(np.abs(found - true).sum() / true.sum()))
    small = true < 1000
    if small.any() and true[small].sum():
        yield Measurement("small_edge_error", float(np.abs(found - true)[small].sum() / true[small].sum()))
    if "count" in measures:
        cells = np.linspace(0, true[0].size - 1, min(MOST_CELLS, true[0].size)).astype(int)
        for cell in cells:
            t, i, j = np.unravel_index(cell, true[0].shape)
            yield Measurement("count", float(found[0].flat[cell]), item=f"{t}: {i} > {j}")
            yield Measurement("true_count", float(true[0].flat[cell]), item=f"{t}: {i} > {j}")
    if "flow" in measures:
        yield from _arrows("flow", found[0], truth.places)
        yield from _arrows("true_flow", true[0], truth.places)
