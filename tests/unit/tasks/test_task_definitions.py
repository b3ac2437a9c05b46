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


def check_kept(ask, settings) -> None:
    """The same is found by all settings in one process, and by each in a process that was asked for nothing else."""
    together, alone = [ask(*how) for how in settings], []
    for how in settings:
        forget()
        alone.append(ask(*how))
    assert together == alone
    assert len({repr(found) for found in alone}) == len(settings)


def test_kept_splits_are_those_of_their_settings(folder):
    def ask(entry, seed, params):
        (train, _), test = split_records(stored(folder, entry, **params), seed)
        return train["row"].tolist(), test.frame["row"].tolist()

    settings = [(None, 0, {}), (None, 1, {}), ({"split": 0.4}, 0, {}), ({"split": {"last": 0.4}}, 0, {})]
    check_kept(ask, [*settings, (None, 0, {"rows": 50}), (None, 0, {"rows": 90}), ({"split_like": "b"}, 0, {})])


def test_kept_encoders_are_those_of_their_settings(folder):
    def ask(how):
        return Classification().observe(stored(folder), Records, how, 0)[0].encoder

    limits = [{"max_modalities": 5}, {"max_modalities": 5, "buckets": 3}]
    check_kept(ask, [(how,) for how in ({}, {"binning": "width"}, {"hashed": {"job": 2}}, *limits)])


def test_an_encoder_is_that_of_its_own_frame_also_where_an_earlier_one_is_gone():
    """Python gives the address of a frame that is gone to a later one."""
    for i in range(40):
        frame, y = pd.DataFrame({"a": [f"{i}u", f"{i}v", f"{i}w"] * 20}), np.arange(60) % 2
        inputs = TaskInput("a", {}, {}, Population(frame, y, np.full(60, 0.5)))
        observed = Classification().observe(inputs, Records, {}, 0)[0]
        assert observed.encoder.features[0].values == (f"{i}u", f"{i}v", f"{i}w")
        del observed


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
    moves = np.array([[[2.0, 1.0], [0.0, 1.0]]])

    def truth(seed: int, nodes: list, tables=moves):
        potentials = np.random.default_rng(seed).normal(size=(1, 1, 2, 2))
        counts = FlowCounts(np.array(nodes, float), noise="gaussian", scale=0.5, population_size=4)
        return flows.TrueFlows(tables[None], potentials, None, np.zeros((2, 2)), counts)

    asked = [truth(1, [[3, 1], [2, 2]]), truth(2, [[3, 1], [2, 2]]), truth(1, [[1, 3], [2, 2]])]
    asked.append(truth(1, [[3, 1], [2, 2]], 2 * moves))
    together = [np.array(flows._exact(t)) for t in asked]
    for one, found in zip(asked, together, strict=True):
        flows._EXACT.clear()
        np.testing.assert_array_equal(flows._exact(one), found)
    assert len({t.tobytes() for t in together}) == 4
