"""Tables that somebody else made: long cells come back as the tables that they are cells of."""

import warnings

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import CategoricalEncoder, Schema
from agglearn.errors import AgglearnError, ConfigError, DataError, TablesDisagree
from agglearn.observations import ContingencyTables, fill_hidden, hide_cells, with_gaussian_noise
from agglearn.observations.cells import parse_noise
from agglearn.observations.tables import hidden_cells

SCHEMA = Schema.parse(
    """
    reviewed: true
    label: {column: y, positive: 'yes', negative: 'no'}
    features:
      age: {edges: [30, 45.5, 60], missing: true}
      job: {values: [cook, nurse, clerk]}
      zip: {values: [0, 1, 2, 3], missing: true}
    """
)


def records(seed: int = 0, n: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, n).astype(float), "job": rng.choice(["cook", "nurse", "clerk"], n)}
    )
    frame = frame.assign(zip=rng.integers(0, 4, n).astype(str), y=rng.choice(["yes", "no"], n))
    frame.loc[rng.random(n) < 0.05, "age"] = np.nan
    return frame


def tables(seed: int = 0, **options) -> ContingencyTables:
    return ContingencyTables.from_records(records(seed), schema=SCHEMA, **options)


read_cells = ContingencyTables.from_frame


def by_hand(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["a", "b", "count", "label_sum"])


@pytest.mark.parametrize("seed", range(4))
def test_cells_come_back_as_tables_in_any_order_and_any_files(seed):
    made = tables(seed)
    cells = made.to_frame().sample(frac=1, random_state=seed)
    assert read_cells(cells, schema=SCHEMA).digest == made.digest
    files = {str(k): part for k, part in cells.groupby(cells[made.names].notna().sum(axis=1))}
    files["2"] = files["2"][["zip", "label_sum", "job", "age", "count"]]
    assert read_cells(files, schema=SCHEMA).digest == made.digest


def test_without_a_schema_values_are_categories_and_intervals_are_bins():
    made = ContingencyTables.from_records(records(), "y", positive="yes", categorical=["zip"])
    read = read_cells(made.to_frame(), label="y")
    np.testing.assert_allclose(read.encoder.features[0].edges, made.encoder.features[0].edges, rtol=1e-5)
    assert read.encoder.features[1:] == made.encoder.features[1:]
    for key in made.tables:
        np.testing.assert_array_equal(read.dense(*key), made.dense(*key))
    gap = read_cells(by_hand(("(0, 1]", None, 5, 2), ("(2, 3]", None, 5, 2)))
    assert isinstance(gap.encoder.features[0], CategoricalEncoder)


def test_other_and_missing_are_levels_of_their_own():
    read = read_cells(by_hand(("cook", None, 5, 2), ("other", None, 3, 1), ("missing", None, 2, 1)))
    codes = read.encoder.encode(pd.DataFrame({"a": ["cook", "astronaut", None]}))
    assert [read.encoder.features[0].labels[c] for c in codes[:, 0]] == ["cook", "other", "missing"]


def test_noise_and_threshold_are_those_that_were_stated():
    made, hidden = tables(), hide_cells(tables(), 20)
    read = read_cells(hidden.to_frame(), schema=SCHEMA, threshold=20)
    assert read.digest == hidden.digest
    assert read.noise.summary == "a threshold of 20"
    assert not read.noise.private
    noisy = with_gaussian_noise(made, 3.0, 0)
    read = read_cells(noisy.to_frame(), schema=SCHEMA, noise="gaussian:3", threshold=0)
    assert (read.noise.mechanism, read.noise.scale, read.noise.epsilon) == ("gaussian", 3.0, np.inf)
    for key in made.tables:
        np.testing.assert_allclose(read.dense(*key), noisy.dense(*key))


def test_a_hidden_cell_may_have_an_empty_count():
    shown = by_hand((None, None, 30, 12), ("u", None, 20, 8), ("v", None, np.nan, np.nan), ("w", None, None, None))
    read = read_cells(shown, threshold=10)
    assert read.encoder.features[0].labels == ["u", "v", "w"]
    np.testing.assert_array_equal(hidden_cells(read), [False, True, True])


def test_hidden_cells_are_those_below_the_threshold():
    made = tables()
    for key, table in hide_cells(made, 20).tables.items():
        d = made.dense(*key)[0].ravel()
        np.testing.assert_array_equal(table.cells, np.flatnonzero(d >= 20))
    assert hide_cells(made, 0).noise is None


