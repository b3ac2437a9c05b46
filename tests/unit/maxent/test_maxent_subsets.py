"""The exact model, models per subset, and the example on which pairs are not enough."""

import itertools

import numpy as np
import pytest

from agglearn.datasets import Xor
from agglearn.errors import DataError
from agglearn.maxent import FeatureSubsets, LogisticSkyline, MaxEntClassifier, NaiveBayesClassifier
from agglearn.observations import ContingencyTables


@pytest.fixture(scope="module")
def xor():
    drawn = Xor(n=16_000).draw(0)
    return drawn, drawn.frame.assign(y=drawn.y)


def test_xor_population_is_what_the_paper_says(xor):
    _, frame = xor
    assert (frame.x3.astype(int) == frame.x1.astype(int) ^ frame.x2.astype(int)).all()
    assert frame.groupby("x3")["y"].mean().tolist() == [0.25, 0.75]
    assert frame.groupby(["x1", "x2"]).size().tolist() == [4000] * 4


def test_subsets_are_the_models_of_their_features(xor):
    drawn, frame = xor
    tables = ContingencyTables.from_records(frame, "y")
    model = FeatureSubsets(NaiveBayesClassifier(), size=2).fit(tables)
    found = dict(model.subset_predict_proba(drawn.frame))
    assert set(found) == {("x1", "x2"), ("x1", "x3"), ("x2", "x3")}
    alone = NaiveBayesClassifier().fit(ContingencyTables.from_records(frame, "y", ["x1", "x3"]))
    assert np.array_equal(found["x1", "x3"], alone.predict_proba(drawn.frame)[:, 1])


def test_subsets_are_drawn_without_repetition_and_are_always_the_same(xor):
    columns = [f"f{i}" for i in range(6)]
    frame = xor[1][["x1", "x2", "x3", "x1", "x2", "x3", "y"]].set_axis([*columns, "y"], axis=1)
    tables = ContingencyTables.from_records(frame, "y", pairs="none")
    some = [FeatureSubsets(NaiveBayesClassifier(), 2, most=14, random_state=s).fit(tables).models_ for s in (0, 1)]
    assert list(some[0]) == list(some[1])
    assert len(some[0]) == 14
    assert set(some[0]) < set(itertools.combinations(columns, 2))
    assert len(FeatureSubsets(NaiveBayesClassifier(), 2).fit(tables).models_) == 15


def test_subsets_refuse_what_the_base_does_not_observe(xor):
    _, frame = xor
    with pytest.raises(DataError, match="learns from Records"):
        FeatureSubsets(LogisticSkyline()).fit(ContingencyTables.from_records(frame, "y"))


@pytest.mark.parametrize("learner", [MaxEntClassifier(), LogisticSkyline(), NaiveBayesClassifier(kind="pcd")])
def test_warming_up_learns_nothing(learner):
    before = learner.get_params()
    learner.warm_up()
    assert learner.get_params() == before
    assert not [name for name in vars(learner) if name.endswith("_")]
