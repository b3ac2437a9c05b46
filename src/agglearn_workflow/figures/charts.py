"""Charts of an experiment: dots with intervals, scatters, curves over steps, lines over a parameter, maps."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from agglearn.evaluation.intervals import mean_interval
from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables.numbers import measure_name, method_name, number, setting
from agglearn_workflow.tables.summary import column_or_param, overlap_of

STYLE = {
    "svg.hashsalt": "agglearn", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.3, "figure.constrained_layout.use": True, "svg.fonttype": "path",
}  # fmt: skip
# Near the palette of Okabe and Ito. Each two differ by ΔE2000 ≥ 15, also under the three deficiencies of colour vision.
COLORS = ["#116699", "#aa5522", "#009973", "#772255", "#cc8811", "#000000", "#8f97a8"]
WIDTH = 4.2  # of a panel, in inches


def grid(
    titles: list[str], height: float, max_columns: int = 3, width: float = WIDTH, wrap: int = 44
) -> tuple[Figure, list[Axes]]:
    """(figure, one axes per title), the titles in lines of `wrap` letters."""
    columns = 2 if len(titles) == 4 and max_columns == 3 else min(len(titles), max_columns)
    lines = -(-len(titles) // columns)
    size = min(width * columns + 0.8, 13), height * lines
    figure = Figure(size)
    FigureCanvasSVG(figure)  # which measures texts
    all_axes = figure.subplots(lines, columns, squeeze=False)
    for axes in all_axes.flat[len(titles) :]:
        axes.axis("off")
    for title, axes in zip(titles, all_axes.flat, strict=False):
        axes.set_title(textwrap.fill(title, wrap), fontsize=9, loc="left")
    return figure, list(all_axes.flat[: len(titles)])


def color(k: int) -> str:
    return COLORS[k % len(COLORS)]


def natural(label: str) -> list:
    """Sort key under which numbers inside text count as numbers."""
    return [float(text) if i % 2 else text for i, text in enumerate(re.split(r"(\d+(?:\.\d+)?)", label))]


def series(frame: pd.DataFrame, fields: list[str], experiment: dict) -> pd.Series:
    def text(name: str, value: Any) -> str:
        return method_name(experiment, value) if name == "method" else setting(name, value)

    columns = [column_or_param(frame, f) for f in fields]
    names = [", ".join(filter(None, map(text, fields, values))) for values in zip(*columns, strict=True)]
    return pd.Series(names if fields else "", frame.index, dtype=object)


@dataclass(frozen=True)
class Chart:
    """What a figure is drawn from. `rows` are of runs, `table` is their summary, `titles` are of data sets."""

    rows: pd.DataFrame
    table: pd.DataFrame
    experiment: dict
    spec: dict
    titles: dict[str, str]

    def series(self, frame: pd.DataFrame) -> pd.Series:
        return series(frame, self.spec.get("series", ["method"]), self.experiment)

    def panels(self, frame: pd.DataFrame) -> pd.Series:
        fields = self.spec.get("panel", [])
        data, names = frame["dataset"].map(lambda d: self.titles.get(d, str(d))), series(frame, fields, self.experiment)
        if not fields:
            return data
        return data + ": " + names if frame["dataset"].nunique() > 1 else names

    def ordered(self, panel: pd.Series, frame: pd.DataFrame) -> list[str]:
        rank = frame["dataset"].map(list(self.experiment["datasets"]).index)
        return sorted(set(panel), key=lambda name: (rank[panel == name].min(), natural(name)))

    def label(self, axis: str, rows: pd.DataFrame | None = None) -> str:
        """The stated label of an axis, else its measure, with the unit that rows have in common."""
        units = set() if rows is None else set(rows["unit"].dropna()) - {""}
        unit = f" ({units.pop()})" if len(units) == 1 else ""
        return self.spec.get(f"{axis}_label", measure_name(self.spec[axis]) + unit)


def dots(chart: Chart) -> Figure | None:
    table, spec = chart.table, chart.spec
    chosen = table[(table["measure"] == spec["y"]) & table["mean"].notna()]
    if chosen.empty:
        return None
    names = [d for d in chart.experiment["datasets"] if d in set(chosen["dataset"])]
    labels, colours = chart.series(chosen), series(chosen, spec.get("dodge", []), chart.experiment)
    order, levels = list(dict.fromkeys(labels)), list(dict.fromkeys(colours))
    shift = (colours.map(levels.index) - (len(levels) - 1) / 2) * 0.7 / len(levels)
    chosen = chosen.assign(y=labels.map(order.index) + shift, half=(chosen["high"] - chosen["low"]) / 2)
    texts = [textwrap.fill(label, ROW_LABEL) for label in order]
    row = max(0.32, 0.1 + 0.17 * max(1 + text.count("\n") for text in texts)) + 0.12 * (len(levels) - 1)
    height = 0.6 + row * max(len(order), 2)
    figure, axes = grid([chart.titles.get(d, d) for d in names], height, wrap=28)
    for name, ax in zip(names, axes, strict=True):
        panel = chosen[chosen["dataset"] == name]
        printed = panel[panel["reported"].notna()]
        for k, level in enumerate(levels):
            drawn, marker = panel[colours[panel.index] == level], MARKERS[k % len(MARKERS)]
            ax.errorbar(
                drawn["mean"],
                drawn["y"],
                xerr=drawn["half"],
                fmt=marker,
                ms=4,
                color=color(k),
                capsize=2,
                label=level or None,
            )
        ax.plot(printed["reported"], printed["y"], "D", mfc="none", mec="black", ms=5)
        ax.set_yticks(range(len(order)), texts)
        cell = ax.get_subplotspec()
        ax.tick_params(labelleft=cell is None or cell.is_first_col())
        if spec.get("y_log"):
            ax.set_xscale("log")
            _readable(ax.xaxis)
        else:
            ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set(xlabel=chart.label("y", chosen), ylim=(len(order) - 0.5, -0.5))
        ax.set_xlim(left=spec.get("y_from"))
    if chosen["reported"].notna().any():
        axes[0].plot([], [], "D", mfc="none", mec="black", ms=5, label="printed in the source")
    handles, names = axes[0].get_legend_handles_labels()
    if names:
        figure.legend(handles, names, fontsize=7, frameon=False, loc="outside lower left", ncols=len(names))
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
        ax.set_xlabel(chart.label("x"))
    axes[0].set_ylabel(chart.label("y"))
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7, frameon=False, loc="outside lower left", ncols=2)
    return figure


ROW_LABEL = 34  # letters in a line of a row's name
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
    return _draw_lines(chart, chosen, chart.table[:0].assign(series=""), chart.spec.get("x_label", "iteration"))


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
    axes[0].set_ylabel(chart.label("y", chosen))
    if "title" in spec:
        figure.suptitle(spec["title"], x=0.01, ha="left", fontsize=11, fontweight="bold")
    unnamed = axes if len(order) > 1 and not labels else []  # a panel may have lines that the first one lacks
    drawn = {text: line for ax in unnamed for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    legend = {text: drawn[text] for text in order if text in drawn}
    if len(printed):
        legend["printed in the source"] = axes[0].plot([], [], "D", mfc="none", mec="0.3", ms=5)[0]
    if legend:
        figure.legend(list(legend.values()), list(legend), fontsize=7, frameon=False, loc="outside lower left", ncols=2)
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
        points = _line(ax, line, end, spec, label in names, label=label, **look)
        if label in names:
            ends[names[label]] = (points[-1, 1], look["color"])
        if len(printed):
            ax.plot(marks["x"], marks["reported"], "D", mfc="none", mec=look["color"], ms=5)
        if "y_from" in spec:
            _mark_leaving(ax, look["color"], points, spec["y_from"])
    ax.set_ylim(bottom=spec.get("y_from"))
    return ends


def _look(k: int, label: str, highlighted: dict) -> dict:
    if highlighted and label not in highlighted:
        return {"color": "0.75", "marker": ".", "ls": "-", "lw": 0.8}
    stroke = {"ls": STROKES[k // MAX_NAMED % len(STROKES)], "lw": 1.4}
    if highlighted:
        k, stroke = list(highlighted).index(label), {"ls": "-", "lw": 1.8, "zorder": 3}
    return {"color": color(k), "marker": MARKERS[k % len(MARKERS)], **stroke}


def _scales(ax: Axes, spec: dict, x_label: str, chosen: pd.DataFrame, end: float | None) -> None:
    ax.set_xlabel(x_label)
    ax.set_xlim(left=spec.get("x_from"))
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


def _line(ax: Axes, rows: pd.DataFrame, end: float | None, spec: dict, band: bool, **look: Any) -> np.ndarray:
    """Draw means and intervals, on a log axis not below the smallest value, and return x, mean, low, high, smallest.

    A mean that leaves the axis has no interval, which may be a hundred times as high as the axis.
    """
    points = np.array([[x, *mean_interval(g["value"], overlap_of(g)), g["value"].min()] for x, g in rows.groupby("x")])
    if spec.get("y_log"):
        points[:, 2] = np.maximum(points[:, 2], points[:, 4])
        points[points[:, 1] <= 0] = np.nan
    x, mean, low, high = points[:, :4].T
    inside = mean >= spec.get("y_from", -np.inf)
    band = band and bool((np.isfinite(low) & inside).any())
    if end is not None and len(points) == 1 and x[0] == end:
        ax.axhline(mean[0], alpha=0.8, **look | {"lw": 0.7 * look["lw"], "marker": ""})
        if band:
            ax.axhspan(low[0], high[0], color=look["color"], alpha=0.08, lw=0)
        return points
    ax.plot(x, mean, ms=4, markevery=-(-len(points) // MARKED), **look)
    if band:
        ax.fill_between(x, low, high, inside, color=look["color"], alpha=0.15, lw=0)
    return points


PARALLELS, ORIGIN = (29.5, 45.5), (-96.0, 37.5)  # degrees, of the projection that maps of the United States use
LAND = "#eef0e8"


def flows(chart: Chart) -> Figure | None:
    """Maps with arrows from the key `from` (x, y) to `to`. With `extent` (west, east, south, north) in degrees."""
    height = 2.7 if "extent" in chart.spec else 3.8
    return _draw_maps(chart, height, lambda keys: [keys["from"], keys["to"]], _arrows)


def areas(chart: Chart) -> Figure | None:
    """Maps with a disc for the key `state` at `longitude`, `latitude`, coloured by its share."""
    figure = _draw_maps(chart, 3.0, lambda keys: [keys["longitude"], keys["latitude"]], _discs)
    if figure is not None:
        axes = [ax for ax in figure.axes if ax.axison]
        figure.colorbar(axes[0].collections[0], ax=axes, shrink=0.8, label=chart.label("y"))
    return figure


def _draw_maps(chart: Chart, height: float, coordinates: Callable[[dict], list], draw: Callable) -> Figure | None:
    """A map per panel. `coordinates` reads them from a row's keys, and `draw` draws rows at their projection."""
    panels = list(_maps(chart))
    if not panels:
        return None
    figure, axes = grid([title for title, _ in panels], height, max_columns=2)
    for (_, panel), ax in zip(panels, axes, strict=True):
        points = np.array([coordinates(keys) for keys in map(json.loads, panel["keys"])], dtype=float)
        inside = _inside(points, chart.spec).reshape(len(points), -1).all(axis=1)
        xy, of_earth = points[inside], "extent" in chart.spec
        draw(ax, panel[inside], project_albers(xy) if of_earth else xy, of_earth)
        ax.margins(0.08)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.set(aspect="equal", xticks=[], yticks=[])
    return figure


