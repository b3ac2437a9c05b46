"""A summary laid out as a table that people read, as journals print it: methods as rows, settings as columns."""

import itertools
import json
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from agglearn.reporting import summary
from agglearn.reporting.numbers import UNITS, direction, fitting_unit, measure_name, number, parameter_name, plain
from agglearn.reporting.run_summary import CELL

NO_RESULT = "No run of this table has a result."


@dataclass
class Cell:
    """A cell of a printed table.

    Attributes
    ----------
    value : the number, or a statement in its place.
    reported : the number that the source prints. difference : ours less that. verdict : on the two.
    note : number of a note below the table.
    best : whether it is the best of its group, or not told from the best by the intervals.
    stated : whether `value` is a statement.
    """

    value: str = ""
    reported: str = ""
    difference: str = ""
    verdict: str = ""
    note: int | None = None
    best: bool = False
    stated: bool = False


@dataclass
class Grid:
    """A printed table.

    Attributes
    ----------
    stubs : heading of each column of row labels. rows : the labels of each row.
    heads : the labels of each column, from the outermost to the innermost. corner : the measure, if there is one only.
    cells : by row and column. notes : below the table.
    """

    stubs: list[str]
    rows: list[tuple[str, ...]]
    heads: list[tuple[str, ...]]
    cells: dict[tuple[int, int], Cell]
    corner: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def marked(self) -> bool:
        """Whether some cell is marked as the best."""
        return any(c.best for c in self.cells.values())


def grids(table: pd.DataFrame, experiment: dict, titles: dict[str, str]) -> list[tuple[str, Grid]]:
    """(title, grid) of every table of an experiment: one, or one for each value of the field `each`."""
    title, each = experiment["title"], (experiment.get("table") or {}).get("each")
    if each is None:
        return [(title, grid(table, experiment, titles))]
    parts = []
    for key in _keys(table, [each], experiment):
        part = table[_where(table, [each], key)]
        parts.append((f"{title}: {_label(each, key[0], experiment, titles)}", grid(part, experiment, titles)))
    return parts or [(title, sentence(NO_RESULT))]


def sentence(text: str) -> Grid:
    """A table with one cell, which holds a sentence."""
    return Grid([""], [("all",)], [("result",)], {(0, 0): Cell(text, stated=True)})


def grid(table: pd.DataFrame, experiment: dict, titles: dict[str, str]) -> Grid:
    """Lay a summary out by the experiment's `table:` (default: methods × data sets, first measure)."""
    spec = experiment.get("table") or {"rows": ["method"], "columns": ["dataset"], "measure": experiment["measures"][0]}
    measures = spec["measure"] if isinstance(spec["measure"], list) else [spec["measure"]]
    beside = _measures_beside(spec, experiment["measures"])
    shown = _shown(table, [*measures, *beside])
    rows, columns = list(spec["rows"]), list(spec["columns"])
    if beside:
        shown["beside"] = shown["measure"].isin(beside).map({True: spec["beside"], False: None})
        shown["measure"] = shown["measure"].map(lambda m: beside.get(m, m))
        columns.append("beside")
    if len(measures) > 1 and "measure" not in rows + columns:
        columns.append("measure")
    rows += _undistinguished(shown, rows + columns)
    if shown.empty:
        return sentence(NO_RESULT)
    units = {m: fitting_unit(part["unit"].dropna().iloc[0] if part["unit"].notna().any() else "", part["mean"])
             for m, part in shown.groupby("measure")}  # fmt: skip
    names = {m: measure_name(m) + (f" ({units[m][0]})" if units.get(m, ("",))[0] else "") for m in measures}
    row_keys, column_keys = _keys(shown, rows, experiment), _keys(shown, columns, experiment)
    cells, notes = _cells(
        shown, rows, row_keys, columns, column_keys, {m: size for m, (_, size) in units.items()}, experiment
    )
    return Grid(
        [_heading(f) for f in rows],
        [tuple(_bare(f, v, experiment, titles, names) for f, v in zip(rows, key, strict=True)) for key in row_keys],
        _heads(columns, column_keys, spec, experiment, titles, names),
        cells,
        names[measures[0]] if len(measures) == 1 else "",
        notes,
    )


