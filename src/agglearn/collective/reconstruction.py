"""Estimators that reconstruct tables of a population under a known chain, and the published tables themselves."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Annotated, Literal

import numpy as np

from agglearn import machine
from agglearn.collective.inference import Inference, Method, Options, infer
from agglearn.collective.model import ChainModel
from agglearn.collective.population import first_tables, population_size, require_context
from agglearn.collective.propagation import compile_special_cases
from agglearn.collective.results import Iterate
from agglearn.errors import ConfigError
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.progress import track
from agglearn.seeds import draw_seed
from agglearn.settings import Count, Positive, Range

TOLERANCE = 1e-6  # relative distance from the lowest objective at which tuning stops the clock
ProblemArguments = tuple[ChainModel, FlowCounts, float]  # model, counts and population size, as `infer` takes them


class FlowReconstruction(Estimator):
    """Tables of a population under a known chain, which is public: `context["log_potentials"]` of the counts.

    Parameters
    ----------
    method, options, trace : str, dict, bool
        Inference method and its options, see `infer`, and whether to record objective and violation of iterates.
    random_state : int, RandomState, Generator or None
        Seed of sampling methods.

    Attributes
    ----------
    edge_tables_, node_tables_ : list of ndarray
        One (L, L) table per edge, one (L,) table per node.
    objective_, converged_, trace_ : float, bool, list of Iterate
        F of eq. 2.7, whether the tolerance was reached, and the iterates.
    """

    observes = FlowCounts

    method: Method = "dual-newton"
    options: Options = None
    trace: bool = False

    def warm_up(self) -> None:
        """Compile, for large tables and for numbers that underflow as well."""
        infer(*_small_problem(), method=self.method, trace=self.trace, **self._options())
        compile_special_cases()

    def _options(self) -> dict:
        seed = {"random_state": draw_seed(self.random_state)} if self.method == "gibbs" else {}
        return {**seed, **(self.options or {})}

    def _fit(self, observation: FlowCounts) -> None:
        self._store(infer(*_problem(observation), method=self.method, trace=self.trace, **self._options()))

    def _store(self, inference: Inference) -> None:
        self.edge_tables_, self.node_tables_ = inference.edge_tables, inference.node_tables
        self.objective_, self.converged_ = float(inference.objective), bool(inference.converged)
        self.trace_ = inference.trace


class TunedReconstruction(FlowReconstruction):
    """`FlowReconstruction` with the best of several values of one option, `value_`, chosen on the same counts.

    It has the lowest objective (within 1e-6) in the least time of its trace. If none is finite, the first is taken.

    Parameters
    ----------
    method, options : str, dict
        Inference method, see `infer`, and options besides the tuned one.
    option, values : str, tuple of float
        The option that is tuned, and its values.
    random_state : see `FlowReconstruction`
    """

    method: Method = "nlbp-feasible"
    trace: bool = field(default=True, init=False)
    option: str = "damping"
    values: tuple[Positive, ...] = (1.0, 0.3, 0.1, 0.03)

    def _options(self) -> dict:
        return {**super()._options(), self.option: self.values[0]}

    def _fit(self, observation: FlowCounts) -> None:
        problem, options = _problem(observation), self._options()
        runs = [infer(*problem, method=self.method, trace=True, **{**options, self.option: v}) for v in self.values]
        best = min(range(len(runs)), key=[_seconds_to_lowest(run.trace, runs) for run in runs].__getitem__)
        self.value_ = float(self.values[best])
        self._store(runs[best])


def _seconds_to_lowest(trace: list[Iterate], runs: list[Inference]) -> tuple[float, float]:
    """Seconds until a trace is within `TOLERANCE` of the lowest objective of all runs, and its last objective."""
    objectives = [iterate.objective for run in runs for iterate in run.trace if np.isfinite(iterate.objective)]
    if not objectives or not np.isfinite(trace[-1].objective):
        return np.inf, np.inf
    lowest = min(objectives)
    above = [k for k, i in enumerate(trace) if not i.objective - lowest <= TOLERANCE * abs(lowest)]
    first = max(above, default=-1) + 1
    return (trace[first].seconds if first < len(trace) else np.inf), trace[-1].objective


class GibbsVersusMAP(Estimator):
    """Comparison of Gibbs sampling with the approximate MAP by ‖n − n_ref‖₁ / ‖n_ref‖₁ (Sun 2019, Table 2.1).

    With `reference='runs'` the reference has runs of its own.

    Parameters
    ----------
    method : str
        Inference method of the MAP, which is timed as often as the samplers.
    n_runs, n_moves, stages : int
        Number of samplers, proposed moves of each, and entries of a sampler's trace.
    reference : {'exact', 'runs', 'others'}
        Posterior mean by enumeration of all tables, the mean of other samplers, or the thesis's: each run, and the
        MAP, is compared with the mean of the other runs. With one run: ConfigError.
    n_references, reference_moves : int
        Number of the other samplers of `runs`, and moves of each.
    random_state : int, RandomState, Generator or None
        Seed of the samplers.

    Attributes
    ----------
    map_seconds_, map_error_, gibbs_error_ : float
        Time and error of the MAP, and mean error of whole Gibbs runs.
    reference_error_ : float
        Estimated distance of the reference from the posterior mean, zero if it is exact.
    gibbs_seconds_, gibbs_moves_, reached_ : float, int, bool
        Time and moves until the Gibbs runs' mean error is below the MAP's (else of a whole run), and whether it is.
    """

    observes = FlowCounts

    method: Method = "dual-newton"
    n_runs: Count = 10
    n_moves: Count = 10_000_000
    stages: Count = 40
    reference: Literal["exact", "runs", "others"] = "runs"
    n_references: Annotated[int, Range(2)] = 4
    reference_moves: Count = 40_000_000

    def warm_up(self) -> None:
        """Compile on a small problem."""
        problem = _small_problem()
        infer(*problem, method=self.method)
        infer(*problem, method="gibbs", n_moves=1000)

    def _fit(self, observation: FlowCounts) -> None:
        if self.reference == "others" and self.n_runs < 2:
            raise ConfigError("n_runs: reference='others' needs two runs or more, got 1")
        problem, seed = _problem(observation), draw_seed(self.random_state)
        started = time.perf_counter()
        for _ in track(range(self.n_runs), "runs"):
            best = np.array(infer(*problem, method=self.method, tol=1e-6).edge_tables)
        self.map_seconds_ = (time.perf_counter() - started) / self.n_runs
        samplers = (self._sample(problem, self.n_moves, (seed, k), trace=True) for k in range(self.n_runs))
        runs = [sampler.details["means"] for sampler in track(samplers, "runs", self.n_runs)]
        references, self.reference_error_ = self._references(problem, seed, np.array([run[-1][-1] for run in runs]))
        self.map_error_ = float(np.mean([_relative_distance(best, reference) for reference in references]))
        pairs = zip(runs, references, strict=True)
        errors = np.mean([[_relative_distance(np.array(n), to) for *_, n in run] for run, to in pairs], axis=0)
        stages = np.flatnonzero(errors <= self.map_error_)
        stage = stages[0] if stages.size else self.stages - 1
        self.gibbs_error_, self.reached_ = float(errors[-1]), bool(stages.size)
        self.gibbs_seconds_ = float(np.mean([run[stage][0] for run in runs]))
        self.gibbs_moves_ = int(runs[0][stage][1])

    def _sample(self, problem: ProblemArguments, n_moves: int, stream: tuple, trace: bool = False) -> Inference:
        return infer(*problem, "gibbs", trace=trace, n_moves=n_moves, stages=self.stages, random_state=stream)

    def _references(self, problem: ProblemArguments, seed: int, means: np.ndarray) -> tuple[np.ndarray, float]:
        """Tables that stand for the posterior mean in comparison with each run's mean tables, and their own error."""
        if self.reference == "exact":
            exact = infer(*problem, method="exact", kind="marginals").edge_tables
            return np.broadcast_to(exact, means.shape), 0.0
        if self.reference == "others":
            references, distance = _leave_one_out(means)
            return references, distance / float(np.sqrt(self.n_runs))  # its variance is 1 + 1/(n − 1), theirs 1/(n − 1)
        streams = [(seed, "reference", k) for k in range(self.n_references)]
        with ThreadPoolExecutor(machine.cores()) as pool:  # nothing is timed
            runs = pool.map(lambda stream: self._sample(problem, self.reference_moves, stream), streams)
            tables = np.array([run.edge_tables for run in runs])
        distance, n = _leave_one_out(tables)[1], self.n_references
        error = distance * float(np.sqrt((n - 1) / n**2))  # its variance is 1 + 1/(n − 1), the mean's 1/n
        return np.broadcast_to(tables.mean(axis=0), means.shape), error


