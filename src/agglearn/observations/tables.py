"""Contingency tables: counts d and label sums c of records projected on single features and pairs of features.

Source: Gilotte, Ben Yahmed, Rohde 2022, section 2 (d = Σ φ(x_i), c = Σ φ(x_i)·y_i).
"""

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn.encoding import Binning, FrameEncoder
from agglearn.encoding.encoder import as_text
from agglearn.encoding.labels import binary_label, take_label
from agglearn.errors import DataError
from agglearn.observations.base import NoiseSpec, Observation, prepared, reading

Key = tuple[int, ...]  # features of a table, ascending: (i,) or (i, j)
DENSE_CELLS = 1 << 22  # larger tables are added up sparsely


@dataclass(frozen=True)
class Table:
    """One contingency table: its occupied cells.

    Attributes
    ----------
    shape : modalities of each feature.
    cells : (m,) int64, flat C-order index of the occupied cells, ascending.
    counts, label_sums : (m,) records, and records with label 1, in each cell.
    """

    shape: tuple[int, ...]
    cells: np.ndarray
    counts: np.ndarray
    label_sums: np.ndarray

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts and label sums as float64 arrays of `shape`."""
        d, c = np.zeros(self.shape), np.zeros(self.shape)
        d.flat[self.cells], c.flat[self.cells] = self.counts, self.label_sums
        return d, c


@dataclass(frozen=True)
class ContingencyTables(Observation):
    """Contingency tables over single features and pairs.

    Attributes
    ----------
    encoder : which raw values make which modality (as public as the tables themselves).
    label : name of the label.
    total, positives : records, and records with label 1.
    tables : {(i,): Table, (i, j): Table}, features by position in the encoder, i < j.
    noise : how noise was added, or None; without it counts are checked to be whole and consistent.
    """

    encoder: FrameEncoder
    label: str
    total: float
    positives: float
    tables: dict[Key, Table]
    noise: NoiseSpec | None = field(default=None)

    def __post_init__(self):
        names = self.encoder.names
        if len(set(names)) < len(names):
            raise DataError(f"feature {next(n for n in names if names.count(n) > 1)!r} is named twice")
        if self.noise is None:
            _check(self)

    # -- making -------------------------------------------------------------------------------------------------

    @classmethod
    def from_records(
        cls,
        frame: pd.DataFrame,
        label: str,
        features: Sequence[str] | None = None,
        pairs: "Literal['all', 'none'] | Iterable[tuple[str, str]]" = "all",
        *,
        binning: "str | Binning" = "deciles",
        categorical: Iterable[str] = (),
        positive=None,
    ) -> Self:
        """Aggregate records.

        Parameters
        ----------
        frame : one row per record, raw columns; numbers are binned, the rest are categories.
        label : column with the binary label.
        features : columns to use; default all but the label.
        pairs : `all` pairs of features, `none`, or the pairs wanted, by name.
        binning, categorical : see `FrameEncoder.fit`.
        positive : label value that counts as 1, where the label is not 0/1.

        Raises
        ------
        DataError : bad label, absent column, text in a numeric column, no rows.
        """
        x, y = take_label(frame, label, positive)
        x = x if features is None else x[_present(features, x.columns)]
        if x.empty:
            raise DataError("there are no records to aggregate")
        encoder = FrameEncoder.fit(x, binning, categorical)
        return cls.from_codes(encoder, encoder.encode(x), y, label, pairs)

    @classmethod
    def from_codes(cls, encoder: FrameEncoder, codes: np.ndarray, y: np.ndarray, label="label", pairs="all") -> Self:
        """Aggregate encoded records: codes (n, D) int32, y (n,) in {0, 1}."""
        return cls.from_batches(encoder, [(codes, y)], label, pairs)

    @classmethod
    def from_batches(cls, encoder: FrameEncoder, batches, label="label", pairs="all") -> Self:
        """Add up tables over batches of (codes, y); memory holds one batch and the tables."""
        sizes, sums, total, positives = encoder.sizes, {}, 0, 0
        keys = table_keys(encoder.names, pairs)
        for codes, y in batches:
            total, positives = total + len(y), positives + int(np.sum(y))
            for key in keys:
                sums[key] = _add(sums.get(key), _count(codes, y, key, sizes))
        tables = {k: Table(tuple(int(sizes[i]) for i in k), *sums[k]) for k in keys}
        return cls(encoder, label, total, positives, tables)

    @classmethod
    def from_parquet(
        cls,
        path,
        label: str,
        features=None,
        pairs="all",
        *,
        binning="deciles",
        categorical=(),
        positive=None,
        missing: Iterable[str] = (),
    ) -> Self:
        """Aggregate a Parquet file too large for memory: one column at a time to fit the encoder, then row group by
        row group to count. Parameters as in `from_records`; `missing`: spellings of a missing value besides null."""
        file = pq.ParquetFile(path)
        _present([label], file.schema_arrow.names)
        others = [c for c in file.schema_arrow.names if c != label]
        columns = others if features is None else _present(features, others)
        categorical, missing = set(_present(categorical, columns)), list(missing)
        if not columns or not file.metadata.num_rows:
            raise DataError("there are no records to aggregate")
        parts = [
            FrameEncoder.fit(with_missing(file.read(columns=[c]).to_pandas(), missing), binning, categorical & {c})
            for c in columns
        ]
        encoder = FrameEncoder(tuple(p.features[0] for p in parts))
        y = binary_label(file.read(columns=[label]).to_pandas()[label], positive)

        def batches():
            start = 0
            for group in range(file.num_row_groups):
                frame = file.read_row_group(group, columns=columns).to_pandas()
                yield encoder.encode(with_missing(frame, missing)), y[start : start + len(frame)]
                start += len(frame)

        return cls.from_batches(encoder, batches(), label, pairs)

    # -- using --------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return self.encoder.names

    @property
    def pairs(self) -> list[Key]:
        """Keys of the pair tables, in order."""
        return [k for k in self.tables if len(k) == 2]

    def dense(self, *key: int) -> tuple[np.ndarray, np.ndarray]:
        """Counts and label sums of one table as float64 arrays."""
        return self.tables[key].dense()

    def select(self, names: Iterable[str]) -> Self:
        """The tables of some features only, in the encoder's order."""
        wanted = set(_present(names, self.names))
        kept = [i for i, n in enumerate(self.names) if n in wanted]
        place = {i: k for k, i in enumerate(kept)}
        tables = {tuple(place[i] for i in key): t for key, t in self.tables.items() if set(key) <= set(kept)}
        encoder = self.encoder.select([self.names[i] for i in kept])
        return replace(self, encoder=encoder, tables=tables)

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """All tables in two symmetric (K, K) float64 matrices, K = all modalities in the encoder's order.

        Blocks (i, j) hold the pair tables, the diagonal the single tables; the rest is zero.
        """
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

    # -- keeping ------------------------------------------------------------------------------------------------

    def save(self, folder) -> None:
        """Write `tables.parquet` (features, codes, count, label_sum) and `tables.json` (everything else)."""
        folder = prepared(folder)
        parts = [self._rows(k) for k in self.tables]
        rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), folder / "tables.parquet", compression="zstd")
        header = {
            "label": self.label,
            "total": self.total,
            "positives": self.positives,
            "encoder": self.encoder.to_dict(),
            "tables": [list(k) for k in self.tables],
            "noise": self.noise and self.noise.to_dict(),
        }
        (folder / "tables.json").write_text(json.dumps(header, indent=1, ensure_ascii=False) + "\n")

    def _rows(self, key: Key) -> pd.DataFrame:
        table = self.tables[key]
        codes = np.unravel_index(table.cells, table.shape)
        first, second = codes[0], codes[-1] if len(key) == 2 else np.full(len(table.cells), -1)
        return pd.DataFrame(
            {
                "feature_a": np.int32(key[0]),
                "feature_b": np.int32(key[1] if len(key) == 2 else -1),
                "code_a": first.astype(np.int32),
                "code_b": second.astype(np.int32),
                "count": table.counts,
                "label_sum": table.label_sums,
            }
        )

    @classmethod
    def load(cls, folder) -> Self:
        """Read what `save` wrote; the checks of the constructor apply."""
        folder = Path(folder)
        if not (folder / "tables.json").is_file():
            raise DataError(
                f"{folder}: no contingency tables here (tables.json is missing); make them with `agglearn aggregate`"
            )
        with reading(folder, "contingency tables"):
            header = json.loads((folder / "tables.json").read_text())
            encoder = FrameEncoder.from_dict(header["encoder"])
            rows = pq.read_table(folder / "tables.parquet").to_pandas()
            groups = dict(iter(rows.groupby(["feature_a", "feature_b"], sort=False)))
            tables = {}
            for listed in header["tables"]:
                key = tuple(listed)
                shape = tuple(int(encoder.sizes[i]) for i in key)
                part = groups.get((key[0], key[1] if len(key) == 2 else -1), rows.iloc[:0])
                codes = [part[c].to_numpy(np.int64) for c in ("code_a", "code_b")[: len(key)]]
                cells = np.ravel_multi_index(codes, shape)
                tables[key] = Table(shape, cells, part["count"].to_numpy(), part["label_sum"].to_numpy())
            noise = NoiseSpec(**header["noise"]) if header["noise"] else None
            return cls(encoder, header["label"], header["total"], header["positives"], tables, noise)

    def _fingerprint(self, hasher) -> None:
        hasher.update(json.dumps([self.encoder.to_dict(), self.label, self.total, self.positives]).encode())
        hasher.update(json.dumps(self.noise and self.noise.to_dict()).encode())
        for key, table in self.tables.items():
            hasher.update(repr(key).encode())
            for part in (table.cells, table.counts, table.label_sums):
                hasher.update(np.ascontiguousarray(part).tobytes())


