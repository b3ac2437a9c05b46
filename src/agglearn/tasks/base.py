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
from agglearn.settings import keys_at_fault, parameters
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

    def check_observation(self, inputs: TaskInput, kind: Kind, params: dict) -> None:
        """Refuse, by a ConfigError, an observation that the task does not make, or keys that it does not take.

        Parameters
        ----------
        inputs, kind, params : TaskInput, type[Observation], dict
            Parameters of stored records are checked, too. Those of a simulator are checked when it is made.
        """
        ways = [keys for _, observation, *keys in self.OBSERVATIONS if issubclass(kind, observation)]
        if not ways:
            names = ", ".join(sorted({observation.__name__ for _, observation, _, _ in self.OBSERVATIONS}))
            raise ConfigError(f"observe: {type(self).__name__} cannot make {kind.__name__}; it makes {names}")
        # where faults are as many, the most keys are named
        ways.sort(key=lambda keys: -sum(len(k.__annotations__) for k in keys))
        stored = inputs.params if isinstance(inputs.data, RecordStore) else {}
        faults = []
        for source, observed in ways:
            of_source = keys_at_fault("it", parameters(source), stored, inputs.name)
            faults.append([*of_source, *keys_at_fault(kind.__name__, parameters(observed), params, "observe")])
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
