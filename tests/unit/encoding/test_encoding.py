"""Bins, vocabularies, labels, coordinates: what becomes which modality, and what is refused."""

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

from agglearn.encoding import UNSEEN, FeatureMap, FrameEncoder, HashedEncoder
from agglearn.encoding.binned import BinnedEncoder, EqualWidth, Quantiles, binning
from agglearn.encoding.categorical import CategoricalEncoder
from agglearn.encoding.columns import as_text, is_continuous, numbers
from agglearn.encoding.drafting import draft
from agglearn.encoding.labels import binary_label
from agglearn.errors import ConfigError, DataError, LooksLikeCodes
from agglearn.observations import ContingencyTables

# -- bins -------------------------------------------------------------------------------------------------------------


def test_bins_are_open_below_and_closed_above():
    encoder = BinnedEncoder("x", (1.0, 2.0))
    assert encoder.encode(pd.Series([0.9, 1.0, 1.1, 2.0, 2.1])).tolist() == [0, 0, 1, 1, 2]
    assert encoder.labels == ["(-inf, 1]", "(1, 2]", "(2, inf]"]


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


FEW = settings(max_examples=15, deadline=None, derandomize=True)
NUMBER = st.one_of(st.none(), st.integers(-20, 20), st.floats(-1e6, 1e6, allow_nan=False))


@given(
    st.lists(NUMBER, min_size=1, max_size=30),
    st.lists(NUMBER, min_size=1, max_size=5),
    st.sampled_from([Quantiles(4), EqualWidth(4)]),
)
@FEW
def test_bins(values, others, how):
    assume(any(v is not None for v in values))
    encoder = BinnedEncoder.fit(pd.Series(values, dtype=object), how)
    codes = encoder.encode(pd.Series(values, dtype=object)).tolist()
    assert sorted(set(codes)) == list(range(encoder.size))  # every bin was seen
    assert len(encoder.edges) < 4
    codes += encoder.encode(pd.Series(others, dtype=object)).tolist()
    for v, k in zip([*values, *others], codes, strict=True):
        if v is None:
            assert k == (encoder.size - 1 if None in values else UNSEEN)
        else:
            assert k == sum(e < v for e in encoder.edges)


def test_quartiles_by_hand():
    """Those of 1 … 9 are 3, 5, 7; a bin without values is no bin."""
    assert Quantiles(4).edges(np.arange(1.0, 10.0)).tolist() == [3, 5, 7]
    assert Quantiles(4).edges(np.array([1.0, 1, 1, 1, 1, 2, 6])).tolist() == [1.5]


# -- categories -------------------------------------------------------------------------------------------------------


THREE_AND_FOUR = [
    *(pd.Series([3, 4], dtype=kind) for kind in (None, "Int64", "uint8", "category")),
    *(
        pd.Series([3.0, 4.0], dtype=kind)
        for kind in (None, object, "float32", "category", "Float64", "double[pyarrow]")
    ),
    *(pd.Series(["3", "4"], dtype=kind) for kind in (None, "category", "string")),
    *(pd.Series(values) for values in (["3.0", "4.00"], [Decimal("3"), Decimal("4.00")], [3 + 0j, 4 + 0j])),
    pd.Series([Decimal("3.0"), Decimal("4.0")], dtype=pd.ArrowDtype(pa.decimal128(5, 1))),
    pd.Series([np.float32(3), np.int8(4)], dtype=object),
]


TEXT = st.one_of(st.none(), st.sampled_from(["a", "b", "ä", "", " a", "1", "missing"]), st.text(max_size=3))


@pytest.mark.slow
@given(st.lists(TEXT, min_size=1, max_size=20), st.lists(TEXT, max_size=5))
@FEW
def test_categories(values, others):
    encoder = CategoricalEncoder.fit(pd.Series(values, name="f", dtype=object))
    codes = encoder.encode(pd.Series(values, dtype=object)).tolist()
    of_value = dict(zip(values, codes, strict=True))
    assert sorted(of_value.values()) == list(range(encoder.size))  # another one for each value
    assert codes == [of_value[v] for v in values]
    for v, k in of_value.items():
        assert v is None if encoder.has_missing and k == encoder.size - 1 else encoder.labels[k] == v
    assert encoder.encode(pd.Series(others, dtype=object)).tolist() == [of_value.get(v, UNSEEN) for v in others]


