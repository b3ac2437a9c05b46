"""Lines with intervals: curves over steps or seconds, and means over a parameter. Lines are named at their right ends."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from agglearn.evaluation.intervals import mean_interval
from agglearn.reporting import summary
from agglearn.reporting.numbers import number
from agglearn.reporting.panels import WIDTH, axis_label, color, grid, natural, ordered, panel_titles, series

MAX_NAMED = 8  # lines with a colour and a name at their ends, more have a legend
LABEL = 24  # letters in a line of a name
LABEL_WIDTH = 1.2  # inches beside a panel for the names of its lines
LINE_HEIGHT = 0.055  # of the panel
SPREAD = 0.75  # of the range of the means, by which intervals may widen an axis
STROKES = ("-", "--", ":")


def curves(
    rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, spec: dict, titles: dict[str, str]
) -> Figure | None:
    """Means over seeds against the step (or the seconds at that step)."""
    chosen = rows[(rows["measure"] == spec["y"]) & rows["step"].notna() & rows["value"].notna()].copy()
    if chosen.empty:
        return None
    chosen["series"] = series(chosen, spec.get("series", ["method"]), experiment)
    chosen["x"] = chosen["step"]
    if spec.get("x") == "seconds":
        clock = rows[(rows["measure"] == "seconds") & rows["step"].notna()]
        chosen = chosen.merge(clock[["run", "step", "value"]], on=["run", "step"], suffixes=("", "_clock"))
        if chosen.empty:
            return None
        panel = panel_titles(chosen, experiment, spec, titles)
        chosen["x"] = chosen.groupby([panel, "series", "step"])["value_clock"].transform("mean")
    return _draw(chosen, None, experiment, spec, titles, spec.get("x_label", "iteration"))


def lines(
    rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, spec: dict, titles: dict[str, str]
) -> Figure | None:
    """Means over seeds against a parameter, with the printed values as marks.

    With `x_none`, rows without the parameter are drawn to the right of its largest value.
    """
    chosen = rows[(rows["measure"] == spec["y"]) & rows["step"].isna() & rows["value"].notna()].copy()
    if chosen.empty:
        return None
    chosen["series"] = series(chosen, spec.get("series", ["method"]), experiment)
    chosen["x"] = _numbers(chosen, spec)
    label = spec.get("x_label", spec["x"].rpartition(".")[2].replace("_", " "))
    if "x_none" in spec:
        chosen["x"] = chosen["x"].fillna(_beyond(chosen["x"], spec.get("x_log")))
    chosen = chosen[chosen["x"].notna()]
    printed = _printed(table, experiment, spec)
    return None if chosen.empty else _draw(chosen, printed, experiment, spec, titles, label)


def _numbers(frame: pd.DataFrame, spec: dict) -> pd.Series:
    return pd.to_numeric(summary.column_or_param(frame, spec["x"])).astype(float)


def _printed(table: pd.DataFrame | None, experiment: dict, spec: dict) -> pd.DataFrame | None:
    """Printed values of the measure, with their series and x. None where there are none."""
    if table is None or "reported" not in table:
        return None
    printed = table[(table["measure"] == spec["y"]) & table["reported"].notna()].copy()
    if printed.empty:
        return None
    printed["series"] = series(printed, spec.get("series", ["method"]), experiment)
    printed["x"] = _numbers(printed, spec)
    return printed


def _beyond(x: pd.Series, log: bool | None) -> float:
    """A number to the right of all values, as far from the last as the values are from one another."""
    present = np.sort(x.dropna().unique())
    if len(present) < 2:
        return 10 * present[0] if len(present) else 1.0
    return present[-1] * (present[-1] / present[-2]) if log else 2 * present[-1] - present[-2]


def _draw(
    chosen: pd.DataFrame,
    printed: pd.DataFrame | None,
    experiment: dict,
    spec: dict,
    titles: dict[str, str],
    x_label: str,
) -> Figure:
    """The figure: a panel per title, in each a line per series."""
    panel = panel_titles(chosen, experiment, spec, titles)
    names = ordered(panel, chosen, experiment)
    order, highlighted = _order(chosen, experiment), {h["series"]: h["name"] for h in spec.get("highlight", [])}
    highlighted = highlighted if set(highlighted) & set(order) else {}  # else none of them has a result
    named = highlighted or ({s: s for s in order} if len(order) <= MAX_NAMED else {})
    named = {s: textwrap.fill(text, LABEL) for s, text in named.items()}
    alone = len(order) == 1
    figure, axes = grid(
        names, 3.2, max_columns=2 if named and not alone else 3, width=WIDTH + LABEL_WIDTH * (bool(named) and not alone)
    )
    end = chosen["x"].max() if "x_none" in spec else None
    looks = {label: _look(k, label, highlighted) for k, label in enumerate(order)}
    of_printed = panel_titles(printed, experiment, spec, titles) if printed is not None else None
    for name, ax in zip(names, axes, strict=True):
        marks = printed[of_printed == name] if printed is not None else None
        ends = _panel(ax, chosen[panel == name], marks, looks, named, end, spec)
        _scales(ax, spec, x_label, chosen, end)
        _label_ends(ax, {} if alone else ends)
    axes[0].set_ylabel(axis_label(spec, chosen))
    if "title" in spec:
        figure.suptitle(spec["title"], x=0.01, ha="left", fontsize=11, fontweight="bold")
    _legend(figure, axes[0], order, named, printed is not None)
    return figure


def _panel(
    ax: Axes, here: pd.DataFrame, printed: pd.DataFrame | None, looks: dict, named: dict, end: float | None, spec: dict
) -> dict[str, tuple[float, str]]:
    """Draw the lines of one panel, with printed values as marks, and return the end and colour of each named line."""
    ax.set_xscale("log" if spec.get("x_log") else "linear")
    ax.set_yscale("log" if spec.get("y_log") else "linear")
    levels, ends = [], {}
    for label, look in looks.items():
        line = here[here["series"] == label]
        if line.empty:
            continue
        points = _line(ax, line, end, bool(spec.get("y_log")), label in named, label=label, **look)
        levels.append(points[:, 1])
        if label in named:
            ends[named[label]] = (points[-1, 1], look["color"])
        if printed is not None:
            marks = printed[printed["series"] == label]
            ax.plot(marks["x"], marks["reported"], "D", mfc="none", mec=look["color"], ms=5)
            levels.append(marks["reported"].to_numpy(float))
    _limit(ax, np.concatenate(levels), spec)
    return ends


def _legend(figure: Figure, ax: Axes, order: list[str], named: dict, printed: bool) -> None:
    """Add a legend below the first panel, with the series that have no name at their ends, and with the marks."""
    handles, labels = ax.get_legend_handles_labels() if len(order) > 1 and not named else ([], [])
    if printed:
        handles.append(ax.plot([], [], "D", mfc="none", mec="0.3", ms=5)[0])
        labels.append("printed in the source")
    if handles:
        figure.legend(handles, labels, fontsize=7, frameon=False, loc="outside lower left", ncols=2)


def _look(k: int, label: str, highlighted: dict) -> dict:
    """Colour and stroke of a series: its own, or where some are highlighted, grey for the others."""
    if not highlighted:
        return {"color": color(k), "ls": STROKES[k // MAX_NAMED % len(STROKES)], "lw": 1.4}
    if label in highlighted:
        return {"color": color(list(highlighted).index(label)), "ls": "-", "lw": 1.8, "zorder": 3}
    return {"color": "0.75", "ls": "-", "lw": 0.8}


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


def _limit(ax: Axes, means: np.ndarray, spec: dict) -> None:
    """Limit the axis to the means. Intervals widen it by a fraction of the range of the means, so that lines stay apart."""
    log = ax.get_yscale() == "log"
    means = means[np.isfinite(means) & (means > (0 if log else -np.inf))]
    means = np.maximum(means, spec.get("y_from", -np.inf))
    low, high = ax.get_ylim()
    if len(means) and means.min() < means.max():
        ends = np.log(means) if log else means
        margin = SPREAD * np.ptp(ends)
        first, last = (np.exp if log else np.asarray)([ends.min() - margin, ends.max() + margin])
        low, high = max(low, first), min(high, last)
    ax.set_ylim(spec.get("y_from", low), high)


def _label_ends(ax: Axes, ends: dict[str, tuple[float, str]]) -> None:
    """Write the names of lines at their right ends, moved apart so that they do not overlap."""
    if not ends:
        return
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
    """Names of the series by number, or in the order of the methods where there are more than eight."""
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
    """Draw means and intervals over x, and return x, mean, low and high of each point.

    A series without the parameter is a level line. On a logarithmic axis an interval ends at the smallest value, since it may
    reach below 0.
    """
    points = np.array(
        [[x, *mean_interval(g["value"], summary.overlap_of(g)), g["value"].min()] for x, g in rows.groupby("x")]
    )
    if log:
        points[:, 2] = np.maximum(points[:, 2], points[:, 4])
        points[points[:, 1] <= 0] = np.nan
    x, mean, low, high = points[:, :4].T
    shown = band and np.isfinite(low).any()
    if end is not None and len(points) == 1 and x[0] == end:
        ax.axhline(mean[0], alpha=0.8, **look | {"lw": 0.7 * look["lw"]})
        if shown:
            ax.axhspan(low[0], high[0], color=look["color"], alpha=0.08, lw=0)
        return points
    ax.plot(x, mean, marker="." if len(points) < 15 else None, **look)
    if shown:
        ax.fill_between(x, low, high, color=look["color"], alpha=0.15, lw=0)
    return points
