"""Dense vectors of records: values by hand, sums, principal components, columns that give the label away."""

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding.dense import DenseEncoder
from agglearn.errors import DataError


def test_vectors_by_hand():
    frame = pd.DataFrame({"age": [20.0, 40.0, np.nan, 30.0], "job": [1, 2, 1, -9]})
    encoder = DenseEncoder(frame, ["job"])
    assert encoder.names == ["age", "age=missing", "job=-9", "job=1", "job=2"]
    x = encoder.transform(frame)
    assert x[:, 0] == pytest.approx([-1.2247449, 1.2247449, 0, 0])
    assert x[:, 1:].tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0]]
    unseen = encoder.transform(pd.DataFrame({"age": [30.0], "job": [7]}))
    assert unseen.tolist() == [[0, 0, 0, 0, 0]]


def test_sums_are_those_of_the_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(size=300), "job": rng.integers(-5, 40, 300), "far": rng.integers(0, 3, 300)}
    )
    frame.loc[::7, "age"] = np.nan
    frame["far"] = frame["far"] * 10**9
    encoder = DenseEncoder(frame[:100], ["job", "far"])
    groups, weights = np.sort(rng.integers(0, 5, 300)), rng.random(300)
    dense = encoder.sparse(frame).toarray()
    again = np.array([(weights * (groups == g)) @ dense for g in range(6)])
    np.testing.assert_allclose(encoder.sums(frame, groups, weights, 6), again, atol=1e-5)
    assert dense[:, encoder.names.index("job=-5")].tolist() == (frame["job"] == -5).tolist()
    assert dense[:, encoder.names.index("far=2000000000")].tolist() == (frame["far"] == 2 * 10**9).tolist()


def test_components_are_those_of_the_covariance():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400), "c": rng.integers(0, 3, 400)})
    frame["b"] += 2 * frame["a"]
    encoder = DenseEncoder(frame, ["c"])
    whole = encoder.transform(frame)
    share = encoder.reduce(frame, 2)
    x = encoder.transform(frame)
    u, s, _ = np.linalg.svd(whole - whole.mean(axis=0), full_matrices=False)
    assert share == pytest.approx((s[:2] ** 2).sum() / (s**2).sum(), abs=1e-4)
    assert np.allclose(abs(x), abs(u[:, :2] * s[:2]), atol=1e-3)


def test_what_gives_the_label_away_is_left_out():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    twin = np.where(rng.random(500) < 0.9, y, rng.integers(0, 3, 500))
    frame = pd.DataFrame({"twin": twin, "other": rng.integers(0, 4, 500), "near": (y == 1) + rng.normal(0, 0.2, 500)})
    encoder = DenseEncoder(frame, ["twin", "other"])
    assert encoder.drop_correlated(frame, y) == ["near", "twin"]
    assert encoder.transform(frame).shape == (500, 4)
    with pytest.raises(DataError, match="none is left"):
        DenseEncoder(frame[["twin"]], ["twin"]).drop_correlated(frame[["twin"]], y)
