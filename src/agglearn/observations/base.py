"""All that a learner may be given: data in memory, which hold no path and no label that they do not declare."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from agglearn.errors import DataError
from agglearn.observations.units import SINGLE, Unit
from agglearn.saving import Packed, Saved


@dataclass(frozen=True)
class NoiseSpec(Saved):
    """Privacy noise in an observation: its mechanism, and the privacy guarantee.

    Parameters
    ----------
    mechanism, scale : str, float
        One of `agglearn.privacy.MECHANISMS`, and its scale, the largest where tables have scales of their own.
    epsilon, delta, adjacency : float, float, str
        Parameters of the guarantee, and how neighbouring data sets differ: in one `record`, one `unit`, one `label`.
    private, scales : bool, dict[str, float] or None
        Whether OpenDP drew it without a seed (seeded noise is not private, whatever ε), and {table or `totals`: scale}.
    postprocessing, unprotected : str
        The step after the noise (`clipped`, `projected`), and why OpenDP's noise does not make the whole private.
    stated_sensitivity, threshold : float
        Sensitivity that the publisher stated where no features show it, or 0. Cells whose count, with its noise, is
        below the threshold are in no table: they are censored in [0, threshold). 0 for none.
    unit : Unit
        Whose the records are: neighbours differ in all records, or labels, of one unit.
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
    threshold: float = 0.0
    unit: Unit = SINGLE
    # the guarantee for a person who does not know what ε is
    meaning: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "meaning", self._describe())

    @property
    def summary(self) -> str:
        """`gaussian noise, scale 20`, `a threshold of 50`, or both."""
        noise = [f"{self.mechanism.replace('_', ' ')} noise, scale {self.scale:.4g}"] if self.scale else []
        return ", and ".join(noise + ([f"a threshold of {self.threshold:g}"] if self.threshold else []))

    def _describe(self) -> str:
        if not self.private:
            return f"Not private: {self.unprotected or 'this is the seeded noise of an experiment, which can be drawn again'}."
        by_label = self.adjacency == "label"
        change = "with one label of a record as with the other" if by_label else "with any one record as without it"
        if unit := self.unit.column:
            change = f"with all records of any one {unit} as with{' other labels of' if by_label else 'out'} them"
        factor = math.exp(min(self.epsilon, 100))
        times = f"{factor:.3g}" if factor < 1000 else f"{factor:,.0f}" if factor < 1e15 else f"e^{self.epsilon:g}"
        but = f", but for a probability of {self.delta:g} (delta)" if self.delta else ""
        words = f"Whatever is learned from these numbers is at most {times} times as likely {change} (epsilon {self.epsilon:g}){but}."
        words += f" At most {self.unit.max_rows} of each count." if unit else " A record is taken for a person."
        if by_label:
            words += " Features are public and stand here as they are."
        if self.stated_sensitivity:
            stated = f"{self.stated_sensitivity:g} was stated by the publisher, and no features show it"
            words += f" The sensitivity of {stated}."
        return words


def map_scales(noise: NoiseSpec, change: Callable[[float], float]) -> NoiseSpec:
    scales = noise.scales and {name: change(scale) for name, scale in noise.scales.items()}
    return replace(noise, scale=change(noise.scale), scales=scales)


def check_weights(weights: ArrayLike, n: int) -> np.ndarray:
    """(n,) weights of records, as floats."""
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(f"weights: must be ({n},) finite numbers from 0 on, got shape {weights.shape}")
    return weights


class Observation(Saved):
    """Base of everything that a learner may be given. Subclasses are dataclasses."""

    _file = _title = "observation"

    @property
    def noise(self) -> NoiseSpec | str | None:
        return None

    @property
    def digest(self) -> str:
        """Digest of the content: equal for equal observations, wherever they are stored."""
        return Packed(self).digest()
