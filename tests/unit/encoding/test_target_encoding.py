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


def modality_by_definition(counts, sums, base, modalities, prior):
    """Powers of two of the count, and within them the quantile of the shrunk rate among all values."""
    levels = [len(bin(int(n))) - 3 for n in counts]
    number = max(levels) + 1
    if number > modalities - 2:
        levels, number = [k * (modalities - 2) // number for k in levels], modalities - 2
    rates = (sums + prior * base) / (counts + prior)
    parts = max(1, (modalities - 2) // number)
    edges = np.unique([np.quantile(rates, q) for q in np.linspace(0, 1, parts + 1)[1:parts]])
    return [(level, int(np.sum(edges < rate))) for level, rate in zip(levels, rates, strict=True)]


@pytest.mark.parametrize(("modalities", "prior"), [(50, 20.0), (23, 1.0), (12, 5.0), (6, 20.0), (3, 2.0)])
def test_target_encoding_by_its_definition(modalities, prior):
    """At 23 modalities each of 7 levels has three rates; one modality more or fewer would change that."""
    rng = np.random.default_rng(5)
    counts = np.concatenate([[1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127], rng.integers(1, 128, 60)])
    sums = rng.binomial(counts, rng.beta(2, 5, len(counts)))
    values = tuple(f"v{k:03d}" for k in range(len(counts)))
    encoder = TargetEncoder.from_counts("a", values, counts, sums, 0.3, modalities, prior)
    cells = modality_by_definition(counts, sums, 0.3, modalities, prior)
    rank = {cell: k + 1 for k, cell in enumerate(sorted(set(cells)))}
    shrunk = pd.Series((sums + prior * 0.3) / (counts + prior)).groupby(pd.Series(cells).map(rank)).mean()
    assert encoder.codes == tuple(rank[cell] for cell in cells)
    assert encoder.size == len(rank) + 1 <= modalities
    assert [label.rpartition(" ")[2] for label in encoder.labels[1:]] == [f"{rate:.3g}" for rate in shrunk]
    column = pd.Series([values[0], "never", None, values[-1]], name="a")
    assert encoder.encode(column).tolist() == [encoder.codes[0], 0, 0, encoder.codes[-1]]
    assert encoder.labels[0] == "not held out"


def test_noisy_counts_below_one_are_taken_for_one():
    encoder = TargetEncoder.from_counts(
        "a", ("u", "v", "w"), np.array([0.0, -3.0, 16.0]), np.array([-5, 2, 8]), 0.5, 50, 2.0
    )
    assert encoder.labels[1:] == ("1+ records, rate 0.333", "1+ records, rate 0.667", "16+ records, rate 0.5")


def test_a_missing_value_is_a_value_with_its_own_rate():
    """600 missing values with rate .9 among those with rate .1 and .5: pandas' groups leave them out by default."""
    values, ones = np.repeat(["u", None, "v"], [400, 600, 100]), np.repeat([0.1, 0.9, 0.5], [400, 600, 100])
    y = (np.concatenate([np.arange(n) / n for n in (400, 600, 100)]) < ones).astype(int)
    encoder = TargetEncoder.fit(pd.Series(values, name="a"), y, modalities=40)
    u, missing, v, unseen = encoder.encode(pd.Series(["u", None, "v", "w"], name="a", dtype=object))
    assert len({u, missing, v, unseen}) == 4
    assert unseen == 0
    assert encoder.labels[missing] == f"600+ records, rate {(540 + 20 * 630 / 1100) / 620:.3g}"


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
    assert FrameEncoder.load(tmp_path) == encoder
    assert [isinstance(feature, TargetEncoder) for feature in encoder.features] == [True, False]


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
    tables = observed(frame, y, entry)
    assert tables.total == len(trained)
    assert observed(frame, other, entry).encoder == tables.encoder
    rest = np.setdiff1d(np.arange(len(y)), trained)
    changed = y.copy()
    changed[rest] = 1 - changed[rest]
    assert observed(frame, changed, entry).encoder != tables.encoder  # the check can fail


def test_an_optimum_is_compared_on_the_rows_of_its_twin():
    frame, y = clicks()
    frame["id"] = np.arange(len(y))
    asked = ((OPTIMUM, Records), (TARGET, Records, "twin"), (TARGET, Records, "other"))
    ours, theirs, another = (observed(frame, y, *more) for more in asked)
    assert ours.frame["id"].tolist() == theirs.frame["id"].tolist() != another.frame["id"].tolist()
