"""The unit of protection: of each unit at most so many records count, and a release protects all of them.

The exact numbers of neighbours, data sets that differ in all records of one unit, are compared with the noise that a release adds.
All neighbours of small data are tried, among them the worst one: every record of a unit in one cell, with label 1.
"""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from recorded_draws import EPSILON, Recorder, loss, promise_of
from scipy import stats

from agglearn.encoding import FeatureMap, Schema
from agglearn.errors import ConfigError, DataError, RecordsLeftOut
from agglearn.observations import ContingencyTables, CountedBags, Halves, LabelSums, Records, Unit
from agglearn.observations.release import release_bag_counts, release_tables
from agglearn.observations.units import NOBODY, rank_rows
from agglearn.privacy import MECHANISMS, draw_seeded

pytestmark = pytest.mark.filterwarnings("ignore::agglearn.errors.RecordsLeftOut")
TEXT = """
reviewed: true
unit: who
max_rows: 2
label: {column: y, positive: 1, negative: 0}
features: {a: {values: [u, v]}, b: {edges: [0]}}
"""
SCHEMA = Schema.parse(TEXT)


def with_line(line: str, text: str = TEXT) -> str:
    return text.replace("reviewed: true\n", f"reviewed: true\n{line}\n")


UNSTATED = TEXT.replace("unit: who\nmax_rows: 2\n", "")
SINGLE = Schema.parse(with_line("one_row_per_person: true", UNSTATED))


def people() -> pd.DataFrame:
    """Units of one to five records: all in one cell with label 1, or anywhere."""
    sizes = {"alike": 5, "mixed": 4, "pair": 2, "single": 1, "other": 3}
    rng = np.random.default_rng(0)
    rows = [
        {"who": who, "a": "u" if who == "alike" else rng.choice(["u", "v"]), "b": 1.0 if who == "alike" else rng.normal(),
         "y": 1 if who == "alike" else int(rng.integers(2))}
        for who, n in sizes.items() for _ in range(n)
    ]  # fmt: skip
    return pd.DataFrame(rows).sample(frac=1, random_state=0).reset_index(drop=True)


def without_one_unit(frame: pd.DataFrame) -> list[pd.DataFrame]:
    return [frame, *(frame[frame["who"] != who] for who in frame["who"].unique())]


