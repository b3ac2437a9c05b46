"""Parameters of a law from noisy counts; the mode of the tables stands for their mean (Sun 2019, section 2.3.2).

With J(θ) = min over z of F(z; θ) + M log Z(θ), an approximation of −log p(y; θ), an E step gives the minimum and, by the
envelope theorem, the gradient: that of −Σ z log p(θ) at the tables z that it found. EM minimises J by E and M steps in
turn, which is slow where counts tell little; L-BFGS takes the gradient itself.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from agglearn.collective.inference import MAP_METHODS, Inference, infer
from agglearn.errors import ConfigError, DataError
from agglearn.linear.lbfgs import lbfgs

SMALLEST_STEP = 1e-3  # of a line search: below it the error of an E step decides
FLAT = 1e-10  # relative fall of J at which L-BFGS stops


@dataclass
class Learned:
    """Result of `learn`.

    Attributes
    ----------
    theta : parameters of the law. inferences : tables of each instance, from the last E step.
    trace : (iteration, seconds, θ) from the start on, thinned by `trace_every`. evaluations : E steps that were made.
    """

    theta: np.ndarray
    inferences: list[Inference]
    trace: list[tuple[int, float, np.ndarray]] = field(default_factory=list)
    evaluations: int = 0


class _Steps:
    """E steps over all instances, each from the last one's λ where the method takes a start; the clock of a trace."""

    def __init__(self, law, counts, population_sizes, method, options, on_iteration):
        if not counts or len(counts) != len(population_sizes):
            raise DataError(f"{len(counts)} instances and {len(population_sizes)} population sizes; give one for each")
        self.law, self.counts, self.sizes, self.method, self.options = law, counts, population_sizes, method, options
        self.duals, self.on_iteration, self.made = [None] * len(counts), on_iteration, 0
        self.begin, self.out, self.trace = time.perf_counter(), 0.0, []

    def infer(self, theta) -> tuple[list[Inference], float]:
        """Tables of each instance, and J."""
        found, total = [], 0.0
        for k, (y, m) in enumerate(zip(self.counts, self.sizes, strict=True)):
            warm = {"start": self.duals[k]} if self.method == "dual-newton" else {}
            model = self.law.model(theta, k)
            found.append(infer(model, y, m, method=self.method, **warm, **self.options))
            self.duals[k] = found[-1].details.get("dual")
            total += found[-1].objective + m * model.log_partition
        self.made += 1
        return found, total

    def keep(self, iteration: int, theta) -> None:
        """An entry of the trace."""
        self.trace.append((iteration, time.perf_counter() - self.begin - self.out, theta.copy()))

    def report(self, iteration: int, theta, found) -> None:
        """Call `on_iteration`, off the clock."""
        since = time.perf_counter()
        if self.on_iteration:
            self.on_iteration(iteration, theta, found)
        self.out += time.perf_counter() - since


def learn(
    law,
    counts,
    population_sizes,
    start,
    *,
    learner="lbfgs",
    n_iter=60,
    method="dual-newton",
    trace_every=1,
    on_iteration=None,
    **options,
) -> Learned:
    """Parameters of a law from noisy counts of one or several populations.

    Parameters
    ----------
    law : one of `agglearn.collective.parametric_models`, or anything with `model(theta, instance)` and, for `em`,
        `maximise(theta, tables)`, for `lbfgs`, `gradient(theta, tables)`.
    counts : FlowCounts per instance. population_sizes : M per instance. start : θ to begin with.
    learner : `lbfgs`, on J, which stops after `n_iter` steps or where J falls by less than 1e-10 of itself; or `em`, which
        makes `n_iter` iterations.
    method, options : of the E step, see `infer`. on_iteration : called with (iteration, θ, inferences).

    Raises
    ------
    ConfigError : no such learner. DataError : no instances, or as many sizes as instances are not given; for `lbfgs`, a method whose tables do not minimise
        F, so that J has no gradient.
    """
    if learner not in LEARNERS:
        raise ConfigError(f"learner: {learner!r} is not known; use one of {', '.join(LEARNERS)}")
    steps = _Steps(law, counts, population_sizes, method, options, on_iteration)
    return LEARNERS[learner](steps, np.asarray(start, float), n_iter, trace_every)


def _em(steps: _Steps, theta, n_iter: int, trace_every: int) -> Learned:
    found = []
    for iteration in range(n_iter + 1):
        if iteration % trace_every == 0 or iteration == n_iter:
            steps.keep(iteration, theta)
        if iteration == n_iter:
            break
        found, _ = steps.infer(theta)
        steps.report(iteration, theta, found)
        theta = steps.law.maximise(theta, [f.edge_tables for f in found])
    return Learned(theta, found, steps.trace, steps.made)


def _lbfgs(steps: _Steps, theta, n_iter: int, trace_every: int) -> Learned:
    if steps.method not in MAP_METHODS:
        raise DataError(
            f"method {steps.method!r} does not minimise eq. 2.7: L-BFGS has no gradient; learn by EM, or use another"
        )
    taken = 0
    steps.keep(0, theta)
    if n_iter == 0:
        return Learned(theta, [], steps.trace)

    def evaluate(at):
        inferences, value = steps.infer(at)
        return inferences, value, *steps.law.gradient(at, [f.edge_tables for f in inferences])

    found, first, slope, scale = evaluate(theta)
    latest = found
    steps.report(0, theta, found)

    def objective(at):
        nonlocal latest
        if at is theta:
            return first, slope
        try:
            latest, value, gradient, _ = evaluate(at)
        except DataError:  # too long a step: a cell that was counted has no probability left, so J is infinite
            return np.inf, None
        return value, gradient

    def take(at):
        nonlocal found, taken
        found, taken = latest, taken + 1
        if taken % trace_every == 0:
            steps.keep(taken, at)
        steps.report(taken, at, found)

    gtol = FLAT * sum(steps.sizes)
    best = lbfgs(objective, theta, scale, n_iter, gtol=gtol, ftol=FLAT, shortest=SMALLEST_STEP, on_step=take)
    if taken % trace_every:
        steps.keep(taken, best)
    return Learned(best, found, steps.trace, steps.made)


LEARNERS = {"lbfgs": _lbfgs, "em": _em}
