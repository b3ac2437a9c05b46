"""Neighbours give private releases of equal support: whatever one record holds, only noisy numbers can tell of it.

Two neighbours differ in one record in any way. What a release consists of, but for the numbers that noise was added to, must be
the same for both: names of files, keys, tables, cells, types, metadata. Otherwise it tells of the archive with probability 1.
"""

import itertools
import json
import math
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from samples import counted_paths

from agglearn.encoding import FeatureMap, Schema
from agglearn.observations import Bags, ContingencyTables, CountedBags, Halves, LabelSums
from agglearn.observations.release import release_bag_counts, release_flow_counts, release_tables
from agglearn.observations.units import Unit

SCHEMA = Schema.parse("""
reviewed: true
one_row_per_person: true
label: {column: y, positive: 'yes', negative: 'no'}
features:
  age: {edges: [30, 45.5, 60], missing: false}
  job: {values: [cook, nurse], missing: true}
  mail: {buckets: 4, missing: false}
""")
N = 40
NEIGHBOURS = 250
PROMISE = {"epsilon": 1.0, "delta": 1e-6}
NUMBERS = [-1e308, 1e308, math.inf, -math.inf, 10**25, 0, 45.5, -1, True, Decimal("1e50")]
TEXTS = [
    "",
    " ",
    "cook ",
    "COOK",
    "nürse",
    "other",
    "missing",
    "nan",
    "1e999",
    "12_3",
    "\ud800",
    "a\nb",
    "x" * 5000,
    "yes",
    "1",
]
NOTHING = [None, math.nan, pd.NA, pd.NaT]
STRANGE = [pd.Timestamp("2020-02-02"), b"bytes", (1, 2), 3 + 4j]
ODD = [*NUMBERS, *TEXTS, *NOTHING, *STRANGE]


def base(rng: np.random.Generator) -> list[list]:
    """Records of usual values."""
    ages, jobs = rng.integers(18, 80, N).tolist(), rng.choice(["cook", "nurse"], N).tolist()
    labels = ["yes", "no", *rng.choice(["yes", "no"], N - 2).tolist()]
    return [[a, j, f"{i}@x.org", y] for i, (a, j, y) in enumerate(zip(ages, jobs, labels, strict=True))]


def odd_record(rng: np.random.Generator, k: int) -> list:
    """A record with anything in any of its fields. The first ones have each odd value once in each field."""
    usual = [int(rng.integers(18, 80)), "cook", "a@x.org", str(rng.choice(["yes", "no"]))]
    if k < 4 * len(ODD):
        usual[k % 4] = ODD[k // 4]
        return usual
    for field in np.flatnonzero(rng.random(4) < 0.5):
        pool = (NUMBERS, TEXTS, NOTHING, STRANGE, [f"new {rng.integers(10**9)}", float(rng.normal() * 1e6)])[
            rng.integers(5)
        ]
        usual[field] = pool[rng.integers(len(pool))]
    return usual


def neighbour(records: list, rng: np.random.Generator, k: int) -> pd.DataFrame:
    """The records with one more, one less, or one in the place of another; pandas may choose the types of the columns."""
    at, how = rng.integers(N), rng.integers(k < 4 * len(ODD), 3)
    changed = records[:at] + ([odd_record(rng, k)] if how else []) + records[at + (how != 1) :]
    return framed(changed, rng.choice([None, object]))


def framed(records: list, dtype=None) -> pd.DataFrame:
    return pd.DataFrame(records, columns=["age", "job", "mail", "y"], dtype=dtype)


@pytest.fixture(scope="module")
def neighbours() -> list[ContingencyTables]:
    """Exact tables of the records and of their neighbours."""
    rng = np.random.default_rng(0)
    records = base(rng)
    frames = [framed(records), *(neighbour(records, rng, k) for k in range(NEIGHBOURS))]
    return [ContingencyTables.from_records(frame, schema=SCHEMA) for frame in frames]


def quick(monkeypatch):
    """Noise of this process in the place of OpenDP's: the same law and the same way through a release, in less time."""
    rng = np.random.default_rng(1)

    def secret(mechanism, values, *names):
        return values + mechanism.noise(rng, np.shape(values))

    for module in ("disclosure", "label_sums", "halves"):
        monkeypatch.setattr(f"agglearn.observations.{module}.draw_private", secret)
    return secret


def support(tables: ContingencyTables) -> tuple:
    """All that a release of tables holds but its noisy numbers."""
    parts = [
        (key, t.shape, t.cells.tobytes(), t.cells.dtype, t.counts.dtype, t.label_sums.dtype, len(t.counts))
        for key, t in tables.tables.items()
    ]
    said = [asdict(tables.encoder), tables.label, asdict(tables.noise)]
    return json.dumps(said), type(tables.total), type(tables.positives), tables.hashed_pairs, parts


HOW = [
    {},
    {"split": "cells", "postprocessing": "clip"},
    {"postprocessing": "project"},
    {"mechanism": "laplace", "delta": None},
    {"mechanism": "discrete_laplace", "delta": None, "postprocessing": "project"},
]


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW, ids=str)
def test_tables_of_neighbours_have_one_support(neighbours, how, monkeypatch):
    draw = quick(monkeypatch)
    first, *others = (release_tables(t, **PROMISE | how, draw=draw) for t in neighbours)
    assert first.noise.private
    assert len(others) == NEIGHBOURS
    wanted = support(first)
    assert all(support(other) == wanted for other in others)


