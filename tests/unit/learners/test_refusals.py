"""Refusals that a user of the library meets, each in one line that says what is wrong; and small paths beside them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import people

from agglearn.collective import ChainModel, LogLinearTransitions, TreeModel, infer
from agglearn.collective.cliques import from_cliques
from agglearn.errors import AgglearnError
from agglearn.observations import Bags, CountedBags, FlowCounts, Records
from agglearn.proportions import CardinalityClassifier, cardinality_posterior
from agglearn.vocabulary import OptimalQuantizer

CHAIN = ChainModel([np.zeros((2, 2))] * 2)
NODES = np.array([[10.0, 20], [20, 10], [5, 25]])
EDGES = np.array([[[8.0, 2], [2, 8]], [[5, 5], [5, 5]]])
GAUSSIAN = FlowCounts(node_counts=NODES, noise="gaussian", scale=2.0, population_size=30)
TWICE = replace(GAUSSIAN, node_counts=np.stack([NODES, NODES]))
EXACT = FlowCounts(node_counts=NODES, noise="exact", population_size=30)
POISSON_EDGES = FlowCounts(edge_counts=EDGES, noise="poisson")
HALF = FlowCounts(node_counts=np.array([[10.5, 19.5], [np.nan, np.nan], [5, 25]]), noise="exact", population_size=30)
X = np.random.default_rng(0).normal(size=(12, 2))
ONE_CLASS = Bags(X, np.arange(0, 13, 4), np.full((3, 1), 4))
SIZES = {"a": 2, "b": 2}
RECORDS = Records.from_records(people(60), "y")


def bags_of(size: int) -> CountedBags:
    return CountedBags.from_records(RECORDS.encoder, RECORDS.frame, RECORDS.y, size, np.random.default_rng(0))


REFUSED = [
    (lambda: infer(CHAIN, EXACT, 30, method="exact", kind="mean"), "kind"),
    (lambda: infer(CHAIN, GAUSSIAN, 30.5, method="exact"), "needs a whole number, got 30.5"),
    (lambda: infer(CHAIN, GAUSSIAN, 30.5, method="gibbs"), "sampling needs a whole number, got 30.5"),
    (lambda: infer(CHAIN, HALF, 30, method="gibbs"), "whole exact counts"),
    (lambda: infer(CHAIN, POISSON_EDGES, 20, method="gaussian"), "only node counts"),
    (lambda: infer(CHAIN, EXACT, 30, method="gaussian"), "exact counts have no noise"),
    (lambda: infer(CHAIN, TWICE, 30, method="gibbs"), "one count per cell"),
    (lambda: from_cliques(SIZES, [("a", "b")], [np.zeros((2, 3))]), r"clique \('a', 'b'\): log-factor of shape \(2, 3"),
    (lambda: LogLinearTransitions([np.full((2, 3, 3, 1), -np.inf)], np.zeros(3)), "must be finite; forbid steps"),
    (lambda: TreeModel([], []), "at least one edge"),
    (lambda: CardinalityClassifier(l2=1.0).fit(ONE_CLASS), "one class only"),
    (lambda: cardinality_posterior(np.zeros((2, 2, 2)), 1), r"must be \(n,\) or \(n, C\)"),
    (lambda: OptimalQuantizer(2).fit(np.zeros((2, 2, 2)), [0, 1]), r"an array of shape \(records, features\), got"),
    (lambda: OptimalQuantizer(2).fit(pd.DataFrame({"a": []}), []), "there are no records"),
    (lambda: Bags(X, [0, 6, 12], np.array(["a", "b"])), "counts: must be numbers"),
    (lambda: bags_of(0), "bag_size: must be between 1 and the 60 records, got 0"),
    (lambda: bags_of(61), "bag_size: must be between 1 and the 60 records, got 61"),
    (lambda: Bags(X, [0, 12], names=("a",)), "1 names for"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_one_line_says_what_is_wrong(call, message):
    with pytest.raises(AgglearnError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_array_of_records_is_compressed_like_its_frame():
    frame = pd.DataFrame({"x0": list("aabbcc") * 5, "x1": list("uvuvuv") * 5})
    y = np.tile([0, 1, 1, 1, 0, 0], 5)
    a, b = OptimalQuantizer(4).fit(frame, y), OptimalQuantizer(4).fit(frame.to_numpy(), y)
    assert list(b.feature_names_in_) == ["x0", "x1"]
    np.testing.assert_array_equal(a.transform(frame), b.transform(frame.to_numpy()))


def test_counts_of_one_feature_give_the_clusters_of_their_values():
    counts, ones = np.array([50, 40, 30, 20]), np.array([5, 30, 4, 15])
    model = OptimalQuantizer(2)
    np.testing.assert_array_equal(model.fit_transform(counts, ones), [0, 1, 0, 1])


def test_records_with_some_features():
    records = Records.from_records(people(60), "y")
    fewer = records.select(["zone", "age"])
    assert fewer.encoder.names == [n for n in records.encoder.names if n in ("age", "zone")]
    assert list(fewer.frame) == fewer.encoder.names
    np.testing.assert_array_equal(fewer.y, records.y)