def _leave_one_out(tables: np.ndarray) -> tuple[np.ndarray, float]:
    """Mean of the other tables for each of (n, T−1, L, L), and the mean distance of a table from it."""
    n = len(tables)
    means = (tables.sum(axis=0) - tables) / (n - 1)
    return means, float(np.mean([_relative_distance(t, to) for t, to in zip(tables, means, strict=True)]))


def _relative_distance(tables: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(tables - reference).sum() / np.abs(reference).sum())


class PublishedCounts(Estimator):
    """The published tables themselves, without a model: `edge_tables_`, for each instance its (L, L) arrays.

    Parameters
    ----------
    clip, random_state : bool, int or None
        Whether negative counts become 0. The seed is unused: the result is deterministic.
    """

    observes = FlowInstances

    clip: bool = False

    def _fit(self, observation: FlowInstances) -> None:
        instances = first_tables(observation, type(self).__name__)
        self.edge_tables_ = [[np.maximum(t, 0) if self.clip else t for t in tables] for tables in instances]


def _problem(observation: FlowCounts) -> ProblemArguments:
    require_context(observation, ["log_potentials"])
    return ChainModel(list(observation.context["log_potentials"])), observation, population_size(observation)


def _small_problem() -> ProblemArguments:
    counts = FlowCounts(node_counts=np.array([[1.0, 2], [2, 1], [0, 3]]))
    return ChainModel([np.zeros((2, 2))] * 2), counts, 3.0
