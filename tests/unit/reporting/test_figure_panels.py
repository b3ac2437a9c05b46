"""Figures with a panel per value of a parameter, and scatters of one measure against another."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from agglearn_workflow.figures import drawing, lines, maps
from agglearn_workflow.figures.panels import Chart
from agglearn_workflow.tables.summary import CELL

EXPERIMENT = {"title": "T", "datasets": {"a": {}}, "methods": {"ours": {}, "base": {}}, "measures": ["share"]}


def cells(*found) -> pd.DataFrame:
    """Summary rows from (method, dataset parameters, measure, keys, mean)."""
    rows = [
        dict.fromkeys(CELL, "{}")
        | {"run": "r", "dataset": "a", "method": m, "dataset_params": json.dumps(p), "measure": k, "keys": i and json.dumps(i), "mean": v,
           "low": np.nan, "high": np.nan, "reported": np.nan, "step": np.nan, "overlap": np.nan, "value": v}
        for m, p, k, i, v in found
    ]  # fmt: skip
    return pd.DataFrame(rows)


def texts(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.axison]


def test_a_panel_per_parameter_in_the_order_of_numbers():
    table = cells(*[("ours", {"size": s, "n": n}, "share", None, n / 10) for s in (100, 10, 2) for n in (1, 2)])
    spec = {"kind": "line", "y": "share", "x": "dataset_params.n", "panel": ["dataset_params.size"]}
    figure = lines.lines(Chart(table, table, EXPERIMENT, spec | {"title": "Left"}, {}))
    assert figure.get_suptitle() == "Left"
    assert 0 <= figure._suptitle.get_position()[0] < 0.1
    assert texts(figure) == ["size 2", "size 10", "size 100"]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0.1, 0.2]


def test_one_measure_against_another_by_key():
    found = []
    for covariate, group, poll in (("sex", "male", 0.4), ("sex", "female", 0.6), ("race", "asian", 0.7)):
        keys = {"covariate": covariate, "group": group}
        found += [("ours", {}, "share", keys, poll + 0.1), ("ours", {}, "poll", keys, poll)]
    spec = {"kind": "scatter", "y": "share", "x": "poll", "panel": ["keys.covariate"]}
    figure = drawing.scatter(Chart(cells(*found), cells(*found), EXPERIMENT, spec, {}))
    assert texts(figure) == ["covariate race", "covariate sex"]
    points = figure.axes[1].collections[0].get_offsets()
    assert np.allclose(points, [[0.4, 0.5], [0.6, 0.7]])


def test_a_method_against_another():
    found = [(m, {}, "share", {"group": i}, v) for m, v in (("ours", 0.1), ("base", 0.2)) for i in ("x", "y")]
    spec = {"kind": "scatter", "y": "share", "x": "base"}
    figure = drawing.scatter(Chart(cells(*found), cells(*found), EXPERIMENT, spec, {"a": "Data"}))
    assert texts(figure) == ["Data"]
    assert np.allclose(figure.axes[0].collections[0].get_offsets(), [[0.2, 0.1], [0.2, 0.1]])
    alone = cells(("ours", {}, "share", {"group": "x"}, 1))
    assert drawing.scatter(Chart(alone, alone, EXPERIMENT, spec, {})) is None


def measured(*found) -> pd.DataFrame:
    """Rows of runs from (method, ε or None, measure, value)."""
    return cells(*((m, {"epsilon": e} if e else {}, k, None, v) for m, e, k, v in found))


def test_what_has_no_parameter_has_a_place_of_its_own():
    table = measured(*[("ours", x, "share", (x or 9) / 10) for x in (0.1, 1, None)], ("base", None, "share", 0.5))
    spec = {"kind": "line", "y": "share", "x": "dataset_params.epsilon", "x_log": True, "x_none": "∞"}
    figure = lines.lines(Chart(table, table, EXPERIMENT, spec, {"a": "Data"}))
    ours = next(line for line in figure.axes[0].lines if line.get_label() == "ours")
    assert ours.get_xdata().tolist() == [0.1, 1, 10]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["0.1", "1", "∞"]
    base = next(line for line in figure.axes[0].lines if line.get_label() == "base")
    assert list(base.get_ydata()) == [0.5, 0.5]
    assert list(base.get_xdata()) == [0, 1]  # from edge to edge


def test_a_measure_may_be_the_abscissa():
    """A line goes through the means of the measure: clusters made, not clusters allowed."""
    found = [
        ("ours", {"n": n}, k, None, v) for n, x, y in ((1, 7, 0.5), (2, 9, 0.2)) for k, v in (("made", x), ("share", y))
    ]
    experiment = EXPERIMENT | {"measures": ["share", "made"]}
    table = cells(*found)[::-1].set_axis(range(10, 14))
    spec = {"kind": "line", "y": "share", "x": "made"}
    [ax] = lines.lines(Chart(table, table, experiment, spec, {})).axes
    [line] = [line for line in ax.lines if len(line.get_xdata())]
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([7, 9], [0.5, 0.2])


def test_figures_stand_below_each_other(tmp_path):
    table = cells(("ours", {"size": 2}, "share", None, 0.5), ("ours", {"size": 10}, "share", None, 0.4))
    spec = {"kind": "line", "x": "dataset_params.size", "y": "share"}
    for count, name in ((1, "one"), (2, "two")):
        experiment = EXPERIMENT | {"figure": [spec] * count}
        drawing.draw(table, table, experiment, {}, tmp_path / name)
    one, two = (ElementTree.parse(tmp_path / n).getroot() for n in ("one", "two"))
    height = lambda e: float(e.get("height").removesuffix("pt"))  # noqa: E731
    assert height(two) == pytest.approx(2 * height(one))
    inner = [e for e in two if e.tag.endswith("svg")]
    assert [float(e.get("y")) for e in inner] == [0, pytest.approx(height(one))]


SPECS = [
    {"kind": "dots", "y": "share"},
    {"kind": "curve", "y": "share"},
    {"kind": "curve", "y": "share", "x": "seconds"},
    {"kind": "line", "y": "share", "x": "dataset_params.n"},
    {"kind": "line", "y": "share", "x": "dataset_params.n", "panel": ["dataset_params.size"]},
    {"kind": "scatter", "y": "share", "x": "base", "panel": ["keys.covariate"]},
    {"kind": "flows", "y": "share", "x": "poll"},
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("found", [[("ours", {}, "share", None, np.nan)], [("ours", {}, "share", None, 0.5)], []])
def test_a_figure_without_data_is_a_sentence(tmp_path, spec, found):
    table = cells(("ours", {}, "other", None, np.nan), *found)
    assert drawing.draw(table, table, EXPERIMENT | {"figure": spec}, {}, tmp_path / "f.svg") == []
    picture = ElementTree.parse(tmp_path / "f.svg").getroot()
    if spec["kind"] != "dots" or found != [("ours", {}, "share", None, 0.5)]:  # one value without x makes dots only
        assert "".join(picture.itertext()) == "No run of this figure has a result."


def test_a_figure_that_fails_leaves_the_others(tmp_path):
    table = cells(("ours", {"size": "<x>"}, "share", None, 0.5))
    lines = {"kind": "line", "y": "share", "x": "dataset_params.size"}
    experiment = EXPERIMENT | {"figure": [lines, {"kind": "dots", "y": "share"}]}
    [reason] = drawing.draw(table, table, experiment, {}, tmp_path / "f.svg")
    assert reason.startswith("ValueError: Unable to parse string")
    first, second = (e for e in ElementTree.parse(tmp_path / "f.svg").getroot() if e.tag.endswith("svg"))
    assert "This figure failed: ValueError" in "".join(first.itertext())
    assert "<x>" in "".join(first.itertext())
    assert len(list(second.iter())) > 20


def test_a_legend_of_many_series_stands_below_the_first_panel():
    """The first page shows that part of the figure."""
    names = [f"Divisive, uniform budgets, {i}" for i in range(10)]
    experiment = EXPERIMENT | {"methods": {f"m{i}": {"name": name} for i, name in enumerate(names)}}
    found = [(f"m{i}", {"size": s, "n": n}, "share", None, i * n) for i in range(10) for s in (1, 2, 3) for n in (1, 2)]
    table = cells(*found)
    spec = {
        "kind": "line",
        "y": "share",
        "x": "dataset_params.n",
        "series": ["method"],
        "panel": ["dataset_params.size"],
    }
    figure = lines.lines(Chart(table, table, experiment, spec, {}))
    figure.canvas.draw()
    [legend] = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width / 3
    assert {text.get_text() for text in legend.get_texts()} == set(names)


def test_lines_are_named_inside_the_height_of_their_panel():
    """Names keep apart, though the lines end at one height, on a logarithmic axis too."""
    found = [(f"m{k}", {"n": n}, "share", None, 10.0**-n) for k in range(6) for n in (1, 2, 3)]
    experiment = EXPERIMENT | {"methods": {f"m{k}": {} for k in range(6)}}
    spec = {"kind": "line", "y": "share", "x": "dataset_params.n", "y_log": True}
    [ax] = lines.lines(Chart(cells(*found), cells(*found), experiment, spec, {})).axes
    heights = sorted(text.xy[1] for text in ax.texts)
    assert len(heights) == 6
    assert heights[0] > 0
    assert heights[-1] < 0.5  # the lines end at the bottom
    assert np.diff(heights).min() > 0.06


def test_a_wide_interval_leaves_the_lines_apart():
    found = [("ours", {"n": n}, "share", None, v) for n in (1, 2) for v in (n - 50.0, float(n), n + 50.0)]
    spec = {"kind": "line", "y": "share", "x": "dataset_params.n"}
    [ax] = lines.lines(Chart(cells(*found), cells(*found), EXPERIMENT, spec, {})).axes
    low, high = ax.get_ylim()
    assert high - low == pytest.approx(1 + 2 * lines.SPREAD)


def test_printed_numbers_are_marks_beside_their_line():
    table = cells(("ours", {"n": 1}, "share", None, 0.1), ("ours", {"n": 2}, "share", None, 0.2))
    table["reported"] = [0.15, np.nan]
    figure = lines.lines(Chart(table, table, EXPERIMENT, {"kind": "line", "y": "share", "x": "dataset_params.n"}, {}))
    [marks] = [line for line in figure.axes[0].lines if line.get_marker() == "D" and len(line.get_xdata())]
    assert (marks.get_xdata().tolist(), marks.get_ydata().tolist()) == ([1], [0.15])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["printed in the source"]


def test_a_map_shows_places_inside_its_extent_in_the_right_order():
    """In Albers's projection south lies below north and west left of east; Alaska is left out."""
    places = (("WA", -120, 47), ("FL", -82, 28), ("ME", -69, 45), ("AK", -152, 64))
    keys = [dict(zip(("state", "longitude", "latitude"), place, strict=True)) for place in places]
    found = [("ours", {}, "share", one, 0.2 * k) for k, one in enumerate(keys)]
    spec = {"kind": "map", "y": "share", "extent": [-125, -66, 24, 50]}
    ax, *_ = maps.areas(Chart(cells(*found), cells(*found), EXPERIMENT, spec, {})).axes
    at = {text.get_text(): text.get_position() for text in ax.texts}
    assert set(at) == {"WA", "FL", "ME"}
    assert at["FL"][1] < at["ME"][1] < at["WA"][1] + 0.1
    assert at["WA"][0] < at["FL"][0] < at["ME"][0]
    assert ax.collections[0].get_array().tolist() == pytest.approx([0.0, 0.2, 0.4])
    assert {t.get_text(): t.get_color() for t in ax.texts} == {"WA": "w", "FL": "w", "ME": "k"}  # on dark, on light


def test_the_projection_is_the_one_of_the_united_states():
    """Snyder (1987), Map Projections: A Working Manual, page 291: 35° N 75° W with the centre 23° N 96° W, radius 1."""
    x, y = maps.project_albers(np.array([-75.0, 35.0])) - maps.project_albers(np.array([-96.0, 23.0]))
    assert (x, y) == pytest.approx((0.2952720, 0.2416774), abs=1e-6)


def test_a_drawing_has_a_title_and_a_description(tmp_path):
    table = cells(("ours", {}, "share", None, 0.5))
    experiment = EXPERIMENT | {"caption": "What is < shown."}
    drawing.draw(table, table, experiment, {}, tmp_path / "f.svg")
    root = ElementTree.parse(tmp_path / "f.svg").getroot()
    words = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert (words["title"], words["desc"]) == ("T", "What is < shown.")
    assert root.get("role") == "img"
