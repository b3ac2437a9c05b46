"""Figures with a panel per value of a parameter, lines and their names, dots, and scatters of one measure against another."""

import io
import itertools
import json
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from agglearn.evaluation.intervals import mean_interval
from agglearn_workflow.figures import charts, drawing
from agglearn_workflow.figures.charts import COLORS, Chart
from agglearn_workflow.tables.summary import CELL

EXPERIMENT = {"title": "T", "datasets": {"a": {}}, "methods": {"ours": {}, "base": {}}, "measures": ["share"]}
LINE = {"kind": "line", "y": "share", "x": "dataset_params.n"}


def cells(*found) -> pd.DataFrame:
    """Summary rows from (method, dataset parameters, measure, keys, mean)."""
    rows = [
        dict.fromkeys(CELL, "{}")
        | {"run": "r", "dataset": "a", "method": m, "dataset_params": json.dumps(p), "measure": k, "keys": i and json.dumps(i), "mean": v,
           "low": np.nan, "high": np.nan, "reported": np.nan, "step": np.nan, "overlap": np.nan, "value": v, "unit": "", "n": 1}
        for m, p, k, i, v in found
    ]  # fmt: skip
    return pd.DataFrame(rows)


def over_n(**lines) -> list[tuple]:
    """Cells of lines over n = 1, 2, …: their methods with their values."""
    return [(m, {"n": n}, "share", None, v) for m, values in lines.items() for n, v in enumerate(values, 1)]


def methods(*names: str) -> dict:
    return EXPERIMENT | {"methods": {name: {} for name in names}}


def drawn(found: list | pd.DataFrame, experiment=EXPERIMENT, titles=None, **spec):
    """A figure in the style of the pages, laid out."""
    table = found if isinstance(found, pd.DataFrame) else cells(*found)
    with matplotlib.rc_context(charts.STYLE):
        figure = drawing.KINDS[spec["kind"]](Chart(table, table, experiment, spec, titles or {}))
        if figure:
            figure.savefig(io.BytesIO(), format="svg")
    return figure


def headed(table: pd.DataFrame, experiment=EXPERIMENT, **spec):
    """A figure under its heading."""
    return drawing.draw_chart(Chart(table, table, experiment, LINE | spec, {}))


def panel(found: list | pd.DataFrame, experiment=EXPERIMENT, **spec):
    """The only panel of a figure of lines."""
    [axes] = drawn(found, experiment, **LINE | spec).axes
    return axes


def headings(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.axison]


def names(texts) -> list[str]:
    return [text.get_text() for text in texts]


def boxes(texts, side="x0") -> list:
    """What some texts cover, in the order of one of their sides."""
    return sorted((text.get_window_extent() for text in texts), key=lambda box: getattr(box, side))


def drawing_of(table: pd.DataFrame, path, experiment: dict):
    """(reasons of failures, root of the SVG)"""
    failed = drawing.draw(table, table, EXPERIMENT | experiment, {}, path)
    return failed, ElementTree.parse(path).getroot()


# -- panels and headings ----------------------------------------------------------------------------------------------


def test_a_panel_per_parameter_in_the_order_of_numbers():
    table = cells(*[("ours", {"size": s, "n": n}, "share", None, n / 10) for s in (10_000, 1000, 2) for n in (1, 2)])
    figure = headed(table, panel=["dataset_params.size"])
    assert figure.get_suptitle() == "a."  # the data set, which no panel names
    assert 0 <= figure._suptitle.get_position()[0] < 0.1
    assert headings(figure) == ["size 2", "size 1,000", "size 10,000"]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("task", "words"),
    [("agglearn.tasks.Classification", "At most 2,000 records."), ("agglearn.tasks.FlowInference", "")],
)
def test_a_heading_has_the_number_of_records(task, words):
    """Other tasks have grids of so many rows."""
    table = cells(*[("ours", {"rows": 2000, "n": n}, "share", None, n) for n in (1, 2)])
    assert headed(table, EXPERIMENT | {"task": task}).get_suptitle() == words