def with_missing(frame: pd.DataFrame, marks: Iterable[str]) -> pd.DataFrame:
    """The frame with the values that are spelt like one of the marks made missing."""
    marks = list(marks)
    return frame.mask(frame.apply(lambda column: as_text(column).isin(marks))) if marks else frame


COLUMNS = ["feature_a", "feature_b", "code_a", "code_b", "count", "label_sum"]


def table_keys(names: Sequence[str], pairs) -> list[Key]:
    """Keys of the tables wanted: every single feature, then the pairs."""
    singles: list[Key] = [(i,) for i in range(len(names))]
    if isinstance(pairs, str):
        if pairs not in ("all", "none"):
            raise DataError(f"pairs: {pairs!r} is not known; 'all', 'none' or a list of pairs of names")
        return singles + (list(itertools.combinations(range(len(names)), 2)) if pairs == "all" else [])
    place = {n: i for i, n in enumerate(names)}
    chosen = set()
    for a, b in pairs:
        if a == b:
            raise DataError(f"pairs: {a!r} is paired with itself")
        _present([a, b], names)
        chosen.add(tuple(sorted((place[a], place[b]))))
    return singles + sorted(chosen)


def _present(wanted: Iterable[str], columns) -> list[str]:
    """The names as a list; DataError for one that is no column or is named twice."""
    wanted = list(wanted)
    for i, name in enumerate(wanted):
        if name not in columns:
            raise DataError(f"no column {name!r}; the columns are {', '.join(map(str, list(columns)[:20]))}")
        if name in wanted[:i]:
            raise DataError(f"column {name!r} is named twice")
    return wanted


