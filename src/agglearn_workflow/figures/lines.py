"""Curves over steps, and lines over a parameter."""

import textwrap
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agglearn_workflow.figures import charts
from agglearn_workflow.figures.charts import Chart
from agglearn_workflow.figures.points import dots
from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables.numbers import number
from agglearn_workflow.tables.summary import column_or_param, intervals

# No interval goes beyond.
RANGES = dict.fromkeys(("auc", "accuracy", "calibration_error", "brier"), (0, 1)) | {"nllh": (-np.inf, 1)}
LABEL = 26  # letters in a line of a name
LABEL_WIDTH = 1.2  # inches beside a panel for the names of its lines
LINE_HEIGHT = 0.13  # inches
MARGIN = 0.8  # inches of a panel's height for its title and axis
MANY = 6  # panels, above which the lines are named in a legend
VISIBLE = 0.01  # of a panel's height: what leaves the axis by less is not marked
STROKES, TICKS = ("-", "--", ":"), 8  # at most so many values are the ticks


def curves(chart: Chart) -> Figure | None:
    chosen = _chosen(chart, chart.rows["step"].notna())
    if chart.spec.get("x") == "seconds":
        clock = chart.rows[(chart.rows["measure"] == "seconds") & chart.rows["step"].notna()]
        chosen = chosen.merge(clock[["run", "step", "value"]], on=["run", "step"], suffixes=("", "_clock"))
    chosen = _carried(chosen, [chart.panels(chosen), "series"])
    chosen["x"] = chosen["step"]
    if "value_clock" in chosen:
        chosen["x"] = chosen.groupby([chart.panels(chosen), "series", "step"])["value_clock"].transform("mean")
    return _draw_lines(chart, chosen, chart.table[:0].assign(series=""), chart.spec.get("x_label", "iteration"))


def _carried(chosen: pd.DataFrame, line: list) -> pd.DataFrame:
    """Each run at all steps of its line, so that a mean is of all runs: where a run has no value, its last one counts."""
    chosen = chosen.assign(line=chosen.groupby(line).ngroup())
    steps = chosen[["line", "step"]].drop_duplicates().sort_values("step")
    every = chosen[["run", "line"]].drop_duplicates().merge(steps).merge(chosen, "left")
    return every.fillna(every.groupby("run").ffill()).dropna(subset="value")


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
    if chosen["x"].nunique() == 1:  # which makes no line
        y_label = (
            f"{chart.label('y', chosen)}\n{label}{' = ' if len(label) < 3 else ': '}{charts.tick(chosen['x'].max())}"
        )
        return dots(replace(chart, spec=spec | {"y_label": y_label, "dodge": spec.get("panel")}))
    return _draw_lines(chart, chosen[chosen["x"].notna()], printed, label)


def _chosen(chart: Chart, mask: pd.Series) -> pd.DataFrame:
    chosen = chart.rows[mask & (chart.rows["measure"] == chart.spec["y"]) & chart.rows["value"].notna()]
    return chosen.assign(series=chart.series(chosen))


def _numbers(frame: pd.DataFrame, chart: Chart) -> pd.Series:
    """The abscissa of each row: a column, a parameter, or the mean of a measure of the row's cell."""
    x, table = chart.spec["x"], chart.table
    if x not in chart.experiment.get("measures", ()):
        return pd.to_numeric(column_or_param(frame, x)).astype(float)
    means = table[(table["measure"] == x) & table["keys"].isna()].drop_duplicates(CELL)[[*CELL, "mean"]]
    return frame[CELL].merge(means, "left", on=CELL)["mean"].set_axis(frame.index).astype(float)


def _beyond(x: pd.Series, log: bool | None) -> float:
    """A number to the right of all values, as far from the last as the values are from one another."""
    present = np.sort(x.dropna().unique())
    if len(present) < 2:
        return 10 * present[0] if len(present) else 1.0
    return present[-1] * (present[-1] / present[-2]) if log else 2 * present[-1] - present[-2]


