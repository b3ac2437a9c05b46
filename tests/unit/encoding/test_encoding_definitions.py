"""Binnings, target encodings and dense vectors against their definitions, on columns of unequal sizes and both signs of correlation."""

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import CategoricalEncoder, EqualWidth, FeatureMap, FrameEncoder, Quantiles, TargetEncoder
from agglearn.encoding.binned import BinnedEncoder, quantiles
from agglearn.encoding.dense import DenseEncoder


@pytest.mark.parametrize("n", [1, 2, 5, 17])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_quantiles_of_counted_values_are_those_of_all_rows(n, seed):
    rng = np.random.default_rng(seed)
    values, counts = rng.normal(size=n), rng.integers(1, 6, n)
    q = np.linspace(0, 1, 11)
    np.testing.assert_array_equal(quantiles(values, counts, q), np.quantile(np.repeat(values, counts), q))


def test_quantile_bins_by_hand():
    """Quartiles of 1 … 9 are 3, 5, 7; a value on an edge is in the lower bin, and a bin without values is no bin."""
    assert Quantiles(4).edges(np.arange(1.0, 10.0)).tolist() == [3, 5, 7]
    column = pd.Series([1.0, 3.0, 3.1, 7.0, 99.0], name="a")
    assert BinnedEncoder("a", (3.0, 5.0, 7.0)).encode(column).tolist() == [0, 0, 1, 2, 3]
    assert Quantiles(4).edges(np.array([1.0, 1, 1, 1, 1, 2, 6])).tolist() == [1.5]


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        ([0.0, 0.2, 0.45, 0.99], [0.2475, 0.7425]),  # below 1: not rounded
        ([0.0, 0.2, 0.45, 1.0], [0.0]),  # 0.25, 0.5 and 0.75 are rounded from a range of 1 on
        ([0.0, 3.0, 9.0, 10.0], [2.0, 8.0]),  # 2.5, 5 and 7.5; no value is above 2 and at most 5
    ],
)
def test_bins_of_equal_width_by_hand(values, edges):
    assert EqualWidth(4).edges(np.array(values)).tolist() == pytest.approx(edges)


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
    assert encoder.codes == tuple(rank[cell] for cell in cells)
    assert encoder.size == len(rank) + 1 < modalities or modalities == 3
    column = pd.Series([values[0], "never", values[-1]], name="a")
    assert encoder.encode(column).tolist() == [encoder.codes[0], 0, encoder.codes[-1]]


def test_scaled_numbers_are_cut_at_their_range():
    frame = pd.DataFrame({"a": [1.0, 2.5, 4.0, -3.0, 9.0]})
    encoder = FrameEncoder((BinnedEncoder("a", (2.0,)),))
    mapped = FeatureMap.fit("scaled", encoder, frame, {"a": (1.0, 5.0)}, intercept=False)
    assert mapped.matrix(frame).toarray().ravel().tolist() == [0, 0.375, 0.75, 0, 1]


def test_pairs_of_two_sizes_have_the_names_of_their_cells():
    frame = pd.DataFrame({"a": list("uuvvuv"), "b": list("xyzxzy")})
    encoder = FrameEncoder(tuple(CategoricalEncoder.fit(frame[c]) for c in frame))
    mapped = FeatureMap.fit("quadratic", encoder, frame)
    for k, row in enumerate(mapped.matrix(frame).toarray()):
        a, b = frame.iloc[k]
        filled = [name for name, x in zip(mapped.names, row, strict=True) if x]
        assert filled == [f"a = {a}", f"b = {b}", f"a = {a} & b = {b}", "intercept"]


# -- dense vectors ----------------------------------------------------------------------------------------------------


def persons(n: int = 601) -> tuple[pd.DataFrame, np.ndarray]:
    """Records of three classes; numbers and a category that follow one of them, upwards and downwards, and others that do not."""
    rng = np.random.default_rng(3)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    of = lambda k: (y == k).astype(float)  # noqa: E731
    frame = pd.DataFrame(
        {
            "up": of(1) + 0.3 * rng.normal(size=n),
            "down": 5 - 3 * of(2) + 0.7 * rng.normal(size=n),
            "weak": of(0) + 0.6 * rng.normal(size=n),
            "gap": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n)),
            "never": np.where(y == 0, np.nan, 2.0),  # missing tells the class
            "told": np.where(y == 1, rng.choice([4, 7], n), 9),
            "kind": rng.choice([11, 29, 30], n),
        }
    )
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
    if above == 0.7:  # the case of each sign
        signed = {encoder.attributes[i]: r[i, abs(r[i]).argmax()] for i in range(len(r)) if abs(r[i]).max() > above}
        assert signed["up"] > 0.7
        assert signed["down"] < -0.7
        assert "weak" not in expected


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
    frame, y = persons(50)
    encoder, weights = DenseEncoder(frame, ["told", "kind"]), 1 + np.arange(50.0) / 7
    x = encoder.sparse(frame).toarray()
    expected = [(weights[y == k, None] * x[y == k]).sum(axis=0) for k in range(3)]
    np.testing.assert_allclose(encoder.sums(frame, y, weights, 3), expected, rtol=1e-5, atol=1e-5)


def test_a_gap_is_the_mean_and_has_a_column():
    frame, _ = persons(40)
    encoder = DenseEncoder(frame, ["told", "kind"])
    x = pd.DataFrame(encoder.sparse(frame).toarray(), columns=encoder.names)
    missing = frame["gap"].isna()
    assert (x.loc[missing, "gap"] == 0).all()
    assert (x["gap=missing"] == missing).all()
    known = frame["gap"][~missing]
    np.testing.assert_allclose(x.loc[~missing, "gap"], (known - known.mean()) / known.std(ddof=0), rtol=1e-5)
    for name, value in (("told", 4), ("told", 9), ("kind", 11), ("kind", 30)):  # the least and the greatest
        assert (x[f"{name}={value}"] == (frame[name] == value)).all()
    other = encoder.sparse(frame.assign(told=8, kind=99)).toarray()
    assert (other[:, [encoder.names.index(n) for n in encoder.names if n.startswith(("told", "kind"))]] == 0).all()


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


def test_a_missing_value_is_a_value_with_its_own_rate():
    """600 missing values with rate .9 among those with rate .1 and .5: pandas' groups leave them out by default."""
    values, ones = np.repeat(["u", None, "v"], [400, 600, 100]), np.repeat([0.1, 0.9, 0.5], [400, 600, 100])
    y = (np.concatenate([np.arange(n) / n for n in (400, 600, 100)]) < ones).astype(int)
    encoder = TargetEncoder.fit(pd.Series(values, name="a"), y, modalities=40)
    u, missing, v, unseen = encoder.encode(pd.Series(["u", None, "v", "w"], name="a", dtype=object))
    assert len({u, missing, v, unseen}) == 4
    assert unseen == 0
    assert encoder.labels[missing] == f"600+ records, rate {(540 + 20 * 630 / 1100) / 620:.3g}"
