"""Small multiples: panels of rows, and names, order and colours of series."""

import re
import textwrap
from dataclasses import dataclass
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agglearn_workflow.tables import summary
from agglearn_workflow.tables.numbers import measure_name, method_name, setting

STYLE = {
    "svg.hashsalt": "agglearn", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.3, "figure.constrained_layout.use": True, "svg.fonttype": "path",
}  # fmt: skip
# Near the palette of Okabe and Ito. Each two differ by ΔE2000 ≥ 15, also under the three deficiencies of colour vision.
COLORS = ["#116699", "#aa5522", "#009973", "#772255", "#cc8811", "#000000", "#8f97a8"]
WIDTH = 4.2  # of a panel, in inches


def grid(
    names: list, height: float, titles: dict | None = None, max_columns: int = 3, width: float = WIDTH, wrap: int = 44
) -> tuple[Figure, list[Axes]]:
    """(figure, one axes per name), with `titles` in place of names, in lines of `wrap` letters."""
    columns = 2 if len(names) == 4 and max_columns == 3 else min(len(names), max_columns)
    lines = -(-len(names) // columns)
    size = min(width * columns + 0.8, 13), height * lines
    figure, all_axes = plt.subplots(lines, columns, figsize=size, squeeze=False)
    for axes in all_axes.flat[len(names) :]:
        axes.axis("off")
    for name, axes in zip(names, all_axes.flat, strict=False):
        axes.set_title(textwrap.fill((titles or {}).get(name, str(name)), wrap), fontsize=9, loc="left")
    return figure, list(all_axes.flat[: len(names)])


def color(k: int) -> str:
    return COLORS[k % len(COLORS)]


def natural(label: str) -> list:
    """Sort key under which numbers inside text count as numbers."""
    return [float(text) if i % 2 else text for i, text in enumerate(re.split(r"(\d+(?:\.\d+)?)", label))]


def series(frame: pd.DataFrame, fields: list[str], experiment: dict) -> pd.Series:
    def text(name: str, value: Any) -> str:
        return method_name(experiment, value) if name == "method" else setting(name, value)

    columns = [summary.column_or_param(frame, f) for f in fields]
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

    def name(self, axis: str) -> str:
        return self.spec.get(f"{axis}_label", measure_name(self.spec[axis]))


def axis_label(spec: dict, frame: pd.DataFrame) -> str:
    if "y_label" in spec:
        return spec["y_label"]
    units = set(frame["unit"].dropna()) - {""} if "unit" in frame else set()
    return measure_name(spec["y"]) + (f" ({units.pop()})" if len(units) == 1 else "")
