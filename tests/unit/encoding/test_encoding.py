"""Bins, vocabularies, labels: what becomes which modality, and what is refused."""

import datetime
import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pandas.api.types import is_numeric_dtype

from agglearn.encoding import (
    UNSEEN,
    BinnedEncoder,
    CategoricalEncoder,
    EqualWidth,
    FrameEncoder,
    HashedEncoder,
    Quantiles,
    binning,
    design,
)
from agglearn.encoding.columns import as_text, numbers
from agglearn.encoding.drafting import draft
from agglearn.encoding.labels import binary_label
from agglearn.errors import ConfigError, DataError, LooksLikeCodes
from agglearn.observations import ContingencyTables

# -- bins -------------------------------------------------------------------------------------------------------------


def test_deciles_hold_a_tenth_each():
    encoder = BinnedEncoder.fit(pd.Series(np.arange(1, 1001)), Quantiles(10))
    codes = encoder.encode(pd.Series(np.arange(1, 1001)))
    np.testing.assert_array_equal(np.bincount(codes), np.full(10, 100))
    assert encoder.encode(pd.Series([-5, 5000])).tolist() == [0, 9]


def test_bins_are_open_below_and_closed_above():
    encoder = BinnedEncoder("x", (1.0, 2.0))
    assert encoder.encode(pd.Series([0.9, 1.0, 1.1, 2.0, 2.1])).tolist() == [0, 0, 1, 1, 2]
    assert encoder.labels == ["(-inf, 1]", "(1, 2]", "(2, inf]"]


def test_width_edges_are_rounded_unless_the_range_is_tiny():
    values = np.linspace(0, 25, 1001)
    assert EqualWidth(10).edges(values).tolist() == [2, 5, 8, 10, 12, 15, 18, 20, 22]  # halves go to even
    np.testing.assert_allclose(EqualWidth(10).edges(values / 100), np.arange(0.025, 0.25, 0.025))


def test_empty_bins_are_merged_into_their_lower_neighbour():
    values = np.array([0.0, 1.0, 2.0, 99.0, 100.0])
    edges = EqualWidth(10).edges(values)
    assert edges.tolist() == [90]
    skewed = np.array([0.0] * 95 + [1.0] * 5)
    assert Quantiles(10).edges(skewed).tolist() == [0]


@pytest.mark.parametrize("how", [Quantiles(10), EqualWidth(10)])
def test_a_constant_is_one_bin(how):
    encoder = BinnedEncoder.fit(pd.Series([7.0] * 5), how)
    assert encoder.size == 1
    assert encoder.encode(pd.Series([6.0, 7.0, 8.0])).tolist() == [0, 0, 0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.sampled_from([Quantiles(10), EqualWidth(10)]))
def test_every_bin_was_seen_and_order_is_kept(values, how):
    column = pd.Series(values)
    encoder = BinnedEncoder.fit(column, how)
    codes = encoder.encode(column)
    assert set(codes) == set(range(encoder.size))
    assert encoder.size <= 10
    assert (np.diff(codes[np.argsort(values)]) >= 0).all()


def test_unknown_binning():
    with pytest.raises(ConfigError, match=r"'decile'.*deciles, width"):
        binning("decile")


# -- categories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([3, 4]),
        pd.Series([3.0, 4.0]),
        pd.Series(["3", "4"]),
        pd.Series([3, 4], dtype="Int64"),
        pd.Series([3, 4], dtype="uint8"),
        pd.Series(["3", "4"], dtype="category"),
        pd.Series([3, 4], dtype="category"),
        pd.Series(["3", "4"], dtype="string"),
        pd.Series([3.0, 4.0], dtype=object),
        pd.Series([3.0, 4.0], dtype="float32"),
        pd.Series([3.0, 4.0], dtype="category"),
        pd.Series([3.0, 4.0], dtype="Float64"),
        pd.Series([3.0, 4.0], dtype="double[pyarrow]"),
        pd.Series(["3.0", "4.00"]),
        pd.Series([Decimal("3"), Decimal("4.00")]),
        pd.Series([Decimal("3.0"), Decimal("4.0")], dtype=pd.ArrowDtype(pa.decimal128(5, 1))),
        pd.Series([3 + 0j, 4 + 0j]),
        pd.Series([np.float32(3), np.int8(4)], dtype=object),
    ],
)
def test_one_category_however_it_is_stored(column):
    assert as_text(column).tolist() == ["3", "4"]
    assert CategoricalEncoder("x", ("3", "4")).encode(column).tolist() == [0, 1]


