"""Measures of persons in bags and of regions, by hand, and of votes by functions that `proportions/` tests by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from measured_by_hand import about, mean, measured

from agglearn import tasks
from agglearn.datasets import SoftmaxLabels
from agglearn.observations import Bags, LabelledBags
from agglearn.tasks import TaskInput, bags

PERSONS = Bags(np.arange(5.0)[:, None], np.array([0, 2, 5]), np.array([[1, 1], [1, 2]]))
CERTAINTY = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])  # a tie goes to class 0


def of_bags(observes=Bags) -> dict:
    truth = bags.HeldOutPersons(PERSONS, np.array([0, 1, 1, 1, 0]))
    stub = SimpleNamespace(
        predict_proba=lambda x: CERTAINTY, observes=observes,
        predict_counts=lambda b: np.array([[0.5, 1.5], [1.75, 1.25]]),
    )  # fmt: skip
    return measured(tasks.BagClassification, stub, truth)


def of_bags_by_hand(sign=-2) -> dict:
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in (0.7, 0.5, 0.8) for b in (0.4, 0.1)]
    single = {
        "accuracy": 4 / 5,
        "gap_to_oracle": sign * 4 / 5,
        "auc": mean(wins),
        "count_error": mean([(0.5 + 0.5) / 2 / 2, (0.75 + 0.75) / 2 / 3]),
    }
    return {(name, None, None): value for name, value in single.items()}


def test_an_oracle_counts_for_the_other_side_of_the_gap():
    assert of_bags(LabelledBags) == pytest.approx(of_bags_by_hand(2))


VOTERS = pd.DataFrame(
    [("IA", "male", 1.0), ("IA", "female", 3.0), ("AL", "male", 2.0), ("OH", "female", 5.0)],
    columns=["state", "sex", "weight"],
).assign(race="other", education="some college")
VOTES = np.array([[0.1, 0.8, 0.1], [0.0, 0.4, 0.6], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])  # none, R, D
POLLS = pd.DataFrame(
    [("US", "sex", "male", 0.45, 48), ("US", "sex", "female", 0.55, 52), ("IA", "sex", "male", 0.6, 50)],
    columns=["area", "covariate", "group", "share", "size"],
)
PLACES = pd.DataFrame([("AL", -86.6, 33.0, 0.4)], columns=["state", "longitude", "latitude", "share"])


def of_votes() -> dict:
    regions = Bags(np.zeros((4, 1)), np.array([0, 2, 4]), weights=np.array([9.0, 1, 2, 8]), target=np.array([0.5, 0.2]))
    counted = np.array([[5.0, 2.0, 3.0], [0.0, 3.0, 2.0]])
    stub = SimpleNamespace(predict_proba=lambda x: VOTES, predict_counts=lambda b: counted)
    return measured(tasks.BagClassification, stub, bags.HeldOutPersons(regions, None, VOTERS, POLLS, PLACES))


def of_votes_by_hand() -> dict:
    """Of groups, states and the map by the functions that `proportions/test_proportions_census.py` tests."""
    wanted = list(tasks.BagClassification.MEASURES)
    parts = bags.measure_groups(VOTES, VOTERS, POLLS, wanted), bags.measure_map(VOTES, VOTERS, PLACES, wanted)
    found = {(m.measure, about(**m.keys), None): m.value for part in parts for m in part}
    # regions: weights 10 and 10; shares 3/5 and 2/5 beside 0.5 and 0.2
    return found | {("region_rmse", None, None): math.sqrt((10 * 0.1**2 + 10 * 0.2**2) / 20)}


def test_regions_count_by_the_weight_of_their_persons():
    regions = Bags(
        np.zeros((4, 1)), np.array([0, 2, 4]), weights=np.array([90.0, 0, 4, 6]), target=np.array([0.5, 0.2])
    )
    votes = np.array([[0, 1.0, 1], [7, 1.0, 4]])  # shares 0.5 and 0.8
    assert tasks.bags.region_rmse(votes, regions) == pytest.approx(math.sqrt((90 * 0 + 10 * 0.6**2) / 100))


def test_records_of_three_classes_are_counted_in_bags_of_one_size():
    drawn = SoftmaxLabels(n_classes=3, n_features=2, bags=50).draw(0)
    source = TaskInput("softmax_labels", {"split": 0.2}, {"bags": 50}, drawn)
    seen, truth = tasks.BagClassification().observe(source, LabelledBags, {}, 0)
    assert seen.bags.counts.shape == (1, 3)
    np.testing.assert_array_equal(seen.bags.counts[0], np.bincount(seen.y, minlength=3))
    np.testing.assert_array_equal(truth.bags.counts.sum(axis=0), np.bincount(truth.y, minlength=3))