@pytest.mark.parametrize("own", [False, True])
def test_panels_of_lines_share_the_axis_of_their_measure(own):
    """But for figures that state otherwise. Arrows of lines that leave point at the same end in all panels."""
    found = [("ours", {"n": n, "e": e}, "share", None, v) for n in (1, 2) for e, v in ((1, 0.5), (2, 0.1), (3, -3.0))]
    figure = drawn(found, **LINE, panel=["dataset_params.e"], y_from=0, own_y=own)
    assert len({axes.get_ylim() for axes in figure.axes}) == (3 if own else 1)
    assert own or figure.axes[2].lines[-1].get_ydata()[0] == 0


def test_names_leave_out_what_all_results_share_and_use_the_words_of_the_experiment():
    table = cells(*[("ours", {"hidden": h, "columns": "full", "n": 10000}, "share", None, 0.1) for h in ("SEX", "DIS")])
    chart = Chart(table, table, EXPERIMENT | {"words": {"SEX": "sex hidden"}}, {}, {})
    found = chart.names(table, [f"dataset_params.{key}" for key in ("hidden", "columns", "n")])
    assert found.tolist() == ["sex hidden", "hidden DIS"]
    assert chart.names(table, ["dataset_params.columns"]).tolist() == ["", ""]
    switched = cells(*[("ours", {"share": value}, "share", None, 0.1) for value in (1, True)])
    assert Chart(switched, switched, EXPERIMENT, {}, {}).names(switched, ["dataset_params.share"]).tolist() == [
        "share 1",
        "share True",
    ]


def test_an_axis_has_the_unit_that_all_rows_have():
    units = {"all": ["s", "s", None, ""], "some": ["s", "B"], "none": ["", None]}
    rows = {name: pd.DataFrame({"unit": texts}) for name, texts in units.items()}
    chart = Chart(rows["all"], rows["all"], {}, {"y": "fit_seconds", "x": "n", "x_label": "stated"}, {})
    assert chart.label("y", rows["all"]) == "fit time (s)"
    assert {chart.label("y", rows["some"]), chart.label("y", rows["none"]), chart.label("y")} == {"fit time"}
    assert chart.label("x", rows["all"]) == "stated"


# -- lines ------------------------------------------------------------------------------------------------------------


def test_lines_of_an_ordered_parameter_go_from_light_to_dark():
    """Of settings that one number distinguishes. Their names are dark enough to be read."""
    table = cells(*[("ours", {"k": k, "n": n}, "share", None, k * n) for k in (3, 1, 2, 10) for n in (1, 2)])
    [axes] = headed(table, series=["dataset_params.k"]).axes
    assert [line.get_label() for line in axes.lines] == ["k = 1", "k = 2", "k = 3", "k = 10"]
    light = [lab(linear_rgb(line.get_color()))[0] for line in axes.lines]
    assert all(a - b > 15 for a, b in itertools.pairwise(light))
    assert light[0] < 80  # the palest is seen on white
    luminance = [linear_rgb(text.get_color()) @ [0.2126, 0.7152, 0.0722] for text in axes.texts]
    assert min(1.05 / (y + 0.05) for y in luminance) >= 4.5


def test_a_curve_is_the_mean_of_all_runs_also_after_some_have_ended():
    """The second run ends at step 3, which the first one has no value of, and stays where it is."""
    rows = cells(*[("ours", {}, "share", None, v) for v in (4.0, 2.0, 1.0, 8.0, 6.0)])
    rows = rows.assign(run=["r"] * 3 + ["s"] * 2, step=[0.0, 2.0, 4.0, 0.0, 3.0])
    [axes] = drawn(rows, kind="curve", y="share").axes
    assert axes.lines[0].get_xydata().tolist() == [[0, 6], [2, 5], [3, 4], [4, 3.5]]