@pytest.mark.parametrize("column", THREE_AND_FOUR)
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
        "03", "3.50", "0", "0", "3.", "1e3",
    ]  # fmt: skip
    odd = [math.inf, 10**5000, Decimal("1E+9999999"), Decimal("2.50"), datetime.timedelta.max, datetime.datetime.min]
    assert [len(t) < 5000 for t in as_text(pd.Series(odd, dtype=object))] == [True] * len(odd)  # no value is an error
    assert as_text(pd.Series([Decimal("2.50"), Decimal("-0.10"), Decimal("1E+2")])).tolist() == ["2.5", "-0.1", "100"]


def test_nan_is_missing_in_every_type():
    ratio = pd.Series([0.0, 3.0], dtype="Float64") / pd.Series([0.0, 1.0], dtype="Float64")  # NaN, which is not NA
    arrow = pd.Series(pa.array([float("nan"), 3.0]), dtype=pd.ArrowDtype(pa.float64()))
    for column in (ratio, arrow, ratio.astype(object), pd.Series([np.nan, 3.0])):
        assert as_text(column).tolist() == [None, "3"]
        for kind, how in ((CategoricalEncoder, ("3",)), (BinnedEncoder, (3.0,)), (HashedEncoder, 1)):
            encoder = kind("x", how, True, True)
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


def test_which_columns_are_binned():
    frame = pd.DataFrame({"number": [1.5, 2.5, 3.5], "digits": ["1", "2", "30"], "code": [1, 2, 3]})
    frame = frame.assign(flag=[True, False, True], text=["1", "x", "y"], empty=None, kind=pd.Categorical([1, 2, 1]))
    encoder = FrameEncoder.fit(frame, categorical=["code"])
    assert [f.name for f in encoder.features if isinstance(f, BinnedEncoder)] == ["number", "digits"]


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
    column = pd.Series([*map(str, range(9)), "n/a"], name="age")  # nine numbers and one word look like a mistake
    with pytest.raises(DataError, match=r"column 'age'.*row 10 holds 'n/a'.*missing.*categorical"):
        FrameEncoder.fit(column.to_frame())
    assert not is_continuous(pd.Series([*map(str, range(8)), "some", "words"], name="a"))
    with pytest.raises(DataError, match="row 2 holds 'old'"):
        encoder.features[0].encode(pd.Series([30, "old"], name="age"))
    with pytest.raises(DataError, match="infinite"):
        numbers(pd.Series([1.0, np.inf], name="x"))
    with pytest.raises(ConfigError, match=r"'decile'.*deciles, width"):
        binning("decile")


def test_text_is_read_to_the_last_bit():
    values = np.random.default_rng(0).normal(size=2000)
    np.testing.assert_array_equal(numbers(pd.Series([repr(float(v)) for v in values])), values)


# -- labels -----------------------------------------------------------------------------------------------------------


ONES = [[0, 1, 1], [0.0, 1.0, 1.0], ["0", "1", "1"], [False, True, True], pd.array([0, 1, 1], dtype="Int64")]
NAMED = [(["no", "yes", "yes"], "yes"), ([1, 2, 2], 2), ([1.0, 2.0, 2.0], "2"), ([0, 1, 1], 1)]


