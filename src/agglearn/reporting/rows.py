"""Rows of an experiment for the selections and groups of claims. Columns are read once and stored as codes."""

import json
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from agglearn.reporting.run_summary import CELL
from agglearn.reporting.summary import parameter

T = TypeVar("T")


class Rows:
    """A table of n rows, for many selections."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._cache: dict[tuple, Any] = {}

    def _once(self, key: tuple, compute: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    # -- selections ---------------------------------------------------------------------------------------------------

    def selected(self, selector: dict) -> np.ndarray:
        """(n,) whether a row has the values. A list allows several values. Null selects rows without the parameter."""
        masks = [self._mask(name, expected) for name, expected in selector.items()]
        return reduce(np.logical_and, masks, np.ones(len(self.frame), dtype=bool))

    def _mask(self, name: str, expected: object) -> np.ndarray:
        def compare() -> np.ndarray:
            codes, values = self.field(name)
            return np.array([_is(value, expected) for value in values], dtype=bool)[codes]

        return self._once(("mask", name, json.dumps(expected)), compare)

    def field(self, name: str) -> tuple[np.ndarray, list]:
        """(n,) codes of a column or of a parameter in one, and the value of each code. Two codes may have the same value."""
        return self._once(("field", name), lambda: self._read(*name.split(".")))

    def _read(self, column: str, *keys: str) -> tuple[np.ndarray, list]:
        if keys:
            codes, texts = self.field(column)
            return codes, [parameter(text, keys) for text in texts]
        codes, values = pd.factorize(self.frame[column], use_na_sentinel=False)
        return codes, [None if pd.isna(value) else value for value in values.tolist()]

    # -- (n,) columns of measurements ---------------------------------------------------------------------------------

    def number(self, name: str) -> np.ndarray:
        """A column of numbers, NaN where there is none."""
        return self._once(("number", name), lambda: self.frame[name].to_numpy(float))

    @property
    def ok(self) -> np.ndarray:
        """Whether the run has a result."""
        return self._mask("status", "ok")

    # -- (n,) groups: codes in the order of what they stand for ---------------------------------------------------------

    def replicates(self, by_part: bool) -> np.ndarray:
        """Seed, or seed and keys."""
        return self._group("seed", *["keys"] * by_part)

    def kinds(self, by_part: bool) -> np.ndarray:
        """Cell of a table, and keys unless they are of a replicate. Every replicate must have all of them."""
        return self._group(*CELL, *["keys"] * (not by_part))

    def curves(self) -> np.ndarray:
        """Data set, its parameters, seed. Curves of several methods are compared within a group."""
        return self._group("dataset", "dataset_params", "seed")

    def cells(self, freed: frozenset[str], by_part: bool) -> tuple[np.ndarray, np.ndarray]:
        """Data set, its parameters and keys without the fields in `freed`, and the same with the replicate."""

        def group() -> tuple[np.ndarray, np.ndarray]:
            data = [] if "dataset" in freed else [self._codes("dataset"), self._reduced("dataset_params", freed)]
            keys = [] if by_part else [self._reduced("keys", freed)]
            cells = _together(np.zeros(len(self.frame), dtype=int), *data, *keys)
            return cells, _together(cells, self.replicates(by_part))

        return self._once(("cells", freed, by_part), group)

    def _reduced(self, name: str, freed: frozenset[str]) -> np.ndarray:
        codes, texts = self.field(name)
        return _ranked(codes, [_without(text, name, freed) for text in texts])

    def _group(self, *names: str) -> np.ndarray:
        return self._once(("group", names), lambda: _together(*map(self._codes, names)))

    def _codes(self, name: str) -> np.ndarray:
        codes, values = self.field(name)
        return _ranked(codes, ["" if value is None else value for value in values])


def _is(value: object, expected: object) -> bool:
    if expected is None:
        return value is None
    return value in expected if isinstance(expected, list) else value == expected


def _ranked(codes: np.ndarray, values: list) -> np.ndarray:
    """Codes in the order of the values, one for equal values."""
    rank = {value: k for k, value in enumerate(sorted(set(values)))}
    return np.array([rank[value] for value in values], dtype=int)[codes]


def _together(*codes: np.ndarray) -> np.ndarray:
    """One code per combination, the first of which comes first in the order."""
    return reduce(lambda a, b: np.unique(a * (b.max(initial=0) + 1) + b, return_inverse=True)[1], codes)


def _without(text: str | None, name: str, freed: frozenset[str]) -> str:
    values = json.loads(text) if text else {}
    return json.dumps({k: v for k, v in values.items() if f"{name}.{k}" not in freed}, sort_keys=True)
