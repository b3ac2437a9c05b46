"""Ecological inference: exact means, bounds and estimates against enumeration, rivals against tables that they can recover."""

import itertools

import numpy as np
import pandas as pd
import pytest

from agglearn.errors import DataError
from agglearn.observations import Margins
from agglearn.proportions import EcologicalInference, IndependentTables, LeastSquaresTables, LinearProgrammeTables
from agglearn.proportions.ecological import MarginFit, balance, duncan_davis, exact_mean, softmax
from agglearn.proportions.margin_rivals import homogeneous, nearest_tables

P = np.array([[0.7, 0.2, 0.1], [0.25, 0.6, 0.15]])
RNG_UNITS = 40


def all_tables(rows, columns):
    """Every table of whole numbers with these margins."""
    cells = [range(min(n, m) + 1) for n in rows for m in columns]
    for values in itertools.product(*cells):
        table = np.array(values).reshape(len(rows), len(columns))
        if (table.sum(axis=1) == rows).all() and (table.sum(axis=0) == columns).all():
            yield table


def draw(n_units=RNG_UNITS, size=300, p=P, seed=0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(len(p)), n_units)
    groups = np.array([rng.multinomial(size, share) for share in shares])
    tables = np.array([[rng.multinomial(n, row) for n, row in zip(unit, p, strict=True)] for unit in groups])
    return groups.astype(float), tables.sum(axis=1).astype(float), tables.sum(axis=0)


@pytest.mark.parametrize(
    ("rows", "columns"), [((3, 2), (2, 2, 1)), ((1, 4), (0, 5, 0)), ((2, 0), (1, 1, 0)), ((4, 3), (3, 4))]
)
def test_the_exact_mean_is_the_mean_over_all_tables(rows, columns):
    p = softmax(np.log(P[:, : len(columns)]))
    log_p, mean = exact_mean(np.array(rows, float), np.array(columns, float), p)
    chances, tables = [], list(all_tables(rows, columns))
    for table in tables:
        ways = [np.exp(_log_factorial(n) - sum(map(_log_factorial, row))) for n, row in zip(rows, table, strict=True)]
        chances.append(np.prod(ways) * np.prod(p**table))
    assert np.exp(log_p) == pytest.approx(sum(chances))
    assert mean == pytest.approx(np.average(tables, axis=0, weights=chances))


def _log_factorial(n):
    return float(np.log(np.arange(1, n + 1)).sum())


def test_a_balanced_table_has_the_margins_and_keeps_odds_ratios():
    seed = np.array([[3.0, 1], [1, 2]])
    table = balance(seed, np.array([10.0, 20]), np.array([18.0, 12]))
    assert table.sum(axis=1) == pytest.approx([10, 20])
    assert table.sum(axis=0) == pytest.approx([18, 12])
    assert table[0, 0] * table[1, 1] / table[0, 1] / table[1, 0] == pytest.approx(6)


@pytest.mark.parametrize("size", [12, 30, 60])
def test_the_approximation_is_near_the_exact_posterior_and_nearer_in_larger_units(size):
    groups, votes, _ = draw(4, size)
    for n, m in zip(groups, votes, strict=True):
        exact = exact_mean(n, m, P)[1]
        assert abs(balance(n[:, None] * P, n, m) - exact).sum() / 2 < 0.25  # persons in a wrong cell, whatever the size


def test_bounds_are_the_smallest_and_largest_cells_of_all_tables():
    units = [((3, 2), (2, 2, 1)), ((1, 4), (1, 4, 0))]
    smallest = sum(np.min(list(all_tables(*unit)), axis=0) for unit in units)
    largest = sum(np.max(list(all_tables(*unit)), axis=0) for unit in units)
    low, high = duncan_davis(*(np.array(side, float) for side in zip(*units, strict=True)))
    assert (low == smallest).all()
    assert (high == largest).all()


@pytest.mark.parametrize("exact", [True, False])
def test_the_fit_is_a_maximum(exact):
    groups, votes, _ = draw(5, 9)
    fit = MarginFit(groups, votes, np.ones(5), 0.8, exact)
    theta, information = fit.solve(np.zeros((2, 3)))

    def objective(at):
        return fit._likelihood(at)[0] - 0.5 * at.ravel() @ fit.precision @ at.ravel()

    best = objective(theta)
    for k in range(theta.size):
        step = np.zeros(theta.size)
        step[k] = 1e-4
        slope = (objective(theta + step.reshape(2, 3)) - objective(theta - step.reshape(2, 3))) / 2e-4
        assert slope == pytest.approx(0, abs=1e-3)
        assert objective(theta + 100 * step.reshape(2, 3)) < best
    assert np.linalg.eigvalsh(information).min() > 0


