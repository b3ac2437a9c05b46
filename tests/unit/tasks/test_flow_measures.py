"""Measures of flows that are inferred and of models that are learned, by hand."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from measured_by_hand import about, mean, measured
from scipy import optimize

from agglearn import tasks
from agglearn.collective import ChainModel
from agglearn.observations import FlowCounts
from agglearn.tasks import flows

THERE, BACK = (about(**{"from": a, "to": b}) for a, b in (([0.0, 1.0], [2.0, 0.5]), ([2.0, 0.5], [0.0, 1.0])))
LOG_PHI = np.log(np.array([[[0.4, 0.1], [0.2, 0.3]]]))
TRUE = np.array([[[3.0, 1.0], [2.0, 4.0]]])  # one step between two states, ten persons
SEEN = np.array([[5.0, 4.0], [6.0, 6.0]])
FOUND = [np.array([[3.5, 1.5], [-0.5, 5.5]])]
PLACES = np.array([[0.0, 1.0], [2.0, 0.5]])


def truth_of_flows(true=TRUE, counts=SEEN, m=10, **more) -> flows.TrueFlows:
    seen = FlowCounts(node_counts=counts, noise="gaussian", scale=2.0, population_size=m)
    return flows.TrueFlows(np.array([true]), np.array([LOG_PHI]), more.get("theta"), PLACES, seen)


def free_energy(z, m=10) -> float:
    """F of eq. 2.7 for one edge: Σ z log z − Σ z log φ − log p(y | z), for z (2, 2) that add up to m."""
    z = np.asarray(z, float).reshape(2, 2)
    value = sum(v * math.log(v) for v in z.ravel() if v > 0) - float((z * LOG_PHI[0]).sum())
    gaps = np.concatenate([z.sum(axis=1) - SEEN[0], z.sum(axis=0) - SEEN[1]])
    return value + sum(0.5 * (g / 2.0) ** 2 + math.log(2.0 * math.sqrt(2 * math.pi)) for g in gaps)


def lowest() -> float:
    at = optimize.minimize(
        lambda free: free_energy([*free, 10 - sum(free)]), [2.5, 2.5, 2.5], method="SLSQP",
        bounds=[(1e-6, 10)] * 3, constraints={"type": "ineq", "fun": lambda free: 10 - sum(free) - 1e-6},
        options={"ftol": 1e-15},
    )  # fmt: skip
    return float(at.fun)


BEST = lowest()
TRACE = [  # (iteration, seconds, objective, violation): good at 1, bad again at 2, good from 3 on
    (0, 0.1, BEST * 1.5, 2.0), (1, 0.2, BEST, 0.0), (2, 0.4, BEST, 1.0), (3, 0.7, BEST, 1e-7), (4, 0.9, BEST, 0.0),
]  # fmt: skip


def of_inference() -> dict:
    stub = SimpleNamespace(edge_tables_=FOUND, objective_=BEST, trace_=TRACE, value_=0.3)
    few = [m for m in tasks.FlowInference.MEASURES if m not in ("map_error", "mean_error")]  # below, of fewer persons
    return measured(tasks.FlowInference, stub, truth_of_flows(), few)


def of_inference_by_hand() -> dict:
    """Half a person is below zero, so the result itself has no objective and no gap."""
    found = {
        ("tuned_value", None, None): 0.3, ("negative", None, None): 0.5 / 10,
        ("edge_error", None, None): (0.5 + 0.5 + 2.5 + 1.5) / 10, ("node_error", None, None): (1 + 1 + 2 + 2) / 20,
        ("violation", None, None): 0.5 / 10, ("converged", None, None): 1.0, ("time_to_convergence", None, None): 0.7,
        ("flow", THERE, None): 1.5, ("true_flow", BACK, None): 2.0, ("true_flow", THERE, None): 1.0,
    }  # fmt: skip
    for step, seconds, objective, off in TRACE:
        found["relative_gap", None, step] = max(abs(objective - BEST) / abs(BEST), 1e-12)
        found["violation", None, step] = max(off / 10, 1e-14)
        found["seconds", None, step] = seconds
    return found


def test_relative_gap_of_the_result():
    stub = SimpleNamespace(edge_tables_=[TRUE[0]], objective_=1.0, trace_=[])
    found = measured(tasks.FlowInference, stub, truth_of_flows(), ["relative_gap"])
    assert found["relative_gap", None, None] == pytest.approx((free_energy(TRUE[0]) - BEST) / abs(BEST), rel=1e-6)
    assert found["relative_gap", None, None] > 1e-3
    stub.objective_ = np.nan  # of a method that minimises something else
    assert ("relative_gap", None, None) not in measured(tasks.FlowInference, stub, truth_of_flows(), ["relative_gap"])


def test_what_never_stays_good_has_no_time_of_convergence():
    stub = SimpleNamespace(edge_tables_=FOUND, objective_=BEST, trace_=TRACE[:3])
    found = measured(tasks.FlowInference, stub, truth_of_flows(), ["time_to_convergence"])
    assert found["converged", None, None] == 0
    assert ("time_to_convergence", None, None) not in found


def test_exact_tables_of_two_persons():
    """MAP and mean of the integer tables, by adding up all pairs of persons."""
    counts, law = np.array([[1.0, 0.5], [0.5, 2.0]]), {}
    for persons in itertools.product(itertools.product((0, 1), repeat=2), repeat=2):
        table = np.zeros((2, 2))
        for path in persons:
            table[path] += 1
        likely = np.exp(-0.5 * np.sum((np.stack([table.sum(1), table.sum(0)]) - counts) ** 2) / 4)
        law.setdefault(tuple(table.ravel()), 0.0)
        law[tuple(table.ravel())] += float(np.exp((table * LOG_PHI[0]).sum())) * likely
    best, total = max(law, key=law.get), sum(law.values())
    exact = {"map_error": np.array(best), "mean_error": sum(p / total * np.array(t) for t, p in law.items())}
    truth = truth_of_flows(np.array([[[1.0, 0], [0, 1]]]), counts, 2)
    found = np.array([[0.5, 0.5], [0.25, 0.75]])
    measures = measured(tasks.FlowInference, SimpleNamespace(edge_tables_=[found]), truth, list(exact))
    for name, table in exact.items():
        assert measures[name, None, None] == pytest.approx(np.abs(found.ravel() - table).sum() / 2, rel=1e-9)


GIBBS = {
    "map_seconds": 0.5, "map_error": 0.25, "gibbs_seconds": 2.0, "gibbs_error": 0.125, "gibbs_reached": 1.0,
    "gibbs_moves": 300.0, "reference_error": 0.01,
}  # fmt: skip


def of_gibbs() -> dict:
    names = {name if name != "gibbs_reached" else "reached": value for name, value in GIBBS.items()}
    stub = SimpleNamespace(**{f"{name}_": value for name, value in names.items()})
    return measured(tasks.FlowInference, stub, None)


def of_gibbs_by_hand() -> dict:
    return {(name, None, None): value for name, value in GIBBS.items()}


LEARNED = ChainModel(np.log(np.array([[[0.25, 0.25], [0.25, 0.25]]])))


def learned() -> dict:
    stub = SimpleNamespace(
        theta_=np.array([1.0, -2.0]), trace_=[(0, 0.0, np.array([0.0, 0.0])), (5, 0.25, np.array([1.0, -3.0]))],
        models=lambda: [LEARNED], edge_tables_=[[np.array([[1900.0, 1.5], [2.0, 4.0]])]],
        spread_=[[np.array([[60.0, 0.25], [0.0, 0.5]])]],
    )  # fmt: skip
    true = np.array([[[2000.0, 1.0], [2.0, 4.0]]])
    return measured(tasks.FlowLearning, stub, truth_of_flows(true, theta=np.array([1.0, -1.0])))


def learned_by_hand() -> dict:
    found = {
        ("theta_error", None, None): 1 / 2,
        ("theta_error", None, 0): 2 / 2, ("theta_error", None, 5): 2 / 2,
        ("seconds", None, 0): 0.0, ("seconds", None, 5): 0.25,
        ("pairwise_mae", None, None): mean([0.15, 0.15, 0.05, 0.05]),
        ("node_mae", None, None): mean([0.0, 0.0, 0.1, 0.1]),
        ("edge_error", None, None): 100.5 / 2007,
        ("small_edge_error", None, None): 0.5 / 7,
        ("sized_edge_error", about(size=1), None): 0.5 / 7, ("sized_edge_error", about(size=1000), None): 100 / 2000,
        ("coverage", None, None): 3 / 4,  # 100 off is within 1.96 · 60, and 0.5 off is beyond 1.96 · 0.25
        ("flow", THERE, None): 1.5, ("flow", BACK, None): 2.0,
        ("true_flow", THERE, None): 1.0, ("true_flow", BACK, None): 2.0,
    }  # fmt: skip
    cells = {(0, 0): (1900.0, 2000.0), (0, 1): (1.5, 1.0), (1, 0): (2.0, 2.0), (1, 1): (4.0, 4.0)}
    for (i, j), (count, true) in cells.items():
        keys = about(time=0, **{"from": i, "to": j})
        found["count", keys, None], found["true_count", keys, None] = count, true
    return found
