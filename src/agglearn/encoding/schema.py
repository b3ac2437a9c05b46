"""Declared schemas: bins, categories and label values that a person fixed, so that none of them tells of a record.

An encoder that is fitted to records tells of them: which categories there are, where bins begin, whether a value is missing.
What noise is added to counts does not hide that. A declared schema says all of it beforehand. Whatever else occurs belongs to
the level `other` of its feature, and records with another label than the two that are declared are left out.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
import yaml

from agglearn.encoding.binned import BinnedEncoder
from agglearn.encoding.categorical import CategoricalEncoder
from agglearn.encoding.columns import as_text, distinct
from agglearn.encoding.frame import FeatureEncoder, FrameEncoder
from agglearn.encoding.hashing import HashedEncoder
from agglearn.encoding.labels import turned_round
from agglearn.errors import ConfigError

KEYS = ("reviewed", "label", "features")
KINDS = {"values": CategoricalEncoder, "edges": BinnedEncoder, "buckets": HashedEncoder}
FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class Schema:
    """What a person declares of records.

    Attributes
    ----------
    label : column of the label. positive, negative : its values, as text; records with any other label are left out.
    encoder : modalities of the features, each with `other` for what is not declared.
    """

    label: str
    positive: str
    negative: str
    encoder: FrameEncoder

    @classmethod
    def read(cls, path) -> Self:
        """A schema from a YAML file, see docs/privacy.md for its form.

        Raises
        ------
        ConfigError : no such file, one that no person has reviewed, or one that is wrong: in one line with the place.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from None
        try:
            return cls.parse(text)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text: str) -> Self:
        """A schema from YAML. Every scalar is text: `yes`, `01` and `3.0` stay as they are written."""
        try:
            state = yaml.load(text, _AsText)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f"line {mark.line + 1}: " if mark else ""
            raise ConfigError(f"{place}not valid YAML: {getattr(error, 'problem', None) or error}") from None
        state = _mapping("the schema", state, KEYS, KEYS)
        if not _flag("reviewed", state["reviewed"]):
            raise ConfigError(
                "reviewed: is false; a draft is made from records and tells of them. Read it, edit it, then set reviewed: true"
            )
        label = _mapping("label", state["label"], *2 * [("column", "positive", "negative")])
        for key, value in label.items():
            if not (isinstance(value, str) and value):
                raise ConfigError(f"label: {key} is empty; name the column of the label and its two values")
        if label["positive"] == label["negative"]:
            raise ConfigError(f"label: positive and negative are both {label['positive']!r}")
        if wrong := turned_round(label["positive"], label["negative"]):
            raise ConfigError(f"label: {wrong}")
        features = _mapping("features", state["features"])
        if label["column"] in features:
            raise ConfigError(f"features: {label['column']!r} is the label; leave it out")
        encoder = FrameEncoder(tuple(_feature(n, f) for n, f in features.items()), "declared")
        return cls(label["column"], label["positive"], label["negative"], encoder)

    def labels(self, column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """(m,) int8 labels of the records that have a declared one, and (n,) whether each record has."""
        at, values = distinct(column)
        codes = as_text(values).map({self.positive: 1, self.negative: 0}).to_numpy(float)
        found = np.append(codes, np.nan)[at]
        kept = ~np.isnan(found)
        return found[kept].astype(np.int8), kept

    def refuse(self, label: str | None = None, **declared) -> None:
        """ConfigError for what a caller gives beside the schema, which declares it: another label, binning, …"""
        if label not in (None, self.label):
            raise ConfigError(f"label: {label!r} is not that of the schema, {self.label!r}; leave it out")
        for name, value in declared.items():
            if value:
                raise ConfigError(f"{name}: the schema declares it; leave it out")


class _AsText(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
    """Plain text in place of numbers, dates and booleans; keys that stand twice are refused."""

    def construct_mapping(self, node, deep=False):
        keys = [k.value for k, _ in node.value]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _feature(name: str, state) -> FeatureEncoder:
    """The encoder of one feature: `values`, `edges` or `buckets`, and whether `missing` is a level."""
    where = f"features.{name}"
    state = _mapping(where, state, (*KINDS, "missing"))
    given = [k for k in KINDS if k in state]
    if len(given) != 1:
        raise ConfigError(f"{where}: needs one of {', '.join(KINDS)}")
    missing = _flag(f"{where}.missing", state.get("missing", "false"))
    if given == ["buckets"]:
        buckets = state["buckets"]
        if not (isinstance(buckets, str) and buckets.isdecimal() and 1 <= int(buckets) < 1 << 31):
            raise ConfigError(f"{where}.buckets: {buckets!r} is not a number of buckets")
        return HashedEncoder(name, int(buckets), missing, not missing)
    listed = state[given[0]]
    if not isinstance(listed, list) or not all(isinstance(v, str) for v in listed):
        raise ConfigError(f"{where}.{given[0]}: must be a list")
    entries = tuple(listed) if given == ["values"] else _edges(f"{where}.edges", listed)
    encoder = KINDS[given[0]](name, entries, missing, True)
    if twice := {label for label in encoder.labels if encoder.labels.count(label) > 1}:
        raise ConfigError(
            f"{where}.values: {sorted(twice)[0]!r} stands twice, or is the name of the level for everything else; leave it out"
        )
    return encoder


def _edges(where: str, listed: list[str]) -> tuple[float, ...]:
    """Bounds between bins, in ascending order."""
    try:
        edges = tuple(float(e) for e in listed)
    except ValueError:
        edges = (math.nan,)
    if not all(map(math.isfinite, edges)) or any(a >= b for a, b in itertools.pairwise(edges)):
        raise ConfigError(f"{where}: must be finite numbers in ascending order")
    return edges


def _flag(where: str, value) -> bool:
    if not isinstance(value, str) or value not in FLAGS:
        raise ConfigError(f"{where}: {value!r} is neither true nor false")
    return FLAGS[value]


def _mapping(where: str, state, allowed=(), needed=()) -> dict:
    """A mapping that is not empty, with no key but the allowed ones."""
    if not isinstance(state, Mapping) or not state:
        raise ConfigError(f"{where}: must be a mapping that is not empty")
    if allowed and (wrong := [k for k in state if k not in allowed]):
        raise ConfigError(f"{where}: unknown key {wrong[0]!r}; allowed: {', '.join(allowed)}")
    if absent := [k for k in needed if k not in state]:
        raise ConfigError(f"{where}: key {absent[0]!r} is missing")
    return dict(state)
