"""One record more, or one label exchanged, changes a release by what its noise is calibrated for, and nothing else in its folder.

Every number that a release protects passes through its draw. The draw of these tests records the exact numbers and gives zeros
for them. So two folders of neighbours must be equal byte by byte, and the recorded numbers must keep the stated promise.
"""

import ast
import copy
import datetime
import json
import math
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from recorded_draws import DELTA, EPSILON, Recorder, loss, promise_of
from samples import counted_paths

import agglearn
from agglearn.cli.tabular_input import read_records
from agglearn.encoding import FeatureMap, FrameEncoder, Schema
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, Halves, LabelSums
from agglearn.observations.halves import toss_coins
from agglearn.observations.release import release_bag_counts, release_flow_counts
from agglearn.privacy import MECHANISMS, draw_seeded


@pytest.fixture
def draw(monkeypatch) -> Recorder:
    """Zeros in the place of OpenDP's draw, so that a release takes the way of a private one."""
    zero = Recorder(lambda law, values, *names: np.zeros(np.shape(values), int if law.discrete else float))
    for module in ("disclosure", "label_sums", "halves"):
        monkeypatch.setattr(f"agglearn.observations.{module}.draw_private", zero)
    return zero


def files(observation, folder: Path) -> dict[str, bytes]:
    observation.save(folder)
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def compare(release, neighbours, draw: Recorder, folder: Path) -> float:
    """Check the promise of `release(data)` for two neighbours. Return the L1 distance of the exact numbers."""
    saved, drawn = [], []
    for k, data in enumerate(neighbours):
        draw.draws = []
        noisy = release(data)
        spec = getattr(noisy, "privacy", None) or noisy.noise
        assert spec.private
        saved.append(files(noisy, folder / str(k)))
        drawn.append(copy.copy(draw))
    assert saved[0].keys() == saved[1].keys()
    assert [name for name in saved[0] if saved[0][name] != saved[1][name]] == []
    assert loss(*drawn, EPSILON) <= promise_of(spec.mechanism)[1] * (1 + 1e-9)
    return sum(np.abs(a - b).sum() for (_, a, _), (_, b, _) in zip(drawn[0].draws, drawn[1].draws, strict=True))


# -- tables: one record more ---------------------------------------------------------------------------------------------

SCHEMA = Schema.parse("""
reviewed: true
one_row_per_person: true
label: {column: y, positive: 1, negative: 0}
features:
  listed: {values: [1, 2, 2.5, 'True', 'False', 2020-01-02, a], missing: true}
  cut: {edges: [1, 2.2], missing: true}
  hashed: {buckets: 50, missing: true}
""")
DAY, TIME = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2)
COLUMNS = {
    "whole": [1, 2, 3], "floats": [1.0, 2.0, 2.5], "singles": list(np.array([1, 2, 0.1], np.float32)),
    "flags": [True, False, True], "texts": ["a", "b", "1"], "days": [DAY, datetime.date(2021, 5, 6), DAY],
    "times": [TIME, datetime.datetime(2021, 5, 6, 7, 8, 9), TIME],
    "spans": [datetime.timedelta(1), datetime.timedelta(hours=2), datetime.timedelta(3)],
    "decimals": [Decimal("1.0"), Decimal("2.50"), Decimal("1E+1")], "large": [2**53 + 1, 2**53 + 3, 5],
    "stamps": [np.datetime64("2020-01-02", "ns"), np.datetime64("2021-05-06", "ns"), np.datetime64("2020-01-02", "ns")],
}  # fmt: skip
INTRUDERS = [
    1, 2.5, True, "a", "1.0", "a\0", "\ud800", None, pd.NA, 2**70, 3j, DAY, TIME, Decimal("2.0"), datetime.timedelta(1),
]  # fmt: skip
ODD = [math.inf, math.nan, pd.NaT, -1, 10**25, b"bytes", (1, 2), "", "other", "missing", "1e999", "x" * 5000]
DTYPES = {
    "inferred": lambda column: column,
    "object": lambda column: column,
    "category": lambda column: column.astype("category"),
    "nullable": lambda column: column.convert_dtypes(),
}


