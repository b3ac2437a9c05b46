"""Encodings that see the label, by count and rate or by the optimal clusters: from held-out rows only."""

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import FrameEncoder, TargetEncoder, with_target_encodings
from agglearn.observations import ContingencyTables, Records
from agglearn.tasks import Classification, TaskInput
from agglearn.tasks.classification import Population
from agglearn.vocabulary import OptimalQuantizer
from agglearn.vocabulary.encoder import optimal_encoder

HELD_OUT = {"holdout": 0.3, "above": 20, "modalities": 50}
TARGET = {"split": 0.2, "encoding": {"target": HELD_OUT}}
OPTIMUM = {"split": 0.2, "split_like": "twin", "encoding": {"vocabulary": HELD_OUT}}
both = pytest.mark.parametrize("entry", [TARGET, OPTIMUM], ids=["target", "vocabulary"])


def clicks(n=4000, values=300, seed=0):
    rng = np.random.default_rng(seed)
    value = np.minimum(rng.zipf(1.4, n), values)
    rate = np.random.default_rng(1).beta(2, 8, values + 1)
    y = (rng.random(n) < rate[value]).astype(np.int8)
    frame = pd.DataFrame({"big": "v" + pd.Series(value.astype(str)), "small": rng.choice(list("ab"), n)})
    return frame, y


def test_values_alike_share_a_modality():
    column = pd.Series(list("aaaabbbbccccdd"), name="v")
    y = np.array([1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1])
    encoder = TargetEncoder.fit(column, y, modalities=30, prior=1.0)
    a, b, c, d = encoder.encode(pd.Series(list("abcd"), name="v"))
    assert a == b  # same count, same rate
    assert len({a, c, d}) == 3


def test_fewer_modalities_than_asked_for():
    frame, y = clicks()
    for most in (10, 50, 200):
        encoder = TargetEncoder.fit(frame["big"], y, most)
        assert encoder.size < most
        assert encoder.encode(frame["big"]).max() == encoder.size - 1


def test_rate_rises_with_the_modality_inside_a_level():
    frame, y = clicks(20_000)
    encoder = TargetEncoder.fit(frame["big"], y, 60)
    rates = pd.Series(y).groupby(encoder.encode(frame["big"])).mean()
    by_label = {label: rates[k] for k, label in enumerate(encoder.labels) if k in rates.index}
    levels = {}
    for label, rate in by_label.items():
        if "+" in label:
            levels.setdefault(int(label.split("+")[0]).bit_length(), []).append(rate)
    widest = max(levels.values(), key=len)
    assert np.corrcoef(np.arange(len(widest)), widest)[0, 1] > 0.8


def test_what_was_not_held_out_is_one_modality():
    encoder = TargetEncoder.fit(pd.Series(["a", "b", "b"], name="v"), np.array([0, 1, 1]))
    assert encoder.encode(pd.Series(["z", None], name="v")).tolist() == [0, 0]
    assert encoder.labels[0] == "not held out"


def test_modalities_are_the_optimal_clusters():
    frame, y = clicks()
    encoder = optimal_encoder(frame["big"], y, 12)
    table = pd.DataFrame({"v": frame["big"], "y": y}).groupby("v")["y"].agg(["size", "sum"])
    best = OptimalQuantizer(11, shrinkage="beta_binomial").fit(table["size"].to_numpy(), table["sum"].to_numpy())
    assert encoder.size == 12
    assert encoder.encode(pd.Series(table.index, name="big")).tolist() == (best.labels_ + 1).tolist()
    assert encoder.encode(pd.Series(["never", None], name="big")).tolist() == [0, 0]


@pytest.mark.parametrize("fit", [TargetEncoder.fit, optimal_encoder])
def test_survives_saving(fit, tmp_path):
    frame, y = clicks(500)
    encoder = with_target_encodings(FrameEncoder.fit(frame), frame, y, 20, 40, fit)
    encoder.save(tmp_path)
    again = FrameEncoder.load(tmp_path)
    assert again == encoder
    assert (again.encode(frame) == encoder.encode(frame)).all()
    assert isinstance(encoder.features[0], TargetEncoder)
    assert not isinstance(encoder.features[1], TargetEncoder)


def observed(frame, y, entry, kind=ContingencyTables, name="clicks"):
    source = TaskInput(name, entry, {}, Population(frame, y, np.full(len(y), 0.5)))
    return Classification().observe(source, kind, {}, 0)[0]


@both
def test_no_training_row_is_in_the_encoding(entry):
    frame, y = clicks()
    records = observed(frame.assign(id=np.arange(len(y))), y, entry, Records)
    assert isinstance(next(f for f in records.encoder.features if f.name == "big"), TargetEncoder)
    trained = records.frame["id"].to_numpy()
    assert 0 < len(trained) < 0.6 * len(y)  # less the test rows, less those held out for the encoding
    other = y.copy()
    other[trained] = 1 - other[trained]
    assert observed(frame, other, entry).encoder == observed(frame, y, entry).encoder
    rest = np.setdiff1d(np.arange(len(y)), trained)
    changed = y.copy()
    changed[rest] = 1 - changed[rest]
    assert observed(frame, changed, entry).encoder != observed(frame, y, entry).encoder  # the check can fail


@both
def test_tables_count_training_rows_only(entry):
    frame, y = clicks()
    assert observed(frame, y, entry).total == len(observed(frame, y, entry, Records).y)


def test_an_optimum_is_compared_on_the_rows_of_its_twin():
    frame, y = clicks()
    frame["id"] = np.arange(len(y))
    ours, theirs, another = (
        observed(frame, y, *more)
        for more in ((OPTIMUM, Records), (TARGET, Records, "twin"), (TARGET, Records, "other"))
    )
    assert ours.frame["id"].tolist() == theirs.frame["id"].tolist() != another.frame["id"].tolist()


def test_select_is_aggregation_of_fewer_features():
    frame, y = clicks()
    frame["third"] = frame["small"].map({"a": "x", "b": "y"})
    whole = ContingencyTables.from_records(frame.assign(y=y), "y", categorical=["big"])
    part = ContingencyTables.from_records(frame.assign(y=y), "y", ["big", "third"], categorical=["big"])
    assert whole.select(["third", "big"]).digest == part.digest
    with pytest.raises(ValueError, match="no column 'none'"):
        whole.select(["none"])
