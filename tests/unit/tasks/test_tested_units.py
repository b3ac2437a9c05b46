"""What a run records of its tested units and keys: a digest that pairs need, and how much seeds' splits overlap."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agglearn.datasets import Population, RecordStore
from agglearn.errors import ConfigError
from agglearn.observations import Bags
from agglearn.tasks import Measurement, TaskInput, bags, classification, distribution
from agglearn.tasks.bags import BagClassification
from agglearn.tasks.classification import Classification
from agglearn.tasks.compression import Compression
from agglearn.tasks.distribution import DistributionRegression
from agglearn.tasks.flows import FlowInference
from agglearn_workflow.runs import execution

Y = np.array([0, 1, 1, 0, 1], dtype=np.int8)
BAGS = Bags(np.arange(10.0).reshape(5, 2), np.array([0, 2, 5]), np.array([[1, 1], [1, 2]]), target=np.array([0.2, 0.7]))


def test_other_features_of_the_same_records_are_the_same_units():
    frames = pd.DataFrame({"x": list("abcab")}), pd.DataFrame({"x": [1, 2, 3, 1, 2]})
    raw, encoded = (classification.HeldOutRows(frame, Y) for frame in frames)
    assert raw.tested == encoded.tested
    assert raw.tested != replace(raw, y=Y[::-1]).tested
    assert raw.tested != replace(raw, y=Y[:4]).tested
    assert raw.tested != replace(raw, probabilities=np.full(5, 0.5)).tested


def test_clouds_of_other_sizes_are_the_same_units():
    fewer = Bags(BAGS.X[:4], np.array([0, 2, 4]), target=BAGS.target)
    assert distribution.HeldOutBags(BAGS).tested == distribution.HeldOutBags(fewer).tested
    other = replace(BAGS, target=np.array([0.2, 0.8]))
    assert distribution.HeldOutBags(BAGS).tested != distribution.HeldOutBags(other).tested


def test_persons_are_told_apart_by_labels_or_by_their_regions_votes():
    votes = replace(BAGS, weights=np.ones(5))
    assert bags.HeldOutPersons(BAGS, Y).tested != bags.HeldOutPersons(BAGS, 1 - Y).tested
    assert bags.HeldOutPersons(votes).tested == bags.HeldOutPersons(replace(votes, X=votes.X + 1)).tested
    assert bags.HeldOutPersons(votes).tested != bags.HeldOutPersons(replace(votes, target=np.array([0.2, 0.8]))).tested


def stored(entry: dict | None = None, parts: dict | None = None, params: dict | None = None, **header) -> TaskInput:
    return TaskInput("a", entry or {}, params or {}, RecordStore("nowhere", {"n": 1000, "parts": parts, **header}))


PARTS = {"train": (0, 800), "test": (800, 1000)}


@pytest.mark.parametrize(
    ("task", "source", "expected"),
    [
        (Classification, stored(), 0.25), (Classification, stored({"split": 0.3}), 3 / 7),
        (Classification, stored({"split": {"last": 0.1}}), 0), (Classification, stored(parts=PARTS), 0),
        (Classification, stored(parts=PARTS, params={"rows": 100}), 0.25),
        (Classification, TaskInput("a", {}, {}, Population(pd.DataFrame(), Y, np.full(5, 0.5), {})), 0),
        (Compression, stored({"split": 0.2}), 0.25), (BagClassification, stored({"split": 0.2}), 0.25),
        (BagClassification, stored(regions=9), 0), (DistributionRegression, stored(parts=PARTS), 0),
        (DistributionRegression, stored(regions=9), 3 / 7), (FlowInference, stored(), 0),
    ],
)  # fmt: skip
def test_overlap_of_the_seeds_splits(task, source, expected):
    assert task().overlap(source) == pytest.approx(expected)


def test_keys_are_stored_as_json_and_unknown_ones_refused():
    text = lambda keys: execution._keys_text(Measurement("brier", 0.5, keys), Classification())  # noqa: E731
    assert text({"feature": "job", "modality": "é"}) == '{"feature": "job", "modality": "é"}'
    assert text(None) is None
    with pytest.raises(ConfigError, match="Classification: brier has the keys featur, which KEYS lacks"):
        text({"featur": "job"})