def test_what_has_no_parameter_has_a_place_of_its_own():
    found = [("ours", {"n": x} if x else {}, "share", None, (x or 9) / 10) for x in (0.1, 1, None)]
    figure = drawn([*found, ("base", {}, "share", None, 0.5)], **LINE, x_log=True, x_none="∞")
    drawn_lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert drawn_lines["ours"].get_xdata().tolist() == [0.1, 1, 10]
    assert names(figure.axes[0].get_xticklabels()) == ["0.1", "1", "∞"]
    assert list(drawn_lines["base"].get_ydata()) == [0.5, 0.5]
    assert list(drawn_lines["base"].get_xdata()) == [0, 1]  # from edge to edge


def test_the_first_and_the_last_value_of_an_axis_keep_their_names():
    figure = headed(cells(*[("ours", {"n": x}, "share", None, 0.1) for x in (0, 10, 300, 1000)]))
    shown = [text for text in figure.axes[0].get_xticklabels() if text.get_visible()]
    assert names(shown) == ["0", "300", "1,000"]


def test_a_measure_may_be_the_abscissa():
    """A line goes through the means of the measure: clusters made, not clusters allowed."""
    means = {1: {"made": 7, "share": 0.5}, 2: {"made": 9, "share": 0.2}}
    table = cells(*[("ours", {"n": n}, k, None, v) for n, of_n in means.items() for k, v in of_n.items()])
    experiment = EXPERIMENT | {"measures": ["share", "made"]}
    lines = panel(table[::-1].set_axis(range(10, 14)), experiment, x="made").lines
    [line] = [line for line in lines if len(line.get_xdata())]
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([7, 9], [0.5, 0.2])


def test_lines_over_one_value_are_dots_that_name_it():
    found = [(m, {"n": 5, "e": e}, "share", None, 0.1 + e) for m in ("ours", "base") for e in (1, 2)]
    figure = drawn(found, **LINE, x_label="bags", panel=["dataset_params.e"])
    [axes] = figure.axes
    assert names(axes.get_yticklabels()) == ["ours", "base"]
    assert axes.get_xlabel() == "share\nbags: 5"
    assert names(figure.legends[0].get_texts()) == ["e = 1", "e = 2"]


def test_printed_numbers_are_marks_beside_their_line():
    figure = drawn(cells(*over_n(ours=[0.1, 0.2])).assign(reported=[0.15, np.nan]), **LINE)
    [marks] = [line for line in figure.axes[0].lines if line.get_marker() == "D" and len(line.get_xdata())]
    assert (marks.get_xdata().tolist(), marks.get_ydata().tolist()) == ([1], [0.15])
    assert names(figure.legends[0].get_texts()) == ["printed in the source"]


# -- names of lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rising", [False, True])
def test_lines_are_named_inside_the_height_of_their_panel(rising):
    """Names keep apart, though the lines end at one height, on a logarithmic axis too."""
    lines = {f"m{k}": sorted([0.1, 0.01, 0.001], reverse=not rising) for k in range(12)}
    heights = sorted(text.xy[1] for text in panel(over_n(**lines), methods(*lines), y_log=True).texts)
    assert len(heights) == 12
    assert 0 < heights[0] < heights[-1] < 1
    assert heights[0] > 0.1 if rising else heights[-1] < 0.9  # near the ends of the lines
    assert np.diff(heights).min() > 0.06


@pytest.mark.parametrize("last", [0.0, np.nan])
def test_a_line_that_ends_at_zero_is_named_at_its_last_point_of_a_logarithmic_axis(last):
    axes = panel(over_n(ours=[1.0, 0.1, last], base=[0.9, 1e-3, 1e-4]), y_log=True)
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    assert heights["ours"] > 0.6 > heights["base"]