def _draw_lines(chart: Chart, chosen: pd.DataFrame, printed: pd.DataFrame, x_label: str) -> Figure | None:
    if chosen.empty:
        return None
    spec, panel, of_printed = chart.spec, chart.panels(chosen), chart.panels(printed)
    names, order = chart.ordered(panel, chosen), _order(chosen, chart.experiment)
    present = {s: name for s, name in spec.get("highlight", {}).items() if s in order}
    highlighted = present if 2 * len(present) > len(spec.get("highlight", {})) else {}  # else the others are named, too
    labels = {s: textwrap.fill(present.get(s, s), LABEL) for s in highlighted or order}
    is_shared, beside = not spec.get("own_y"), len(order) > 1 and len(names) <= MANY
    columns, height = 2 if beside or len(names) % 3 else 3, 3.2 if len(names) == 1 else 2.4
    width, indent = charts.WIDTH + LABEL_WIDTH * beside, 0.4 if is_shared else 0.4 * columns
    figure, axes = charts.grid(names, height, columns, width, indent, is_shared)
    end = chosen["x"].max() if "x_none" in spec else None
    colours = chart.colours(chosen, spec.get("series", ["method"]), len(order))
    looks = {label: _look(k, label, colours, highlighted) for k, label in enumerate(order)}
    rows = [chosen[panel == name] for name in names]
    highest = chosen.groupby([panel, "series", "x"])["value"].mean().groupby(level=0).max()
    specs = [_reached(spec, highest.max() if is_shared else highest[name]) for name in names]
    drawn = [
        _panel(ax, mine, printed[of_printed == name], looks, set(labels), end, of_panel)
        for ax, mine, name, of_panel in zip(axes, rows, names, specs, strict=True)
    ]
    bottoms = [
        _bottom(axes, drawn, set(labels), of_panel) if is_shared else _bottom([ax], [lines], set(labels), of_panel)
        for ax, lines, of_panel in zip(axes, drawn, specs, strict=True)
    ]
    for ax, mine in zip(axes, rows, strict=True):
        _scales(ax, spec, x_label, mine, end)
    ends = [
        _leave(ax, lines, bottom, looks, labels if beside else {})
        for ax, lines, bottom in zip(axes, drawn, bottoms, strict=True)
    ]
    if beside:
        n_lines = max(sum(1 + text.count("\n") for text in texts) for texts in ends)
        taller = max(height, MARGIN + (LINE_HEIGHT + 0.02) * n_lines)
        figure.set_figheight(figure.get_figheight() * taller / height)
        for ax, of_panel in zip(axes, ends, strict=True):
            _label_ends(ax, of_panel, LINE_HEIGHT / (taller - MARGIN))
    axes[0].set_ylabel(textwrap.fill(chart.label("y", chosen), charts.ROW_LABEL))
    handles = [axes[0].plot([], [], **looks[s])[0] for s in labels] if len(order) > 1 and not beside else []
    texts = [present.get(s, s) for s in labels][: len(handles)]
    if len(printed):
        handles, texts = [*handles, *axes[0].plot([], [], "D", mfc="none", mec="0.3", ms=5)], [*texts, charts.PRINTED]
    charts.legend(figure, handles, texts)
    return figure


def _reached(spec: dict, highest: float) -> dict:
    """The figure without `y_from` where no mean is so high."""
    return {key: value for key, value in spec.items() if key != "y_from" or highest >= value}


def _panel(
    ax: Axes, rows: pd.DataFrame, printed: pd.DataFrame, looks: dict, named: set, end: float | None, spec: dict
) -> dict[str, np.ndarray]:
    """Draw a panel's lines and printed values, and return name → points of each line."""
    ax.set_xscale("log" if spec.get("x_log") else "linear")
    ax.set_yscale("log" if spec.get("y_log") else "linear")
    lines: dict[str, np.ndarray] = {}
    for label, look in looks.items():
        line, marks = rows[rows["series"] == label], printed[printed["series"] == label]
        if line.empty:
            continue
        lines[label] = _line(ax, line, end, spec, label in named, label=label, **look)
        if len(printed):
            ax.plot(marks["x"], marks["reported"], "D", mfc="none", mec=look["color"], ms=5)
    return lines


