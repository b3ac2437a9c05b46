"""What a figure is drawn from, and what all kinds of figures share: style, colours, panels, legend."""

import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from agglearn.text import count_text
from agglearn_workflow.tables.numbers import direction, measure_name, method_name, number, seeds_text, setting
from agglearn_workflow.tables.summary import column_or_param

SMALL = 8  # points, the smallest text
STYLE = {
    "svg.hashsalt": "agglearn", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.3, "figure.constrained_layout.use": True, "svg.fonttype": "none",
    "legend.fontsize": SMALL, "legend.frameon": False, "legend.handlelength": 1.5, "legend.columnspacing": 1.0,
    "figure.facecolor": "none", "axes.facecolor": "none",
}  # fmt: skip
# Near the palette of Okabe and Ito. Each two differ by ΔE2000 ≥ 15, also under the three deficiencies of colour vision.
COLORS = ["#116699", "#aa5522", "#009973", "#772255", "#cc8811", "#000000", "#8f97a8"]
PAGE, WIDTH = 7.0, 4.2  # of a page and of the largest panel, in inches
LETTER = 0.075  # inches, about
PRINTED = "printed in the source"
ROW_LABEL = 34  # letters in a line of the name of a row or an axis
MARKERS, MARKED = "os^vPX*", 12  # forms, and at most so many on a line


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


def marker(k: int) -> str:
    return MARKERS[k % len(MARKERS)]


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

        @lru_cache(None, typed=True)  # as 1 and True are written differently
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
        better, seeds = direction(self.spec["y"]), seeds_text(chosen["n"])
        name = measure_name(self.spec["y"], self.experiment)
        sentences = [f"{name[:1].upper()}{name[1:]}: {better} is better." if better else ""]
        sizes = column_or_param(chosen, "dataset_params.rows").dropna().unique()
        if self.spec.get("panel") and chosen["dataset"].nunique() == 1:  # which no panel names
            sentences += [f"{self.titles.get(d, d)}." for d in chosen["dataset"][:1]]
        if len(sizes) == 1 and "Classification" in self.experiment.get("task", ""):  # other tasks have rows of a grid
            sentences.append(f"At most {count_text(sizes[0], 'record')}.")
        if seeds:
            sentences.append(f"Means {'' if self.spec['kind'] == 'scatter' else 'with 95 % intervals '}over {seeds}.")
        finding = self.experiment.get("findings", {}).get(self.spec["y"])
        return "\n".join(filter(None, [finding, " ".join(filter(None, sentences))]))

    def label(self, axis: str, rows: pd.DataFrame | None = None) -> str:
        """The stated label of an axis, else its measure, with the unit that rows have in common."""
        units = set() if rows is None else set(rows["unit"].dropna()) - {""}
        unit = f" ({units.pop()})" if len(units) == 1 else ""
        return self.spec.get(f"{axis}_label", measure_name(self.spec[axis], self.experiment) + unit)


def legend(figure: Figure, handles: list, labels: list[str]) -> None:
    """Names below the panels. The figure grows by their height."""
    if not labels:
        return
    columns = min(max(int(figure.get_figwidth() / (0.06 * max(map(len, labels)) + 0.4)), 1), len(labels))
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.17 * -(-len(labels) // columns))
    figure.legend(handles, labels, loc="outside lower left", ncols=columns)


def readable(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 with plain numbers where a logarithmic axis spans few powers of ten."""
    low, high = axis.get_view_interval()
    if high < 300 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(tick)
    axis.set_minor_formatter(NullFormatter())
