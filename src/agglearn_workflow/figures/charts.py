"""Charts of an experiment: dots with intervals, scatters, curves over steps, lines over a parameter."""

import re
import textwrap
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from agglearn.evaluation.intervals import mean_interval
from agglearn.text import count_text
from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables.numbers import direction, measure_name, method_name, number, setting
from agglearn_workflow.tables.printed_table import undistinguished
from agglearn_workflow.tables.summary import column_or_param, overlap_of

SMALL = 8  # points, the smallest text
STYLE = {
    "svg.hashsalt": "agglearn", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.3, "figure.constrained_layout.use": True, "svg.fonttype": "none",
    "legend.fontsize": SMALL, "legend.frameon": False, "legend.handlelength": 1.5, "legend.columnspacing": 1.0,
    "savefig.transparent": True,
}  # fmt: skip
# Near the palette of Okabe and Ito. Each two differ by ΔE2000 ≥ 15, also under the three deficiencies of colour vision.
COLORS = ["#116699", "#aa5522", "#009973", "#772255", "#cc8811", "#000000", "#8f97a8"]
PAGE, WIDTH = 7.0, 4.2  # of a page and of the largest panel, in inches
LETTER = 0.075  # inches, about
RANGES = {"auc": (0, 1), "accuracy": (0, 1), "calibration_error": (0, 1), "brier": (0, 1)}  # no interval goes beyond


