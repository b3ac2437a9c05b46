"""Base classes of tasks, which make observations for learners and measure learners against a truth they never get."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from agglearn.datasets import Dataset, RecordStore
from agglearn.errors import ConfigError
from agglearn.estimator import Estimator
from agglearn.observations import Observation
from agglearn.saving import Saved
from agglearn.settings import check, keys_at_fault, parameters
from agglearn.tasks.measures import Measurements

Kind = type[Observation]  # which observation a task makes


@dataclass(frozen=True)
class TaskInput:
    """What a task observes: stored records, or a drawn population.

    Parameters
    ----------
    name, entry, params, data : str, dict, dict, RecordStore or population
        Name of the data set, its entry in `config/datasets/`, the experiment's parameters for it, and the data.
    """

    name: str
    entry: dict
    params: dict
    data: Any


class Truth(ABC, Saved):
    """What a learner is judged by. Learners never get it. Subclasses are dataclasses."""

    _file = _title = "truth"

    @abstractmethod
    def units(self) -> Iterable[np.ndarray]:
        """Arrays that identify the tested units: labels or targets, not features, which may be encoded."""

    @property
    def tested(self) -> str:
        """Digest of the tested units. Two runs are a pair only where it is the same."""
        hasher = hashlib.sha256()
        for array in map(np.ascontiguousarray, self.units()):
            hasher.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        return hasher.hexdigest()[:16]


TruthT = TypeVar("TruthT", bound=Truth)


class Task(ABC, Generic[TruthT]):
    """Observes data and measures an estimator against the truth.

    `MEASURES`: measure → (unit, better direction: higher, lower or ""). `KEYS`: names of what a value may be about.
    `OBSERVATIONS`: (class of the data set, class of the observation, keys of the data set, keys of the observation),
    special data sets before general ones. Keys are a TypedDict. Those of a simulated data set are its constructor's.
    """

    MEASURES: ClassVar[dict[str, tuple[str, str]]] = {}
    KEYS: ClassVar[tuple[str, ...]] = ()
    OBSERVATIONS: ClassVar[tuple[tuple[type[Dataset], type[Observation], type, type], ...]] = ()
    truth: ClassVar[type[Truth]]

    @abstractmethod
    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, TruthT]:
        """Make an observation and the truth that belongs to it.

        Parameters
        ----------
        inputs, kind, params, seed : TaskInput, type[Observation], dict, int
            What is observed, as what, with which parameters, and the seed of the split and of what is drawn.
        """

    def overlap(self, inputs: TaskInput) -> float:
        """Test units per training unit where every seed splits the same units anew (correlated results), else 0.

        Parameters
        ----------
        inputs : TaskInput
        """
        return 0.0

    def check_observation(self, kind: Kind, params: dict) -> None:
        """Refuse, by a ConfigError, an observation that the task does not make, or parameters that it does not take.

        Parameters
        ----------
        kind, params : type[Observation], dict
        """
        allowed = [keys for _, observation, _, keys in self.OBSERVATIONS if issubclass(kind, observation)]
        if not allowed:
            names = ", ".join(sorted({observation.__name__ for _, observation, _, _ in self.OBSERVATIONS}))
            raise ConfigError(f"observe: {type(self).__name__} cannot make {kind.__name__}; it makes {names}")
        allowed.sort(key=lambda keys: -len(keys.__annotations__))  # where faults are as many, the most keys are named
        faults = [list(keys_at_fault(kind.__name__, parameters(keys), params, "observe")) for keys in allowed]
        for key, problem in min(faults, key=len):
            raise ConfigError(f"{key}: {problem}")

    @abstractmethod
    def measure(self, estimator: Estimator, truth: TruthT, measures: list[str]) -> Measurements:
        """Measure a fitted estimator.

        Parameters
        ----------
        estimator, truth, measures : Estimator, Truth, list of str
            `truth` is what `observe` returned. Measures that the experiment does not use may be left out.
        """


def check_stored(inputs: TaskInput, keys: type) -> None:
    """Check the experiment's parameters for stored records. Those of a simulator are checked when it draws."""
    if isinstance(inputs.data, RecordStore):
        check(keys, inputs.params, inputs.name)
