"""Estimators that learn the law of a population's individuals from noisy counts of several populations."""

from typing import Annotated, Literal

import numpy as np

from agglearn.collective.balance import balanced
from agglearn.collective.inference import Method, Options
from agglearn.collective.learning import LEARNERS, learn
from agglearn.collective.migration import migration_features
from agglearn.collective.model import ChainModel
from agglearn.collective.parametric_models import FreeTables, HomogeneousPotentials, LogLinearTransitions
from agglearn.collective.population import first_tables, population_size, require_context
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, NonNegative, OneOf, Whole

Learner = Annotated[str, OneOf(LEARNERS)]


class _Learner(Estimator):
    """A law learned from instances; subclasses have the law, and where θ begins.

    Attributes
    ----------
    theta_ : parameters. trace_ : (iteration, seconds, θ). edge_tables_ : per instance, of the last E step.
    evaluations_ : E steps that were made. contexts_, n_steps_, size_ : what the law is made of.
    """

    observes = FlowInstances

    def _fit(self, observation):
        self._check(observation)
        counts = observation.instances
        self.contexts_ = [dict(c.context) for c in counts]
        edges, nodes = counts[0].repeats("edge"), counts[0].repeats("node")
        self.n_steps_ = edges.shape[1] + 1 if edges.size else nodes.shape[1]
        self.size_ = edges.shape[-1] if edges.size else nodes.shape[-1]
        law = self.law()
        learned = learn(
            law, list(counts), [population_size(c) for c in counts], self._start(law, observation), learner=self.learner,
            n_iter=self.n_iter, method=self.method, trace_every=self.trace_every, **(self.options or {}),
        )  # fmt: skip
        self.theta_, self.trace_, self.evaluations_ = learned.theta, learned.trace, learned.evaluations
        self.edge_tables_ = [f.edge_tables for f in learned.inferences]

    def _check(self, observation) -> None:
        """Refuse instances that the law cannot be made of."""

    def _allowed(self):
        """(L, L) which steps are possible, the same for all instances. None where all are."""
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

    def _check(self, observation):
        for k, counts in enumerate(observation.instances):
            require_context(counts, ["shape", "wind", "log_initial"], f"instance {k}: ")

    def _start(self, law, observation):
        # the same start for every method of a seed: only what is observed decides
        return derive_generator("migration start", observation.digest).normal(0, self.start_scale, law.n_parameters)


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
            return derive_generator("mobility start", draw_seed(self.random_state)).normal(0, 0.1, law.n_parameters)
        return fit_ignoring_noise(law, observation, self.baseline_iter)


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


def fit_ignoring_noise(law: HomogeneousPotentials, observation: FlowInstances, max_iter: int) -> np.ndarray:
    """θ fitted to noisy edge counts as if they were true.

    Counts that no population can have leave the likelihood without a maximum; they are first brought to the nearest sums that
    are not negative and in which who comes also leaves.
    """
    tables = [np.nan_to_num(c.repeats("edge")[0]) for c in observation.instances if c.repeats("edge").size]
    if len(tables) < len(observation.instances):
        raise DataError("start: the baseline needs edge counts in every instance; use start='random' for node counts")
    tables = np.sum(tables, axis=0)
    tables = np.where(law.allowed, tables, 0.0)
    first, _, pairs = balanced(tables[0].sum(axis=1), tables[-1].sum(axis=0), tables.sum(axis=0), law.allowed)
    return law.fit(np.zeros(law.n_parameters), np.concatenate([first, pairs[law.allowed]]), max_iter)


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
        total = sum(np.maximum(t.sum(axis=0), 0.0) for t in first_tables(observation, type(self).__name__))
        return law.logarithms(total)
