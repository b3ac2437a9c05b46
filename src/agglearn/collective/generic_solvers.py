"""The approximate MAP problem by generic convex solvers of the extra `generic`: Clarabel, IPOPT."""

import math
import time
import warnings
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from agglearn.collective.feasibility import indicator_matrix
from agglearn.collective.model import on_paths
from agglearn.collective.noise import Gaussian, Laplace, Poisson
from agglearn.collective.problem import HALF, Problem
from agglearn.collective.results import Inference, inference_of
from agglearn.errors import NotAvailable, Stopped
from agglearn.optional import require
from agglearn.settings import Count, Positive

MIN_FRACTION = 1e-12  # of the population, below which a cell is left out: such cells break the solvers
IPOPT_FACTOR = 1e-2  # tolerance that IPOPT needs, relative to the requested relative gap
CLARABEL_FACTOR, CLARABEL_MIN = 1e-6, 1e-10  # the same for Clarabel, and the smallest tolerance that it reaches
UNIT = 1000.0  # sum of a node table inside Clarabel. With a sum of one it breaks on more problems
TINY = 1e-30  # added inside logarithms
OUT_OF_TIME = "Maximum_WallTime_Exceeded"  # IPOPT's status


class Layout:
    """Variables x, the possible cells of edge tables, then n, those of node tables, as fractions of M.

    edge_cells, score, parent : (k, 3) child, parent's state, child's state of each x, (k,) log φ, (k,) n of its parent.
    node_cells, root : (r,) cell (N, L) of each n, and the root's n. sums, to_nodes : A and B with A x = B n.
    variable : x or n of each cell (N, L), then (N, L, L), −1 where it is left out.
    """

    def __init__(self, problem: Problem) -> None:
        model, size, n_cells = problem.model, problem.model.size, problem.n_cells
        states, pairs = _support(problem)
        self.edge_cells, self.node_cells = np.argwhere(pairs), np.flatnonzero(states)
        child, i, j = self.edge_cells.T
        k, r = len(self.edge_cells), len(self.node_cells)
        self.score = model.log_tables[model.table_index[child], i, j]
        self.variable = np.full(n_cells * (1 + size), -1)
        self.variable[n_cells + np.flatnonzero(pairs)] = np.arange(k)
        self.variable[self.node_cells] = k + np.arange(r)
        self.parent = self.variable[model.rooted.parent[child] * size + i] - k
        self.root = np.flatnonzero(self.node_cells // size == model.rooted.order[0])
        keys, rows = np.unique(np.concatenate([child * size + i, n_cells + child * size + j]), return_inverse=True)
        self.sums = indicator_matrix(rows, np.tile(np.arange(k), 2), (len(keys), k))
        nodes = np.zeros(len(keys), np.int64)
        nodes[rows] = np.concatenate([self.parent, self.variable[child * size + j] - k])
        self.to_nodes = indicator_matrix(np.arange(len(keys)), nodes, (len(keys), r))

    def observation_matrix(self, cells: np.ndarray) -> sparse.csr_matrix:
        """(cells, k + r) matrix that maps x and n to the observed cells. Rows of cells that are left out are zero."""
        column = self.variable[cells]
        rows = np.flatnonzero(column >= 0)
        return indicator_matrix(rows, column[rows], (len(cells), len(self.edge_cells) + len(self.node_cells)))


def _support(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(N, L) states and (N, L, L) pairs that stay: those on a path along which no fraction is too small."""
    z, counts = problem.counts_at(problem.start), np.zeros(problem.size)
    for t in problem.terms:
        counts[t.indices] = np.maximum(t.y / t.noise.rate, HALF)
    tilted = problem.beliefs(np.log(np.maximum(z, np.finfo(float).tiny)) - np.log(counts))
    is_large = np.maximum(problem.start.pairs, tilted.pairs) > MIN_FRACTION
    return on_paths(problem.model, problem.model.states, is_large)


def infer_cvxpy(problem: Problem, tol: Positive = 1e-8, time_limit: Positive | None = None) -> Inference:
    """Minimise F by Clarabel, an interior point method on exponential cones, to a relative gap `tol` (eq. 2.7).

    Its own tolerance is tol / 10⁶, which its results need, at least 1e-10. Large problems end at a gap of 1e-5.
    `time_limit` is in seconds and holds for set-up and solve together.
    """
    cp = require("cvxpy", "generic")
    deadline = time.monotonic() + (time_limit or math.inf)
    layout, m = Layout(problem), problem.M / UNIT
    x, n = cp.Variable(len(layout.edge_cells), nonneg=True), cp.Variable(len(layout.node_cells), nonneg=True)
    total = m * (cp.sum(cp.rel_entr(x, n[layout.parent])) - cp.sum(cp.entr(n[layout.root])) - layout.score @ x)
    conditions = [layout.sums @ x == layout.to_nodes @ n, cp.sum(n[layout.root]) == UNIT]
    for noise, cells, y in problem.list_observed():
        z = m * (layout.observation_matrix(cells) @ cp.hstack([x, n]))
        if isinstance(noise, Poisson):
            total += noise.rate * cp.sum(z)
            if (y > 0).any():
                total -= y[y > 0] @ cp.log(z[y > 0])
        elif isinstance(noise, Gaussian):
            total += cp.sum_squares(z - y) / (2 * noise.scale**2)
        elif isinstance(noise, Laplace):
            total += cp.norm1(z - y) / noise.scale
        else:
            conditions.append(z == y)
    program = cp.Problem(cp.Minimize(total / problem.M), conditions)
    try:
        with warnings.catch_warnings(action="ignore"):  # the status below covers them
            program.get_problem_data(cp.CLARABEL, canon_backend="SCIPY")  # cached for `solve`
            seconds = _seconds_left(deadline, time_limit)
            close = max(CLARABEL_FACTOR * tol, CLARABEL_MIN)
            options = dict.fromkeys(("tol_gap_rel", "tol_gap_abs", "tol_feas"), close)
            options |= {"time_limit": seconds} if time_limit else {}
            program.solve(solver=cp.CLARABEL, canon_backend="SCIPY", **options)
    except cp.error.SolverError:  # it makes no progress
        _fail(problem, "Clarabel failed")
    if x.value is None or program.status not in ("optimal", "optimal_inaccurate"):
        late = program.solver_stats.solve_time >= seconds
        limit = f"> {time_limit:g} s" if late else f"> {program.solver_stats.num_iters} iterations"
        _fail(problem, limit if program.status == cp.USER_LIMIT else f"Clarabel: {program.status}")
    return _result(problem, layout, x.value / UNIT, program.solver_stats.num_iters, tol)


def infer_ipopt(
    problem: Problem,
    tol: Positive = 1e-8,
    time_limit: Positive | None = None,
    max_iter: Count = 500,
) -> Inference:
    """Minimise F by IPOPT to a relative gap `tol`.

    Set-up and solve together end within `time_limit` seconds, besides the time that CasADi takes for derivatives.
    """
    ca = require("casadi", "generic")
    deadline = time.monotonic() + (time_limit or math.inf)
    layout, m = Layout(problem), problem.M
    k = len(layout.edge_cells)
    v = ca.MX.sym("v", k + len(layout.node_cells))
    x, n = v[:k], v[k:]
    parents, root = n[layout.parent.tolist()], n[layout.root.tolist()]
    total = ca.dot(x, ca.log(x + TINY) - ca.log(parents + TINY) - ca.DM(layout.score))
    total = m * (total + ca.dot(root, ca.log(root + TINY)))
    conditions, n_exact = [_to_casadi(ca, layout.sums) @ x - _to_casadi(ca, layout.to_nodes) @ n, ca.sum1(root) - 1], 0
    for noise, cells, y in problem.list_observed():
        z = m * (_to_casadi(ca, layout.observation_matrix(cells)) @ v)
        if isinstance(noise, Poisson):
            total += noise.rate * ca.sum1(z) - ca.dot(ca.DM(y), ca.log(z + TINY))
        elif isinstance(noise, Gaussian):
            total += ca.sumsqr(z - ca.DM(y)) / (2 * noise.scale**2)
        elif isinstance(noise, Laplace):
            raise NotAvailable("generic-ipopt: Laplace noise has no derivative; use generic-cvxpy or dual-newton")
        else:
            conditions.append(z - ca.DM(y))
            n_exact += len(y)
    ipopt = {"print_level": 0, "sb": "yes", "tol": IPOPT_FACTOR * tol, "max_iter": max_iter}
    seconds = _seconds_left(deadline, time_limit)
    ipopt |= {"max_wall_time": seconds} if time_limit else {}
    options = {"ipopt": ipopt, "print_time": False, "show_eval_warnings": False}  # IPOPT takes back steps out of bounds
    solver = ca.nlpsol("solver", "ipopt", {"x": v, "f": total / m, "g": ca.vertcat(*conditions)}, options)
    _seconds_left(deadline, time_limit)
    edges, nodes = problem.start.pairs[tuple(layout.edge_cells.T)], problem.start.marginals.reshape(-1)
    start = np.concatenate([edges, nodes[layout.node_cells]])
    # exact counts give redundant equations, which IPOPT refuses. It takes them as intervals
    slack = np.concatenate([np.zeros(layout.sums.shape[0] + 1), np.full(n_exact, 1e-8)])
    solution, stats = solver(x0=np.maximum(start, 1e-9), lbx=0.0, lbg=-slack, ubg=slack), solver.stats()
    if not stats["success"]:
        status = stats["return_status"]
        limit = f"> {time_limit:g} s" if status == OUT_OF_TIME else f"> {stats['iter_count']} iterations"
        _fail(problem, limit if status.startswith("Maximum_") else f"IPOPT: {status}")
    return _result(problem, layout, np.asarray(solution["x"]).ravel()[:k], stats["iter_count"], tol)


def _seconds_left(deadline: float, limit: float | None) -> float:
    """Seconds left for the next step of the set-up, else Stopped. A step that has started is finished."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise Stopped(f"> {limit:g} s")
    return seconds


def _fail(problem: Problem, reason: str) -> NoReturn:
    """Stopped for this reason, a limit or the solver's status, unless the counts are impossible."""
    if problem.has_exact:
        problem.refuse_impossible()
    raise Stopped(reason)


def _to_casadi(ca: ModuleType, matrix: sparse.csr_matrix) -> Any:
    columns = matrix.tocsc()  # CasADi takes lists ten times as fast as arrays
    sparsity = ca.Sparsity(*columns.shape, columns.indptr.tolist(), columns.indices.tolist())
    return ca.DM(sparsity, columns.data.tolist())


def _result(problem: Problem, layout: Layout, x: np.ndarray, iterations: int, tol: float) -> Inference:
    """Tables, with the duality gap at their gradient if the noise has one."""
    padded = np.zeros((*problem.base.shape, problem.model.size))
    padded[tuple(layout.edge_cells.T)] = problem.M * np.maximum(x, 0)
    edges = [t.copy() for t in problem.model.split_edges(padded)]
    result = inference_of(problem, edges, details={"iterations": iterations})
    if problem.smooth:
        z = problem.flatten(result.edge_tables, result.node_tables)[problem.cells]
        result.gap = result.objective + problem.point(problem.gradient(z)).dual_value
    close = result.gap <= tol * max(1.0, abs(result.objective)) if problem.smooth else np.isfinite(result.objective)
    result.converged = bool(close)
    return result
