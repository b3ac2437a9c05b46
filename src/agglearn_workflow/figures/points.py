"""Dots with intervals, and scatters."""

import textwrap
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from agglearn_workflow.figures import charts
from agglearn_workflow.figures.charts import Chart
from agglearn_workflow.tables.printed_table import undistinguished


def dots(chart: Chart) -> Figure | None:
    """Means with intervals, a row per series. Parameters that rows share their name with have colours."""
    table, spec = chart.table, chart.spec
    chosen = table[(table["measure"] == spec["y"]) & table["mean"].notna()]
    if chosen.empty:
        return None
    labels, panels = chart.series(chosen), chosen["dataset"].map(lambda d: chart.titles.get(d, d))
    dodge = spec.get("dodge") or undistinguished(chosen, ["dataset", *spec.get("series", ["method"])])
    colours, names = chart.names(chosen, dodge), chart.ordered(panels, chosen)
    if labels.nunique() == 1:  # one method on many data sets, which are the rows then
        labels, panels, names = panels, labels, list(labels[:1])
    order, levels = list(dict.fromkeys(labels)), sorted(set(colours), key=charts.natural)
    palette = chart.colours(chosen, dodge, len(levels))
    shift = (colours.map(levels.index) - (len(levels) - 1) / 2) * 0.7 / len(levels)
    chosen = chosen.assign(y=labels.map(order.index) + shift, half=(chosen["high"] - chosen["low"]) / 2)
    texts = [textwrap.fill(label, charts.ROW_LABEL) for label in order]
    row = max(0.32, 0.1 + 0.17 * max(1 + text.count("\n") for text in texts)) + 0.12 * (len(levels) - 1)
    longest = max(len(line) for text in texts for line in text.splitlines())
    figure, axes = charts.grid(names, 0.95 + row * len(order), indent=charts.LETTER * longest)
    for name, ax in zip(names, axes, strict=True):
        panel = chosen[panels == name]
        printed = panel[panel["reported"].notna()]
        for k, level in enumerate(levels):
            drawn = panel[colours[panel.index] == level]
            look: dict[str, Any] = {"fmt": charts.marker(k), "ms": 4, "color": palette[k], "capsize": 2}
            ax.errorbar(drawn["mean"], drawn["y"], xerr=drawn["half"], label=level * (len(levels) > 1) or None, **look)
        ax.plot(printed["reported"], printed["y"], "D", mfc="none", mec="black", ms=5)
        ax.set_yticks(range(len(order)), texts)
        cell = ax.get_subplotspec()
        ax.tick_params(labelleft=cell is None or cell.is_first_col())
        if spec.get("y_log"):
            ax.set_xscale("log")
            charts.readable(ax.xaxis)
        else:
            ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set(xlabel=chart.label("y", chosen), ylim=(len(order) - 0.5, -0.5))
    if chosen["reported"].notna().any():
        axes[0].plot([], [], "D", mfc="none", mec="black", ms=5, label=charts.PRINTED)
    charts.legend(figure, *axes[0].get_legend_handles_labels())
    return figure


def scatter(chart: Chart) -> Figure | None:
    """Values of the methods by key against those of the method `x`, or against the same method's measure `x`. A line
    joins few points."""
    table, spec = chart.table, chart.spec
    measured = table[table["mean"].notna()]
    points = measured[(measured["measure"] == spec["y"]) & measured["keys"].notna()]
    keys = ["dataset", "dataset_params", "keys"]
    if spec["x"] in chart.experiment["methods"]:
        is_base = points["method"] == spec["x"]
        base, points = points[is_base], points[~is_base]
    else:
        base = measured[measured["measure"] == spec["x"]]
        keys += ["method", "params"]
    points = points.merge(base[[*keys, "mean"]].drop_duplicates(keys), on=keys, suffixes=("", "_base"))
    if points.empty:
        return None
    panel, labels = chart.panels(points), chart.series(points)
    names = chart.ordered(panel, points)
    figure, axes = charts.grid(names, 3.2, width=3.6, indent=1.4)
    for name, ax in zip(names, axes, strict=True):
        for k, label in enumerate(dict.fromkeys(labels)):
            xy = points.loc[(panel == name) & (labels == label), ["mean_base", "mean"]].sort_values("mean_base")
            few = len(xy) <= charts.MARKED
            look = charts.marker(k) + "-" * few
            ax.plot(*xy.to_numpy().T, look, ms=3 + few, alpha=0.7 + 0.3 * few, color=charts.color(k), label=label)
        same = (panel == name) | (points["dataset"].nunique() == 1)  # panels on one data set have one scale
        both = points.loc[same, ["mean_base", "mean"]].to_numpy()
        scale, margin = "log" if spec.get("x_log") else "linear", 0.04 * np.ptp(both)
        ends = [both.min() * 0.8, both.max() * 1.25] if scale == "log" else [both.min() - margin, both.max() + margin]
        ax.plot(ends, ends, color="0.6", lw=0.8, zorder=0)
        ax.set(xlabel=chart.label("x"), xscale=scale, yscale=scale, aspect="equal", xlim=ends, ylim=ends)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if scale == "log" else MaxNLocator(5))
            axis.set_major_formatter(charts.tick)
            axis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel(chart.label("y"))
    if labels.nunique() > 1:
        drawn = {line.get_label(): line for ax in axes for line in ax.lines if np.size(line.get_xdata())}
        charts.legend(figure, [drawn[label] for label in dict.fromkeys(labels)], list(dict.fromkeys(labels)))
    return figure
