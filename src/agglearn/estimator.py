"""Base of all learners: scikit-learn manners, a declared observation type, and models without pickle."""

import warnings
from contextvars import ContextVar
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from agglearn.errors import DataError, NoiseIgnored
from agglearn.observations import ContingencyTables, NoiseSpec, Observation
from agglearn.persistence import Persistent, is_learned
from agglearn.settings import check_parameters

__all__ = ["Estimator", "RecordClassifier"]

_WITHIN = ContextVar("within", default=False)  # another learner's fit, which has judged the noise


class Estimator(Persistent, BaseEstimator):
    """A learner from one kind of observation.

    Subclasses set `observes` and write `_fit(observation)`. Parameters live in `__init__`, learned state in
    attributes that end in an underscore: arrays, numbers, text, lists and dicts of these, encoders, estimators;
    that is what `save` keeps. `accounts_for_noise`: whether it makes use of what an observation states of its noise. A learner
    that does not takes noisy numbers for exact ones, and learns the noise by heart.
    """

    observes: ClassVar[type[Observation]]
    accounts_for_noise: bool = False

    def __getattr__(self, name: str):
        """Only what is not there comes here. NotFittedError is an AttributeError too."""
        if is_learned(name):
            raise NotFittedError(f"this {type(self).__name__} has no {name!r}: it is not fitted yet; call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def fit(self, observation, y=None) -> Self:
        """Learn from an observation of the declared type.

        Parameters
        ----------
        observation : instance of `observes`; anything else is refused.
        y : None. It stands here because scikit-learn's tools pass it; what is known of the labels is in the observation.

        Warns
        -----
        NoiseIgnored : the observation has noise, and the learner does not account for it.

        Raises
        ------
        ConfigError : a parameter that its annotation in `__init__` does not allow.
        DataError : another observation, or labels beside it.
        """
        check_parameters(self)
        if not isinstance(observation, self.observes):
            raise DataError(
                f"{type(self).__name__} learns from {self.observes.__name__}, not from {type(observation).__name__}"
            )
        if y is not None:
            raise DataError(f"{type(self).__name__}.fit: {type(observation).__name__} hold the labels; leave out y")
        if isinstance(observation, ContingencyTables):
            observation.check_labels()
        if (wrong := self.noise_ignored(observation)) and not _WITHIN.get():
            warnings.warn(wrong, NoiseIgnored, stacklevel=2)
        outer = _WITHIN.set(True)
        try:
            self._fit(observation)
        finally:
            _WITHIN.reset(outer)
        return self

    def noise_ignored(self, observation) -> str | None:
        """What is wrong where the learner would take noisy numbers of this observation for exact ones, in one line."""
        noise = observation.noise
        if self.accounts_for_noise or not isinstance(noise, NoiseSpec):
            return None
        return (
            f"{type(self).__name__} takes noisy {type(observation).__name__} ({noise.mechanism}, scale {noise.scale:.4g}) "
            "for exact ones; use a learner that accounts for noise, such as NoiseAwareMaxEntClassifier for tables"
        )

    def _fit(self, observation) -> None:
        raise NotImplementedError


class RecordClassifier(ClassifierMixin, Estimator):
    """A learner that predicts the label of records, from raw columns: 1 for the value that was the positive one when the
    records were aggregated, else 0.

    Subclasses set `classes_` and `encoder_`, and write `predict_proba(X)`. X is a data frame, its columns matched by name, or a
    2-D array with the columns in the order of `feature_names_in_`.
    """

    @property
    def feature_names_in_(self) -> np.ndarray:
        """(D,) names of the features, in order."""
        return np.array(self.encoder_.names, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """D, the number of features."""
        return len(self.feature_names_in_)

    def predict(self, X) -> np.ndarray:
        """(n,) most probable labels."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy on records and their labels, which are 0 and 1 as in `classes_`.

        Raises
        ------
        DataError : other labels.
        """
        y = known_labels(y, self.classes_)
        return super().score(X, y, sample_weight)


def best_of(scores) -> int:
    """Place of the largest score (V,), of equal ones the first. A fit that has diverged has NaN, which is never the largest.

    Raises
    ------
    DataError : all scores are NaN.
    """
    scores = np.asarray(scores, float)
    known = np.flatnonzero(~np.isnan(scores))
    if not len(known):
        raise DataError("no value that was tried gives a model with a score; try others")
    return int(known[np.argmax(scores[known])])


def known_labels(y, classes: np.ndarray) -> np.ndarray:
    """(n,) labels; DataError for one that is not among the classes."""
    y = np.asarray(y)
    if other := y[~np.isin(y, classes)].tolist():
        raise DataError(f"y: {other[0]!r} is no label of this model; its labels are {', '.join(map(str, classes))}")
    return y
