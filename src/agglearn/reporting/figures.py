"""Figures of an experiment, as SVG: dots with intervals, curves over steps, lines over a parameter, scatters, maps."""

import traceback
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from agglearn.errors import describe
from agglearn.reporting import svg
from agglearn.reporting.lines import curves, lines
from agglearn.reporting.maps import areas, flows
from agglearn.reporting.numbers import measure_name
from agglearn.reporting.panels import COLORS, STYLE, axis_label, color, grid, ordered, panel_titles, series

NO_RESULT = "No run of this figure has a result."


def draw(rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, titles: dict[str, str], path: Path) -> list[str]:
    """Write the figure of an experiment, or several below each other where `figure:` is a list.

    A sentence replaces a figure without data, and one that fails.
    """
    main = experiment["table"]["measure"] if "table" in experiment else experiment["measures"][0]
    spec = experiment.get("figure") or {"kind": "dots", "y": main[0] if isinstance(main, list) else main}
    kinds = {"dots": dots, "curve": curves, "line": lines, "scatter": scatter, "flows": flows, "map": areas}
    title, caption = experiment["title"], experiment.get("caption", "").strip()
    drawings, failed = [], []
    for one in spec if isinstance(spec, list) else [spec]:
        try:
            with plt.rc_context(STYLE):  # type: ignore[arg-type]
                figure = kinds[one["kind"]](rows, table, experiment, one, titles)
                name = one.get("title", title)
                drawings.append(svg.sentence(NO_RESULT) if figure is None else svg.from_figure(figure, name, caption))
        except Exception as error:
            traceback.print_exc()
            failed.append(describe(error))
            drawings.append(svg.sentence(f"This figure failed: {failed[-1]}"))
        finally:
            plt.close("all")
    path.write_text(svg.stacked(drawings, title))
    return failed


def dots(
    rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, spec: dict, titles: dict[str, str]
) -> Figure | None:
    """Means with intervals, one line per series, and the printed values as marks."""
    chosen = table[(table["measure"] == spec["y"]) & table["mean"].notna()]
    if chosen.empty:
        return None
    names = [d for d in experiment["datasets"] if d in set(chosen["dataset"])]
    labels = series(chosen, spec.get("series", ["method"]), experiment)
    order = list(dict.fromkeys(labels))
    figure, axes = grid(names, 0.6 + 0.32 * max(len(order), 2), titles, wrap=28)
    for name, ax in zip(names, axes, strict=True):
        panel = chosen[chosen["dataset"] == name]
        for (_, row), label in zip(panel.iterrows(), labels[panel.index], strict=True):
            y = order.index(label)
            half = (row["high"] - row["low"]) / 2
            ax.errorbar(
                row["mean"], y, xerr=half if np.isfinite(half) else None, fmt="o", ms=4, color=COLORS[0], capsize=2
            )
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


def scatter(
    rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, spec: dict, titles: dict[str, str]
) -> Figure | None:
    """Values of the methods by key against those of the method `x`, or against the same method's measure `x`."""
    chosen = table[(table["measure"] == spec["y"]) & table["mean"].notna() & table["keys"].notna()]
    keys = ["dataset", "dataset_params", "keys"]
    if spec["x"] in experiment["methods"]:
        base = chosen[chosen["method"] == spec["x"]]
        others = chosen[chosen["method"] != spec["x"]]
    else:
        base = table[(table["measure"] == spec["x"]) & table["mean"].notna()]
        keys, others = [*keys, "method", "params"], chosen
    others = others.merge(base[[*keys, "mean"]].drop_duplicates(keys), on=keys, suffixes=("", "_base"))
    if others.empty:
        return None
    panel = panel_titles(others, experiment, spec, titles)
    names = ordered(panel, others, experiment)
    figure, axes = grid(names, 3.6)
    labels = series(others, spec.get("series", ["method"]), experiment)
    order = list(dict.fromkeys(labels))
    for name, ax in zip(names, axes, strict=True):
        for k, label in enumerate(order):
            points = others[(panel == name) & (labels == label)]
            ax.scatter(points["mean_base"], points["mean"], s=9, color=color(k), label=label, alpha=0.7, lw=0)
        here = others.loc[panel == name, "mean_base"]
        ax.plot([here.min(), here.max()], [here.min(), here.max()], color="0.6", lw=0.8, zorder=0)
        ax.set_xlabel(spec.get("x_label", measure_name(spec["x"])))
    axes[0].set_ylabel(spec.get("y_label", measure_name(spec["y"])))
    axes[0].legend(fontsize=7, frameon=False)
    return figure