def grid(
    titles: list[str],
    height: float,
    max_columns: int = 3,
    width: float = WIDTH,
    indent: float = 0.4,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """(figure of the width of a page at most, one axes per title), with `indent` inches for names at the left."""
    columns = 2 if len(titles) == 4 and max_columns == 3 else min(len(titles), max_columns)
    lines = -(-len(titles) // columns)
    figure = Figure((min(width * columns + 0.8, PAGE), height * lines))
    letters = int((figure.get_figwidth() - indent) / columns / LETTER)
    all_axes = figure.subplots(lines, columns, squeeze=False, sharey=sharey)
    for axes in all_axes.flat[len(titles) :]:
        axes.axis("off")
    for title, axes in zip(titles, all_axes.flat, strict=False):
        axes.set_title(textwrap.fill(title, letters), fontsize=9, loc="left")
    return figure, list(all_axes.flat[: len(titles)])


def color(k: int) -> str:
    return COLORS[k % len(COLORS)]


def natural(label: str) -> list:
    """Sort key under which numbers inside text count as numbers."""
    texts = enumerate(re.split(r"(\d+(?:,\d{3})*(?:\.\d+)?)", label))
    return [float(text.replace(",", "")) if i % 2 else text for i, text in texts]


def darker(colour: str | tuple) -> tuple[float, ...]:
    """For text, which needs more contrast with white than a line: 4.5 or more."""
    light = np.dot(np.power(to_rgb(colour), 2.2), [0.2126, 0.7152, 0.0722])
    return tuple(min(0.7, (0.16 / max(light, 0.01)) ** (1 / 2.2)) * c for c in to_rgb(colour))


def tick(x: float, _: float = 0.0) -> str:
    return f"{x:,.5f}".rstrip("0").rstrip(".") if 1e-5 <= x < 1e6 else number(x)


@dataclass(frozen=True)
class Chart:
    """What a figure is drawn from. `rows` are of runs, `table` is their summary, `titles` are of data sets. An experiment may have
    `findings`: measure → what this run says of it."""

    rows: pd.DataFrame
    table: pd.DataFrame
    experiment: dict
    spec: dict
    titles: dict[str, str]

    def names(self, frame: pd.DataFrame, fields: list[str]) -> pd.Series:
        """The values of fields as one text for each row, without those that all results of the experiment share."""
        measured, words = self.table[self.table["mean"].notna()], self.experiment.get("words", {})
        varied = [f for f in fields if f == "method" or column_or_param(measured, f).map(str).nunique() > 1]

        def text(name: str, value: Any) -> str:
            if name == "dataset":
                return self.titles.get(value, value)
            return method_name(self.experiment, value) if name == "method" else setting(name, value, words)

        columns = [column_or_param(frame, f) for f in varied]
        names = [", ".join(filter(None, map(text, varied, values))) for values in zip(*columns, strict=True)]
        return pd.Series(names if varied else "", frame.index, dtype=object)

    def series(self, frame: pd.DataFrame) -> pd.Series:
        return self.names(frame, self.spec.get("series", ["method"]))

    def panels(self, frame: pd.DataFrame) -> pd.Series:
        names = self.names(frame, ["dataset", *self.spec.get("panel", [])])
        return names.where(names != "", frame["dataset"].map(lambda d: self.titles.get(d, d)))

    def ordered(self, panel: pd.Series, frame: pd.DataFrame) -> list[str]:
        rank = frame["dataset"].map(list(self.experiment["datasets"]).index)
        return sorted(set(panel), key=lambda name: (rank[panel == name].min(), natural(name)))

    def colours(self, frame: pd.DataFrame, fields: list[str], n: int) -> list:
        """Of n names: from light to dark where a number is all that distinguishes them."""
        varied = [column_or_param(frame, f).dropna() for f in fields]
        varied = [values for values in varied if values.map(str).nunique() > 1]
        if n > 2 and len(varied) == 1 and varied[0].map(lambda v: isinstance(v, int | float)).all():
            return list(colormaps["viridis_r"](np.linspace(0.25, 1, n)))
        return [color(k) for k in range(n)]

    def heading(self) -> str:
        """The finding on the measure, and below it how the measure is read, and of what."""
        chosen = self.table[(self.table["measure"] == self.spec["y"]) & self.table["mean"].notna()]
        better, n = direction(self.spec["y"]), int(chosen["n"].max()) if len(chosen) else 1
        name = measure_name(self.spec["y"])
        sentences = [f"{name[:1].upper()}{name[1:]}: {better} is better." if better else ""]
        sizes = column_or_param(chosen, "dataset_params.rows").dropna().unique()
        if self.spec.get("panel") and chosen["dataset"].nunique() == 1:  # which no panel names
            sentences += [f"{self.titles.get(d, d)}." for d in chosen["dataset"][:1]]
        if len(sizes) == 1 and "Classification" in self.experiment.get("task", ""):  # other tasks have rows of a grid
            sentences.append(f"At most {count_text(sizes[0], 'record')}.")
        if n > 1:
            sentences.append(f"Means {'' if self.spec['kind'] == 'scatter' else 'with 95 % intervals '}over {n} seeds.")
        finding = self.experiment.get("findings", {}).get(self.spec["y"])
        return "\n".join(filter(None, [finding, " ".join(filter(None, sentences))]))

    def label(self, axis: str, rows: pd.DataFrame | None = None) -> str:
        """The stated label of an axis, else its measure, with the unit that rows have in common."""
        units = set() if rows is None else set(rows["unit"].dropna()) - {""}
        unit = f" ({units.pop()})" if len(units) == 1 else ""
        return self.spec.get(f"{axis}_label", measure_name(self.spec[axis]) + unit)


def draw(chart: Chart) -> Figure | None:
    """The figure under its heading. None without a result."""
    figure, lines = KINDS[chart.spec["kind"]](chart), chart.heading().splitlines()
    if figure and lines:
        wrapped = [textwrap.fill(line, int(figure.get_figwidth() / LETTER)) for line in lines]
        figure.suptitle("\n".join(wrapped), x=0.01, ha="left", fontsize=9)
        figure.set_figheight(figure.get_figheight() + 0.08 + 0.16 * sum(1 + w.count("\n") for w in wrapped))
    if figure:
        _fit_texts(figure)
    return figure


def _fit_texts(figure: Figure) -> None:
    """Cut names of axes into lines, and hide names of values that reach into the next one to the right."""
    figure.draw_without_rendering()
    labels = [ax.get_xlabel() for ax in figure.axes]
    for ax, label in zip(figure.axes, labels, strict=True):
        letters = int(ax.bbox.width / figure.dpi / LETTER) + 4
        ax.set_xlabel("\n".join(textwrap.fill(line, letters) for line in label.splitlines()))
        end = np.inf
        for text in reversed([text for text in ax.get_xticklabels() if text.get_text()]):
            extent = text.get_window_extent()
            text.set_visible(bool(extent.x1 + 3 < end))
            end = extent.x0 if text.get_visible() else end
    if [ax.get_xlabel() for ax in figure.axes] == labels:
        figure.set_layout_engine("none")  # it is laid out


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
    order, levels = list(dict.fromkeys(labels)), sorted(set(colours), key=natural)
    palette = chart.colours(chosen, dodge, len(levels))
    shift = (colours.map(levels.index) - (len(levels) - 1) / 2) * 0.7 / len(levels)
    chosen = chosen.assign(y=labels.map(order.index) + shift, half=(chosen["high"] - chosen["low"]) / 2)
    texts = [textwrap.fill(label, ROW_LABEL) for label in order]
    row = max(0.32, 0.1 + 0.17 * max(1 + text.count("\n") for text in texts)) + 0.12 * (len(levels) - 1)
    longest = max(len(line) for text in texts for line in text.splitlines())
    figure, axes = grid(names, 0.95 + row * len(order), indent=LETTER * longest)
    for name, ax in zip(names, axes, strict=True):
        panel = chosen[panels == name]
        printed = panel[panel["reported"].notna()]
        for k, level in enumerate(levels):
            drawn = panel[colours[panel.index] == level]
            look: dict[str, Any] = {"fmt": MARKERS[k % len(MARKERS)], "ms": 4, "color": palette[k], "capsize": 2}
            ax.errorbar(drawn["mean"], drawn["y"], xerr=drawn["half"], label=level * (len(levels) > 1) or None, **look)
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
    if chosen["reported"].notna().any():
        axes[0].plot([], [], "D", mfc="none", mec="black", ms=5, label=PRINTED)
    _legend(figure, *axes[0].get_legend_handles_labels())
    return figure


def _legend(figure: Figure, handles: list, labels: list[str]) -> None:
    """Names below the panels. The figure grows by their height."""
    if not labels:
        return
    columns = min(max(int(figure.get_figwidth() / (0.06 * max(map(len, labels)) + 0.4)), 1), len(labels))
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.17 * -(-len(labels) // columns))
    figure.legend(handles, labels, loc="outside lower left", ncols=columns)


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
    figure, axes = grid(names, 3.2, width=3.6, indent=1.4)
    for name, ax in zip(names, axes, strict=True):
        for k, label in enumerate(dict.fromkeys(labels)):
            xy = points.loc[(panel == name) & (labels == label), ["mean_base", "mean"]].sort_values("mean_base")
            few, look = len(xy) <= MARKED, f"{MARKERS[k % len(MARKERS)]}{'-' * (len(xy) <= MARKED)}"
            ax.plot(*xy.to_numpy().T, look, ms=3 + few, alpha=0.7 + 0.3 * few, color=color(k), label=label)
        same = (panel == name) | (points["dataset"].nunique() == 1)  # panels on one data set have one scale
        both = points.loc[same, ["mean_base", "mean"]].to_numpy()
        scale, margin = "log" if spec.get("x_log") else "linear", 0.04 * np.ptp(both)
        ends = [both.min() * 0.8, both.max() * 1.25] if scale == "log" else [both.min() - margin, both.max() + margin]
        ax.plot(ends, ends, color="0.6", lw=0.8, zorder=0)
        ax.set(xlabel=chart.label("x"), xscale=scale, yscale=scale, aspect="equal", xlim=ends, ylim=ends)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if scale == "log" else MaxNLocator(5))
            axis.set_major_formatter(tick)
            axis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel(chart.label("y"))
    if labels.nunique() > 1:
        drawn = {line.get_label(): line for ax in axes for line in ax.lines if len(line.get_xdata())}
        _legend(figure, [drawn[label] for label in dict.fromkeys(labels)], list(dict.fromkeys(labels)))
    return figure


PRINTED = "printed in the source"
ROW_LABEL = 34  # letters in a line of the name of a row or an axis
LABEL = 26  # letters in a line of a name
LABEL_WIDTH = 1.2  # inches beside a panel for the names of its lines
LINE_HEIGHT = 0.13  # inches
MARGIN = 0.8  # inches of a panel's height for its title and axis
MANY = 6  # panels, above which the lines are named in a legend
MARKERS, MARKED, TICKS = "os^vPX*", 12, 8  # forms, at most so many on a line, and so many values that are the ticks
STROKES = ("-", "--", ":")


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
    runs = [
        run.sort_values("step").set_index("step", drop=False).reindex(steps, method="ffill").assign(step=steps)
        for _, rows in chosen.groupby(line)
        for steps in [np.unique(rows["step"])]
        for _, run in rows.groupby("run")
    ]
    return pd.concat([chosen[:0], *runs], ignore_index=True).dropna(subset="run")


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
        y_label = f"{chart.label('y', chosen)}\n{label}{' = ' if len(label) < 3 else ': '}{tick(chosen['x'].max())}"
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
    figure, axes = grid(names, height, columns, WIDTH + LABEL_WIDTH * beside, sharey=is_shared)
    end = chosen["x"].max() if "x_none" in spec else None
    colours = chart.colours(chosen, spec.get("series", ["method"]), len(order))
    looks = {label: _look(k, label, colours, highlighted) for k, label in enumerate(order)}
    rows = [chosen[panel == name] for name in names]
    drawn = [
        _panel(ax, mine, printed[of_printed == name], looks, set(labels), end, spec)
        for ax, mine, name in zip(axes, rows, names, strict=True)
    ]
    bottoms = [
        _bottom(axes, drawn, set(labels), spec) if is_shared else _bottom([ax], [lines], set(labels), spec)
        for ax, lines in zip(axes, drawn, strict=True)
    ]
    for ax, mine in zip(axes, rows, strict=True):
        _scales(ax, spec, x_label, mine, end)
    named = labels if beside else {}
    ends = [_leave(ax, lines, bottom, looks, named) for ax, lines, bottom in zip(axes, drawn, bottoms, strict=True)]
    if beside:
        n_lines = max(sum(1 + text.count("\n") for text in texts) for texts in ends)
        taller = max(height, MARGIN + (LINE_HEIGHT + 0.02) * n_lines)
        figure.set_figheight(figure.get_figheight() * taller / height)
        for ax, texts in zip(axes, ends, strict=True):
            _label_ends(ax, texts, LINE_HEIGHT / (taller - MARGIN))
    axes[0].set_ylabel(textwrap.fill(chart.label("y", chosen), ROW_LABEL))
    handles = [axes[0].plot([], [], **looks[s])[0] for s in labels] if len(order) > 1 and not beside else []
    texts = [present.get(s, s) for s in labels][: len(handles)]
    if len(printed):
        handles, texts = [*handles, *axes[0].plot([], [], "D", mfc="none", mec="0.3", ms=5)], [*texts, PRINTED]
    _legend(figure, handles, texts)
    return figure


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
    """Mark lines that leave the axis, and return name → (end, colour) of the lines that are named."""
    ends: dict[str, tuple[float, str]] = {}
    beside: list[float] = []
    for label, points in lines.items():
        x, lowest = points[np.argmin(np.nan_to_num(points[:, 1], nan=np.inf)), :2]
        leaves = bool(lowest < bottom)
        if leaves:
            ax.plot(x, bottom, "v", color=looks[label]["color"], clip_on=False, zorder=4)
        if label in names:
            beyond = f"(lowest {number(lowest)})" if leaves else "" if np.isfinite(lowest) else "(0)"
            text = "\n".join(filter(None, [names[label], beyond]))
            ends[text] = (points[np.isfinite(points[:, 1])][-1:, 1].sum(), looks[label]["color"])
        elif leaves:
            at_right = x > np.nanmedian(np.concatenate([line[:, 0] for line in lines.values()]))  # near the names of lines
            offset: dict[str, Any] = {
                "xytext": (-4 if at_right else 4, 4 + 9 * beside.count(x)),
                "textcoords": "offset points",
            }
            ax.annotate(
                number(lowest), (x, bottom), **offset, ha="right" if at_right else "left", color="0.4", fontsize=SMALL
            )
            beside.append(x)
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
    stroke = {"ls": STROKES[k // len(COLORS) % len(STROKES)], "lw": 1.4}
    if highlighted:
        k, stroke = list(highlighted).index(label), {"ls": "-", "lw": 1.8, "zorder": 3}
    return {"color": colours[k], "marker": MARKERS[k % len(MARKERS)], **stroke}


def _scales(ax: Axes, spec: dict, x_label: str, rows: pd.DataFrame, end: float | None) -> None:
    ax.set_xlabel(x_label)
    ax.set_xlim(left=spec.get("x_from"))
    if spec.get("y_log"):
        low, high = ax.get_ylim()
        if set(rows["unit"]) == {"s"}:  # a time that does not grow looks flat
            ax.set_ylim(min(low, np.sqrt(low * high / 10)), max(high, np.sqrt(10 * low * high)))
        _readable(ax.yaxis)
    values = np.unique(rows["x"][rows["x"] > 0] if spec.get("x_log") else rows["x"])
    if spec["kind"] == "line" and len(values) <= TICKS:
        ax.set_xticks(values, [spec["x_none"] if x == end else tick(x) for x in values])
        ax.xaxis.minorticks_off()
    elif spec.get("x_log"):
        _readable(ax.xaxis)


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
            text, (1.01, height), xycoords="axes fraction", color=darker(ends[text][1]), fontsize=SMALL, va="center",
            linespacing=1.0,
        )  # fmt: skip


def _order(chosen: pd.DataFrame, experiment: dict) -> list[str]:
    rank = chosen["method"].map(list(experiment["methods"]).index).groupby(chosen["series"]).min()
    return sorted(rank.index, key=lambda label: (rank[label], natural(label)))


def _readable(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 with plain numbers where a logarithmic axis spans few powers of ten."""
    low, high = axis.get_view_interval()
    if high < 300 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(tick)
    axis.set_minor_formatter(NullFormatter())


def _line(ax: Axes, rows: pd.DataFrame, end: float | None, spec: dict, band: bool, **look: Any) -> np.ndarray:
    """Draw means and intervals, on a log axis not below the smallest value > 0, and return x, mean, low, high, smallest.

    A mean that leaves the axis has no interval, which may be a hundred times as high as the axis.
    """
    points = np.array(
        [[x, *mean_interval(g["value"], overlap_of(g)), g["value"][g["value"] > 0].min()] for x, g in rows.groupby("x")]
    )
    points[:, 2:4] = points[:, 2:4].clip(*RANGES.get(spec["y"], (-np.inf, np.inf)))
    if spec.get("y_log"):
        points[:, 2] = np.minimum(np.maximum(points[:, 2], points[:, 4]), points[:, 1])
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


KINDS = {"dots": dots, "curve": curves, "line": lines, "scatter": scatter}