def test_names_of_many_lines_that_leave_the_axis_have_room_for_their_lowest_values():
    settings = [f"a long name of the setting {k}" for k in range(9)]
    found = [("ours", {"n": n, "k": k}, "share", None, v) for k in settings for n, v in ((1, 0.5), (2, -9.0))]
    texts = panel(found, series=["dataset_params.k"], y_from=0).texts
    assert len(texts) == 9
    assert all("lowest −9" in name for name in names(texts))
    assert not [1 for one, two in itertools.combinations(boxes(texts), 2) if one.overlaps(two)]


def test_lines_of_many_panels_are_named_in_a_legend():
    found = [(m, {"n": n, "e": e}, "share", None, n) for m in ("ours", "base") for n in (1, 2) for e in range(8)]
    figure = drawn(found, **LINE, panel=["dataset_params.e"])
    assert names(figure.legends[0].get_texts()) == ["ours", "base"]
    assert not any(axes.texts for axes in figure.axes)


def test_all_lines_are_named_where_few_of_the_highlighted_have_a_result():
    axes = panel(over_n(ours=[0.5] * 2, base=[0.1] * 2), highlight={"ours": "us", "c": "c", "d": "d"})
    assert sorted(names(axes.texts)) == ["base", "us"]


def test_highlighted_lines_are_named_at_their_ends():
    experiment = methods("ours", "base", "other") | {"findings": {"nllh": "Fails: ours is better"}}
    table = cells(*over_n(ours=[0.5] * 2, base=[0.5] * 2, other=[0.1] * 2)).assign(measure="nllh", n=3)
    figure = headed(table, experiment, y="nllh", highlight={"ours": "ours!", "base": "base!"})
    [axes] = figure.axes
    assert set(names(axes.texts)) == {"ours!", "base!"}
    assert abs(np.subtract(*[text.xy[1] for text in axes.texts])) > 0.06  # apart, though the lines are one
    means = "NLLH: higher is better. Means with 95 % intervals over 3 seeds."
    assert figure.get_suptitle() == f"Fails: ours is better\n{means}"
    assert [line.get_color() for line in axes.lines].count("0.75") == 1
    alone = headed(table, experiment, y="nllh", highlight={"nobody": "x"})
    assert "0.75" not in [line.get_color() for line in alone.axes[0].lines]


# -- lines that leave their axis --------------------------------------------------------------------------------------


def test_a_line_that_leaves_the_axis_is_marked_with_its_lowest_value():
    axes = panel(over_n(ours=[0.5] * 2, base=[-3.0] * 2), y_from=-0.2)
    [arrow] = [line for line in axes.lines if line.get_marker() == "v" and len(line.get_xdata()) == 1]
    assert arrow.get_ydata() == axes.get_ylim()[:1]
    assert sorted(names(axes.texts)) == ["base\n(lowest −3)", "ours"]


def test_the_lowest_value_of_a_line_without_a_name_stands_beside_the_names_where_another_line_has_a_zero():
    """A zero has no place on a logarithmic axis, and no abscissa."""
    lines = {"ours": (1.0, 0.1, 0.01), "base": (1.0, 0.1, 1e-9), "zero": (1.0, 0.1, 0.0)}
    axes = panel(over_n(**lines), methods(*lines), y_log=True, y_from=1e-3, highlight={"ours": "ours"})
    [text] = [text for text in axes.texts if text.get_text() == "1 × 10⁻⁹"]
    assert text.get_window_extent().x1 <= axes.get_window_extent().x1


def test_the_lowest_value_of_a_line_that_leaves_near_the_names_stands_left_of_its_mark():
    axes = panel(over_n(ours=[0.5] * 10, base=[*[0.4] * 8, -3.0]), y_from=-0.2, highlight={"ours": "us"})
    [lowest] = [text for text in axes.texts if text.get_text() == "−3"]
    assert (lowest.xy[0], lowest.get_ha()) == (9, "right")


