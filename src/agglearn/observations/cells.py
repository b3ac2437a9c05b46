"""Contingency tables as long cells with values, as a GROUP BY writes them, and tables that somebody else made."""

import contextlib
import functools
import itertools
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pandas as pd

from agglearn.encoding import BinnedEncoder, CategoricalEncoder, FrameEncoder, Schema
from agglearn.encoding.columns import as_frame, by_text, first_repeated, numbers, present, spell
from agglearn.encoding.csv_files import about
from agglearn.encoding.levels import MISSING, OTHER
from agglearn.errors import ConfigError, DataError, TablesDisagree
from agglearn.observations.base import NoiseSpec
from agglearn.observations.consistency import possible_totals
from agglearn.observations.counting import Key, sum_cells
from agglearn.observations.table import Table
from agglearn.privacy.budget import TOTALS
from agglearn.privacy.mechanisms import MECHANISMS, Mechanism
from agglearn.settings import check_choice
from agglearn.text import list_some

Frames: TypeAlias = pd.DataFrame | Iterable[pd.DataFrame] | Mapping[str, pd.DataFrame]
INTERVAL = re.compile(r"\(\S+, (\S+)\]")  # the name of a bin, with its upper bound
FACTOR = 2.0  # by which a table may lack records, or have too many
DEVIATIONS = 5  # standard deviations of the noise by which sums of tables may differ
UNKNOWN = "the publisher stated {}, and no guarantee is known"
Repeated = Literal["refuse", "sum", "mean"]


class Cells(NamedTuple):
    """Cells of one table: all features, its own, (m, features) values as text, counts and label sums (NaN: hidden)."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    values: np.ndarray
    counts: np.ndarray
    label_sums: np.ndarray


def parse_noise(text: str | None, threshold: float = 0.0) -> NoiseSpec | None:
    """The noise of `gaussian:20`, `laplace:5` or `none`, and a threshold. None where there is neither.

    Parameters
    ----------
    text, threshold : str or None, float
    """
    mechanism, colon, size = (text or "none").partition(":")
    if not 0 <= threshold < math.inf:
        raise ConfigError(f"threshold: must be a number of records from 0 on, got {threshold}")
    try:
        scale = float(size or (0 if mechanism == "none" else "nan"))
    except ValueError:
        scale = math.nan
    valid = not colon if mechanism == "none" else mechanism in MECHANISMS and 0 < scale < math.inf
    if not valid:
        raise ConfigError(f"noise: {text!r:.40} is not known; write none, gaussian:20 (σ), or laplace:5 (scale)")
    if not scale and not threshold:
        return None
    spec = NoiseSpec("gaussian" if mechanism == "none" else mechanism, scale, math.inf, threshold=float(threshold))
    return replace(spec, unprotected=UNKNOWN.format(spec.summary))


# -- reading ----------------------------------------------------------------------------------------------------------


def split_tables(frame: pd.DataFrame, count: str, label_sum: str) -> Iterator[Cells]:
    """Cells of a frame by table. A row belongs to the table of the columns that are not empty in it."""
    frame = as_frame(frame)
    advice = "leave hidden counts empty and give the threshold"
    values = [numbers(frame[name], advice) for name in present([count, label_sum], frame.columns)]
    if {"feature_1_id", "feature_1_value"} <= set(frame.columns):
        yield from _published(frame, values)
        return
    names = [c for c in frame.columns if c not in (count, label_sum)]
    if not names:
        raise DataError(f"no column besides {count!r} and {label_sum!r}: which cells are these?")
    texts = np.column_stack([by_text(frame[name], np.asarray, None) for name in names])
    patterns, table_of = np.unique(pd.notna(texts), axis=0, return_inverse=True)
    for k, grouped in enumerate(patterns):
        rows, features = np.flatnonzero(table_of.ravel() == k), tuple(itertools.compress(names, grouped))
        if len(features) > 2:
            advice = "tables of one feature or of two can be used; sum it up over the others"
            raise DataError(
                f"row {rows[0] + 1}: is grouped by {len(features)} features ({list_some(features)}); {advice}"
            )
        yield Cells(tuple(names), features, texts[rows][:, grouped], *(v[rows] for v in values))


def _published(frame: pd.DataFrame, numbers: Sequence[np.ndarray]) -> Iterator[Cells]:
    """Cells in the layout of the AdKDD'21 challenge: feature_1_id, feature_1_value, …. Feature 3 is `hash_3`."""
    ids = [name for name in ("feature_1_id", "feature_2_id") if name in frame.columns]
    values = np.column_stack([by_text(frame[name.replace("id", "value")], np.asarray, None) for name in ids])
    names = {i: f"hash_{spell(i)}" for i in pd.unique(frame[ids].to_numpy().ravel())}
    for key, rows in frame.groupby(ids).indices.items():
        features = tuple(names[i] for i in (key if isinstance(key, tuple) else (key,)))
        yield Cells(tuple(names.values()), features, values[rows], *(n[rows] for n in numbers))


