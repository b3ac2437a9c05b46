"""Flow counts as an observation: kept, fingerprinted, and refused where they cannot be."""

import numpy as np
import pytest

from agglearn.errors import DataError
from agglearn.observations import FlowCounts, FlowInstances


def counts(**more):
    nodes = np.array([[3.0, 1, np.nan], [2, 2, 0]])
    given = {"node_counts": nodes, "rate": 0.5, "population_size": 4, "context": {"wind": np.arange(4.0)}} | more
    return FlowCounts(**given)


def test_instances_are_kept_in_order(tmp_path):
    many = FlowInstances(tuple(counts(rate=r) for r in np.linspace(0.1, 1, 12)))
    many.save(tmp_path)
    assert [c.rate for c in FlowInstances.load(tmp_path).instances] == [c.rate for c in many.instances]


def test_tables_of_different_sizes_are_padded_with_what_was_not_observed():
    found = FlowCounts(node_counts=[np.ones(2), np.ones(3)])
    np.testing.assert_array_equal(np.isnan(found.node_counts), [[False, False, True], [False] * 3])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "there are no counts"),
        ({"node_counts": np.array([[1.0, 2], [3, -1]])}, "node 1, state 1: negative count -1 under poisson"),
        ({"edge_counts": -np.ones((1, 2, 2)), "noise": "exact"}, "edge 0, state 0, 0: negative"),
        ({"node_counts": np.array([[1.0, 2], [3, 1]]), "noise": "exact"}, "node 0 counts 3 in all and node 1 counts 4"),
        ({"node_counts": np.array([[1.0, 2]]), "noise": "exact", "population_size": 5}, "population counts 5 in all"),
        ({"node_counts": np.ones(3)}, "needs 2 axes"),
        ({"node_counts": np.array([[np.inf, 1.0]])}, "infinite counts"),
    ],
)
def test_impossible_counts_are_named(given, said):
    with pytest.raises(DataError, match=said):
        FlowCounts(**given)


def test_totals_may_differ_by_rounding():
    counts = FlowCounts(node_counts=np.array([[1.1, 2.2], [3.3, 0.0]]), noise="exact", population_size=3.3)
    assert np.ptp(counts.node_counts.sum(axis=-1)) > 0
