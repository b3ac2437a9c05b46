"""Dense vectors of records against their definitions: values by hand, sums, principal components, columns that give the label away."""

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding.dense import DenseEncoder
from agglearn.errors import DataError


def test_vectors_by_hand():
    """A gap is the mean, and has a column; a column of one value becomes zeros."""
    frame = pd.DataFrame({"one": [2.0] * 4, "age": [20.0, 40.0, np.nan, 30.0], "job": [1, 2, 1, -9]})
    encoder = DenseEncoder(frame, ["job"])
    assert encoder.names == ["one", "age", "age=missing", "job=-9", "job=1", "job=2"]
    x = encoder.transform(frame)
    assert x[:, 1] == pytest.approx([-(1.5**0.5), 1.5**0.5, 0, 0])
    assert x[:, [0, 2, 3, 4, 5]].tolist() == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0]]
    assert encoder.transform(pd.DataFrame({"one": [2.0], "age": [30.0], "job": [7]})).tolist() == [[0] * 6]


def persons(n: int = 601) -> tuple[pd.DataFrame, np.ndarray]:
    """Records of three classes; numbers and a category that follow one of them, upwards and downwards, and others that do not."""
    rng = np.random.default_rng(3)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    of = lambda k: (y == k).astype(float)  # noqa: E731
    frame = pd.DataFrame({"up": of(1) + 0.3 * rng.normal(size=n), "down": 5 - 3 * of(2) + 0.7 * rng.normal(size=n)})
    frame["weak"] = of(0) + 0.6 * rng.normal(size=n)
    frame["gap"] = np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n))
    frame["never"] = np.where(y == 0, np.nan, 2.0)  # missing tells the class
    frame["told"] = np.where(y == 1, rng.choice([4, 7], n), 9)
    frame["kind"] = rng.choice([11, 29, 30], n)
    return frame, y


@pytest.mark.parametrize("above", [0.5, 0.7, 0.95])
def test_attributes_that_give_a_class_away_are_dropped_whatever_the_sign(above):
    frame, y = persons()
    encoder = DenseEncoder(frame, ["told", "kind"])
    x = encoder.sparse(frame).toarray().astype(float)
    varies = x.std(axis=0) > 0
    r = np.zeros((x.shape[1], 3))
    r[varies] = np.corrcoef(x[:, varies].T, np.eye(3)[y].T)[: varies.sum(), varies.sum() :]
    expected = sorted({a for a, row in zip(encoder.attributes, r, strict=True) if abs(row).max() > above})
    assert encoder.drop_correlated(frame, y, above) == expected
    assert {a for a, k in zip(encoder.attributes, encoder.mask, strict=True) if k} == set(frame) - set(expected)
    with pytest.raises(DataError, match="none is left"):
        DenseEncoder(frame[["told"]], ["told"]).drop_correlated(frame[["told"]], y)
    if above == 0.7:  # the case of each sign
        assert r[encoder.attributes.index("up")].max() > 0.7
        assert r[encoder.attributes.index("down")].min() < -0.7


def test_principal_components_by_the_singular_values():
    frame, y = persons()
    encoder = DenseEncoder(frame, ["told", "kind"])
    encoder.drop_correlated(frame, y)
    x = encoder.sparse(frame)[:, encoder.mask].toarray().astype(float)
    _, s, v = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    assert encoder.reduce(frame, 2) == pytest.approx(np.sum(s[:2] ** 2) / np.sum(s**2), rel=1e-5)
    first = v[:2] * np.sign(v[[0, 1], abs(v[:2]).argmax(axis=1)])[:, None]
    np.testing.assert_allclose(encoder.transform(frame), (x - x.mean(axis=0)) @ first.T, atol=2e-5)


def test_sums_over_groups_are_those_of_the_vectors():
    """The last group is empty. Categories lie far apart, and those of other records are unknown."""
    frame, y = persons(50)
    frame["kind"] *= 10**8
    encoder, weights = DenseEncoder(frame[:20], ["told", "kind"]), 1 + np.arange(50.0) / 7
    x = encoder.sparse(frame).toarray()
    expected = [(weights[y == k, None] * x[y == k]).sum(axis=0) for k in range(4)]
    np.testing.assert_allclose(encoder.sums(frame, y, weights, 4), expected, rtol=1e-5, atol=1e-5)
    assert x[:, encoder.names.index("kind=2900000000")].tolist() == (frame["kind"] == 29 * 10**8).tolist()


@pytest.mark.parametrize("fitted", ["int8", "int16", "uint8", "int64"])
@pytest.mark.parametrize("encoded", ["int8", "int16", "uint8", "uint64", "int64"])
def test_categories_are_told_apart_at_both_ends_of_narrow_integers(fitted, encoded):
    """The distance of the ends does not fit an int8; the column that is encoded may be of another type."""
    values, asked = [sorted({np.iinfo(t).min, 0, 3, min(np.iinfo(t).max, 300)}) for t in (fitted, encoded)]
    encoder = DenseEncoder(pd.DataFrame({"c": np.array(values, fitted)}), ["c"])
    columns = encoder.sparse(pd.DataFrame({"c": np.array(asked, encoded)})).toarray()
    np.testing.assert_array_equal(columns, [[float(a == v) for v in values] for a in asked])


def test_names_of_categories_are_read_once():
    frame = pd.DataFrame({"a": [1, 2, 2], "b": [0.5, 7.0, 9.0], "c": [5, 6, 7]})
    assert DenseEncoder(frame, iter(["a", "c"])).attributes == ["b", "a", "a", "c", "c", "c"]
