"""Layout of a summary as journals print tables: methods as rows, settings as columns."""

import itertools
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from agglearn.reporting import summary
from agglearn.reporting.numbers import UNITS, direction, fitting_unit, measure_name, number, parameter_name, plain
from agglearn.reporting.run_summary import CELL

NO_RESULT = "No run of this table has a result."


@dataclass
class Cell:
    """A cell of a printed table."""

    value: str = ""
    reported: str = ""
    difference: str = ""
    outcome: str = ""
    note: int | None = None
    best: bool = False
    stated: bool = False


@dataclass
class Grid:
    """A printed table."""

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
    tables = []
    for key in _keys(table, [each], experiment):
        rows = table[_is_key(table, [each], key)]
        tables.append((f"{title}: {_label(each, key[0], experiment, titles)}", grid(rows, experiment, titles)))
    return tables or [(title, sentence(NO_RESULT))]


def sentence(text: str) -> Grid:
    """A table with one cell, which is a sentence."""
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
    units = {m: fitting_unit(rows_of["unit"].dropna().iloc[0] if rows_of["unit"].notna().any() else "", rows_of["mean"])
             for m, rows_of in shown.groupby("measure")}  # fmt: skip
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
    shown: pd.DataFrame, rows: list[str], row_keys: list[tuple], columns: list[str], column_keys: list[tuple],
    units: dict[str, float], experiment: dict,
) -> tuple[dict[tuple[int, int], Cell], list[str]]:  # fmt: skip
    """(cells by row and column, notes). The best of each setting are marked."""
    notes: list[str] = []
    cells: dict[tuple[int, int], Cell] = {}
    compared: dict[tuple[str, str], dict[tuple[int, int], pd.Series]] = defaultdict(dict)
    for i, j in itertools.product(range(len(row_keys)), range(len(column_keys))):
        match = shown[_is_key(shown, rows, row_keys[i]) & _is_key(shown, columns, column_keys[j])]
        if match.empty:
            continue
        row = match.iloc[0]
        cells[i, j] = _cell(row, units[row["measure"]], notes)
        if not cells[i, j].stated:
            named = zip(rows + columns, row_keys[i] + column_keys[j], strict=True)
            setting = str([(f, v) for f, v in named if _is_setting(f, columns)])
            compared[row["measure"], setting][i, j] = row
    for (measure, _), group in compared.items():
        for position in _best(group, direction(measure)):
            cells[position].best = True
    return cells, notes


def _shown(table: pd.DataFrame, measures: list[str]) -> pd.DataFrame:
    """Rows of the measures. A run without a result has one for the first measure, also where another one is printed."""
    without = table[table["status"] != "ok"].assign(
        measure=measures[0], reported=np.nan, printed=None, place=None, outcome=None
    )
    shown = pd.concat([table[table["measure"].isin(measures)], without])
    return shown.drop_duplicates([*CELL, "measure", "keys"])


def _measures_beside(spec: dict, measures: list[str]) -> dict[str, str]:
    """Measures in a column beside another, with the name of the other: `expected_share` and `share`."""
    names = spec["measure"] if isinstance(spec["measure"], list) else [spec["measure"]]
    return {other: name for name in names if (other := f"{spec.get('beside')}_{name}") in measures}


def _is_setting(name: str, columns: list[str]) -> bool:
    """Whether methods are compared within one value of this field: data, keys, and observations in columns."""
    kind = name.partition(".")[0]
    return kind in ("dataset", "dataset_params", "keys") or (kind == "observation_params" and name in columns)


