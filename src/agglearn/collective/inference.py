"""One interface to every inference method: `infer(model, counts, population_size, method=…)`."""

import contextlib
import importlib
import time
from dataclasses import dataclass, field

import numpy as np

from agglearn.collective import first_order
from agglearn.collective.model import TreeModel
from agglearn.collective.newton import dual_newton
from agglearn.collective.problem import Point, Problem
from agglearn.errors import DataError


@dataclass
class Inference:
    """Tables of a population, given what was observed.

    Attributes
    ----------
    edge_tables : one (L_i, L_j) array per edge. node_tables : one (L_i,) array per node.
    objective : F of eq. 2.7 at the tables; NaN for methods that do not minimise it.
    trace : (iteration, seconds, objective, violation) per iteration where asked for. The clock stands still while the
        objective and the violation of eq. 2.5 are computed.
    gap : bound on F − F* where the method has one, else NaN.
    converged : whether the tolerance was reached.
    details : what else the method tells.
    """

    edge_tables: list[np.ndarray]
    node_tables: list[np.ndarray]
    objective: float
    trace: list[tuple[int, float, float, float]] = field(default_factory=list)
    gap: float = np.nan
    converged: bool = True
    details: dict = field(default_factory=dict)


class Recorder:
    """Collects the trace of a method; its own time does not count."""

    def __init__(self, problem: Problem):
        self.problem, self.rows, self.begin, self.out = problem, [], time.perf_counter(), 0.0

    @contextlib.contextmanager
    def paused(self):
        since = time.perf_counter()
        yield
        self.out += time.perf_counter() - since

    def __call__(self, at) -> None:
        """at : a Point, or edge tables as they are."""
        seconds = time.perf_counter() - self.begin - self.out
        with self.paused():
            if isinstance(at, Point):
                tables, _ = self.problem.tables(at.beliefs)
                objective = at.objective
            else:
                tables, objective = at, self.problem.objective_of(at)
            violation = self.problem.model.violation(tables, self.problem.M)
            self.rows.append((len(self.rows), seconds, objective, violation))


POINT_METHODS = {
    "dual-newton": dual_newton,
    "nlbp-feasible": first_order.nlbp_feasible,
    "bethe-rda": first_order.bethe_rda,
    "mirror-descent": first_order.mirror_descent,
    "accelerated-rda": first_order.accelerated_rda,
}
OTHER_METHODS = {
    "nlbp-naive": ("naive", "infer_naive"),
    "exact": ("exact", "infer_exact"),
    "gibbs": ("gibbs", "infer_gibbs"),
    "gaussian": ("gaussian", "infer_gaussian"),
    "generic-cvxpy": ("generic", "infer_cvxpy"),
    "generic-ipopt": ("generic", "infer_ipopt"),
}
METHODS = (*POINT_METHODS, *OTHER_METHODS)


def infer(
    model: TreeModel, counts, population_size: float, method: str = "dual-newton", *, trace: bool = False, **options
) -> Inference:
    """Tables n given observed counts y.

    Parameters
    ----------
    model : law of one individual. counts : FlowCounts, or several of the same population. population_size : M.
    method : approximate MAP (eq. 2.7): `dual-newton` (this package's own, the default), `nlbp-feasible`, `nlbp-naive`,
        `bethe-rda`, `mirror-descent`, `accelerated-rda`, `generic-cvxpy`, `generic-ipopt`; `gaussian` (GCGM); `gibbs`
        (posterior mean by sampling); `exact` (tiny problems).
    trace : keep objective and violation after every iteration.
    options : of the method: tol, max_iter, damping, beta, step, …; see the functions named after the methods.

    Raises
    ------
    DataError : counts that the model or the population size cannot give. NotAvailable : a package is missing.
    """
    if method not in METHODS:
        raise DataError(f"method: {method!r} is not known; use one of {', '.join(METHODS)}")
    if method in POINT_METHODS:
        problem = Problem(model, counts, population_size)
        return _minimise(problem, POINT_METHODS[method], trace, **options)
    return _load(method)(model, counts, population_size, trace=trace, **options)


def _load(method: str):
    """The function of a method whose module is imported only when it is used."""
    module, name = OTHER_METHODS[method]
    return getattr(importlib.import_module(f"agglearn.collective.{module}"), name)


def _minimise(problem: Problem, method, trace: bool, **options) -> Inference:
    record = Recorder(problem) if trace else None
    tol = options.get("tol", 1e-8)
    point = method(problem, record=record, **options)
    edges, nodes = problem.tables(point.beliefs)
    return Inference(
        edges, nodes, point.objective, record.rows if record else [], point.gap,
        bool(point.gap <= tol * max(1.0, abs(point.objective))), {"dual": point.dual},
    )  # fmt: skip