def test_the_value_of_a_line_that_leaves_at_the_right_end_stands_inside_the_panel():
    axes = panel(over_n(ours=[0.5] * 2, base=[0.4, -3.0]), y_from=-0.2, highlight={"ours": "us"})
    [value] = [text for text in axes.texts if text.get_text() == "−3"]
    assert value.get_window_extent().x1 <= axes.bbox.x1


def test_of_unnamed_lines_that_leave_at_one_place_the_lowest_value_is_written():
    lines = {f"m{k}": [-k if k else 0.5] * 2 for k in range(4)}
    axes = panel(over_n(**lines), methods(*lines), y_from=-0.2, highlight={"m0": "first"})
    assert [text.get_text() for text in axes.texts if text.get_text().startswith("−")] == ["−3"]


def test_what_leaves_by_less_than_one_sees_has_no_mark():
    axes = panel(over_n(ours=[0.5] * 2, base=[-0.0003] * 2), y_from=0)
    assert "v" not in [line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1]
    assert sorted(names(axes.texts)) == ["base", "ours"]


def test_a_line_that_has_values_at_0_only_says_so_on_a_logarithmic_axis():
    rows = cells(*[(m, {}, "share", None, 1.0) for m in ("ours", "ours", "base")])
    rows = rows.assign(run=["r", "r", "s"], step=[0.0, 2.0, 0.0])
    [axes] = drawn(rows, kind="curve", y="share", x_log=True).axes
    assert sorted(names(axes.texts)) == ["base\n(only at 0)", "ours"]


@pytest.mark.filterwarnings("error")
def test_an_interval_at_0_only_has_no_place_on_a_logarithmic_axis():
    rows = cells(*[(m, {}, "share", None, v) for m, v in (("ours", 1.0), ("ours", 1.1), ("base", 1.0), ("base", 1.0))])
    rows = rows.assign(run=["r", "s", "t", "t"], step=[0.0, 0.0, 0.0, 2.0])
    assert not drawn(rows, kind="curve", y="share", x_log=True).axes[0].collections


@pytest.mark.parametrize(("y_from", "ours", "base", "low", "high"), [
    (0, 0.4, 0.5, (0.0, 0.0), (0.5, 0.53)),  # stated as the base
    (-0.2, 0.4, 0.5, (0.3, 0.4), (0.5, 0.53)),  # nothing leaves: no empty half
    (-0.2, 0.4, -3.0, (0.3, 0.4), (0.4, 0.53)),  # one mean leaves
    (0, 0.5, -90.0, (0.0, 0.0), (0.525, 0.525)),  # no empty half above
    (-1, -3.0, -6.0, (-9.0, -6.0), (-3.0, 0.0)),  # no mean reaches the level: all are there
])  # fmt: skip
def test_the_ends_of_an_axis_are_0_or_near_the_means_that_stay(y_from, ours, base, low, high):
    ends = panel(over_n(ours=[ours] * 2, base=[base] * 2), y_from=y_from).get_ylim()
    for end, (least, most) in zip(ends, (low, high), strict=True):
        assert least - 1e-9 <= end <= most + 1e-9


# -- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y_log", [False, True])
def test_intervals_lie_inside_the_axes(y_log):
    found = [cell for shift in (-0.9, 0.0, 0.9) for cell in over_n(ours=[1 + shift, 2 + shift])]
    low, high = panel(found, y_log=y_log).get_ylim()
    interval = mean_interval(np.array([1.1, 2.0, 2.9]), 0.0)
    assert low <= (0.1 if y_log else 1 - (interval[2] - 2))  # a logarithmic axis ends an interval at its smallest value
    assert high >= interval[2]


def test_a_panel_whose_means_are_all_below_the_stated_level_has_intervals():
    found = [
        ("ours", {"n": n, "e": e}, "share", None, e + shift)
        for n in (1, 2)
        for e in (1, -3)
        for shift in (-0.1, 0, 0.1)
    ]
    axes = drawn(found, **LINE, panel=["dataset_params.e"], y_from=0, own_y=True).axes
    assert [bool(panel.collections) for panel in axes] == [True, True]


