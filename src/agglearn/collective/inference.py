"""One interface to every inference method: `infer(model, counts, population_size, method=…)`."""

from typing import Annotated

from agglearn.collective import first_order
from agglearn.collective.exact import infer_exact
from agglearn.collective.gaussian import infer_gaussian
from agglearn.collective.generic_solvers import infer_cvxpy, infer_ipopt
from agglearn.collective.gibbs import infer_gibbs
from agglearn.collective.model import TreeModel
from agglearn.collective.newton import dual_newton
from agglearn.collective.nlbp_naive import infer_naive
from agglearn.collective.problem import Problem
from agglearn.collective.results import Inference, Recorder
from agglearn.errors import ConfigError, DataError
from agglearn.settings import OneOf, OptionsOf, keys_at_fault, parameters

POINT_METHODS = {
    "dual-newton": dual_newton,
    "nlbp-feasible": first_order.nlbp_feasible,
    "bethe-rda": first_order.bethe_rda,
    "mirror-descent": first_order.mirror_descent,
    "accelerated-rda": first_order.accelerated_rda,
}
OTHER_METHODS = {
    "nlbp-naive": infer_naive,
    "exact": infer_exact,
    "gibbs": infer_gibbs,
    "gaussian": infer_gaussian,
    "generic-cvxpy": infer_cvxpy,
    "generic-ipopt": infer_ipopt,
}
MAP_METHODS = {*POINT_METHODS, "nlbp-naive", "generic-cvxpy", "generic-ipopt"}  # they minimise eq. 2.7
METHODS = {**POINT_METHODS, **OTHER_METHODS}
GIVEN = ("problem", "model", "counts", "population_size", "trace", "record", "start")  # arguments that are no options
Method = Annotated[str, OneOf(METHODS)]
Options = Annotated[dict | None, OptionsOf("method", METHODS, GIVEN)]


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
    options : of the method: tol, max_iter, damping, beta, step, schedule, …; see the functions named after the methods.

    Raises
    ------
    DataError : counts that the model or the population size cannot give, with the node and the edge.
    NotAvailable : a package is missing. Stopped : a generic solver reached its limit of time or of iterations.
    """
    if method not in METHODS:
        raise DataError(f"method: {method!r} is not known; use one of {', '.join(METHODS)}")
    check_options(method, options)
    if method in POINT_METHODS:
        problem = Problem(model, counts, population_size)
        return _minimise(problem, POINT_METHODS[method], trace, **options)
    return OTHER_METHODS[method](model, counts, population_size, trace=trace, **options)


def check_options(method: str, options: dict) -> None:
    """Check the options of a method.

    Raises
    ------
    ConfigError : the method takes no such option, or not this value.
    """
    declared = {k: p for k, p in parameters(METHODS[method]).items() if k not in GIVEN or k == "start"}
    for place, what in keys_at_fault(f"method {method}", declared, options):
        raise ConfigError(f"{place}: {what}" if place else what)


def _minimise(problem: Problem, method, trace: bool, **options) -> Inference:
    record = Recorder(problem) if trace else None
    tol = options.get("tol", 1e-8)
    point = method(problem, record=record, **options)
    converged = problem.reached(point, tol)
    if not converged and problem.exact.any():
        problem.refuse_impossible()
    edges, nodes = problem.tables(point.beliefs)
    rows = record.finish() if record else []
    return Inference(edges, nodes, point.objective, rows, point.gap, converged, {"dual": point.dual})
