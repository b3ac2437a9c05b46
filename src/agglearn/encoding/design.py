"""From raw columns to coordinates of known range: the largest change of a sum by one row follows without the data."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
import pandas as pd
from scipy import sparse

from agglearn.encoding.binned import BinnedEncoder
from agglearn.encoding.columns import as_frame, numbers, present
from agglearn.encoding.frame import FeatureEncoder, FrameEncoder
from agglearn.encoding.levels import flat_cells
from agglearn.errors import ConfigError, DataError
from agglearn.saving import Saved
from agglearn.settings import Number, check_choice

Features = Literal["onehot", "quadratic", "scaled"]
Ranges = Literal["features"] | dict[str, tuple[Number, Number]] | None
KINDS = ("onehot", "quadratic", "scaled")  # that are fitted


@dataclass(frozen=True, eq=False)
class FeatureMap(Saved):
    """A design matrix from raw columns.

    Parameters
    ----------
    kind : str
        `columns`: numbers as they are. `onehot`: one coordinate per modality. `quadratic`: these, and one per pair of
        modalities that occurred in the rows it was fitted to. `scaled`: numbers clipped and scaled to [0, 1], one more
        where one is missing, modalities for the rest.
    encoder, columns : FrameEncoder or None, tuple[str, ...]
        Modalities, or for `columns` the names of these.
    ranges, cells, intercept : dict[str, tuple[float, float]], tuple[ndarray, ...], bool
        {column: (low, high)} of `scaled` (what becomes 0 and 1), or bounds of `columns`. Flat cells per pair of
        `quadratic`. Whether a last coordinate of ones follows.
    """

    kind: str
    encoder: FrameEncoder | None = None
    columns: tuple[str, ...] = ()
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    cells: tuple[np.ndarray, ...] = ()
    intercept: bool = True

    @classmethod
    def fit(
        cls, kind: str, encoder: FrameEncoder, frame: pd.DataFrame, ranges: Ranges = None, intercept: bool = True
    ) -> Self:
        """A map over an encoder's features, of any kind but `columns`, fitted to rows of raw columns.

        `scaled` needs `ranges`: {column: (low, high)} for every binned column (else ConfigError), or `features` for the
        smallest and the largest value in the frame, where these are public.
        """
        check_choice("features", kind, KINDS)
        frame = as_frame(frame, encoder.names)
        spans = _ranges(encoder, frame, ranges) if kind == "scaled" else {}
        pairs = _pairs(encoder.encode(frame), encoder.sizes) if kind == "quadratic" else ()
        return cls(kind, encoder, ranges=spans, cells=tuple(np.unique(f[f >= 0]) for f in pairs), intercept=intercept)

    @property
    def _features(self) -> tuple[FeatureEncoder, ...]:
        return self.encoder.features if self.encoder else ()

    @property
    def inputs(self) -> list[str]:
        return list(self.columns) if self.encoder is None else self.encoder.names

    @property
    def names(self) -> list[str]:
        """Names of the coordinates, in order."""
        names = list(self.columns)
        for f in self._features:
            if isinstance(f, BinnedEncoder) and f.name in self.ranges:
                names += [f.name, *[f"{f.name} = missing"] * f.has_missing]
            else:
                names += [f"{f.name} = {m}" for m in f.labels]
        if self.kind == "quadratic":
            labels = [[f"{f.name} = {m}" for m in f.labels] for f in self._features]
            for (first, second), cells in zip(itertools.combinations(labels, 2), self.cells, strict=True):
                names += [f"{first[c // len(second)]} & {second[c % len(second)]}" for c in cells]
        return names + ["intercept"] * self.intercept

    def matrix(self, frame: pd.DataFrame | np.ndarray) -> sparse.csr_array:
        """(n, k) float64 coordinates. An unseen value fills none.

        Parameters
        ----------
        frame : DataFrame or ndarray
            Columns by name, or an array in order. DataError where one is absent, or numbers are needed and not there.
        """
        frame = as_frame(frame, self.inputs)
        if self.encoder is None:
            blocks = [sparse.csr_array(self._numbers(frame))]
        else:
            codes = self.encoder.encode(frame)
            blocks = [
                _scale(frame[f.name], *self.ranges[f.name], f.has_missing)
                if isinstance(f, BinnedEncoder) and f.name in self.ranges
                else _indicators(codes[:, d], f.size)
                for d, f in enumerate(self.encoder.features)
            ]
            pairs = _pairs(codes, self.encoder.sizes)
            for cells, flat in zip(self.cells, pairs, strict=False):  # `quadratic` alone has cells
                blocks.append(_indicators(pd.Index(cells).get_indexer(flat), len(cells)))
        if self.intercept:
            blocks.append(sparse.csr_array(np.ones((len(frame), 1))))
        return sparse.hstack(blocks, format="csr", dtype=float)

    def _numbers(self, frame: pd.DataFrame) -> np.ndarray:
        present(self.columns, frame.columns)
        x = np.empty((len(frame), len(self.columns)))
        for j, name in enumerate(self.columns):
            x[:, j] = numbers(frame[name])
            if np.isnan(x[:, j]).any():
                raise DataError(f"column {name!r} has missing values; fill them, or drop the rows")
        return x

    def check_ranges(self, frame: pd.DataFrame) -> None:
        """Raise DataError for a value of `columns` outside the range that was declared for it.

        Parameters
        ----------
        frame : DataFrame
        """
        frame = as_frame(frame, self.inputs)
        for name, (low, high) in self.ranges.items() if self.kind == "columns" else ():
            values = numbers(frame[name])
            if (bad := np.flatnonzero((values < low) | (values > high))).size:
                raise DataError(
                    f"column {name!r}: row {bad[0] + 1} holds {values[bad[0]]:g}, outside the declared {low:g} to {high:g}; "
                    "cut the values, or declare a wider range"
                )

    def largest(self, order: int) -> float | None:
        """The largest Σ|x|^order over a row's coordinates that the map allows. None where ranges are not declared.

        Parameters
        ----------
        order : int
        """
        if self.kind == "columns":
            if set(self.ranges) != set(self.columns):
                return None
            return sum(max(map(abs, r)) ** order for r in self.ranges.values()) + self.intercept
        return len(self._features) + len(self.cells) + self.intercept  # a feature, or a pair, fills one with ≤ 1


def _pairs(codes: np.ndarray, sizes: np.ndarray) -> Iterator[np.ndarray]:
    """(n,) flat cell of each row in each table of a pair, −1 where a value is unseen."""
    return (flat_cells(codes, sizes, pair) for pair in itertools.combinations(range(len(sizes)), 2))


def _indicators(codes: np.ndarray, size: int) -> sparse.csr_array:
    """(n, size) ones at the codes, nothing where a code is negative."""
    filled = codes >= 0
    bounds = np.append(0, np.cumsum(filled))
    return sparse.csr_array((np.ones(bounds[-1]), codes[filled], bounds), shape=(len(codes), size))


def _scale(column: pd.Series, low: float, high: float, has_missing: bool) -> sparse.csr_array:
    """(n, 1) values scaled to [0, 1], and a second coordinate for missing ones where training had them."""
    values = numbers(column)
    missing = np.isnan(values)
    x = np.where(missing, 0.0, np.clip((values - low) / (high - low), 0, 1))
    return sparse.csr_array(np.column_stack([x, missing]) if has_missing else x[:, None])


def _ranges(encoder: FrameEncoder, frame: pd.DataFrame, ranges: Ranges) -> dict[str, tuple[float, float]]:
    """Declared ranges of the binned columns, or those of the frame where `features` asks for them."""
    names = [f.name for f in encoder.features if isinstance(f, BinnedEncoder)]
    if ranges is None:
        raise ConfigError(
            "ranges: scaled features need a range for every numeric column, {column: [low, high]}; `features` takes the "
            "smallest and the largest value of the features, where these are public"
        )
    if isinstance(ranges, str):
        if ranges != "features":
            raise ConfigError(f"ranges: {ranges!r} is not known; 'features', or {{column: [low, high]}}")
        values = {name: numbers(frame[name]) for name in names}
        ranges = {name: (np.nanmin(v), np.nanmax(v)) for name, v in values.items()}
        ranges = {name: (low, high if high > low else low + 1) for name, (low, high) in ranges.items()}
    spans = declared_ranges("ranges", ranges, names)
    if empty := [name for name, (low, high) in spans.items() if low == high]:
        raise ConfigError(f"ranges: {empty[0]}: the range is empty")
    return spans


def declared_ranges(setting: str, ranges: Mapping, columns: Iterable[str]) -> dict[str, tuple[float, float]]:
    """{column: (low, high)} of all columns. ConfigError where one is absent, or no range."""
    by_name, spans = {str(name): span for name, span in ranges.items()}, {}
    for name in columns:
        if name not in by_name:
            raise ConfigError(f"{setting}: none for column {name!r}; declare (low, high) for it")
        low, high = by_name[name]
        if not -math.inf < low <= high < math.inf:
            raise ConfigError(f"{setting}: {name}: ({low}, {high}) is no range")
        spans[name] = float(low), float(high)
    return spans