def test_the_larger_overlap_at_a_point_widens_its_interval():
    table = cells(*[cell for value in (1.0, 2.0, 3.0) for cell in over_n(ours=[value] * 2)])
    [band] = panel(table.assign(overlap=[0.25, 0.25, 0.0, 0.0, np.nan, np.nan])).collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(mean_interval([1.0, 2.0, 3.0], 0.25)[2])


@pytest.mark.parametrize("measure", ["auc", "nllh"])
def test_an_interval_ends_where_the_values_of_its_measure_end(measure):
    """Two seeds have an interval of 12.7 standard errors, which no area under a curve can reach, and no NLLH above."""
    table = cells(*over_n(ours=[0.6, 0.6]), *over_n(ours=[0.9, 0.9])).assign(measure=measure)
    [band] = panel(table, y=measure).collections
    ends = band.get_paths()[0].vertices[:, 1]
    assert (ends.min() == 0 if measure == "auc" else ends.min() < -1, ends.max()) == (True, 1)


def test_a_mean_that_leaves_the_axis_has_no_interval():
    """It would be a hundred times as high as the axis."""
    axes = panel([*over_n(ours=[0.4, 0.4], base=[0.3, 0.3]), *over_n(ours=[0.5, 0.5], base=[0.35, -30.0])], y_from=-0.2)
    assert axes.get_ylim()[1] < 2
    assert len(axes.collections) == 2  # the bands of both


def test_a_time_that_does_not_grow_looks_flat():
    """A mean from 0.19 to 0.2 s takes at most a tenth of the height of a logarithmic axis."""
    low, high = panel(cells(*over_n(ours=[0.19, 0.2])).assign(unit="s"), y_log=True).get_ylim()
    assert high / low == pytest.approx(10)


# -- dots -------------------------------------------------------------------------------------------------------------


def test_values_of_a_dodged_field_share_a_row_and_have_a_colour_each():
    found = [(m, {"size": s}, "share", None, s / 100) for m in ("ours", "base") for s in (10, 20)]
    figure = drawn(found, kind="dots", y="share", dodge=["dataset_params.size"])
    [axes] = figure.axes
    assert names(axes.get_yticklabels()) == ["ours", "base"]
    bars = {bars.get_label(): bars[0] for bars in axes.containers}
    values = {label: line.get_xdata().tolist() for label, line in bars.items()}
    assert values == {"size 10": [0.1] * 2, "size 20": [0.2] * 2}
    rows = np.array([line.get_ydata() for line in bars.values()], float)
    assert (rows.round() == [0, 1]).all()
    assert (rows[0] < rows[1]).all()
    assert len({line.get_color() for line in bars.values()}) == 2
    assert names(figure.legends[0].get_texts()) == ["size 10", "size 20"]
    undodged = drawn(found, kind="dots", y="share")  # by what tells dots of one name apart
    assert names(undodged.legends[0].get_texts()) == ["size 10", "size 20"]


def test_one_method_on_many_data_sets_has_a_row_for_each_of_them():
    table = cells(*[("ours", {}, "share", None, v) for v in (0.1, 0.2, 0.3)]).assign(dataset=list("abc"))
    experiment = EXPERIMENT | {"datasets": {"a": {}, "b": {}, "c": {}}}
    [axes] = drawn(table, experiment, {"c": "Data C"}, kind="dots", y="share").axes
    assert names(axes.get_yticklabels()) == ["a", "b", "Data C"]