def _leave(ax: Axes, lines: dict[str, np.ndarray], bottom: float, looks: dict, names: dict) -> dict[str, tuple]:
    """Mark lines that leave the axis, and return name → (end, colour) of the lines that are named. Of lines without a name that
    leave at one place the lowest value is written."""
    ends: dict[str, tuple[float, str]] = {}
    beside: dict[float, float] = {}
    for label, points in lines.items():
        x, lowest = points[np.argmin(np.nan_to_num(points[:, 1], nan=np.inf)), :2]
        leaves = bool((ax.transScale + ax.transLimits).transform((1, lowest))[1] < -VISIBLE)
        if leaves:
            ax.plot(x, bottom, "v", color=looks[label]["color"], clip_on=False, zorder=4)
        if label in names:
            is_hidden = ax.get_xscale() == "log" and points[:, 0].max() <= 0
            beyond = f"(lowest {number(lowest)})" if leaves else "" if np.isfinite(lowest) else "(0)"
            text = "\n".join(filter(None, [names[label], "(only at 0)" if is_hidden else beyond]))
            ends[text] = (points[np.isfinite(points[:, 1])][-1:, 1].sum(), looks[label]["color"])
        elif leaves:
            beside[x] = min(lowest, beside.get(x, lowest))
    for x, lowest in beside.items():
        # at the right a number stands before its mark, for the names of lines are behind it
        at_right = x > np.nanmedian(np.concatenate([line[:, 0] for line in lines.values()]))
        style: dict[str, Any] = {"ha": "right" if at_right else "left", "color": "0.4", "fontsize": charts.SMALL}
        ax.annotate(number(lowest), (x, bottom), (-4 if at_right else 4, 4), textcoords="offset points", **style)
    return ends


def _bottom(axes: list[Axes], panels: list[dict[str, np.ndarray]], named: set, spec: dict) -> float:
    """Set and return the lower end of the axis of some panels: 0 where it is stated, else below means from `y_from` on with their
    intervals, which at most double the axis. Without such means the axis holds all."""
    stated, top = spec.get("y_from", np.inf), max(ax.dataLim.y1 for ax in axes)
    has_band = named if spec["kind"] == "line" else ()
    drawn = [points[:, 1 : 3 if label in has_band else 2] for lines in panels for label, points in lines.items()]
    inside = np.concatenate([line[line[:, 0] >= stated].ravel() for line in drawn])
    if not len(inside):
        return -np.inf
    lowest, is_log = np.nanmin(inside), spec.get("y_log")
    margin = 0.05 * (lowest if is_log else top - lowest or abs(top) or 1.0)
    bottom = stated if stated == 0 else max(lowest - margin, 2 * stated - top)
    axes[0].set_ylim(bottom, None if is_log else top + 0.05 * (top - bottom))
    return bottom


