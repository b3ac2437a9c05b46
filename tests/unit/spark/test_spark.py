"""Spark beside one machine: the same tables, the same chains, to the bit; also when an executor dies."""

import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import PEOPLE_SCHEMA, people

from agglearn.encoding import CategoricalEncoder, EqualWidth, FrameEncoder, Quantiles, Schema
from agglearn.encoding.binned import quantiles
from agglearn.encoding.frame import fit_column
from agglearn.encoding.sql import write_query
from agglearn.errors import ConfigError, DataError, LooksLikeCodes, NotAvailable, RecordsLeftOut
from agglearn.maxent import MaxEntClassifier
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables
from agglearn.observations.tables import start_tally
from agglearn.observations.units import Unit
from agglearn.spark import active_session, aggregate
from agglearn.spark.aggregation import collect, count
from agglearn.vocabulary import DistributedSubmodularQuantizer

PYSPARK, JAVA = importlib.util.find_spec("pyspark") is not None, shutil.which("java") is not None
LACKING = ["PySpark is not installed (`make spark` installs it)"] * (not PYSPARK) + ["there is no java"] * (not JAVA)


def needs_spark(test):
    """Mark of a test that starts Spark."""
    return pytest.mark.slow(pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))(test))


# -- without Spark ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(PYSPARK, reason="PySpark is installed")
def test_without_pyspark_there_is_one_line():
    for need in (active_session, lambda: DistributedSubmodularQuantizer(90, engine="spark").fit(*vocabulary(1))):
        with pytest.raises(NotAvailable, match=r"pip install 'agglearn\[spark\]'"):
            need()


def test_records_that_a_schema_leaves_out_are_counted_over_partitions():
    schema = Schema.parse(PEOPLE_SCHEMA)
    frame = people(90).assign(y=[1, 0, 2] * 30)
    sent = frame[[*schema.encoder.names, "y"]].astype({"y": str})
    how = {"encoder": schema.encoder, "labels": {"1": 1, "0": 0}, "pairs": "none", "buckets": None}
    partitions = [cells for part in (sent[:20], sent[20:70], sent[70:]) for cells in count([part], **how)]
    together = pd.concat(partitions).groupby(["part", "cell"], as_index=False).sum()
    tally = start_tally(schema.encoder, "none")
    cells, left_out = collect(together, tally)
    assert (left_out, tally.total, tally.positives) == (30, 60, 30)
    with pytest.warns(RecordsLeftOut):
        expected = ContingencyTables.from_records(frame, schema=schema, pairs="none")
    counted = ContingencyTables.from_counts(schema.encoder, cells, tally, "y")
    assert replace(counted, unit=Unit()).digest == expected.digest  # the schema has one row per person


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 50)), min_size=1, max_size=30, unique_by=lambda v: v[0]))
@settings(max_examples=100, deadline=None)
def test_quantiles_of_counted_values(drawn):
    values, counts = (np.array(part) for part in zip(*drawn, strict=True))
    q = np.linspace(0, 1, 11)
    assert quantiles(values, counts, q).tolist() == np.quantile(np.repeat(values, counts), q).tolist()


@pytest.mark.parametrize("how", [Quantiles(10), EqualWidth(10)])
def test_encoders_of_counted_values(how):
    frame = people(400).assign(flag=True, code="7", share=np.random.default_rng(0).random(400).round(2))
    frame.loc[5, "share"] = None
    frame["answer"] = pd.Series([True, None, False, True] * 100, dtype=object)
    assert isinstance(FrameEncoder.fit(frame[["answer"]]).features[0], CategoricalEncoder)
    for name in frame:
        counts = frame[name].value_counts(dropna=False)
        values = pd.Series(counts.index, name=name, dtype=frame[name].dtype)
        for named, hash_above in itertools.product((False, True), (None, (2, 3))):
            expected = FrameEncoder.fit(frame[[name]], how, [name] if named else [], None, hash_above).features[0]
            assert fit_column(values, how, named, None, hash_above, counts.to_numpy()) == expected
    with pytest.raises(DataError, match="'n' is numeric but 1 row with text such as 'x'"):
        fit_column(pd.Series(["1", "x"], name="n"), how, False, None, None, np.array([30, 1]))