def learn_encoder(cells: Sequence[Cells]) -> FrameEncoder:
    """An encoder of the values that occur, features in the order of the columns."""
    values: dict[str, set[str]] = {name: set() for table in cells for name in table.columns}
    for table in cells:
        for name, column in zip(table.names, table.values.T, strict=True):
            values[name].update(column)
    return FrameEncoder(tuple(_feature(name, v) for name, v in values.items() if v))


def _feature(name: str, values: set[str]) -> BinnedEncoder | CategoricalEncoder:
    """Bins where all values name adjoining intervals, else categories. `missing` and `other` are levels of their own."""
    flags, names = (MISSING in values, OTHER in values), sorted(values - {MISSING, OTHER})
    uppers = [match[1] for value in names if (match := INTERVAL.fullmatch(value))]
    if len(uppers) == len(names):
        with contextlib.suppress(ValueError):  # a bound is no number, or stands twice
            bins = BinnedEncoder(name, tuple(sorted(map(float, uppers))[:-1]), *flags)
            if set(bins.labels) == values:
                return bins
    return CategoricalEncoder(name, tuple(names), *flags)


# -- tables of cells --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellReader:
    """Makes tables of cells. `noise` is what the publisher stated, `repeated` what cells that stand twice mean."""

    encoder: FrameEncoder
    noise: NoiseSpec | None
    repeated: Repeated

    @functools.cached_property
    def levels(self) -> dict[str, pd.Index]:
        for feature in self.encoder.features:
            if (name := first_repeated(feature.labels)) is not None:
                raise DataError(f"feature {feature.name!r}: two levels are named {name!r}; round its edges less")
        return {f.name: pd.Index(f.labels, dtype=object) for f in self.encoder.features}

    def tables(self, cells: Iterable[Cells]) -> tuple[dict[Key, Table], dict[Key, float]]:
        """Tables, and by how much the variance of the noise grows in each, where repeated cells are summed or averaged.

        The totals are the table (), of one cell.
        """
        columns_of: dict[Key, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        for table in cells:
            key, flat = self._locate(table)
            stated = ~np.isnan(table.counts)
            self._check(self._title(key), table, stated)
            columns_of.setdefault(key, []).append((flat[stated], table.counts[stated], table.label_sums[stated]))
        tables, factors = {}, {}
        for key in sorted(columns_of, key=lambda key: (len(key), key)):
            merged = tuple(map(np.concatenate, zip(*columns_of[key], strict=True)))
            tables[key], factors[key] = self._merge(key, *merged)
        return tables, factors

    def _locate(self, table: Cells) -> tuple[Key, np.ndarray]:
        """Features of a table by position, and the flat cell of each row."""
        columns = {}
        for name, values in zip(table.names, table.values.T, strict=True):
            codes = self.levels[name].get_indexer(values)
            if (codes < 0).any():
                value, levels = values[np.argmin(codes)], list_some(self.levels[name])
                raise DataError(f"feature {name!r}: {value!r} is no level of the schema, which has {levels}")
            columns[self.encoder.names.index(name)] = codes
        if not columns:
            return (), np.zeros(len(table.counts), np.int64)
        key = tuple(sorted(columns))
        return key, np.ravel_multi_index([columns[i] for i in key], self.encoder.shape(key))

    def _title(self, key: Key) -> str:
        return "table " + " × ".join(repr(self.encoder.names[i]) for i in key) if key else "the row of totals"

    def _check(self, title: str, table: Cells, stated: np.ndarray) -> None:
        counts, sums = table.counts[stated], table.label_sums[stated]
        threshold, exact = (0.0, True) if self.noise is None else (self.noise.threshold, not self.noise.scale)
        if not threshold and not stated.all():
            raise DataError(
                f"{title}: empty counts: {int((~stated).sum())}; give the threshold below which they are hidden"
            )
        if np.isnan(sums).any():
            raise DataError(f"{title}: a cell has a count of {counts[np.isnan(sums)][0]:g} and no label sum; give both")
        if threshold and table.names and (counts < threshold).any():
            low = counts[counts < threshold][0]
            raise DataError(
                f"{title}: a count of {low:g} stands below the threshold of {threshold:g}; state the right one"
            )
        if exact and ((counts < 0).any() or (counts % 1).any() or (sums < 0).any() or (sums % 1).any()):
            raise DataError(f"{title}: counts negative or not whole; state the noise, as gaussian:20 or laplace:5")
        if exact and (sums > counts).any():
            raise DataError(f"{title}: a label sum exceeds its count; label sums are counts of records with label 1")

    def _merge(self, key: Key, cells: np.ndarray, counts: np.ndarray, sums: np.ndarray) -> tuple[Table, float]:
        shape = self.encoder.shape(key)
        if not key and len(np.unique(np.stack([counts, sums]), axis=1).T) == 1:  # each file has the same totals
            return Table(shape, cells[:1], counts[:1], sums[:1]), 1.0
        distinct, index, times = np.unique(cells, return_inverse=True, return_counts=True)
        if self.repeated == "sum" or len(distinct) == len(cells):
            return Table(shape, *sum_cells(cells, counts, sums)), max(len(cells), 1) / max(len(distinct), 1)
        if self.repeated == "refuse":
            codes = np.unravel_index(int(distinct[np.argmax(times > 1)]), shape) if key else ()
            values = [self.encoder.features[i].labels[int(c)] for i, c in zip(key, codes, strict=True)]
            advice = "say whether they add up (repeated: sum) or count the same records (mean)"
            cell = f"{self._title(key)}: cell {' × '.join(map(repr, values))}" if key else self._title(key)
            raise DataError(f"{cell} stands {times.max()} times; {advice}")
        means = [np.bincount(index, values) / times for values in (counts, sums)]
        if self.noise is None or not self.noise.scale:
            means = list(map(np.round, means))
        return Table(shape, distinct, *means), float((1 / times).mean())


def find_totals(tables: Mapping[Key, Table], noise: NoiseSpec | None) -> tuple[float, float]:
    """Records and positives: of the row of totals, else of the fullest table, with noise the mean by precision."""
    noisy = noise is not None and noise.scale > 0
    if () in tables:
        total, positives = float(tables[()].counts[0]), float(tables[()].label_sums[0])
        return possible_totals(total, positives) if noisy else (total, positives)
    sums = np.array([(t.counts.sum(), t.label_sums.sum()) for t in tables.values()])
    if noise is not None and noisy and not noise.threshold:
        return possible_totals(*np.average(sums, axis=0, weights=[1 / len(t.cells) for t in tables.values()]))
    total, positives = sums[np.argmax(sums[:, 0])]
    return float(total), float(positives)


def agree(
    names: Mapping[Key, str], tables: Mapping[Key, Table], noise: NoiseSpec | None, totals: tuple[float, float]
) -> dict[Key, Table]:
    """Tables scaled to the same total, each label by itself, where they do not hold all records or too many.

    Hidden cells have room for what a table lacks. Sums of noisy tables may differ by the noise.
    """
    agreed, scaled = {}, 0
    total, positives = totals
    for key, table in tables.items():
        capacity = (math.prod(table.shape) - len(table.cells)) * (math.ceil(noise.threshold) - 1 if noise else 0)
        slack = 1e-9 * total
        if noise and noise.scale:
            slack = DEVIATIONS * math.sqrt(2 * len(table.cells) * Mechanism(noise.mechanism, noise.scale).variance)
        d, c = float(table.counts.sum()), float(table.label_sums.sum())
        short, over = total - d - capacity > slack, d - total > slack
        agreed[key] = table
        if not short and not over and (capacity or abs(c - positives) <= slack):
            continue
        scaled += 1
        if not 1 / FACTOR < (d + capacity / 2) / max(total, 1.0) < FACTOR:
            hidden = f" and at most {capacity:,.0f} more in hidden cells" if capacity else ""
            raise DataError(
                f"table {names[key]}: {d:,.0f} records{hidden}, where all tables have {total:,.0f}; leave it out"
            )
        factor = total / d if over else (total - capacity) / d if short else 1.0
        ones, zeros = (factor, factor) if capacity else (positives / max(c, 1.0), (total - positives) / max(d - c, 1.0))
        sums, negatives = ones * table.label_sums, zeros * (table.counts - table.label_sums)
        if noise is None or not noise.scale:
            sums, negatives = np.floor(sums + 1e-9), np.floor(negatives + 1e-9)  # whole, and no more than the totals
        agreed[key] = replace(table, counts=sums + negatives, label_sums=sums)
    if scaled:
        message = f"{scaled} of {len(tables)} tables do not add up to {total:,.0f} records; they were scaled to it"
        warnings.warn(message, TablesDisagree, stacklevel=3)
    return agreed


def read_tables(
    frames: Frames, count: str, label_sum: str, schema: Schema | None, noise: NoiseSpec | None, repeated: Repeated
) -> tuple[FrameEncoder, float, float, dict[Key, Table], NoiseSpec | None]:
    """(encoder, total, positives, tables, noise) of `ContingencyTables.from_frame`."""
    check_choice("repeated", repeated, get_args(Repeated))
    if isinstance(frames, pd.DataFrame):
        frames = [frames]
    by_name = frames.items() if isinstance(frames, Mapping) else ((None, frame) for frame in frames)
    cells: list[Cells] = []
    for name, frame in by_name:
        with about(name) if name else contextlib.nullcontext():
            cells += split_tables(frame, count, label_sum)
    occurring = {name for table in cells for name in table.names}
    if not occurring:
        raise DataError("there are no cells but totals; a cell has values in the columns of its features")
    if schema is None:
        encoder = learn_encoder(cells)
    else:
        if foreign := sorted(occurring - set(schema.encoder.names)):
            features = list_some(schema.encoder.names)
            raise DataError(f"column {foreign[0]!r} is no feature of the schema, which has {features}; leave it out")
        encoder = schema.encoder.select([name for name in schema.encoder.names if name in occurring])
    tables, factors = CellReader(encoder, noise, repeated).tables(cells)
    total, positives = find_totals(tables, noise)
    names = {key: " × ".join(encoder.names[i] for i in key) or TOTALS for key in factors}
    agreed = agree(names, {key: table for key, table in tables.items() if key}, noise, (total, positives))
    if noise is None or not noise.scale:
        total, positives = int(total), int(positives)
        agreed = {key: _occupied(table) for key, table in agreed.items()}
    if noise is not None and noise.scale and set(factors.values()) != {1.0}:
        scales = {names[key]: noise.scale * math.sqrt(factor) for key, factor in factors.items()}
        noise = replace(noise, scale=max(scales.values()), scales=scales)
    return encoder, total, positives, agreed, noise


def _occupied(table: Table) -> Table:
    """An exact table as `Tally` counts it: whole numbers, no empty cells."""
    occupied = table.select(table.counts > 0)
    return replace(occupied, counts=occupied.counts.astype(np.int64), label_sums=occupied.label_sums.astype(np.int64))