def test_a_guess_fills_hidden_cells_only():
    hidden, rate = hide_cells(tables(), 20), tables().positives / tables().total
    for count in (10.0, None):
        filled = fill_hidden(hidden, count)
        for key in hidden.tables:
            (d, c), (before, _) = filled.dense(*key), hidden.dense(*key)
            empty = before == 0
            np.testing.assert_array_equal(d[~empty], before[~empty])
            np.testing.assert_allclose(c[empty], rate * d[empty])
            assert (d[empty] == count).all() if count else (d[empty] <= 19).all()
    assert fill_hidden(tables()).digest == tables().digest


def test_tables_of_fewer_records_are_scaled_to_the_totals():
    made = tables()
    cells = made.to_frame()
    pair = cells["age"].notna() & cells["job"].notna()
    numbers = ["count", "label_sum"]
    fewer = cells.assign(**cells[numbers].where(~pair, np.round(0.8 * cells[numbers]), axis=0))
    with pytest.warns(TablesDisagree, match="1 of 6 tables do not add up to 500 records"):
        read = read_cells(fewer, schema=SCHEMA)
    assert read.total == 500
    scaled, true = read.dense(0, 1), made.dense(0, 1)
    np.testing.assert_allclose(scaled, true, atol=2.5)
    assert 0 <= 500 - scaled[0].sum() <= true[0].size  # whole numbers lose less than one a cell and label


def test_each_label_is_scaled_by_itself():
    cells = by_hand((None, None, 100, 40), ("u", None, 60, 16), ("v", None, 40, 4))
    with pytest.warns(TablesDisagree):
        read = read_cells(cells)
    np.testing.assert_array_equal(read.dense(0), [[32 + 33, 8 + 27], [32, 8]])


