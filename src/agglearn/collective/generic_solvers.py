"""The approximate MAP problem by generic convex solvers of the extra `generic`: Clarabel, IPOPT."""

import contextlib
import math
import os
import time
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from agglearn.collective.noise import Gaussian, Laplace, Poisson
from agglearn.collective.problem import HALF, Problem
from agglearn.collective.propagation import propagate
from agglearn.collective.results import Inference
from agglearn.errors import AgglearnError, NotAvailable, Stopped
from agglearn.optional import require
from agglearn.settings import Count, Positive

MIN_FRACTION = 1e-12  # of the population, below which a cell is left out: such cells break the solvers
IPOPT_FACTOR = 1e-2  # tolerance that IPOPT needs, relative to the requested relative gap
CLARABEL_FACTOR, CLARABEL_MIN = 1e-6, 1e-10  # the same for Clarabel, and the smallest tolerance that it reaches
UNIT = 1000.0  # sum of a node table inside Clarabel. With a sum of one it breaks on more problems
TINY = 1e-30  # added inside logarithms


class Layout:
    """Variables x, the possible cells of edge tables, and n, those of node tables, as fractions of M.

    edge_cells, score, parent : (k, 3) child, parent's state, child's state of each x, (k,) log φ, (k,) n of its parent.
    node_cells, root : (r,) cell (N, L) of each n, and the root's n. sums, to_nodes : A and B with A x = B n.
    """

    def __init__(self, problem: Problem) -> None:
        model, order = problem.model, problem.model.rooted.order
        size = model.size
        pairs, states = _support(problem)
        self.edge_cells = np.argwhere(pairs)
        child, i, j = self.edge_cells.T
        self.score = model.log_tables[model.table_index[child], i, j]
        self.node_cells = np.flatnonzero(states)
        self.node_variable = np.full(problem.n_cells, -1)
        self.node_variable[self.node_cells] = np.arange(len(self.node_cells))
        self.parent = self.node_variable[model.rooted.parent[child] * size + i]
        self.root = np.flatnonzero(self.node_cells // size == order[0])
        sums = np.concatenate([child * size + i, problem.n_cells + child * size + j])
        keys, rows = np.unique(sums, return_inverse=True)
        k = np.tile(np.arange(len(self.edge_cells)), 2)
        self.sums = sparse.csr_matrix((np.ones(len(k)), (rows, k)), (len(keys), len(self.edge_cells)))
        nodes = np.zeros(len(keys), np.int64)
        nodes[rows] = np.concatenate([self.parent, self.node_variable[child * size + j]])
        shape = len(keys), len(self.node_cells)
        self.to_nodes = sparse.csr_matrix((np.ones(len(keys)), (np.arange(len(keys)), nodes)), shape)

    def tables(self, problem: Problem, x: np.ndarray) -> list[np.ndarray]:
        padded = np.zeros((problem.model.n_nodes, problem.model.size, problem.model.size))
        padded[tuple(self.edge_cells.T)] = x
        return [t.copy() for t in problem.model.split_edges(padded)]

    def observation_matrix(self, problem: Problem, cells: np.ndarray) -> sparse.csr_matrix:
        """(cells, k + r) matrix that maps x and n to the observed cells. Rows of cells that are left out are zero."""
        size, k = problem.model.size, len(self.edge_cells)
        edge_variable = np.full((problem.model.n_nodes, size, size), -1)
        edge_variable[tuple(self.edge_cells.T)] = np.arange(k)
        node_variable = np.where(self.node_variable >= 0, self.node_variable + k, -1)
        column = np.concatenate([node_variable, edge_variable.reshape(-1)])[cells]
        rows = np.flatnonzero(column >= 0)
        return sparse.csr_matrix((np.ones(len(rows)), (rows, column[rows])), (len(cells), k + len(self.node_cells)))


def _support(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(N, L, L) pairs and (N, L) states that stay: those on a path along which no fraction is too small."""
    z, counts = problem.counts_at(problem.start), np.zeros(problem.size)
    for t in problem.terms:
        counts[t.indices] = np.maximum(t.y / t.noise.rate, HALF)
    tilted = problem.beliefs(np.log(np.maximum(z, np.finfo(float).tiny)) - np.log(counts))
    is_large = np.maximum(problem.start.pairs(), tilted.pairs()) > MIN_FRACTION
    ones = problem.model.with_potentials([np.zeros(t.shape) for t in problem.model.log_potentials])
    paths = propagate(ones, *(np.where(mask, 0.0, -np.inf) for mask in (problem.model.states, is_large)))
    return paths.pairs() > 0, paths.marginals > 0


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
        z = m * (layout.observation_matrix(problem, cells) @ cp.hstack([x, n]))
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
            options = dict.fromkeys(
                ("tol_gap_rel", "tol_gap_abs", "tol_feas"), max(CLARABEL_FACTOR * tol, CLARABEL_MIN)
            )
            options |= {"time_limit": seconds} if time_limit else {}
            program.solve(solver=cp.CLARABEL, canon_backend="SCIPY", **options)
    except cp.error.SolverError:
        raise AgglearnError("generic-cvxpy: Clarabel failed on this problem") from None
    if x.value is None or program.status not in ("optimal", "optimal_inaccurate"):
        if problem.has_exact:
            problem.refuse_impossible()
        if program.status != cp.USER_LIMIT:
            raise AgglearnError(f"generic-cvxpy: Clarabel ended with {program.status}")
        late = program.solver_stats.solve_time >= seconds
        raise _limit_error(time_limit if late else None, program.solver_stats.num_iters)
    return _result(problem, layout, x.value / UNIT, program.solver_stats.num_iters, tol)


def infer_ipopt(
    problem: Problem,
    tol: Positive = 1e-8,
    time_limit: Positive | None = None,
    max_iter: Count = 500,
) -> Inference:
    """Minimise F by IPOPT to a relative gap `tol`, within `time_limit` seconds for set-up and solve together."""
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
        z = m * (_to_casadi(ca, layout.observation_matrix(problem, cells)) @ v)
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
    n_sums = layout.sums.shape[0] + 1
    options = {"ipopt": ipopt, "print_time": False}
    if time_limit:
        options["iteration_callback"] = _make_alarm(ca, deadline, v.numel(), n_sums + n_exact)
    edges, nodes = problem.start.pairs()[tuple(layout.edge_cells.T)], problem.start.marginals.reshape(-1)
    start = np.concatenate([edges, nodes[layout.node_cells]])
    with _quiet():
        _seconds_left(deadline, time_limit)
        solver = ca.nlpsol("solver", "ipopt", {"x": v, "f": total / m, "g": ca.vertcat(*conditions)}, options)
        _seconds_left(deadline, time_limit)
        # exact counts give redundant equations, which IPOPT refuses. It takes them as intervals
        slack = np.concatenate([np.zeros(n_sums), np.full(n_exact, 1e-8)])
        solution = solver(x0=np.maximum(start, 1e-9), lbx=0.0, lbg=-slack, ubg=slack)
    stats = solver.stats()
    if not stats["success"]:
        if problem.has_exact:
            problem.refuse_impossible()
        late = stats["return_status"] == "User_Requested_Stop"
        if not late and not stats["return_status"].startswith("Maximum_"):
            raise AgglearnError(f"generic-ipopt: IPOPT ended with {stats['return_status']}")
        raise _limit_error(time_limit if late else None, stats["iter_count"])
    return _result(problem, layout, np.asarray(solution["x"]).ravel()[:k], stats["iter_count"], tol)


def _seconds_left(deadline: float, limit: float | None) -> float:
    """Seconds left for the next step of the set-up, else Stopped. A step that has started is finished."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise _limit_error(limit, 0)
    return seconds


def _make_alarm(ca: ModuleType, deadline: float, variables: int, conditions: int) -> Any:
    """CasADi callback by which IPOPT stops at the limit of time. IPOPT's own limit would start with the solve."""
    lengths = {"f": 1, "x": variables, "lam_x": variables, "g": conditions, "lam_g": conditions, "lam_p": 0}

    class Alarm(ca.Callback):  # type: ignore[misc,name-defined]  # the package is optional
        def __init__(self) -> None:
            super().__init__()
            self.construct("alarm", {})

        def get_n_in(self) -> int:
            return ca.nlpsol_n_out()

        def get_n_out(self) -> int:
            return 1

        def get_sparsity_in(self, i: int) -> Any:
            length = lengths[ca.nlpsol_out(i)]
            return ca.Sparsity.dense(length, 1) if length else ca.Sparsity(0, 0)

        def eval(self, iterate: Any) -> list[int]:
            return [int(time.monotonic() >= deadline)]

    return Alarm()


def _to_casadi(ca: ModuleType, matrix: sparse.csr_matrix) -> Any:
    columns = matrix.tocsc()  # CasADi takes lists ten times as fast as arrays
    sparsity = ca.Sparsity(*columns.shape, columns.indptr.tolist(), columns.indices.tolist())
    return ca.DM(sparsity, columns.data.tolist())


def _limit_error(seconds: float | None, iterations: int) -> Stopped:
    return Stopped(f"> {iterations} iterations" if seconds is None else f"> {seconds:g} s")


def _result(problem: Problem, layout: Layout, x: np.ndarray, iterations: int, tol: float) -> Inference:
    """Tables, with the duality gap at their gradient if the noise has one."""
    edges = layout.tables(problem, problem.M * np.maximum(x, 0))
    nodes = problem.model.node_tables_of(edges)
    objective, duality_gap = problem.objective_of(edges, nodes), np.nan
    if problem.smooth:
        duality_gap = objective + problem.point(problem.gradient(problem.collect_tables(edges, nodes))).dual_value
    converged = duality_gap <= tol * max(1.0, abs(objective)) if problem.smooth else np.isfinite(objective)
    return Inference(edges, nodes, objective, [], duality_gap, bool(converged), {"iterations": iterations})


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress IPOPT's banner and CasADi's warnings about steps that IPOPT takes back."""
    null, saved = os.open(os.devnull, os.O_WRONLY), [os.dup(1), os.dup(2)]
    for number in (1, 2):
        os.dup2(null, number)
    try:
        yield
    finally:
        for number, copy in enumerate(saved, 1):
            os.dup2(copy, number)
            os.close(copy)
        os.close(null)