def test_text_of_other_values():
    assert as_text(pd.Series([True, False])).tolist() == ["True", "False"]
    assert as_text(pd.Series([3.0, 3.5, -0.0, np.nan])).tolist() == ["3", "3.5", "0", None]
    assert as_text(pd.Series([2**62 + 1, 7])).tolist() == ["4611686018427387905", "7"]
    assert as_text(pd.Series([1e19, 1.0, np.nan])).tolist() == ["10000000000000000000", "1", None]
    assert as_text(pd.Series(["a", None])).tolist() == ["a", None]
    assert as_text(pd.Series([None, 5], dtype="Int64")).tolist() == [None, "5"]
    assert as_text(pd.Series([np.float32(0.1), 0.1], dtype=object)).tolist() == ["0.10000000149011612", "0.1"]
    assert as_text(pd.Series(["03", "3.50", "-0", "-0.0", "3.", "1e3"])).tolist() == [
        "03",
        "3.50",
        "0",
        "0",
        "3.",
        "1e3",
    ]
    odd = [math.inf, 10**5000, Decimal("1E+9999999"), Decimal("2.50"), datetime.timedelta.max, datetime.datetime.min]
    assert [len(t) < 5000 for t in as_text(pd.Series(odd, dtype=object))] == [True] * len(odd)  # no value is an error
    assert as_text(pd.Series([Decimal("2.50"), Decimal("-0.10"), Decimal("1E+2")])).tolist() == ["2.5", "-0.1", "100"]


def test_nan_is_missing_in_every_type():
    ratio = pd.Series([0.0, 3.0], dtype="Float64") / pd.Series([0.0, 1.0], dtype="Float64")  # NaN, which is not NA
    arrow = pd.Series(pa.array([float("nan"), 3.0]), dtype=pd.ArrowDtype(pa.float64()))
    for column in (ratio, arrow, ratio.astype(object), pd.Series([np.nan, 3.0])):
        assert as_text(column).tolist() == [None, "3"]
        for encoder in (
            CategoricalEncoder("x", ("3",), True, True),
            BinnedEncoder("x", (3.0,), True, True),
            HashedEncoder("x", 1, True, True),
        ):
            assert [encoder.labels[c] for c in encoder.encode(column)] == ["missing", encoder.labels[0]]


WHOLE = st.integers(-(2**60), 2**60)
VALUES = st.one_of(
    WHOLE, WHOLE.map(float), st.floats(allow_nan=False), st.floats(width=32, allow_nan=False).map(np.float32),
    st.booleans(), st.text("a1.0- ", max_size=4), st.dates(), st.datetimes(), st.timedeltas(), st.none(),
    st.decimals(allow_nan=False), st.integers().map(complex), st.just(3j), WHOLE.map(np.int64), st.just(np.True_),
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)).map(np.datetime64),
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=3), st.lists(VALUES, min_size=1, max_size=3))
def test_a_value_is_spelt_and_binned_whatever_stands_beside_it(values, beside):
    """pandas chooses the type of a column by all of its rows. Floats hold whole numbers of more than 53 bits no better."""
    alone, all_rows = pd.Series(values), pd.Series([*values, *beside])
    assume(not any(is_numeric_dtype(c) and c.dtype.kind in "fc" and _rounds(values) for c in (alone, all_rows)))
    assert as_text(alone).tolist() == as_text(all_rows).tolist()[: len(values)]
    encoder = BinnedEncoder("x", (-1.5, 0.0, 0.1, 3.0, 1e9), True, True)
    assert encoder.encode(alone).tolist() == encoder.encode(all_rows).tolist()[: len(values)]