def column(values: list, dtype: str) -> pd.Series:
    cells = pd.Series(values, dtype=object if dtype == "object" else None)
    try:
        return DTYPES[dtype](cells)
    except (TypeError, OverflowError):  # pandas has no such type for the numbers
        return cells


def records(values: list, extra: list, dtype: str = "inferred", labels=(1, 0, 1, 0)) -> pd.DataFrame:
    """Forty records, and those of `extra`, as pandas makes columns of them."""
    listed, y = values * 14, [labels[i % len(labels)] for i in range(40)]
    cells = column([*listed[:40], *extra], dtype)
    return pd.DataFrame({"listed": cells, "cut": cells, "hashed": cells, "y": [*y, *[1] * len(extra)]})


def release_single_tables(draw: Recorder, frame: pd.DataFrame) -> ContingencyTables:
    return ContingencyTables.from_records(frame, schema=SCHEMA, pairs="none").private(EPSILON, DELTA, draw=draw)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_a_record_of_any_type_changes_tables_by_itself(kind, dtype, draw, tmp_path):
    """Whatever pandas makes of the columns, the values of all the others stay as they were spelt.

    At ε = .1 one text among floats turned 103 counts: they are 1 apart, as promised.
    """
    for k, intruder in enumerate([*INTRUDERS, *ODD] if (kind, dtype) == ("texts", "object") else INTRUDERS):
        if kind == "large" and dtype != "object" and (intruder is None or isinstance(intruder, float | complex)):
            continue  # pandas has rounded the whole numbers before they come here
        pair = [records(COLUMNS[kind], extra, dtype)[::-1] for extra in ([], [intruder])]  # the new record first
        distance = compare(partial(release_single_tables, draw), pair, draw, tmp_path / str(k))
        assert distance == 2 * 4  # a count and a label sum of three tables and of the totals


LABELS = [
    ([1, 0], "x"), ([1.0, 0.0], "x"), ([1.0, 0.0], True), ([1, 0], None), ([1.0, 0.0], 0.5),
    ([np.float32(1), np.float32(0)], "1"), ([Decimal("1.0"), Decimal("0.0")], "x"), (["1", "0"], 1.0), ([1, 0], 3j),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("labels", "intruder"), LABELS)
@pytest.mark.filterwarnings("ignore:label 'y'", "ignore:Casting complex")
def test_a_label_of_any_type_changes_that_of_no_other_record(labels, intruder, dtype, draw, tmp_path):
    frame = records([1, 2, 3], [1])
    pair = [frame[:40].assign(y=column(labels * 20, dtype)), frame.assign(y=column([*labels * 20, intruder], dtype))]
    distance = compare(partial(release_single_tables, draw), pair, draw, tmp_path)
    assert distance == (8 if intruder in (1, "1") and (intruder is not True or dtype == "category") else 0)


