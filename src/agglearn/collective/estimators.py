"""Collective graphical models as estimators: tables of a population, or the law of its individuals."""

import time
from typing import Annotated, Literal

import numpy as np

from agglearn.collective.inference import GIVEN, METHODS, infer
from agglearn.collective.laws import FreeTables, HomogeneousPotentials, LogLinearTransitions
from agglearn.collective.learning import LEARNERS
from agglearn.collective.migration import migration_features
from agglearn.collective.model import ChainModel
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.seeds import draw_seed, generator
from agglearn.settings import Count, NonNegative, OneOf, OptionsOf, Positive, Range, Whole

ENOUGH = 1e-6  # relative distance from the lowest objective at which tuning stops the clock
Method = Annotated[str, OneOf(METHODS)]
Learner = Annotated[str, OneOf(LEARNERS)]
Options = Annotated[
    dict | None,
    OptionsOf("method", METHODS, GIVEN),
]


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
        """Compile on a problem of two states."""
        model = ChainModel([np.zeros((2, 2))] * 2)
        counts = FlowCounts(node_counts=np.array([[1.0, 2], [2, 1], [0, 3]]))
        infer(model, counts, 3, method=self.method, trace=self.trace, **self._options())

    def _options(self) -> dict:
        sampled = {"random_state": draw_seed(self.random_state)} if self.method == "gibbs" else {}
        return {**sampled, **(self.options or {})}

    def _fit(self, observation, selection=None):
        model, m = ChainModel(list(observation.context["log_potentials"])), population_size(observation)
        found = infer(model, observation, m, method=self.method, trace=self.trace, **self._options())
        self.edge_tables_, self.node_tables_ = found.edge_tables, found.node_tables
        self.objective_, self.converged_, self.trace_ = float(found.objective), bool(found.converged), found.trace


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

    def _fit(self, observation, selection=None):
        model, m, runs = ChainModel(list(observation.context["log_potentials"])), population_size(observation), []
        for value in self.values:
            options = {**self._options(), self.option: value}
            runs.append(infer(model, observation, m, method=self.method, trace=True, **options))
        best = min(range(len(runs)), key=[_seconds_to_lowest(run.trace, runs) for run in runs].__getitem__)
        found, self.value_ = runs[best], float(self.values[best])
        self.edge_tables_, self.node_tables_ = found.edge_tables, found.node_tables
        self.objective_, self.converged_, self.trace_ = float(found.objective), bool(found.converged), found.trace


def _seconds_to_lowest(trace, runs) -> tuple[float, float]:
    """Seconds from which on a trace is within 1e-6 of the lowest objective of all runs; then its last objective."""
    ends = [f for run in runs for *_, f, _ in run.trace if np.isfinite(f)]
    if not ends or not np.isfinite(trace[-1][2]):
        return np.inf, np.inf
    lowest = min(ends)
    late = [k for k, (*_, f, _) in enumerate(trace) if not f - lowest <= ENOUGH * abs(lowest)]
    first = max(late, default=-1) + 1
    return (trace[first][1] if first < len(trace) else np.inf), trace[-1][2]


class GibbsBesideMap(Estimator):
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
        model = ChainModel([np.zeros((2, 2))] * 2)
        counts = FlowCounts(node_counts=np.array([[1.0, 2], [2, 1], [0, 3]]))
        infer(model, counts, 3, method=self.method)
        infer(model, counts, 3, method="gibbs", n_moves=1000)

    def _fit(self, observation, selection=None):
        problem = ChainModel(list(observation.context["log_potentials"])), observation, population_size(observation)
        state = draw_seed(self.random_state)
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
        """Tables that stand for the posterior mean, and their own error."""
        if self.reference == "exact":
            return np.array(infer(*problem, method="exact", kind="marginals").edge_tables), 0.0
        streams = [(state, "reference", k) for k in range(self.n_references)]
        ends = np.array([self._sample(problem, self.reference_moves, s).edge_tables for s in streams])
        mean, n = ends.mean(axis=0), self.n_references
        apart = np.mean([_distance(end, (n * mean - end) / (n - 1)) for end in ends])
        return mean, float(apart * np.sqrt((n - 1) / n**2))  # variances: 1 + 1/(n − 1) apart, 1/n of the mean


def _distance(tables, reference) -> float:
    return float(np.abs(tables - reference).sum() / np.abs(reference).sum())


