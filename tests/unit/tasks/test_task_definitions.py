"""Rows of a split and what tasks keep between calls: a kept result is that of its own arguments, whatever was asked before."""

import json

import numpy as np
import pandas as pd
import pytest
from observed_sources import forget
from samples import people

from agglearn.datasets import Population, RecordStore
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.observations import ContingencyTables, FlowCounts, Records, Table
from agglearn.seeds import derive_generator
from agglearn.tasks import Classification, TaskInput, compression, flows
from agglearn.tasks.bags import group_rows
from agglearn.tasks.classification import fit_encoder, split_records
from agglearn.tasks.splitting import split_rows
from agglearn.vocabulary import OptimalQuantizer

N = 211


def stored(folder, entry=None, parts=None, **params) -> TaskInput:
    return TaskInput("a", entry or {}, params, RecordStore(folder, {"n": N, "parts": parts or {}}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, frame = tmp_path_factory.mktemp("stored"), people(N)
    frame.drop(columns="y").assign(row=np.arange(N)).to_parquet(folder / "features.parquet")
    pd.DataFrame({"label": frame["y"].astype(np.int8)}).to_parquet(folder / "labels.parquet")
    (folder / "records.json").write_text(json.dumps({"n": N, "parts": {}}))
    return folder


def test_the_last_rows_and_the_official_ones():
    train, test = split_rows(stored("nowhere", {"split": {"last": 0.1}}), 3)
    assert (train.tolist(), test.tolist()) == (list(range(190)), list(range(190, N)))  # 21 of 211
    parts = {"train": (5, 150), "test": (150, 160)}
    train, test = split_rows(stored("nowhere", {"split": 0.5}, parts), 3)
    assert (train.tolist(), test.tolist()) == (list(range(5, 150)), list(range(150, 160)))


def test_a_random_split_tests_each_row_by_its_own_coin():
    drawn = derive_generator("split", "a", 4).random(N) < 0.3
    train, test = split_rows(stored("nowhere", {"split": 0.3}), 4)
    assert test.tolist() == np.flatnonzero(drawn).tolist()
    assert train.tolist() == np.flatnonzero(~drawn).tolist()


def test_a_subset_has_the_same_fraction_of_both_parts():
    """60 of 155 rows: of 145 and 10 rows 56 and 4."""
    parts = {"train": (5, 150), "test": (150, 160)}
    train, test = split_rows(stored("nowhere", parts=parts, rows=60), 0)
    assert (len(train), len(test)) == (56, 4)
    assert set(train) <= set(range(5, 150))
    assert set(test) <= set(range(150, 160))
    assert [len(rows) for rows in split_rows(stored("nowhere", parts=parts, rows=999), 0)] == [145, 10]


ASKED = [
    (None, 0, {}), (None, 1, {}), ({"split": 0.4}, 0, {}), ({"split": {"last": 0.4}}, 0, {}), (None, 0, {"rows": 50}),
    (None, 0, {"rows": 90}), ({"split_like": "b"}, 0, {}),
]  # fmt: skip


def test_kept_splits_are_those_of_their_settings(folder):
    """All asked for in one process, and each in a process that was asked for nothing else."""
    rows = lambda found: (found[0][0]["row"].tolist(), found[1].frame["row"].tolist())  # noqa: E731
    together = [rows(split_records(stored(folder, entry, **params), seed)) for entry, seed, params in ASKED]
    alone = []
    for entry, seed, params in ASKED:
        forget()
        alone.append(rows(split_records(stored(folder, entry, **params), seed)))
    assert together == alone
    assert len({repr(found) for found in alone}) == len(ASKED)


def test_kept_encoders_are_those_of_their_settings(folder):
    settings = [{}, {"binning": "width"}, {"hashed": {"job": 2}}, {"max_modalities": 5}]
    settings.append({"max_modalities": 5, "buckets": 3})
    ask = lambda how: Classification().observe(stored(folder), Records, how, 0)[0].encoder  # noqa: E731
    together, alone = [ask(how) for how in settings], []
    for how in settings:
        forget()
        alone.append(ask(how))
    assert together == alone
    assert len({repr(found) for found in alone}) == len(settings)


def test_an_encoder_is_that_of_its_own_frame_also_where_an_earlier_one_is_gone():
    """Python gives the address of a frame that is gone to a later one."""
    for i in range(40):
        frame, y = pd.DataFrame({"a": [f"{i}u", f"{i}v", f"{i}w"] * 20}), np.arange(60) % 2
        inputs = TaskInput("a", {}, {}, Population(frame, y, np.full(60, 0.5)))
        observed = Classification().observe(inputs, Records, {}, 0)[0]
        assert observed.encoder.features[0].values == (f"{i}u", f"{i}v", f"{i}w")
        del observed


def test_features_above_the_limit_are_left_out():
    frame = pd.DataFrame({"a": list("uvwuvw"), "b": list("xyzpxx")})
    inputs = TaskInput("a", {}, {}, Population(frame, np.zeros(6), np.full(6, 0.5)))
    kept = [fit_encoder(inputs, frame, np.arange(6) % 2, {"max_modalities": k}, 0)[0].names for k in (2, 3, 4)]
    assert kept == [[], ["a"], ["a", "b"]]


def test_rows_that_an_encoding_was_fitted_to_are_not_learned_from():
    frame, y = people(N).drop(columns="y"), people(N)["y"].to_numpy()
    entry = {"encoding": {"target": {"holdout": 0.25, "above": 2, "modalities": 9}}}
    inputs = TaskInput("a", entry, {}, Population(frame, y, np.full(N, 0.5)))
    _, mask = fit_encoder(inputs, frame, y, {}, 7)
    assert mask.tolist() == (derive_generator("target encoding", "a", 7).random(N) >= 0.25).tolist()


def test_kept_optima_are_those_of_their_budget_and_tables():
    encoder = FrameEncoder((CodedEncoder("a", 5),))
    counted = np.array([20, 10, 9, 15, 6]), np.array([[2, 5, 8, 6, 4], [6, 2, 8, 4, 5]])
    made = [Table((5,), np.arange(5), counted[0], sums) for sums in counted[1]]
    one, two = (ContingencyTables(encoder, "y", 60, 25, {(0,): table}) for table in made)
    asked = [(one, 2, 0), (one, 3, 0), (one, 3, 10), (two, 2, 0), (one, 4, 0)]
    compression._OPTIMA.clear()
    for tables, budget, least in asked:
        best = OptimalQuantizer(budget, min_count=least).fit(tables)
        found = compression._optimum(tables, budget, least)
        assert found == pytest.approx((best.information_, best.information_loss_))
    assert len(set(compression._OPTIMA.values())) == len(asked)


def test_kept_exact_tables_are_those_of_their_counts_and_model():
    rng = np.random.default_rng(0)
    moves = np.array([[[2.0, 1.0], [0.0, 1.0]]])

    def truth(seed: int, nodes: list, tables=moves):
        potentials = np.random.default_rng(seed).normal(size=(1, 1, 2, 2))
        counts = FlowCounts(np.array(nodes, float), noise="gaussian", scale=0.5, population_size=4)
        return flows.TrueFlows(tables[None], potentials, None, np.zeros((2, 2)), counts)

    asked = [truth(seed, [[3, 1], [2, 2]]) for seed in (1, 2)]
    asked += [truth(1, [[1, 3], [2, 2]]), truth(1, [[3, 1], [2, 2]], 2 * moves)]
    together, alone = [np.array(flows._exact(t)) for t in asked], []
    for one in rng.permutation(4):
        flows._EXACT.clear()
        alone.append((one, np.array(flows._exact(asked[one]))))
    for k, found in alone:
        np.testing.assert_array_equal(found, together[k])
    assert len({t.tobytes() for t in together}) == 4


def test_bags_of_a_column_have_its_values_as_names():
    frame = pd.DataFrame({"town": list("cabbcabbbd"), "age": np.arange(10)})
    rows, offsets, names = group_rows(frame, {"bags": "town"}, np.random.default_rng(1))
    assert sorted(names) == list("abcd") != list(names)
    for b, name in enumerate(names):
        assert set(frame["town"].iloc[rows[offsets[b] : offsets[b + 1]]]) == {name}
