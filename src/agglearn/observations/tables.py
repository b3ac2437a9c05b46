"""Contingency tables: counts d = Σ φ(x_i) and label sums c = Σ φ(x_i)·y_i of single features and of pairs."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from agglearn.encoding import Binning, FrameEncoder, Schema
from agglearn.encoding.columns import as_frame, first_repeated, present
from agglearn.encoding.frame import fit_features
from agglearn.encoding.labels import binary_label, require_label
from agglearn.encoding.schema import MaxRows, state_unit
from agglearn.errors import DataError
from agglearn.observations.base import Observation
from agglearn.observations.cells import Frames, Repeated, parse_noise, read_tables
from agglearn.observations.counting import Check, Counts, Key, Tally, within_memory, workload_of
from agglearn.observations.release import release_tables
from agglearn.observations.streaming import ParquetRecords
from agglearn.observations.table import Table, TableSet
from agglearn.observations.units import UnitRows, unit_rows
from agglearn.text import list_some

Pairs = Literal["all", "none"] | Iterable[tuple[str, str]]


@dataclass(frozen=True)
class ContingencyTables(TableSet, Observation):
    """Contingency tables over single features and pairs (Gilotte et al. 2022, section 2).

    Parameters
    ----------
    encoder, label : FrameEncoder, str
        The raw values of each modality, as public as the tables themselves, and the name of the label.
    total, positives : float
        Records, and records with label 1.
    tables : dict[Key, Table]
        {(i,): Table, (i, j): Table}, features by position in the encoder, i < j. A pair may be hashed (`hashed_pairs`).
    noise, seeded_coins : NoiseSpec or None, bool
        How noise was added (None: whole, consistent counts), and whether coins of a known seed chose the records as a
        half of others, which a private release refuses.
    unit : Unit or None
        Whose the records are. None where nobody stated it, which a private release refuses, too.
    """

    def __post_init__(self) -> None:
        if (name := first_repeated(self.encoder.names)) is not None:
            raise DataError(f"feature {name!r} is named twice")
        if self.noise is None:
            _check(self)

    # -- making -------------------------------------------------------------------------------------------------

    @classmethod
    def from_records(
        cls, frame: pd.DataFrame, label: str | None = None, features: Sequence[str] | None = None, pairs: Pairs = "all",
        *, schema: Schema | None = None, binning: str | Binning | None = None, categorical: Iterable[str] = (),
        positive: object = None, hashed: Mapping[str, int] | None = None, hash_above: tuple[int, int] | None = None,
        cross_buckets: int | None = None, before_counting: Check = within_memory, unit: str | None = None,
        max_rows: MaxRows | None = None,
    ) -> Self:  # fmt: skip
        """Aggregate records.

        DataError for an absent column, too many tables, and without a schema a bad label, text among numbers, no rows.
        ConfigError for a setting that the schema declares, given beside it.

        Parameters
        ----------
        frame : DataFrame or ndarray
            Raw columns, matched by the text of their names (of an array x0, x1, …). Numbers are binned.
        label, features : str or None, Sequence[str] or None
            Column with the binary label, which a schema names, too, and columns to use: by default all.
        pairs, schema : Pairs, Schema or None
            `all`, `none`, or a list of pairs of names. What a private release needs: bins, categories and label values
            declared beforehand, in place of the next five.
        binning, categorical, positive, hashed, hash_above
            See `FrameEncoder.fit`. `positive` is the label value that counts as 1, where the label is not 0/1.
        cross_buckets, before_counting : int or None, Check
            Pairs with more cells are hashed into so many. The default check refuses what needs too much memory.
        unit, max_rows : str or None, int or `auto` or None
            Column that names whose a record is, which is no feature, and the most records that count of each: others
            are left out by a hash, and a warning counts them. `auto`: the release chooses (`release_tables`).
        """
        return cls._from(
            as_frame(frame), label, features, pairs, cross_buckets, before_counting, schema=schema, binning=binning,
            categorical=categorical, positive=positive, hashed=hashed, hash_above=hash_above, unit=unit, max_rows=max_rows,
        )  # fmt: skip

    @classmethod
    def from_codes(
        cls, encoder: FrameEncoder, codes: np.ndarray, y: np.ndarray, label: str = "label", pairs: Pairs = "all",
        cross_buckets: int | None = None, before_counting: Check = within_memory,
    ) -> Self:  # fmt: skip
        """Aggregate int32 codes (n, D), and labels y (n,) in {0, 1}. Other parameters as in `from_records`."""
        return cls.from_batches(encoder, [(codes, y)], label, pairs, cross_buckets, len(y), before_counting)

    @classmethod
    def from_batches(
        cls, encoder: FrameEncoder, batches: Iterable[tuple[np.ndarray, np.ndarray]], label: str = "label",
        pairs: Pairs = "all", cross_buckets: int | None = None, records: int = 0, before_counting: Check = within_memory,
    ) -> Self:  # fmt: skip
        """Add up tables over batches (codes, y) as in `from_codes`, of `records` in all. Memory holds one batch."""
        tally = start_tally(encoder, pairs, cross_buckets, records, before_counting)
        for codes, y in batches:
            tally.add(codes, y)
        return cls.from_counts(encoder, tally.counts(), tally, label)

    @classmethod
    def from_counts(
        cls, encoder: FrameEncoder, counts: Mapping[Key, Counts], tally: Tally, label: str = "label"
    ) -> Self:
        """Tables of counted cells. The tally holds the totals, and the buckets of hashed tables."""
        hashed = {k: (buckets,) for k, buckets in tally.hashed.items()}
        tables = {k: Table(hashed.get(k) or encoder.shape(k), *columns) for k, columns in counts.items()}
        return cls(encoder, label, tally.total, tally.positives, tables)

    @classmethod
    def from_parquet(
        cls, path: str | Path, label: str | None = None, features: Iterable[str] | None = None, pairs: Pairs = "all", *,
        missing: Iterable[str] = (), cross_buckets: int | None = None, before_counting: Check = within_memory,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Aggregate a file too large for memory. `missing` are spellings of a missing value besides null.

        Columns are read one by one to fit the encoder, then batches to count. Other parameters as in `from_records`.
        """
        records = ParquetRecords(path, list(missing))
        return cls._from(records, label, features, pairs, cross_buckets, before_counting, **options)

    @classmethod
    def _from(
        cls, records: pd.DataFrame | ParquetRecords, label: str | None, features: Iterable[str] | None, pairs: Pairs,
        cross_buckets: int | None, before_counting: Check, **options: Any,
    ) -> Self:  # fmt: skip
        before = functools.partial(check_pairs, pairs, before_counting)
        encoder, labelled, y, label, rows = read_records(records, label, features, before=before, **options)
        batches: Callable[[Any], Iterable[tuple[np.ndarray, np.ndarray]]]
        if isinstance(records, ParquetRecords):
            batches = functools.partial(records.batches, encoder, y, labelled)
        else:
            codes = encoder.encode(records.loc[labelled, encoder.names])
            batches = lambda counted: [(codes[counted], y[counted])]  # noqa: E731
        work = (label, pairs, cross_buckets, len(y), before_counting)
        return rows.count(lambda counted: cls.from_batches(encoder, batches(counted), *work))

    @classmethod
    def from_frame(
        cls,
        frames: Frames,
        *,
        count: str = "count",
        label_sum: str = "label_sum",
        label: str | None = None,
        schema: Schema | None = None,
        noise: str | None = None,
        threshold: float = 0.0,
        repeated: Repeated = "refuse",
    ) -> Self:
        """Tables that somebody else made, from long cells with values.

        A row is a cell of the table of its filled columns, as of GROUP BY GROUPING SETS. A row that is grouped by
        nothing holds the totals. A cell without a row counts 0, with a threshold it is hidden. Tables that do not
        add up to the totals are scaled to them (warning `TablesDisagree`). DataError for cells that cannot be.

        Parameters
        ----------
        frames : DataFrame, Iterable[DataFrame] or Mapping[str, DataFrame]
            One for each table, or all in one. Names are for messages. `missing` and `other` are levels of their own.
        count, label_sum, label, schema : str, str, str or None, Schema or None
            Columns of the records and of those with label 1, the label's name, and declared levels. Without a schema
            the values that occur are categories, and names of adjoining intervals, as `(30, 45]`, bins.
        noise, threshold : str or None, float
            What the publisher stated: `gaussian:20` (σ), `laplace:5` (scale), and the least count that is shown.
        repeated : str
            Cells that stand twice: `refuse`, `sum` (parts of the records), or `mean` (counts of the same records).
        """
        if schema is not None:
            schema.refuse(label)
            label = schema.label
        columns = read_tables(frames, count, label_sum, schema, parse_noise(noise, threshold), repeated)
        encoder, total, positives, tables, spec = columns
        return cls(encoder, label or "label", total, positives, tables, spec)

    # -- using --------------------------------------------------------------------------------------------------

    def dense(self, *key: int) -> tuple[np.ndarray, np.ndarray]:
        """Counts and label sums of the table of features at positions `key`, as float64 arrays.

        Parameters
        ----------
        *key : int
        """
        return self.tables[key].dense()

    def to_frame(self) -> pd.DataFrame:
        """The cells of all tables with values, as `from_frame` reads them. DataError where a pair is hashed."""
        self.refuse_hashed_pairs("a frame of cells")
        blocks = [pd.DataFrame({"count": [self.total], "label_sum": [self.positives]})]  # the totals first
        for key, table in self.tables.items():
            codes = zip(key, np.unravel_index(table.cells, table.shape), strict=True)
            values = {self.names[i]: np.asarray(self.encoder.features[i].labels, object)[c] for i, c in codes}
            blocks.append(pd.DataFrame({**values, "count": table.counts, "label_sum": table.label_sums}))
        return pd.concat(blocks, ignore_index=True)[[*self.names, "count", "label_sum"]]

    def private(self, epsilon: float, delta: float | None = None, **options: Any) -> Self:
        """The tables with noise that OpenDP draws, which guarantees (ε, δ)-differential privacy.

        Parameters
        ----------
        epsilon, delta, **options
            See `agglearn.observations.release.release_tables`.
        """
        return release_tables(self, epsilon, delta, **options)

    def check_labels(self) -> None:
        """Raise DataError where not both labels occur."""
        if not 0 < self.positives < self.total:
            raise DataError(
                f"label {self.label!r}: all {self.total:g} records have the same label; nothing can be learned"
            )

    def select(self, names: Iterable[str]) -> Self:
        """The tables of some features only, in the encoder's order.

        Parameters
        ----------
        names : Iterable[str]
        """
        selected = set(present(names, self.names))
        rank = {i: r for r, i in enumerate(i for i, name in enumerate(self.names) if name in selected)}
        tables = {tuple(rank[i] for i in key): t for key, t in self.tables.items() if rank.keys() >= set(key)}
        encoder, unit = self.encoder.select([self.names[i] for i in rank]), self.unit
        if unit and unit.fewer:
            unit = replace(unit, fewer={bound: fewer.select(selected) for bound, fewer in unit.fewer.items()})
        return replace(self, encoder=encoder, tables=tables, unit=unit)

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts, label sums as symmetric (K, K) float64 matrices: blocks of pair tables, single ones the diagonal."""
        self.refuse_hashed_pairs("matrices over pairs of modalities")
        offsets = self.encoder.offsets
        d, c = np.zeros((2, offsets[-1], offsets[-1]))
        for key, table in self.tables.items():
            for matrix, block in zip((d, c), table.dense(), strict=True):
                i, j = key[0], key[-1]
                rows, columns = slice(offsets[i], offsets[i + 1]), slice(offsets[j], offsets[j + 1])
                if len(key) == 1:
                    np.fill_diagonal(matrix[rows, rows], block)
                else:
                    matrix[rows, columns], matrix[columns, rows] = block, block.T
        return d, c

    def refuse_hashed_pairs(self, use: str) -> None:
        """Raise DataError where a pair's table is hashed, for a `use` that needs the cells themselves.

        Parameters
        ----------
        use : str
        """
        for i, j in self.hashed_pairs:
            raise DataError(
                f"table {self.names[i]!r} × {self.names[j]!r} is hashed: {use} cannot use it; leave the pair out, or "
                "hash the features themselves"
            )

    # -- keeping ------------------------------------------------------------------------------------------------

    _file = "tables"
    _title = "contingency tables"
    _advice = "; make them with `agglearn aggregate`"

    def _parameters(self) -> dict[str, Any]:
        keys, hashed = [list(key) for key in self.tables], [[*key, n] for key, n in self.hashed_pairs.items()]
        return {**super()._parameters(), "keys": keys, "hashed": hashed, "tables": self._rows()}

    def _rows(self) -> pd.DataFrame:
        """The cells of all tables, table after table. A table of one feature has −1 for the second feature and code."""
        if not self.tables:
            return pd.DataFrame(columns=COLUMNS)
        tables, sizes = self.tables.values(), [len(t.cells) for t in self.tables.values()]
        codes = [np.unravel_index(t.cells, t.shape) for t in tables]
        features = (np.repeat([(*key, -1)[i] for key in self.tables], sizes) for i in (0, 1))
        cells = (np.concatenate([(*c, np.full(len(c[0]), -1))[i] for c in codes]) for i in (0, 1))
        numbers = (np.concatenate([getattr(t, name) for t in tables]) for name in ("counts", "label_sums"))
        columns = [*(column.astype(np.int32) for column in (*features, *cells)), *numbers]
        return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))

    @classmethod
    def _restore(cls, parameters: dict[str, Any]) -> Self:
        stored, encoder = parameters.pop("tables"), parameters["encoder"]
        rows_of = stored.groupby(COLUMNS[:2]).indices
        columns = [stored[name].to_numpy() for name in COLUMNS[2:]]
        tables, buckets = {}, {(i, j): (size,) for i, j, size in parameters.pop("hashed")}
        for key in map(tuple, parameters.pop("keys")):
            shape = buckets.get(key) or encoder.shape(key)
            code_a, code_b, counts, sums = (c[rows_of.get((*key, -1)[:2], slice(0))] for c in columns)
            cells = np.ravel_multi_index([code.astype(np.int64) for code in (code_a, code_b)[: len(shape)]], shape)
            tables[key] = Table(shape, cells, counts, sums)
        return super()._restore({**parameters, "tables": tables})


def encode_records(
    frame: pd.DataFrame, label: str | None, features: Iterable[str] | None, **options: Any
) -> tuple[FrameEncoder, pd.DataFrame, np.ndarray, str, UnitRows]:
    """(encoder, features, labels, label's name, units) of records with a label."""
    frame = as_frame(frame)
    encoder, labelled, y, label, rows = read_records(frame, label, features, **options)
    return encoder, frame.loc[labelled, encoder.names], y, label, rows


def read_records(
    records: pd.DataFrame | ParquetRecords, label: str | None, features: Iterable[str] | None, *,
    schema: Schema | None = None, binning: str | Binning | None = None, categorical: Iterable[str] = (),
    positive: object = None, hashed: Mapping[str, int] | None = None, hash_above: tuple[int, int] | None = None,
    unit: str | None = None, max_rows: MaxRows | None = None, before: Callable[[list[str]], object] = lambda features: None,
) -> tuple[FrameEncoder, np.ndarray, np.ndarray, str, UnitRows]:  # fmt: skip
    """(encoder, which records have a label, labels, label's name, units). `before` first gets the features."""
    learned = {"binning": binning, "categorical": categorical, "hashed": hashed, "hash_above": hash_above}
    encoder, features = None, None if features is None else list(map(str, features))
    if schema is not None:
        schema.refuse(label, positive=positive, **learned)
        label, encoder = schema.label, select_features(schema.encoder, features)
    label = require_label(label)
    unit, max_rows = state_unit(unit, max_rows, label, encoder.names if encoder else features or (), schema)
    if label not in records.columns:
        raise DataError(f"no label column {label!r}; the columns are {list_some(records.columns)}")
    present([] if unit is None else [unit], records.columns)
    columns = [name for name in records.columns if name not in (label, unit)]
    names = present(encoder.names if encoder else columns if features is None else features, columns)
    column = records[label]
    if not names:
        raise DataError(f"no column besides the label {label!r}; features are needed")
    if schema is None and column.empty:
        raise DataError("there are no records to aggregate")
    before(names)
    y, labelled = schema.labels(column) if schema else (binary_label(column, positive), np.ones(len(column), bool))
    if encoder is None:
        read = records.values if isinstance(records, ParquetRecords) else lambda name, _: (records[name], None)
        encoder = fit_features(names, read, binning or "deciles", categorical, hashed, hash_above)
    single, owners = schema is not None and schema.one_row_per_person, None
    if unit is not None:
        owners = (records.masked(unit) if isinstance(records, ParquetRecords) else records[unit])[labelled]
    return encoder, labelled, y, label, unit_rows(owners, max_rows, single)


def select_features(encoder: FrameEncoder, features: Iterable[str] | None) -> FrameEncoder:
    return encoder if features is None else encoder.select(present(features, encoder.names))


COLUMNS = ["feature_a", "feature_b", "code_a", "code_b", "count", "label_sum"]


def table_keys(names: Sequence[str], pairs: Pairs) -> list[Key]:
    singles: list[Key] = [(i,) for i in range(len(names))]
    if isinstance(pairs, str):
        if pairs not in ("all", "none"):
            raise DataError(f"pairs: {pairs!r} is not known; 'all', 'none' or a list of pairs of names")
        return singles + (list(itertools.combinations(range(len(names)), 2)) if pairs == "all" else [])
    position = {n: i for i, n in enumerate(names)}
    chosen = set()
    for a, b in (map(str, pair) for pair in pairs):
        if a == b:
            raise DataError(f"pairs: {a!r} is paired with itself")
        present([a, b], names)
        chosen.add(tuple(sorted((position[a], position[b]))))
    return singles + sorted(chosen)


def check_pairs(pairs: Pairs, before_counting: Check, features: Sequence[str]) -> None:
    """Refuse pairs of other features, and tables of so many, by `before_counting`, before their values are known."""
    if isinstance(pairs, str):
        before_counting(workload_of(np.ones(len(features)), pairs))
    else:
        table_keys(features, pairs)


def start_tally(
    encoder: FrameEncoder, pairs: Pairs, cross_buckets: int | None = None, records: int = 0,
    before_counting: Check = within_memory,
) -> Tally:  # fmt: skip
    """An empty tally of all single features and these pairs, after `before_counting` has accepted the work."""
    sizes = encoder.sizes
    if cross_buckets is not None and cross_buckets < 1:
        raise DataError(f"cross_buckets: must be at least 1, got {cross_buckets}")
    positions = pairs if isinstance(pairs, str) else [k for k in table_keys(encoder.names, pairs) if len(k) == 2]
    before_counting(workload_of(sizes, positions, records, cross_buckets))
    keys = table_keys(encoder.names, pairs)
    if cross_buckets is None:
        return Tally(sizes, keys)
    large = [k for k in keys if len(k) == 2 and int(sizes[k[0]]) * int(sizes[k[1]]) > cross_buckets]
    return Tally(sizes, keys, dict.fromkeys(large, cross_buckets))


def _check(tables: ContingencyTables) -> None:
    """DataError unless cells are distinct, counts whole from 0 on, label sums within counts, tables within totals."""
    names = tables.names
    for key, table in tables.tables.items():
        title = "table " + " × ".join(repr(names[i]) for i in key)
        if (np.diff(table.cells) <= 0).any():
            raise DataError(f"{title}: a cell stands twice, or cells are not in ascending order; mend the table")
        if any((v < 0).any() or (v % 1 != 0).any() for v in (table.counts, table.label_sums)):
            raise DataError(f"{title}: counts negative or not whole; declare the noise (noise=…) or mend the table")
        if (table.label_sums > table.counts).any():
            raise DataError(f"{title}: a label sum exceeds its count; label sums are counts of records with label 1")
        if table.counts.sum() > tables.total * (1 + 1e-9) or table.label_sums.sum() > tables.positives * (1 + 1e-9):
            raise DataError(f"{title}: adds up to {table.counts.sum():g} records, the total is {tables.total:g}")
    if tables.encoder.schema == "learned":  # under a declared schema, whether both labels occur is private
        tables.check_labels()


# -- thresholds: a hidden cell is censored in [0, threshold) ----------------------------------------------------------


def hide_cells(tables: ContingencyTables, threshold: float) -> ContingencyTables:
    """Exact tables without the cells of fewer records than the threshold, as `HAVING COUNT(*) >= threshold` shows them.

    Parameters
    ----------
    tables, threshold : ContingencyTables, float
    """
    visible = {key: t.select(t.counts >= threshold) for key, t in tables.tables.items()}
    return replace(tables, tables=visible, noise=parse_noise("none", threshold))


def hidden_cells(tables: ContingencyTables) -> np.ndarray:
    """(m,) whether each cell of all tables, in their order, is hidden."""
    shown = [np.isin(np.arange(math.prod(t.shape)), t.cells) for t in tables.tables.values()]
    return ~np.concatenate(shown)


def fill_hidden(tables: ContingencyTables, count: float | None = None) -> ContingencyTables:
    """The tables with a guess in hidden cells: so many records, at the label's rate.

    Parameters
    ----------
    tables, count : ContingencyTables, float or None
        Tables with a threshold. None guesses the product of the marginals, below the threshold.
    """
    if tables.noise is None or not tables.noise.threshold:
        return tables
    largest, rate = math.ceil(tables.noise.threshold) - 1, tables.positives / tables.total
    filled: dict[Key, Table] = {}
    fractions = [np.full(n, 1 / n) for n in tables.encoder.sizes]  # of the records that have each value
    for key in sorted(tables.tables, key=len):
        (d, c), hidden = tables.dense(*key), np.ones(tables.tables[key].shape, bool)
        hidden.flat[tables.tables[key].cells] = False
        guess = tables.total * functools.reduce(np.multiply.outer, [fractions[i] for i in key])
        d[hidden] = np.minimum(guess, largest)[hidden] if count is None else count
        c[hidden] = d[hidden] * rate
        filled[key] = Table(d.shape, np.arange(d.size), d.ravel(), c.ravel())
        if len(key) == 1:
            fractions[key[0]] = np.maximum(d, 0) / max(np.maximum(d, 0).sum(), 1)
    return replace(tables, tables={key: filled[key] for key in tables.tables})
