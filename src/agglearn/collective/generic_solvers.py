"""The approximate MAP problem given to generic convex solvers: what the thesis did with MATLAB's interior point.

−H_B is written as Σ z_ij log(z_ij / n_parent) + Σ n_root log n_root, which is convex term by term. Clarabel (through CVXPY)
takes a relative-entropy cone per cell, IPOPT (through CasADi) the expression with exact derivatives. The extra `generic`
installs both packages.
"""

import contextlib
import os
import time
import warnings

import numpy as np
from scipy import sparse

from agglearn.collective.problem import HALF, Problem
from agglearn.collective.propagation import propagate
from agglearn.collective.results import Inference
from agglearn.errors import AgglearnError, NotAvailable, Stopped
from agglearn.optional import require
from agglearn.settings import Count, Positive

NOBODY = 1e-12  # share of the population below which a cell is left out: such cells break the solvers
IPOPT_SHARE = 1e-2  # of the relative gap that is asked for: the tolerance that IPOPT needs for it
CLARABEL_SHARE, CLARABEL_LEAST = 1e-6, 1e-10  # the same for Clarabel, and the smallest that it reaches
UNIT = 1000.0  # entries that a node table adds up to inside Clarabel; with shares of one it breaks on more problems


class Layout:
    """Variables x, the cells of all edge tables that somebody may be in, and n, those of all node tables, as shares of M.

    Left out are cells with a share below 1e-12 both under the potentials and under potentials tilted to the counts.

    at : (k, 3) child, parent's state, child's state of each x. score : (k,) log φ. of : (k,) the n of each x's parent.
    node : (r,) place of each n among the (N, L) cells. root : which n are the root's. sums : A with A x = B n. B : that.
    """

    def __init__(self, problem: Problem):
        model, order = problem.model, problem.model.rooted.order
        size = model.size
        pairs, states = _support(problem)
        self.at = np.argwhere(pairs)
        child, i, j = self.at.T
        self.score = model.log_tables[model.which[child], i, j]
        self.node = np.flatnonzero(states)
        self.place = np.full(problem.n_cells, -1)
        self.place[self.node] = np.arange(len(self.node))
        parent = model.rooted.parent[child]
        self.of, below = self.place[parent * size + i], self.place[child * size + j]
        self.root = np.flatnonzero(self.node // size == order[0])
        keys, rows = np.unique(
            np.concatenate([child * size + i, problem.n_cells + child * size + j]), return_inverse=True
        )
        k = np.tile(np.arange(len(self.at)), 2)
        self.sums = sparse.csr_matrix((np.ones(len(k)), (rows, k)), (len(keys), len(self.at)))
        which = np.zeros(len(keys), np.int64)
        which[rows] = np.concatenate([self.of, below])
        self.to_nodes = sparse.csr_matrix(
            (np.ones(len(keys)), (np.arange(len(keys)), which)), (len(keys), len(self.node))
        )

    def tables(self, problem: Problem, x: np.ndarray) -> list[np.ndarray]:
        padded = np.zeros((problem.model.n_nodes, problem.model.size, problem.model.size))
        padded[tuple(self.at.T)] = x
        return [t.copy() for t in problem.model.split_edges(padded)]

    def observed(self, problem: Problem, cells: np.ndarray) -> sparse.csr_matrix:
        """(cells, k + r) rows that give the observed cells out of x and n; zero rows where nobody can be."""
        size = problem.model.size
        flat = np.full(problem.model.n_nodes * size**2, -1)
        flat[np.ravel_multi_index(self.at.T, (problem.model.n_nodes, size, size))] = np.arange(len(self.at))
        nodes = cells < problem.n_cells
        column = np.empty(len(cells), np.int64)
        place = self.place[cells[nodes]]
        column[nodes] = np.where(place >= 0, place + len(self.at), -1)
        column[~nodes] = flat[cells[~nodes] - problem.n_cells]
        hit = np.flatnonzero(column >= 0)
        return sparse.csr_matrix((np.ones(len(hit)), (hit, column[hit])), (len(cells), len(self.at) + len(self.node)))


def _support(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(N, L, L) pairs and (N, L) states that are kept: those on a path along which no share is too small."""
    z, counts = problem.counts_at(problem.start), np.zeros(problem.size)
    for t in problem.terms:
        counts[t.at] = np.maximum(t.y / getattr(t.noise, "rate", 1.0), HALF)
    tilted = problem.beliefs(np.log(np.maximum(z, np.finfo(float).tiny)) - np.log(counts))
    shares = np.maximum(problem.start.pairs(), tilted.pairs())
    ones = problem.model.with_potentials([np.zeros(t.shape) for t in problem.model.log_potentials])
    possible = (np.where(kept, 0.0, -np.inf) for kept in (problem.model.states, shares > NOBODY))
    paths = propagate(ones, *possible)
    return paths.pairs() > 0, paths.marginals > 0


def infer_cvxpy(
    model, counts, population_size, *, trace=False, tol: Positive = 1e-8, time_limit: Positive | None = None
):
    """Clarabel, an interior point method on exponential cones, through CVXPY.

    tol : relative gap of eq. 2.7, as for the other methods. Clarabel's own tolerance is a millionth of it, which its
        results need, and 1e-10 at least, which it can still reach: large problems end at a gap of about 1e-5.
    time_limit : seconds for set-up and solve together, see `Clock`.

    Raises
    ------
    Stopped : the limit of time was reached, or the solver's limit of iterations.
    AgglearnError : the solver ended without a solution.
    """
    cp = require("cvxpy", "generic")
    clock = Clock(time_limit)
    problem = Problem(model, counts, population_size)
    at, m = Layout(problem), problem.M / UNIT
    x, n = cp.Variable(len(at.at), nonneg=True), cp.Variable(len(at.node), nonneg=True)
    total = m * (cp.sum(cp.rel_entr(x, n[at.of])) - cp.sum(cp.entr(n[at.root])) - at.score @ x)
    conditions = [at.sums @ x == at.to_nodes @ n, cp.sum(n[at.root]) == UNIT]
    for noise, cells, y in problem.observed():
        z, name = m * (at.observed(problem, cells) @ cp.hstack([x, n])), type(noise).__name__
        if name == "Poisson":
            total += noise.rate * cp.sum(z)
            if (y > 0).any():
                total -= y[y > 0] @ cp.log(z[y > 0])
        elif name == "Gaussian":
            total += cp.sum_squares(z - y) / (2 * noise.scale**2)
        elif name == "Laplace":
            total += cp.norm1(z - y) / noise.scale
        else:
            conditions.append(z == y)
    asked = cp.Problem(cp.Minimize(total / problem.M), conditions)
    try:
        with warnings.catch_warnings(action="ignore"):  # the status below says what they say
            asked.get_problem_data(cp.CLARABEL, canon_backend="SCIPY")  # which `solve` finds in the problem's cache
            limit = {} if time_limit is None else {"time_limit": clock.left()}
            own = max(CLARABEL_SHARE * tol, CLARABEL_LEAST)
            asked.solve(
                solver=cp.CLARABEL, tol_gap_rel=own, tol_gap_abs=own, tol_feas=own, canon_backend="SCIPY", **limit
            )
    except cp.error.SolverError:
        raise AgglearnError("generic-cvxpy: Clarabel failed on this problem") from None
    if x.value is None or asked.status not in ("optimal", "optimal_inaccurate"):
        if problem.exact.any():
            problem.refuse_impossible()
        if asked.status != cp.USER_LIMIT:
            raise AgglearnError(f"generic-cvxpy: Clarabel ended with {asked.status}")
        late = time_limit is not None and asked.solver_stats.solve_time >= limit["time_limit"]
        raise _stopped(time_limit if late else None, asked.solver_stats.num_iters)
    return _result(problem, at, x.value / UNIT, asked.solver_stats.num_iters, tol)


def infer_ipopt(
    model,
    counts,
    population_size,
    *,
    trace=False,
    tol: Positive = 1e-8,
    time_limit: Positive | None = None,
    max_iter: Count = 500,
):
    """IPOPT, a primal-dual interior point method, with exact derivatives from CasADi.

    tol : relative gap of eq. 2.7, as for the other methods; IPOPT's own tolerance is a hundredth of it, which its results need.
    time_limit : seconds for set-up and solve together, see `Clock`. max_iter : iterations after which the solver stops.

    Raises
    ------
    Stopped : the limit of time or of iterations was reached.
    AgglearnError : the solver ended without a solution.
    """
    ca = require("casadi", "generic")
    clock = Clock(time_limit)
    problem = Problem(model, counts, population_size)
    at, m, tiny = Layout(problem), problem.M, 1e-30
    v = ca.MX.sym("v", len(at.at) + len(at.node))
    x, n = v[: len(at.at)], v[len(at.at) :]
    parents, root = n[at.of.tolist()], n[at.root.tolist()]
    total = ca.dot(x, ca.log(x + tiny) - ca.log(parents + tiny) - ca.DM(at.score)) + ca.dot(root, ca.log(root + tiny))
    total = m * total
    conditions, exact = [_casadi(ca, at.sums) @ x - _casadi(ca, at.to_nodes) @ n, ca.sum1(root) - 1], 0
    for noise, cells, y in problem.observed():
        z, name = m * (_casadi(ca, at.observed(problem, cells)) @ v), type(noise).__name__
        if name == "Poisson":
            total += noise.rate * ca.sum1(z) - ca.dot(ca.DM(y), ca.log(z + tiny))
        elif name == "Gaussian":
            total += ca.sumsqr(z - ca.DM(y)) / (2 * noise.scale**2)
        elif name == "Exact":
            conditions.append(z - ca.DM(y))
            exact += len(y)
        else:
            raise NotAvailable("generic-ipopt: Laplace noise has no derivative; use generic-cvxpy or dual-newton")
    own = {"print_level": 0, "sb": "yes", "tol": IPOPT_SHARE * tol, "max_iter": max_iter}
    alarm = _alarm(ca, clock, v.numel(), at.sums.shape[0] + 1 + exact)
    options = {"ipopt": own, "print_time": False} | ({} if time_limit is None else {"iteration_callback": alarm})
    start = np.concatenate([problem.start.pairs()[tuple(at.at.T)], problem.start.marginals.reshape(-1)[at.node]])
    with _quiet():
        clock.left()
        solver = ca.nlpsol("solver", "ipopt", {"x": v, "f": total / m, "g": ca.vertcat(*conditions)}, options)
        clock.left()
        # exact counts leave redundant equations, which IPOPT refuses: as intervals it takes them
        room = np.concatenate([np.zeros(at.sums.shape[0] + 1), np.full(exact, 1e-8)])
        found = solver(x0=np.maximum(start, 1e-9), lbx=0.0, lbg=-room, ubg=room)
    said = solver.stats()
    if not said["success"]:
        if problem.exact.any():
            problem.refuse_impossible()
        late = said["return_status"] == "User_Requested_Stop"
        if not late and not said["return_status"].startswith("Maximum_"):
            raise AgglearnError(f"generic-ipopt: IPOPT ended with {said['return_status']}")
        raise _stopped(time_limit if late else None, said["iter_count"])
    return _result(problem, at, np.asarray(found["x"]).ravel()[: len(at.at)], said["iter_count"], tol)


class Clock:
    """A limit of time for set-up and solve together, or None.

    It is looked at after each step of the set-up and in each iteration: what began before the limit goes on to its end.
    """

    def __init__(self, limit: float | None):
        self.limit, self.begin = limit, time.monotonic()

    def left(self) -> float | None:
        """Seconds left, None without a limit. Raises Stopped where there are none."""
        if self.limit is None:
            return None
        if self.is_over():
            raise _stopped(self.limit, 0)
        return self.begin + self.limit - time.monotonic()

    def is_over(self) -> bool:
        return self.limit is not None and time.monotonic() - self.begin >= self.limit


def _alarm(ca, clock: Clock, variables: int, conditions: int):
    """What IPOPT asks in each iteration whether to stop. Its own limit of time begins with the solve."""
    lengths = {"f": 1, "x": variables, "lam_x": variables, "g": conditions, "lam_g": conditions, "lam_p": 0}

    class Alarm(ca.Callback):
        def __init__(self):
            super().__init__()
            self.construct("alarm", {})

        def get_n_in(self):
            return ca.nlpsol_n_out()

        def get_n_out(self):
            return 1

        def get_sparsity_in(self, i):
            length = lengths[ca.nlpsol_out(i)]
            return ca.Sparsity.dense(length, 1) if length else ca.Sparsity(0, 0)

        def eval(self, iterate):
            return [int(clock.is_over())]

    return Alarm()


def _casadi(ca, matrix: sparse.csr_matrix):
    columns = matrix.tocsc()  # CasADi takes lists ten times as fast as arrays
    places = ca.Sparsity(*columns.shape, columns.indptr.tolist(), columns.indices.tolist())
    return ca.DM(places, columns.data.tolist())


def _stopped(seconds: float | None, iterations: int) -> Stopped:
    return Stopped(f"> {iterations} iterations" if seconds is None else f"> {seconds:g} s")


def _result(problem: Problem, at: Layout, x: np.ndarray, iterations: int, tol: float) -> Inference:
    """Tables, with the gap that the gradient at them proves where the noise has one."""
    edges = at.tables(problem, problem.M * np.maximum(x, 0))
    nodes = problem.model.node_tables_of(edges)
    objective, gap = problem.objective_of(edges, nodes), np.nan
    if problem.smooth:
        gap = objective + problem.at(problem.gradient(problem.collect_tables(edges, nodes))).dual_value
    small = gap <= tol * max(1.0, abs(objective)) if problem.smooth else np.isfinite(objective)
    return Inference(edges, nodes, objective, [], gap, bool(small), {"iterations": iterations})


@contextlib.contextmanager
def _quiet():
    """IPOPT's banner and CasADi's warnings about steps that IPOPT takes back go nowhere."""
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
