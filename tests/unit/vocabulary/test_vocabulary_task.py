"""The compression task and its data: what is observed, what is measured, and logs that are drawn or streamed."""

import numpy as np
import pandas as pd
import pytest

from agglearn.datasets import ClickLog, ClickTables, Population, RecordStore, Streamed
from agglearn.datasets.simulated import vocabularies
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.errors import ConfigError, DataError
from agglearn.observations import ContingencyTables, Records
from agglearn.tasks import Compression, TaskInput


def log(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    page, user = rng.zipf(1.5, n).clip(max=200), rng.zipf(1.3, n).clip(max=900)
    y = (rng.random(n) < np.random.default_rng(1).beta(1, 3, 201)[page]).astype(np.int8)
    frame = pd.DataFrame({"page": page, "user": pd.Series(user).map("u{}".format), "age": rng.normal(40, 9, n)})
    frame.loc[rng.random(n) < 0.1, "user"] = None
    return frame, y


def source(frame, y, **entry):
    entry = {"split": {"last": 0.25}, "features": {"categorical": ["page"]}, **entry}
    return TaskInput("log", entry, {}, Population(frame, y, np.full(len(y), 0.5)))


def test_tables_of_categorical_features_of_the_first_rows():
    frame, y = log()
    seen, truth = Compression().observe(source(frame, y), ContingencyTables, {}, 0)
    border = 3000 - 750
    assert seen.names == ["page", "user"]
    assert (seen.total, seen.positives) == (border, y[:border].sum())
    assert truth.test.total == 750
    for i, name in enumerate(seen.names):
        table = pd.DataFrame({"v": frame[name].fillna("?"), "y": y})
        expected = table[:border].groupby("v")["y"].agg(["size", "sum"])
        n, c = seen.dense(i)
        assert sorted(zip(n, c, strict=True)) == sorted(map(tuple, expected.to_numpy().astype(float)))
        known = table[border:]["v"].isin(expected.index)
        assert truth.test.tables[i,].counts.sum() == known.sum() < 750


def test_numbers_of_values_tell_nothing_of_the_order_of_rows():
    frame, y = log()
    order = np.concatenate([np.random.default_rng(0).permutation(2250), np.arange(2250, 3000)])
    a, _ = Compression().observe(source(frame, y), ContingencyTables, {}, 0)
    b, _ = Compression().observe(source(frame.iloc[order].reset_index(drop=True), y[order]), ContingencyTables, {}, 0)
    assert a.digest == b.digest


def test_what_cannot_be_observed_is_said():
    frame, y = log()
    with pytest.raises(ConfigError, match="cannot make Records"):
        Compression().observe(source(frame, y), Records, {}, 0)
    with pytest.raises(ConfigError, match="takes no 'pairs'"):
        Compression().observe(source(frame, y), ContingencyTables, {"pairs": "all"}, 0)
    with pytest.raises(DataError, match="no categorical features"):
        Compression().observe(source(frame[["age"]], y, features={}), ContingencyTables, {}, 0)
    with pytest.raises(DataError, match="same label"):
        Compression().observe(source(frame, np.zeros(3000, np.int8)), ContingencyTables, {}, 0)


# -- drawn logs -------------------------------------------------------------------------------------------------------


def test_vocabularies_add_up():
    assert sum(vocabularies(26, 28_000_000)) == 28_000_000
    assert sum(s > 1_000_000 for s in vocabularies(26, 28_000_000)) == 5  # as in the Criteo log
    assert vocabularies(3, 9) == [3, 3, 3]
    with pytest.raises(DataError, match="too few"):
        vocabularies(3, 8)


def test_click_tables_hold_every_value_and_one_total():
    drawn_ = ClickTables(n_features=6, n_values=2000, n=20_000, n_test=5000).draw(0)
    for tables, n in ((drawn_.train, 20_000), (drawn_.test, 5000)):
        assert {t.counts.sum() for t in tables.tables.values()} == {n}
        assert {t.label_sums.sum() for t in tables.tables.values()} == {n // 4}
    assert sum(len(t.cells) for t in drawn_.train.tables.values()) == 2000
    again = ClickTables(n_features=6, n_values=2000, n=20_000, n_test=5000).draw(0)
    assert again.train.digest == drawn_.train.digest
    with pytest.raises(DataError, match="more than the 100 records"):
        ClickTables(n=100).draw(0)
    with pytest.raises(ConfigError, match="takes no 'rows'"):
        ClickTables.from_entry({}, {"rows": 3})


def test_click_tables_have_the_planted_rates_in_both_parts():
    drawn_ = ClickTables(n_features=1, n_values=10, n=400_000, n_test=400_000).draw(3)
    (n, c), (m, d) = (t.dense(0) for t in (drawn_.train, drawn_.test))
    spread = np.sqrt(0.25 * (1 / n + 1 / np.maximum(m, 1)))
    assert (np.abs(c / n - d / np.maximum(m, 1)) < 6 * spread).all()
    assert np.std(c / n) > 0.03


def test_click_log_rows():
    population = ClickLog(n_features=4, n_values=500, n=5000).draw(0)
    assert population.frame.shape == (5000, 4)
    assert abs(population.y.mean() - population.probabilities.mean()) < 6 * 0.5 / np.sqrt(5000)
    top = population.frame["c4"] == "v0"
    assert top.mean() > (population.frame["c4"] == "v1").mean()


# -- streamed files ---------------------------------------------------------------------------------------------------

DAC = {
    "title": "t", "class": "agglearn.datasets.Streamed",
    "format": {"separator": "\t", "columns": ["click", "I1", "C1", "C2"]},
    "label": {"column": "click", "positive": 1}, "features": {"drop": ["I1"], "categorical": ["C1", "C2"]},
    "split": {"last": 0.25},
}  # fmt: skip
LINES = ["0\t1\t68fd1e64\t80e26c9b", "1\t\t68fd1e64\t", '0\t-1\t05db9164\t"quoted', "1\t7\t05db9164\t80e26c9b"]


def parsed(tmp_path, lines):
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    out.mkdir()
    Streamed.from_entry(DAC).parse({"train.txt": tmp_path / "train.txt"}, out)
    return RecordStore.open(out)


def test_streamed_records(tmp_path, monkeypatch):
    monkeypatch.setattr("agglearn.encoding.csv_files.BLOCK", 200)  # several blocks
    store = parsed(tmp_path, LINES * 20)
    assert store.n == 80
    assert store.names == ["C1", "C2"]
    assert store.labels().tolist() == [0, 1, 0, 1] * 20
    assert store.column("C2").tolist()[:4] == ["80e26c9b", None, '"quoted', "80e26c9b"]
    seen, truth = Compression().observe(TaskInput("dac", DAC, {}, store), ContingencyTables, {}, 0)
    assert (seen.total, truth.test.total) == (60, 20)
    assert seen.dense(1)[0].sum() == 60


def test_streamed_files_with_a_header_are_one_after_the_other(tmp_path):
    entry = DAC | {"format": {"separator": ","}}
    files = {"train.csv": ["1,3,a,b", "0,,a,c"], "test.csv": ["0,2,d,"]}
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(["click,I1,C1,C2", *lines]) + "\n")
    facts = Streamed.from_entry(entry).parse({name: tmp_path / name for name in files}, tmp_path)
    store = RecordStore.open(tmp_path)
    assert (facts["rows"], store.names) == (3, ["C1", "C2"])
    assert store.labels().tolist() == [1, 0, 0]
    assert store.column("C1").tolist() == ["a", "a", "d"]
    assert store.column("C2").tolist() == ["b", "c", None]


@pytest.mark.parametrize(
    ("line", "said"), [("0\t1", r"train\.txt: .*Expected 4 columns"), ("2\t1\ta\tb", "must have two values")]
)
def test_streamed_files_that_are_wrong(tmp_path, line, said):
    with pytest.raises(DataError, match=said):
        parsed(tmp_path, [*LINES, line])


def test_coded_features(tmp_path):
    encoder = FrameEncoder((CodedEncoder("c", 5),))
    column = pd.DataFrame({"c": [0, 4, 5, -1, None, 2.5]})
    assert encoder.encode(column)[:, 0].tolist() == [0, 4, -1, -1, -1, -1]
    encoder.save(tmp_path)
    assert FrameEncoder.load(tmp_path) == encoder
    assert encoder.features[0].labels == list("01234")