def _rounds(values: list) -> bool:
    return any(isinstance(v, int | np.integer) and abs(int(v)) > 2**53 for v in values)


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), st.floats(-1e20, 1e20), st.integers(-9, 9).map(float)), min_size=1))
def test_text_of_a_part_is_part_of_the_text(values):
    column = pd.Series(values, dtype=float)
    alone = [as_text(column.iloc[[i]]).iloc[0] for i in range(len(column))]
    assert as_text(column).tolist() == alone


def test_unseen_and_missing():
    with_missing = CategoricalEncoder.fit(pd.Series(["b", None, "a"], name="x"))
    without = CategoricalEncoder.fit(pd.Series(["b", "a"], name="x"))
    later = pd.Series(["a", "c", None])
    assert with_missing.encode(later).tolist() == [0, UNSEEN, 2]
    assert without.encode(later).tolist() == [0, UNSEEN, UNSEEN]
    assert with_missing.labels == ["a", "b", "missing"]
    binned = BinnedEncoder.fit(pd.Series([1.0, np.nan, 2.0], name="x"), EqualWidth(2))
    assert binned.encode(pd.Series([np.nan])).tolist() == [binned.size - 1]
    assert BinnedEncoder("x", (1.0,)).encode(pd.Series([np.nan])).tolist() == [UNSEEN]


def test_which_columns_are_binned():
    frame = pd.DataFrame(
        {
            "number": [1.5, 2.5, 3.5],
            "digits": ["1", "2", "30"],
            "code": [1, 2, 3],
            "flag": [True, False, True],
            "text": ["1", "x", "y"],
            "empty": [None, None, None],
            "kind": pd.Categorical([1, 2, 1]),
        }
    )
    encoder = FrameEncoder.fit(frame, categorical=["code"])
    kinds = {f.name: isinstance(f, BinnedEncoder) for f in encoder.features}
    assert kinds == {
        "number": True, "digits": True, "code": False, "flag": False, "text": False, "empty": False, "kind": False,
    }  # fmt: skip


def test_frames_are_matched_by_name(records, tmp_path):
    x = records.drop(columns="y")
    encoder = FrameEncoder.fit(x)
    codes = encoder.encode(x)
    assert codes.dtype == np.int32
    np.testing.assert_array_equal(encoder.encode(records[["y", *x.columns[::-1]]]), codes)
    assert encoder.offsets.tolist() == [0, *np.cumsum(encoder.sizes)]
    encoder.save(tmp_path)
    assert FrameEncoder.load(tmp_path) == encoder
    np.testing.assert_array_equal(encoder.select(["home", "age"]).encode(x), codes[:, [2, 0]])


def test_encoder_errors(records):
    encoder = FrameEncoder.fit(records)
    with pytest.raises(DataError, match="no column 'job'"):
        encoder.encode(records.drop(columns="job"))
    with pytest.raises(DataError, match="categorical: no column 'jab'"):
        FrameEncoder.fit(records, categorical=["jab"])
    column = pd.Series([*map(str, range(20)), "n/a"], name="age")
    with pytest.raises(DataError, match=r"column 'age'.*row 21 holds 'n/a'.*missing.*categorical"):
        FrameEncoder.fit(column.to_frame())
    with pytest.raises(DataError, match="row 2 holds 'old'"):
        encoder.features[0].encode(pd.Series([30, "old"], name="age"))
    with pytest.raises(DataError, match="infinite"):
        numbers(pd.Series([1.0, np.inf], name="x"))


def test_text_is_read_to_the_last_bit():
    values = np.random.default_rng(0).normal(size=2000)
    np.testing.assert_array_equal(numbers(pd.Series([repr(float(v)) for v in values])), values)


