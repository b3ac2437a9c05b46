"""Lines with intervals, named at their right ends: curves over steps or seconds, and means over a parameter."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from agglearn.evaluation.intervals import mean_interval
from agglearn_workflow.figures.panels import COLORS, WIDTH, Chart, axis_label, color, grid, natural
from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables import summary
from agglearn_workflow.tables.numbers import number

MAX_NAMED = len(COLORS)  # lines with a colour and a name at their ends, more have a legend
LABEL = 24  # letters in a line of a name
LABEL_WIDTH = 1.2  # inches beside a panel for the names of its lines
LINE_HEIGHT = 0.055  # of the panel
MARKERS, MARKED = "os^vPX*", 12  # forms, and at most so many on a line
STROKES = ("-", "--", ":")


def curves(chart: Chart) -> Figure | None:
    chosen = _chosen(chart, chart.rows["step"].notna())
    chosen["x"] = chosen["step"]
    if chart.spec.get("x") == "seconds":
        clock = chart.rows[(chart.rows["measure"] == "seconds") & chart.rows["step"].notna()]
        chosen = chosen.merge(clock[["run", "step", "value"]], on=["run", "step"], suffixes=("", "_clock"))
        by = [chart.panels(chosen), "series", "step"]
        chosen["x"] = chosen.groupby(by)["value_clock"].transform("mean")
    return _draw(chart, chosen, chart.table[:0].assign(series=""), chart.spec.get("x_label", "iteration"))


def lines(chart: Chart) -> Figure | None:
    """Means over seeds against a parameter or the mean of a measure, printed values as marks. `x_none`: rows without
    it stand at the right."""
    spec, table = chart.spec, chart.table
    chosen = _chosen(chart, chart.rows["step"].isna())
    chosen["x"] = _numbers(chosen, chart)
    if "x_none" in spec:
        chosen["x"] = chosen["x"].fillna(_beyond(chosen["x"], spec.get("x_log")))
    printed = table[(table["measure"] == spec["y"]) & table["reported"].notna()]
    printed = printed.assign(series=chart.series(printed), x=_numbers(printed, chart))
    label = spec.get("x_label", spec["x"].rpartition(".")[2].replace("_", " "))
    return _draw(chart, chosen[chosen["x"].notna()], printed, label)


def _chosen(chart: Chart, mask: pd.Series) -> pd.DataFrame:
    chosen = chart.rows[mask & (chart.rows["measure"] == chart.spec["y"]) & chart.rows["value"].notna()]
    return chosen.assign(series=chart.series(chosen))


def _numbers(frame: pd.DataFrame, chart: Chart) -> pd.Series:
    """The abscissa of each row: a column, a parameter, or the mean of a measure of the row's cell."""
    x, table = chart.spec["x"], chart.table
    if x not in chart.experiment.get("measures", ()):
        return pd.to_numeric(summary.column_or_param(frame, x)).astype(float)
    means = table[(table["measure"] == x) & table["keys"].isna()].drop_duplicates(CELL)[[*CELL, "mean"]]
    return frame[CELL].merge(means, "left", on=CELL)["mean"].set_axis(frame.index).astype(float)


def _beyond(x: pd.Series, log: bool | None) -> float:
    """A number to the right of all values, as far from the last as the values are from one another."""
    present = np.sort(x.dropna().unique())
    if len(present) < 2:
        return 10 * present[0] if len(present) else 1.0
    return present[-1] * (present[-1] / present[-2]) if log else 2 * present[-1] - present[-2]


