"""Generic convex solvers: their agreement with dual Newton, their limits and their failures."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from collective_worlds import NOISES, fixed_tree, sampled

from agglearn.collective import ChainModel, generic_solvers, infer
from agglearn.collective.problem import Problem
from agglearn.datasets import BirdMigration
from agglearn.errors import NotAvailable, Stopped
from agglearn.observations import FlowCounts


@pytest.mark.parametrize(("method", "package"), [("generic-cvxpy", "cvxpy"), ("generic-ipopt", "casadi")])
def test_a_missing_generic_solver_is_one_line_that_names_the_extra(method, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    tree = fixed_tree("star", np.random.default_rng(0))
    with pytest.raises(NotAvailable, match=rf"{package} is not installed.*agglearn\[generic\]"):
        infer(tree, FlowCounts(node_counts=np.ones((4, 2)) * 2), 4, method=method)


@pytest.mark.parametrize("method", ["generic-cvxpy", "generic-ipopt"])
@pytest.mark.parametrize("noise", ["poisson", "gaussian", "laplace", "exact"])
@pytest.mark.parametrize("on", ["node", "edge"])
def test_dual_newton_finds_the_optimum_of_independent_solvers(method, noise, on):
    if method == "generic-ipopt" and noise == "laplace":
        pytest.skip("has no derivative")
    model, counts, m = sampled("mixed", 12, 30, noise, on, missing=0.1, **NOISES.get(noise, {}))
    found = infer(model, counts, m, method=method)
    assert found.objective == pytest.approx(infer(model, counts, m).objective, abs=1e-4)


@pytest.mark.parametrize(("method", "tol"), [("generic-cvxpy", 1e-4), ("generic-ipopt", 1e-6)])
def test_a_generic_solver_is_as_good_as_asked_without_the_cells_that_nobody_is_in(method, tol):
    """Birds on a grid with large parameters: cells' shares go from 1 down to 1e-30."""
    drawn = BirdMigration(4, 12, 1000, (5, 10, 10, 10)).draw(0)
    model, rng = ChainModel(list(drawn.log_potentials[0])), np.random.default_rng(0)
    nodes = model.node_tables_of(drawn.edge_tables[0])
    counts = FlowCounts(node_counts=rng.poisson(nodes).astype(float))
    problem, best = Problem(model, counts, 1000), infer(model, counts, 1000, tol=1e-10)
    found = infer(model, counts, 1000, method=method, tol=tol)
    assert found.objective - best.objective <= tol * abs(best.objective)
    assert found.gap >= found.objective - best.objective - 1e-6
    assert found.converged == (found.gap <= tol * abs(found.objective))
    kept = generic_solvers.Layout(problem).edge_cells
    assert len(kept) < 0.6 * (problem.start.pairs > 0).sum()
    left_out = model.pad_edges(best.edge_tables)
    left_out[tuple(kept.T)] = 0
    assert left_out.sum() < 1e-6


@pytest.mark.parametrize("method", ["generic-cvxpy", "generic-ipopt"])
def test_the_limit_of_time_is_that_of_set_up_and_solve_together(method, monkeypatch):
    def never(*args, **options):
        raise AssertionError("the set-up took all the time")

    looks = itertools.count(step=10)  # ten seconds pass between two looks at the clock
    monkeypatch.setattr(generic_solvers, "time", SimpleNamespace(monotonic=lambda: next(looks)))
    monkeypatch.setattr("cvxpy.Problem.solve", never)
    monkeypatch.setattr("casadi.nlpsol", never)
    model, counts, m = sampled("mixed", 12, 30)
    with pytest.raises(Stopped, match=r"^> 5 s$"):
        infer(model, counts, m, method=method, time_limit=5)


def test_ipopt_stops_when_the_time_is_over(monkeypatch):
    monkeypatch.setattr(generic_solvers, "time", SimpleNamespace(monotonic=lambda: 0.0))
    model, counts, m = sampled("mixed", 12, 30)
    with pytest.raises(Stopped, match=r"^> 1e-09 s$"):
        infer(model, counts, m, method="generic-ipopt", time_limit=1e-9)
    assert infer(model, counts, m, method="generic-ipopt", time_limit=5, tol=1e-6).converged


def test_ipopt_prints_nothing(capfd):
    model, counts, m = sampled("mixed", 12, 30)
    infer(model, counts, m, method="generic-ipopt")
    assert capfd.readouterr() == ("", "")


def test_ipopt_stops_at_its_limit_of_iterations():
    model, counts, m = sampled("mixed", 12, 30)
    with pytest.raises(Stopped, match=r"^> 2 iterations$"):
        infer(model, counts, m, method="generic-ipopt", max_iter=2)


def test_a_generic_solver_that_breaks_is_a_result(monkeypatch):
    import cvxpy as cp

    def breaks(self, **options):
        raise cp.error.SolverError("no progress")

    monkeypatch.setattr(cp.Problem, "solve", breaks)
    tree = fixed_tree("star", np.random.default_rng(0))
    with pytest.raises(Stopped, match=r"^Clarabel failed$"):
        infer(tree, FlowCounts(node_counts=np.ones((4, 2)) * 2), 4, method="generic-cvxpy")
