"""Hashed features and crosses (Weinberger et al. 2009): aggregates of the hashed encoding are hashed aggregates."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglearn.cli import main
from agglearn.encoding import UNSEEN, CategoricalEncoder, FrameEncoder, HashedEncoder
from agglearn.errors import ConfigError, DataError
from agglearn.maxent import BestPairClassifier
from agglearn.observations import ContingencyTables, Records, counting


def users(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """A feature of many values, one of few with missing values, a number, and a label that depends on the first."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 90, n)
    y = (rng.random(n) < 0.2 + 0.6 * (user % 2)).astype(int)
    zone = rng.choice(["n", "s", None], n)
    return pd.DataFrame({"user": [f"u{k}" for k in user], "zone": zone, "age": rng.integers(18, 80, n), "y": y})


def buckets_of(texts, buckets: int) -> np.ndarray:
    return HashedEncoder("x", buckets).encode(pd.Series(list(texts), dtype=object))


def test_buckets_are_fixed_for_ever():
    """The lower digits of BLAKE2b, by an independent reading of its hexadecimal form."""
    for text in ("", "u1", "é", "3"):
        digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest()
        number = int("".join(reversed([digest[i : i + 2] for i in range(0, 16, 2)])), 16)
        assert buckets_of([text], 1000)[0] == number % 1000
    assert buckets_of(["u1", "u2", "3"], 1 << 20).tolist() == [891282, 170874, 599454]


def test_spelling_decides_and_parts_are_as_the_whole():
    encoder = HashedEncoder("x", 97)
    assert len({encoder.encode(pd.Series([v]))[0] for v in (3, 3.0, "3", np.int8(3))}) == 1
    column = pd.Series(["a", "b", None, "a"])
    fitted = HashedEncoder.fit(column.rename("x"), 97)
    assert fitted.has_missing
    assert fitted.size == len(fitted.labels) == 98
    codes = fitted.encode(column)
    assert codes.dtype == np.int32
    assert codes[2] == 97
    assert [fitted.encode(column[k : k + 1])[0] for k in range(4)] == codes.tolist()
    assert encoder.encode(column)[2] == UNSEEN
    assert (encoder.encode(pd.Series(["never", "seen"])) >= 0).all()


@pytest.mark.parametrize("buckets", [0, -3, 2.5, "10", 1 << 31])
def test_numbers_of_buckets_that_cannot_be(buckets):
    with pytest.raises(ConfigError, match="'user'"):
        FrameEncoder.fit(users(), hashed={"user": buckets})
    with pytest.raises(DataError, match="hashed: no column 'wage'"):
        FrameEncoder.fit(users(), hashed={"wage": 3})


values = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 1)), min_size=4, max_size=60)


def framed(drawn) -> pd.DataFrame:
    """Records of two features with text, and both labels."""
    a, b, y = zip(*drawn, strict=True)
    return pd.DataFrame({"a": [f"v{k}" for k in a], "b": [f"w{k}" for k in b], "y": [0, 1, *y[2:]]})


@given(values, st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_the_aggregate_of_hashed_features_is_the_hashed_aggregate(drawn, buckets):
    frame = framed(drawn)
    exact = ContingencyTables.from_records(frame, "y")
    hashed = ContingencyTables.from_records(frame, "y", hashed={"a": buckets})
    to = buckets_of(exact.encoder.features[0].values, buckets)
    for key in exact.tables:
        for found, full in zip(hashed.dense(*key), exact.dense(*key), strict=True):
            summed = np.zeros((buckets, *full.shape[1:])) if key[0] == 0 else full
            if key[0] == 0:
                np.add.at(summed, to, full)
            np.testing.assert_array_equal(found, summed)


@given(values, st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_the_aggregate_of_hashed_crosses_is_the_hashed_aggregate(drawn, buckets):
    frame = framed(drawn)
    exact = ContingencyTables.from_records(frame, "y")
    hashed = ContingencyTables.from_records(frame, "y", cross_buckets=buckets)
    if exact.encoder.sizes.prod() <= buckets:
        assert hashed.digest == exact.digest
        return
    table = hashed.tables[(0, 1)]
    codes = exact.encoder.encode(frame)
    cells = codes[:, 0].astype(np.int64) * exact.encoder.sizes[1] + codes[:, 1]
    cross = np.where((codes >= 0).all(axis=1), counting.buckets_of(cells, buckets), -1)
    one = FrameEncoder((CategoricalEncoder("a × b", tuple(map(str, range(buckets)))),))
    feature = ContingencyTables.from_codes(one, cross[:, None], frame.y.to_numpy()).tables[(0,)]
    assert feature.shape == table.shape == (buckets,)
    for part in ("cells", "counts", "label_sums"):
        np.testing.assert_array_equal(getattr(feature, part), getattr(table, part))
    assert hashed.dense(0)[0].tolist() == exact.dense(0)[0].tolist()


def test_crosses_stream_and_split_like_any_table(tmp_path):
    frame = users()
    frame.to_parquet(tmp_path / "r.parquet", row_group_size=50)
    how = {"hashed": {"user": 11}, "cross_buckets": 30}
    whole = ContingencyTables.from_records(frame, "y", **how)
    assert whole.hashed_pairs == {(0, 1): 30, (0, 2): 30}  # the third pair has fewer cells
    whole.save(tmp_path / "tables")
    assert ContingencyTables.load(tmp_path / "tables").digest == whole.digest
    assert ContingencyTables.from_parquet(tmp_path / "r.parquet", "y", **how).digest == whole.digest
    assert ContingencyTables.from_records(frame, "y", hashed={"user": 11}).digest != whole.digest
    assert Records.from_records(frame, "y", hashed={"user": 11}).encoder == whole.encoder


def test_hashed_crosses_are_refused_by_who_cannot_use_them():
    tables = ContingencyTables.from_records(users(), "y", hashed={"user": 40}, cross_buckets=30)
    with pytest.raises(DataError, match="'user' × 'zone' is hashed"):
        BestPairClassifier().fit(tables)
    with pytest.raises(DataError, match="is hashed"):
        tables.matrices()
    with pytest.raises(DataError, match="cross_buckets"):
        ContingencyTables.from_records(users(), "y", cross_buckets=0)


def test_colons_in_a_name_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    users().rename(columns={"user": "user:id"}).to_csv("data.csv", index=False)
    assert main(["aggregate", "data.csv", "--label", "y", "--out", "t", "--hash", "user:id:16"]) == 0
    assert ContingencyTables.load("t").encoder.features[0] == HashedEncoder("user:id", 16)
