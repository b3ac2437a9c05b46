"""All that a learner may be given. An observation is data in memory: it holds no path and no label it does not declare."""

import contextlib
import errno
import hashlib
import math
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

from agglearn.errors import AgglearnError, DataError
from agglearn.machine import memory_bytes


class Hasher(Protocol):
    """An object of `hashlib`."""

    def update(self, data: bytes, /) -> None:
        """Feed bytes."""


@dataclass(frozen=True)
class NoiseSpec:
    """Privacy noise in an observation: its mechanism, and the privacy guarantee.

    Parameters
    ----------
    mechanism : str
        One of `agglearn.privacy.MECHANISMS`.
    scale : float
        Of the noise. Where tables have scales of their own, the largest.
    epsilon, delta : float
        Parameters of the guarantee.
    adjacency : str
        How neighbouring data sets differ: in one `record` or in one `label`.
    private : bool
        Whether OpenDP drew the noise without a seed. Seeded noise of experiments is not private, whatever its epsilon.
    scales : dict[str, float] or None
        {name of a table, or `totals`: scale}, where the scales differ.
    postprocessing : str
        The step after the noise (`clipped`, `projected`), which costs no privacy.
    unprotected : str
        Why noise that OpenDP drew does not make the whole a private release, in words.
    stated_sensitivity : float
        Sensitivity that the publisher stated where no features show it, or 0.
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
    stated_sensitivity: float = 0.0

    @property
    def meaning(self) -> str:
        """The guarantee in words for a person who does not know what ε is."""
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
        if self.adjacency == "label":
            words += " Features are public and stand here as they are."
        if self.stated_sensitivity:
            words += (
                f" The sensitivity of {self.stated_sensitivity:g} was stated by the publisher, and no features show it."
            )
        return words

    def to_dict(self) -> dict:
        """The fields and `meaning`, for JSON."""
        return asdict(self) | {"meaning": self.meaning}

    @classmethod
    def from_dict(cls, state: dict | None) -> Self | None:
        """Restore the result of `to_dict`. None for None."""
        return None if state is None else cls(**{k: v for k, v in state.items() if k != "meaning"})


class Observation(ABC):
    """Base of everything that a learner may be given.

    `shares_features`: `save` takes a second folder for the features of records, which several observations refer to.
    """

    shares_features: ClassVar[bool] = False

    @property
    def noise(self) -> NoiseSpec | str | None:
        """How noise was added, or None."""
        return None

    @abstractmethod
    def save(self, folder: str | Path) -> None:
        """Write the observation.

        Parameters
        ----------
        folder : str or Path
            Existing or new folder.
        """

    @classmethod
    @abstractmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the files that `save` wrote."""

    @abstractmethod
    def _fingerprint(self, hasher: Hasher) -> None:
        """Feed every value that a learner could use into the hasher."""

    @property
    def digest(self) -> str:
        """Digest of the content: equal for equal observations, wherever they are stored."""
        hasher = hashlib.sha256(type(self).__name__.encode())
        self._fingerprint(hasher)
        return hasher.hexdigest()[:16]


@contextlib.contextmanager
def refuse_damaged(folder: str | Path, kind: str) -> Iterator[None]:
    """Turn any error while a damaged or foreign folder is read into one DataError that names the folder.

    Refused before they are read: pipes and devices, which may never end, and arrays that unpacked do not fit into memory.
    """
    for path in Path(folder).glob("*"):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise DataError(f"{path}: is no file, but a pipe or a device; remove it")
        if path.suffix == ".npz" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > memory_bytes():
                raise DataError(f"{path}: unpacked it has {size:,} bytes, more than this machine's memory")
    try:
        yield
    except AgglearnError:
        raise
    except PermissionError as error:
        raise DataError(f"{error.filename or folder}: cannot be read ({os.strerror(errno.EACCES)})") from error
    except Exception as error:
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DataError(f"{folder}: damaged, or not {kind} made by agglearn ({message}); make it again") from error


def make_folder(folder: str | Path) -> Path:
    """The folder, made where it is missing."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path
