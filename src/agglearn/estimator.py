"""Base of all learners: scikit-learn manners, a declared observation type, and models without pickle."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from agglearn.errors import DataError
from agglearn.observations import Observation
from agglearn.observations.base import prepared, reading
from agglearn.persistence import read_model, write_model


class Estimator(BaseEstimator):
    """A learner from one kind of observation.

    Subclasses set `observes` and write `_fit(observation, selection)`. Parameters live in `__init__`, learned state in
    attributes that end in an underscore: arrays, numbers, text, lists and dicts of these, encoders, estimators;
    that is what `save` keeps.
    """

    observes: ClassVar[type[Observation]]

    def fit(self, observation, selection=None) -> Self:
        """Learn from an observation of the declared type.

        Parameters
        ----------
        observation : instance of `observes`; anything else is refused.
        selection : what tuning may look at besides, or None.
        """
        if not isinstance(observation, self.observes):
            raise DataError(
                f"{type(self).__name__} learns from {self.observes.__name__}, not from {type(observation).__name__}"
            )
        self._fit(observation, selection)
        return self

    def _fit(self, observation, selection) -> None:
        raise NotImplementedError

    def _check_state(self) -> None:
        """Refuse learned state of a loaded model that predictions cannot use, see `agglearn.persistence.expect`.

        Raises
        ------
        DataError : an attribute is missing, of another type or of another shape.
        """

    def save(self, folder) -> None:
        """Write `model.json` and `model.npz`: class, parameters and learned state."""
        check_is_fitted(self)
        write_model(self, prepared(folder))

    @classmethod
    def load(cls, folder, trusted: Iterable[str] = ()) -> Self:
        """Read a model that `save` wrote. Called on `Estimator` it gives whatever class was saved.

        Parameters
        ----------
        folder : model folder. Reading it runs no code but that of this package and of what is trusted.
        trusted : dotted names of classes, modules or packages outside this package that the folder may name.

        Raises
        ------
        DataError : no model, a damaged one, another class, or one that is not trusted.
        """
        folder = Path(folder)
        if not (folder / "model.json").is_file():
            raise DataError(f"{folder}: no model here (model.json is missing); make one with `agglearn fit`")
        with reading(folder, "a model"):
            model = read_model(folder, trusted)
        if not isinstance(model, cls):
            raise DataError(f"{folder}: holds a {type(model).__name__}, not a {cls.__name__}")
        return model
