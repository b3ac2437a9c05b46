"""Counting in one pass: against NumPy, whole against sparse, in any batches, by any number of threads."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglearn.encoding import BinnedEncoder, FrameEncoder, Schema
from agglearn.encoding.coded import CodedEncoder
from agglearn.errors import DataError
from agglearn.observations import ContingencyTables, Halves, counting, kernels
from agglearn.observations.counting import Dense, Sparse, Tally, workload_of
from agglearn.observations.streaming import ParquetRecords, as_columns


def expected(codes, y, key, sizes):
    """Occupied cells, counts and label sums of one table, in NumPy."""
    seen = (codes[:, list(key)] >= 0).all(axis=1)
    flat = np.ravel_multi_index(codes[seen][:, list(key)].T, [sizes[i] for i in key])
    cells, inverse, d = np.unique(flat, return_inverse=True, return_counts=True)
    return cells, d, np.bincount(inverse[y[seen] > 0], minlength=len(cells))


KEYS = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]


@st.composite
def encoded(draw):
    """Random codes with unseen values, labels and sizes."""
    n, seed = draw(st.integers(0, 300)), draw(st.integers(0, 2**32 - 1))
    sizes = np.array(draw(st.tuples(*3 * [st.sampled_from([1, 2, 7, 300])])))
    rng = np.random.default_rng(seed)
    return rng.integers(-1, sizes, (n, 3)).astype(np.int32), rng.integers(0, 2, n).astype(np.int8), sizes


def check(codes, y, sizes, sparse, batch, most=kernels.MAX_RECORDS):
    """Count in batches, with at most so many records in one table."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("DENSE_CELLS", 0 if sparse else 1 << 22), ("FIRST_SLOTS", 2), ("BLOCK", 64)):
            patch.setattr(counting, name, value)
        patch.setattr(kernels, "MAX_RECORDS", most)
        tally = Tally(sizes, KEYS)
        assert all(isinstance(t, Sparse if sparse else Dense) for t in tally._tables.values())
        for start in range(0, len(y), batch):
            tally.add(codes[start : start + batch], y[start : start + batch])
        found = tally.counts()
        assert (tally.total, tally.positives) == (len(y), y.sum())
        for key in KEYS:
            for a, b in zip(found[key], expected(codes, y, key, sizes), strict=True):
                np.testing.assert_array_equal(a, b)


@given(encoded(), st.booleans(), st.integers(1, 100), st.sampled_from([64, kernels.MAX_RECORDS]))
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_numpy(drawn, sparse, batch, most):
    check(*drawn, sparse, batch, most)


count_dense, count_sparse = kernels.count_dense, kernels.count_sparse


def _unseen_counted(first, second, stride, buckets, labels, cells):
    count_dense(np.maximum(first, 0), second, stride, buckets, labels, cells)


def _label_forgotten(first, second, stride, buckets, labels, slots, used, start):
    return count_sparse(first, second, stride, buckets, labels * 0, slots, used, start)


@pytest.mark.parametrize(("name", "wrong"), [("count_dense", _unseen_counted), ("count_sparse", _label_forgotten)])
def test_a_wrong_kernel_is_noticed(name, wrong, monkeypatch):
    rng, sizes = np.random.default_rng(0), np.array([4, 50, 6])
    drawn = rng.integers(-1, sizes, (500, 3)).astype(np.int32), rng.integers(0, 2, 500).astype(np.int8), sizes
    check(*drawn, name == "count_sparse", 100)
    monkeypatch.setattr(kernels, name, wrong)
    with pytest.raises(AssertionError):
        check(*drawn, name == "count_sparse", 100)


def test_small_tables_are_held_whole_and_all_together_within_bounds(monkeypatch):
    kinds = lambda tally: {k: type(t).__name__ for k, t in tally._tables.items()}  # noqa: E731
    sizes = np.array([3, 1 << 11, (1 << 11) + 1])
    assert kinds(Tally(sizes, KEYS))[(1, 2)] == "Sparse"
    assert kinds(Tally(sizes, KEYS))[(0, 2)] == "Dense"
    assert kinds(Tally(sizes, KEYS, {(1, 2): 100}))[(1, 2)] == "Dense"
    monkeypatch.setattr(counting, "DENSE_TOTAL", 10_000)
    assert kinds(Tally(sizes, KEYS))[(0, 2)] == "Sparse"
    assert kinds(Tally(np.full(2, 2**31 - 1), [(0, 1)])) == {(0, 1): "Sparse"}


