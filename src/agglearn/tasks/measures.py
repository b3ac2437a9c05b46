"""What tasks measure: values, and the better direction and unit of each measure."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One measured value, by default of everything that was tested, and in the task's unit for the measure.

    Parameters
    ----------
    measure, value, keys, step, unit : str, float, dict or None, float or None, str or None
        What the value is about, by the names in `Task.KEYS` (text, numbers or lists), and its place on a curve.
    """

    measure: str
    value: float
    keys: dict[str, Any] | None = None
    step: float | None = None
    unit: str | None = None


Measurements = Iterator[Measurement]


def _list_measures(better: str, *names: str, unit: str = "") -> dict[str, tuple[str, str]]:
    return dict.fromkeys(names, (unit, better))


higher, lower, neither = (functools.partial(_list_measures, better) for better in ("higher", "lower", ""))


def select(measures: list[str], values: dict[str, float], keys: dict[str, Any] | None = None) -> Measurements:
    for name, value in values.items():
        if name in measures:
            yield Measurement(name, value, keys)