@pytest.mark.parametrize(("column", "positive"), [*((column, None) for column in ONES), *NAMED])
def test_labels(column, positive):
    y = binary_label(pd.Series(column, name="y"), positive)
    assert y.dtype == np.int8
    assert y.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("column", "positive", "said"),
    [
        (list("abcde"), "a", "must have two values, it has 5: a, b, c, d, e$"),
        (list("abcdef"), None, "it has 6: a, b, c, d, e, …$"),
        ([0, 1, 2], None, "must have two values, it has 3: 0, 1, 2"),
        ([1, 1], None, "must have two values, it has 1: 1"), ([1, None, 0], None, "missing in 1 row"),
        (["no", "yes"], None, "--positive"), ([1, 2], None, "--positive"), ([0, 1], 0, "would predict 1 for 0"),
        ([True, False], False, "would predict 1 for False"),
        (["no", "yes"], "Yes", "no value Yes; it has no and yes"),
    ],
)  # fmt: skip
def test_labels_that_are_refused(column, positive, said):
    with pytest.raises(DataError, match=said):
        binary_label(pd.Series(column, name="y"), positive)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pd.Series([2**53 + 1, 2**60, 5], name="a"), "above 2^53"),
        (pd.Series(["01", "2", "3"], name="a"), "begin with zeros"),
        (pd.Series([1, 2, 1], name="userId"), "its name"), (pd.Series([1, 2, 1], name="zip"), "its name"),
        (pd.Series(np.arange(100) * 3, name="a"), "hardly ever repeat"), (pd.Series([1, 2, 1], name="paid"), None),
        (pd.Series([0.5, 2.0, 1.0], name="zip"), None), (pd.Series(["0", "0.5", "-0"], name="a"), None),
        (pd.Series(np.arange(100) % 80, name="age"), None), (pd.Series(np.linspace(0, 1, 100), name="a"), None),
    ],
)  # fmt: skip
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
        (["1,000", "61.34", "8,753.54"], "1,000"), (["-3,25", "0,5", "12"], "-3,25"),
        (["61,34", "8.753,54"], "61,34"), (["1'200.50", "1\u202f200"], "1'200.50"), (["12 %", "9 %", "3"], "12 %"),
        (["20.01.2024", "26.08.2022"], None), (["1,2,3", "4,5"], None), (["a", "1,5", "b"], None),
        (["1", "2", "x"], None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("source", ["frame", "Parquet", "draft"])
def test_text_that_looks_like_amounts_is_told(tmp_path, source, values, example):
    frame = pd.DataFrame({"sum": values * 30, "y": [0, 1, 0] * (10 * len(values))})
    frame.to_parquet(tmp_path / "sums.parquet")
    read = {
        "frame": lambda: [FrameEncoder.fit(frame[["sum"]], categorical=known) for known in ([], ["sum"])],
        "Parquet": lambda: ContingencyTables.from_parquet(tmp_path / "sums.parquet", "y", pairs="none"),
        "draft": lambda: draft(frame, "y"),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read[source]()
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
    frame = pd.DataFrame({name: [2.0**60, 2.0**60 + 1024, None] for name in ("c0", "c1", "c2")})
    for how in ({"categorical": list(frame)}, {"hashed": dict.fromkeys(frame, 5)}):
        with pytest.warns(LooksLikeCodes, match=r"above 2\^53, .* columns: 'c0', 'c1', 'c2'; read these") as caught:
            FrameEncoder.fit(frame, **how)
        assert len(caught) == 1


@pytest.mark.parametrize("source", ["from_records", "from_parquet"])
def test_many_columns_of_codes_are_one_warning(tmp_path, source):
    frame = pd.DataFrame({f"id_{i}": [1, 2, 1] for i in range(300)} | {"n": ["01", "2", "3"], "y": [0, 1, 0]})
    frame.to_parquet(tmp_path / "codes.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        door = getattr(ContingencyTables, source)
        door(frame if source == "from_records" else tmp_path / "codes.parquet", "y", pairs="none")
    [warning] = caught
    assert str(warning.message).startswith(
        "columns were taken for numbers and binned, but look like names: 'id_0' (its name is that of a code), 'id_1' (its"
    )
    assert "and 295 more; if their numbers are names, make them categorical" in str(warning.message)


def test_a_warning_of_one_fit_is_not_lost_by_another_that_fails():
    codes, text = pd.DataFrame({"id": [1, 2, 1]}), pd.DataFrame({"id": [1, 2, 1], "n": [*"12", "inf"]})
    with pytest.raises(DataError, match="infinite"):
        FrameEncoder.fit(text)
    with pytest.warns(LooksLikeCodes, match="columns were taken for numbers.*: 'id'"):
        FrameEncoder.fit(codes)


# -- coordinates ------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=20), st.floats(-5, 0), st.floats(1, 9))
@FEW
def test_scaled_coordinates_are_cut_at_their_range(values, low, high):
    frame = pd.DataFrame({"x": values, "k": list(("uv" * 10)[: len(values)])})
    encoder = FrameEncoder((BinnedEncoder("x", (0.0,)), CategoricalEncoder.fit(frame["k"])))
    mapped = FeatureMap.fit("scaled", encoder, frame, {"x": (low, high)})
    x = mapped.matrix(frame).toarray()
    np.testing.assert_allclose(x[:, 0], np.clip((frame["x"] - low) / (high - low), 0, 1))
    np.testing.assert_array_equal(x[:, 1:], np.column_stack([frame["k"] == "u", frame["k"] == "v", np.ones(len(x))]))
    for order in (1, 2):
        assert (x**order).sum(axis=1).max() <= mapped.largest(order)