def test_cells_beyond_32_bits():
    codes = np.array([[2**31 - 2, 2**31 - 2], [0, 5], [2**31 - 2, 2**31 - 2]], dtype=np.int32)
    tally = Tally(np.full(2, 2**31 - 1), [(0, 1)])
    tally.add(codes, np.array([1, 0, 0]))
    cells, d, c = tally.counts()[(0, 1)]
    assert cells.tolist() == [5, (2**31 - 2) * 2**31]
    assert (d.tolist(), c.tolist()) == ([1, 2], [0, 1])


def test_codes_that_cannot_be():
    tally = Tally(np.array([3, 4]), [(0,), (1,), (0, 1)])
    tally.add(np.array([[2, 3], [-1, -1]]), np.array([0, 1]))
    for codes, said in (([[2, 4]], "feature 1: a code beyond its 4"), ([[1]], "shape"), ([[1, 1], [1, 1]], "shape")):
        with pytest.raises(DataError, match=said):
            tally.add(np.array(codes), np.array([1]))
    assert tally.total == 2


def splitmix(state: int) -> int:
    """First number of SplitMix64 from a state, in Python's own integers."""
    z = (state + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_the_bucket_of_a_cell_is_the_same_everywhere():
    """Tables that were saved elsewhere, or years ago, are hashed alike."""
    assert splitmix(0) == 0xE220A8397B1DCDAF  # as published with SplitMix64
    cells = np.array([0, 1, 2, 1000, 2**40])
    assert counting.buckets_of(cells, 97).tolist() == [splitmix(int(c)) % 97 for c in cells]
    assert np.bincount(counting.buckets_of(np.arange(100_000), 100)).min() > 800


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import numpy as np, pandas as pd
from agglearn.encoding import FrameEncoder
from agglearn.observations import ContingencyTables, counting
counting.BLOCK, counting.DENSE_CELLS, counting.LITTLE = 700, 2000, 0
rng = np.random.default_rng(0)
frame = pd.DataFrame({{f"f{{i}}": rng.integers(0, m, 5000) for i, m in enumerate((3, 70, 200))}}).astype(str)
print(ContingencyTables.from_records(frame.assign(y=rng.integers(0, 2, 5000)), "y").digest)
"""


def digest_by(threads: int, cache) -> str:
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", SCRIPT.format(paths=sys.path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=180).stdout


@pytest.mark.slow
def test_same_with_one_two_and_four_threads_and_from_two_processes_on_a_cold_cache(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        digests = set(pool.map(digest_by, (1, 2), [tmp_path] * 2))
    digests.add(digest_by(4, tmp_path))
    assert len(digests) == 1


@pytest.mark.slow
def test_reading_tables_needs_no_compiler():
    """Whoever reads saved tables, or forks after importing them, has not waited for numba or started its threads."""
    check = "import sys, agglearn.observations; assert 'numba' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", check], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


# -- streaming --------------------------------------------------------------------------------------------------------


def many_kinds(n: int = 700) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    big = 2**60 + rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "text": rng.choice(["b", "a", None, "?"], n),
            "numbers as text": rng.integers(0, 20, n).astype(str),
            "code": pd.Series(big, dtype="Int64").where(rng.random(n) < 0.9),
            "flag": rng.random(n) < 0.5,
            "real": rng.normal(size=n).round(1),
            "half": np.where(rng.random(n) < 0.9, rng.integers(0, 9, n) / 2, np.nan),  # whole in some batches only
            "kind": pd.Categorical(rng.choice(["u", "v"], n), categories=["w", "v", "u"]),
        }
    )
    return frame.assign(y=rng.integers(0, 2, n))


@pytest.mark.parametrize(("missing", "pairs", "batch"), [((), "all", 111), (("?", "0.1"), [("half", "text")], 7)])
def test_any_column_streams_as_it_is_aggregated_in_memory(tmp_path, monkeypatch, missing, pairs, batch):
    frame, path = many_kinds(), tmp_path / "r.parquet"
    frame.to_parquet(path, index=False, row_group_size=300)
    monkeypatch.setattr("agglearn.observations.streaming.BATCH", batch)
    how = {"categorical": ["code", "kind", "half"], "hashed": {"text": 5}, "cross_buckets": 20, "pairs": pairs}
    streamed = ContingencyTables.from_parquet(path, "y", missing=missing, **how)
    whole = frame.mask(frame.isin(["?", 0.1])) if missing else frame
    assert streamed.digest == ContingencyTables.from_records(whole.assign(y=frame.y), "y", **how).digest
    sizes = {f.name: f.size for f in streamed.encoder.features}
    assert sizes | {"code": 4, "kind": 2, "flag": 2, "half": 10, "text": 6} == sizes


def test_text_of_any_arrow_type_streams(tmp_path):
    frame = pd.DataFrame({"a": list("uvuw"), "b": list("xxyy"), "y": [0, 1, 1, 0]})
    table = pa.table(
        {"a": pa.array(frame.a, pa.large_string()), "b": pa.array(frame.b).dictionary_encode(), "y": frame.y}
    )
    pq.write_table(table, tmp_path / "r.parquet")
    tables = ContingencyTables.from_parquet(tmp_path / "r.parquet", "y", categorical=["b"])
    assert tables.digest == ContingencyTables.from_records(frame, "y").digest


@pytest.mark.parametrize("pairs", ["all", "none", [(0, 2), (1, 2)]])
def test_the_work_is_known_beforehand(pairs):
    rng = np.random.default_rng(0)
    sizes = np.array([3, 500, 40])
    codes = rng.integers(0, sizes, (1000, 3)).astype(np.int32)
    encoder = FrameEncoder(tuple(CodedEncoder(n, int(k)) for n, k in zip("abc", sizes, strict=True)))
    named = pairs if isinstance(pairs, str) else [("abc"[i], "abc"[j]) for i, j in pairs]
    told = []
    tables = ContingencyTables.from_codes(encoder, codes, codes[:, 0] > 0, pairs=named, before_counting=told.append)
    assert told == [workload_of(sizes, pairs, 1000)]
    assert told[0].tables == len(tables.tables)
    occupied = sum(len(t.cells) for t in tables.tables.values())
    assert told[0].bytes >= 100 * occupied
    assert workload_of(sizes, pairs).bytes < told[0].bytes  # without records a lower bound


def refuse(*_, **__):
    raise AssertionError("values are read")


@pytest.mark.parametrize("door", ["frame", "declared", "codes", "Parquet", "halves"])
def test_too_many_columns_are_refused_before_their_values_are_read(door, tmp_path, monkeypatch):
    names = [f"c{i}" for i in range(6_000)]
    frame = pd.DataFrame(np.zeros((2, 6_000), np.int8), columns=names).assign(y=[0, 1])
    schema = Schema("y", "1", "0", FrameEncoder(tuple(CodedEncoder(n, 2) for n in names), "declared"))
    monkeypatch.setattr("agglearn.observations.counting.memory_bytes", lambda: 10**11)
    for kind in (BinnedEncoder, CodedEncoder):
        monkeypatch.setattr(kind, "encode", refuse)
    monkeypatch.setattr(BinnedEncoder, "fit", refuse)
    monkeypatch.setattr(ParquetRecords, "values", refuse)
    frame.to_parquet(tmp_path / "wide.parquet")
    calls = {
        "frame": lambda: ContingencyTables.from_records(frame, "y"),
        "declared": lambda: ContingencyTables.from_records(frame, schema=schema),
        "codes": lambda: ContingencyTables.from_codes(schema.encoder, np.zeros((2, 6_000), np.int32), [0, 1]),
        "Parquet": lambda: ContingencyTables.from_parquet(tmp_path / "wide.parquet", "y"),
        "halves": lambda: Halves.from_records(frame, "y"),
    }
    with pytest.raises(
        DataError, match=r"18,003,000 tables take about \d+ GB of memory and 1\.\d h, more than the 100 GB"
    ):
        calls[door]()


def test_a_time_zone_that_nobody_knows_is_named():
    column = pa.array([0, 1], pa.timestamp("s", "Mars/Base"))
    with pytest.raises(DataError, match="'Mars/Base'"):
        as_columns(pa.table({"when": column}))
