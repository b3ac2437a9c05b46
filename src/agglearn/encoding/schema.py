"""Declared schemas: bins, categories and label values that a person fixed without records.
Fitted encoders show facts on their records (categories, edges, missing values), which noise on counts does not hide.
"""

import itertools
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import yaml

from agglearn.encoding.binned import BinnedEncoder
from agglearn.encoding.categorical import CategoricalEncoder
from agglearn.encoding.columns import as_text, distinct, first_repeated, spell
from agglearn.encoding.frame import FeatureEncoder, FrameEncoder
from agglearn.encoding.hashing import HashedEncoder
from agglearn.encoding.labels import swapped_label
from agglearn.errors import ConfigError, DataError, RecordsLeftOut
from agglearn.text import is_buckets

KEYS = ("reviewed", "label", "features")
MaxRows = int | Literal["auto"]
KINDS = ("values", "edges", "buckets")
FLAGS = {"true": True, "false": False}
LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True)
class Schema:
    """Label and features of records, as a person declared them. Records with any other label are left out.

    Parameters
    ----------
    label, positive, negative, encoder : str, str, str, FrameEncoder
        Column of the label, and its values, as text. Features have `other` for values that are not declared.
    unit, max_rows, one_row_per_person : str or None, int or `auto` or None, bool
        Column that names whose a record is, the most records that count of each, and in their place the statement that
        nobody has two. A private release needs one of both.
    """

    label: str
    positive: str
    negative: str
    encoder: FrameEncoder
    unit: str | None = None
    max_rows: MaxRows | None = None
    one_row_per_person: bool = False

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """A schema from a YAML file (form: docs/privacy.md). ConfigError where it is absent, wrong or not reviewed."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text: str) -> Self:
        """A schema from YAML, ConfigError as of `read`. Every scalar is text: `yes`, `01` and `3.0` stay as written."""
        try:
            state = yaml.load(text, _AsText)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            position = f"line {mark.line + 1}: " if mark else ""
            raise ConfigError(f"{position}not valid YAML: {getattr(error, 'problem', None) or error}") from None
        state = _mapping("the schema", state, (*KEYS, "unit", "max_rows", "one_row_per_person"), KEYS)
        if not _flag("reviewed", state["reviewed"]):
            advice = "Read it, edit it, then set reviewed: true"
            raise ConfigError(f"reviewed: is false; a draft is made from records and tells of them. {advice}")
        keys = ("column", "positive", "negative")
        label = _mapping("label", state["label"], keys, keys)
        for key, value in label.items():
            if not (isinstance(value, str) and value):
                raise ConfigError(f"label: {key} is empty; name the column of the label and its two values")
        label |= {key: spell(label[key]) for key in keys[1:]}
        if label["positive"] == label["negative"]:
            raise ConfigError(f"label: positive and negative are both {label['positive']!r}")
        if wrong := swapped_label(label["positive"], label["negative"]):
            raise ConfigError(f"label: {wrong}")
        features = _mapping("features", state["features"])
        if label["column"] in features:
            raise ConfigError(f"features: {label['column']!r} is the label; leave it out")
        encoder = FrameEncoder(tuple(_feature(n, f) for n, f in features.items()), "declared")
        unit, single, max_rows = state.get("unit"), state.get("one_row_per_person", "false"), state.get("max_rows")
        max_rows = int(max_rows) if isinstance(max_rows, str) and is_buckets(max_rows) else max_rows
        if "unit" in state and not (isinstance(unit, str) and unit):
            raise ConfigError("unit: is empty; name the column that tells whose a record is")
        if _flag("one_row_per_person", single) and unit is not None:
            raise ConfigError(f"one_row_per_person: is true, and the unit is {unit!r}; state one of them")
        state_unit(unit, max_rows, label["column"], encoder.names)
        return cls(label["column"], label["positive"], label["negative"], encoder, unit, max_rows, FLAGS[single])

    def labels(self, column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """(m,) int8 labels of records that have a declared one, and (n,) whether each has. Checks as `check_labels`.

        Parameters
        ----------
        column : Series
        """
        index, values = distinct(column)
        spelt = as_text(values)
        codes = spelt.map({self.positive: 1, self.negative: 0}).to_numpy(float)
        y = np.append(codes, np.nan)[index]
        labelled = ~np.isnan(y)
        self.check_labels(int(np.nansum(y)), int(labelled.sum()), len(y), spelt)
        return y[labelled].astype(np.int8), labelled

    def check_labels(self, positives: int, labelled: int, records: int, labels: Iterable[str] = ()) -> None:
        """Raise DataError without a positive record, and warn (`RecordsLeftOut`) of other labels than the declared two.

        Parameters
        ----------
        positives, labelled, records, labels : int, int, int, Iterable[str]
            Records with the positive label, with either, and all. Labels that occur are for the message.
        """
        if not positives:
            occurring = ", ".join(f"{label!r:.40}" for label in sorted(set(labels))[:5])
            hint = f" (they have {occurring})" if occurring else ""
            value = f"the positive value {self.positive!r}{hint}"
            raise DataError(f"label {self.label!r}: none of {records:,} records has {value}; mend it in the schema")
        if labelled < records:
            left_out = f"{records - labelled:,} of {records:,} records are left out"
            message = f"label {self.label!r}: {left_out}, which have neither {self.positive!r} nor {self.negative!r}"
            warnings.warn(message, RecordsLeftOut, stacklevel=3)

    def refuse(self, label: str | None = None, **declared: object) -> None:
        """Raise ConfigError for another label than the schema's, and for other settings beside it that are not empty.

        Parameters
        ----------
        label, **declared : str or None, object
        """
        if label is not None and str(label) != self.label:
            raise ConfigError(f"label: {label!r} is not that of the schema, {self.label!r}; leave it out")
        for name, value in declared.items():
            if value:
                raise ConfigError(f"{name}: the schema declares it; leave it out")


def state_unit(
    unit: str | None, max_rows: MaxRows | None, label: str, features: Iterable[str], schema: Schema | None = None
) -> tuple[str | None, MaxRows | None]:
    """The unit and the most records of each, by arguments or by a schema. ConfigError for what does not go together."""
    unit = None if unit is None else str(unit)
    if schema is not None:
        if schema.one_row_per_person and unit is not None:
            raise ConfigError("unit: the schema states one row per person; leave it out")
        for name, declared, asked in (("unit", schema.unit, unit), ("max_rows", schema.max_rows, max_rows)):
            if None not in (declared, asked) and declared != asked:
                raise ConfigError(f"{name}: {asked!r} is not that of the schema, {declared!r}; leave it out")
        unit, max_rows = schema.unit or unit, schema.max_rows or max_rows
    role = "the label" if unit == label else "a feature"
    is_bound = max_rows in (None, "auto") or (type(max_rows) is int and max_rows >= 1)
    faults = {
        "max_rows: needs a unit, the column that tells whose a record is": unit is None and max_rows is not None,
        f"unit: {unit!r} is {role} too; it tells whose a record is, so leave one out": unit
        and unit in (label, *features),
        f"max_rows: how many records of each {unit!r} count? give a number, or auto": unit and max_rows is None,
        f"max_rows: {max_rows!r:.40} is neither a whole number from 1 on nor auto": not is_bound,
    }
    for fault in (text for text, wrong in faults.items() if wrong):
        raise ConfigError(fault)
    return unit, max_rows


class _AsText(LOADER):
    """Loads plain text in place of numbers, dates and booleans, and refuses keys that stand twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        if (key := first_repeated([k.value for k, _ in node.value])) is not None:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _feature(name: str, description: object) -> FeatureEncoder:
    path = f"features.{name}"
    state = _mapping(path, description, (*KINDS, "missing"))
    kinds = [k for k in KINDS if k in state]
    if len(kinds) != 1:
        raise ConfigError(f"{path}: needs one of {', '.join(KINDS)}")
    missing = _flag(f"{path}.missing", state.get("missing", "false"))
    if kinds == ["buckets"]:
        buckets = state["buckets"]
        if not (isinstance(buckets, str) and is_buckets(buckets)):
            raise ConfigError(f"{path}.buckets: {buckets!r:.40} is not a number of buckets")
        return HashedEncoder(name, int(buckets), missing, not missing)
    listed = state[kinds[0]]
    if not isinstance(listed, list) or not all(isinstance(v, str) for v in listed):
        raise ConfigError(f"{path}.{kinds[0]}: must be a list")
    encoder = (
        CategoricalEncoder(name, tuple(map(spell, listed)), missing, True)
        if kinds == ["values"]
        else BinnedEncoder(name, _edges(f"{path}.edges", listed), missing, True)
    )
    if (twice := first_repeated(encoder.labels)) is not None:
        fault = "stands twice, or is the name of the level for everything else"
        raise ConfigError(f"{path}.values: {twice!r} {fault}; leave it out")
    return encoder


def _edges(path: str, listed: list[str]) -> tuple[float, ...]:
    try:
        edges = tuple(map(float, listed))
    except ValueError:
        edges = (math.nan,)
    if not all(map(math.isfinite, edges)) or any(a >= b for a, b in itertools.pairwise(edges)):
        raise ConfigError(f"{path}: must be finite numbers in ascending order")
    return edges


def _flag(path: str, value: object) -> bool:
    if not isinstance(value, str) or value not in FLAGS:
        raise ConfigError(f"{path}: {value!r} is neither true nor false")
    return FLAGS[value]


def _mapping(path: str, state: object, allowed: tuple[str, ...] = (), needed: tuple[str, ...] = ()) -> dict:
    """A mapping that is not empty, with no key but the allowed ones."""
    if not isinstance(state, Mapping) or not state:
        raise ConfigError(f"{path}: must be a mapping that is not empty")
    if allowed and (wrong := [k for k in state if k not in allowed]):
        raise ConfigError(f"{path}: unknown key {wrong[0]!r}; allowed: {', '.join(allowed)}")
    if absent := [k for k in needed if k not in state]:
        raise ConfigError(f"{path}: key {absent[0]!r} is missing")
    return dict(state)