class _Learner(Estimator):
    """A law learned from instances; subclasses have the law, and where θ begins.

    Attributes
    ----------
    theta_ : parameters. trace_ : (iteration, seconds, θ). edge_tables_ : per instance, of the last E step.
    evaluations_ : E steps that were made. contexts_, n_steps_, size_ : what the law is made of.
    """

    observes = FlowInstances

    def _fit(self, observation, selection=None):
        counts = observation.instances
        self.contexts_ = [dict(c.context) for c in counts]
        edges, nodes = counts[0].repeats("edge"), counts[0].repeats("node")
        self.n_steps_ = edges.shape[1] + 1 if edges.size else nodes.shape[1]
        self.size_ = edges.shape[-1] if edges.size else nodes.shape[-1]
        law = self.law()
        learned = LEARNERS[self.learner](
            law, list(counts), [population_size(c) for c in counts], self._start(law, observation), n_iter=self.n_iter,
            method=self.method, trace_every=self.trace_every, **(self.options or {}),
        )  # fmt: skip
        self.theta_, self.trace_, self.evaluations_ = learned.theta, learned.trace, learned.evaluations
        self.edge_tables_ = [f.edge_tables for f in learned.inferences]

    def _allowed(self):
        """(L, L) which steps are possible, the same for all instances; None where all are."""
        masks = [c.get("allowed") for c in self.contexts_]
        if any((m is None) != (masks[0] is None) or not np.array_equal(m, masks[0]) for m in masks):
            raise DataError("allowed: the instances have different masks in their context; give all the same")
        return masks[0]

    def models(self, theta=None) -> list[ChainModel]:
        """The chain of each instance, with the learned parameters or others."""
        law = self.law()
        return [law.model(self.theta_ if theta is None else theta, k) for k in range(len(self.contexts_))]


class MigrationEM(_Learner):
    """Four parameters of bird migration from node counts of several years (Sun 2019, section 2.6.1.5).

    Public in each instance's context: `shape` (rows, columns), `wind` (T−1, 2), `log_initial` (L,), and where not every
    step is possible `allowed` (L, L).

    Parameters
    ----------
    method, options : of the E step. n_iter : most iterations. trace_every : thinning.
    start_scale : standard deviation of the random start.
    learner : `lbfgs`, on the marginal objective, or `em`, the thesis's; the methods gaussian, gibbs and exact need `em`.
    """

    def __init__(
        self,
        method: Method = "dual-newton",
        n_iter: Whole = 60,
        options: Options = None,
        start_scale: NonNegative = 1.0,
        trace_every: Count = 1,
        random_state=None,
        learner: Learner = "lbfgs",
    ):
        self.method = method
        self.learner = learner
        self.n_iter = n_iter
        self.options = options
        self.start_scale = start_scale
        self.trace_every = trace_every
        self.random_state = random_state

    def warm_up(self):
        """Compile on a grid of 2 × 2."""
        context = {"shape": np.array([2, 2]), "wind": np.ones((2, 2)), "log_initial": np.zeros(4)}
        counts = FlowCounts(node_counts=np.ones((3, 4)), population_size=4, context=context)
        type(self)(self.method, 1, self.options, random_state=0, learner=self.learner).fit(FlowInstances((counts,)))

    def law(self) -> LogLinearTransitions:
        features = [migration_features(*map(int, c["shape"]), c["wind"]) for c in self.contexts_]
        return LogLinearTransitions(features, self.contexts_[0]["log_initial"], self._allowed())

    def _start(self, law, observation):
        # the same start for every method of a seed: only what is observed decides
        return generator("migration start", observation.digest).normal(0, self.start_scale, law.n_parameters)


class MobilityEM(_Learner):
    """Free, time-homogeneous potentials of human mobility from noisy counts (Sun 2019, section 2.6.2).

    A network that is not complete has `allowed` (L, L), which state follows which, in each instance's context.

    Parameters
    ----------
    start : `baseline` (maximum likelihood that ignores the noise, from edge counts) or `random`. m_steps : L-BFGS
        iterations per M step of EM, each from the last θ. baseline_iter : L-BFGS iterations of the baseline.
    learner, n_iter, method, options, trace_every : as in `MigrationEM`.
    """

    def __init__(
        self,
        method: Method = "dual-newton",
        n_iter: Whole = 250,
        options: Options = None,
        start: Literal["baseline", "random"] = "baseline",
        m_steps: Count = 10,
        baseline_iter: Whole = 200,
        trace_every: Count = 10,
        random_state=None,
        learner: Learner = "lbfgs",
    ):
        self.method = method
        self.learner = learner
        self.n_iter = n_iter
        self.options = options
        self.start = start
        self.m_steps = m_steps
        self.baseline_iter = baseline_iter
        self.trace_every = trace_every
        self.random_state = random_state

    def warm_up(self):
        """Compile on two states."""
        counts = FlowCounts(edge_counts=np.ones((2, 2, 2)), noise="laplace", population_size=4)
        if self.start == "random":
            counts = FlowCounts(node_counts=np.ones((3, 2)), noise="laplace", population_size=2)
        type(self)(self.method, 1, self.options, self.start, learner=self.learner).fit(FlowInstances((counts,)))

    def law(self) -> HomogeneousPotentials:
        return HomogeneousPotentials(self.size_, self.n_steps_, self.m_steps, self._allowed())

    def _start(self, law, observation):
        if self.start == "random":
            return generator("mobility start", draw_seed(self.random_state)).normal(0, 0.1, law.n_parameters)
        return ignoring_noise(law, observation, self.baseline_iter)