def _cells(
    shown, rows, row_keys, columns, column_keys, units: dict[str, float], experiment: dict
) -> tuple[dict, list[str]]:
    """(cells by row and column, notes). The best of each setting are marked."""
    notes, cells, compared = [], {}, defaultdict(dict)
    for i, j in itertools.product(range(len(row_keys)), range(len(column_keys))):
        match = shown[_where(shown, rows, row_keys[i]) & _where(shown, columns, column_keys[j])]
        if match.empty:
            continue
        row = match.iloc[0]
        cells[i, j] = _cell(row, experiment, units[row["measure"]], notes)
        if not cells[i, j].stated:
            named = zip(rows + columns, row_keys[i] + column_keys[j], strict=True)
            setting = str([(f, v) for f, v in named if _is_setting(f, columns)])
            compared[row["measure"], setting][i, j] = row
    for (measure, _), group in compared.items():
        for place in _best(group, direction(measure)):
            cells[place].best = True
    return cells, notes


def _shown(table: pd.DataFrame, measures: list[str]) -> pd.DataFrame:
    """Rows of the measures. A run without result has one in the place of the first, whatever is printed of another measure."""
    without = table[table["status"] != "ok"].assign(measure=measures[0], reported=np.nan, place=None, verdict=None)
    shown = pd.concat([table[table["measure"].isin(measures)], without])
    return shown.drop_duplicates([*CELL, "measure", "item"])


def _measures_beside(spec: dict, measures: list[str]) -> dict[str, str]:
    """Measures that stand in a column beside another, with the name of that: `expected_share` and `share`."""
    names = spec["measure"] if isinstance(spec["measure"], list) else [spec["measure"]]
    return {other: name for name in names if (other := f"{spec.get('beside')}_{name}") in measures}


def _is_setting(name: str, columns: list[str]) -> bool:
    """Whether methods are compared under one value of this field, and not across it: data, items, and observations in columns."""
    kind = name.partition(".")[0]
    return kind in ("dataset", "dataset_params", "item") or (kind == "observation_params" and name in columns)


def _best(group: dict, better: str | None) -> list:
    """Places of the best mean of a group and of those not told from it by the intervals: the difference is within both halves.
    What has no interval is given the widest of the group. None where all are alike, or none has an interval."""
    if better is None or len(group) < 2:
        return []
    means = {place: row["mean"] for place, row in group.items()}
    halves = {place: (row["high"] - row["low"]) / 2 for place, row in group.items()}
    widest = max((half for half in halves.values() if half == half), default=np.nan)
    halves = {place: half if half == half else widest for place, half in halves.items()}
    top = (max if better == "higher" else min)(means, key=means.get)
    near = [p for p in group if not abs(means[p] - means[top]) > np.hypot(halves[p], halves[top])]
    return near if len(near) < len(group) else []


def _heads(
    columns: list[str], keys: list[tuple], spec: dict, experiment: dict, titles: dict, names: dict
) -> list[tuple]:
    """Labels of each column, a level for each of its settings, and under them the measure."""
    settings = [f for f in columns if f != "measure"]
    labels = [
        [_label(f, v, experiment, titles) for f, v in zip(columns, key, strict=True) if f != "measure"] for key in keys
    ]
    used = [k for k in range(len(settings)) if any(texts[k] for texts in labels)]
    heads = []
    for key, texts in zip(keys, labels, strict=True):
        above = [texts[k] for k in used]
        if settings and not any(above):
            above = [spec.get("none", ""), *above[1:]]
        below = [names[v] for f, v in zip(columns, key, strict=True) if f == "measure"]
        heads.append(tuple(above + below) or ("value",))
    return heads


def _undistinguished(shown: pd.DataFrame, used: list[str]) -> list[str]:
    """Parameters that tell rows apart which `used` does not: they join the row headers."""
    more = []
    for column in ("dataset_params", "observation_params", "params"):
        names = sorted({k for text in shown[column].dropna() for k in json.loads(text)})
        more += [f"{column}.{n}" for n in names if f"{column}.{n}" not in used]
    if shown["item"].notna().any() and "item" not in used:
        more.append("item")
    needed = []
    base = [f for f in [*used, "measure"] if f]
    for name in more:
        groups = pd.DataFrame(
            {f: summary.field(shown, f).map(str) for f in base} | {name: summary.field(shown, name).map(str)}
        )
        if groups.groupby(base, dropna=False)[name].nunique().max() > 1:
            needed.append(name)
            base.append(name)
    return needed