def test_exact_and_approximate_inference_agree_in_small_units():
    groups, votes, _ = draw(30, 25)
    models = (EcologicalInference(method=m, random_state=0) for m in ("exact", "approximate"))
    exact, approximate = (model.fit(groups, votes).tables_[0] for model in models)
    assert abs(exact - approximate).sum() / 2 < 0.02 * groups.sum()
    assert (EcologicalInference(random_state=0).fit(groups, votes).tables_[0] == exact).all()


def test_tables_agree_with_margins_and_recover_what_was_drawn():
    groups, votes, true = draw(60)
    model = EcologicalInference(random_state=0).fit(groups, votes)
    table = model.tables_[0]
    assert table.sum(axis=1) == pytest.approx(groups.sum(axis=0))
    assert table.sum(axis=0) == pytest.approx(votes.sum(axis=0))
    assert 50 * abs(table - true).sum() / true.sum() < 3
    assert (model.minimum_ <= model.low_).all()
    assert (model.high_ <= model.maximum_).all()


def test_intervals_hold_most_of_what_was_drawn():
    inside = []
    for seed in range(20):
        groups, votes, true = draw(40, seed=seed)
        model = EcologicalInference(overdispersion=0, random_state=0).fit(groups, votes)
        inside.append((model.low_[0] <= true) & (true <= model.high_[0]))
    assert 0.9 <= np.mean(inside) <= 1


def test_sensitivity_is_large_where_units_do_not_vote_alike():
    alike = draw(60)
    groups = alike[0]
    strong = groups[:, 0] > np.median(groups[:, 0])
    tables = groups[:, :, None] * np.where(strong[:, None, None], P, P[:, ::-1])
    models = (EcologicalInference(random_state=0).fit(groups, v) for v in (alike[1], tables.sum(axis=1)))
    found = [abs(model.sensitivity_).sum() for model in models]
    assert found[1] > 5 * found[0]


def test_a_weight_is_a_number_of_copies_and_zero_leaves_out_of_learning_only():
    groups, votes, _ = draw(10)
    learned = EcologicalInference(method="approximate")._learn
    weights = np.r_[2.0, np.ones(8), 0]
    copies = np.r_[0, np.arange(9)]
    twice = learned(groups[copies], votes[copies], np.ones(10), False)[0]
    assert learned(groups, votes, weights, False)[0] == pytest.approx(twice, abs=1e-4)
    table = EcologicalInference(random_state=0).fit(groups, votes, weights=weights).tables_[0]
    assert table.sum() == pytest.approx(groups.sum())


def test_districts_are_learned_apart_and_may_lack_options():
    groups, votes, _ = draw(20)
    votes[10:, 1] += votes[10:, 2]
    votes[10:, 2] = np.nan
    frames = pd.DataFrame(groups, columns=["a", "b"]), pd.DataFrame(votes, columns=["x", "y", "z"])
    model = EcologicalInference(random_state=0).fit(*frames, districts=["north"] * 10 + ["south"] * 10)
    assert list(model.table("south")) == ["x", "y"]
    alone = EcologicalInference(random_state=0).fit(groups[10:], votes[10:, :2])
    assert model.table("south").to_numpy() == pytest.approx(alone.tables_[0])
    assert model.table().to_numpy().sum() == pytest.approx(groups.sum())


@pytest.mark.parametrize("rival", [LeastSquaresTables(), LinearProgrammeTables(n_rounds=0), LinearProgrammeTables()])
def test_rivals_recover_probabilities_that_are_the_same_in_all_units(rival):
    groups = draw(20)[0]
    assert rival.fit(groups, groups @ P).tables_[0] == pytest.approx(groups.sum(axis=0)[:, None] * P, rel=1e-3)


def test_nearest_tables_are_as_near_as_their_margins_allow():
    groups, votes, _ = draw(12, 40)
    tables = nearest_tables(groups, votes, P[::-1])
    assert (tables > -1e-6).all()
    assert tables.sum(axis=2) == pytest.approx(groups)
    assert tables.sum(axis=1) == pytest.approx(votes, abs=1e-6)
    # people of a group only change options, so no table is nearer than the votes of its unit
    least = abs(votes - groups @ P[::-1]).sum()
    assert abs(tables - groups[:, :, None] * P[::-1]).sum() == pytest.approx(least)


