"""What scikit-learn's users expect of every learner: NotFittedError, predict, score, names and number of the features."""

import numpy as np
import pytest
from observed import FRAME, RECORDS, learners
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_contracts import COLUMNS, OBSERVERS, build, fitted

from agglearn.distribution import EmbeddingRegressor, KernelRidge, LinearRidge, MomentEmbedding, MultinomialLogistic
from agglearn.errors import DataError
from agglearn.estimator import RecordClassifier
from agglearn.labelsums import SklearnLogistic, WALRClassifier
from agglearn.maxent import FeatureSubsets, NaiveBayesClassifier
from agglearn.observations import Bags, LabelSums
from agglearn.proportions import BagLearnerOnRecords, MeanMapClassifier
from agglearn.vocabulary import OptimalQuantizer

CLOUDS = Bags(np.random.default_rng(0).normal(size=(80, 2)), np.arange(0, 81, 4), np.tile([2, 2], (20, 1)))
TARGETS = CLOUDS.X[::4, 0]
VECTORS = np.random.default_rng(1).normal(size=(60, 3))

METHODS = (
    "predict", "predict_proba", "staged_predict_proba", "subset_predict_proba", "predict_counts", "transform", "score",
    "get_feature_names_out", "models", "predict_interval",
)  # fmt: skip
ATTRIBUTES = ("classes_", "feature_names_in_", "n_features_in_", "coef_", "encoder_", "coef_interval_")


@pytest.mark.parametrize("kind", learners(), ids=lambda c: c.__name__)
def test_what_is_not_fitted_says_so(kind, tmp_path):
    model = build(kind)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert not hasattr(model, "classes_")
    for name in ATTRIBUTES:
        with pytest.raises(NotFittedError):
            getattr(model, name)
    package = model.__module__.split(".")[1]
    x = CLOUDS if package == "distribution" and getattr(kind, "observes", None) is Bags else FRAME
    x = CLOUDS.X if package == "proportions" and kind is not BagLearnerOnRecords else x
    x = VECTORS if kind in (LinearRidge, KernelRidge, MultinomialLogistic) else x
    given = {"predict_counts": [CLOUDS], "score": [x, np.zeros(len(x))], "get_feature_names_out": [], "models": []}
    for name in METHODS:
        if method := getattr(model, name, None):
            with pytest.raises(NotFittedError):
                list(method(*given.get(name, [x])))  # generators begin when they are asked
    clone(model)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = model.nothing


@pytest.mark.parametrize("kind", [p for p in OBSERVERS if issubclass(p.values[0], RecordClassifier)])
def test_classifiers_of_records(kind):
    check_conventions(fitted(kind)[0], COLUMNS)


def test_classifiers_of_numbers():
    check_conventions(SklearnLogistic("scaled", "features").fit(RECORDS), ["age", "job", "home", "zone"])
    sums = LabelSums.from_records(FRAME[["age", "zone"]], FRAME.y)
    check_conventions(WALRClassifier().fit(sums), ["age", "zone"])


def check_conventions(model, names):
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == len(names)
    p = model.predict_proba(FRAME)
    labels = model.predict(FRAME)
    np.testing.assert_array_equal(labels, (p[:, 1] > p[:, 0]).astype(int))
    assert model.score(FRAME, FRAME.y) == np.mean(labels == FRAME.y)
    array = FRAME[names].to_numpy()
    np.testing.assert_array_equal(model.predict_proba(array), p)
    with pytest.raises(DataError, match=rf"array of shape \(records, {len(names)}\), got shape"):
        model.predict_proba(array[:, :1])
    with pytest.raises(DataError, match="'yes' is no label of this model; its labels are 0, 1"):
        model.score(FRAME, ["yes"] * len(FRAME))


def test_subsets_have_no_labels_to_predict():
    assert not hasattr(FeatureSubsets(NaiveBayesClassifier()), "predict")


def test_models_of_bags_and_vectors():
    bags = MeanMapClassifier(l2=1.0).fit(CLOUDS)
    classes = bags.predict(CLOUDS.X)
    assert bags.n_features_in_ == 2
    assert bags.score(CLOUDS.X, classes) == 1
    model = EmbeddingRegressor(MomentEmbedding(), LinearRidge()).fit(CLOUDS, TARGETS)
    assert model.n_features_in_ == 2
    residual = TARGETS - model.predict(CLOUDS)
    assert model.score(CLOUDS, TARGETS) == pytest.approx(1 - np.mean(residual**2) / TARGETS.var())
    with pytest.raises(DataError, match="no target"):
        model.score(CLOUDS)
    for kind in (LinearRidge, KernelRidge):
        ridge = kind().fit(VECTORS, VECTORS[:, 0])
        assert ridge.n_features_in_ == 3
        assert ridge.score(VECTORS, VECTORS[:, 0]) > 0.5
    logistic = MultinomialLogistic().fit(VECTORS, VECTORS[:, 0] > 0)
    assert logistic.n_features_in_ == 3
    assert logistic.score(VECTORS, VECTORS[:, 0] > 0) > 0.8
    quantizer = OptimalQuantizer(4).fit(FRAME[["job", "home"]].fillna("?"), FRAME.y)
    assert (quantizer.feature_names_in_.tolist(), quantizer.n_features_in_) == (["job", "home"], 2)
