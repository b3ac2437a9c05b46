"""Every measure of every task against plain arithmetic on a few rows. A measure without a value here fails.

Estimators are stubs with predictions written down, truths are written down too: nothing but the task computes. The values by hand
stand in the files of each kind of task.
"""

import pytest
from compression_by_hand import compressed, compressed_by_hand
from ecological_by_hand import tabulated, tabulated_by_hand
from test_bag_measures import of_bags, of_bags_by_hand, of_votes, of_votes_by_hand
from test_classification_measures import classified, classified_by_hand, of_subsets, of_subsets_by_hand
from test_flow_measures import learned, learned_by_hand, of_gibbs, of_gibbs_by_hand, of_inference, of_inference_by_hand
from test_regression_measures import of_classes, of_classes_by_hand, regressed, regressed_by_hand

from agglearn import tasks
from agglearn.tasks.base import Task

KINDS = [c for c in (getattr(tasks, name) for name in tasks.__all__) if isinstance(c, type) and issubclass(c, Task)]
KINDS = [c for c in KINDS if c is not Task]
SWITCHES = {"curve": ("nllh", "seconds")}  # a name that asks for curves of other measures
CASES = {
    tasks.Classification: [(classified, classified_by_hand)],
    tasks.SubsetClassification: [(of_subsets, of_subsets_by_hand)],
    tasks.BagClassification: [(of_bags, of_bags_by_hand), (of_votes, of_votes_by_hand)],
    tasks.Compression: [(compressed, compressed_by_hand)],
    tasks.DistributionRegression: [(regressed, regressed_by_hand), (of_classes, of_classes_by_hand)],
    tasks.EcologicalTables: [(tabulated, tabulated_by_hand)],
    tasks.FlowInference: [(of_inference, of_inference_by_hand), (of_gibbs, of_gibbs_by_hand)],
    tasks.FlowLearning: [(learned, learned_by_hand)],
}  # fmt: skip
ELSEWHERE = {  # measures that a test of their own has
    tasks.BagClassification: {"state_correlation"},
    tasks.FlowInference: {"map_error", "mean_error", "gap_exponent"},
}


@pytest.mark.parametrize(("task", "found", "by_hand"), [(t, *c) for t, cases in CASES.items() for c in cases])
def test_measures(task, found, by_hand):
    got, expected = found(), by_hand()
    assert set(got) == set(expected)
    for key, value in expected.items():
        assert got[key] == pytest.approx(value, rel=1e-6, abs=1e-12), key


@pytest.mark.parametrize("task", KINDS)
def test_every_measure_has_a_value_by_hand(task):
    known = {measure for _, by_hand in CASES[task] for measure, *_ in by_hand()} | ELSEWHERE.get(task, set())
    for name in task.MEASURES:
        assert set(SWITCHES.get(name, [name])) <= known, name