# -- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [[0, 1, 1], [0.0, 1.0, 1.0], ["0", "1", "1"], [False, True, True], pd.array([0, 1, 1], dtype="Int64")],
)
def test_labels_that_need_no_word(column):
    y = binary_label(pd.Series(column, name="y"))
    assert y.dtype == np.int8
    assert y.tolist() == [0, 1, 1]


def test_labels_by_their_positive_value():
    assert binary_label(pd.Series(["no", "yes", "no"]), "yes").tolist() == [0, 1, 0]
    assert binary_label(pd.Series([1, 2, 1]), 2).tolist() == [0, 1, 0]
    assert binary_label(pd.Series([1.0, 2.0, 1.0]), "2").tolist() == [0, 1, 0]
    assert binary_label(pd.Series([0, 1]), 1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("column", "positive", "said"),
    [
        (["a", "b", "c"], "a", "must have two values, it has 3: a, b, c"),
        ([0, 1, 2], None, "must have two values, it has 3: 0, 1, 2"),
        ([1, 1], None, "must have two values, it has 1: 1"),
        ([1, None, 0], None, "missing in 1 row"),
        (["no", "yes"], None, "--positive"),
        ([1, 2], None, "--positive"),
        ([0, 1], 0, "would predict 1 for 0"),
        ([True, False], False, "would predict 1 for False"),
        (["no", "yes"], "Yes", "no value Yes; it has no and yes"),
    ],
)
def test_labels_that_are_refused(column, positive, said):
    with pytest.raises(DataError, match=said):
        binary_label(pd.Series(column, name="y"), positive)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pd.Series([2**53 + 1, 2**60, 5], name="a"), "above 2^53"),
        (pd.Series(["01", "2", "3"], name="a"), "begin with zeros"),
        (pd.Series([1, 2, 1], name="userId"), "its name"),
        (pd.Series([1, 2, 1], name="zip"), "its name"),
        (pd.Series(np.arange(100) * 3, name="a"), "hardly ever repeat"),
        (pd.Series([1, 2, 1], name="paid"), None),
        (pd.Series([0.5, 2.0, 1.0], name="zip"), None),
        (pd.Series(["0", "0.5", "-0"], name="a"), None),
        (pd.Series(np.arange(100) % 80, name="age"), None),
        (pd.Series(np.linspace(0, 1, 100), name="a"), None),
    ],
)
def test_numbers_that_look_like_names_are_told(column, why):
    frame = column.to_frame()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert isinstance(FrameEncoder.fit(frame).features[0], BinnedEncoder)
        FrameEncoder.fit(frame, categorical=frame.columns)
    assert [str(w.message).split("'")[1] for w in caught] == ([column.name] if why else [])
    assert all(w.category is LooksLikeCodes and why in str(w.message) for w in caught)


