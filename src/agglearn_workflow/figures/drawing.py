"""Figures of an experiment, as SVG: dots with intervals, curves over steps, lines over a parameter, scatters, maps."""

import traceback
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from agglearn.errors import describe
from agglearn_workflow.figures import svg
from agglearn_workflow.figures.lines import curves, lines
from agglearn_workflow.figures.maps import areas, flows
from agglearn_workflow.figures.panels import COLORS, STYLE, Chart, axis_label, color, grid

NO_RESULT = "No run of this figure has a result."


def draw(rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, titles: dict[str, str], path: Path) -> list[str]:
    """Write the figures of an experiment below each other. A sentence replaces one without data, and one that fails."""
    main = experiment["table"]["measure"] if "table" in experiment else experiment["measures"][0]
    specs = experiment.get("figure") or {"kind": "dots", "y": main[0] if isinstance(main, list) else main}
    title, caption = experiment["title"], experiment.get("caption", "").strip()
    drawings, failed = [], []
    for spec in specs if isinstance(specs, list) else [specs]:
        try:
            with plt.rc_context(STYLE):  # type: ignore[arg-type]
                figure = KINDS[spec["kind"]](Chart(rows, table, experiment, spec, titles))
                name = spec.get("title", title)
                drawings.append(svg.sentence(NO_RESULT) if figure is None else svg.from_figure(figure, name, caption))
        except Exception as error:
            traceback.print_exc()
            failed.append(describe(error))
            drawings.append(svg.sentence(f"This figure failed: {failed[-1]}"))
        finally:
            plt.close("all")
    svg.write(svg.stack(drawings, title), path)
    return failed


def dots(chart: Chart) -> Figure | None:
    """Means with intervals, one line per series, and the printed values as marks."""
    table, spec = chart.table, chart.spec
    chosen = table[(table["measure"] == spec["y"]) & table["mean"].notna()]
    if chosen.empty:
        return None
    names = [d for d in chart.experiment["datasets"] if d in set(chosen["dataset"])]
    labels = chart.series(chosen)
    order = list(dict.fromkeys(labels))
    figure, axes = grid(names, 0.6 + 0.32 * max(len(order), 2), chart.titles, wrap=28)
    for name, ax in zip(names, axes, strict=True):
        panel = chosen[chosen["dataset"] == name]
        for (_, row), label in zip(panel.iterrows(), labels[panel.index], strict=True):
            y = order.index(label)
            half = (row["high"] - row["low"]) / 2
            interval = half if np.isfinite(half) else None
            ax.errorbar(row["mean"], y, xerr=interval, fmt="o", ms=4, color=COLORS[0], capsize=2)
            if pd.notna(row["reported"]):
                ax.plot(row["reported"], y, "D", mfc="none", mec=COLORS[1], ms=5)
        ax.set_yticks(range(len(order)), order)
        cell = ax.get_subplotspec()
        ax.tick_params(labelleft=cell is None or cell.is_first_col())
        ax.set_ylim(len(order) - 0.5, -0.5)
        if spec.get("y_log"):
            ax.set_xscale("log")
        else:
            ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_xlabel(axis_label(spec, chosen))
        if "y_from" in spec:
            ax.set_xlim(left=spec["y_from"])
    if chosen["reported"].notna().any():
        axes[0].plot([], [], "D", mfc="none", mec=COLORS[1], ms=5, label="printed in the source")
        figure.legend(fontsize=7, frameon=False, loc="outside lower left")
    return figure


def scatter(chart: Chart) -> Figure | None:
    """Values of the methods by key against those of the method `x`, or against the same method's measure `x`."""
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
    figure, axes = grid(names, 3.6)
    for name, ax in zip(names, axes, strict=True):
        for k, label in enumerate(dict.fromkeys(labels)):
            of_series = points[(panel == name) & (labels == label)]
            ax.scatter(of_series["mean_base"], of_series["mean"], s=9, color=color(k), label=label, alpha=0.7, lw=0)
        x = points.loc[panel == name, "mean_base"]
        ax.plot([x.min(), x.max()], [x.min(), x.max()], color="0.6", lw=0.8, zorder=0)
        ax.set_xlabel(chart.name("x"))
    axes[0].set_ylabel(chart.name("y"))
    axes[0].legend(fontsize=7, frameon=False)
    return figure


KINDS = {"dots": dots, "curve": curves, "line": lines, "scatter": scatter, "flows": flows, "map": areas}