def test_room_in_hidden_cells_is_no_disagreement():
    cells = by_hand((None, None, 100, 40), ("u", None, 90, 36), ("v", None, None, None), ("w", None, None, None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_cells(cells, threshold=10)


def test_sums_of_noisy_tables_may_differ_by_the_noise_and_totals_are_means_by_precision():
    noisy = with_gaussian_noise(tables(), 5.0, 1)
    cells = noisy.to_frame().iloc[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_cells(cells, schema=SCHEMA, noise="gaussian:5")
    sums = [t.counts.sum() for t in noisy.tables.values()]
    assert read.total == pytest.approx(np.average(sums, weights=[1 / len(t.cells) for t in noisy.tables.values()]))


def test_without_totals_the_fullest_table_has_them():
    cells = by_hand(("u", None, 60, 20), ("v", None, 40, 20), (None, "x", 95, 38))
    with pytest.warns(TablesDisagree):
        read = read_cells(cells)
    assert (read.total, read.positives) == (100, 40)


def test_repeated_cells_are_summed_or_averaged_as_it_is_said():
    parts = [tables(0).to_frame(), tables(1).to_frame()]
    read = read_cells(parts, schema=SCHEMA, repeated="sum")
    together = ContingencyTables.from_records(pd.concat([records(0), records(1)]), schema=SCHEMA)
    assert read.digest == together.digest
    releases = [with_gaussian_noise(tables(), 8.0, seed) for seed in (0, 1)]
    frames, how = [r.to_frame() for r in releases], {"schema": SCHEMA, "noise": "gaussian:8"}
    mean, total = (read_cells(frames, repeated=repeated, **how) for repeated in ("mean", "sum"))
    np.testing.assert_allclose(mean.dense(0)[0], np.mean([r.dense(0)[0] for r in releases], axis=0))
    np.testing.assert_allclose(list(mean.noise.scales.values()), 8 / np.sqrt(2))
    np.testing.assert_allclose(list(total.noise.scales.values()), 8 * np.sqrt(2))


def test_the_layout_of_the_adkdd_challenge():
    """feature_i_id and feature_i_value, with noise, rows below a threshold left out."""
    made = hide_cells(ContingencyTables.from_records(records()[["job", "zip", "y"]], "y", positive="yes"), 15)
    names = {"job": 7, "zip": 3}
    cells = made.to_frame().iloc[1:].rename(columns={"label_sum": "nb_clicks"})
    singles, pairs = [], []
    for row in cells.to_dict("records"):
        filled = [(i, row[n]) for n, i in names.items() if isinstance(row[n], str)]
        out = {f"feature_{k}_id": i for k, (i, _) in enumerate(filled, 1)}
        out |= {f"feature_{k}_value": v for k, (_, v) in enumerate(filled, 1)}
        (singles if len(filled) == 1 else pairs).append(out | {"count": row["count"], "nb_clicks": row["nb_clicks"]})
    frames = [pd.DataFrame(singles), pd.DataFrame(pairs)]
    read = read_cells(frames, label_sum="nb_clicks", threshold=15)
    assert read.names == ["hash_7", "hash_3"]
    assert read.tables.keys() == made.tables.keys()
    for key in made.tables:
        np.testing.assert_array_equal(read.dense(*key), made.dense(*key))


GOOD = by_hand((None, None, 100, 40), ("u", None, 60, 20), ("v", None, 40, 20))


def edited(**cells) -> pd.DataFrame:
    frame = GOOD.astype(object).copy()
    for place, value in cells.items():
        row, column = place.rsplit("_", 1)
        frame.loc[int(row[1:]), {"a": "a", "b": "b", "n": "count", "c": "label_sum"}[column]] = value
    return frame


WRONG = [
    (edited(r1_n="<10"), {}, "column 'count' is numeric but row 2 holds '<10' (1 such rows); leave hidden counts empty and give the threshold"),
    (edited(r1_n=None), {}, "table 'a': empty counts: 1; give the threshold below which they are hidden"),
    (edited(r1_c=None), {}, "table 'a': a cell has a count of 60 and no label sum; give both"),
    (edited(r1_n=60.5), {}, "table 'a': counts negative or not whole; state the noise, as gaussian:20 or laplace:5"),
    (edited(r1_c=61), {}, "table 'a': a label sum exceeds its count; label sums are counts of records with label 1"),
    (GOOD, {"threshold": 50}, "table 'a': a count of 40 stands below the threshold of 50; state the right one"),
    (pd.concat([GOOD, GOOD.iloc[1:2]]), {}, "table 'a': cell 'u' stands 2 times; say whether they add up (repeated: sum) or count the same records (mean)"),
    (GOOD.iloc[:1], {}, "there are no cells but totals; a cell has values in the columns of its features"),
    (GOOD[["count", "label_sum"]], {}, "no column besides 'count' and 'label_sum': which cells are these?"),
    (GOOD.drop(columns="label_sum"), {}, "no column 'label_sum'; the columns are a, b, count"),
    (edited(r0_n=1000), {}, "table a: 100 records, where all tables have 1,000; leave it out"),
    (GOOD.assign(c="1", d="2", a="3", b="4"), {}, "row 1: is grouped by 4 features (a, b, c, d); tables of one feature or of two can be used; sum it up over the others"),
    (GOOD, {"noise": "gauss:3"}, "noise: 'gauss:3' is not known; write none, gaussian:20 (σ), or laplace:5 (scale)"),
    (GOOD, {"noise": "gaussian"}, "noise: 'gaussian' is not known; write none, gaussian:20 (σ), or laplace:5 (scale)"),
    (GOOD, {"repeated": "max"}, "repeated: 'max' is not known; use refuse, sum, mean"),
    (GOOD, {"schema": SCHEMA}, "column 'a' is no feature of the schema, which has age, job, zip; leave it out"),
    (GOOD.rename(columns={"a": "job", "b": "zip"}), {"schema": SCHEMA}, "feature 'job': 'u' is no level of the schema, which has cook, nurse, clerk, other"),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "options", "line"), WRONG, ids=[line[:40] for *_, line in WRONG])
def test_wrong_tables_get_one_line(frame, options, line):
    with pytest.raises(AgglearnError) as caught:
        read_cells(frame, **options)
    assert str(caught.value) == line
    assert isinstance(caught.value, DataError | ConfigError)


def test_messages_name_the_file():
    with pytest.raises(DataError, match=r"^cells.csv: no column 'count'"):
        read_cells({"cells.csv": GOOD.drop(columns="count")})


def test_a_threshold_alone_is_no_noise_and_is_refused_where_noise_is():
    assert parse_noise("none") is None
    assert parse_noise(None, 5).scale == 0
    hidden = hide_cells(tables(), 20)
    with pytest.raises(DataError, match="the tables have a threshold of 20 already"):
        hidden.private(1.0, 1e-6)
