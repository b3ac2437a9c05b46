"""Figures of an experiment, as SVG: dots with intervals, curves over steps, lines over a parameter, maps of flows."""

import io
import re
import textwrap
import traceback
from pathlib import Path
from xml.sax.saxutils import escape

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from agglearn.errors import described
from agglearn.evaluation.intervals import mean_interval
from agglearn.reporting import summary
from agglearn.reporting.numbers import SYMBOLS, measure_name, plain

STYLE = {
    "svg.hashsalt": "agglearn", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.3, "figure.constrained_layout.use": True, "svg.fonttype": "path",
}  # fmt: skip
NO_RESULT = "No run of this figure has a result."
COLORS = ["#0b5394", "#cc4125", "#38761d", "#b45f06", "#674ea7", "#45818e", "#a64d79", "#7f6000"]


def draw(rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, titles: dict[str, str], path) -> list[str]:
    """Write the figure of an experiment, several below each other where `figure:` is a list.

    In the place of a figure without data, or of one that fails, stands a sentence.

    Parameters
    ----------
    rows : measurements of the runs; table : their summary.
    titles : names of the data sets.

    Returns
    -------
    The reasons of figures that failed.
    """
    main = experiment["table"]["measure"] if "table" in experiment else experiment["measures"][0]
    spec = experiment.get("figure") or {"kind": "dots", "y": main[0] if isinstance(main, list) else main}
    kinds = {"dots": _dots, "curve": _curves, "line": _lines, "scatter": _scatter, "flows": _flows}
    parts, failed = [], []
    for one in spec if isinstance(spec, list) else [spec]:
        try:
            with plt.rc_context(STYLE):
                figure = kinds[one["kind"]](rows, table, experiment, one, titles)
                parts.append(sentence(NO_RESULT) if figure is None else _svg(figure, experiment["title"]))
        except Exception as error:
            traceback.print_exc()
            failed.append(described(error))
            parts.append(sentence(f"This figure failed: {failed[-1]}"))
        finally:
            plt.close("all")
    Path(path).write_text(_stacked(parts))
    return failed


def _svg(figure, title: str) -> str:
    drawing = io.StringIO()
    figure.savefig(drawing, format="svg", metadata={"Date": None, "Title": title})
    panels = figure.axes[0].get_gridspec()
    return drawing.getvalue().replace("<svg ", f'<svg data-panels="{panels.ncols} {panels.nrows}" ', 1)


def first_panel(path: Path) -> tuple[str, float]:
    """(fragment of a figure's address that shows the first panel only, its width over its height)."""
    root = re.search(r'data-panels="(\d+) (\d+)"[^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"', path.read_text())
    if root is None:
        return "", 1.5
    columns, lines, width, height = map(float, root.groups())
    width, height = width / columns, height / lines
    return f"#svgView(viewBox(0,0,{width:g},{height:g}))", width / height


def sentence(text: str) -> str:
    """A drawing that holds a sentence, as text that can be searched and read aloud."""
    wrapped = textwrap.wrap(text, 90)
    height = 16 * len(wrapped) + 16
    spans = "".join(f'<tspan x="8" dy="16">{escape(line)}</tspan>' for line in wrapped)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="500pt" height="{height}pt" viewBox="0 0 500 {height}">'
        f'<text y="4" font-family="sans-serif" font-size="11">{spans}</text></svg>\n'
    )


def _stacked(drawings: list[str]) -> str:
    """SVG drawings below each other, as one."""
    if len(drawings) == 1:
        return drawings[0]
    bodies = [d[d.index("<svg") :] for d in drawings]
    sizes = [[float(re.search(rf'{side}="([\d.]+)pt"', b).group(1)) for side in ("width", "height")] for b in bodies]
    width, height = max(w for w, _ in sizes), sum(h for _, h in sizes)
    placed, y = [], 0.0
    for body, (_, h) in zip(bodies, sizes, strict=True):
        body = re.sub(r'(width|height)="([\d.]+)pt"', r'\1="\2"', body, count=2)
        placed.append(body.replace("<svg", f'<svg y="{y:g}"', 1))
        y += h
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height:g}pt" viewBox="0 0 {width:g} {height:g}">'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + head + "\n" + "\n".join(placed) + "\n</svg>\n"