def _look(k: int, label: str, colours: list, highlighted: dict) -> dict:
    if highlighted and label not in highlighted:
        return {"color": "0.75", "marker": ".", "ls": "-", "lw": 0.8}
    stroke = {"ls": STROKES[k // len(charts.COLORS) % len(STROKES)], "lw": 1.4}
    if highlighted:
        k, stroke = list(highlighted).index(label), {"ls": "-", "lw": 1.8, "zorder": 3}
    return {"color": colours[k], "marker": charts.marker(k), **stroke}


def _scales(ax: Axes, spec: dict, x_label: str, rows: pd.DataFrame, end: float | None) -> None:
    ax.set_xlabel(x_label)
    ax.set_xlim(left=spec.get("x_from"))
    if spec.get("y_log"):
        low, high = ax.get_ylim()
        if set(rows["unit"]) == {"s"}:  # a time that does not grow looks flat
            ax.set_ylim(min(low, np.sqrt(low * high / 10)), max(high, np.sqrt(10 * low * high)))
        charts.readable(ax.yaxis)
    values = np.unique(rows["x"][rows["x"] > 0] if spec.get("x_log") else rows["x"])
    if spec["kind"] == "line" and len(values) <= TICKS:
        ax.set_xticks(values, [spec["x_none"] if x == end else charts.tick(x) for x in values])
        ax.xaxis.minorticks_off()
    elif spec.get("x_log"):
        charts.readable(ax.xaxis)


def _label_ends(ax: Axes, ends: dict[str, tuple[float, str]], line_height: float) -> None:
    """Write the names of lines at their right ends, moved apart so that they do not overlap. Heights are of the panel."""
    transform = (ax.transScale + ax.transLimits).transform
    heights = {text: np.clip(np.nan_to_num(transform((1, y))[1]), 0, 1) for text, (y, _) in ends.items()}
    order = sorted(heights, key=lambda text: heights[text])
    y = np.array([heights[text] for text in order])
    need = np.array([line_height * (1 + text.count("\n")) + 0.015 for text in order])
    for _ in range(300):
        short = np.maximum((need[1:] + need[:-1]) / 2 - np.diff(y), 0) / 2
        y = y - np.append(short, 0) + np.insert(short, 0, 0)
        y = np.clip(y, need / 2, 1 - need / 2)
    for text, height in zip(order, y, strict=True):
        ax.annotate(
            text, (1.01, height), xycoords="axes fraction", color=charts.darker(ends[text][1]), fontsize=charts.SMALL, va="center",
            linespacing=1.0,
        )  # fmt: skip


def _order(chosen: pd.DataFrame, experiment: dict) -> list[str]:
    rank = chosen["method"].map(list(experiment["methods"]).index).groupby(chosen["series"]).min()
    return sorted(rank.index, key=lambda label: (rank[label], charts.natural(label)))


def _line(ax: Axes, rows: pd.DataFrame, end: float | None, spec: dict, band: bool, **look: Any) -> np.ndarray:
    """Draw means and intervals, on a log axis not below the smallest value > 0, and return x, mean, low, high, smallest.

    A mean that leaves the axis has no interval, which may be a hundred times as high as the axis.
    """
    values, (x, group) = rows["value"].to_numpy(float), np.unique(rows["x"], return_inverse=True)
    columns = {"overlap": rows["overlap"].to_numpy(float), "positive": np.where(values > 0, values, np.nan)}
    by_x = pd.DataFrame(columns).groupby(group)
    means = intervals(values, group, by_x["overlap"].max().fillna(0.0).to_numpy())
    points = np.column_stack([x, means, by_x["positive"].min()])
    points[:, 2:4] = points[:, 2:4].clip(*RANGES.get(spec["y"], (-np.inf, np.inf)))
    if spec.get("y_log"):
        points[:, 2] = np.minimum(np.maximum(points[:, 2], points[:, 4]), points[:, 1])
        points[points[:, 1] <= 0] = np.nan
    x, mean, low, high = points[:, :4].T
    inside = mean >= spec.get("y_from", -np.inf)
    is_on_axis = (x > 0) | (not spec.get("x_log"))
    band = band and bool((np.isfinite(low) & inside & is_on_axis).any())
    if end is not None and len(points) == 1 and x[0] == end:
        ax.axhline(mean[0], alpha=0.8, **look | {"lw": 0.7 * look["lw"], "marker": ""})
        if band:
            ax.axhspan(low[0], high[0], color=look["color"], alpha=0.08, lw=0)
        return points
    ax.plot(x, mean, ms=4, markevery=-(-len(points) // charts.MARKED), **look)
    if band:
        ax.fill_between(x, low, high, inside, color=look["color"], alpha=0.15, lw=0)
    return points
