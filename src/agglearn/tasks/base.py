"""A task says what a learner may see and how it is judged; nothing else differs between papers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from agglearn.datasets import Population, RecordStore
from agglearn.observations import Observation


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


class Task(ABC):
    """Observes a source and measures an estimator against the truth.

    Subclasses name every measure in `MEASURES`: name → (unit, which way is better: higher, lower or "").
    """

    MEASURES: ClassVar[dict[str, tuple[str, str]]] = {}
    truth: ClassVar[type[Truth]]

    @abstractmethod
    def observe(self, source: Source, kind: type[Observation], params: dict, seed: int) -> tuple[Observation, Truth]:
        """What is seen, and the truth that is not. `params` are the experiment's for this observation."""

    @abstractmethod
    def measure(self, estimator, truth: Truth, measures: list[str]) -> Iterator[Measurement]:
        """Measurements of a fitted estimator; only those named in `measures` are wanted."""
