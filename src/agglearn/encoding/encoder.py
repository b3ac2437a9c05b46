"""From raw columns to codes: each feature becomes one of `size` modalities, numbered from 0.

A missing value is a modality of its own where training rows have missing values. Anything that training rows
never showed (a new category; a missing value where there was none) is UNSEEN: it belongs to no modality, is
counted in no table, and adds nothing to a prediction. Encoders of a declared schema (`agglearn.encoding.schema`) have a
last modality, `other`, for all of that.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_float_dtype, is_numeric_dtype

from agglearn.encoding.binning import Binning, binning
from agglearn.encoding.codes import warn_of_codes, warn_of_lost_digits
from agglearn.errors import DataError

UNSEEN = -1
MISSING = "missing"
OTHER = "other"
LOOKS_NUMERIC = 0.9  # share of numbers from which text in a column is taken for a mistake


def as_text(column: pd.Series) -> pd.Series:
    """Categories as text: 3, 3.0 and "3" are one category (a missing value turns integers into floats).

    Each value is spelt by itself, so that a part of a column gives the same text as the whole.
    """
    text = column.astype(object).where(column.notna(), None)
    if is_float_dtype(column.dtype):
        values, cells = column.to_numpy(dtype=float, na_value=np.nan), text.to_numpy(copy=True)
        whole = np.isfinite(values) & (values == np.floor(values))
        cells[whole] = [int(v) for v in values[whole]]  # a Series would store integers of more than 64 bits as floats
        text = pd.Series(cells, column.index, dtype=object)
    return text.where(text.isna(), text.astype(str))


def distinct(column: pd.Series) -> tuple[np.ndarray, pd.Series]:
    """What a column holds: (n,) index of each row's value among the distinct ones (−1: missing), and these.

    So that work per value is not done per row. Python objects other than text are left as they are, one by one: 1, 1.0
    and True are equal, but not spelt alike.
    """
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        known = column.notna().to_numpy()
        return np.where(known, np.cumsum(known) - 1, -1), column[known]
    at, values = pd.factorize(column)
    return at, pd.Series(values)


class Levels:
    """What encoders share: a missing value and anything else may be modalities, after all others."""

    has_missing: bool
    has_other: bool

    @property
    def size(self) -> int:
        return self._own + self.has_missing + self.has_other

    @property
    def _last_labels(self) -> list[str]:
        return [MISSING] * self.has_missing + [OTHER] * self.has_other

    @property
    def _missing_code(self) -> np.int32:
        return np.int32(self._own if self.has_missing else UNSEEN)

    def _complete(self, codes: np.ndarray) -> np.ndarray:
        """The codes with `other` in place of UNSEEN, where there is such a modality."""
        return np.where(codes == UNSEEN, np.int32(self.size - 1), codes) if self.has_other else codes

    def _state(self) -> dict:
        return {"has_missing": self.has_missing} | ({"has_other": True} if self.has_other else {})


@dataclass(frozen=True)
class CategoricalEncoder(Levels):
    """Categories of one feature, in sorted order; then a missing value, if training had any, and `other`, if declared."""

    name: str
    values: tuple[str, ...]
    has_missing: bool = False
    has_other: bool = False

    @classmethod
    def fit(cls, column: pd.Series) -> "CategoricalEncoder":
        at, values = distinct(column)
        return cls(str(column.name), tuple(sorted(set(as_text(values)))), bool((at < 0).any()))

    @property
    def _own(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> list[str]:
        """Name of each modality."""
        return [*self.values, *self._last_labels]

    def encode(self, column: pd.Series) -> np.ndarray:
        at, values = distinct(column)
        codes = pd.Index(self.values, dtype=object).get_indexer(as_text(values)).astype(np.int32)
        return self._complete(np.append(codes, self._missing_code)[at])

    def to_dict(self) -> dict:
        return {"name": self.name, "values": list(self.values)} | self._state()


@dataclass(frozen=True)
class BinnedEncoder(Levels):
    """Bins of one continuous feature by inner edges; then a missing value, if training had any, and `other`, if declared:
    text that is no number is then `other`, and infinite numbers are in the first or the last bin."""

    name: str
    edges: tuple[float, ...]
    has_missing: bool = False
    has_other: bool = False

    @classmethod
    def fit(cls, column: pd.Series, how: Binning) -> "BinnedEncoder":
        values = numbers(column)
        warn_of_codes(column, values)
        known = values[~np.isnan(values)]
        edges = how.edges(known) if len(known) else ()
        return cls(str(column.name), tuple(map(float, edges)), len(known) < len(values))

    @property
    def _own(self) -> int:
        return len(self.edges) + 1

    @property
    def labels(self) -> list[str]:
        bounds = ["-inf", *(f"{e:g}" for e in self.edges), "inf"]
        bins = [f"({a}, {b}]" for a, b in itertools.pairwise(bounds)]
        return [*bins, *self._last_labels]

    def encode(self, column: pd.Series) -> np.ndarray:
        values = numbers_or_nan(column) if self.has_other else numbers(column)
        codes = np.searchsorted(np.asarray(self.edges), values, side="left").astype(np.int32)
        codes[np.isnan(values)] = UNSEEN
        codes[column.isna().to_numpy()] = self._missing_code
        return self._complete(codes)

    def to_dict(self) -> dict:
        return {"name": self.name, "edges": list(self.edges)} | self._state()


FeatureEncoder = (
    CategoricalEncoder | BinnedEncoder
)  # and those of `coded`, `hashing` and `target`, which build on this module


class NotANumber(DataError):
    """A numeric column holds text; `column`, `row` (from 1), `value` say where."""

    def __init__(self, column: str, row: int, value, rows: int):
        self.column, self.row, self.value = column, row, value
        self.found = f"column {column!r} is numeric but row {row} holds {value!r} ({rows} such rows)"
        super().__init__(f"{self.found}; mend them, declare the text as missing, or the column as categorical")


def numbers(column: pd.Series) -> np.ndarray:
    """Column as float64, NaN where missing; text that is no number is an error that names column and row."""
    parsed = pd.to_numeric(column, errors="coerce")
    wrong = (parsed.isna() & column.notna()).to_numpy()
    if wrong.any():
        row = int(np.argmax(wrong))
        raise NotANumber(str(column.name), row + 1, column.iloc[row], int(wrong.sum()))
    values = parsed.to_numpy(dtype=float, na_value=np.nan).copy()
    if column.dtype == object:  # pandas reads text to within a unit in the last place: enough to cross a bin's edge
        known = ~np.isnan(values)
        values[known] = [float(v) for v in column[known]]
    if np.isinf(values).any():
        raise DataError(f"column {column.name!r} holds infinite values; replace them by missing ones")
    return values


def numbers_or_nan(column: pd.Series) -> np.ndarray:
    """Column as float64, NaN for all that is no number: no error tells that there is such a value. Infinite ones stay."""
    if is_numeric_dtype(column.dtype) and not is_complex_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    return np.array([_number(v) for v in column], dtype=float)


def _number(value) -> float:
    if isinstance(value, complex) and not value.imag:  # one complex number makes a column of whole numbers complex
        value = value.real
    try:
        return math.nan if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_continuous(column: pd.Series) -> bool:
    """Whether a column is to be binned: numbers, not booleans. Mostly numbers with some text is an error."""
    if is_bool_dtype(column.dtype):
        return False
    if is_numeric_dtype(column.dtype):
        return True
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    at, values = distinct(column)
    known = at[at >= 0]
    if not len(known):
        return False
    share = pd.to_numeric(values, errors="coerce").notna().to_numpy()[known].mean()
    if LOOKS_NUMERIC <= share < 1:
        numbers(column)  # raises, naming the row
    return bool(share == 1)


@dataclass(frozen=True)
class FrameEncoder:
    """Encoders of all features, in order. Codes of a frame are an (n, D) int32 array.

    `schema` tells where they come from: `declared` by a person (`agglearn.encoding.schema`), or `learned` from records, of
    which they then tell something.
    """

    features: tuple[FeatureEncoder, ...]
    schema: str = "learned"

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        binning_: "str | Binning" = "deciles",
        categorical: Iterable[str] = (),
        hashed: Mapping[str, int] | None = None,
        hash_above: tuple[int, int] | None = None,
    ) -> "FrameEncoder":
        """Learn vocabularies and bins from training rows.

        Parameters
        ----------
        frame : features only, one column each.
        binning_ : `deciles`, `width`, or a binning object, for numeric columns.
        categorical : numeric columns whose numbers are names (hashes, codes), not quantities.
        hashed : {column: buckets}, columns whose values are hashed instead of learnt; see `HashedEncoder`.
        hash_above : (values, buckets): columns of categories with more values are hashed into so many buckets.

        Warns
        -----
        LooksLikeCodes : numbers that look like names were taken for amounts, or have lost digits.
        """
        how, named, hashed = binning(binning_), set(categorical), dict(hashed or {})
        if not frame.columns.is_unique:
            raise DataError(f"column {frame.columns[frame.columns.duplicated()][0]!r} is there twice; rename one")
        absent = named - set(frame.columns)
        if absent:
            raise DataError(f"categorical: no column {sorted(absent)[0]!r}; there are {_some(frame.columns)}")
        if absent := set(hashed) - set(frame.columns):
            raise DataError(f"hashed: no column {sorted(absent)[0]!r}; there are {_some(frame.columns)}")
        return cls(tuple(_fitted(frame[c], how, c in named, hashed.get(c), hash_above) for c in frame.columns))

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.features]

    @property
    def from_labels(self) -> bool:
        """Whether the labels of records went into the encoder of a feature."""
        return any(getattr(f, "from_labels", False) for f in self.features)

    @property
    def sizes(self) -> np.ndarray:
        """Modalities per feature, (D,) int64."""
        return np.array([f.size for f in self.features], dtype=np.int64)

    @property
    def offsets(self) -> np.ndarray:
        """First position of each feature when all modalities stand in one row, (D + 1,) int64; last = their number."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """(n, D) int32 codes of a frame that has the features as columns, or of an array, see `named_columns`."""
        frame = named_columns(frame, self.names)
        absent = [n for n in self.names if n not in frame.columns]
        if absent:
            raise DataError(f"no column {absent[0]!r} ({len(absent)} missing); there are {_some(frame.columns)}")
        codes = np.empty((len(frame), len(self.features)), dtype=np.int32)
        for d, feature in enumerate(self.features):
            codes[:, d] = feature.encode(frame[feature.name])
        return codes

    def select(self, names: Sequence[str]) -> "FrameEncoder":
        by_name = {f.name: f for f in self.features}
        return FrameEncoder(tuple(by_name[n] for n in names), self.schema)

    def to_dict(self) -> list[dict]:
        return [f.to_dict() for f in self.features]

    @classmethod
    def from_dict(cls, state: list[dict], schema: str = "learned") -> "FrameEncoder":
        """The encoder that `to_dict` described; ValueError where a description has wrong types or impossible codes."""
        for s in state:
            _check_description(s)
        if schema not in ("declared", "learned"):
            raise ValueError(f"schema: {schema!r} is neither declared nor learned")
        return cls(tuple(_feature(s) for s in state), schema)


def named_columns(X, names: Sequence[str]) -> pd.DataFrame:
    """Records as a frame: a data frame as it is, columns are matched by name; a 2-D array with its columns named in order.

    Raises
    ------
    DataError : an array of another number of columns.
    """
    if isinstance(X, pd.DataFrame):
        return X
    x = np.asarray(X)
    if x.ndim != 2 or x.shape[1] != len(names):
        raise DataError(f"X: must be a data frame, or an array of shape (records, {len(names)}), got shape {x.shape}")
    return pd.DataFrame(x, columns=list(names))


def _fitted(
    column: pd.Series, how: Binning, named: bool, buckets: int | None, hash_above: tuple[int, int] | None
) -> FeatureEncoder:
    """The encoder of one column."""
    from agglearn.encoding.hashing import HashedEncoder  # which builds on this module

    if buckets is None and not named and is_continuous(column):
        return BinnedEncoder.fit(column, how)
    warn_of_lost_digits(column)
    if buckets is not None:
        return HashedEncoder.fit(column, buckets)
    return categorical(column, hash_above)


def categorical(column: pd.Series, hash_above: tuple[int, int] | None) -> FeatureEncoder:
    """The encoder of categories; they are hashed where there are more than `hash_above` allows, see `FrameEncoder.fit`."""
    from agglearn.encoding.hashing import HashedEncoder  # which builds on this module

    encoder = CategoricalEncoder.fit(column)
    if hash_above is not None and len(encoder.values) > hash_above[0]:
        return HashedEncoder.fit(column, hash_above[1])
    return encoder


def _check_description(state: dict) -> None:
    """Refuse the description of a feature whose codes could leave their range: kernels do not check bounds."""
    lists = {"values": str, "labels": str, "codes": int, "edges": int | float}
    right = isinstance(state.get("name"), str) and all(
        isinstance(state.get(key, False), bool) for key in ("has_missing", "has_other")
    )
    for key, kind in lists.items():
        right &= isinstance(state.get(key, []), list) and all(isinstance(v, kind) for v in state.get(key, []))
    right &= all(
        isinstance(state.get(key, 1), int) and 1 <= state.get(key, 1) < 1 << 31 for key in ("coded", "buckets")
    )
    if not right:
        raise ValueError(f"feature {state.get('name')!r}: its description has values of a wrong type or size")
    edges, codes = state.get("edges", []), state.get("codes", [])
    if any(not a < b for a, b in itertools.pairwise(edges)):
        raise ValueError(f"feature {state['name']!r}: its edges do not ascend")
    if codes and not 0 <= min(codes) <= max(codes) < len(state["labels"]):
        raise ValueError(f"feature {state['name']!r}: it has codes outside its {len(state['labels'])} modalities")


def _feature(state: dict) -> FeatureEncoder:
    """An encoder from what its `to_dict` said; each kind has a key of its own."""
    levels = state.get("has_missing", False), state.get("has_other", False)
    if "edges" in state:
        return BinnedEncoder(state["name"], tuple(state["edges"]), *levels)
    if "coded" in state:
        from agglearn.encoding.coded import CodedEncoder  # which builds on this module

        return CodedEncoder(state["name"], state["coded"])
    if "codes" in state:
        from agglearn.encoding.target import TargetEncoder  # which builds on this module

        return TargetEncoder.from_dict(state)
    if "buckets" in state:
        from agglearn.encoding.hashing import HashedEncoder

        return HashedEncoder(state["name"], state["buckets"], *levels)
    return CategoricalEncoder(state["name"], tuple(state["values"]), *levels)


def _some(names: Iterable, most: int = 12) -> str:
    names = [str(n) for n in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
