"""Base of all learners: scikit-learn manners, a declared observation type, and models without pickle."""

import json
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding import FrameEncoder
from agglearn.errors import DataError
from agglearn.observations import Observation
from agglearn.observations.base import prepared, reading
from agglearn.registry import resolve


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

    def save(self, folder) -> None:
        """Write `model.json` and `model.npz`: class, parameters and learned state."""
        check_is_fitted(self)
        folder, arrays = prepared(folder), {}
        state = _described(self, "", arrays)
        np.savez_compressed(folder / "model.npz", **arrays)
        (folder / "model.json").write_text(json.dumps(state, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder) -> Self:
        """Read a model that `save` wrote; called on `Estimator` it gives whatever class was saved."""
        folder = Path(folder)
        if not (folder / "model.json").is_file():
            raise DataError(f"{folder}: no model here (model.json is missing); make one with `agglearn fit`")
        with reading(folder, "a model"):
            state = json.loads((folder / "model.json").read_text())
            found = resolve(state["class"])
            if not issubclass(found, cls):
                raise DataError(f"{folder}: holds a {found.__name__}, not a {cls.__name__}")
            with np.load(folder / "model.npz") as arrays:
                return _restored(state, arrays)


def _described(model: Estimator, path: str, arrays: dict) -> dict:
    """JSON for a model: class, parameters (those that are estimators described in turn) and learned state."""
    learned = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_") and k != "trace_"}
    params = model.get_params(deep=False).items()
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "params": {k: _pack(v, f"{path}params.{k}", arrays) if isinstance(v, Estimator) else v for k, v in params},
        "state": {k: _pack(v, f"{path}{k}", arrays) for k, v in learned.items()},
    }


def _restored(state: dict, arrays) -> Estimator:
    params = {k: _unpack(v, arrays) if _is_estimator(v) else v for k, v in state["params"].items()}
    model = resolve(state["class"])(**params)
    for key, value in state["state"].items():
        setattr(model, key, _unpack(value, arrays))
    return model


def _is_estimator(value) -> bool:
    return isinstance(value, dict) and "__estimator__" in value


def _pack(value, path, arrays):
    """JSON for a learned value; arrays go to `arrays` under their path."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            raise TypeError(f"{path}: an array of objects cannot be kept without pickle; use a list")
        arrays[path] = value
        return {"__array__": path}
    if isinstance(value, FrameEncoder):
        return {"__encoder__": value.to_dict()}
    if isinstance(value, Estimator):
        return {"__estimator__": _described(value, f"{path}.", arrays)}
    if isinstance(value, dict):
        return {
            "__dict__": [
                [_pack(k, f"{path}.k{i}", arrays), _pack(v, f"{path}.{i}", arrays)]
                for i, (k, v) in enumerate(value.items())
            ]
        }
    if isinstance(value, tuple):
        return {"__tuple__": [_pack(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [_pack(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _unpack(value, arrays):
    if isinstance(value, list):
        return [_unpack(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    [(kind, inner)] = value.items()
    if kind == "__array__":
        return arrays[inner]
    if kind == "__encoder__":
        return FrameEncoder.from_dict(inner)
    if kind == "__estimator__":
        return _restored(inner, arrays)
    if kind == "__tuple__":
        return tuple(_unpack(v, arrays) for v in inner)
    return {_unpack(k, arrays): _unpack(v, arrays) for k, v in inner}