def test_names_of_rows_lie_inside_the_figure_and_do_not_overlap():
    experiment = EXPERIMENT | {"methods": {m: {"name": f"{m} of a long name, " * 5} for m in ("ours", "base")}}
    found = [(m, {"size": n}, "share", None, 0.1) for m in ("ours", "base") for n in (1, 2)]
    figure = drawn(found, experiment, kind="dots", y="share", series=["method", "dataset_params.size"])
    rows = boxes(figure.axes[0].get_yticklabels(), "y0")
    assert min(box.x0 for box in rows) >= 0
    assert all(below.y1 <= above.y0 for below, above in itertools.pairwise(rows))


def check_numbers_of_an_axis(axes) -> None:
    """Whether those that are seen are two or more, and apart."""
    low, high = axes.get_xlim()
    ticks = axes.get_xticklabels(which="both")
    seen = boxes([t for t in ticks if t.get_text() and low <= t.get_position()[0] <= high])
    assert len(seen) >= 2
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(seen))


@pytest.mark.parametrize(("first", "second"), [(0.002, 0.012), (0.02, 0.05)])
def test_numbers_of_logarithmic_axes_do_not_overlap(first, second):
    narrow = EXPERIMENT | {"methods": {m: {"name": f"{m}, of a name of some thirty letters"} for m in ("ours", "base")}}
    dots = [("ours", {}, "share", None, first), ("base", {}, "share", None, second)]
    points = [("ours", {}, k, {"i": i}, 10.0 ** (4 + i / 20)) for k in ("share", "poll") for i in range(20)]
    check_numbers_of_an_axis(drawn(dots, narrow, kind="dots", y="share", y_log=True).axes[0])
    check_numbers_of_an_axis(drawn(points, kind="scatter", y="share", x="poll", x_log=True).axes[0])


# -- scatters ---------------------------------------------------------------------------------------------------------


def test_one_measure_against_another_by_key():
    found = []
    for covariate, group, poll in (("sex", "male", 0.4), ("sex", "female", 0.6), ("race", "asian", 0.7)):
        keys = {"covariate": covariate, "group": group}
        found += [("ours", {}, "share", keys, poll + 0.1), ("ours", {}, "poll", keys, poll)]
    figure = drawn(found, kind="scatter", y="share", x="poll", panel=["keys.covariate"])
    assert headings(figure) == ["covariate race", "covariate sex"]
    assert np.allclose(figure.axes[1].lines[0].get_xydata(), [[0.4, 0.5], [0.6, 0.7]])


def test_a_method_against_another():
    found = [(m, {}, "share", {"group": i}, v) for m, v in (("ours", 0.1), ("base", 0.2)) for i in ("x", "y")]
    spec = {"kind": "scatter", "y": "share", "x": "base"}
    figure = drawn(found, titles={"a": "Data"}, **spec)
    assert headings(figure) == ["Data"]
    assert np.allclose(figure.axes[0].lines[0].get_xydata(), [[0.2, 0.1], [0.2, 0.1]])
    assert drawn(found[:1], **spec) is None


def test_a_legend_shows_a_method_as_it_is_drawn_where_the_first_panel_lacks_it():
    all_methods, items = ("ours", "base", "other"), range(20)
    found = [(m, {"k": k}, "share", {"group": i}, i / 100) for k in (1, 2) for m in all_methods for i in items]
    found = [row for row in found if row[:2] != ("other", {"k": 1})]
    figure = drawn(found, methods(*all_methods), kind="scatter", y="share", x="base", panel=["dataset_params.k"])
    assert [handle.get_linestyle() for handle in figure.legends[0].get_lines()] == ["None", "None"]


@pytest.mark.parametrize(("n", "stroke"), [(10, "-"), (30, "None")])
def test_a_line_joins_few_points(n, stroke):
    found = [(m, {}, k, {"i": i}, i / n) for m in ("ours", "base") for k in ("share", "poll") for i in range(n)]
    figure = drawn(found, kind="scatter", y="share", x="poll")
    assert {line.get_linestyle() for axes in figure.axes for line in axes.lines[:-1]} == {stroke}
    [legend] = figure.legends  # outside the panels
    assert legend.get_window_extent().y1 <= figure.axes[0].get_tightbbox().y0


