"""Parameters of a model from noisy counts. The mode of the tables stands for their mean (Sun 2019, section 2.3.2)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from agglearn.collective.inference import MAP_METHODS, Inference, infer
from agglearn.collective.model import ChainModel
from agglearn.errors import DataError
from agglearn.linear.lbfgs import lbfgs
from agglearn.observations import FlowCounts
from agglearn.progress import track
from agglearn.settings import check_choice

MIN_STEP = 1e-3  # of a line search: below it the error of an E step dominates
FLAT = 1e-10  # relative decrease of J at which L-BFGS stops
STEEP = 1e-2  # relative decrease of J in an iteration of EM above which L-BFGS has not begun
InstanceTables = Sequence[Sequence[np.ndarray]]  # edge tables of each instance
ThetaIterate = tuple[int, float, np.ndarray]  # number, 0 at the start, seconds since then, and θ


class ParametricModel(Protocol):
    """Family of models with K parameters, see `agglearn.collective.parametric_models`."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters, K."""

    def model(self, theta: np.ndarray, instance: int) -> ChainModel:
        """Chain of one instance, for θ (K,)."""

    def maximise(self, theta: np.ndarray, tables: InstanceTables) -> np.ndarray:
        """M step: θ of a larger likelihood than θ (K,), for the edge tables of each instance."""

    def gradient(self, theta: np.ndarray, tables: InstanceTables) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of −Σ n log p and the diagonal of its Hessian, or a bound of it, both (K,)."""


@dataclass
class Learned:
    """Result of `learn`.

    Parameters
    ----------
    theta, inferences : ndarray of shape (K,), list of Inference
        Parameters of the model, and result of the last E step for each instance.
    trace, evaluations : list of tuple, int
        (iteration, seconds, θ) from the start on, thinned by `trace_every`, and number of E steps.
    """

    theta: np.ndarray
    inferences: list[Inference]
    trace: list[ThetaIterate] = field(default_factory=list)
    evaluations: int = 0


@dataclass
class _Steps:
    """E steps over all instances, warm-started by the last λ if the method takes a start."""

    parametric_model: ParametricModel
    counts: Sequence[FlowCounts]
    population_sizes: Sequence[float]
    method: str
    options: dict

    def __post_init__(self) -> None:
        self.duals: list[np.ndarray | None] = [None] * len(self.counts)
        self.evaluations, self.started = 0, time.perf_counter()
        self.trace: list[ThetaIterate] = []

    def infer(self, theta: np.ndarray) -> tuple[list[Inference], float]:
        inferences, total = [], 0.0
        for k, (y, m) in enumerate(zip(self.counts, self.population_sizes, strict=True)):
            warm: dict[str, Any] = {"start": self.duals[k]} if self.method == "dual-newton" else {}
            model = self.parametric_model.model(theta, k)
            inferences.append(infer(model, y, m, method=self.method, **warm, **self.options))
            self.duals[k] = inferences[-1].details.get("dual")
            total += inferences[-1].objective + m * model.log_partition
        self.evaluations += 1
        return inferences, total

    def record(self, iteration: int, theta: np.ndarray) -> None:
        self.trace.append((iteration, time.perf_counter() - self.started, theta.copy()))


def learn(
    parametric_model: ParametricModel,
    counts: Sequence[FlowCounts],
    population_sizes: Sequence[float],
    start: np.ndarray,
    *,
    learner: str = "lbfgs",
    n_iter: int = 60,
    method: str = "dual-newton",
    trace_every: int = 1,
    **options: Any,
) -> Learned:
    """Learn the parameters of a model from noisy counts of one or several populations.

    An E step gives J(θ) = min_z F(z, θ) + M log Z(θ), near −log p(y | θ), and by the envelope theorem its gradient.

    Parameters
    ----------
    parametric_model : ParametricModel
        Anything with `model(theta, instance)`, and `maximise(theta, tables)` for `em`, `gradient(theta, tables)` else.
    counts, population_sizes : sequence of FlowCounts, sequence of float
        Noisy counts and M of each instance.
    start : ndarray of shape (K,)
        Initial θ.
    learner : {'lbfgs', 'em'}
        EM (section 2.3.2), or L-BFGS on J, until J falls by less than 1e-10 of itself. L-BFGS begins where an iteration of
        EM lowers J by less than 1e-2 of itself: from far away its long steps lead to poorer optima.
    n_iter : int
        Number of iterations of EM, maximal number of L-BFGS and of EM before it.
    method : str
        Method of the E step, see `infer`. L-BFGS needs one that minimises F, else DataError.
    trace_every : int
        One iterate in so many is recorded.
    **options : Any
        Options of the method.
    """
    check_choice("learner", learner, LEARNERS)
    if not counts or len(counts) != len(population_sizes):
        raise DataError(f"{len(counts)} instances and {len(population_sizes)} population sizes; give one for each")
    steps = _Steps(parametric_model, counts, population_sizes, method, options)
    return LEARNERS[learner](steps, np.asarray(start, float), n_iter, trace_every)


def _em(steps: _Steps, theta: np.ndarray, n_iter: int, trace_every: int) -> Learned:
    inferences: list[Inference] = []
    for iteration in track(range(n_iter), "EM"):
        if iteration % trace_every == 0:
            steps.record(iteration, theta)
        inferences, _ = steps.infer(theta)
        theta = steps.parametric_model.maximise(theta, [i.edge_tables for i in inferences])
    steps.record(n_iter, theta)
    return Learned(theta, inferences, steps.trace, steps.evaluations)


def _lbfgs(steps: _Steps, theta: np.ndarray, n_iter: int, trace_every: int) -> Learned:
    if steps.method not in MAP_METHODS:
        raise DataError(
            f"method {steps.method!r} does not minimise eq. 2.7: L-BFGS has no gradient; learn by EM, or use another"
        )
    steps.record(0, theta)
    if n_iter == 0:
        return Learned(theta, [], steps.trace)

    def evaluate(x: np.ndarray) -> tuple[list[Inference], float, np.ndarray, np.ndarray]:
        inferences, value = steps.infer(x)
        return inferences, value, *steps.parametric_model.gradient(x, [i.edge_tables for i in inferences])

    current, n_steps, decrease = evaluate(theta), 0, np.inf
    while n_steps < n_iter and decrease > STEEP * abs(current[1]):
        new = steps.parametric_model.maximise(theta, [i.edge_tables for i in current[0]])
        evaluated = evaluate(new)
        decrease = current[1] - evaluated[1]
        if decrease > 0:
            theta, current, n_steps = new, evaluated, n_steps + 1
            if n_steps % trace_every == 0:
                steps.record(n_steps, theta)
    accepted, first_value, first_gradient, scale = current
    latest = accepted

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal latest
        if x is theta:
            return first_value, first_gradient
        try:
            latest, value, gradient, _ = evaluate(x)
        except DataError:  # the step is too long: a counted cell has probability zero, so J is infinite
            return np.inf, np.zeros_like(x)
        return value, gradient

    def on_step(x: np.ndarray) -> None:
        nonlocal accepted, n_steps
        accepted, n_steps = latest, n_steps + 1
        if n_steps % trace_every == 0:
            steps.record(n_steps, x)

    gtol = FLAT * sum(steps.population_sizes)
    best = lbfgs(objective, theta, scale, n_iter - n_steps, gtol=gtol, ftol=FLAT, shortest=MIN_STEP, on_step=on_step)
    if n_steps % trace_every:
        steps.record(n_steps, best)
    return Learned(best, accepted, steps.trace, steps.evaluations)


LEARNERS = {"lbfgs": _lbfgs, "em": _em}