def with_other_labels(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The frame, and those in which the labels of one unit are any others."""
    changed = [frame]
    for who in frame["who"].unique():
        rows = np.flatnonzero(frame["who"] == who)
        for labels in itertools.product((0, 1), repeat=len(rows)):
            other = frame.copy()
            other.loc[rows, "y"] = labels
            changed.append(other)
    return changed


def worst(kind: str, release, neighbours: list[pd.DataFrame]) -> float:
    draws = [Recorder() for _ in neighbours]
    for frame, draw in zip(neighbours, draws, strict=True):
        release(frame, epsilon=EPSILON, delta=promise_of(kind)[0], mechanism=kind, draw=draw)
    return max(loss(draws[0], other, EPSILON) for other in draws[1:])


ENCODER = SCHEMA.encoder
MAPPED = FeatureMap.fit("onehot", ENCODER, people())


def release_sums(frame, **how):
    sums = LabelSums.from_map(MAPPED, frame, frame["y"], unit=frame["who"], max_rows=3)
    return sums.private(sensitivity="features", **how)


def release_bags(frame, **how):
    y = frame["y"].to_numpy()
    bags = CountedBags.from_records(ENCODER, frame, y, 12, np.random.default_rng(0), unit=frame["who"], max_rows=3)
    return release_bag_counts(bags, **how)


def release_tables_of(frame, max_rows=2, split="uniform", adjacency=None, **how):
    schema = replace(SCHEMA, max_rows=max_rows)
    return release_tables(ContingencyTables.from_records(frame, schema=schema), split=split, adjacency=adjacency, **how)


def release_halves(frame, draw, **how):
    halves = Halves.from_records(frame, schema=replace(SCHEMA, max_rows=3), random_state=None)
    return [half.private(draw=draw, **how) for half in (halves.first, halves.second)]


RELEASES = {
    "tables": (release_tables_of, without_one_unit),
    "tables by cells": (lambda f, **how: release_tables_of(f, 3, "cells", **how), without_one_unit),
    "labels of tables": (lambda f, **how: release_tables_of(f, 3, adjacency="label", **how), with_other_labels),
    "label sums": (release_sums, with_other_labels),
    "bag counts": (release_bags, with_other_labels),
}


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("name", RELEASES)
def test_the_worst_unit_has_the_promised_loss(name, kind):
    """No more, which would be no guarantee, and no less: the noise is the least for the worst unit."""
    release, neighbours = RELEASES[name]
    found, promise = worst(kind, release, neighbours(people())), promise_of(kind)[1]
    assert found <= promise * (1 + 1e-9)
    assert found >= promise * (0.99 if kind == "discrete_gaussian" else 1 - 1e-6)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_noise_for_one_record_does_not_protect_a_unit(kind):
    """The test's power: by the sensitivity of a single record the promise is broken."""

    def release(frame, **how):
        tables = ContingencyTables.from_records(frame, schema=SCHEMA)
        return release_tables(replace(tables, unit=Unit()), **how)

    assert worst(kind, release, without_one_unit(people())) > 1.9 * promise_of(kind)[1]


def test_halves_share_the_bound_of_a_unit(monkeypatch):
    """A unit's records go to both halves, at most so many in all."""
    coins = np.random.default_rng(1).random(15) < 0.5

    def toss(n, rng):  # each record that stays has the coin that it had: here those of the other units
        return coins[:n]

    monkeypatch.setattr("agglearn.observations.halves.toss_coins", toss)
    frame = pd.concat([people().query("who != 'alike'"), people().query("who == 'alike'")])
    first, other = Recorder(), Recorder()
    for draw, rows in ((first, frame), (other, frame.query("who != 'alike'"))):
        for half in release_halves(rows, epsilon=EPSILON, mechanism="laplace", draw=draw):
            assert half.noise.unit == Unit("who", 3)
    assert loss(first, other, EPSILON) <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_private_choice_and_the_release_keep_one_promise(kind):
    """The choice has a twentieth of ε, by one number of units that changes by 1; the tables have the rest."""
    frame, sizes = people(), [0, 0, 9, *[0] * 9]  # as if noise had made these numbers: three records are chosen
    draws, delta = [], promise_of(kind)[0]
    for rows in without_one_unit(frame):
        draws.append(
            Recorder(lambda law, values, *names: np.asarray(sizes) if names[0] == "records of units" else values)
        )
        noisy = release_tables_of(rows, "auto", epsilon=EPSILON, delta=delta, mechanism=kind, draw=draws[-1])
        assert noisy.unit == noisy.noise.unit == Unit("who", noisy.unit.max_rows)
        assert noisy.noise.epsilon == EPSILON
    chosen = noisy.unit.max_rows
    for draw in draws[1:]:
        (law, a, _), (_, b, _) = draws[0].draws[0], draw.draws[0]
        assert law.kind == "discrete_laplace"
        assert abs(a - b).sum() == 1
        assert abs(a - b).sum() / law.scale == pytest.approx(0.05 * EPSILON)
    fixed = Recorder()
    release_tables_of(frame, chosen, epsilon=0.95 * EPSILON, delta=delta, mechanism=kind, draw=fixed)
    assert [(m, v.tolist()) for m, v, _ in fixed.draws] == [(m, v.tolist()) for m, v, _ in draws[0].draws[1:]]


def test_a_release_holds_no_exact_number_of_a_unit(tmp_path):
    tables = ContingencyTables.from_records(people(), schema=replace(SCHEMA, max_rows="auto"))
    assert tables.unit.sizes == (1, 1, 1, 1, 1, *[0] * 7)
    assert {m: t.total for m, t in tables.unit.fewer.items()} == {1: 5, 2: 9, 3: 12, 4: 14}
    tables.save(tmp_path / "exact")
    assert ContingencyTables.load(tmp_path / "exact").digest == tables.digest
    noisy = release_tables(tables, 1.0, 1e-5, draw=draw_seeded(0))
    noisy.save(tmp_path / "noisy")
    assert (noisy.unit.sizes, noisy.unit.fewer) == ((), {})
    assert {p.name for p in (tmp_path / "noisy").iterdir()} == {"tables.json", "tables.parquet"}
    assert tables.select(["a"]).unit.fewer[1].names == ["a"]


# -- which records count -------------------------------------------------------------------------------------------------


def test_rank_rows_a_unit_do_not_depend_on_others():
    rng = np.random.default_rng(3)
    owners = pd.Series(rng.integers(0, 40, 300).astype(str), name="who")
    places = rank_rows(owners)
    for who in owners.unique():
        rows = np.flatnonzero(owners != who)
        assert np.array_equal(rank_rows(owners.iloc[rows]), places[rows])
        assert sorted(places[owners == who]) == list(range((owners == who).sum()))


def test_each_record_of_a_unit_is_as_likely_to_count():
    """By a chi-squared test over 6,000 units of four records: not the first ones of each, which come in order of time."""
    owners = pd.Series(np.repeat(np.arange(6000), 4), name="who")
    first = rank_rows(owners).reshape(-1, 4).argmin(axis=1)
    assert stats.chisquare(np.bincount(first, minlength=4)).pvalue > 1e-6
    assert stats.chisquare([6000, 0, 0, 0]).pvalue < 1e-6  # the order of the file


def test_values_that_are_spelt_alike_are_one_unit():
    owners = pd.Series(["1", "a", None, "a\0b", "a\0c", "1", np.nan], dtype=object, name="who")
    places = rank_rows(owners)
    assert sorted(places[[0, 5]]) == [0, 1]
    assert places[[1, 3, 4]].tolist() == [0, 0, 0]
    assert (places[[2, 6]] == NOBODY).all()


@pytest.mark.parametrize("max_rows", [1, 2, 3, "auto"])
def test_parquet_counts_the_same_records(max_rows, tmp_path):
    frame = pd.concat([people()] * 3, ignore_index=True)
    frame["who"] += (np.arange(len(frame)) % 2).astype(str)
    frame.loc[3, "who"] = "?"
    frame.loc[5, "y"] = 7  # no declared label
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=7)
    schema = replace(SCHEMA, max_rows=max_rows)
    one = ContingencyTables.from_parquet(tmp_path / "d.parquet", schema=schema, missing=["?"])
    other = ContingencyTables.from_records(frame.replace({"who": {"?": None}}), schema=schema)
    assert one.digest == other.digest
    learned = {"label": "y", "unit": "who", "max_rows": max_rows}
    frame = frame[frame["y"] != 7]
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=7)
    one = ContingencyTables.from_parquet(tmp_path / "d.parquet", **learned)
    assert one.digest == ContingencyTables.from_records(frame, **learned).digest
    assert one.names == ["a", "b"]