@pytest.mark.slow
def test_exact_tables_of_neighbours_differ(neighbours):
    """What the noise has to hide: that the records differ at all, and by how little."""
    first, *others = neighbours
    wanted = {k: np.stack(t.dense()) for k, t in first.tables.items()}
    gaps = [{k: np.abs(np.stack(t.dense()) - wanted[k]).sum() for k, t in o.tables.items()} for o in others]
    assert sum(any(g.values()) for g in gaps) > 0.7 * NEIGHBOURS
    assert max(max(g.values()) for g in gaps) <= 4  # one record in the place of another: two changes of (1, 1)


def test_a_learned_schema_tells_of_the_record(monkeypatch):
    """The test's power: by learned bins and categories most neighbours have another support."""
    draw = quick(monkeypatch)
    rng = np.random.default_rng(2)
    records = base(rng)
    how = {"hashed": {"mail": 4}, "positive": "yes"}
    release = lambda frame: release_tables(  # noqa: E731
        ContingencyTables.from_records(frame, "y", **how), **PROMISE, draw=draw, accept_learned_schema=True
    )
    wanted, others = support(release(framed(records))), 0
    for _ in range(60):
        changed = [*records[1:], [int(rng.integers(18, 80)), f"job {rng.integers(99)}", "m", "yes"]]
        others += support(release(framed(changed))) != wanted
    assert others > 50


@pytest.mark.slow
def test_halves_of_neighbours_have_one_support(monkeypatch):
    quick(monkeypatch)
    rng = np.random.default_rng(3)
    records, supports = base(rng), set()
    for frame in (framed(records), *(neighbour(records, rng, k) for k in range(NEIGHBOURS))):
        halves = Halves.from_records(frame, schema=SCHEMA, pairs="none")
        noisy = Halves(*(release_tables(h, **PROMISE, draw=quick(monkeypatch)) for h in (halves.first, halves.second)))
        supports.add(repr([support(noisy.first), support(noisy.second)]))
    assert len(supports) == 1


@pytest.mark.slow
def test_parquet_and_hashed_crosses_of_neighbours_have_one_support(tmp_path):
    rng = np.random.default_rng(4)
    records, path, found = base(rng), tmp_path / "data.parquet", set()
    for _ in range(20):
        frame = framed(
            [*records[1:], [int(rng.integers(200)), rng.choice(["cook", "new", None]), "m", rng.choice(["yes", "?"])]]
        )
        frame.to_parquet(path)
        tables = ContingencyTables.from_parquet(path, schema=SCHEMA, cross_buckets=5)
        assert tables.digest == ContingencyTables.from_records(frame, schema=SCHEMA, cross_buckets=5).digest
        found.add(repr(support(tables.private(1.0, 1e-6))))
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gaussian", "discrete_laplace"])
def test_files_of_neighbours_differ_in_noisy_numbers_alone(neighbours, mechanism, tmp_path):
    """Through OpenDP, and as written: names of files, keys, and all values but the noisy ones."""
    seen = set()
    for k, tables in enumerate(neighbours[:25]):
        tables.private(1.0, 1e-6 if mechanism == "gaussian" else None, mechanism=mechanism).save(tmp_path / str(k))
        seen.add(written(tmp_path / str(k)))
    assert len(seen) == 1