def test_numbers_that_hardly_repeat_are_told_from_counts():
    values = pd.Series(np.arange(100), name="n")
    for counts, warns in ((np.full(100, 1), True), (np.repeat([1, 2], [95, 5]), True), (np.full(100, 2), False)):
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            fit_column(values, Quantiles(10), False, None, None, counts)
        assert [w.category for w in raised] == [LooksLikeCodes] * warns


@pytest.mark.parametrize(
    "learned", [{"binning": "width"}, {"categorical": ["zone"]}, {"hashed": {"job": 2}}, {"hash_above": (2, 3)}]
)
def test_what_an_encoder_declares_is_not_given_beside_it(learned):
    encoder = FrameEncoder.fit(people()[["job", "zone"]])
    with pytest.raises(ConfigError, match=f"{next(iter(learned))}: the encoder declares it"):
        aggregate(None, "y", encoder=encoder, **learned)


def world(n: int = 800) -> ContingencyTables:
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 5, n), rng.integers(0, 12, n)])
    codes[:, 1] = np.where(rng.random(n) < 0.5, codes[:, 0], codes[:, 1])
    y = (rng.random(n) < 0.2 + 0.5 * (codes[:, 0] == codes[:, 1])).astype(int)
    features = (CategoricalEncoder(f"f{i}", tuple(f"v{k:02}" for k in range(m))) for i, m in enumerate((3, 5, 12)))
    return ContingencyTables.from_codes(FrameEncoder(tuple(features)), codes.astype(np.int32), y)


def check_blocks(moved_as, sampler):
    """Blocks of chains moved apart stand where they stand when all are moved together, and sums add up."""
    layout = WeightIndex.from_tables(world())
    weights = np.random.default_rng(1).normal(size=(2, len(layout.rows)))
    whole = Chains(layout, 1000, -0.4, seed=5, sampler=sampler)
    blocks = [
        Chains(layout, b - a, -0.4, seed=5, sampler=sampler, first=moved_as(a), positions=whole.positions[a:b].copy())
        for a, b in itertools.pairwise([0, 1, 300, 999, 1000])
    ]
    for step in range(3):
        for chains in (whole, *blocks):
            chains.set_weights(*weights)
        expected, found = whole.sweep(step), [block.sweep(step) for block in blocks]
        assert (np.sum(found, axis=0) == expected).all()
    assert (np.concatenate([block.positions for block in blocks]) == whole.positions).all()


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_blocks_of_chains(sampler):
    check_blocks(lambda first: first, sampler)
    with pytest.raises(AssertionError):
        check_blocks(lambda first: 0, sampler)


def test_engines_by_name():
    with pytest.raises(ConfigError, match="engine: 'abacus' is not allowed"):
        MaxEntClassifier(engine="abacus").fit(world())


# -- local[2] ---------------------------------------------------------------------------------------------------------


