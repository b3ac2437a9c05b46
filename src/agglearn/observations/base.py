"""What a learner may see. An observation is data in memory: it holds no path and no label it does not declare."""

import contextlib
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Self

from agglearn.errors import AgglearnError, DataError


@dataclass(frozen=True)
class NoiseSpec:
    """Privacy noise in an observation: how it was drawn and what it promises.

    `private` is true only when the noise was drawn unseeded through OpenDP; seeded noise of experiments is not
    private, whatever its epsilon. `adjacency` says how neighbouring data sets differ: in one `record` or `label`.
    `scales` holds the scale per table (and of the `totals`) where they differ; `scale` is then the largest.
    `postprocessing` names what was done after the noise (`clipped`, `projected`), which costs no privacy. `unprotected` says
    in words why noise that OpenDP drew makes the whole no private release.
    """

    mechanism: str
    scale: float
    epsilon: float
    delta: float = 0.0
    adjacency: str = "record"
    private: bool = False
    scales: dict[str, float] | None = None
    postprocessing: str = "none"
    unprotected: str = ""

    @property
    def meaning(self) -> str:
        """The promise for a person who does not know what ε is."""
        if not self.private:
            return f"Not private: {self.unprotected or 'this is the seeded noise of an experiment, which can be drawn again'}."
        change = {
            "record": "with any one record as without it",
            "label": "with one label of a record as with the other",
        }[self.adjacency]
        factor = math.exp(min(self.epsilon, 100))
        times = f"{factor:.3g}" if factor < 1000 else f"{factor:,.0f}" if factor < 1e15 else f"e^{self.epsilon:g}"
        but = f", but for a probability of {self.delta:g} (delta)" if self.delta else ""
        words = f"Whatever is learned from these numbers is at most {times} times as likely {change} (epsilon {self.epsilon:g}){but}."
        return words + (" Features are public and stand here as they are." if self.adjacency == "label" else "")

    def to_dict(self) -> dict:
        return asdict(self) | {"meaning": self.meaning}

    @classmethod
    def from_dict(cls, state: dict | None) -> "NoiseSpec | None":
        """What `to_dict` gave, or None."""
        return state and cls(**{k: v for k, v in state.items() if k != "meaning"})


class Observation(ABC):
    """Base of everything that a learner may be given.

    `shares_features`: `save` takes a folder where features of records are kept once for all, and refers to them.
    """

    noise: NoiseSpec | None = None
    shares_features: ClassVar[bool] = False

    @abstractmethod
    def save(self, folder) -> None:
        """Write the observation into an existing or new folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder) -> Self:
        """Read what `save` wrote."""

    @abstractmethod
    def _fingerprint(self, hasher) -> None:
        """Feed every value that a learner could see into the hasher."""

    @property
    def digest(self) -> str:
        """Digest of the content: equal for equal observations, wherever they lie."""
        hasher = hashlib.sha256(type(self).__name__.encode())
        self._fingerprint(hasher)
        return hasher.hexdigest()[:16]


@contextlib.contextmanager
def reading(folder, what: str) -> Iterator[None]:
    """Turn whatever a damaged or foreign folder makes fail into one DataError that names the folder."""
    try:
        yield
    except AgglearnError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DataError(f"{folder}: damaged, or not {what} made by agglearn ({said}); make it again") from error


def prepared(folder) -> Path:
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
