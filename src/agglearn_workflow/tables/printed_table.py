"""Layout of a summary as journals print tables: methods as rows, settings as columns."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from agglearn.text import count_text
from agglearn_workflow.run_summary import CELL
from agglearn_workflow.tables import numbers, summary

NO_RESULT = "No run of this table has a result."
WIDTH, LABEL, GAP = 112, 32, 3  # letters of a page, of a line of a row's label, and between columns
BEST = "Bold: the best of its setting, and what the intervals do not separate from it."


@dataclass
class Cell:
    value: str = ""
    reported: str = ""
    difference: str = ""
    outcome: str = ""
    note: int | None = None
    number: int | None = None  # of its row in the summary
    best: bool = False
    stated: bool = False

    @property
    def beside(self) -> str:
        printed = ", ".join(filter(None, [self.reported, self.difference]))
        return (f" ({printed})" if printed else "") + (f" [{self.note}]" if self.note else "")


@dataclass
class Grid:
    """A table, or a sentence in its place."""

    stubs: list[str]
    rows: list[tuple[str, ...]]
    heads: list[tuple[str, ...]]
    cells: dict[tuple[int, int], Cell]
    corner: str = ""
    notes: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)  # why rows and columns are not there
    of_all: str = ""  # what would be a note of every cell
    sentence: str = ""

    def explain(self, caption: str) -> str:
        of_all = f"All numbers: {self.of_all}." if self.of_all else ""
        return " ".join(filter(None, [caption, of_all]))

    @property
    def width(self) -> int:
        """In letters, of the words that a line of a head cannot break."""
        stubs = [max(len(labels[k]) for labels in [self.stubs, *self.rows]) for k in range(len(self.stubs))]
        cells: list[int] = [
            max((len(word) for text in head for word in text.split()), default=1) for head in self.heads
        ]
        for (_, column), cell in self.cells.items():
            printed = 0.8 * len(f"paper {cell.reported}, {cell.difference} ") if cell.reported else 0
            cells[column] = max(cells[column], len(cell.value), int(printed))
        return sum(min(stub, LABEL) for stub in stubs) + sum(cells) + GAP * len([*stubs, *cells])

    @property
    def lines(self) -> list[tuple[tuple[str, ...], list[Cell]]]:
        columns = range(len(self.heads))
        return [(labels, [self.cells.get((i, j), Cell("–")) for j in columns]) for i, labels in enumerate(self.rows)]

    @property
    def spanned_lines(self) -> list[tuple[list[tuple[str, int]], list[Cell]]]:
        """As `lines`, with (label, number of rows that it spans). A label stands in the first of its rows."""
        labels: list[list[tuple[str, int]]] = [[] for _ in self.rows]
        for k in range(len(self.stubs)):
            for first, n in _spans(self.rows, k):
                labels[first].append((self.rows[first][k], n))
        return [(spanned, cells) for spanned, (_, cells) in zip(labels, self.lines, strict=True)]

    @property
    def levels(self) -> list[list[tuple[str, int]]]:
        """Rows of the header, outermost first: (label, number of columns that it spans)."""
        levels = [[(self.heads[first][k], n) for first, n in _spans(self.heads, k)] for k in range(len(self.heads[0]))]
        return [level for level in ([(self.corner, len(self.heads))], *levels) if any(text for text, _ in level)]


def _spans(labels: list[tuple[str, ...]], k: int) -> list[tuple[int, int]]:
    """(first, number) of neighbours that share labels up to level k. At the last level each stands alone."""
    prefixes = (label[: k + 1] if k < len(label) - 1 else i for i, label in enumerate(labels))
    sizes = [len(list(same)) for _, same in itertools.groupby(prefixes)]
    return list(zip(itertools.accumulate(sizes, initial=0), sizes, strict=False))


def grids(table: pd.DataFrame, experiment: dict, titles: dict[str, str]) -> list[tuple[str, Grid]]:
    """(title, grid) of every table of an experiment: one, or one for each value of the field `each`. A table that does
    not fit a page is turned, or has one table per measure."""
    title, each = experiment["title"], (experiment.get("table") or {}).get("each")
    if each is None:
        return _fitting(title, table, experiment, titles)
    keys, position = _positions(table, [each], experiment)
    tables = []
    for k, (value,) in enumerate(keys):
        name = f"{title}: {_label(experiment, titles, {}, each, value)}"
        tables += _fitting(name, table[np.equal(position, k)], experiment, titles)
    return tables or [(title, sentence(NO_RESULT))]


def _fitting(title: str, table: pd.DataFrame, experiment: dict, titles: dict[str, str]) -> list[tuple[str, Grid]]:
    as_stated, measures = grid(table, experiment, titles), measures_of(experiment)
    if as_stated.width <= WIDTH:
        return [(title, as_stated)]
    turned = grid(table, experiment, titles, turned=True)
    if min(turned.width, as_stated.width) <= WIDTH or len(measures) == 1:
        return [(title, min(as_stated, turned, key=lambda g: g.width))]
    of_each = [experiment | {"table": experiment["table"] | {"measure": measure}} for measure in measures]
    names = [f"{title}: {numbers.measure_name(measure, experiment)}" for measure in measures]
    return [fitted for name, e in zip(names, of_each, strict=True) for fitted in _fitting(name, table, e, titles)]


def measures_of(experiment: dict) -> list[str]:
    """Measures of the table of an experiment. A figure that is not described shows the first of them."""
    measure = (experiment.get("table") or {"measure": experiment["measures"][0]})["measure"]
    return measure if isinstance(measure, list) else [measure]


def sentence(text: str, without: list[str] | None = None) -> Grid:
    return Grid([], [], [], {}, without=without or [], sentence=text)


def grid(table: pd.DataFrame, experiment: dict, titles: dict[str, str], turned: bool = False) -> Grid:
    """Lay a summary out by the experiment's `table:` (default: methods × data sets, first measure), rows as columns where
    it is turned."""
    spec = experiment.get("table") or {"rows": ["method"], "columns": ["dataset"]}
    measures = measures_of(experiment)
    rows, columns = list(spec["rows"]), list(spec["columns"])
    if len(measures) == 1 and rows != ["measure"]:  # its name is in the head
        rows, columns = ([f for f in fields if f != "measure"] for fields in (rows, columns))
    table = _of_measures(table, measures)
    if len(measures) > 1 and "measure" not in rows + columns:
        columns.append("measure")
    rows += undistinguished(table, rows + columns)
    rows, columns = (columns, rows) if turned else (rows, columns)
    table, without = _with_results(table, rows, columns)
    if table.empty:
        return sentence(NO_RESULT, without)
    # a parameter that no row has, such as one of a rival whose package is absent, has no column
    rows = [f for f in rows if "." not in f or summary.column_or_param(table, f).notna().any()] or rows[:1]
    groups = table.groupby("measure")
    units = {m: _unit(group) for m, group in groups}
    of_unit = {m: f" ({units[m][0]})" if units.get(m, ("",))[0] else "" for m in measures}
    names = {m: numbers.measure_name(m, experiment) + of_unit[m] for m in measures}
    label = partial(_label, experiment, titles, names)

    def stub(name: str, value: Any) -> str:  # below its heading, which has the name of a parameter
        if "." not in name:
            return label(name, value)
        if value is None:
            return ""
        return experiment.get("words", {}).get(str(value)) or numbers.plain(value, name.rpartition(".")[2])

    row_keys, in_rows = _positions(table, rows, experiment)
    column_keys, in_columns = _positions(table, columns, experiment)
    settings = list(map(str, _values(table, [f for f in rows + columns if _is_setting(f, columns)])))
    placed = table.assign(row=in_rows, column=in_columns, setting=settings)
    none = (spec.get("none", ""), *[""] * (len(rows) - 1))
    cells, notes = _cells(placed, {m: size for m, (_, size) in units.items()})
    of_all = ""
    if len(notes) == 1 and len(cells) > 1 and all(cell.note for cell in cells.values()):
        (of_all,), notes = notes, []
        cells = {key: replace(cell, note=None) for key, cell in cells.items()}
    return Grid(
        [numbers.parameter_name(f.rpartition(".")[2]) if "." in f else "" for f in rows],
        [tuple(map(stub, rows, key)) if any(k is not None for k in key) else none for key in row_keys],
        _heads(columns, [list(map(label, columns, key)) for key in column_keys], spec.get("none", "")),
        cells,
        names[measures[0]] if len(measures) == 1 else "",
        notes,
        without,
        of_all,
    )


def _with_results(table: pd.DataFrame, rows: list[str], columns: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """A summary without the rows and columns in which nothing is there, and sentences on them."""
    present, remaining = ~table["status"].isin(["unavailable", "not archived"]), table
    for fields in (rows, columns):
        remaining = remaining[
            present[remaining.index].groupby(pd.Series(_values(remaining, fields), remaining.index)).transform("any")
        ]
    reasons = table.loc[table.index.difference(remaining.index), "reason"].value_counts(sort=False)
    return remaining, [f"{reason} ({count_text(n, 'cell')})" for reason, n in reasons.items()]


def _unit(rows: pd.DataFrame) -> tuple[str, float]:
    name, size = numbers.fitting_unit(next(iter(rows["unit"].dropna()), ""), rows["mean"])
    power = 0 if name else numbers.common_power(rows["mean"])
    return (f"×10{str(power).translate(numbers.SUPERSCRIPTS)}", 10.0**power) if power else (name, size)


def _of_measures(table: pd.DataFrame, measures: list[str]) -> pd.DataFrame:
    """Rows of the measures. A run without a result has one for the first measure, also where another one is printed."""
    printed = {"reported": np.nan, "printed": None, "place": None, "outcome": None}
    without = table[table["status"] != "ok"].assign(measure=measures[0], **printed)
    rows = pd.concat([table[table["measure"].isin(measures)], without])
    return rows.drop_duplicates([*CELL, "measure", "keys"], ignore_index=True)


def _is_setting(name: str, columns: list[str]) -> bool:
    """Whether methods are compared within one value of this field: data, keys, and observations in columns."""
    kind = name.partition(".")[0]
    return kind in ("dataset", "dataset_params", "keys") or (kind == "observation_params" and name in columns)


def undistinguished(table: pd.DataFrame, used: list[str]) -> list[str]:
    """Parameters and keys that distinguish rows which `used` does not distinguish. They join the row headers."""
    groups = np.zeros(len(table), dtype=int)
    for name in dict.fromkeys([*used, "measure"]):
        groups = _split(groups, table, name)
    added: list[str] = []
    for column in ("dataset_params", "observation_params", "params", "keys"):
        for name in sorted({f"{column}.{k}" for text in table[column].dropna() for k in json.loads(text)} - set(used)):
            finer = _split(groups, table, name)
            if len(np.unique(finer)) > len(np.unique(groups)):
                groups, added = finer, [*added, name]
    return added


def _split(groups: np.ndarray, table: pd.DataFrame, name: str) -> np.ndarray:
    """(n,) codes of the groups of rows, split by the values of a column or parameter."""
    codes, values = summary.levels(table, name)
    texts = np.unique(list(map(str, values)), return_inverse=True)[1]
    return np.unique(groups * len(values) + texts[codes], return_inverse=True)[1]


def _positions(table: pd.DataFrame, fields: list[str], experiment: dict) -> tuple[list[tuple], list[int]]:
    """(keys in order, number of the key of each row) of the combinations of values of some fields."""
    values = _values(table, fields)
    keys = _ordered(values, fields, experiment)
    positions = {key: k for k, key in enumerate(keys)}
    return keys, [positions[value] for value in values]


def _values(table: pd.DataFrame, fields: list[str]) -> list[tuple]:
    columns = [summary.column_or_param(table, f) for f in fields]
    return list(zip(*(c.where(c.notna(), None) for c in columns), strict=True)) if fields else [()] * len(table)


def _ordered(values: list[tuple], fields: list[str], experiment: dict) -> list[tuple]:
    """Distinct combinations of values in the order of the configuration, numbers ascending."""
    order = {"method": list(experiment["methods"]), "dataset": list(experiment["datasets"])}
    order["measure"] = measures_of(experiment)

    def rank(key: tuple) -> list[tuple]:
        return [
            (0, order[f].index(v), "") if f in order and v in order[f]
            else (0, v, "") if isinstance(v, int | float) and not isinstance(v, bool)
            else (1, 0, str(v))
            for f, v in zip(fields, key, strict=True)
        ]  # fmt: skip

    return sorted(dict.fromkeys(values), key=rank)


def _cells(table: pd.DataFrame, units: dict[str, float]) -> tuple[dict[tuple[int, int], Cell], list[str]]:
    """(cells by row and column, notes). The best of each setting are marked."""
    notes: dict[str, int] = {}
    table = table.drop_duplicates(["row", "column"]).sort_values(["row", "column"], ignore_index=True)
    size = table["measure"].map(units)
    mean, half = table["mean"] / size, (table["high"] - table["low"]) / 2 / size
    groups = table.groupby(["column", "measure"]).indices
    decimals = {key: numbers.common_decimals(mean.to_numpy()[k], half.to_numpy()[k]) for key, k in groups.items()}
    keys = zip(table["column"], table["measure"], strict=True)
    records = table.to_dict("records")
    cells = [_cell(row, units[key[1]], decimals[key], notes) for key, row in zip(keys, records, strict=True)]
    compared = table[[not cell.stated for cell in cells]]
    for (measure, _), group in compared.groupby(["measure", "setting"]):
        for k in _best(group, numbers.direction(measure)):
            cells[k].best = True
    return dict(zip(zip(table["row"], table["column"], strict=True), cells, strict=True)), list(notes)


def _best(group: pd.DataFrame, better: str | None) -> list[int]:
    """Index of the best mean, and of means that both half intervals (`hypot`) do not separate from it, or empty.
    Equal seeds have no interval and are exact. A single seed has the widest interval of the group."""
    if better is None:
        return []
    means, halves = group["mean"].to_numpy(float), ((group["high"] - group["low"]) / 2).to_numpy(float)
    halves = np.where(np.isnan(halves), np.fmax.reduce(halves) * (group["n"] == 1), halves)
    top = means.argmax() if better == "higher" else means.argmin()
    near = ~(np.abs(means - means[top]) > np.hypot(halves, halves[top]))
    return [] if near.all() else group.index[near].tolist()


def _heads(columns: list[str], labels: list[list[str]], none: str) -> list[tuple]:
    """Labels of each column, a level for each of its settings, and under them the measure."""
    settings = [k for k, f in enumerate(columns) if f != "measure"]
    measure = [k for k, f in enumerate(columns) if f == "measure"]
    used = [k for k in settings if any(texts[k] for texts in labels)]
    heads = []
    for texts in labels:
        above = [texts[k] for k in used]
        if settings and not any(above):
            above = [none, *above[1:]]
        heads.append((*above, *(texts[k] for k in measure)) or ("value",))
    return heads


def _label(experiment: dict, titles: dict[str, str], measures: dict[str, str], name: str, value: Any) -> str:
    if name == "method":
        return numbers.method_name(experiment, value)
    if name == "dataset":
        return titles.get(value, value)
    if name == "measure":
        return measures[value]
    return numbers.setting(name, value, experiment.get("words", {}))


def _cell(row: Mapping[str, Any], unit: float, decimals: int | None, notes: dict[str, int]) -> Cell:
    """A row of the summary as a cell. `unit` is the size of the unit. New reasons get numbers in `notes`."""
    reported = ""
    if pd.notna(row["reported"]):
        reported = row["printed"] if unit == 1.0 else numbers.number(row["reported"] / unit)
    note = None
    if isinstance(row["reason"], str) and row["reason"] and row["status"] != "stopped":
        note = notes.setdefault(row["reason"], len(notes) + 1)
    if row["status"] != "ok" or not np.isfinite(row["mean"]):
        return Cell(statement(row), reported, note=note, number=row.get("number"), stated=True)
    difference = _difference(row, reported, unit) if reported else ""
    value = numbers.number(row["mean"] / unit, row["low"] / unit, row["high"] / unit, decimals)
    outcome = row["outcome"] if isinstance(row["outcome"], str) else ""
    return Cell(value, reported, difference, outcome, note, row.get("number"))


def _difference(row: Mapping[str, Any], reported: str, unit: float) -> str:
    """Our number less the printed one. For times and sizes, which depend on the machine, the ratio."""
    if row["unit"] in numbers.UNITS and row["mean"] > 0 < row["reported"]:
        ratio = row["mean"] / row["reported"]
        return f"{numbers.number(ratio)}× as much" if ratio > 1 else f"{numbers.number(1 / ratio)}× less"
    digits = max(len(reported.partition(".")[2]), 0 if row["reported"] / unit >= 100 else 2)
    return f"{row['difference'] / unit:+,.{digits}f}".replace("-", "−")


def statement(row: Mapping[str, Any] | pd.Series) -> str:
    """Text of a cell without a number. For a solver that stopped, its limit."""
    return {"unavailable": "not available", "stopped": row["reason"]}.get(row["status"], row["status"])


TEMPLATES = Environment(
    loader=PackageLoader("agglearn_workflow"),
    autoescape=select_autoescape(["html", "svg"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


KINDS = ("md", "tex", "html")
TEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "–": "--", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "λ": r"$\lambda$",
    "μ": r"$_\mu$", "µ": r"$\mu$", "θ": r"$\theta$", "ε": r"$\varepsilon$", "δ": r"$\delta$", "σ": r"$\sigma$",
    "<": "$<$", ">": "$>$", "|": "$|$", "≥": r"$\ge$", "≤": r"$\le$", "→": r"$\to$", "…": r"\ldots{}", "⁻": r"$^{-}$",
    **{c: f"$^{i}$" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}, "\0": r"$\lambda_\theta$",
})  # fmt: skip


def write(name: str, grids: list[tuple[str, Grid]], caption: str) -> dict[str, str]:
    """Format → text. The caption stands below the first table, in LaTeX in each."""
    if any(cell.best for _, grid in grids for cell in grid.cells.values()):
        caption = f"{caption} {BEST}".strip()
    return {k: TEMPLATES.get_template(f"table.{k}").render(name=name, grids=grids, caption=caption) for k in KINDS}


def figures_in(text: str) -> str:
    return text[text.index("<figure") : text.rindex("</html>")]


TEMPLATES.filters["count_text"] = count_text
TEMPLATES.filters["tex"] = lambda text: text.replace("λθ", "\0").translate(TEX)
