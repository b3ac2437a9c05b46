"""What inference refuses: unknown methods, counts that no tables have, and what a method cannot do."""

import numpy as np
import pytest
from collective_worlds import fixed_tree

from agglearn.collective import METHODS, ChainModel, TreeModel, infer
from agglearn.errors import ConfigError, DataError, NotAvailable
from agglearn.observations import FlowCounts


def test_unknown_methods_are_named():
    assert set(METHODS) == {
        "exact", "generic-cvxpy", "generic-ipopt", "gibbs", "gaussian", "nlbp-naive", "nlbp-feasible", "bethe-rda",
        "mirror-descent", "accelerated-rda", "dual-newton",
    }  # fmt: skip
    with pytest.raises(ConfigError, match="method: 'newton' is not known"):
        infer(ChainModel([np.zeros((2, 2))]), FlowCounts(node_counts=np.ones((2, 2))), 2, method="newton")


def test_counts_that_the_potentials_forbid_name_the_cell():
    log_phi = np.array([[0.0, -np.inf], [0.0, 0.0]])
    first = np.array([[0.0, 0.0], [-np.inf, -np.inf]])  # everybody starts in state 0
    counts = np.array([[3.0, 0], [3, 0], [2, 1]])
    with pytest.raises(DataError, match=r"node 2 \(step 2\), state 1: somebody is counted"):
        infer(ChainModel([first + log_phi, log_phi]), FlowCounts(node_counts=counts), 3)
    with pytest.raises(DataError, match=r"edge 0–1, states 0, 1: somebody is counted"):
        infer(ChainModel([log_phi]), FlowCounts(edge_counts=np.array([[[1.0, 1], [0, 1]]])), 3)


def test_counts_that_do_not_fit_the_model_are_named():
    model = ChainModel([np.zeros((2, 2))])
    with pytest.raises(DataError, match="3 nodes of 2 states, the model has 2 nodes of 2"):
        infer(model, FlowCounts(node_counts=np.ones((3, 2))), 2)
    with pytest.raises(DataError, match="1 edges of 3 × 3 states, the model has 1 edges of 2 × 2"):
        infer(model, FlowCounts(edge_counts=np.ones((1, 3, 3))), 2)
    with pytest.raises(DataError, match="population_size"):
        infer(model, FlowCounts(node_counts=np.ones((2, 2))), 0)


def test_exact_counts_of_another_population_are_named():
    counts = FlowCounts(node_counts=np.array([[1.0, 2], [2, 1]]), noise="exact")
    with pytest.raises(DataError, match="the population counts 5 in all and node 0 counts 3"):
        infer(ChainModel([np.zeros((2, 2))]), counts, 5)


STAY, ONE_WAY, NAN = np.zeros((2, 2)), np.array([[0.0, -np.inf], [0.0, 0.0]]), np.nan
IMPOSSIBLE = {  # potentials, node counts, edge counts, M, what is said
    "law forbids": ([ONE_WAY], [[2, 1], [1, 2]], None, 3, r"edge 0–1 to node 1 \(step 1\).*state \d counts \d, .*have \d"),
    "one-way road past a node without counts": (
        [ONE_WAY] * 3, [[2, 1], [NAN, NAN], [NAN, NAN], [1, 2]], None, 3, r"edge 2–3 to node 3 \(step 3\)"
    ),
    "margins differ": ([STAY] * 2, None, [[[1, 1], [1, 1]], [[3, 0], [1, 0]]], 4, r"edge 1–2 to node 2.*edge 1–2, states"),
    "edge against node": ([STAY], [[3, 1], [NAN, NAN]], [[[1, 1], [1, 1]]], 4, r"edge 0–1 to node 1.*edge 0–1, states"),
    "single cells": ([STAY] * 2, None, [[[NAN, NAN], [3, NAN]], [[1, 1], [NAN, NAN]]], 4, "edge 1–2 to node 2"),
    "more than there are": ([STAY], [[NAN, 5], [NAN, NAN]], None, 4, r"node 0 \(step 0\): .* counts 5, .* have 4"),
    "two of many": ([STAY] * 2, None, [[[1e8, 1e8], [1e8, 1e8]], [[1e8, 1e8 + 2], [1e8 - 2, 1e8]]], 4e8, "edge 1–2"),
}  # fmt: skip


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_exact_counts_are_refused_with_node_edge_and_step(case):
    potentials, nodes, edges, m, said = IMPOSSIBLE[case]
    given = {k: np.array(v, float) for k, v in (("node_counts", nodes), ("edge_counts", edges)) if v is not None}
    with pytest.raises(DataError, match=said):
        infer(ChainModel(potentials), FlowCounts(**given, noise="exact"), m)


def test_impossible_exact_counts_of_a_tree_name_the_edge():
    tree = TreeModel([(1, 0), (1, 2), (3, 1)], [ONE_WAY, STAY, STAY])  # from 1 to 0 only
    counts = FlowCounts(node_counts=np.array([[1.0, 3], [3, 1], [2, 2], [NAN, NAN]]), noise="exact")
    with pytest.raises(DataError, match="edge 1–0 to node 1: the exact counts"):
        infer(tree, counts, 4)


def test_possible_exact_counts_at_the_border_are_met():
    """Counts that only tables with empty cells have: λ grows without end, and the counts are met all the same."""
    for m in (3, 3000, 3e6):
        nodes = np.array([[2, 1], [NAN, NAN], [2, 1]]) * m / 3
        found = infer(ChainModel([ONE_WAY] * 2), FlowCounts(node_counts=nodes, noise="exact"), m)
        assert found.converged
        np.testing.assert_allclose(found.node_tables[1], nodes[0], atol=1e-6 * m)


def test_methods_that_cannot_do_it_say_so():
    tree, m = fixed_tree("star", np.random.default_rng(0)), 4
    counts = FlowCounts(node_counts=np.ones((4, 2)) * 2)
    with pytest.raises(NotAvailable, match="only chains"):
        infer(tree, counts, m, method="gaussian")
    with pytest.raises(DataError, match="too many to enumerate"):
        infer(tree, counts, 10**6, method="exact")
    exact = FlowCounts(node_counts=np.ones((4, 2)) * 2, noise="exact")
    with pytest.raises(DataError, match="have no gradient"):
        infer(tree, exact, m, method="nlbp-feasible")
    with pytest.raises(NotAvailable, match="have no gradient"):
        infer(tree, exact, m, method="nlbp-naive")