def _maps(chart: Chart) -> Iterator[tuple[str, pd.DataFrame]]:
    """(title, rows) of every data set: first the measure `x`, if there is one, then each series of the measure `y`."""
    table, spec, experiment = chart.table, chart.spec, chart.experiment
    rows = table[table["mean"].notna() & table["keys"].notna()]
    chosen = rows[rows["measure"] == spec["y"]]
    truth = rows[rows["measure"] == spec.get("x")].drop_duplicates(["dataset", "dataset_params", "keys"])
    varied = [f for f in spec.get("series", []) if f.startswith("dataset_params.")]
    for name in [d for d in experiment["datasets"] if d in set(chosen["dataset"])]:
        title = chart.titles.get(name, name) if chosen["dataset"].nunique() > 1 or "extent" not in spec else ""
        true, panels = truth[truth["dataset"] == name], chosen[chosen["dataset"] == name]
        for label, panel in true.groupby(series(true, varied, experiment), sort=False):
            yield _title(title, label, chart.label("x")), panel
        for label, panel in panels.groupby(chart.series(panels), sort=False):
            yield _title(title, label), panel


def _title(*texts: str) -> str:
    text = ": ".join(filter(None, texts))
    return text[:1].upper() + text[1:]


def _inside(points: np.ndarray, spec: dict) -> np.ndarray:
    west, east, south, north = spec.get("extent", (-np.inf, np.inf, -np.inf, np.inf))
    x, y = points[..., 0], points[..., 1]
    return (west <= x) & (x <= east) & (south <= y) & (y <= north)