@pytest.mark.filterwarnings("default")
def test_what_is_left_out_is_told():
    frame = people()
    frame.loc[[0, 1], "who"] = None
    with pytest.warns(RecordsLeftOut) as told:
        tables = ContingencyTables.from_records(frame, schema=replace(SCHEMA, max_rows=1))
    assert tables.total == frame["who"].nunique()
    beyond = 15 - 2 - frame["who"].nunique()
    assert [str(w.message) for w in told] == [
        f"unit 'who': {beyond} of 15 records are left out, beyond 1 of each",
        "unit 'who': 2 of 15 records are left out, which have none",
    ]


def test_records_and_halves_leave_the_same_records_out():
    tables = ContingencyTables.from_records(people(), schema=SCHEMA)
    assert len(Records.from_records(people(), schema=SCHEMA).y) == tables.total
    halves = Halves.from_records(people(), schema=SCHEMA, random_state=0)
    assert halves.combined.total == tables.total
    assert halves.first.unit == halves.second.unit == tables.unit == Unit("who", 2)


# -- a bound by little of ε -----------------------------------------------------------------------------------------------


def test_more_budget_lets_more_records_count():
    """By hand: the variance of a rate in a cell of n/K records, 1/4 K/n + (σ M K/n)², is least."""
    unit = Unit("who", 64, (0, 1000, 0, 0, 0, 500, *[0] * 6))
    records = {1: 1500, 2: 3000, 3: 3500, 4: 4000, 6: 5000, 8: 5500}  # five to six count as 5.5, seven to eight as 7.5
    exact = lambda law, values, *names: values  # noqa: E731
    for sigma in (0.01, 1, 10, 100):
        by_hand = {m: 0.25 * 50 / n + (sigma * m * 50 / n) ** 2 for m, n in records.items()}
        by_hand |= {8: 0.25 * 50 / 5250 + (sigma * 8 * 50 / 5250) ** 2}
        found = unit.choose(0.05, exact, 50, sigma**2)
        assert found == min(by_hand, key=by_hand.get), sigma
    assert unit.choose(0.05, exact, 50, 1e-9) == 8
    assert unit.choose(0.05, exact, 50, 1e9) in (1, 2)
    nobody = lambda law, values, *names: np.zeros(len(values))  # noqa: E731
    assert unit.choose(0.05, nobody, 50, 1.0) == 1