@pytest.mark.parametrize(
    ("values", "example"),
    [
        (["1,000", "61.34", "8,753.54"], "1,000"),
        (["-3,25", "0,5", "12"], "-3,25"),
        (["61,34", "8.753,54"], "61,34"),
        (["1'200.50", "1\u202f200"], "1'200.50"),
        (["12 %", "9 %", "3"], "12 %"),
        (["20.01.2024", "26.08.2022"], None),
        (["1,2,3", "4,5"], None),
        (["a", "1,5", "b"], None),
        (["1", "2", "x"], None),
    ],
)
@pytest.mark.parametrize("source", ["frame", "Parquet", "draft"])
def test_text_that_looks_like_amounts_is_told(tmp_path, source, values, example):
    frame = pd.DataFrame({"sum": values * 30, "y": [0, 1, 0] * (10 * len(values))})
    frame.to_parquet(tmp_path / "sums.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if source == "frame":
            FrameEncoder.fit(frame[["sum"]])
            FrameEncoder.fit(frame[["sum"]], categorical=["sum"])
        elif source == "Parquet":
            ContingencyTables.from_parquet(tmp_path / "sums.parquet", "y", pairs="none")
        else:
            draft(frame, "y")
    told = [str(w.message) for w in caught]
    assert [t.split(": ")[1].split(";")[0] for t in told] == ([f"'sum' ({example})"] if example else [])
    assert all("taken for categories" in t and "with a decimal point" in t for t in told)


TIMES = pd.Series(pd.date_range("2022-01-01", periods=200), name="t")


@pytest.mark.parametrize("times", [TIMES, TIMES - TIMES[50], TIMES.dt.tz_localize("Europe/Berlin")])
def test_times_are_binned_alike_in_every_unit(times):
    times = times.where(np.arange(200) % 3 > 0)
    units = [times, times.dt.as_unit("us"), times.dt.as_unit("s")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoders = [FrameEncoder.fit(t.to_frame()) for t in units]
    assert encoders[0] == encoders[1] == encoders[2]
    bins = encoders[0].sizes[0] - 1
    assert bins == 10
    for unit in units:
        codes = encoders[0].encode(unit.to_frame())[:, 0]
        assert (codes[::3] == bins).all()  # missing
        assert np.bincount(codes).tolist() == [14, 13, 13, 13, 14, 13, 13, 13, 13, 14, 67]


def test_a_draft_lists_days():
    days = pd.Series(pd.to_datetime(["2022-01-01", "2022-05-03"] * 30), name="t")
    assert "t: {values: ['2022-01-01', '2022-05-03'], missing: false}" in draft(days.to_frame())


def test_a_draft_tells_of_codes():
    with pytest.warns(LooksLikeCodes, match=r"look like names: 'zone' \(some of its numbers begin with zeros\); if"):
        draft(pd.DataFrame({"zone": ["01", "02", "03"] * 30, "y": [0, 1, 0] * 30}), "y")


def test_codes_that_lost_digits_are_told():
    frame = pd.DataFrame({"code": [2.0**60, 2.0**60 + 1024, None]})
    for how in ({"categorical": ["code"]}, {"hashed": {"code": 5}}):
        with pytest.warns(LooksLikeCodes, match=r"floating-point numbers above 2\^53, .* columns: 'code';"):
            FrameEncoder.fit(frame, **how)


@pytest.mark.parametrize("source", ["frame", "Parquet"])
def test_many_columns_of_codes_are_one_warning(tmp_path, source):
    frame = pd.DataFrame({f"id_{i}": [1, 2, 1] for i in range(300)} | {"n": ["01", "2", "3"], "y": [0, 1, 0]})
    frame.to_parquet(tmp_path / "codes.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if source == "frame":
            ContingencyTables.from_records(frame, "y", pairs="none")
        else:
            ContingencyTables.from_parquet(tmp_path / "codes.parquet", "y", pairs="none")
    [warning] = caught
    assert str(warning.message).startswith(
        "columns were taken for numbers and binned, but look like names: 'id_0' (its name is that of a code), 'id_1' (its"
    )
    assert "and 295 more; if their numbers are names, make them categorical" in str(warning.message)
    large = pd.DataFrame({f"c{i}": [2.0**60, 2.0**61, None] for i in range(3)})
    with pytest.warns(LooksLikeCodes, match=r"^floating-point .* columns: 'c0', 'c1', 'c2'; read these") as caught:
        FrameEncoder.fit(large, categorical=large.columns)
    assert len(caught) == 1


def test_a_warning_of_one_fit_is_not_lost_by_another_that_fails():
    codes, text = pd.DataFrame({"id": [1, 2, 1]}), pd.DataFrame({"id": [1, 2, 1], "n": [*"12", "inf"]})
    with pytest.raises(DataError, match="infinite"):
        FrameEncoder.fit(text)
    with pytest.warns(LooksLikeCodes, match="columns were taken for numbers.*: 'id'"):
        FrameEncoder.fit(codes)


def test_a_value_without_a_code_has_no_indicator():
    found = design._indicators(np.array([1, -1, 0, -1]), 2).toarray()
    np.testing.assert_array_equal(found, [[0, 1], [0, 0], [1, 0], [0, 0]])
