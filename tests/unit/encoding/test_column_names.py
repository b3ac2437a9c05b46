"""Columns of records are matched by the text of their names, wherever records enter."""

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import FeatureMap, FrameEncoder, Schema, with_target_encodings
from agglearn.encoding.drafting import draft
from agglearn.errors import DataError
from agglearn.maxent import NaiveBayesClassifier
from agglearn.observations import Bags, ContingencyTables, CountedBags, Halves, LabelSums, Records
from agglearn.observations.base import Observation
from agglearn.proportions import MeanEmbeddingClassifier
from agglearn.vocabulary import OptimalQuantizer

RNG = np.random.default_rng(5)
X = RNG.integers(0, 4, (120, 3)).astype(float)
Y = (X[:, 0] + RNG.normal(size=120) > 1.5).astype(int)
NUMBERS = pd.DataFrame(X)  # columns 0, 1, 2
TEXTS = NUMBERS.set_axis(["0", "1", "2"], axis=1)
MARK = "label: {column: '3', positive: '1', negative: '0'}"
SCHEMA = f"reviewed: true\n{MARK}\nfeatures: {{'0': {{edges: [1, 2]}}, '2': {{values: ['0', '1']}}}}"


def labelled(frame: pd.DataFrame) -> pd.DataFrame:
    names = ["0", "1", "2", "3"] if isinstance(frame.columns[0], str) else range(4)
    return frame.assign(y=Y).set_axis(names, axis=1)


encoder_of = FrameEncoder.fit


def counted(frame: pd.DataFrame) -> CountedBags:
    return CountedBags.from_records(encoder_of(TEXTS), frame, Y, 10, np.random.default_rng(0))


DOORS = {
    "FrameEncoder.fit": encoder_of,
    "FrameEncoder.fit, settings": lambda f: FrameEncoder.fit(f, categorical=[f.columns[1]], hashed={f.columns[2]: 7}),
    "FrameEncoder.encode": lambda f: encoder_of(TEXTS).encode(f),
    "with_target_encodings": lambda f: with_target_encodings(encoder_of(TEXTS), f, Y, 2, 5),
    "FeatureMap.fit": lambda f: FeatureMap.fit("scaled", encoder_of(TEXTS), f, "features").ranges,
    "FeatureMap.matrix": lambda f: FeatureMap.fit("quadratic", encoder_of(TEXTS), TEXTS).matrix(f).toarray(),
    "ContingencyTables": lambda f: ContingencyTables.from_records(labelled(f), labelled(f).columns[3]),
    "ContingencyTables, settings": lambda f: ContingencyTables.from_records(
        labelled(f), labelled(f).columns[3], features=[f.columns[2], f.columns[0]],
        pairs=[(f.columns[0], f.columns[2])], categorical=[f.columns[0]],
    ).select([f.columns[0]]),
    "ContingencyTables, schema": lambda f: ContingencyTables.from_records(labelled(f), schema=Schema.parse(SCHEMA)),
    "Records": lambda f: Records.from_records(labelled(f), labelled(f).columns[3]).select([f.columns[1]]),
    "Records, constructor": lambda f: Records(encoder_of(TEXTS), f, Y),
    "Halves": lambda f: Halves.from_records(labelled(f), labelled(f).columns[3], random_state=0),
    "LabelSums.from_records": lambda f: LabelSums.from_records(f, Y, bounds={f.columns[j]: (0, 3) for j in range(3)}),
    "LabelSums.from_map": lambda f: LabelSums.from_map(FeatureMap.fit("onehot", encoder_of(TEXTS), f), f, Y),
    "LabelSums.from_release": lambda f: LabelSums.from_release(f, pd.Series(np.arange(4.0), ["0", "1", "2", "intercept"]), noise=None),
    "CountedBags": counted,
    "Bags": lambda f: Bags.from_groups(f, np.arange(120) // 10, dict.fromkeys(range(12), 5)),
    "schema draft": lambda f: draft(labelled(f), labelled(f).columns[3], 1, [f.columns[1]]),
    "quantizer": lambda f: OptimalQuantizer(6).fit(f, Y).transform(f),
    "predict_proba": lambda f: NaiveBayesClassifier()
    .fit(ContingencyTables.from_records(labelled(TEXTS), "3"))
    .predict_proba(f.iloc[:, ::-1]),
    "bag classifier": lambda f: MeanEmbeddingClassifier(l2=1.0).fit(counted(TEXTS).bags()).predict_proba(
        counted(f).bags().X
    ),
}  # fmt: skip


def plain(value: object, folder) -> object:
    """A value that can be compared: of an observation its digest, once saved and loaded."""
    if isinstance(value, Observation):
        value.save(folder)
        assert type(value).load(folder).digest == value.digest
        return value.digest
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("door", DOORS)
def test_numbers_name_columns_as_their_text_does(door, tmp_path):
    assert plain(DOORS[door](NUMBERS), tmp_path / "n") == plain(DOORS[door](TEXTS), tmp_path / "t")


@pytest.mark.parametrize(
    "columns", [[0, 1, 2], [0.5, 1.5, 2.5], [("a", 1), ("a", 2), ("b", 1)], pd.to_datetime(["2020", "2021", "2022"])]
)
def test_names_of_any_type_are_their_text(columns):
    frame = pd.DataFrame(X, columns=columns)
    encoder = FrameEncoder.fit(frame)
    assert encoder.names == [str(c) for c in frame.columns]
    assert (encoder.encode(frame) == encoder.encode(X)).all()


def test_two_names_of_one_text_are_refused():
    frame = pd.DataFrame(X, columns=[0, "0", 1])
    with pytest.raises(DataError, match=r"^column '0' is there twice; rename one$"):
        FrameEncoder.fit(frame)
    with pytest.raises(DataError, match=r"^column '0' is there twice; rename one$"):
        FrameEncoder.fit(TEXTS[["0", "1"]]).encode(frame)


def test_columns_of_an_array_are_x0_x1():
    both = np.column_stack([X, Y])
    named = pd.DataFrame(both, columns=["x0", "x1", "x2", "x3"])
    tables = ContingencyTables.from_records(both, "x3")
    assert tables.digest == ContingencyTables.from_records(named, "x3").digest
    assert encoder_of(X).names == ["x0", "x1", "x2"]
    assert Records.from_records(both, "x3").digest == Records.from_records(named, "x3").digest
    encoder = encoder_of(named[["x0", "x1", "x2"]])
    arrays, frames = (
        CountedBags.from_records(encoder, f, Y, 10, np.random.default_rng(0)) for f in (X, named.iloc[:, :3])
    )
    assert arrays.digest == frames.digest
    mapped = FeatureMap.fit("scaled", encoder, X, "features")
    assert LabelSums.from_map(mapped, X, Y).digest == LabelSums.from_map(mapped, named.iloc[:, :3], Y).digest
    assert draft(both, "x3") == draft(named, "x3")


@pytest.mark.parametrize("wrong", [np.zeros(5), np.zeros((5, 2, 2)), "text", None, 3])
def test_what_is_no_table_is_refused_in_one_line(wrong):
    for call in (FrameEncoder.fit, lambda f: ContingencyTables.from_records(f, "y"), encoder_of(TEXTS).encode, draft):
        with pytest.raises(DataError, match=r"^X: must be a data frame, or an array of shape \(records, .*, got shape"):
            call(wrong)
