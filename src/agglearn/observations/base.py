"""What a learner may see. An observation is data in memory: it holds no path and no label it does not declare."""

import contextlib
import hashlib
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
    `postprocessing` names what was done after the noise (`clipped`, `projected`), which costs no privacy.
    """

    mechanism: str
    scale: float
    epsilon: float
    delta: float = 0.0
    adjacency: str = "record"
    private: bool = False
    scales: dict[str, float] | None = None
    postprocessing: str = "none"

    def to_dict(self) -> dict:
        return asdict(self)


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
