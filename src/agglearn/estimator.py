"""Base classes of all learners, with scikit-learn's conventions and model files without pickle."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.encoding.columns import as_frame
from agglearn.encoding.frame import CodesEncoder
from agglearn.errors import DataError, NoiseIgnored
from agglearn.observations import ContingencyTables, LabelSums, NoiseSpec, Observation, Records
from agglearn.progress import verbosity
from agglearn.saving import Saved, check_classes, expect, is_learned
from agglearn.seeds import RandomState
from agglearn.settings import check_parameters, make_dataclass
from agglearn.text import list_some

__all__ = ["Estimator", "MetaEstimator", "RecordClassifier"]

_INSIDE_FIT = ContextVar("inside_fit", default=False)  # the fit of another learner, which has judged the noise


@dataclass_transform(eq_default=False, field_specifiers=(field,))
@dataclass(eq=False, repr=False)
class Estimator(Saved, BaseEstimator):
    """Base of a learner from one kind of observation.

    Subclasses set `observes` and write `_fit(observation)`. They are made dataclasses: parameters are fields, or
    arguments of an `__init__` of their own. Learned attributes end in an underscore: arrays, numbers, text, lists and dicts of these, encoders,
    estimators. After three seconds a fit shows its progress on a terminal, unless `verbose`, of the model or of
    `Estimator` for all learners, is False.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        Seed of what a learner draws, or None for a fresh one. Some learners draw nothing.
    """

    observes: ClassVar[type[Observation]]
    verbose = True  # no parameter, since it changes no result
    random_state: RandomState = field(default=None, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        make_dataclass(cls)

    @property
    def accounts_for_noise(self) -> bool:
        """Whether the learner uses what an observation states of its noise. Others fit the noise as if it were data."""
        return False

    _file = _title = "model"
    _advice = "; make one with `agglearn fit`"
    _maps_arrays = False

    def save(self, folder: Path | str) -> None:
        """Write `model.json` and `model.npz`: class, parameters and learned state.

        Parameters
        ----------
        folder : str or Path
        """
        check_is_fitted(self)
        super().save(folder)

    def _parameters(self) -> dict[str, Any]:
        return self.get_params(deep=False)

    @classmethod
    def _restore(cls, parameters: dict[str, Any]) -> Self:
        return cls(**parameters)

    def _check_state(self) -> None:
        if vars(self).get("encoder_") is not None:
            expect(self, encoder_=FrameEncoder)

    def __getattr__(self, name: str) -> Any:
        if is_learned(name):  # NotFittedError is an AttributeError too
            raise NotFittedError(f"this {type(self).__name__} has no {name!r}: it is not fitted yet; call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def fit(self, observation: Observation, y: None = None) -> Self:
        """Learn from an observation of the declared type, else DataError.

        NoiseIgnored warns of noise that the learner takes for data. ConfigError refuses a parameter of a wrong type.

        Parameters
        ----------
        observation, y : Observation, None
            Instance of `observes`, which holds the labels. scikit-learn's tools pass `y`, which must be None.
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
        if (message := self.describe_ignored_noise(observation)) and not _INSIDE_FIT.get():
            warnings.warn(message, NoiseIgnored, stacklevel=2)
        outer = _INSIDE_FIT.set(True)
        try:
            with verbosity(self.verbose):
                self._fit(observation)
        finally:
            _INSIDE_FIT.reset(outer)
        return self

    def warm_up(self) -> None:
        """Compile or load kernels, so that the time of a fit is that of learning: here those of learners it fits."""
        for parameter in self.get_params(deep=False).values():
            if isinstance(parameter, Estimator):
                parameter.warm_up()

    def describe_ignored_noise(self, observation: Observation) -> str | None:
        """Return one line that says which noise of an observation the learner would take for data, or None.

        Parameters
        ----------
        observation : Observation
        """
        noise = observation.noise
        if self.accounts_for_noise or not isinstance(noise, NoiseSpec):
            return None
        return (
            f"{type(self).__name__} takes noisy {type(observation).__name__} ({noise.summary}) "
            "for exact ones; use a learner that accounts for noise, such as NoiseAwareMaxEntClassifier for tables"
        )

    def _fit(self, observation: Any) -> None:
        raise NotImplementedError


class MetaEstimator(Estimator):
    """Base of a learner that fits another one, its `base`.

    Parameters
    ----------
    base, random_state : Estimator, see `Estimator`
    """

    base: Estimator

    @property
    def accounts_for_noise(self) -> bool:
        return self.base.accounts_for_noise

    def _check_base(self, observation: Observation) -> None:
        if not isinstance(observation, self.base.observes):
            raise DataError(f"{type(self.base).__name__} learns from {self.base.observes.__name__}")


class Classifier(ClassifierMixin, Estimator):
    """Learner that predicts labels. Subclasses set `classes_` and write `predict_proba(X)`."""

    classes_: np.ndarray = field(init=False)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """(n,) most probable labels."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def score(self, X: ArrayLike, y: Sequence | np.ndarray, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on rows with labels `y` (n,) and weights (n,). DataError for labels that are not in `classes_`."""
        return super().score(X, check_labels(y, self.classes_), sample_weight)


