"""The optimum as an encoder: from held-out rows only, on the same rows as the target encoding it is compared with."""

import numpy as np
import pandas as pd

from agglearn.encoding import FrameEncoder, TargetEncoder
from agglearn.observations import ContingencyTables, Records
from agglearn.tasks import Classification, Source
from agglearn.tasks.classification import Population
from agglearn.vocabulary import OptimalQuantizer
from agglearn.vocabulary.encoder import optimal_encoder, with_optimal_encodings

ENTRY = {
    "split": 0.2,
    "split_like": "twin",
    "encoding": {"vocabulary": {"holdout": 0.3, "above": 20, "modalities": 12}},
}


def clicks(n=4000, values=300, seed=0):
    rng = np.random.default_rng(seed)
    value = np.minimum(rng.zipf(1.4, n), values)
    rate = np.random.default_rng(1).beta(2, 8, values + 1)
    y = (rng.random(n) < rate[value]).astype(np.int8)
    frame = pd.DataFrame({"big": "v" + pd.Series(value.astype(str)), "small": rng.choice(list("ab"), n)})
    return frame, y


def observed(frame, y, kind=ContingencyTables, entry=ENTRY, name="clicks"):
    source = Source(name, entry, {}, Population(frame, y, np.full(len(y), 0.5)))
    return Classification().observe(source, kind, {}, 0)[0]


def test_modalities_are_the_optimal_clusters():
    frame, y = clicks()
    encoder = optimal_encoder(frame["big"], y, 12)
    table = pd.DataFrame({"v": frame["big"], "y": y}).groupby("v")["y"].agg(["size", "sum"])
    best = OptimalQuantizer(11, shrinkage="beta_binomial").fit(table["size"].to_numpy(), table["sum"].to_numpy())
    assert encoder.size == 12
    assert encoder.encode(pd.Series(table.index, name="big")).tolist() == (best.labels_ + 1).tolist()
    assert encoder.encode(pd.Series(["never", None], name="big")).tolist() == [0, 0]


def test_survives_saving():
    frame, y = clicks(500)
    encoder = with_optimal_encodings(FrameEncoder.fit(frame), frame, y, 20, 12)
    again = FrameEncoder.from_dict(encoder.to_dict())
    assert again == encoder
    assert isinstance(encoder.features[0], TargetEncoder)
    assert not isinstance(encoder.features[1], TargetEncoder)


def test_no_training_row_is_in_the_clusters():
    frame, y = clicks()
    records = observed(frame.assign(id=np.arange(len(y))), y, Records)
    trained = records.frame["id"].to_numpy()
    assert 0 < len(trained) < 0.6 * len(y)  # less the test rows, less those held out for the clusters
    other = y.copy()
    other[trained] = 1 - other[trained]
    assert observed(frame, other).encoder == observed(frame, y).encoder
    rest = np.setdiff1d(np.arange(len(y)), trained)
    changed = y.copy()
    changed[rest] = 1 - changed[rest]
    assert observed(frame, changed).encoder != observed(frame, y).encoder  # the check can fail


def test_tables_count_training_rows_only():
    frame, y = clicks()
    assert observed(frame, y).total == len(observed(frame, y, Records).y)


def test_the_same_rows_as_the_twin():
    frame, y = clicks()
    frame["id"] = np.arange(len(y))
    twin = {"split": 0.2, "encoding": {"target": {"holdout": 0.3, "above": 20, "modalities": 12}}}
    ours, theirs, another = (
        observed(frame, y, Records, *more).frame["id"].tolist()
        for more in ((ENTRY, "clicks"), (twin, "twin"), (twin, "other"))
    )
    assert ours == theirs != another
