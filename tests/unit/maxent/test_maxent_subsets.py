"""The exact model, models per subset, and the example on which pairs are not enough."""

import numpy as np
import pytest

from agglearn.datasets import Xor
from agglearn.errors import DataError
from agglearn.maxent import (
    ExactMaxEntClassifier,
    FeatureSubsets,
    LogisticSkyline,
    MaxEntClassifier,
    NaiveBayesClassifier,
)
from agglearn.observations import ContingencyTables, Records


@pytest.fixture(scope="module")
def xor():
    drawn = Xor(n=16_000).draw(0)
    return drawn, drawn.frame.assign(y=drawn.y)


def by_third(drawn, p):
    return [p[drawn.frame["x3"] == v].mean() for v in ("0", "1")]


def test_xor_population_is_what_the_paper_says(xor):
    drawn, frame = xor
    assert (frame.x3.astype(int) == frame.x1.astype(int) ^ frame.x2.astype(int)).all()
    assert by_third(drawn, drawn.y) == [0.25, 0.75]
    assert frame.groupby(["x1", "x2"]).size().tolist() == [4000] * 4


def test_xor_exactly(xor):
    drawn, frame = xor
    model = ExactMaxEntClassifier(l2_mu=1e-3, l2_theta=1e-3).fit(ContingencyTables.from_records(frame, "y"))
    assert by_third(drawn, model.predict_proba(drawn.frame)[:, 1]) == pytest.approx([0.1, 0.9], abs=1e-3)


@pytest.mark.slow
def test_xor_by_sampling(xor):
    drawn, frame = xor
    tables = ContingencyTables.from_records(frame, "y")
    model = MaxEntClassifier(5000, l2_mu=0.1, l2_theta=0.1, max_iter=800, tol=0.0, random_state=0).fit(tables)
    assert by_third(drawn, model.predict_proba(drawn.frame)[:, 1]) == pytest.approx([0.1, 0.9], abs=0.02)


def test_xor_with_all_records(xor):
    drawn, frame = xor
    model = LogisticSkyline(l2=1e-3).fit(Records.from_records(frame, "y"))
    assert by_third(drawn, model.predict_proba(drawn.frame)[:, 1]) == pytest.approx([0.25, 0.75], abs=1e-3)


def test_subsets_are_the_models_of_their_features(xor):
    drawn, frame = xor
    tables = ContingencyTables.from_records(frame, "y")
    model = FeatureSubsets(NaiveBayesClassifier(), size=2).fit(tables)
    found = dict(model.subset_predict_proba(drawn.frame))
    assert set(found) == {("x1", "x2"), ("x1", "x3"), ("x2", "x3")}
    alone = NaiveBayesClassifier().fit(ContingencyTables.from_records(frame, "y", ["x1", "x3"]))
    assert np.array_equal(found["x1", "x3"], alone.predict_proba(drawn.frame)[:, 1])


def test_some_subsets_are_always_the_same(xor):
    _, frame = xor
    tables = ContingencyTables.from_records(frame, "y")
    one, two = (FeatureSubsets(NaiveBayesClassifier(), size=1, most=2, random_state=s).fit(tables) for s in (0, 1))
    assert list(one.models_) == list(two.models_)
    assert len(one.models_) == 2


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
