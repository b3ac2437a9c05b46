"""One interface to every inference method: `infer(model, counts, population_size, method=…)`."""

from collections.abc import Callable
from typing import Annotated, Any

from agglearn.collective import first_order
from agglearn.collective.exact import infer_exact
from agglearn.collective.gaussian import infer_gaussian
from agglearn.collective.generic_solvers import infer_cvxpy, infer_ipopt
from agglearn.collective.gibbs import infer_gibbs
from agglearn.collective.model import TreeModel
from agglearn.collective.newton import dual_newton
from agglearn.collective.problem import Counts, Point, Problem
from agglearn.collective.results import Inference, Recorder
from agglearn.errors import ConfigError
from agglearn.settings import OneOf, OptionsOf, check_choice, keys_at_fault, parameters

POINT_METHODS: dict[str, Callable[..., Point]] = {
    "dual-newton": dual_newton,
    "nlbp-feasible": first_order.nlbp_feasible,
    "bethe-rda": first_order.bethe_rda,
    "mirror-descent": first_order.mirror_descent,
    "accelerated-rda": first_order.accelerated_rda,
}
METHODS: dict[str, Callable] = {
    **POINT_METHODS,
    "nlbp-naive": first_order.nlbp_naive,
    "exact": infer_exact,
    "gibbs": infer_gibbs,
    "gaussian": infer_gaussian,
    "generic-cvxpy": infer_cvxpy,
    "generic-ipopt": infer_ipopt,
}
MAP_METHODS = {*POINT_METHODS, "nlbp-naive", "generic-cvxpy", "generic-ipopt"}  # they minimise eq. 2.7
GIVEN = ("problem", "start")  # arguments that are no options
Method = Annotated[str, OneOf(METHODS)]
Options = Annotated[dict | None, OptionsOf("method", METHODS, GIVEN)]


def infer(
    model: TreeModel,
    counts: Counts,
    population_size: float,
    method: str = "dual-newton",
    *,
    trace: bool = False,
    **options: Any,
) -> Inference:
    """Return tables n given observed counts y.

    Parameters
    ----------
    model, counts : TreeModel, FlowCounts or sequence of FlowCounts
        Model of one individual, and counts of the population.
    population_size : float
        Number of individuals, M.
    method : str
        Approximate MAP (eq. 2.7): `dual-newton` (this package's own, the default), `nlbp-feasible` (Algorithm 2),
        `nlbp-naive` (Algorithm 1), `bethe-rda` (Algorithm 3), `mirror-descent` (eq. A.2), `accelerated-rda` (eq. A.4),
        `generic-cvxpy`, `generic-ipopt`. Others: `gaussian` (GCGM), `gibbs` (posterior mean by sampling), `exact`
        (Theorem 1, for tiny problems).
    trace : bool
        Whether to record objective and violation of iterates.
    **options : Any
        Options of the method: tol, max_iter, damping, beta, …

    Raises
    ------
    DataError
        The model or the population size cannot give the counts. The message names the node and the edge.
    NotAvailable
        A package is missing, or the method takes no such model or counts.
    Stopped
        A generic solver reached its limit of time or of iterations, or makes no progress.
    """
    check_choice("method", method, METHODS)
    declared = {k: p for k, p in (parameters(METHODS[method]) or {}).items() if k not in GIVEN or k == "start"}
    for key, fault in keys_at_fault(f"method {method}", declared, options):
        raise ConfigError(f"{key}: {fault}" if key else fault)
    problem = Problem(model, counts, population_size)
    problem.recorder = Recorder(problem) if trace else None
    result = METHODS[method](problem, **options)
    if isinstance(result, Point):
        converged = problem.is_solved(result, options.get("tol", 1e-8))
        if not converged and problem.has_exact:
            problem.refuse_impossible()
        tables, details = problem.tables(result.beliefs), {"dual": result.dual}
        result = Inference(*tables, result.objective, [], result.duality_gap, converged, details)
    if trace:
        result.trace = problem.recorder.finish()
    return result
