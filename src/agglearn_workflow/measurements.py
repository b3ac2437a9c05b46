"""The table of measurements: its columns, and the file of a batch."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from agglearn import storage
from agglearn_workflow.plan import IDENTITY, Run

COLUMNS = [
    "run",
    *IDENTITY,
    "status",
    "reason",
    "measure",
    "keys",  # JSON: what the value is about, see `agglearn.tasks.Measurement`
    "step",
    "value",
    "unit",
    "tested",  # digest of the tested units
    "overlap",  # of the seeds' splits, see `agglearn.tasks.Task.overlap`
]
NUMBERS = ("value", "step", "overlap")
SCHEMA = pa.schema([(c, pa.int64() if c == "seed" else pa.float64() if c in NUMBERS else pa.string()) for c in COLUMNS])


def table_of(rows: list[dict]) -> pa.Table:
    """Rows in the columns of `SCHEMA`, where what is missing or NaN is null."""
    columns = {c: [row.get(c) for row in rows] for c in COLUMNS}
    columns |= {c: [None if v is None else float(v) for v in columns[c]] for c in NUMBERS}
    return pa.table([pa.array(v, SCHEMA.field(c).type, from_pandas=True) for c, v in columns.items()], schema=SCHEMA)


def write_batch(tables: Mapping[Run, pa.Table], out: str | Path, **metadata: str) -> None:
    """Write the measurements of a batch into one Parquet file, whose metadata hold the recipe of every run."""
    metadata = {"recipes": json.dumps({run.key: run.recipe for run in tables}), **metadata}
    with storage.atomic_file(out) as work:
        table = pa.concat_tables(tables.values()).replace_schema_metadata(metadata)
        pq.write_table(table, work, compression="zstd")