def test_the_round_of_the_programme_with_the_least_heterogeneity_is_kept():
    groups, votes, _ = draw(12, 40, seed=3)
    tables = [LinearProgrammeTables(n_rounds=k).fit(groups, votes).tables_[0] for k in range(1, 6)]

    def heterogeneity(table):
        """Of the round that gave the table: its units are nearest to the probabilities of the round before."""
        return distances[np.argmin([abs(t - table).sum() for t in rounds])]

    p, rounds, distances = homogeneous(groups, votes, np.ones(12)), [], []
    for _ in range(5):
        units = nearest_tables(groups, votes, p)
        rounds.append(units.sum(axis=0))
        p = rounds[-1] / rounds[-1].sum(axis=1, keepdims=True)
        distances.append(abs(units - groups[:, :, None] * p).sum())
    kept = [heterogeneity(table) for table in tables]
    assert kept == [min(distances[:k]) for k in range(1, 6)]
    assert len(set(kept)) > 1


def test_independent_tables_are_products_of_margins():
    groups, votes = np.array([[6.0, 4], [1, 9]]), np.array([[5.0, 5], [10, 0]])
    assert IndependentTables().fit(groups, votes).tables_[0] == pytest.approx(np.array([[3 + 1, 3], [2 + 9, 2]]))


def test_rows_of_data_frames_are_matched_by_their_index():
    groups, votes, _ = draw(8)
    frames = [pd.DataFrame(t, index=[f"u{k}" for k in range(8)]) for t in (groups, votes)]
    shuffled = EcologicalInference(random_state=0).fit(frames[0], frames[1][::-1])
    assert (shuffled.tables_ == EcologicalInference(random_state=0).fit(groups, votes).tables_).all()


FIVE, SIX = np.full((3, 2), 5.0), np.full((3, 2), 6.0)
HOLED = np.array([[10, 0], [10, np.nan], [10, 0]])
NAMED = pd.DataFrame(FIVE, index=["a", "b", "c"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FIVE, SIX), "unit 0: groups add up to 10 and votes to 12; both must count the same people"),
        ((FIVE, FIVE[:2]), "votes: unit 2 is missing; both tables need the same units"),
        ((-FIVE, FIVE), "groups: unit 0, column 0 is -5; counts are finite numbers ≥ 0"),
        ((FIVE, np.where(FIVE == 5, np.inf, 0)), "votes: unit 0, column 0 is inf"),
        ((FIVE[:, :1], FIVE), "groups: needs at least two columns; with one there is nothing to infer"),
        ((np.array([["a", "b"]] * 3), FIVE), "groups: must be a table of numbers, one row for each unit"),
        ((NAMED, NAMED.rename({"c": "d"})), "votes: unit 'c' is missing; both tables need the same units"),
        ((NAMED, NAMED.rename({"c": "b"})), "votes: unit 'b' occurs more than once"),
        ((HOLED, [[5, 5], [10, 0], [5, 5]]), "unit 1: the count of 1 is missing"),
        ((FIVE * 0, FIVE * 0), "district all: has no units with people and weight"),
        ((FIVE, FIVE, ["n", "s"]), "districts: needs a name for each of the 3 units"),
        ((FIVE, FIVE, ["n", "s", None]), "districts: needs a name for each of the 3 units"),
        ((FIVE, FIVE, None, [1, 1]), "weights: must be (3,) finite numbers from 0 on"),
        ((FIVE,), "EcologicalInference learns from Margins, not from ndarray"),
        ((Margins.from_frames(FIVE, FIVE), None, None, [1, 1, 1]), "needs groups and votes, or Margins alone"),
    ],
)
def test_wrong_input_gets_one_line(arguments, message):
    with pytest.raises(DataError) as error:
        EcologicalInference().fit(*arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_exact_inference_needs_whole_counts():
    with pytest.raises(DataError, match="method exact: counts must be whole numbers; use method approximate"):
        EcologicalInference(method="exact").fit(FIVE / 2, FIVE / 2)


def test_a_wrong_district_is_refused():
    model = IndependentTables().fit(FIVE, FIVE, districts=["n", "n", "s"])
    with pytest.raises(DataError, match="there is no 'west'; there are n, s"):
        model.table("west")
