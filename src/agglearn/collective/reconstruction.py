"""Estimators that reconstruct tables of a population under a known chain, and the published tables as they are."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

import numpy as np

from agglearn import machine
from agglearn.collective.inference import Inference, Method, Options, infer
from agglearn.collective.model import ChainModel
from agglearn.collective.population import first_tables, population_size, require_context
from agglearn.collective.propagation import LARGE
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.seeds import draw_seed
from agglearn.settings import Count, Positive, Range

ENOUGH = 1e-6  # relative distance from the lowest objective at which tuning stops the clock


class FlowReconstruction(Estimator):
    """Tables of a population under a known chain, which is public: `context["log_potentials"]` of the counts.

    Parameters
    ----------
    method : see `agglearn.collective.infer`. options : of the method. trace : keep objective and violation of iterates.
    random_state : seed of sampling methods.

    Attributes
    ----------
    edge_tables_, node_tables_ : lists of arrays. objective_, converged_. trace_ : (iteration, seconds, objective, violation).
    """

    observes = FlowCounts

    def __init__(self, method: Method = "dual-newton", options: Options = None, trace: bool = False, random_state=None):
        self.method = method
        self.options = options
        self.trace = trace
        self.random_state = random_state

    def warm_up(self):
        """Compile on a problem of two states, and products with large tables, which are of single precision."""
        infer(*_problem_of_two_states(), method=self.method, trace=self.trace, **self._options())
        ChainModel([np.zeros((LARGE, LARGE))])._beliefs.covariance_times(np.zeros((2, LARGE)))

    def _options(self) -> dict:
        sampled = {"random_state": draw_seed(self.random_state)} if self.method == "gibbs" else {}
        return {**sampled, **(self.options or {})}

    def _fit(self, observation):
        self._keep(infer(*_problem(observation), method=self.method, trace=self.trace, **self._options()))

    def _keep(self, inference: Inference) -> None:
        """Set what is learned."""
        self.edge_tables_, self.node_tables_ = inference.edge_tables, inference.node_tables
        self.objective_, self.converged_ = float(inference.objective), bool(inference.converged)
        self.trace_ = inference.trace


class TunedReconstruction(FlowReconstruction):
    """`FlowReconstruction` with the best of several values of one option, chosen on the very counts it reconstructs.

    The best value reaches the lowest objective of all (within 1e-6 of it) in the least time, by its trace; where none
    has a finite objective, the first is taken. The times of the other runs do not count.

    Parameters
    ----------
    method, options : as in `FlowReconstruction`. option, values : what is tuned, such as `damping`, and what is tried.

    Attributes
    ----------
    value_ : the best one. edge_tables_, node_tables_, objective_, converged_, trace_ : of its run.
    """

    def __init__(
        self,
        method: Method = "nlbp-feasible",
        option: str = "damping",
        values: tuple[Positive, ...] = (1.0, 0.3, 0.1, 0.03),
        options: Options = None,
        random_state=None,
    ):
        super().__init__(method, options, True, random_state)
        self.option = option
        self.values = values

    def _options(self) -> dict:
        return {**super()._options(), self.option: self.values[0]}

    def _fit(self, observation):
        problem, options = _problem(observation), self._options()
        runs = [infer(*problem, method=self.method, trace=True, **{**options, self.option: v}) for v in self.values]
        best = min(range(len(runs)), key=[_seconds_to_lowest(run.trace, runs) for run in runs].__getitem__)
        self.value_ = float(self.values[best])
        self._keep(runs[best])


def _seconds_to_lowest(trace, runs) -> tuple[float, float]:
    """Seconds from which on a trace is within 1e-6 of the lowest objective of all runs; then its last objective."""
    ends = [f for run in runs for *_, f, _ in run.trace if np.isfinite(f)]
    if not ends or not np.isfinite(trace[-1][2]):
        return np.inf, np.inf
    lowest = min(ends)
    late = [k for k, (*_, f, _) in enumerate(trace) if not f - lowest <= ENOUGH * abs(lowest)]
    first = max(late, default=-1) + 1
    return (trace[first][1] if first < len(trace) else np.inf), trace[-1][2]


class GibbsVersusMAP(Estimator):
    """Sun 2019, Table 2.1: when does the mean of Gibbs sampling come as near to the posterior mean as the approximate MAP?

    The error is ‖n − n_ref‖₁ / ‖n_ref‖₁, for Gibbs averaged over `n_runs` samplers. The thesis takes the mean of the other
    runs as reference, whose own noise then decides. Here the reference has no part in what it judges.

    Parameters
    ----------
    method : of the MAP, timed as often as the samplers. n_runs, n_moves : samplers, and proposed moves of each.
    stages : entries of a sampler's trace. reference : `exact` enumerates all tables; `runs` is the mean of `n_references`
        other samplers of `reference_moves` moves.

    Attributes
    ----------
    map_seconds_, map_error_, gibbs_error_ : of the MAP, and the errors of MAP and of a whole Gibbs run.
    reference_error_ : how far the reference itself is from the posterior mean, estimated from its runs; zero if exact.
    gibbs_seconds_, gibbs_moves_ : until the Gibbs runs' mean error is below the MAP's; where it never is, a whole run's.
    reached_ : whether it was.
    """

    observes = FlowCounts

    def __init__(
        self,
        method: Method = "dual-newton",
        n_runs: Count = 10,
        n_moves: Count = 10_000_000,
        stages: Count = 40,
        random_state=None,
        reference: Literal["exact", "runs"] = "runs",
        n_references: Annotated[int, Range(2)] = 4,
        reference_moves: Count = 40_000_000,
    ):
        self.method = method
        self.n_runs = n_runs
        self.n_moves = n_moves
        self.stages = stages
        self.random_state = random_state
        self.reference = reference
        self.n_references = n_references
        self.reference_moves = reference_moves

    def warm_up(self):
        """Compile on a problem of two states."""
        problem = _problem_of_two_states()
        infer(*problem, method=self.method)
        infer(*problem, method="gibbs", n_moves=1000)

    def _fit(self, observation):
        problem, state = _problem(observation), draw_seed(self.random_state)
        begin = time.perf_counter()
        for _ in range(self.n_runs):
            best = np.array(infer(*problem, method=self.method, tol=1e-6).edge_tables)
        self.map_seconds_ = (time.perf_counter() - begin) / self.n_runs
        reference, self.reference_error_ = self._reference(problem, state)
        self.map_error_ = _distance(best, reference)
        runs = [
            self._sample(problem, self.n_moves, (state, k), trace=True).details["means"] for k in range(self.n_runs)
        ]
        errors = np.mean([[_distance(np.array(n), reference) for *_, n in run] for run in runs], axis=0)
        near = np.flatnonzero(errors <= self.map_error_)
        stage = near[0] if near.size else self.stages - 1
        self.gibbs_error_, self.reached_ = float(errors[-1]), bool(near.size)
        self.gibbs_seconds_ = float(np.mean([run[stage][0] for run in runs]))
        self.gibbs_moves_ = int(runs[0][stage][1])

    def _sample(self, problem, n_moves: int, stream: tuple, trace: bool = False):
        options = {"n_moves": n_moves, "stages": self.stages, "random_state": stream}
        return infer(*problem, method="gibbs", trace=trace, **options)

    def _reference(self, problem, state: int) -> tuple[np.ndarray, float]:
        """Tables that stand for the posterior mean, and their own error. Nothing here is timed, so samplers run side by side."""
        if self.reference == "exact":
            return np.array(infer(*problem, method="exact", kind="marginals").edge_tables), 0.0
        streams = [(state, "reference", k) for k in range(self.n_references)]
        with ThreadPoolExecutor(machine.cores()) as pool:
            runs = pool.map(lambda stream: self._sample(problem, self.reference_moves, stream), streams)
            ends = np.array([run.edge_tables for run in runs])
        mean, n = ends.mean(axis=0), self.n_references
        apart = np.mean([_distance(end, (n * mean - end) / (n - 1)) for end in ends])
        return mean, float(apart * np.sqrt((n - 1) / n**2))  # variances: 1 + 1/(n − 1) apart, 1/n of the mean


def _distance(tables, reference) -> float:
    return float(np.abs(tables - reference).sum() / np.abs(reference).sum())


class PublishedCounts(Estimator):
    """The published tables as they are: what a user has without any model.

    Parameters
    ----------
    clip : whether negative counts become 0.

    Attributes
    ----------
    edge_tables_ : for each instance its list of (L, L) tables.
    """

    observes = FlowInstances

    def __init__(self, clip: bool = False, random_state=None):
        self.clip = clip
        self.random_state = random_state

    def _fit(self, observation):
        tables = [list(t) for t in first_tables(observation, type(self).__name__)]
        self.edge_tables_ = [[np.maximum(t, 0) if self.clip else t for t in instance] for instance in tables]


def _problem(observation: FlowCounts) -> tuple[ChainModel, FlowCounts, float]:
    """Model, counts and population size: the first arguments of `infer`."""
    require_context(observation, ["log_potentials"])
    return ChainModel(list(observation.context["log_potentials"])), observation, population_size(observation)


def _problem_of_two_states() -> tuple[ChainModel, FlowCounts, float]:
    """The same of a problem that is just large enough to compile on."""
    counts = FlowCounts(node_counts=np.array([[1.0, 2], [2, 1], [0, 3]]))
    return ChainModel([np.zeros((2, 2))] * 2), counts, 3.0
