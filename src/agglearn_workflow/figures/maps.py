"""Maps: flows as arrows, shares of areas as coloured discs at their centroids."""

import json
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from agglearn_workflow.figures.panels import COLORS, Chart, grid, series
from agglearn_workflow.tables.summary import column_or_param

PARALLELS, ORIGIN = (29.5, 45.5), (-96.0, 37.5)  # degrees, of the projection that maps of the United States use
LAND = "#eef0e8"


def flows(chart: Chart) -> Figure | None:
    """Maps with arrows from the key `from` (x, y) to `to`. With `extent` (west, east, south, north) in degrees."""
    height = 2.7 if "extent" in chart.spec else 3.8
    return _draw(chart, height, lambda keys: [keys["from"], keys["to"]], _arrows)


def areas(chart: Chart) -> Figure | None:
    """Maps with a disc for the key `state` at `longitude`, `latitude`, coloured by its share."""
    figure = _draw(chart, 3.0, lambda keys: [keys["longitude"], keys["latitude"]], _discs)
    if figure is not None:
        axes = [ax for ax in figure.axes if ax.axison]
        figure.colorbar(axes[0].collections[0], ax=axes, shrink=0.8, label=chart.name("y"))
    return figure


def _draw(chart: Chart, height: float, coordinates: Callable[[dict], list], draw: Callable) -> Figure | None:
    """A map per panel. `coordinates` reads them from a row's keys, and `draw` draws rows at their projection."""
    panels = list(_panels(chart))
    if not panels:
        return None
    figure, axes = grid([title for title, _ in panels], height, max_columns=2)
    for (_, panel), ax in zip(panels, axes, strict=True):
        points = np.array([coordinates(keys) for keys in map(json.loads, panel["keys"])], dtype=float)
        inside = _inside(points, chart.spec).reshape(len(points), -1).all(axis=1)
        xy, of_earth = points[inside], "extent" in chart.spec
        draw(ax, panel[inside], project_albers(xy) if of_earth else xy, of_earth)
        ax.set_aspect("equal")
        ax.margins(0.08)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


def _panels(chart: Chart) -> Iterator[tuple[str, pd.DataFrame]]:
    """(title, rows) of every data set: first the measure `x`, if there is one, then each series of the measure `y`."""
    table, spec, experiment = chart.table, chart.spec, chart.experiment
    rows = table[table["mean"].notna() & table["keys"].notna()]
    chosen = rows[rows["measure"] == spec["y"]]
    truth = rows[rows["measure"] == spec.get("x")].drop_duplicates(["dataset", "dataset_params", "keys"])
    varied = [f for f in spec.get("series", []) if f.startswith("dataset_params.")]
    for name in [d for d in experiment["datasets"] if d in set(chosen["dataset"])]:
        title = chart.titles.get(name, name) if chosen["dataset"].nunique() > 1 or "extent" not in spec else ""
        true, panels = truth[truth["dataset"] == name], chosen[chosen["dataset"] == name]
        for setting, panel in true.groupby(series(true, varied, experiment), sort=False):
            yield _title(title, setting, chart.name("x")), panel
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
