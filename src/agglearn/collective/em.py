"""Estimators that learn the model of a population's individuals from noisy counts of several populations."""

from typing import Annotated, Generic, Literal, TypeVar

import numpy as np
from sklearn.base import clone

from agglearn.collective.inference import Method, Options
from agglearn.collective.learning import LEARNERS, ParametricModel, learn
from agglearn.collective.migration import migration_features
from agglearn.collective.model import ChainModel
from agglearn.collective.parametric_models import FreeTables, HomogeneousPotentials, LogLinearTransitions
from agglearn.collective.population import first_tables, population_size, require_context
from agglearn.collective.propagation import compile_special_cases
from agglearn.errors import DataError
from agglearn.estimator import Estimator
from agglearn.observations import FlowCounts, FlowInstances
from agglearn.seeds import RandomState, derive_generator, draw_seed
from agglearn.settings import Count, OneOf, Whole

Learner = Annotated[str, OneOf(LEARNERS)]
Family = TypeVar("Family", bound=ParametricModel)


class _Learner(Estimator, Generic[Family]):
    """Learns θ `theta_`, with `trace_` of (iteration, seconds, θ), `edge_tables_` of the last E step, number of E steps
    `evaluations_`, and `contexts_`, `n_steps_` and `size_`, which the model depends on."""

    observes = FlowInstances
    method: Method = "dual-newton"
    n_iter: Whole = 60
    options: Options = None
    trace_every: Count = 10
    learner: Learner = "lbfgs"

    def warm_up(self) -> None:
        learner = clone(self)
        learner.n_iter = min(self.n_iter, 1)
        learner.fit(FlowInstances((self._small_counts(),)))
        compile_special_cases()

    def _small_counts(self) -> FlowCounts:
        return FlowCounts(edge_counts=np.ones((1, 2, 2)), noise="laplace", population_size=4)

    def _fit(self, observation: FlowInstances) -> None:
        counts = observation.instances
        self.contexts_ = [dict(c.context) for c in counts]
        edges, nodes = counts[0].repeats("edge"), counts[0].repeats("node")
        self.n_steps_ = edges.shape[1] + 1 if edges.size else nodes.shape[1]
        self.size_ = edges.shape[-1] if edges.size else nodes.shape[-1]
        family = self.parametric_model()
        learned = learn(
            family, counts, [population_size(c) for c in counts], self._start(family, observation), learner=self.learner,
            n_iter=self.n_iter, method=self.method, trace_every=self.trace_every, **(self.options or {}),
        )  # fmt: skip
        self.theta_, self.trace_, self.evaluations_ = learned.theta, learned.trace, learned.evaluations
        self.edge_tables_ = [i.edge_tables for i in learned.inferences]

    def parametric_model(self) -> Family:
        """Parametric model of the instances."""
        raise NotImplementedError

    def _start(self, family: Family, observation: FlowInstances) -> np.ndarray:
        raise NotImplementedError

    def _find_allowed_steps(self) -> np.ndarray | None:
        """(L, L) which steps are possible, the same for all instances. None if all are."""
        first, *following = [c.get("allowed") for c in self.contexts_]
        if not all(np.array_equal(np.asarray(mask), np.asarray(first)) for mask in following):
            raise DataError("allowed: the instances have different masks in their context; give all the same")
        return first

    def models(self, theta: np.ndarray | None = None) -> list[ChainModel]:
        """Chain of each instance, by default with the learned parameters (K,)."""
        family, theta = self.parametric_model(), self.theta_ if theta is None else theta
        return [family.model(theta, k) for k in range(len(self.contexts_))]


class MigrationEM(_Learner[LogLinearTransitions]):
    """Four parameters of bird migration from node counts of several years (Sun 2019, section 2.6.1.5).

    Contexts have `shape` (rows, columns), `wind` (T−1, 2), `log_initial` (L,) and, to forbid steps, `allowed` (L, L).

    Parameters
    ----------
    method, n_iter, options : str, int, dict
        Inference method of the E step, see `infer`, maximal number of iterations, and options of the method.
    trace_every : int
        One iterate in so many is recorded in `trace_`.
    learner : {'lbfgs', 'em'}
        A few iterations of EM and then L-BFGS on the marginal objective, or the thesis's EM, which the methods gaussian, gibbs
        and exact need.
    random_state : int, RandomState, Generator or None
        Seed of sampling methods.
    """

    trace_every: Count = 1

    def _small_counts(self) -> FlowCounts:
        context = {"shape": np.array([2, 2]), "wind": np.ones((2, 2)), "log_initial": np.zeros(4)}
        return FlowCounts(node_counts=np.ones((3, 4)), population_size=4, context=context)

    def parametric_model(self) -> LogLinearTransitions:
        features = [migration_features(int(c["shape"][0]), int(c["shape"][1]), c["wind"]) for c in self.contexts_]
        return LogLinearTransitions(features, self.contexts_[0]["log_initial"], self._find_allowed_steps())

    def _fit(self, observation: FlowInstances) -> None:
        for k, counts in enumerate(observation.instances):
            require_context(counts, ["shape", "wind", "log_initial"], f"instance {k}: ")
        super()._fit(observation)

    def _start(self, family: LogLinearTransitions, observation: FlowInstances) -> np.ndarray:
        # the start depends on the observation only, so it is the same for every method of a seed
        generator = derive_generator("migration start", observation.digest)
        return generator.normal(0, 1, family.n_parameters)