def settings_of(builder, master: str):
    builder = builder.master(master).config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "3")
    return builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYSPARK_PYTHON")}
    os.environ |= {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    session = settings_of(SparkSession.builder, "local[2]").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


def kinds() -> pd.DataFrame:
    """Columns of every kind, large numbers with missing values and an odd name among them."""
    rng = np.random.default_rng(4)
    frame = people(400).assign(flag=rng.random(400) < 0.3, share=rng.random(400).round(2))
    big = pd.Series(2**60 + rng.integers(0, 3, 400), dtype="Int64")
    return frame.assign(**{"user.id `x`": big.where(rng.random(400) < 0.9)})


@needs_spark
@pytest.mark.parametrize(
    "how",
    [
        {"categorical": ["zone", "user.id `x`"]},
        {"binning": "width", "hashed": {"job": 2, "user.id `x`": 5}, "pairs": [("job", "age"), ("home", "share")]},
        {"features": ["home", "job"], "cross_buckets": 5},
        {"categorical": ["zone", "user.id `x`"], "hash_above": (2, 3)},
    ],
)
def test_tables_are_those_of_one_machine(spark, how):
    frame = kinds()
    expected = ContingencyTables.from_records(frame, "y", **how)
    found = aggregate(spark.createDataFrame(frame).repartition(5), "y", **how)
    assert found.encoder == expected.encoder
    assert found.digest == expected.digest
    again = aggregate(spark.createDataFrame(frame), "y", found.encoder.names, how.get("pairs", "all"),
                      cross_buckets=how.get("cross_buckets"), encoder=expected.encoder)  # fmt: skip
    assert again.digest == expected.digest


@needs_spark
def test_tables_by_a_declared_schema(spark):
    schema, frame = Schema.parse(PEOPLE_SCHEMA), people(500)
    frame["age"] = frame.age.astype(str)
    frame.loc[[3, 9], ["job", "age"]] = "astronaut", "old"
    frame["y"] = frame.y.astype(str)
    frame.loc[[4, 5, 6], "y"] = [None, "?", "2"]
    wanted = ContingencyTables.from_records(frame, schema=schema)
    found = aggregate(spark.createDataFrame(frame).repartition(3), schema=schema)
    assert found.total == 497
    assert found.digest == wanted.digest
    few = aggregate(spark.createDataFrame(frame), features=["job", "zone"], schema=schema)
    assert few.digest == ContingencyTables.from_records(frame, features=["job", "zone"], schema=schema).digest
    with pytest.raises(ConfigError, match="binning: the schema declares it"):
        aggregate(spark.createDataFrame(frame), schema=schema, binning="width")


@needs_spark
@pytest.mark.parametrize("threshold", [0, 40])
def test_the_query_of_a_schema_gives_the_tables_of_one_machine(spark, threshold):
    pytest.importorskip("sqlglot")
    schema, frame = Schema.parse(PEOPLE_SCHEMA), people(500)
    frame.loc[[3, 9], "job"] = "astronaut"
    spark.createDataFrame(frame).repartition(3).createOrReplaceTempView("people")
    cells = spark.sql(write_query(schema, "spark", threshold, "people")).toPandas()
    read = ContingencyTables.from_frame(cells, schema=schema, threshold=threshold)
    if not threshold:
        counted = ContingencyTables.from_records(frame, schema=schema)
        assert read.digest == replace(counted, unit=None).digest  # a query does not tell whose rows they are
    shown = read.tables[read.pairs[0]].counts
    assert shown.min() >= max(threshold, 1)


@needs_spark
def test_labels_and_what_is_wrong(spark):
    frame = people().assign(y=lambda f: f.y.map({0: "no", 1: "yes"}))
    data = spark.createDataFrame(frame)
    expected = ContingencyTables.from_records(frame, "y", positive="yes")
    assert aggregate(data, "y", positive="yes").digest == expected.digest
    for said, arguments in (
        ("which one is positive", {"label": "y"}),
        ("no column 'wage'", {"label": "wage"}),
        ("no column 'wage'", {"label": "y", "features": ["wage"], "positive": "yes"}),
        ("must have two values", {"label": "zone"}),
    ):
        with pytest.raises(DataError, match=said):
            aggregate(data, **arguments)
    with pytest.raises(DataError, match="no records"):
        aggregate(data.limit(0), "y")


@needs_spark
@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_training_gives_the_same_weights(spark, monkeypatch, sampler):
    monkeypatch.setattr("agglearn.maxent.engines.spark_chains.REFRESH", 4)
    how = {"n_chains": 501, "max_iter": 9, "sampler": sampler, "random_state": 3}
    one, many = (MaxEntClassifier(engine=engine, **how).fit(world()) for engine in ("numba", "spark"))
    assert (one.mu_ == many.mu_).all()
    assert (one.theta_ == many.theta_).all()
    assert (one.misfit_ == many.misfit_).all()


@needs_spark
def test_any_number_of_partitions(spark):
    from agglearn.maxent.engines.spark_chains import SparkChains

    layout = WeightIndex.from_tables(world())
    weights = np.random.default_rng(1).normal(size=(2, len(layout.rows)))
    expected = Chains(layout, 100, 0.2, seed=8)
    expected.set_weights(*weights)
    sums = expected.sweep(1, n_sweeps=2)
    for partitions in (1, 3, 7):
        chains = SparkChains(layout, 100, 0.2, 8, partitions=partitions)
        chains.set_weights(*weights)
        assert (np.stack(chains.sweep(1, n_sweeps=2)) == sums).all()
        assert (chains.positions() == expected.positions).all()


# -- local-cluster ----------------------------------------------------------------------------------------------------

CLUSTER = """
import os, signal, sys
sys.path[:0] = {paths!r}
import numpy as np
from pyspark.sql import SparkSession
from test_spark import settings_of, world
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.weight_index import WeightIndex
from agglearn.maxent.engines.spark_chains import SparkChains


def parent(pid):
    with open(f"/proc/{{pid}}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def executor(_):
    daemon = parent(os.getpid())  # of this Python worker
    return parent(daemon)


session = settings_of(SparkSession.builder, "local-cluster[2,1,1024]").config("spark.executor.memory", "512m").getOrCreate()
session.sparkContext.setLogLevel("OFF")
layout = WeightIndex.from_tables(world())
one, many = Chains(layout, 400, 0.1, seed=2), SparkChains(layout, 400, 0.1, 2, partitions=4)
weights = np.random.default_rng(0).normal(size=(6, 2, len(layout.rows)))
for step in range(6):
    if step == 3:
        found = sorted(set(session.sparkContext.parallelize(range(8), 8).map(executor).collect()))
        with open(f"/proc/{{found[0]}}/cmdline") as line:
            assert "Executor" in line.read()
        os.kill(found[0], signal.SIGKILL)
    for chains in (one, many):
        chains.set_weights(*weights[step])
    assert (np.stack(one.sweep(step)) == np.stack(many.sweep(step))).all(), step
assert (one.positions == many.positions()).all()
print("executors", len(found), "one killed, same chains")
session.stop()
"""


@needs_spark
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finding an executor's process needs /proc")
def test_a_killed_executor_changes_nothing(tmp_path):
    import pyspark

    paths = [str(Path(__file__).parent), *sys.path]
    home = os.path.dirname(pyspark.__file__)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": home,
                                "SPARK_WORKER_DIR": str(tmp_path), "SPARK_SCALA_VERSION": "2.13"}  # fmt: skip
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER.format(paths=paths))
    done = subprocess.run(
        [sys.executable, script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("executors 2 one killed")


# -- vocabulary compression -------------------------------------------------------------------------------------------


def vocabulary(features: int) -> tuple[dict, dict]:
    rng = np.random.default_rng(2)
    counts = {f"f{i}": rng.zipf(1.5, 2000).clip(max=500) for i in range(features)}
    return counts, {name: rng.binomial(n, rng.beta(0.5, 2, 2000)) for name, n in counts.items()}


@needs_spark
@pytest.mark.parametrize("features", [1, 3])
def test_machines_are_tasks(spark, features):
    counts, sums = vocabulary(features)
    here, there = (DistributedSubmodularQuantizer(90, engine=e).fit(counts, sums) for e in ("local", "spark"))
    assert there.n_machines_ == here.n_machines_ > 5
    assert there.n_rounds_ == here.n_rounds_
    for name in counts:
        assert there.labels_[name].tolist() == here.labels_[name].tolist()