class MobilityBaseline(MobilityEM):
    """Maximum likelihood with the noisy counts in the place of the true ones; negative sums count as nobody."""

    def __init__(self, baseline_iter: Whole = 200, random_state=None):
        super().__init__(n_iter=0, baseline_iter=baseline_iter, random_state=random_state, learner="em")

    def get_params(self, deep=True):
        return {"baseline_iter": self.baseline_iter, "random_state": self.random_state}

    def warm_up(self):
        """Compile on two states."""
        counts = FlowCounts(edge_counts=np.ones((2, 2, 2)), noise="laplace", population_size=4)
        type(self)(1).fit(FlowInstances((counts,)))


def ignoring_noise(law: HomogeneousPotentials, observation: FlowInstances, max_iter: int) -> np.ndarray:
    """θ fitted to noisy edge counts as if they were true.

    Counts that no population can have leave the likelihood without a maximum; they are first brought to the nearest sums that
    are not negative and in which who comes also leaves.
    """
    tables = [np.nan_to_num(c.repeats("edge")[0]) for c in observation.instances if c.repeats("edge").size]
    if len(tables) < len(observation.instances):
        raise DataError("start: the baseline needs edge counts in every instance; use start='random' for node counts")
    tables = np.sum(tables, axis=0)
    tables = np.where(law.allowed, tables, 0.0)
    first, _, pairs = consistent(tables[0].sum(axis=1), tables[-1].sum(axis=0), tables.sum(axis=0), law.allowed)
    return law.fit(np.zeros(law.n_parameters), np.concatenate([first, pairs[law.allowed]]), max_iter)


def consistent(first, last, pairs, allowed, rounds: int = 200):
    """Sums (L,), (L,), (L, L) near the given ones, not negative, with first + arrivals = last + departures in every state.

    Alternating projections (von Neumann). The pairs are those of all steps together; what is not `allowed` (L, L) is zero.
    """
    between = (allowed & ~np.eye(len(first), dtype=bool)).astype(float)  # who stays neither comes nor leaves
    both = between + between.T
    inverse = np.linalg.inv(2 * np.eye(len(first)) + np.diag(both.sum(axis=1)) - both)
    for _ in range(rounds):
        first, last, pairs = np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)
        last = last * (first.sum() / last.sum())
        shift = inverse @ (pairs.sum(axis=1) - pairs.sum(axis=0) - first + last)
        if np.abs(shift).sum() <= 1e-12 * pairs.sum():
            break
        first, last = first + shift, last - shift
        pairs = np.where(allowed, pairs - shift[:, None] + shift[None, :], 0.0)
    return np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)


class SharedTableEM(_Learner):
    """One free table of origins and destinations, shared by several periods whose noisy tables were published.

    Parameters
    ----------
    method, options, n_iter, trace_every, learner : as in the others. It starts from the sum of the noisy tables, negative
    sums as nobody. Cells that are false in the context's `allowed` (L, L) have no parameter.
    """

    def __init__(
        self,
        method: Method = "dual-newton",
        n_iter: Whole = 30,
        options: Options = None,
        trace_every: Count = 10,
        random_state=None,
        learner: Learner = "lbfgs",
    ):
        self.method = method
        self.learner = learner
        self.n_iter = n_iter
        self.options = options
        self.trace_every = trace_every
        self.random_state = random_state

    def warm_up(self):
        """Compile on two states."""
        counts = FlowCounts(edge_counts=np.ones((1, 2, 2)), noise="laplace", population_size=4)
        type(self)(self.method, 1, self.options, learner=self.learner).fit(FlowInstances((counts,)))

    def law(self) -> FreeTables:
        return FreeTables(self.size_, allowed=self._allowed())

    def _start(self, law, observation):
        total = sum(np.maximum(c.repeats("edge")[0].sum(axis=0), 0.0) for c in observation.instances)
        return law.logarithms(total)


class NoisyCounts(Estimator):
    """The published tables as they are: what a user has without any model."""

    observes = FlowInstances

    def __init__(self, clip: bool = False, random_state=None):
        self.clip = clip
        self.random_state = random_state

    def _fit(self, observation, selection=None):
        tables = [list(c.repeats("edge")[0]) for c in observation.instances]
        self.edge_tables_ = [[np.maximum(t, 0) if self.clip else t for t in instance] for instance in tables]


def population_size(counts: FlowCounts) -> float:
    """M: public, or the sum of the counts of one node or edge, averaged over those observed completely."""
    if counts.population_size is not None:
        return float(counts.population_size)
    totals = [
        t.sum() / (counts.rate if counts.noise == "poisson" else 1.0)
        for what in ("node", "edge")
        for repeat in counts.repeats(what)
        for t in repeat
        if not np.isnan(t).any()
    ]
    if not totals or np.mean(totals) <= 0:
        raise DataError("population_size: neither given, nor is there a complete table to estimate it from")
    return float(np.mean(totals))
