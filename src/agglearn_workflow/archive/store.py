"""The table of measurements (`SCHEMA`), and the archive: results of runs that are `ok`, or `stopped` at their solver's own
limit. An experiment is a folder of Parquet files there, one table: the measurements, and the facts of the run (`FACTS`).
Equal content has equal bytes."""

import contextlib
import datetime
import fcntl
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn import storage
from agglearn.errors import DataError
from agglearn_workflow.plan import IDENTITY, Run, canonical

MEASURED = [
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
NESTED = ("data", "spec", "versions")  # JSON
RECORDED = ("recipe", "code", "fingerprint", "observed", "observation_recipe", *NESTED, "python", "machine", "commit")
NUMBERS, COSTS = ("value", "step", "overlap"), ("began", "ended", "cpu_seconds", "peak_memory")
TYPES = {"seed": pa.int64()} | dict.fromkeys((*NUMBERS, *COSTS), pa.float64())  # others are text


def _schema(names: Iterable[str]) -> pa.Schema:
    return pa.schema([(name, TYPES.get(name, pa.string())) for name in names])


SCHEMA, FACTS = _schema(MEASURED), _schema((*RECORDED, *COSTS))
COLUMNS = pa.schema([*SCHEMA, *FACTS])
MAX_BYTES = 400_000  # of a file
FINISHED = ("ok", "stopped")
NOT_ARCHIVED = "not archived"


def table_of(rows: list[dict]) -> pa.Table:
    """Rows in the columns of `SCHEMA`, where what is missing or NaN is null."""
    columns = {c: [row.get(c) for row in rows] for c in MEASURED}
    columns |= {c: [None if v is None else float(v) for v in columns[c]] for c in NUMBERS}
    return pa.table([pa.array(v, SCHEMA.field(c).type, from_pandas=True) for c, v in columns.items()], schema=SCHEMA)


def write_batch(tables: Mapping[Run, pa.Table], out: str | Path, **metadata: str) -> None:
    """Write the measurements of a batch into one Parquet file, whose metadata hold the recipe of every run."""
    metadata = {"recipes": json.dumps({run.key: run.recipe for run in tables}), **metadata}
    with storage.atomic_file(out) as work:
        table = pa.concat_tables(tables.values()).replace_schema_metadata(metadata)
        pq.write_table(table, work, compression="zstd")


@dataclass(frozen=True)
class ArchivedRun:
    facts: dict[str, Any]
    rows: pa.Table

    @property
    def day(self) -> str:
        """Date of its end (UTC)."""
        return datetime.datetime.fromtimestamp(self.facts["ended"], datetime.UTC).date().isoformat()


Archived = dict[str, ArchivedRun]  # by the keys of runs


def experiments(folder: Path | str) -> list[str]:
    return sorted(path.name for path in Path(folder).glob("[!.]*") if path.is_dir())


def read(folder: Path | str, experiment: str) -> Archived:
    """The archived runs of an experiment. It is empty where the archive has none."""
    paths = sorted((Path(folder) / experiment).glob("*.parquet"), key=lambda path: int(path.stem))
    tables = [_read_file(path) for path in paths]
    return _split(pa.concat_tables(tables)) if tables else {}


def read_facts(folder: Path | str, experiment: str, names: list[str]) -> pd.DataFrame:
    """Identities and some facts of the archived runs of an experiment, without what was measured."""
    schema = _schema(["run", *IDENTITY, *names])
    tables = [_read_file(path, schema) for path in sorted((Path(folder) / experiment).glob("*.parquet"))]
    return pa.concat_tables([schema.empty_table(), *tables]).to_pandas().drop_duplicates("run", ignore_index=True)


def _read_file(path: Path, schema: pa.Schema = COLUMNS) -> pa.Table:
    try:
        names = pq.read_schema(path).names
        differing = sorted(set(names) ^ set(COLUMNS.names))
        table = None if differing else pq.read_table(path, columns=schema.names, partitioning=None)
    except (OSError, ValueError) as error:  # Arrow's errors are ValueErrors
        raise DataError(f"{path}: not a file of the archive: {error}") from None
    if table is None:
        raise DataError(f"{path}: its columns are not today's ({', '.join(differing)}); compute its runs again")
    return table.cast(schema)


def _split(table: pa.Table) -> Archived:
    """The runs of a table in which the rows of a run follow one another."""
    keys = table["run"].to_numpy()
    bounds = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
    first = table.take(bounds[:-1]).select([*IDENTITY, *FACTS.names]).to_pylist()
    measured = table.select(SCHEMA.names)
    runs = {}
    for facts, start, end in zip(first, bounds[:-1], bounds[1:], strict=True):
        nested = {name: json.loads(facts[name]) for name in NESTED}
        runs[keys[start]] = ArchivedRun(facts | nested, measured.slice(start, end - start))
    return runs


def write(folder: Path | str, experiment: str, runs: Archived) -> None:
    """Write the archived runs of an experiment in the place of those that are there."""
    ordered = sorted(runs.values(), key=lambda run: [run.facts[name] for name in IDENTITY])
    pieces = _pieces(pa.concat_tables([_with_facts(run) for run in ordered]))
    with storage.atomic_dir(Path(folder) / experiment) as out:
        for number, piece in enumerate(pieces):
            (out / f"{number}.parquet").write_bytes(piece)


def _with_facts(run: ArchivedRun) -> pa.Table:
    facts = run.facts | {name: canonical(run.facts[name]) for name in NESTED}
    columns = [pa.repeat(pa.scalar(facts[field.name], field.type), run.rows.num_rows) for field in FACTS]
    return pa.table([*run.rows.columns, *columns], schema=COLUMNS)


def _pieces(table: pa.Table) -> list[bytes]:
    """The table as Parquet files of at most `MAX_BYTES`."""
    buffer, half = io.BytesIO(), table.num_rows // 2
    lean = {"write_statistics": False, "store_schema": False}
    pq.write_table(table.combine_chunks(), buffer, compression="zstd", compression_level=15, **lean)
    if len(buffer.getvalue()) <= MAX_BYTES or not half:
        return [buffer.getvalue()]
    return [*_pieces(table.slice(0, half)), *_pieces(table.slice(half))]


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, which is made, and hold it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def of_results(results: Path | str, runs: Collection[Run]) -> Archived:
    """The finished runs that a results folder holds of some runs, if today's code and settings computed them."""
    ours = {}
    for run in runs:
        finished = read_finished(Path(results) / "runs" / run.key)
        if finished and finished.facts["recipe"] == run.recipe:
            facts = {name: finished.facts.get(name) for name in (*IDENTITY, *FACTS.names)}
            ours[run.key] = ArchivedRun(facts, finished.rows)
    return ours


def read_finished(folder: Path) -> ArchivedRun | None:
    """The run in a folder of results, with all of its `run.json`. None where it is not whole or has no result."""
    try:
        facts = storage.read_json(folder / "run.json")
        rows = pq.read_table(folder / "measurements.parquet", schema=SCHEMA)
    except (OSError, ValueError):  # Arrow's errors are ValueErrors
        return None
    return ArchivedRun(facts, rows) if facts["status"] in FINISHED and rows.num_rows else None


def merge(ours: Archived, theirs: Archived, recipes: Mapping[str, str]) -> Archived:
    """The runs of two archives. Of a run that both have, the one of today's recipe counts, then the newer one."""

    def rank(key: str, run: ArchivedRun) -> tuple[bool, float]:
        return run.facts["recipe"] == recipes.get(key), run.facts["ended"]

    better = {key: run for key, run in theirs.items() if key not in ours or rank(key, run) > rank(key, ours[key])}
    return ours | better


def add(folder: Path | str, experiment: str, runs: Archived, recipes: Mapping[str, str]) -> int:
    """Add runs to the archive of an experiment, as `merge` does, and return how many of them are new there."""
    with lock(Path(folder) / ".lock"):
        before = read(folder, experiment)
        after = merge(before, runs, recipes)
        n_new = sum(run is not before.get(key) for key, run in after.items())
        if n_new:
            write(folder, experiment, after)
    return n_new


def outdated(run: Run, archived: ArchivedRun) -> str | None:
    """A sentence on an archived run that would be computed with another recipe today. None where it would not."""
    if archived.facts["recipe"] == run.recipe:
        return None
    facts = archived.facts
    return f"archived with other code, settings or packages than today's (commit {facts['commit']}, {archived.day})"


def recall(runs: Iterable[Run], archived: Archived, out: str | Path) -> None:
    """Write a batch from the archive. Runs that it lacks are `not archived`. The metadata name the `outdated` ones."""
    tables, marks = {}, {}
    for run in runs:
        if run.key in archived:
            tables[run] = archived[run.key].rows
            if mark := outdated(run, archived[run.key]):
                marks[run.key] = mark
        else:
            reason = f"make archive ARGS={run.experiment} computes it"
            tables[run] = table_of([{"run": run.key, **run.identity, "status": NOT_ARCHIVED, "reason": reason}])
    write_batch(tables, out, marks=json.dumps(marks))