def written(folder: Path) -> str:
    """Everything in the files of saved tables but the noisy numbers."""
    header = json.loads((folder / "tables.json").read_text())
    noisy = [type(header["params"].pop(key)).__name__ for key in ("total", "positives")]
    table = pq.read_table(folder / "tables.parquet")
    kept = [c for c in table.column_names if c not in ("count", "label_sum")]
    files = sorted(p.name for p in folder.iterdir())
    return repr([files, header, noisy, str(table.schema), table.num_rows, table.select(kept).to_pydict()])


# -- observations whose features are public: neighbours differ in one label ---------------------------------------------

REPEATED = 10  # releases of each neighbour, with other noise: 400 and more of each kind


def labels(rng: np.random.Generator) -> np.ndarray:
    return np.append([0, 1], rng.integers(0, 2, N - 2))


def with_another_label(y: np.ndarray, index: int) -> np.ndarray:
    other = y.copy()
    other[index] = 1 - other[index]
    return other


def released_sums(frame, y, draw):
    noisy = LabelSums.from_map(FeatureMap.fit("onehot", SCHEMA.encoder, frame), frame, y).private(**PROMISE, draw=draw)
    return [noisy.map.names, noisy.names, noisy.sums.dtype, noisy.weights, noisy.label, noisy.noise, noisy.map.encoder]


def released_counted_bags(frame, y, draw):
    bags = CountedBags.from_records(SCHEMA.encoder, frame, y, 10, np.random.default_rng(0))
    noisy = release_bag_counts(bags, 1.0, draw=draw)
    return [noisy.rows.tobytes(), noisy.offsets, noisy.counts.shape, noisy.counts.dtype, noisy.noise, noisy.encoder]


def released_bags(frame, y, draw):
    bags = Bags(np.zeros((N, 2)), np.arange(0, N + 1, 8), y.reshape(-1, 8).sum(1))
    noisy = release_bag_counts(bags, 1.0, draw=draw)
    return [noisy.offsets, noisy.counts.shape, noisy.counts.dtype, noisy.counts.sum(1), noisy.target, noisy.noise]


def released_tables_by_label(frame, y, draw):
    tables = ContingencyTables.from_codes(SCHEMA.encoder, SCHEMA.encoder.encode(frame), y, "y")
    noisy = release_tables(replace(tables, unit=Unit()), **PROMISE, adjacency="label", draw=draw)
    return [support(noisy), noisy.total, [t.counts.tobytes() for t in noisy.tables.values()]]


@pytest.mark.slow
@pytest.mark.parametrize("release", [released_sums, released_counted_bags, released_bags, released_tables_by_label])
def test_releases_of_labels_have_one_support(release, monkeypatch):
    draw = quick(monkeypatch)
    rng = np.random.default_rng(5)
    frame, y = framed(base(rng)).drop(columns="y"), labels(rng)
    wanted = repr(release(frame, y, draw))
    assert "private=True" in wanted or '"private": true' in wanted
    for index in [*range(N)] * REPEATED:
        assert repr(release(frame, with_another_label(y, index), draw)) == wanted


def test_releases_of_flows_have_one_support(monkeypatch):
    """Neighbours: one person more, on any path."""
    draw = quick(monkeypatch)
    rng = np.random.default_rng(6)
    paths = rng.integers(0, 4, (N, 3))

    def release(paths):
        noisy = release_flow_counts(counted_paths(paths), 1.0, draw=draw)
        shown = replace(noisy, node_counts=abs(0 * noisy.node_counts), edge_counts=abs(0 * noisy.edge_counts))
        return repr([vars(shown), noisy.privacy])

    wanted = release(paths)
    assert "private=True" in wanted
    for path in [*itertools.product(range(4), repeat=3)] * REPEATED:
        assert release(np.vstack([paths, path])) == wanted
