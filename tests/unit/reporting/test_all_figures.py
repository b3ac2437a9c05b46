"""The figure of every experiment that needs no keys, drawn from results that are made up."""

import zlib

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from samples import ROOT

from agglearn_workflow.config import loading
from agglearn_workflow.figures import charts, drawing
from agglearn_workflow.plan import Plan
from agglearn_workflow.tables import summary

CONFIG = loading.load(ROOT)
PLAN = Plan(CONFIG)
TITLES = {name: entry["title"] for name, entry in CONFIG["datasets"].items()}
SPECS = [
    pytest.param((name, spec), id=f"{name}-{k}")
    for name, e in PLAN.experiments.items()
    for figure in [e.get("figure") or {"kind": "dots", "y": e["measures"][0]}]
    for k, spec in enumerate(figure if isinstance(figure, list) else [figure])
    if spec["kind"] in ("dots", "line", "curve") and not any(f.startswith("keys") for f in spec.get("dodge", []))
]


def made_up(name: str, spec: dict) -> pd.DataFrame:
    """Rows of the runs of an experiment: a positive value per measure that the figure shows, or three over steps."""
    measures = {spec["y"], spec.get("x")} & set(PLAN.experiments[name]["measures"]) | {spec["y"]}
    rows = []
    for run in PLAN.runs(name):
        cell = {key: getattr(run, key) for key in summary.CELL} | {"run": run.key, "seed": run.seed, "status": "ok"}
        for measure in {*measures, "seconds"}:
            start = 0.1 + zlib.crc32(f"{run.key} {measure}".encode()) / 2**32
            for step in (1, 2, 4) if spec["kind"] == "curve" else (np.nan,):
                value = {"value": start * (1 if np.isnan(step) else step), "unit": "s" * (measure == "seconds")}
                value |= {"measure": measure, "step": step, "keys": None, "overlap": 0.0, "tested": ""}
                rows.append(cell | value)
    return pd.DataFrame(rows).astype({"keys": object})


@pytest.fixture(scope="module", params=SPECS)
def figure(request):
    name, spec = request.param
    experiment = PLAN.experiments[name]
    rows = made_up(name, spec)
    table = summary.summarise(rows.assign(reason=None), experiment)
    with matplotlib.rc_context(charts.STYLE):
        drawn = drawing.draw_chart(charts.Chart(rows, table, experiment, spec, TITLES))
        drawn.draw_without_rendering()
    return drawn


def texts(figure) -> list[Text]:
    """Those that are seen: an axis has ticks beyond its ends too."""
    beyond = [
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks() + axis.get_minor_ticks()
        for label in (tick.label1, tick.label2)
        if not np.isclose(np.clip(tick.get_loc(), *sorted(axis.get_view_interval())), tick.get_loc(), rtol=1e-6)
    ]
    return [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible() and t not in beyond]


def test_texts_of_8_points_lie_inside_a_figure_that_fits_the_page(figure):
    drawn = texts(figure)
    assert min(text.get_fontsize() for text in drawn) >= 8
    boxes = {text.get_text(): text.get_window_extent() for text in drawn}
    page = figure.bbox.padded(1)
    within = {text for text, box in boxes.items() if page.contains(*box.min) and page.contains(*box.max)}
    assert {text for text, box in boxes.items() if box.x0 < 0} | (boxes.keys() - within) == set()
    assert figure.get_figwidth() <= 7


def test_texts_do_not_lie_on_one_another(figure):
    boxes = [(text.get_text(), text.get_window_extent().padded(-1.5)) for text in texts(figure)]
    assert [(a, b) for k, (a, one) in enumerate(boxes) for b, two in boxes[:k] if one.overlaps(two)] == []


def test_texts_are_told_from_white(figure):
    """The contrast of WCAG 2, 4.5 or more."""
    colours = np.array([to_rgb(text.get_color()) for text in texts(figure)])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    assert (1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)).min() >= 4.5


def test_values_with_their_intervals_lie_inside_the_axes(figure, request):
    _, spec = request.node.callspec.params["figure"]
    if "y_from" in spec or "x_from" in spec or spec.get("x_none"):
        return
    for axes in (axes for axes in figure.axes if axes.axison):
        drawn, seen = axes.dataLim, axes.viewLim.padded(1e-9)
        assert (seen.ymin, seen.ymax) == (pytest.approx(min(seen.ymin, drawn.ymin)), max(seen.ymax, drawn.ymax))
        assert (seen.xmin, seen.xmax) == (pytest.approx(min(seen.xmin, drawn.xmin)), max(seen.xmax, drawn.xmax))
