"""Records from text files larger than memory, read and written block by block, with values as text."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agglearn.datasets.base import Stored, write_header
from agglearn.encoding.csv_files import CSVFormat, read_csv_blocks
from agglearn.errors import DataError


class Streamed(Stored):
    """One file with one record per line and no header. `format.columns` names its columns.

    Features are all columns that are not dropped, as text. An empty field is missing. `label.positive` is the label's
    spelling that counts as 1.
    """

    KEYS = (
        "mirror", "files", "format.separator", "format.columns", "format.missing", "label.column", "label.positive",
        "features.drop", "features.categorical", "split.last", "split_like", "encoding", "binning",
    )  # fmt: skip

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        [path] = files.values()
        columns, label = self.entry["format"]["columns"], self.entry["label"]["column"]
        dropped = {label, *self.entry.get("features", {}).get("drop", [])}
        features, labels = [c for c in columns if c not in dropped], []
        schema = pa.schema([(c, pa.string()) for c in features])
        with pq.ParquetWriter(out / "features.parquet", schema, compression="zstd") as writer:
            for block in read_csv_blocks(path, CSVFormat.from_entry(self.entry), [*features, label]):
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