def project_albers(points: np.ndarray) -> np.ndarray:
    """Longitudes and latitudes (…, 2), in degrees, in Albers's equal-area projection of the United States."""
    lon, lat = np.radians(points[..., 0] - ORIGIN[0]), np.radians(points[..., 1])
    first, second, origin = np.radians([*PARALLELS, ORIGIN[1]])
    n = (np.sin(first) + np.sin(second)) / 2
    c = np.cos(first) ** 2 + 2 * n * np.sin(first)
    radius, centre = np.sqrt(c - 2 * n * np.sin(lat)) / n, np.sqrt(c - 2 * n * np.sin(origin)) / n
    return np.stack([radius * np.sin(n * lon), centre - radius * np.cos(n * lon)], axis=-1)


def _discs(ax: Axes, panel: pd.DataFrame, xy: np.ndarray, of_earth: bool) -> None:
    """Draw a disc at each place (n, 2), with the name of its state."""
    means = panel["mean"]
    ax.scatter(xy[:, 0], xy[:, 1], c=means, s=150, cmap="RdBu", vmin=0.2, vmax=0.8, ec="0.4", lw=0.4)
    for state, (x, y), mean in zip(column_or_param(panel, "keys.state"), xy, means, strict=True):
        ax.text(x, y, state, fontsize=5.5, ha="center", va="center", color="w" if abs(mean - 0.5) > 0.17 else "k")