def _best(group: dict[tuple[int, int], pd.Series], better: str | None) -> list[tuple[int, int]]:
    """Positions of the best mean of a group, and of the means that the intervals do not separate from it.

    Two means are separate where their difference exceeds both half intervals together. Seeds that are all equal have no interval,
    and their mean is exact. The value of a single seed has the widest interval of the group. The list is empty where nothing is
    separate, or nothing has an interval.
    """
    if better is None or len(group) < 2:
        return []
    means = {position: row["mean"] for position, row in group.items()}
    halves = {position: (row["high"] - row["low"]) / 2 for position, row in group.items()}
    widest = max((half for half in halves.values() if half == half), default=np.nan)
    halves = {p: half if half == half else widest * (group[p]["n"] == 1) for p, half in halves.items()}
    top = (max if better == "higher" else min)(means, key=lambda position: means[position])
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
    """Parameters and keys that distinguish rows which `used` does not distinguish. They join the row headers."""
    candidates = []
    for column in ("dataset_params", "observation_params", "params", "keys"):
        names = sorted({k for text in shown[column].dropna() for k in json.loads(text)})
        candidates += [f"{column}.{n}" for n in names if f"{column}.{n}" not in used]
    needed = []
    base = [f for f in [*used, "measure"] if f]
    for name in candidates:
        groups = pd.DataFrame(
            {f: summary.column_or_param(shown, f).map(str) for f in base}
            | {name: summary.column_or_param(shown, name).map(str)}
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
    columns = [summary.column_or_param(shown, f) for f in fields]
    keys = list(dict.fromkeys(zip(*(c.where(c.notna(), None) for c in columns), strict=True)))

    def rank(key: tuple) -> list[tuple]:
        return [
            (0, order[f].index(v), "") if f in order and v in order[f]
            else (0, v, "") if isinstance(v, int | float) and not isinstance(v, bool)
            else (1, 0, str(v))
            for f, v in zip(fields, key, strict=True)
        ]  # fmt: skip

    return sorted(keys, key=rank)


def _is_key(shown: pd.DataFrame, fields: list[str], key: tuple) -> pd.Series:
    """Whether a row has the values of a key in some fields."""
    same = pd.Series(True, index=shown.index)
    for name, value in zip(fields, key, strict=True):
        column = summary.column_or_param(shown, name)
        same &= column.isna() if value is None else column == value
    return same


def _heading(name: str) -> str:
    """Heading of a column of row labels: the name of a parameter or key. Methods, data sets and measures have none."""
    return parameter_name(name.rpartition(".")[2]) if "." in name else ""


def _bare(name: str, value: Any, experiment: dict, titles: dict[str, str], names: dict[str, str]) -> str:
    """A row's label below its heading."""
    if name == "measure":
        return names[value]
    return ("" if value is None else plain(value)) if "." in name else _label(name, value, experiment, titles)


def _label(name: str, value: Any, experiment: dict, titles: dict[str, str]) -> str:
    """Label of a column. Empty for a parameter that it does not have."""
    if name == "method":
        return experiment["methods"][value].get("name") or value.replace("_", " ")
    if name == "dataset":
        return titles.get(value, value)
    if name == "measure":
        return measure_name(value)
    if name == "beside":
        return "" if value is None else str(value)
    return "" if value is None else f"{parameter_name(name.rpartition('.')[2])} = {plain(value)}"


def _cell(row: pd.Series, unit: float, notes: list[str]) -> Cell:
    """A row of the summary as a cell. `unit` is the size of the unit."""
    reported = ""
    if pd.notna(row["reported"]):
        reported = row["printed"] if unit == 1.0 else number(row["reported"] / unit)
    note = None
    if isinstance(row["reason"], str) and row["reason"] and row["status"] != "stopped":
        if row["reason"] not in notes:
            notes.append(row["reason"])
        note = notes.index(row["reason"]) + 1
    if row["status"] != "ok" or not np.isfinite(row["mean"]):
        return Cell(statement(row), reported, note=note, stated=True)
    difference = _difference(row, reported) if reported else ""
    value = number(row["mean"] / unit, row["low"] / unit, row["high"] / unit)
    return Cell(value, reported, difference, row["outcome"] if isinstance(row["outcome"], str) else "", note)


def _difference(row: pd.Series, reported: str) -> str:
    """Our number less the printed one. For times and sizes, which depend on the machine, the ratio."""
    if row["unit"] in UNITS and row["mean"] > 0 < row["reported"]:
        ratio = row["mean"] / row["reported"]
        return f"{number(ratio)}× as much" if ratio > 1 else f"{number(1 / ratio)}× less"
    digits = max(len(reported.partition(".")[2]), 2)
    return f"{row['difference']:+,.{digits}f}".replace("-", "−")


def statement(row: Mapping[str, Any] | pd.Series) -> str:
    """Text of a cell without a number. For a solver that stopped, its limit."""
    return {"unavailable": "not available", "stopped": row["reason"]}.get(row["status"], row["status"])
