"""A task says what a learner may see and how it is judged; nothing else differs between papers."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from agglearn.datasets import Dataset, Population, RecordStore
from agglearn.errors import ConfigError
from agglearn.observations import Observation
from agglearn.settings import keys_at_fault, parameters


@dataclass(frozen=True)
class Measurement:
    """One measured value. `item` names what it is about (a region, an edge), `step` orders a curve."""

    measure: str
    value: float
    item: str | None = None
    step: float | None = None
    unit: str | None = None  # the task's unit for the measure by default


@dataclass(frozen=True)
class Source:
    """What a task observes: stored records, or a drawn population.

    Attributes
    ----------
    name, entry : the data set and its configuration.
    params : the experiment's parameters for it.
    data : RecordStore or whatever the simulator drew.
    """

    name: str
    entry: dict
    params: dict
    data: RecordStore | Population | Any


class Truth(ABC):
    """What only the evaluator opens. `shares_features` as in `Observation`."""

    shares_features: ClassVar[bool] = False

    @abstractmethod
    def save(self, folder: Path) -> None: ...

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self: ...

    @abstractmethod
    def units(self) -> Iterable[np.ndarray]:
        """Arrays that tell the tested units from others: labels or targets, and never features, which may be encoded."""

    @property
    def tested(self) -> str:
        """Digest of the tested units. Two runs are a pair only where it is the same."""
        hasher = hashlib.sha256()
        for array in map(np.ascontiguousarray, self.units()):
            hasher.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        return hasher.hexdigest()[:16]


class Task(ABC):
    """Observes a source and measures an estimator against the truth.

    Subclasses name every measure in `MEASURES`: name → (unit, which way is better: higher, lower or ""). They name in
    `OBSERVATIONS` what they make: (data set, observation, keys that an experiment may set of the one, of the other), a
    tuple for each, the most special data sets first; keys are a TypedDict. A simulated data set takes the keys of its constructor.
    """

    MEASURES: ClassVar[dict[str, tuple[str, str]]] = {}
    OBSERVATIONS: ClassVar[tuple[tuple[type[Dataset], type[Observation], type, type], ...]] = ()
    truth: ClassVar[type[Truth]]

    @abstractmethod
    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int) -> tuple[Observation, Truth]:
        """What is seen, and the truth that is not. `params` are the experiment's for this observation."""

    def overlap(self, source: Source) -> float:
        """Test units per training unit, where every seed splits one pool of units anew; 0 where the split is fixed, and
        where every seed draws new units. Results of such splits are correlated, since they share units."""
        return 0.0

    def check_observation(self, kind: type[Observation], params: dict) -> None:
        """Check that the task makes an observation, with these parameters.

        Raises
        ------
        ConfigError : it does not, or a parameter is unknown or has a value that it cannot have.
        """
        ways = [keys for _, made, _, keys in self.OBSERVATIONS if issubclass(kind, made)]
        if not ways:
            known = ", ".join(sorted({made.__name__ for _, made, _, _ in self.OBSERVATIONS}))
            raise ConfigError(f"observe: {type(self).__name__} cannot make {kind.__name__}; it makes {known}")
        found = [list(keys_at_fault(kind.__name__, parameters(keys), params, "observe")) for keys in ways]
        for place, what in min(found, key=len):
            raise ConfigError(f"{place}: {what}")

    @abstractmethod
    def measure(self, estimator, truth: Truth, measures: list[str]) -> Iterator[Measurement]:
        """Measurements of a fitted estimator; only those named in `measures` are wanted."""