# -- files ------------------------------------------------------------------------------------------------------------

DOTS = {"kind": "dots", "y": "share"}


def test_a_figure_without_data_leaves_no_sentence_beside_one_with_data(tmp_path):
    specs = [{"kind": "dots", "y": "other"}, DOTS]
    failed, root = drawing_of(cells(("ours", {}, "share", None, 0.5)), tmp_path / "f.svg", {"figure": specs})
    assert failed == []
    assert "No run" not in "".join(root.itertext())


def test_figures_stand_below_each_other(tmp_path):
    table = cells(*over_n(ours=[0.5, 0.4]))
    one, two = (drawing_of(table, tmp_path / f"{n}", {"figure": [LINE] * n})[1] for n in (1, 2))
    height = float(one.get("height").removesuffix("pt"))
    assert float(two.get("height").removesuffix("pt")) == pytest.approx(2 * height)
    inner = [e for e in two if e.tag.endswith("svg")]
    assert [float(e.get("y")) for e in inner] == [0, pytest.approx(height)]


SPECS = [
    DOTS,
    {"kind": "curve", "y": "share"},
    {"kind": "curve", "y": "share", "x": "seconds"},
    LINE,
    LINE | {"panel": ["dataset_params.size"]},
    {"kind": "scatter", "y": "share", "x": "base", "panel": ["keys.covariate"]},
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("found", [[("ours", {}, "share", None, np.nan)], [("ours", {}, "share", None, 0.5)], []])
def test_a_figure_without_data_is_a_sentence(tmp_path, spec, found):
    table = cells(("ours", {}, "other", None, np.nan), *found)
    failed, picture = drawing_of(table, tmp_path / "f.svg", {"figure": spec})
    assert failed == []
    if spec["kind"] != "dots" or found != [("ours", {}, "share", None, 0.5)]:  # one value without x makes dots only
        assert "".join(picture.itertext()) == "No run of this figure has a result."


def test_a_figure_that_fails_leaves_the_others(tmp_path):
    table = cells(("ours", {"n": "<x>"}, "share", None, 0.5))
    [reason], root = drawing_of(table, tmp_path / "f.svg", {"figure": [LINE, DOTS]})
    assert reason.startswith("ValueError: Unable to parse string")
    first, second = (e for e in root if e.tag.endswith("svg"))
    assert "This figure failed: ValueError" in "".join(first.itertext())
    assert "<x>" in "".join(first.itertext())
    assert len(list(second.iter())) > 20


def test_a_drawing_has_a_title_and_a_description(tmp_path):
    table = cells(("ours", {}, "share", None, 0.5))
    _, root = drawing_of(table, tmp_path / "f.svg", {"caption": "What is < shown."})
    words = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert (words["title"], words["desc"]) == ("T", "What is < shown.")
    assert root.get("role") == "img"


def test_a_sentence_has_room_for_its_lines():
    picture = drawing.sentence("word " * 60)
    assert len(picture[0]) == 4
    assert (picture.get("height"), picture.get("viewBox")) == ("80pt", "0 0 500 80")  # 16 for each, and 16


# -- colours ----------------------------------------------------------------------------------------------------------


def test_colours_are_told_apart_under_all_deficiencies_of_colour_vision():
    """Distances in CIELAB of every two colours after the simulations of Machado, Oliveira and Fernandes (2009), severity 1."""
    linear = [linear_rgb(colour) for colour in COLORS]
    for matrix in (np.eye(3), *DEFICIENCIES):
        seen = [lab(matrix @ colour) for colour in linear]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 18


DEFICIENCIES = np.array([
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
])  # fmt: skip
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def linear_rgb(colour: str) -> np.ndarray:
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(linear: np.ndarray) -> np.ndarray:
    t = TO_XYZ @ np.clip(linear, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
