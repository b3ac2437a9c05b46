"""What tasks measure: values, and the better direction and unit of each measure."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One measured value.

    Parameters
    ----------
    measure, value : str, float
    keys : dict, optional
        What the value is about, by the names in `Task.KEYS`: text, numbers or lists. By default everything that was tested.
    step, unit : float, str, optional
        Place of the value on a curve, and its unit, by default the task's unit for the measure.
    """

    measure: str
    value: float
    keys: dict[str, Any] | None = None
    step: float | None = None
    unit: str | None = None


Measurements = Iterator[Measurement]


def _list_measures(better: str, *names: str, unit: str = "") -> dict[str, tuple[str, str]]:
    """Some of `Task.MEASURES`, which have the better direction and the unit in common."""
    return dict.fromkeys(names, (unit, better))


higher, lower, neither = (functools.partial(_list_measures, better) for better in ("higher", "lower", ""))


def select(measures: list[str], values: dict[str, float], keys: dict[str, Any] | None = None) -> Measurements:
    """Measurements of the values whose measures an experiment uses."""
    for name, value in values.items():
        if name in measures:
            yield Measurement(name, value, keys)
