"""Test rows that runs of a batch share: read once, encoded once by equal encoders, and the same numbers come out."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from samples import people

from agglearn import products, running
from agglearn.encoding import CategoricalEncoder, FrameEncoder
from agglearn.encoding.encoder import keep_codes
from agglearn.observations import ContingencyTables
from agglearn.plan import Run, Slot, canonical
from agglearn.tasks import classification

COLUMNS = ["job", "home"]
SEEDS, SMOOTHING = (0, 1), (1, 2)
SIZES = {0: 61, 1: 67}  # test rows of a seed


def planned(smoothing: int, seed: int) -> Run:
    spec = {"class": "agglearn.maxent.NaiveBayesClassifier", "task": "agglearn.tasks.Classification",
            "type": "agglearn.observations.ContingencyTables", "measures": ["nllh", "auc", "brier"],
            "keep_model": "none", "ignore_noise": False}  # fmt: skip
    slot = Slot("people", "{}", "tables", canonical({"k": smoothing}), seed)
    return Run("trial", slot, "bayes", canonical({"kind": "generative", "smoothing": smoothing}), canonical(spec))


RUNS = [planned(smoothing, seed) for smoothing in SMOOTHING for seed in SEEDS]


@pytest.fixture
def batch(tmp_path, monkeypatch):
    """Computes runs in this process: their measurements; lengths of the encoded test columns; how often test rows were read."""
    encodings, reads = [], []
    encode, read = CategoricalEncoder.encode, pd.read_parquet

    def observe(out):
        for run in RUNS:
            home = out / run.slot.key
            (home / "observation").mkdir(parents=True)
            (home / "truth").mkdir()
            training, test = people(200 + run.seed), people(SIZES[run.seed])
            ContingencyTables.from_records(training[[*COLUMNS, "y"]], "y").save(home / "observation")
            classification.TestRows(test[COLUMNS], test["y"].to_numpy(np.int8)).save(home / "truth", out / "features")
            products.write_json(home / "units.json", {"tested": "t", "overlap": 0.0})

    def computed(work, items, limit):
        for item in items:
            work(item)
        return []

    products.make(tmp_path / "observed", observe)
    monkeypatch.setattr(running, "in_children", computed)
    monkeypatch.setattr(CategoricalEncoder, "encode", lambda self, c: encodings.append(len(c)) or encode(self, c))
    monkeypatch.setattr(pd, "read_parquet", lambda path, **more: reads.append(path) or read(path, **more))

    def compute(runs, name):
        encodings.clear(), reads.clear()
        place = tmp_path / name
        running.fit_batch(runs, {"people": tmp_path / "observed"}, place, place / "batch.parquet", 60, {})
        rows = pq.read_table(place / "batch.parquet").to_pandas()
        assert set(rows["status"]) == {"ok"}, rows["reason"].tolist()
        rows = rows[~rows["measure"].isin(["seconds", "elapsed"])]
        return (
            rows.set_index(["run", "measure"])["value"].to_dict(),
            sorted(n for n in encodings if n in SIZES.values()),
            len(reads),
        )

    return compute


def test_runs_of_a_batch_read_and_encode_the_same_test_rows_once(batch):
    together, encodings, reads = batch(RUNS, "together")
    assert encodings == sorted(SIZES[seed] for seed in SEEDS for _ in COLUMNS)
    assert reads == len(SEEDS)
    alone = {}
    for run in RUNS:
        keep_codes(pd.DataFrame())
        alone |= batch([run], f"alone-{run.key}")[0]
    assert len(alone) == 3 * len(RUNS)
    assert together == alone  # to the last bit


def test_kept_codes_are_those_of_this_frame_and_this_encoder():
    frame, other = people(50)[COLUMNS], people(40)[COLUMNS]
    first, second = FrameEncoder.fit(frame), FrameEncoder.fit(frame.iloc[:3])
    equal, copy = FrameEncoder.from_dict(first.to_dict()), frame.copy()
    expected = {e: e.encode(copy) for e in (first, second)}
    assert not np.array_equal(expected[first], expected[second])
    keep_codes(frame)
    for encoder in (first, second, first, equal):
        codes = encoder.encode(frame)
        np.testing.assert_array_equal(codes, expected[encoder])
        codes[:] = 9  # a caller may change what it is given
    assert len(first.encode(other)) == len(other)
    np.testing.assert_array_equal(first.encode(frame), expected[first])


def test_test_rows_that_were_written_anew_are_read_anew(tmp_path):
    for rows in (30, 20):
        frame = people(rows)
        classification.TestRows(frame[COLUMNS], frame["y"].to_numpy(np.int8)).save(tmp_path)
        pd.testing.assert_frame_equal(classification.TestRows.load(tmp_path).frame, frame[COLUMNS])