def _panels(names: list, height: float, titles, most: int = 3):
    columns = 2 if len(names) == 4 and most == 3 else min(len(names), most)
    lines = -(-len(names) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(min(4.2 * columns + 0.8, 13), height * lines), squeeze=False)
    for axes in grid.flat[len(names) :]:
        axes.axis("off")
    for name, axes in zip(names, grid.flat, strict=False):
        axes.set_title(textwrap.fill(titles.get(name, str(name)), 44), fontsize=9, loc="left")
    return figure, list(grid.flat[: len(names)])


def _dots(rows, table, experiment, spec, titles):
    chosen = table[(table["measure"] == spec["y"]) & table["mean"].notna()]
    if chosen.empty:
        return None
    panels = [d for d in experiment["datasets"] if d in set(chosen["dataset"])]
    labels = _series(chosen, spec.get("series", ["method"]), experiment)
    order = list(dict.fromkeys(labels))
    figure, axes = _panels(panels, 0.6 + 0.32 * max(len(order), 2), titles)
    for name, ax in zip(panels, axes, strict=True):
        part = chosen[chosen["dataset"] == name]
        for (_, row), label in zip(part.iterrows(), labels[part.index], strict=True):
            y = order.index(label)
            half = (row["high"] - row["low"]) / 2
            ax.errorbar(
                row["mean"], y, xerr=half if np.isfinite(half) else None, fmt="o", ms=4, color=COLORS[0], capsize=2
            )
            if pd.notna(row["reported"]):
                ax.plot(row["reported"], y, "D", mfc="none", mec=COLORS[1], ms=5)
        ax.set_yticks(range(len(order)), order)
        ax.tick_params(labelleft=ax.get_subplotspec().is_first_col())
        ax.set_ylim(len(order) - 0.5, -0.5)
        if spec.get("y_log"):
            ax.set_xscale("log")
        else:
            ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_xlabel(spec.get("y_label", measure_name(spec["y"])))
        if "y_from" in spec:
            ax.set_xlim(left=spec["y_from"])
    if chosen["reported"].notna().any():
        axes[0].plot([], [], "D", mfc="none", mec=COLORS[1], ms=5, label="printed in the source")
        figure.legend(fontsize=7, frameon=False, loc="outside lower center")
    return figure


def _series(frame: pd.DataFrame, fields: list[str], experiment: dict) -> pd.Series:
    """Legend text of each row."""

    def text(name, value):
        if name == "method":
            return experiment["methods"][value].get("name") or value.replace("_", " ")
        if name == "item":
            return value or ""
        key = name.rpartition(".")[2]
        return "" if value is None or value != value else f"{SYMBOLS.get(key, key.replace('_', ' '))} {plain(value)}"

    columns = [summary.field(frame, f) for f in fields]
    said = [filter(None, map(text, fields, values)) for values in zip(*columns, strict=True)]
    return pd.Series([", ".join(parts) for parts in said], frame.index, dtype=object)