def _keys(shown: pd.DataFrame, fields: list[str], experiment: dict) -> list[tuple]:
    """Combinations of values in the order of the configuration, numbers ascending. Of no fields there is one."""
    if not fields:
        return [()]
    order = {"method": list(experiment["methods"]), "dataset": list(experiment["datasets"])}
    spec = (experiment.get("table") or {}).get("measure", [])
    order["measure"] = spec if isinstance(spec, list) else [spec]
    columns = [summary.field(shown, f) for f in fields]
    keys = list(dict.fromkeys(zip(*(c.where(c.notna(), None) for c in columns), strict=True)))

    def rank(key):
        return [
            (0, order[f].index(v), "") if f in order and v in order[f]
            else (0, v, "") if isinstance(v, int | float) and not isinstance(v, bool)
            else (1, 0, str(v))
            for f, v in zip(fields, key, strict=True)
        ]  # fmt: skip

    return sorted(keys, key=rank)


def _where(shown: pd.DataFrame, fields: list[str], key) -> pd.Series:
    same = pd.Series(True, index=shown.index)
    for name, value in zip(fields, key, strict=True):
        column = summary.field(shown, name)
        same &= column.isna() if value is None else column == value
    return same


def _heading(name: str) -> str:
    """Heading of a column of row labels: a parameter's name. Methods, data sets, measures and items have none."""
    return parameter_name(name.rpartition(".")[2]) if "." in name else ""


def _bare(name: str, value, experiment: dict, titles: dict[str, str], names: dict[str, str]) -> str:
    """A row's label below its heading."""
    if name == "measure":
        return names[value]
    return ("" if value is None else plain(value)) if "." in name else _label(name, value, experiment, titles)


def _label(name: str, value, experiment: dict, titles: dict[str, str]) -> str:
    """What tells a column from the others. Nothing for a parameter that it does not have."""
    if name == "method":
        return experiment["methods"][value].get("name") or value.replace("_", " ")
    if name == "dataset":
        return titles.get(value, value)
    if name == "measure":
        return measure_name(value)
    if name in ("item", "beside"):
        return "" if value is None else str(value)
    return "" if value is None else f"{parameter_name(name.rpartition('.')[2])} = {plain(value)}"


def _cell(row, experiment: dict, unit: float, notes: list[str]) -> Cell:
    """A row of the summary as a cell. `unit` is the size of the unit that it is written in."""
    reported, place = "", row["place"]
    if pd.notna(row["reported"]):
        entry = next(e for e in experiment["reported"] if e["value"] == row["reported"] and e["place"] == place)
        reported = entry.get("printed") or f"{row['reported']:g}" if unit == 1.0 else number(row["reported"] / unit)
    note = None
    if isinstance(row["reason"], str) and row["reason"] and row["status"] != "stopped":
        if row["reason"] not in notes:
            notes.append(row["reason"])
        note = notes.index(row["reason"]) + 1
    if row["status"] != "ok" or not np.isfinite(row["mean"]):
        return Cell(statement(row), reported, note=note, stated=True)
    gap = _gap(row, reported) if reported else ""
    value = number(row["mean"] / unit, row["low"] / unit, row["high"] / unit)
    return Cell(value, reported, gap, row["verdict"] if isinstance(row["verdict"], str) else "", note)


def _gap(row, reported: str) -> str:
    """Ours less the printed number; of times and sizes the ratio, since they are of other machines."""
    if row["unit"] in UNITS and row["mean"] > 0 < row["reported"]:
        ratio = row["mean"] / row["reported"]
        return f"{number(ratio)}× as much" if ratio > 1 else f"{number(1 / ratio)}× less"
    digits = max(len(reported.partition(".")[2]), 2)
    return f"{row['mean'] - row['reported']:+,.{digits}f}".replace("-", "−")


def statement(row) -> str:
    """What stands in a cell without a number; of a solver that stopped, its limit."""
    return {"unavailable": "not available", "stopped": row["reason"]}.get(row["status"], row["status"])