# -- wrong inputs -------------------------------------------------------------------------------------------------------


def tables_of(**how):
    return ContingencyTables.from_records(people(), **{"schema": Schema.parse(UNSTATED)} | how)


WRONG = [
    (lambda: Schema.parse(with_line("max_rows: 3", UNSTATED)), "max_rows: needs a unit, the column that tells whose a record is"),
    (lambda: Schema.parse(TEXT.replace("max_rows: 2", "max_rows: 0")), "max_rows: '0' is neither a whole number from 1 on nor auto"),
    (lambda: Schema.parse(TEXT.replace("unit: who", "unit: ''")), "unit: is empty; name the column that tells whose a record is"),
    (lambda: Schema.parse(TEXT.replace("unit: who", "unit: a")), "unit: 'a' is a feature too; it tells whose a record is"),
    (lambda: Schema.parse(TEXT.replace("unit: who", "unit: y")), "unit: 'y' is the label too"),
    (lambda: Schema.parse(with_line("one_row_per_person: true")), "one_row_per_person: is true, and the unit is 'who'; state one"),
    (lambda: tables_of(unit="who"), "max_rows: how many records of each 'who' count[?] give a number, or auto"),
    (lambda: tables_of(max_rows=3), "max_rows: needs a unit"),
    (lambda: tables_of(unit="who", max_rows=2.0), "max_rows: 2.0 is neither a whole number"),
    (lambda: tables_of(unit="nobody", max_rows=2), "no column 'nobody'; the columns are"),
    (lambda: tables_of(schema=SCHEMA, unit="b"), "unit: 'b' is not that of the schema, 'who'; leave it out"),
    (lambda: tables_of(schema=SCHEMA, max_rows=3), "max_rows: 3 is not that of the schema, 2; leave it out"),
    (lambda: tables_of(schema=SINGLE, unit="who", max_rows=1), "unit: the schema states one row per person; leave it out"),
    (lambda: tables_of().private(1.0, 1e-6), "unit: nobody stated whose the records are"),
    (lambda: tables_of(schema=SCHEMA).private(1.0, 1e-6, adjacency="record"), "adjacency: record does not go with these tables; use unit"),
    (lambda: tables_of(schema=SINGLE).private(1.0, 1e-6, adjacency="unit"), "adjacency: unit does not go with these tables; use record"),
    (lambda: tables_of(schema=SCHEMA).private(1.0, 1e-6, max_rows=3), "max_rows: 3 does not go with these tables; they allow 2"),
    (lambda: tables_of(unit="who", max_rows="auto").private(1.0, 1e-6, max_rows=5), "max_rows: 5 .* allow 1, 2, 3, 4, 6, 8"),
    (lambda: Halves.from_records(people(), schema=SCHEMA, max_rows="auto"), "max_rows: 'auto' is not that of the schema, 2"),
    (lambda: Records.from_records(people(), "y", unit="who", max_rows="auto"), "max_rows: auto is for tables alone; give a number"),
    (lambda: LabelSums.from_records(people()[["b"]], people()["y"], unit=people()["who"]), "max_rows: how many records of each 'who'"),
    (lambda: LabelSums.from_records(people()[["b"]], people()["y"], unit=["a"], max_rows=1), "unit 'unit': 1 value for 15 records"),
    (lambda: tables_of(schema=replace(SCHEMA, unit="c")), "no column 'c'"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), WRONG)
def test_what_cannot_be(make, said):
    with pytest.raises((ConfigError, DataError), match=said) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.filterwarnings("default")
def test_a_column_without_any_unit_leaves_nothing():
    with pytest.warns(RecordsLeftOut, match="15 of 15 records are left out, which have none"):
        assert ContingencyTables.from_records(people().assign(who=None), schema=SCHEMA).total == 0


# -- words ---------------------------------------------------------------------------------------------------------------


def test_the_promise_in_words():
    noise = tables_of(schema=SCHEMA).private(1.0, 1e-6).noise
    assert noise.private
    assert noise.adjacency == "unit"
    assert "with all records of any one who as without them (epsilon 1)" in noise.meaning
    assert "At most 2 of each count." in noise.meaning
    labels = tables_of(schema=SCHEMA).private(1.0, 1e-6, adjacency="label").noise.meaning
    assert "with all records of any one who as with other labels of them" in labels
    single = tables_of(schema=SINGLE).private(1.0, 1e-6).noise
    assert single.adjacency == "record"
    assert single.meaning.endswith("A record is taken for a person.")
