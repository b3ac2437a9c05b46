"""`fit(records, y)`: learners from tables and label sums inside scikit-learn's tools, with the labels as they are."""

import inspect

import numpy as np
import pandas as pd
import pytest
from observed import learners
from sklearn.model_selection import cross_val_predict, cross_val_score

from agglearn import maxent
from agglearn.errors import AgglearnError
from agglearn.estimator import Estimator, observe_records
from agglearn.labelsums import AggregateSearch, BaseRateClassifier, BoostedTreesSkyline, WALRClassifier
from agglearn.maxent import NaiveBayesClassifier
from agglearn.observations import ContingencyTables, LabelSums
from agglearn.proportions import BagLearnerOnRecords, MeanMapClassifier

rng = np.random.default_rng(0)
X = pd.DataFrame({"age": rng.integers(18, 80, 400), "job": rng.choice(["cook", "nurse", "clerk"], 400)})
P = 1 / (1 + np.exp(-0.08 * (X["age"] - 50) - 2 * (X["job"] == "nurse")))
Y = pd.Series(np.where(rng.random(400) < P, "yes", "no"), name="bought")
SMALL = {"n_chains": 100, "max_iter": 20, "random_state": 0}
MODELS = [
    NaiveBayesClassifier(), maxent.BestPairClassifier(), maxent.ExactMaxEntClassifier(),
    maxent.MaxEntClassifier(**SMALL), maxent.NoiseAwareMaxEntClassifier(**SMALL), maxent.LogisticSkyline(),
    BaseRateClassifier(), WALRClassifier(), BoostedTreesSkyline(),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_cross_validation(model):
    scores = cross_val_score(model, X, Y, cv=2, error_score="raise")
    assert scores.shape == (2,)
    assert (scores > (0.45 if isinstance(model, BaseRateClassifier) else 0.6)).all()
    assert set(cross_val_predict(model, X, Y, cv=2)) <= {"no", "yes"}


@pytest.mark.parametrize(
    "labels", [Y, Y == "yes", np.where(Y == "yes", 7, -1), Y.astype("category"), Y.tolist()], ids=["text", "bool", "int", "category", "list"]
)  # fmt: skip
def test_labels_are_those_that_were_given(labels, tmp_path):
    model = NaiveBayesClassifier().fit(X, labels)
    values = np.unique(np.asarray(labels))
    assert model.classes_.tolist() == values.tolist()
    assert set(model.predict(X)) == set(values)
    assert model.score(X, labels) > 0.7
    model.save(tmp_path)
    loaded = Estimator.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_the_tables_are_those_of_the_records():
    direct = NaiveBayesClassifier().fit(X, Y)
    frame = X.assign(y=(Y == "yes").astype(int))
    tables = NaiveBayesClassifier().fit(ContingencyTables.from_records(frame, "y"))
    np.testing.assert_array_equal(direct.predict_proba(X), tables.predict_proba(X))
    assert tables.classes_.tolist() == [0, 1]
    sums, classes = observe_records(LabelSums, X, Y)
    assert classes.tolist() == ["no", "yes"]
    np.testing.assert_allclose(sums.sums[-1], (Y == "yes").sum())  # the intercept's
    array = NaiveBayesClassifier().fit(np.column_stack([X["age"], X["age"] % 7]), Y)
    assert array.feature_names_in_.tolist() == ["x0", "x1"]
    taken = NaiveBayesClassifier().fit(X.rename(columns={"age": "label"}), Y)
    assert taken.feature_names_in_.tolist() == ["label", "job"]


@pytest.mark.parametrize(
    ("model", "records", "labels", "line"),
    [
        (NaiveBayesClassifier(), X, Y[:5], "y: has shape (5,) for 400 records; give one label for each"),
        (NaiveBayesClassifier(), X, Y.where(X["age"] > 18), "has no label; leave it out"),
        (NaiveBayesClassifier(), X, X["job"], "y: must have two classes, it has 3: clerk, cook, nurse"),
        (NaiveBayesClassifier(), X, np.ones(400), "y: must have two classes, it has 1: 1.0"),
        (NaiveBayesClassifier(), X, None, "NaiveBayesClassifier learns from ContingencyTables, not from DataFrame"),
        (NaiveBayesClassifier(), X["age"], Y, "X: must be a data frame, or an array of shape"),
        (NaiveBayesClassifier(), ContingencyTables.from_records(X.assign(y=Y == "yes"), "y"), Y, "hold the labels; leave out y"),
        (WALRClassifier(l2=-1), X, Y, "WALRClassifier: l2: -1 is not allowed"),
        (BagLearnerOnRecords(MeanMapClassifier()), X, Y, "cannot be made CountedBags; make these, and call fit with them"),
        (AggregateSearch(WALRClassifier(), "l2"), X, Y, "LabelSums cannot be split; release halves (Halves)"),
    ],
)  # fmt: skip
def test_wrong_input_gets_one_line(model, records, labels, line):
    with pytest.raises(AgglearnError) as error:
        model.fit(records, labels)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", learners(), ids=lambda kind: kind.__name__)
def test_a_signature_fits_a_screen(kind):
    assert len(str(inspect.signature(kind))) < 24 * 80
