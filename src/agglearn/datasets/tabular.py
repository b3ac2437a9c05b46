"""Records from text or Parquet files, and from data sets inside installed packages."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pandas.api.types import is_numeric_dtype

from agglearn.datasets.base import Stored, require_columns, write_header
from agglearn.encoding.columns import as_text, numbers
from agglearn.encoding.csv_files import CSVFormat, about, header_of, read_csv, read_csv_blocks
from agglearn.encoding.labels import binary_label
from agglearn.errors import DataError, NotAvailable
from agglearn.registry import resolve
from agglearn.text import count_text, list_some

logger = logging.getLogger(__name__)

Rows = dict[str, list[int]]  # name of an official subset → [first, last + 1] rows


class Tabular(Stored):
    """Files with one record per line, read by `format`, `label`, `features` and `split` of the entry."""

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        frames = {name: self._read(path) for name, path in files.items()}
        split, subsets = self.entry.get("split"), None
        if isinstance(split, dict) and "train" in split:
            if absent := [name for name in split.values() if name not in frames]:
                raise DataError(f"split: no file {absent[0]!r}; there are {', '.join(frames)}")
            order = [split["train"], split["test"]]
            bounds = np.cumsum([0] + [len(frames[n]) for n in order]).tolist()
            subsets = {"train": bounds[:2], "test": bounds[1:]}
            frames = {n: frames[n] for n in order}
        frame = self._combine(frames, files)
        return write_labelled(self, out, frame, ", ".join(files), subsets)

    def _read(self, path: Path, as_text: Sequence[str] = ()) -> pd.DataFrame:
        with about(path):
            if path.suffix != ".parquet":
                return read_csv(path, CSVFormat.from_entry(self.entry), dict.fromkeys(as_text, str))
            if as_text:
                name = as_text[0]
                raise DataError(f"column {name!r} holds text in one file and numbers in another; write them alike")
            return pd.read_parquet(path)

    def _combine(self, frames: dict[str, pd.DataFrame], files: dict[str, Path]) -> pd.DataFrame:
        """All files as one. A column that is text in one of them, for an empty field or a word, is text in all."""
        lengths = {n: len(f) for n, f in frames.items()}
        if empty := [name for name, length in lengths.items() if length == 0]:
            raise DataError(f"{empty[0]}: the file has no rows; fetch it again or remove the entry")
        if self.entry.get("format", {}).get("combine") == "columns":
            if len(set(lengths.values())) > 1:
                raise DataError(f"combine: columns needs files of equal length, they have {lengths}")
            return pd.concat(list(frames.values()), axis=1)
        kinds = defaultdict[str, set[bool]](set)  # of each column, whether it is numeric, in files where it has values
        for f in frames.values():
            for c in f:
                kinds[c] |= {is_numeric_dtype(f[c])} if f[c].notna().any() else set()
        if mixed := [c for c, numeric in kinds.items() if len(numeric) > 1]:
            frames = {name: self._read(files[name], mixed) for name in frames}
        return pd.concat(list(frames.values()), ignore_index=True)


class Streamed(Stored):
    """Files, together maybe larger than memory, with one record per line. Columns are `format.columns` or their header.

    Features are all columns that are not dropped, as text. `label.positive` is the label's spelling that counts as 1.
    """

    KEYS = (
        "mirror", "files", "format.separator", "format.columns", "format.missing", "label.column", "label.positive",
        "features.drop", "features.categorical", "split.last", "split_like", "encoding", "binning",
    )  # fmt: skip

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        form, label = CSVFormat.from_entry(self.entry), self.entry["label"]["column"]
        columns = header_of(next(iter(files.values())), form)
        dropped = {label, *self.entry.get("features", {}).get("drop", [])}
        features, labels = [c for c in columns if c not in dropped], []
        schema = pa.schema([(c, pa.string()) for c in features])
        with pq.ParquetWriter(out / "features.parquet", schema, compression="zstd") as writer:
            for path in files.values():
                for block in read_csv_blocks(path, form, dict.fromkeys([*features, label], pa.string())):
                    writer.write_table(block.select(features))
                    labels.append(self._labels(block[label], path))
        y = np.concatenate(labels)
        pq.write_table(pa.table({"label": y}), out / "labels.parquet")
        write_header(out, len(y), label, self.entry.get("features", {}).get("categorical", []))
        return {"rows": len(y), "columns": len(features), "rate": float(np.mean(y))}

    def _labels(self, column: pa.ChunkedArray, path: Path) -> np.ndarray:
        spelt = pc.unique(column).to_pylist()
        if None in spelt or len(spelt) > 2:
            raise DataError(f"{path}: label {self.entry['label']['column']!r} must have two values, it has {spelt[:5]}")
        return pc.equal(column, str(self.entry["label"].get("positive", 1))).to_numpy().astype(np.int8)


class Packaged(Stored):
    """A data set inside an installed Python package.

    Parameters
    ----------
    loader : str
        Dotted path of a function of statsmodels (whose result has `.data`) or scikit-learn (`as_frame=True`, `.frame`).
    """

    KEYS = ("label", "features", "split.last", "split_like", "encoding", "binning")

    loader: str

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        try:
            load = resolve(self.loader)
        except ImportError as error:
            raise NotAvailable(f"{error.name} is not installed") from None
        frame = load(as_frame=True).frame if self.loader.startswith("sklearn") else load().data
        return write_labelled(self, out, frame, self.loader)


def write_labelled(dataset: Stored, out: Path, frame: pd.DataFrame, source: str, subsets: Rows | None = None) -> dict:
    """Facts for the manifest, after records were written. `label: {missing: drop}` leaves out those without a label."""
    entry, facts = dataset.entry, {}
    spec = entry.get("label") or {}
    if (treatment := spec.get("missing", "refuse")) not in ("refuse", "drop"):
        raise DataError(f"{source}: label.missing: {treatment!r} is not known; refuse or drop")
    if treatment == "drop" and spec.get("column") in frame:
        labelled = frame[spec["column"]].notna().to_numpy()
        n_before = np.append(0, np.cumsum(labelled))
        subsets = subsets and {name: n_before[bounds].tolist() for name, bounds in subsets.items()}
        facts["dropped"] = n = int((~labelled).sum())
        missing = f"label {spec['column']!r} is missing in {n:,} of {len(frame):,} rows"
        logger.info(f"{source}: {missing}, which are left out")
        frame = frame[labelled].reset_index(drop=True)
    y = label_of(frame, spec, source)
    return dataset.write(out, features_of(frame, entry), y, subsets) | facts


def label_of(frame: pd.DataFrame, spec: dict, source: str) -> np.ndarray:
    if not spec:
        raise DataError(f"{source}: the entry has no label; add label: {{column: …}} in config/datasets/")
    name = spec["column"]
    if name not in frame:
        raise DataError(f"{source}: no label column {name!r}; the columns are {list_some(frame.columns)}")
    column = frame[name]
    if n := int(column.isna().sum()):
        advice = "mend them, or leave them out by label: {missing: drop}"
        raise DataError(f"{source}: label {name!r} is missing in {count_text(n, 'row')}; {advice}")
    if "above" in spec:
        return (numbers(column) > spec["above"]).astype(np.int8)
    positive = spec.get("positive")
    if isinstance(positive, list):
        is_positive = as_text(column).isin(as_text(pd.Series(positive)))
        if not is_positive.any():
            raise DataError(f"{source}: label {name!r} never has the values {positive}")
        negatives = column[~is_positive].unique().tolist()
        if not 0 < len(negatives) <= min(2, len(positive)):  # a value may be spelt in two ways, as in two files
            raise DataError(f"{source}: label {name!r} must have two values, besides {positive} it has {negatives[:5]}")
        return is_positive.to_numpy().astype(np.int8)
    try:
        return binary_label(column, positive)
    except DataError as error:
        raise DataError(f"{source}: {error}") from None


def features_of(frame: pd.DataFrame, entry: dict) -> pd.DataFrame:
    spec = entry.get("features", {})
    for key in ("drop", "categorical", "domains", "numeric", "log", "log2", "rare", "hashed"):
        require_columns(frame, spec.get(key, []), f"features.{key}")
    features = frame.drop(columns=[entry["label"]["column"], *spec.get("drop", [])])
    for name in spec.get("numeric", []):
        features[name] = numbers(features[name])
    for name in spec.get("log", []):
        values = numbers(features[name])
        if values.min() < 0:
            raise DataError(f"features.log: column {name!r} has {values.min():g}; numbers from 0 on have a logarithm")
        features[name] = np.log1p(values)
    for name, offset in spec.get("log2", {}).items():
        shifted = numbers(features[name]) + offset
        features[name] = np.floor(np.log2(np.where(shifted > 0, shifted, np.nan)))
    return features