def _arrows(ax: Axes, panel: pd.DataFrame, ends: np.ndarray, of_earth: bool) -> None:
    """Draw arrows (n, 2, 2) from and to, wider and darker for larger flows, and a note on the widest."""
    _ground(ax, np.unique(ends.reshape(-1, 2), axis=0), of_earth)
    sizes = panel["mean"].to_numpy()
    relative = np.sqrt(sizes / sizes.max())  # small flows stay visible
    for k in np.argsort(sizes):
        (start, stop), s = ends[k], relative[k]
        ax.annotate(
            "", stop, start,
            arrowprops={"arrowstyle": "-|>", "lw": 0.3 + 2.2 * s, "alpha": 0.1 + 0.8 * s, "color": COLORS[0], "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 3 + 6 * s, "connectionstyle": "arc3,rad=0.12"},
        )  # fmt: skip
    ax.set_xlabel(f"widest arrow: {sizes.max():,.0f}", loc="left", fontsize=7, color="0.35")
    ax.autoscale_view()


def _ground(ax: Axes, points: np.ndarray, of_earth: bool) -> None:
    if of_earth:
        ax.scatter(points[:, 0], points[:, 1], s=26, color=LAND, ec="0.6", lw=0.5)
        return
    side = min(np.diff(np.unique(points[:, 0])).min(initial=np.inf), np.diff(np.unique(points[:, 1])).min(initial=1.0))
    for x, y in points - side / 2:
        ax.add_patch(Rectangle((x, y), side, side, fc=LAND, ec="0.85", lw=0.6, zorder=0))


KINDS = {"dots": dots, "curve": curves, "line": lines, "scatter": scatter, "flows": flows, "map": areas}