def _natural(label: str) -> list:
    """Sort key under which numbers inside text count as numbers."""
    return [float(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+(?:\.\d+)?)", label))]


def _curves(rows, table, experiment, spec, titles):
    """Means over seeds against the step (or the seconds at that step)."""
    chosen = rows[(rows["measure"] == spec["y"]) & rows["step"].notna() & rows["value"].notna()].copy()
    if chosen.empty:
        return None
    chosen["series"] = _series(chosen, spec.get("series", ["method"]), experiment)
    chosen["x"] = chosen["step"]
    if spec.get("x") == "seconds":
        clock = rows[(rows["measure"] == "seconds") & rows["step"].notna()]
        chosen = chosen.merge(clock[["run", "step", "value"]], on=["run", "step"], suffixes=("", "_clock"))
        if chosen.empty:
            return None
        panel = _panel_of(chosen, experiment, spec, titles)
        chosen["x"] = chosen.groupby([panel, "series", "step"])["value_clock"].transform("mean")
    return _lines_of(chosen, experiment, spec, titles, spec.get("x_label", "iteration"))


def _lines(rows, table, experiment, spec, titles):
    """Means over seeds against a parameter; with `x_none`, what has none stands to the right of the largest."""
    chosen = rows[(rows["measure"] == spec["y"]) & rows["step"].isna() & rows["value"].notna()].copy()
    if chosen.empty:
        return None
    chosen["series"] = _series(chosen, spec.get("series", ["method"]), experiment)
    chosen["x"] = pd.to_numeric(summary.field(chosen, spec["x"])).astype(float)
    label = spec.get("x_label", spec["x"].rpartition(".")[2].replace("_", " "))
    if "x_none" in spec:
        chosen["x"] = chosen["x"].fillna(_beyond(chosen["x"], spec.get("x_log")))
    chosen = chosen[chosen["x"].notna()]
    return None if chosen.empty else _lines_of(chosen, experiment, spec, titles, label)


def _beyond(x: pd.Series, log: bool) -> float:
    """A place to the right of all values, as far from the last as the values are from one another."""
    known = np.sort(x.dropna().unique())
    if len(known) < 2:
        return 10 * known[0] if len(known) else 1.0
    return known[-1] * (known[-1] / known[-2]) if log else 2 * known[-1] - known[-2]


def _scatter(rows, table, experiment, spec, titles):
    """Each method's value of an item against that of the method `x`, or against its own measure `x`."""
    chosen = table[(table["measure"] == spec["y"]) & table["mean"].notna() & table["item"].notna()]
    keys = ["dataset", "dataset_params", "item"]
    if spec["x"] in experiment["methods"]:
        base = chosen[chosen["method"] == spec["x"]]
        others = chosen[chosen["method"] != spec["x"]]
    else:
        base = table[(table["measure"] == spec["x"]) & table["mean"].notna()]
        keys, others = [*keys, "method", "params"], chosen
    others = others.merge(base[[*keys, "mean"]].drop_duplicates(keys), on=keys, suffixes=("", "_base"))
    if others.empty:
        return None
    panel = _panel_of(others, experiment, spec, titles)
    names = _ordered(panel, others, experiment)
    figure, axes = _panels(names, 3.6, {})
    labels = _series(others, spec.get("series", ["method"]), experiment)
    order = list(dict.fromkeys(labels))
    for name, ax in zip(names, axes, strict=True):
        for k, label in enumerate(order):
            part = others[(panel == name) & (labels == label)]
            ax.scatter(
                part["mean_base"], part["mean"], s=9, color=COLORS[k % len(COLORS)], label=label, alpha=0.7, lw=0
            )
        here = others.loc[panel == name, "mean_base"]
        ax.plot([here.min(), here.max()], [here.min(), here.max()], color="0.6", lw=0.8, zorder=0)
        ax.set_xlabel(spec.get("x_label", measure_name(spec["x"])))
    axes[0].set_ylabel(spec.get("y_label", measure_name(spec["y"])))
    axes[0].legend(fontsize=7, frameon=False)
    return figure


def _flows(rows, table, experiment, spec, titles):
    """Maps with an arrow per item `x,y > x,y`, wider for a larger value: a panel per data set and series of the measure `y`,
    and one of the measure `x`, if there is one."""
    known = table[table["mean"].notna() & table["item"].notna()]
    chosen = known[known["measure"] == spec["y"]].copy()
    if chosen.empty:
        return None
    chosen["series"] = _series(chosen, spec.get("series", ["method"]), experiment)
    first = known[known["measure"] == spec.get("x")].drop_duplicates(["dataset", "item"])
    panels = []
    for name in [d for d in experiment["datasets"] if d in set(chosen["dataset"])]:
        title, here = titles.get(name, name), chosen[chosen["dataset"] == name]
        panels += [(f"{title}: {label}", part) for label, part in here.groupby("series", sort=False)]
        if len(true := first[first["dataset"] == name]):
            panels.append((f"{title}: {spec.get('x_label', measure_name(spec['x']))}", true))
    figure, axes = _panels([title for title, _ in panels], 3.8, {}, most=2)
    for (_, part), ax in zip(panels, axes, strict=True):
        _arrows(ax, part)
    return figure


def _arrows(ax, part: pd.DataFrame) -> None:
    ends = np.array([[[float(v) for v in end.split(",")] for end in item.split(">")] for item in part["item"]])
    share = np.sqrt(part["mean"] / part["mean"].max()).to_numpy()  # small flows can still be seen
    ax.scatter(*ends.reshape(-1, 2).T, s=4, color="0.7", lw=0)
    for (start, stop), s in sorted(zip(ends, share, strict=True), key=lambda pair: pair[1]):
        ax.annotate(
            "", stop, start,
            arrowprops={"arrowstyle": "-|>", "lw": 0.3 + 3 * s, "alpha": 0.15 + 0.7 * s, "color": COLORS[0], "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 4 + 8 * s, "connectionstyle": "arc3,rad=0.12"},
        )  # fmt: skip
    ax.set_aspect("equal")
    ax.margins(0.08)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_xticks([])
    ax.set_yticks([])


def _panel_of(frame: pd.DataFrame, experiment: dict, spec, titles: dict[str, str]) -> pd.Series:
    """Title of the panel that each row belongs to: its data set, and the fields of `panel`; of an item counts what stands
    before a colon."""
    fields = spec.get("panel", [])
    named = frame["dataset"].map(lambda d: titles.get(d, str(d)))
    parts = [named] if not fields or frame["dataset"].nunique() > 1 else []
    others = [f for f in fields if f != "item"]
    parts += [_series(frame, others, experiment)] if others else []
    parts += [frame["item"].str.partition(":")[0]] if "item" in fields else []
    joined = parts[0].copy()
    for part in parts[1:]:
        joined = joined + ": " + part
    return joined


def _ordered(panel: pd.Series, frame: pd.DataFrame, experiment: dict) -> list[str]:
    """Panels in the order of the data sets, numbers ascending."""
    place = frame["dataset"].map(list(experiment["datasets"]).index)
    return sorted(set(panel), key=lambda name: (place[panel == name].min(), _natural(name)))


def _lines_of(chosen, experiment, spec, titles, x_label):
    panel = _panel_of(chosen, experiment, spec, titles)
    names = _ordered(panel, chosen, experiment)
    figure, axes = _panels(names, 3.2, {})
    order, named = _legend_order(chosen, experiment), {h["series"]: h["name"] for h in spec.get("highlight", [])}
    named = named if set(named) & set(order) else {}  # where none of them has a result, the others are told apart
    end = chosen["x"].max() if "x_none" in spec else None
    for name, ax in zip(names, axes, strict=True):
        ax.set_xscale("log" if spec.get("x_log") else "linear")
        ax.set_yscale("log" if spec.get("y_log") else "linear")
        here, ends = chosen[panel == name], {}
        for k, label in enumerate(order):
            part = here[here["series"] == label]
            if not part.empty:
                band = label in named if named else len(order) <= MOST_BANDS
                height = _line(ax, part, end, spec.get("y_log"), band, label=label, **_look(k, label, named))
                ends |= {named[label]: (height, _look(k, label, named)["color"])} if label in named else {}
        _scales(ax, spec, x_label, chosen, end)
        _label_ends(ax, ends)
    axes[0].set_ylabel(spec.get("y_label", measure_name(spec["y"])))
    if "title" in spec:
        figure.suptitle(spec["title"], x=0.01, ha="left", fontsize=11, fontweight="bold")
    if len(order) > 8 and not named:
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, fontsize=7, frameon=False, loc="outside lower left", ncols=2)  # below the first panel
    elif not named:
        axes[0].legend(fontsize=7, frameon=False)
    return figure


def _look(k: int, label: str, named: dict) -> dict:
    """Colour and stroke of a series: its own, or where some are highlighted, grey for the others."""
    if not named:
        return {"color": _color(k), "ls": STROKES[k // len(COLORS) % len(STROKES)], "lw": 1.4}
    if label in named:
        return {"color": _color(list(named).index(label)), "ls": "-", "lw": 1.8, "zorder": 3}
    return {"color": "0.75", "ls": "-", "lw": 0.8}


def _scales(ax, spec: dict, x_label: str, chosen: pd.DataFrame, end: float | None) -> None:
    ax.set_xlabel(x_label)
    if "y_from" in spec:
        ax.set_ylim(bottom=spec["y_from"])
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


def _label_ends(ax, ends: dict[str, tuple[float, str]]) -> None:
    """Names of lines at their right ends, moved apart as far as they have to be read."""
    low, high = ax.get_ylim()
    texts = sorted(ends, key=lambda text: ends[text][0])
    y = np.array([np.clip((ends[text][0] - low) / (high - low), 0, 1) for text in texts])
    for _ in range(100):
        short = np.maximum(LABEL_HEIGHT - np.diff(y), 0) / 2
        y = y - np.append(short, 0) + np.insert(short, 0, 0)
    for text, place in zip(texts, y, strict=True):
        ax.annotate(text, (1.01, place), xycoords="axes fraction", color=ends[text][1], fontsize=8, va="center")


LABEL_HEIGHT = 0.07  # of the panel
STROKES = ("-", "--", ":")
MOST_BANDS = 8  # lines whose intervals can be told apart; of more they stand in the table only


def _color(k: int) -> str:
    return COLORS[k % len(COLORS)]


def _legend_order(chosen: pd.DataFrame, experiment: dict) -> list[str]:
    """Labels by number; where there are more than eight, in the order of the methods."""
    labels = list(chosen["series"].unique())
    if len(labels) <= 8:
        return sorted(labels, key=_natural)
    first = chosen.assign(at=chosen["method"].map(list(experiment["methods"]).index)).groupby("series")["at"].min()
    return sorted(labels, key=lambda label: (first[label], _natural(label)))


def _readable(axis) -> None:
    """Ticks at 1, 2 and 5 with plain numbers where a logarithmic axis spans few powers of ten."""
    low, high = axis.get_view_interval()
    if high < 300 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _line(ax, part: pd.DataFrame, end: float | None, log: bool, band: bool, **how) -> float:
    """Draw means and intervals over x; a level line for what is known only at the end, where parameters are none. On a
    logarithmic axis an interval ends at the smallest value, since it may reach below 0. Returns the last mean."""
    means = np.array(
        [[x, *mean_interval(g["value"], summary.overlap_of(g)), g["value"].min()] for x, g in part.groupby("x")]
    )
    if log:
        means[:, 2] = np.maximum(means[:, 2], means[:, 4])
        means[means[:, 1] <= 0] = np.nan
    if end is not None and len(means) == 1 and means[0, 0] == end:
        ax.axhline(means[0, 1], alpha=0.8, **how | {"lw": 0.7 * how["lw"]})
        return means[0, 1]
    ax.plot(means[:, 0], means[:, 1], marker="." if len(means) < 15 else None, **how)
    if band and np.isfinite(means[:, 2]).any():
        ax.fill_between(means[:, 0], means[:, 2], means[:, 3], color=how["color"], alpha=0.15, lw=0)
    return means[-1, 1]
