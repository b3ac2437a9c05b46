"""Tables as people read them: numbers, rows and columns, marks of the best, and the three formats."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from reported_trial import EXPERIMENT, written

from agglearn import tasks
from agglearn_workflow.archive.store import MEASURED
from agglearn_workflow.figures.charts import Chart
from agglearn_workflow.tables import numbers, printed_table
from agglearn_workflow.tables.summary import COLUMNS, summarise

TITLES = {"a": "A", "b": "B"}


def summary(cells: list[dict]) -> pd.DataFrame:
    """A summary with these cells; what a cell does not name is that of `ours` on `a` with mean 0.5 and no interval."""
    usual = dict.fromkeys(COLUMNS) | {
        "dataset": "a", "dataset_params": "{}", "observation": "tables", "observation_params": "{}", "method": "ours",
        "params": "{}", "measure": "nllh", "n": 3, "mean": 0.5, "low": np.nan, "high": np.nan, "reported": np.nan, "status": "ok",
    }  # fmt: skip
    return pd.DataFrame([usual | cell for cell in cells])


def around(mean: float, half: float, **more) -> dict:
    return {"mean": mean, "low": mean - half, "high": mean + half} | more


def laid_out(cells: list[dict], rows=("method",), columns=("dataset",), measure="nllh", experiment=EXPERIMENT, **more):
    """The grid of a table of the experiment."""
    table = {"rows": list(rows), "columns": list(columns), "measure": measure} | more
    return printed_table.grid(summary(cells), experiment | {"table": table}, TITLES)


def best_of(grid) -> dict[tuple, bool]:
    return {(grid.rows[i], grid.heads[j]): cell.best for (i, j), cell in grid.cells.items()}


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "half", "text"), [
    (0.42515, 0.000123, "0.42515 ± 0.00012"),
    (0.4212, 0.0996, "0.421 ± 0.100"),
    (0.5, 0.25, "0.50 ± 0.25"),
    (-0.99, 0.12, "−0.99 ± 0.12"),
    (12.3, 4.56, "12.3 ± 4.6"),
    (1234.5, 210.4, "1,234 ± 210"),
    (0.5, 0.0, "0.5"),  # values that are all the same
    (0.5, np.inf, "0.5"),
    (0.307123, np.nan, "0.307"),
    (0.409876, np.nan, "0.410"),
    (3.98e-11, np.nan, "3.98 × 10⁻¹¹"),
    (3.9999e-11, np.nan, "4.00 × 10⁻¹¹"),
    (0.0, np.nan, "0"),
    (-0.0001, 0.0213, "0.000 ± 0.021"),
    (3.21e-4, 1.2e-5, "(3.21 ± 0.12) × 10⁻⁴"),
    (7.1e-9, np.nan, "7.1 × 10⁻⁹"),
    (33263.0, np.nan, "33,263"),
    (250_000.0, np.nan, "250,000"),
    (1_000_000.0, np.nan, "1 × 10⁶"),
    (0.001, np.nan, "0.001"),
    (1.6e7, np.nan, "1.6 × 10⁷"),
    (0.017417, 0.00003, "(1.7417 ± 0.0030) × 10⁻²"),  # no number has more than five decimals
])  # fmt: skip
def test_numbers_have_two_digits_of_their_half_interval(mean, half, text):
    assert numbers.number(mean, mean - half, mean + half) == text


def test_an_interval_below_the_last_decimal_of_its_column_is_not_zero():
    assert numbers.number(0.4209, 0.42088, 0.42092, decimals=4) == "0.4209 ± <0.0001"
    assert numbers.number(14.0, 13.6, 14.4, decimals=0) == "14 ± <1"
    assert numbers.number(0.4209, 0.42084, 0.42096, decimals=4) == "0.4209 ± 0.0001"


@pytest.mark.parametrize(("means", "halves", "decimals"), [
    ((0.429, 0.371, -0.96), (0.033, 0.032, 0.24), 3),  # two digits of the median half interval
    ((0.424955, 0.420683), (0.000072, 0.00035), 4),  # four digits of the largest number
    ((13.4, 16.2, 8.18), (np.nan,) * 3, 1),  # without intervals three digits of the median
    ((979.0, 12.0), (np.nan,) * 2, 0),  # counts
    ((0.0198, 0.0000198), (0.00028, 0.0000003), None),  # the second would lose its digits
    ((3e-8, 1.9e-7), (3e-8, 1.4e-7), None),  # powers of ten
])  # fmt: skip
def test_numbers_of_a_column_have_one_precision(means, halves, decimals):
    assert numbers.common_decimals(np.array(means), np.array(halves)) == decimals


@pytest.mark.parametrize(("unit", "means", "chosen"), [
    ("s", [0.0012, 0.9], ("ms", 1e-3)),
    ("s", [2.0, 30.0], ("s", 1.0)),
    ("s", [100.0, 130.0], ("s", 1.0)),
    ("s", [0.02, 0.02, 5.0], ("ms", 1e-3)),  # most of them
    ("s", [400.0], ("min", 60.0)),
    ("s", [2e-5, np.nan, 0.0], ("µs", 1e-6)),
    ("s", [], ("s", 1.0)),
    ("B", [3e6], ("MB", 1e6)),
    ("persons", [3e6], ("persons", 1.0)),
    (None, [1.0], ("", 1.0)),
])  # fmt: skip
def test_a_measure_is_written_in_a_unit_that_fits(unit, means, chosen):
    assert numbers.fitting_unit(unit, means) == chosen


@pytest.mark.parametrize(("seconds", "text"), [
    (0.4, "0 s"), (89.4, "89 s"), (89.99, "90 s"), (90, "2 min"), (100, "2 min"), (89.4 * 60, "89 min"), (89.6 * 60, "1 h 30 min"),
    (3600 * 2 + 60 * 5 - 20, "2 h 5 min"), (3600 * 25, "25 h 0 min"),
])  # fmt: skip
def test_a_time_is_rounded_to_the_unit_that_is_written(seconds, text):
    assert numbers.duration_text(seconds) == text


# -- names and directions ---------------------------------------------------------------------------------------------

OF_RUNS = "converged", "curve", "edges", "gibbs_moves", "gibbs_reached", "majority", "negative", "time_to_convergence"
MEASURES = [getattr(getattr(tasks, name), "MEASURES", {}) for name in tasks.__all__]
STATED = {m: better for measures in MEASURES for m, (_, better) in measures.items()}


def test_tables_mark_the_best_in_the_direction_that_the_task_states():
    """But for measures that say how a method ran, or are zero or one. A difference to a method has the direction, too."""
    assert {m for m, better in STATED.items() if (numbers.direction(m) or "") != (better or "")} == set(OF_RUNS)
    assert {numbers.direction(m) for m in OF_RUNS} == {None}
    assert numbers.direction("seconds") == "lower"
    assert [numbers.direction(f"{m}_minus_base") for m in STATED] == list(map(numbers.direction, STATED))


def test_names():
    assert numbers.measure_name("nllh_best_on_test") == "NLLH best on test"
    assert (numbers.measure_name("seconds"), numbers.measure_name("elapsed")) == ("time", "time in all")
    assert numbers.plain([0.5, 1000]) == "(0.5, 1,000)"
    assert (numbers.plain(2016, "bags"), numbers.plain(2016, "election")) == ("2,016", "2016")
    assert numbers.setting("params.n_values", 1000, {}) == "values 1,000"
    assert numbers.setting("params.max_iter", 1000, {}) == "iterations 1,000"
    assert numbers.plain('{"x": 3, "y": [1, 2]}') == "x 3, y (1, 2)"
    assert numbers.plain('{"features": ["a", "[b"], "exit_poll": 0.5}') == "features (a, [b), exit poll 0.5"


# -- rows and columns -------------------------------------------------------------------------------------------------


def test_methods_are_rows_and_measures_stand_side_by_side():
    seconds = {"measure": "seconds", "unit": "s", "mean": 0.004}
    grid = laid_out([{}, {"dataset": "b"}, seconds, {"method": "base", "mean": 0.4}], measure=["nllh", "seconds"])
    assert grid.rows == [("Ours",), ("base",)]
    assert grid.heads == [("A", "NLLH"), ("A", "time (ms)"), ("B", "NLLH")]
    values = {place: cell.value for place, cell in grid.cells.items()}
    assert values == {(0, 0): "0.500", (0, 1): "4", (0, 2): "0.500", (1, 0): "0.400"}
    [header, line, *_] = re.findall(r"<tr>.*?</tr>", written("html", grid))
    assert re.findall(r"colspan=(\d)>(.*?)<", header) == [("2", "A"), ("1", "B")]
    assert re.findall(r"<th scope=\"col\" colspan=1>(.*?)<", line) == ["NLLH", "time (ms)", "NLLH"]


def test_parameters_that_differ_become_headers():
    cells = [{"params": '{"l2": 1.0}'}, {"params": '{"l2": 4.0}', "mean": 0.6}]
    grid = laid_out(cells)
    assert (grid.stubs, grid.rows) == (["", "λ"], [("Ours", "1"), ("Ours", "4")])
    assert re.findall(r"<th scope=\"row.*?</th>", written("html", grid)) == [
        '<th scope="rowgroup" rowspan=2>Ours</th>',
        '<th scope="row" rowspan=1>1</th>',
        '<th scope="row" rowspan=1>4</th>',
    ]
    assert laid_out(cells, ["dataset"], ["params.l2"]).heads == [("λ = 1",), ("λ = 4",)]


@pytest.mark.parametrize(("rows", "added"), [
    ([("ours", {"a": 1, "b": 1, "c": 1}), ("ours", {"a": 1, "b": 2, "c": 2})], ["params.b"]),  # a is constant, and c is b
    ([("ours", {"b": 1}), ("base", {"b": 1}), ("base", {"b": 2})], ["params.b"]),
    ([("ours", {"b": 1, "c": 1}), ("ours", {"b": 1, "c": 2}), ("ours", {"b": 2, "c": 2})], ["params.b", "params.c"]),
    ([("ours", {"b": 1}), ("base", {"b": 2})], []),
])  # fmt: skip
def test_parameters_join_the_headers_that_tell_rows_apart(rows, added):
    table = pd.DataFrame(rows, columns=["method", "params"]).assign(
        measure="nllh", dataset_params="{}", observation_params="{}", keys=None
    )
    table["params"] = table["params"].map(json.dumps)
    assert printed_table.undistinguished(table, ["method"]) == added


def test_a_parameter_that_no_row_has_gets_no_column():
    cells = [{}, {"params": '{"head": "trees"}'}]
    assert laid_out(cells, ["method", "params.head"]).stubs == ["", "head"]
    assert laid_out(cells[:1], ["method", "params.head"]).stubs == [""]
    assert laid_out(cells[:1], ["params.head"]).rows == [("",)]


def test_headers_say_what_there_is_and_mappings_are_spelt_out():
    hashed = {"observation_params": '{"hashed": {"x": 3, "y": 4}}'}
    cells = [hashed, {"observation_params": '{"buckets": 2}', "method": "base", "mean": 0.6}]
    rows, table = [f"observation_params.{p}" for p in ("buckets", "hashed")], summary(cells)
    assert laid_out(cells, rows, ["method"]).rows == [("2", ""), ("", "x 3, y 4")]
    series = Chart(table, table, EXPERIMENT, {}, {}).names(table, ["method", *rows])
    assert series.tolist() == ["Ours, hashed x 3, y 4", "base, buckets 2"]


def test_columns_stay_in_the_order_of_the_configuration():
    cells = [
        {"method": m, "dataset": d, "params": json.dumps({"k": k})}
        for k in (10, 9)
        for m in ("base", "ours")
        for d in "ba"
    ]
    grid = laid_out(cells, ["dataset"], ["method", "params.k"])
    assert grid.heads == [("Ours", "k = 9"), ("Ours", "k = 10"), ("base", "k = 9"), ("base", "k = 10")]
    assert grid.rows == [("A",), ("B",)]


def test_a_table_of_one_measure_may_have_no_columns():
    grid = laid_out([around(0.5, 0.01)], columns=[])
    assert (grid.rows, grid.heads, grid.cells[0, 0].value) == ([("Ours",)], [("value",)], "0.500 ± 0.010")
    assert "| Ours | 0.500 ± 0.010 |" in written("md", grid)


def test_the_name_of_the_only_measure_is_in_the_head_alone():
    grid = laid_out([{"method": m} for m in ("ours", "base")], ["measure", "method"])
    assert (grid.corner, [len(labels) for labels in grid.rows]) == ("NLLH", [1, 1])


def test_small_numbers_have_their_power_of_ten_in_the_head():
    grid = laid_out([{"mean": 0.000502}, {"method": "base", "mean": 0.000321}])
    assert (grid.corner, [cell.value for cell in grid.cells.values()]) == ("NLLH (×10⁻⁴)", ["5.02", "3.21"])


def test_a_table_for_each_data_set():
    table = summary([{}, {"dataset": "b", "mean": 0.6}])
    spec = {"each": "dataset", "rows": ["method"], "columns": ["params.l2"], "none": "plain", "measure": "nllh"}
    tables = printed_table.grids(table, EXPERIMENT | {"title": "T", "table": spec}, TITLES)
    assert [(title, grid.heads, [c.value for c in grid.cells.values()]) for title, grid in tables] == [
        ("T: A", [("plain",)], ["0.500"]),
        ("T: B", [("plain",)], ["0.600"]),
    ]
    [(title, _)] = printed_table.grids(table, EXPERIMENT | {"title": "T"}, {})
    assert title == "T"


@pytest.mark.parametrize("each", [{}, {"each": "keys.group"}])
def test_a_table_without_rows_is_a_sentence(each):
    measured = pd.DataFrame([dict.fromkeys(MEASURED)]).astype({"step": float, "value": float, "overlap": float})
    e = EXPERIMENT | {"table": {"rows": ["dataset"], "columns": ["method"], "measure": "nllh"} | each}
    for table in (summary([{"measure": "auc"}]), summarise(measured[:0], e)):
        [(title, grid)] = printed_table.grids(table, e, {})
        for kind in printed_table.KINDS:
            assert "No run of this table has a result." in written(kind, grid, title)


def test_a_table_that_does_not_fit_a_page_is_turned_or_has_one_table_per_measure():
    methods = {f"m{k}": {"name": f"method_{k}_of_a_long_name"} for k in range(9)}
    e = EXPERIMENT | {"methods": methods, "title": "T"}
    e["table"] = {"rows": ["dataset"], "columns": ["method"], "measure": ["nllh", "auc"]}
    cells = [{"method": m, "measure": k} for m in methods for k in ("nllh", "auc")]
    [(title, grid)] = printed_table.grids(summary(cells), e, TITLES)
    assert (title, len(grid.rows)) == ("T", 18)
    datasets = {f"d{k}": {} for k in range(9)}
    many = summary([c | {"dataset": d} for c in cells for d in datasets])
    titles = dict.fromkeys(datasets, "a_set_of_data_with_a_long_name")
    tables = printed_table.grids(many, e | {"datasets": datasets}, titles)
    assert [title for title, _ in tables] == ["T: NLLH", "T: AUC"]


# -- reasons ----------------------------------------------------------------------------------------------------------


def test_equal_reasons_share_a_note():
    reasons = ["x", "y", "x", None, "y"]
    grid = laid_out([{"params": json.dumps({"k": k}), "reason": reason} for k, reason in enumerate(reasons)])
    assert [grid.cells[i, 0].note for i in range(5)] == [1, 2, 1, None, 2]
    assert grid.notes == ["x", "y"]


def test_a_reason_of_every_cell_is_said_once():
    cells = [around(mean, 0.1, method=m, reason="of the archive") for m, mean in (("ours", 0.5), ("base", 0.2))]
    grid = laid_out(cells)
    assert grid.notes == []
    assert "[1]" not in written("md", grid)
    assert grid.explain("As measured.").endswith("All numbers: of the archive.")
    assert laid_out([cells[0], cells[1] | {"reason": None}]).notes == ["of the archive"]


def test_what_has_no_result_is_a_line_below_the_others():
    away = {"status": "unavailable", "reason": "B is not here (size 5 MB)", "mean": np.nan, "measure": None}
    grid = laid_out([{}, *({"dataset": "b", "method": m} | away for m in ("ours", "base"))])
    assert grid.heads == [("A",)]
    assert grid.without == ["B is not here (size 5 MB) (2 cells)"]


# -- marks of the best ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "ours", "base", "best"), [
    ("nllh", around(0.5, 0.01), around(0.4, 0.01), ["Ours"]),
    ("log_loss", around(0.5, 0.01), around(0.4, 0.01), ["base"]),
    ("nllh", around(0.5, 0.06), around(0.41, 0.06), ["Ours"]),  # √(0.06² + 0.06²) = 0.085
    ("nllh", around(0.5, 0.06), around(0.42, 0.06), []),  # the intervals tell nobody from the best
    ("tuned", around(0.5, 0.01), around(0.4, 0.01), []),  # neither side is better
    ("nllh", around(0.5, np.nan), around(0.4, np.nan), []),  # one seed tells nothing
    ("nllh", around(0.5, 0.0), around(0.4, 0.0), ["Ours"]),  # seeds that all agree
    ("nllh", around(0.5, 0.02), around(0.4, np.nan), ["Ours"]),  # far off by the interval that there is
    ("nllh", around(0.5, 0.02), around(0.49, np.nan), []),
])  # fmt: skip
def test_the_best_is_bold_and_what_is_not_told_from_it(measure, ours, base, best):
    """The third cell is of another data set, which is compared with nothing."""
    cells = [ours, base | {"method": "base"}, around(9.0, 0.1, dataset="b")]
    grid = laid_out([cell | {"measure": measure} for cell in cells], measure=measure)
    assert [row for ((row,), _), is_best in best_of(grid).items() if is_best] == best
    assert ("Bold:" in written("md", grid)) == bool(best)
    assert written("html", grid).count("<strong>") == len(best)
    assert written("tex", grid).count(r"\textbf{") == len(best)


def test_two_of_four_may_be_the_best():
    """What has no number is never among them."""
    failed = {"params": '{"l2": 2}', "mean": np.nan, "status": "failed"}
    cells = [around(0.5, 0.01), around(0.495, 0.01, method="base"), around(0.3, 0.01, params='{"l2": 1}'), failed]
    assert [row for (row, _), is_best in best_of(laid_out(cells)).items() if is_best] == [("Ours", ""), ("base", "")]


def test_a_wide_interval_of_another_row_brings_no_row_to_the_best():
    """Equal seeds have no interval, and their mean is exact. A single seed says nothing of its own spread."""
    others = [around(0.9, 0.5, method="base"), around(0.3, 0.01, params='{"l2": 1}')]
    for n, best in ((5, [0]), (1, [0, 2])):
        assert printed_table._best(summary([{"mean": 0.1, "n": n}, *others]), "lower") == best


def test_each_budget_has_its_own_best():
    cells = [
        around(mean, 0.01, method=m, observation_params=json.dumps({"epsilon": e}))
        for e, means in ((1, (0.2, 0.3)), (3, (0.5, 0.4)))
        for m, mean in zip(("ours", "base"), means, strict=True)
    ]
    best = best_of(laid_out(cells, columns=["observation_params.epsilon"]))
    assert {key for key, is_best in best.items() if is_best} == {(("base",), ("ε = 1",)), (("Ours",), ("ε = 3",))}


# -- printed numbers and formats --------------------------------------------------------------------------------------


def test_text_is_escaped():
    table = summary([{"status": "failed", "reason": "x < y & 50 % of z_1", "mean": np.nan}])
    grid = printed_table.grid(table, EXPERIMENT, {"a": "<A>"})
    html, tex = written("html", grid, "T & U_1"), written("tex", grid, "T & U_1")
    assert "&lt;A&gt;" in html
    assert "x &lt; y &amp; 50 %" in html
    assert r"x $<$ y \& 50 \% of z\_1" in tex  # LaTeX's text fonts print other signs for <, > and |
    assert r"T \& U\_1" in tex
    assert not re.search(r"(?<!\\)[%_#]", tex.replace(r"\begin{tabular}", ""))


def test_tex_has_no_letter_that_it_cannot_set():
    symbols = "λθ λμ θ ε δ σ µs −1 ± 2 × 10⁻⁴ ≥ ≤ → …"
    assert printed_table.TEMPLATES.filters["tex"](symbols).isascii()
    assert printed_table.TEMPLATES.filters["tex"]("λθ") == r"$\lambda_\theta$"


def test_a_table_file_says_how_it_is_encoded():
    """A browser takes a file without a declaration for Latin-1, and shows ± as two letters."""
    grids = [(title, printed_table.sentence("±")) for title in ("A & B: 1", "A & B: 2")]
    text = printed_table.write("A & B", grids, "")["html"]
    assert text.startswith("<!doctype html>")
    assert '<meta charset="utf-8"><title>A &amp; B</title>' in text
    figures = printed_table.figures_in(text)
    assert (figures[:7], figures[-10:], figures.count("<figcaption>A &amp; B: ")) == ("<figure", "</figure>\n", 2)


def test_a_whole_printed_number_has_a_whole_difference():
    row = pd.Series({"mean": 882.0, "reported": 979.0, "difference": -97.0, "unit": ""})
    assert printed_table._difference(row, "979", 1.0) == "−97"
    assert printed_table._difference(row, "979.0", 1.0) == "−97.0"
    time = pd.Series({"mean": 0.0014, "reported": 0.9, "unit": "s"})
    assert printed_table._difference(time, "900", 1e-3) == "643× less"