class RecordClassifier(Classifier):
    """Base of a learner that predicts the label of records from raw columns.

    After a fit to records with labels, `classes_` are these labels. Else the label is 1 for the value that was the
    positive one when the records were aggregated, and 0 for the other. Subclasses set
    `classes_` and `encoder_` (`_set_encoder`), and write `_predict_positive(X)` or `predict_proba(X)`.

    Parameters
    ----------
    random_state : see `Estimator`
    """

    encoder_: FrameEncoder = field(init=False)

    def _check_state(self) -> None:
        super()._check_state()
        check_classes(self, 2)

    def fit(self, observation: Observation | pd.DataFrame | np.ndarray, y: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Learn from an observation, or from records with labels, which are aggregated first.

        Numbers are then binned at their deciles, label sums have one coordinate per value, and nothing is private.
        `cross_val_score`, `Pipeline` and `GridSearchCV` of scikit-learn call it so. DataError for an observation of
        another type, labels that are missing or not of two classes, and noise as in `Estimator.fit`.

        Parameters
        ----------
        observation, y : Observation, DataFrame or ndarray of shape (n, D), ndarray of shape (n,) or None
            Instance of `observes`, which holds the labels, without `y`. Or raw columns, and their labels, of any type.
        """
        if y is None or isinstance(observation, Observation):
            return super().fit(observation, y)  # type: ignore[arg-type]  # which refuses another type
        learner: Any = self
        while learner.observes is Observation and hasattr(learner, "base"):
            learner = learner.base
        aggregate, classes = observe_records(learner.observes, observation, y)
        super().fit(aggregate)
        self.classes_ = classes
        return self

    def _set_encoder(self, encoder: FrameEncoder) -> None:
        self.classes_, self.encoder_ = np.array([0, 1]), encoder

    @property
    def feature_names_in_(self) -> np.ndarray:
        """(D,) names of the features, in order."""
        return np.array(self.encoder_.names, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """D, the number of features."""
        return len(self.feature_names_in_)

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def predict_proba(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        """Return (n, 2) probabilities of both labels.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, D)
            Raw columns, matched by name or, in an array, by position in `feature_names_in_`. Values that were not in
            the training data add nothing to the log-odds.
        """
        p = self._predict_positive(X)
        return np.column_stack([1 - p, p])


class StagedClassifier(RecordClassifier):
    """Also predicts by the stages of its fit: iterates, or candidates."""

    def staged_predict_proba(self, X: pd.DataFrame | np.ndarray) -> Iterator[tuple[float, float, np.ndarray]]:
        """(stage, seconds since the start or NaN, (n,) P(Y=1)) of every stage. NotAvailable if none was recorded."""
        raise NotImplementedError


def predict_codes(model: Estimator, codes: np.ndarray) -> np.ndarray:
    """(n,) P(Y = 1) for codes (n, D) of the model's encoder."""
    model = copy.copy(model)
    model.encoder_ = CodesEncoder(model.encoder_.features)
    return model.predict_proba(pd.DataFrame(codes))[:, 1]


def choose_best(scores: Sequence[float] | np.ndarray) -> int:
    """Index of the largest of (V,) scores, the first of equal ones. A diverged fit has NaN, which never wins."""
    scores = np.asarray(scores, float)
    valid = np.flatnonzero(~np.isnan(scores))
    if not len(valid):
        raise DataError("no value that was tried gives a model with a score; try others")
    return int(valid[np.argmax(scores[valid])])


def check_labels(y: Sequence | np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(n,) labels. DataError for one that is not among the classes."""
    y = np.asarray(y)
    if unknown := y[~np.isin(y, classes)].tolist():
        raise DataError(f"y: {unknown[0]!r} is no label of this model; its labels are {', '.join(map(str, classes))}")
    return y


def observe_records(
    kind: type[Observation], X: pd.DataFrame | np.ndarray, y: ArrayLike
) -> tuple[Observation, np.ndarray]:
    """The tables, label sums or records of labelled records, and the two labels in ascending order."""
    frame, labels, name = as_frame(X), np.asarray(y), "label"
    if labels.shape != (len(frame),):
        raise DataError(f"y: has shape {labels.shape} for {len(frame)} records; give one label for each")
    if (absent := pd.isna(labels)).any():
        raise DataError(f"y: record {int(np.argmax(absent)) + 1} has no label; leave it out")
    classes, codes = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    if len(classes) != 2:
        raise DataError(f"y: must have two classes, it has {len(classes)}: {list_some(classes)}")
    while name in frame.columns:
        name += "_"
    labelled = frame.assign(**{name: codes})
    if issubclass(kind, ContingencyTables):
        return ContingencyTables.from_records(labelled, name), classes
    records = Records.from_records(labelled, name)
    if issubclass(kind, LabelSums):
        mapped = FeatureMap.fit("onehot", records.encoder, records.frame)
        return LabelSums.from_map(mapped, records.frame, records.y, label=name), classes
    if issubclass(kind, Records):
        return records, classes
    raise DataError(f"records with labels cannot be made {kind.__name__}; make these, and call fit with them alone")