def _count(codes: np.ndarray, y: np.ndarray, key: Key, sizes: np.ndarray):
    """Occupied cells of one table, with counts and label sums; rows with an unseen value are in no cell."""
    flat = codes[:, key[0]].astype(np.int64)
    seen = flat >= 0
    for i in key[1:]:
        flat = flat * sizes[i] + codes[:, i]
        seen &= codes[:, i] >= 0
    if not seen.all():
        flat, y = flat[seen], y[seen]
    cells = int(np.prod(sizes[list(key)]))
    if cells <= DENSE_CELLS:
        d = np.bincount(flat, minlength=cells)
        c = np.bincount(flat[y > 0], minlength=cells)
        occupied = np.flatnonzero(d)
        return occupied, d[occupied], c[occupied]
    occupied, inverse, d = np.unique(flat, return_inverse=True, return_counts=True)
    return occupied, d, np.bincount(inverse[y > 0], minlength=len(occupied))


def _add(a, b):
    """Sum of two sparse (cells, counts, label sums)."""
    if a is None:
        return b
    cells, inverse = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
    sums = [np.zeros(len(cells), dtype=np.int64) for _ in range(2)]
    for out, one, two in zip(sums, a[1:], b[1:], strict=True):
        np.add.at(out, inverse, np.concatenate([one, two]))
    return cells, *sums


def _check(tables: ContingencyTables) -> None:
    """Tables of real records: whole, non-negative, label sums within counts, no table with more than all records."""
    names = tables.names
    for key, table in tables.tables.items():
        where = "table " + " × ".join(repr(names[i]) for i in key)
        if (table.counts < 0).any() or (table.label_sums < 0).any():
            raise DataError(f"{where}: negative counts; declare the noise (noise=…) or mend the table")
        if (table.label_sums > table.counts).any():
            raise DataError(f"{where}: a label sum exceeds its count; label sums are counts of records with label 1")
        if table.counts.sum() > tables.total * (1 + 1e-9) or table.label_sums.sum() > tables.positives * (1 + 1e-9):
            raise DataError(f"{where}: adds up to {table.counts.sum():g} records, the total is {tables.total:g}")
    if not 0 < tables.positives < tables.total:
        raise DataError(
            f"label {tables.label!r}: all {tables.total:g} records have the same label; nothing can be learned"
        )