def _draw(chart: Chart, chosen: pd.DataFrame, printed: pd.DataFrame, x_label: str) -> Figure | None:
    if chosen.empty:
        return None
    spec, panel, of_printed = chart.spec, chart.panels(chosen), chart.panels(printed)
    names, order = chart.ordered(panel, chosen), _order(chosen, chart.experiment)
    highlighted = {h["series"]: h["name"] for h in spec.get("highlight", [])}
    highlighted = highlighted if set(highlighted) & set(order) else {}  # else none of them has a result
    labels = highlighted or ({s: s for s in order} if len(order) <= MAX_NAMED else {})
    labels = {s: textwrap.fill(text, LABEL) for s, text in labels.items()}
    beside = bool(labels) and len(order) > 1
    figure, axes = grid(names, 3.2, max_columns=2 if beside else 3, width=WIDTH + LABEL_WIDTH * beside)
    end = chosen["x"].max() if "x_none" in spec else None
    looks = {label: _look(k, label, highlighted) for k, label in enumerate(order)}
    for name, ax in zip(names, axes, strict=True):
        ends = _panel(ax, chosen[panel == name], printed[of_printed == name], looks, labels, end, spec)
        _scales(ax, spec, x_label, chosen, end)
        if beside:
            _label_ends(ax, ends)
    axes[0].set_ylabel(axis_label(spec, chosen))
    if "title" in spec:
        figure.suptitle(spec["title"], x=0.01, ha="left", fontsize=11, fontweight="bold")
    unnamed = axes if len(order) > 1 and not labels else []  # a panel may have lines that the first one lacks
    drawn = {text: line for ax in unnamed for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    texts = sorted(drawn, key=order.index)
    handles = [drawn[text] for text in texts]
    if len(printed):
        handles.append(axes[0].plot([], [], "D", mfc="none", mec="0.3", ms=5)[0])
        texts.append("printed in the source")
    if handles:
        figure.legend(handles, texts, fontsize=7, frameon=False, loc="outside lower left", ncols=2)
    return figure


def _panel(
    ax: Axes, rows: pd.DataFrame, printed: pd.DataFrame, looks: dict, names: dict, end: float | None, spec: dict
) -> dict[str, tuple[float, str]]:
    """Draw a panel's lines and printed values, and return name → (end, colour) of the lines that are named."""
    ax.set_xscale("log" if spec.get("x_log") else "linear")
    ax.set_yscale("log" if spec.get("y_log") else "linear")
    ends: dict[str, tuple[float, str]] = {}
    for label, look in looks.items():
        line, marks = rows[rows["series"] == label], printed[printed["series"] == label]
        if line.empty:
            continue
        points = _line(ax, line, end, bool(spec.get("y_log")), label in names, label=label, **look)
        if label in names:
            ends[names[label]] = (points[-1, 1], look["color"])
        if len(printed):
            ax.plot(marks["x"], marks["reported"], "D", mfc="none", mec=look["color"], ms=5)
        if "y_from" in spec:
            _mark_leaving(ax, look["color"], points, spec["y_from"])
    ax.set_ylim(bottom=spec.get("y_from"))
    return ends


def _look(k: int, label: str, highlighted: dict) -> dict:
    if not highlighted:
        return _drawn(k) | {"ls": STROKES[k // MAX_NAMED % len(STROKES)], "lw": 1.4}
    if label in highlighted:
        return _drawn(list(highlighted).index(label)) | {"ls": "-", "lw": 1.8, "zorder": 3}
    return {"color": "0.75", "marker": ".", "ls": "-", "lw": 0.8}


def _drawn(k: int) -> dict:
    return {"color": color(k), "marker": MARKERS[k % len(MARKERS)]}


def _scales(ax: Axes, spec: dict, x_label: str, chosen: pd.DataFrame, end: float | None) -> None:
    ax.set_xlabel(x_label)
    if "x_from" in spec:
        ax.set_xlim(left=spec["x_from"])
    if spec.get("x_log"):
        _readable(ax.xaxis)
    if spec.get("y_log"):
        _readable(ax.yaxis)
    if end is not None:
        ticks = sorted(chosen["x"].unique())
        ax.set_xticks(ticks, [spec["x_none"] if x == end else f"{x:g}" for x in ticks])
        ax.minorticks_off()


def _mark_leaving(ax: Axes, line: str, points: np.ndarray, bottom: float) -> None:
    """An arrow on the lower edge with the lowest mean of a line that leaves the axis there."""
    x, mean = points[np.argmin(np.nan_to_num(points[:, 1], nan=np.inf)), :2]
    if mean < bottom:
        ax.plot(x, bottom, "v", color=line, clip_on=False, zorder=4)
        ax.annotate(number(mean), (x, bottom), (4, 4), textcoords="offset points", color=line, fontsize=7)


def _label_ends(ax: Axes, ends: dict[str, tuple[float, str]]) -> None:
    """Write the names of lines at their right ends, moved apart so that they do not overlap."""
    transform = (ax.transScale + ax.transLimits).transform
    heights = {text: np.clip(np.nan_to_num(transform((1, y))[1]), 0, 1) for text, (y, _) in ends.items()}
    order = sorted(heights, key=lambda text: heights[text])
    y = np.array([heights[text] for text in order])
    need = np.array([LINE_HEIGHT * (1 + text.count("\n")) + 0.015 for text in order])
    for _ in range(300):
        short = np.maximum((need[1:] + need[:-1]) / 2 - np.diff(y), 0) / 2
        y = y - np.append(short, 0) + np.insert(short, 0, 0)
        y = np.clip(y, need / 2, 1 - need / 2)
    for text, height in zip(order, y, strict=True):
        ax.annotate(
            text, (1.01, height), xycoords="axes fraction", color=ends[text][1], fontsize=8, va="center",
            linespacing=1.0,
        )  # fmt: skip


def _order(chosen: pd.DataFrame, experiment: dict) -> list[str]:
    labels = list(chosen["series"].unique())
    if len(labels) <= MAX_NAMED:
        return sorted(labels, key=natural)
    rank = chosen["method"].map(list(experiment["methods"]).index).groupby(chosen["series"]).min()
    return sorted(labels, key=lambda label: (rank[label], natural(label)))


def _readable(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 with plain numbers where a logarithmic axis spans few powers of ten."""
    low, high = axis.get_view_interval()
    if high < 300 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda x, _: number(x))
    axis.set_minor_formatter(NullFormatter())


def _line(ax: Axes, rows: pd.DataFrame, end: float | None, log: bool, band: bool, **look: Any) -> np.ndarray:
    """Draw means and intervals, on a log axis not below the smallest value, and return x, mean, low, high, smallest."""
    points = np.array(
        [[x, *mean_interval(g["value"], summary.overlap_of(g)), g["value"].min()] for x, g in rows.groupby("x")]
    )
    if log:
        points[:, 2] = np.maximum(points[:, 2], points[:, 4])
        points[points[:, 1] <= 0] = np.nan
    x, mean, low, high = points[:, :4].T
    band = band and np.isfinite(low).any()
    if end is not None and len(points) == 1 and x[0] == end:
        ax.axhline(mean[0], alpha=0.8, **look | {"lw": 0.7 * look["lw"], "marker": ""})
        if band:
            ax.axhspan(low[0], high[0], color=look["color"], alpha=0.08, lw=0)
        return points
    ax.plot(x, mean, ms=4, markevery=-(-len(points) // MARKED), **look)
    if band:
        ax.fill_between(x, low, high, color=look["color"], alpha=0.15, lw=0)
    return points