@pytest.mark.parametrize("values", [[1, 2, 3], [1.0, 2.5, 2.0], [True, False, True], [DAY] * 3, [Decimal("2.50")] * 3])
@pytest.mark.parametrize("intruder", [None, "same"])
@pytest.mark.parametrize("adjacency", ["record", "label"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_files_of_records(values, intruder, adjacency, mechanism, draw, tmp_path):
    """Parquet, and CSV as the command line reads it."""
    extra = [values[0] if intruder == "same" else None]
    pair = [records(values, []), records(values, extra)]
    if adjacency == "label":
        pair = [pair[1], pair[1].assign(y=[0, *pair[1]["y"][1:]])]
    how = {"mechanism": mechanism, "adjacency": adjacency, "split": "cells"}
    how["postprocessing"] = {"record": "project", "label": "clip"}[adjacency]
    for k, frame in enumerate(pair):
        frame.to_parquet(tmp_path / f"{k}.parquet")
        frame.to_csv(tmp_path / f"{k}.csv", index=False)
    made = {
        "parquet": lambda k: ContingencyTables.from_parquet(tmp_path / f"{k}.parquet", schema=SCHEMA, cross_buckets=5),
        "csv": lambda k: ContingencyTables.from_records(read_records(tmp_path / f"{k}.csv"), schema=SCHEMA),
    }
    for name, make in made.items():
        release = lambda k, m=make: m(k).private(EPSILON, promise_of(mechanism)[0], draw=draw, **how)  # noqa: E731
        distance = compare(release, [0, 1], draw, tmp_path / name)
        assert distance == {"record": 2, "label": 1}[adjacency] * 7  # three features, three pairs, totals


def test_halves(draw, tmp_path, monkeypatch):
    """The coins of the neighbours are the same but for the new record's, as a coupling of secret ones."""
    monkeypatch.setattr("agglearn.observations.halves.toss_coins", lambda n, _: toss_coins(n, np.random.default_rng(1)))
    pair = [records([1.0, 2.0, 2.5], extra) for extra in ([], ["a"])]
    release = lambda frame: Halves.from_records(frame, schema=SCHEMA, pairs="none").private(EPSILON, DELTA)  # noqa: E731
    assert compare(release, pair, draw, tmp_path) == 8


# -- public features: one label exchanged ---------------------------------------------------------------------------------

N = 40
PUBLIC = {
    "whole": pd.Series(np.arange(N) % 5 - 2),
    "floats": pd.Series(np.linspace(-0.5, 2.5, N)),
    "nullable": pd.Series(np.arange(N) % 3, dtype="Int64"),
    "category": pd.Series(np.arange(N) % 3).astype("category"),
    "flags": pd.Series(np.arange(N) % 4 == 0),
}
TITLES = {"whole": "a", "floats": "label sums", "nullable": "a = b", "category": "é & b", "flags": "weights"}


def exchanged(y: np.ndarray) -> list[np.ndarray]:
    """Labels with one exchanged: where the sums change most, and where least."""
    return [np.where(np.arange(len(y)) == i, 1 - y, y) for i in (0, 17, len(y) - 1)]


LABELLED = pd.DataFrame(PUBLIC).assign(
    y=np.random.default_rng(0).integers(0, 2, N), email=[f"{i}@x.org" for i in range(N)]
)
ENCODER = FrameEncoder.fit(LABELLED[list(PUBLIC)], categorical=["whole"])
WEIGHTS = {None: None, "whole": np.arange(N) % 3 + 1, "uneven": np.linspace(0.1, 4, N)}


def sums_of(kind: str, y: np.ndarray, weights: np.ndarray | None) -> LabelSums:
    """Sums of a column of numbers and another one, or by a map."""
    if kind in PUBLIC:
        frame = pd.DataFrame({TITLES[kind]: PUBLIC[kind], "b": np.arange(N) % 2})
        return LabelSums.from_records(frame, y, bounds=(-2, 3), weights=weights, label="y")
    mapped = FeatureMap.fit(kind, ENCODER, LABELLED, "features" if kind == "scaled" else None)
    return LabelSums.from_map(mapped, LABELLED, y, weights=weights)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", [*PUBLIC, "onehot", "quadratic", "scaled"])
@pytest.mark.parametrize("of", ["declared", "features"])
def test_label_sums(kind, weights, mechanism, of, draw, tmp_path):
    def release(labels):
        sums = sums_of(kind, labels, WEIGHTS[weights])
        return sums.private(EPSILON, promise_of(mechanism)[0], mechanism=mechanism, sensitivity=of, draw=draw)

    y = LABELLED["y"].to_numpy()
    for k, other in enumerate(exchanged(y)):
        if mechanism.startswith("discrete") and (kind in ("floats", "scaled") or weights == "uneven"):
            for labels in (y, other, 0 * y):  # whether the sums are whole depends on labels: this must not
                with pytest.raises(DataError, match="discrete"):
                    release(labels)
            continue
        assert compare(release, [y, other], draw, tmp_path / str(k)) > 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", ["bags", "counted bags"])
def test_counts_of_bags(kind, mechanism, draw, tmp_path):
    def release(y):
        bags = Bags(np.zeros((N, 1)), [0, 3, 20, N], np.add.reduceat(y, [0, 3, 20]))
        if kind == "counted bags":
            bags = CountedBags.from_records(ENCODER, LABELLED, y, 8, np.random.default_rng(3))
        return release_bag_counts(bags, EPSILON, promise_of(mechanism)[0], mechanism=mechanism, draw=draw)

    y = LABELLED["y"].to_numpy()
    for k, other in enumerate(exchanged(y)):
        assert compare(release, [y, other], draw, tmp_path / str(k)) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_flow_counts(mechanism, draw, tmp_path):
    paths = np.random.default_rng(6).integers(0, 4, (N, 3))

    def release(paths):
        return release_flow_counts(
            counted_paths(paths), EPSILON, promise_of(mechanism)[0], mechanism=mechanism, draw=draw
        )

    for k, path in enumerate(([0, 0, 0], [3, 1, 2])):
        assert compare(release, [paths, np.vstack([paths, path])], draw, tmp_path / str(k)) == 5


# -- what is refused ------------------------------------------------------------------------------------------------------


def people() -> tuple[pd.DataFrame, FrameEncoder]:
    frame = pd.DataFrame({"job": ["cook", "nurse"] * 20, "y": [0, 1, 1, 0] * 10})
    frame["email"] = [f"{i}@x.org" for i in range(40)]
    frame.attrs["source"] = "the file of all persons"
    return frame, FrameEncoder.fit(frame[["job"]])


def test_a_release_has_the_columns_that_its_map_names_and_no_label(tmp_path):
    frame, encoder = people()
    mapped = FeatureMap.fit("onehot", encoder, frame)
    sums = LabelSums.from_map(mapped, frame, frame["y"], label="y").private(1.0, 1e-4)
    bags = CountedBags.from_records(encoder, frame, frame["y"], 4, np.random.default_rng(0))
    released = {"sums": sums, "bags": release_bag_counts(bags, 1.0)}
    for name, observation in released.items():
        observation.save(tmp_path / name)
        assert list(type(observation).load(tmp_path / name).frame.columns) == ["job"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"@x.org" not in path.read_bytes()
            assert b"all persons" not in path.read_bytes()
            assert path.suffix != ".parquet" or list(pd.read_parquet(path).columns) == ["job"]


def test_the_label_is_no_feature():
    frame, _ = people()
    encoder = FrameEncoder.fit(frame[["job", "y"]])
    mapped, rng = FeatureMap.fit("onehot", encoder, frame), np.random.default_rng(0)
    for make in (
        lambda: LabelSums.from_records(frame[["y"]], frame["y"].to_numpy(), label="y"),
        lambda: LabelSums.from_records(frame[["y"]], frame["y"]),
        lambda: LabelSums.from_map(mapped, frame, frame["y"].to_numpy(), label="y"),
        lambda: LabelSums.from_map(mapped, frame, frame["y"]),
        lambda: CountedBags.from_records(encoder, frame, frame["y"], 4, rng),
    ):
        with pytest.raises(DataError, match=r"^features: 'y' is the label; leave it out$"):
            make()


def test_seeded_coins_are_no_secret(tmp_path):
    frame = records([1, 2, 3], [])
    seeded = Halves.from_records(frame, schema=SCHEMA, random_state=0)
    seeded.save(tmp_path)
    for halves in (seeded, Halves.load(tmp_path)):
        for release in (halves.private, halves.first.private, halves.second.private):
            with pytest.raises(ConfigError, match=r"random_state: .* leave random_state out"):
                release(1.0, 1e-9)
        for half in (halves.first, halves.second):
            assert half.private(1.0, 1e-9, adjacency="label").noise.private  # a label moves no record
            assert not half.private(1.0, 1e-9, draw=draw_seeded(0)).noise.private
        assert halves.combined.private(1.0, 1e-9).noise.private  # all records, whatever the coins
    assert Halves.from_records(frame, schema=SCHEMA).private(1.0, 1e-9).noise.private


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_sensitivity_below_what_the_features_have_is_refused(mechanism):
    x = np.array([[1.0, 2.0], [0.5, -3.0], [0.0, 0.0]])
    sums = LabelSums.from_records(x, [0, 1, 1], weights=[1.0, 2.0, 1.0], intercept=False)
    order, delta = (1, None) if mechanism == "laplace" else (2, 1e-6)
    least = {1: 7.0, 2: 2 * math.sqrt(9.25)}[order]
    with pytest.raises(ConfigError, match=f"sensitivity: 1e-09 is below {least:.4g}, which the features have"):
        sums.private(1.0, delta, mechanism=mechanism, sensitivity=1e-9)
    with pytest.raises(ConfigError, match="sensitivity"):
        sums.private(1.0, delta, mechanism=mechanism, sensitivity=0.999 * least)
    noise = sums.private(1.0, delta, mechanism=mechanism, sensitivity=1.001 * least).noise
    assert noise.private
    assert "stated" not in noise.meaning


def test_a_sensitivity_without_features_is_a_statement():
    nobody = LabelSums.from_records(np.empty((0, 2)), [], intercept=False)
    noise = nobody.private(1.0, 1e-6, sensitivity=0.5).noise
    assert noise.private
    assert noise.meaning.endswith("The sensitivity of 0.5 was stated by the publisher, and no features show it.")
    with pytest.raises(ConfigError, match="sensitivity: there are no features"):
        nobody.private(1.0, 1e-6, sensitivity="features")


def test_exact_facts_beside_noisy_flows_are_accepted_by_name_and_never_called_private(tmp_path):
    nodes = np.full((2, 3), 4.0)
    gaps = nodes.copy()
    gaps[0, 1] = np.nan
    for flows, facts in (
        (FlowCounts(gaps, noise="exact"), "which counts are missing"),
        (FlowCounts(nodes, noise="exact", context={"area": np.ones(3), "b": np.ones(2)}), "the context (area, b)"),
    ):
        with pytest.raises(ConfigError, match=r"stand beside the noisy numbers as they are; .*accept_exact_facts"):
            release_flow_counts(flows, 1.0)
        noisy = release_flow_counts(flows, 1.0, accept_exact_facts=True)
        noisy.save(tmp_path)
        assert not noisy.privacy.private
        assert noisy.privacy.meaning.startswith(f"Not private: {facts}")
        assert noisy.privacy.meaning in (tmp_path / "observation.json").read_text()
        assert not release_flow_counts(flows, 1.0, draw=draw_seeded(0)).privacy.private
    assert release_flow_counts(FlowCounts(nodes, noise="exact"), 1.0).privacy.private


def test_private_is_set_in_one_place():
    """Nothing else in the package makes a statement of noise that is private."""
    places = []
    for path in sorted(Path(agglearn.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            calls = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("NoiseSpec", "replace")
            if calls and (any(k.arg == "private" for k in node.keywords) or len(node.args) > 5):
                places.append(path.stem)
    assert places == ["disclosure"]


def test_a_frame_is_read_from_its_folder_alone(tmp_path):
    frame, encoder = people()
    bags = CountedBags.from_records(encoder, frame, frame["y"], 4, np.random.default_rng(0))
    frame[["job"]].to_parquet(tmp_path / "secret.parquet")
    bags.save(tmp_path / "bags")
    header = tmp_path / "bags/observation.json"
    text = header.read_text()
    for path in ("../secret", "../secret.parquet", str(tmp_path / "secret.parquet"), "", ".", 3):
        header.write_text(text.replace(json.dumps({"__frame__": "frame"}), json.dumps({"__frame__": path})))
        with pytest.raises(DataError, match="damaged"):
            CountedBags.load(tmp_path / "bags")
