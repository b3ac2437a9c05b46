"""Seconds and memory of all tables of a Parquet file of records, beside the same group-bys in pandas, DuckDB and Polars.

    python benchmarks/aggregation.py [--rows 1000000] [--only NAME …] [--keep FILE]
    python benchmarks/aggregation.py --log 1000000 4000000 …     # growth with the records, 19 columns, beside Spark

Eleven integer columns with the cardinalities of Criteo Attribution are drawn into a temporary file; every contestant
reads that file anew in a process of its own and makes the 11 tables of single features and the 55 of pairs (records
and label sums per cell). Memory is the peak of the process and of those that it starts. Compilation is not timed.
`--rows 16000000` is the full size. `--log` has the columns of AdKDD'21, of a thousand values at most: 171 pairs. The
challenge's log had 80 million records. Spark (`make spark`) runs on the cores of this machine; its start is not timed.
"""

import argparse
import contextlib
import functools
import itertools
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from _common import compare, counts, fastest, show

from agglearn.encoding.hashing import HashedEncoder

SIZES = {
    "campaign": 675,
    **{f"cat{i}": m for i, m in enumerate((9, 70, 1829, 21, 51, 30, 57_196, 11, 30), start=1)},
    "position": 10,
}
LOG = {
    f"hash_{i}": min(m, 1000)  # values of the published sample
    for i, m in enumerate((7643, 9, 11, 400, 10, 2, 14, 12, 15, 9, 3940, 40, 1605, 103, 40413, 9, 506, 16025, 5))
}
PART = 1_000_000
COLUMNS = list(SIZES)
KEYS = [(c,) for c in COLUMNS] + list(itertools.combinations(COLUMNS, 2))