class MobilityEM(_Learner[HomogeneousPotentials]):
    """Free, time-homogeneous potentials of human mobility from noisy counts (Sun 2019, section 2.6.2).

    Contexts of a network that is not complete have `allowed` (L, L), which state follows which.

    Parameters
    ----------
    method, n_iter, options, trace_every, learner : see `MigrationEM`
    start : {'baseline', 'random'}
        Maximum likelihood of edge counts that ignores the noise, or random numbers from `random_state`.
    baseline_iter : int
        L-BFGS iterations of the baseline.
    random_state : see `MigrationEM`
    """

    n_iter: Whole = 250
    start: Literal["baseline", "random"] = "baseline"
    baseline_iter: Whole = 200

    def _small_counts(self) -> FlowCounts:
        if self.start == "random":
            return FlowCounts(node_counts=np.ones((3, 2)), noise="laplace", population_size=2)
        return super()._small_counts()

    def parametric_model(self) -> HomogeneousPotentials:
        return HomogeneousPotentials(self.size_, self.n_steps_, allowed=self._find_allowed_steps())

    def _start(self, family: HomogeneousPotentials, observation: FlowInstances) -> np.ndarray:
        if self.start == "random":
            generator = derive_generator("mobility start", draw_seed(self.random_state))
            return generator.normal(0, 0.1, family.n_parameters)
        return fit_ignoring_noise(family, observation, self.baseline_iter)


class MobilityBaseline(MobilityEM):
    """Maximum likelihood of the noisy counts as if they were true, with negative sums set to zero.

    Parameters
    ----------
    baseline_iter, random_state : int, int or None
        Number of L-BFGS iterations. The seed is unused: the result is deterministic.
    """

    def __init__(self, baseline_iter: Whole = 200, random_state: RandomState = None) -> None:
        super().__init__(n_iter=0, baseline_iter=baseline_iter, random_state=random_state, learner="em")


def fit_ignoring_noise(family: HomogeneousPotentials, observation: FlowInstances, max_iter: int) -> np.ndarray:
    """θ fitted to noisy edge counts as if they were true, after `balance_flows`: others may have no maximum."""
    counts = np.nan_to_num(first_tables(observation, "the baseline", "; use start='random' for node counts"))
    allowed = family.allowed
    tables = np.where(allowed, np.sum(counts, axis=0), 0.0)
    first, _, pairs = balance_flows(tables[0].sum(axis=1), tables[-1].sum(axis=0), tables.sum(axis=0), allowed)
    return family.fit(np.zeros(family.n_parameters), np.concatenate([first, pairs[allowed]]), max_iter)


def balance_flows(
    first: np.ndarray, last: np.ndarray, pairs: np.ndarray, allowed: np.ndarray, rounds: int = 200
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums (L,), (L,), (L, L) ≥ 0 near the given ones and consistent, by alternating projections (von Neumann)."""
    # an individual that stays is neither arrival nor departure
    moves = (allowed & ~np.eye(len(first), dtype=bool)).astype(float)
    neighbours = moves + moves.T
    inverse = np.linalg.inv(2 * np.eye(len(first)) + np.diag(neighbours.sum(axis=1)) - neighbours)
    for _ in range(rounds):
        first, last, pairs = np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)
        last = last * (first.sum() / last.sum())
        shift = inverse @ (pairs.sum(axis=1) - pairs.sum(axis=0) - first + last)
        if np.abs(shift).sum() <= 1e-12 * pairs.sum():
            break
        first, last = first + shift, last - shift
        pairs = np.where(allowed, pairs - shift[:, None] + shift[None, :], 0.0)
    return np.maximum(first, 0), np.maximum(last, 0), np.maximum(pairs, 0)


class SharedTableEM(_Learner[FreeTables]):
    """One free table of origins and destinations, shared by several periods whose noisy tables were published.

    It starts at the sum of the noisy tables, without negatives. Cells outside the context's `allowed` (L, L) stay zero.

    Parameters
    ----------
    method, n_iter, options, trace_every, learner, random_state : see `MigrationEM`
        The seed is unused: that of sampling methods is in `options`.
    """

    n_iter: Whole = 30

    def parametric_model(self) -> FreeTables:
        return FreeTables(self.size_, allowed=self._find_allowed_steps())

    def _start(self, family: FreeTables, observation: FlowInstances) -> np.ndarray:
        total = sum(np.maximum(t.sum(axis=0), 0.0) for t in first_tables(observation, type(self).__name__))
        return family.log_fractions(np.asarray(total))