def write(path: Path, rows: int, sizes: dict[str, int] = SIZES) -> None:
    """Skewed, dependent columns of large random integers, as hashed identifiers are, and a rare label."""
    names = {c: np.random.default_rng(i).integers(0, 1 << 31, m) for i, (c, m) in enumerate(sizes.items())}
    writer = None
    for start in range(0, rows, PART):
        rng, n = np.random.default_rng([7, start]), min(PART, rows - start)
        hidden = rng.random(n)
        columns = {
            c: names[c][(((hidden + 2 * rng.random(n)) / 3) ** 3 * m).astype(np.int64)] for c, m in sizes.items()
        }
        table = pa.table({**columns, "label": (rng.random(n) < 0.1 * hidden).astype(np.int8)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def with_agglearn(path: Path) -> int:
    from agglearn.observations import ContingencyTables

    columns = [c for c in pq.read_schema(path).names if c != "label"]
    tables = ContingencyTables.from_parquet(path, "label", categorical=columns)
    return sum(len(t.cells) for t in tables.tables.values())


def with_spark(path: Path) -> int:
    from pyspark.sql import SparkSession

    from agglearn.spark import aggregate

    os.environ["PYSPARK_PYTHON"] = sys.executable
    memory = f"{psutil.virtual_memory().total // 2**31}g"  # half of it, for the driver holds the occupied cells
    session = (
        SparkSession.builder.master(f"local[{os.cpu_count()}]").config("spark.driver.memory", memory).getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    records = session.read.parquet(str(path))
    tables = aggregate(records, "label", categorical=[c for c in records.columns if c != "label"])
    return sum(len(t.cells) for t in tables.tables.values())


def with_pandas(path: Path) -> int:
    frame = pd.read_parquet(path)
    return sum(len(frame.groupby(list(k), sort=False)["label"].agg(["size", "sum"])) for k in KEYS)


def with_duckdb(path: Path) -> int:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count()}; CREATE TABLE r AS SELECT * FROM read_parquet('{path}')")
    queries = (f"SELECT {', '.join(k)}, count(*) AS n, sum(label) FROM r GROUP BY {', '.join(k)}" for k in KEYS)
    return sum(len(connection.execute(q).fetchnumpy()["n"]) for q in queries)


def with_polars(path: Path) -> int:
    import polars

    frame = polars.read_parquet(path)
    sums = (polars.len(), polars.col("label").cast(polars.Int64).sum().alias("sum"))
    return sum(frame.group_by(*k).agg(*sums).height for k in KEYS)


CONTESTANTS = {"agglearn": with_agglearn, "pandas": with_pandas, "DuckDB": with_duckdb, "Polars": with_polars}
GROWING = {"agglearn": with_agglearn, "Spark": with_spark}


def contest(name: str, path: Path, warm: Path, answers) -> None:
    """Seconds, peak memory and number of cells of one contestant, in a process of its own."""
    try:
        run = (CONTESTANTS | GROWING)[name]
        run(warm)
        begin = time.perf_counter()
        cells = run(path)
        seconds = time.perf_counter() - begin
        answers.put((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, cells))
    except ImportError:
        answers.put(None)


def measure(name: str, path: Path, warm: Path):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=functools.partial(contest, name, path, warm, answers))
    process.start()
    peak = 0.0
    while process.is_alive() and answers.empty():
        peak = max(peak, memory_of_all(process.pid) / 1e9)
        process.join(0.1)
    answer = (float("nan"), float("nan"), "died") if answers.empty() else answers.get()
    process.join()
    return answer and (answer[0], max(answer[1], peak), answer[2])


def memory_of_all(pid: int) -> int:
    """Resident bytes of a process and of those that it has started."""
    total = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for running in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += running.memory_info().rss
    return total


def table(names: list[str], path: Path, warm: Path) -> list[dict]:
    rows, ours = [], None
    for name in names:
        answer = measure(name, path, warm)
        ours = ours or answer
        found = ["not installed", *["–"] * 3] if answer is None else [answer[0], answer[0] / ours[0], *answer[1:]]
        rows.append(dict(zip(("by", "seconds", "ratio", "peak GB", "cells"), (name, *found), strict=True)))
        if answer is not None and name != names[0] and answer[2] != "died":
            n = pq.ParquetFile(path).metadata.num_rows
            memory = {"memory": ours[1], "peer_memory": answer[1]}
            line = f"all {len(KEYS)} tables of {n:,} records"
            compare(line, ours[0], name, answer[0], n * 2 * len(KEYS) / counts(), **memory)
        print(f"  {name}: {found[0] if answer is None else f'{found[0]:.1f} s'}", flush=True)
    return rows


def growth(folder: Path, sizes: list[int]) -> None:
    """Seconds, memory and cells against the number of records, and the exponents of a fit to the last three sizes."""
    rows, (path, warm) = [], (folder / "log.parquet", folder / "warm.parquet")
    write(warm, 10_000, LOG)
    for n in sizes:
        write(path, n, LOG)
        for name in GROWING:
            answer = measure(name, path, warm)
            if answer is None:
                print(f"  {name}: not installed")
                continue
            seconds, memory, cells = answer
            rows.append({"by": name, "records": n, "MB of Parquet": path.stat().st_size / 1e6, "seconds": seconds})
            rows[-1] |= {"peak GB": memory, "occupied cells": cells}
            print(f"  {name}, {n:,} records: {seconds:.1f} s", flush=True)
    show(f"Tables of {len(LOG)} columns, {os.cpu_count()} cores", rows)
    for name, of_one in pd.DataFrame(rows).groupby("by"):
        last = of_one.dropna().tail(3)
        for column in ("seconds", "peak GB") if len(last) > 1 else ():
            exponent = np.polyfit(np.log(last["records"]), np.log(last[column]), 1)[0]
            print(f"{name}, {column}: records^{exponent:.2f}")


def hashing(n: int = 1_000_000, buckets: int = 1 << 14) -> None:
    """A column of categories to buckets, beside scikit-learn's hashing, which makes a sparse matrix of the same columns."""
    from sklearn.feature_extraction import FeatureHasher

    values = pd.Series(np.random.default_rng(0).zipf(1.5, n) % 10**6).map("v{}".format)
    encoder, hasher = HashedEncoder("user", buckets), FeatureHasher(buckets, input_type="string", alternate_sign=False)
    ours = fastest(lambda: encoder.encode(values))
    theirs = fastest(lambda: hasher.transform([v] for v in values), 1)
    compare(f"hashing {n:,} values into {buckets:,} buckets", ours, "scikit-learn FeatureHasher", theirs)
    show(f"Hashing {n:,} values", [{"agglearn, s": ours, "scikit-learn, s": theirs, "ratio": theirs / ours}])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--keep", type=Path, help="write the records here and leave them, or use what is there")
    parser.add_argument("--log", type=int, nargs="+", help="sizes of simulated logs")
    args = parser.parse_args()
    if args.log:
        with tempfile.TemporaryDirectory() as folder:
            return growth(Path(folder), args.log)
    with tempfile.TemporaryDirectory() as folder:
        path, warm = args.keep or Path(folder) / "records.parquet", Path(folder) / "warm.parquet"
        write(warm, 10_000)
        if not path.exists():
            write(path, args.rows)
        size = f"{pq.ParquetFile(path).metadata.num_rows:,} records × {len(COLUMNS)} columns"
        print(f"{size}, {len(KEYS)} tables, {os.cpu_count()} cores, {path.stat().st_size / 1e6:.0f} MB of Parquet")
        show("All tables of single features and pairs", table(args.only, path, warm))
    hashing()


if __name__ == "__main__":
    main()
