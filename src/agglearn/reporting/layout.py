"""A summary laid out as a table that people read: Markdown, LaTeX and HTML from one grid of cells."""

import itertools
import json
from dataclasses import dataclass, field
from html import escape

import numpy as np
import pandas as pd

from agglearn.reporting import summary

ABBREVIATIONS = {"nllh": "NLLH", "auc": "AUC", "rmse": "RMSE", "mse": "MSE", "mae": "MAE", "l2": "L2"}
SYMBOLS = {"l2_mu": "λμ", "l2_theta": "λθ"}

NO_RESULT = "No run of this table has a result."


@dataclass(frozen=True)
class Cell:
    """`value` as text, the source's printed number, and whether this is a statement instead of a number."""

    value: str = ""
    reported: str = ""
    verdict: str = ""
    note: int | None = None


@dataclass
class Grid:
    """Headers, cells and notes of a printed table."""

    corner: str
    columns: list[str]
    rows: list[str]
    cells: dict[tuple[int, int], Cell]
    notes: list[str] = field(default_factory=list)


def plain(value) -> str:
    """A parameter's value as people write it; a mapping comes as the JSON text that `summary.field` makes of it."""
    if isinstance(value, str) and value.startswith("{"):
        return ", ".join(f"{k} {plain(v)}" for k, v in json.loads(value).items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def measure_name(name: str) -> str:
    """A measure as people write it."""
    return " ".join(ABBREVIATIONS.get(w, w) for w in name.split("_")) if isinstance(name, str) else ""


def grids(table: pd.DataFrame, experiment: dict, titles: dict[str, str]) -> list[tuple[str, Grid]]:
    """(title, grid) of every table of an experiment: one, or one for each value of the field `each`."""
    title, each = experiment["title"], (experiment.get("table") or {}).get("each")
    if each is None:
        return [(title, grid(table, experiment, titles))]
    found = []
    for key in _keys(table, [each], experiment):
        part = table[_where(table, [each], key)]
        found.append((f"{title}: {_label(each, key[0], experiment, titles)}", grid(part, experiment, titles)))
    return found or [(title, sentence(NO_RESULT))]


def sentence(text: str) -> Grid:
    """A table with one cell, which holds a sentence."""
    return Grid("", ["result"], ["all"], {(0, 0): Cell(text)})


def grid(table: pd.DataFrame, experiment: dict, titles: dict[str, str]) -> Grid:
    """Lay a summary out by the experiment's `table:` (default: data sets × methods, first measure)."""
    spec = experiment.get("table") or {"rows": ["dataset"], "columns": ["method"], "measure": experiment["measures"][0]}
    measures = spec["measure"] if isinstance(spec["measure"], list) else [spec["measure"]]
    shown = table[table["measure"].isin(measures) | table["measure"].isna()].copy()
    rows, columns = list(spec["rows"]), list(spec["columns"])
    if len(measures) > 1 and "measure" not in rows + columns:
        (rows if "method" in rows else columns).append("measure")
    # a run without result stands in the place of the first measure
    shown["measure"] = shown["measure"].where(shown["measure"].notna(), measures[0])
    rows += _undistinguished(shown, rows + columns)
    row_keys, column_keys = _keys(shown, rows, experiment), _keys(shown, columns, experiment)
    heads = [", ".join(_labels(columns, k, experiment, titles)) or spec.get("none", "") for k in column_keys]
    notes, cells, means = [], {}, {}
    for i, j in itertools.product(range(len(row_keys)), range(len(column_keys))):
        match = shown[_where(shown, rows, row_keys[i]) & _where(shown, columns, column_keys[j])]
        if not match.empty:
            cells[i, j] = _cell(match.iloc[0], experiment, spec, notes)
            if match.iloc[0]["status"] == "ok" and np.isfinite(match.iloc[0]["mean"]):
                means[i, j] = match.iloc[0]["mean"]
    if "best" in spec:
        _add_best(cells, means, heads, spec["best"])
    if not cells:
        return sentence(NO_RESULT)
    named = [" / ".join(_labels(rows, k, experiment, titles)) for k in row_keys]
    corner = measure_name(measures[0]) if len(measures) == 1 else ""
    return Grid(corner, heads, named, cells, notes)


def _add_best(cells: dict, means: dict, heads: list[str], better: str) -> None:
    """One more column: which of the others has the best value of a row, and that value."""
    choose = max if better == "higher" else min
    for row in {i for i, _ in means}:
        best = choose((j for i, j in means if i == row), key=lambda j, row=row: means[row, j])
        cells[row, len(heads)] = Cell(f"{heads[best]} {cells[row, best].value}")
    heads.append("best")


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
    """Combinations of values in the order of the configuration, numbers ascending."""
    order = {"method": list(experiment["methods"]), "dataset": list(experiment["datasets"])}
    columns = [summary.field(shown, f) for f in fields]
    keys = list(dict.fromkeys(zip(*(c.where(c.notna(), None) for c in columns), strict=True)))

    def rank(key):
        return [
            (0, order[f].index(v), "") if f in order and v in order[f]
            else (0, v, "") if isinstance(v, int | float) and not isinstance(v, bool)
            else (1, 0, "" if f == "measure" else str(v))
            for f, v in zip(fields, key, strict=True)
        ]  # fmt: skip

    return sorted(keys, key=rank)


def _where(shown: pd.DataFrame, fields: list[str], key) -> pd.Series:
    same = pd.Series(True, index=shown.index)
    for name, value in zip(fields, key, strict=True):
        column = summary.field(shown, name)
        same &= column.isna() if value is None else column == value
    return same


def _labels(fields: list[str], key: tuple, experiment: dict, titles: dict[str, str]) -> list[str]:
    """What tells a row or a column from the others; a parameter that it does not have is left out."""
    return [label for f, v in zip(fields, key, strict=True) if (label := _label(f, v, experiment, titles))]


def _label(name: str, value, experiment: dict, titles: dict[str, str]) -> str:
    if name == "method":
        return experiment["methods"][value].get("name") or value.replace("_", " ")
    if name == "dataset":
        return titles.get(value, value)
    if name == "measure":
        return measure_name(value)
    if name == "item":
        return "" if value is None else str(value)
    key = name.rpartition(".")[2]
    return "" if value is None else f"{SYMBOLS.get(key, key.replace('_', ' '))} = {plain(value)}"


def _cell(row, experiment: dict, spec: dict, notes: list[str]) -> Cell:
    reported = ""
    if pd.notna(row["reported"]):
        entries = [e for e in experiment["reported"] if e["value"] == row["reported"] and e["place"] == row["place"]]
        reported = entries[0].get("printed") or f"{row['reported']:g}"
    note = None
    if isinstance(row["reason"], str) and row["reason"] and row["status"] != "stopped":
        if row["reason"] not in notes:
            notes.append(row["reason"])
        note = notes.index(row["reason"]) + 1
    said = row["verdict"] if isinstance(row["verdict"], str) else ""
    if row["status"] != "ok" or not np.isfinite(row["mean"]):
        return Cell(statement(row), reported, "", note)
    form = f".{spec['significant']}g" if "significant" in spec else f".{spec.get('digits', 3)}f"
    return Cell(number(row["mean"], row["low"], row["high"], form), reported, said, note)


def statement(row) -> str:
    """What stands in a cell without a number; of a solver that stopped, its limit."""
    return {"unavailable": "not available", "stopped": row["reason"]}.get(row["status"], row["status"])


def number(mean: float, low: float, high: float, form: str) -> str:
    """Mean ± half the interval."""
    text = f"{mean:{form}}"
    return f"{text} ± {(high - low) / 2:{form}}" if np.isfinite(high - low) else text


def markdown(g: Grid, title: str, caption: str) -> str:
    """GitHub Markdown."""
    lines = [
        f"**{title}**",
        "",
        "| " + " | ".join([g.corner, *g.columns]) + " |",
        "|" + " --- |" * (len(g.columns) + 1),
    ]
    for i, name in enumerate(g.rows):
        cells = [_plain(g.cells.get((i, j), Cell())) for j in range(len(g.columns))]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    lines += ["", caption, *(f"\n[{k}] {note}" for k, note in enumerate(g.notes, 1))]
    return "\n".join(lines) + "\n"


def _plain(cell: Cell) -> str:
    note = f" [{cell.note}]" if cell.note else ""
    return f"{cell.value}{f' ({cell.reported})' if cell.reported else ''}{note}"


def latex(g: Grid, title: str, caption: str) -> str:
    """A `table` environment that needs booktabs and nothing else."""
    lines = [
        r"\begin{table}",
        rf"\caption{{{_tex(title)}. {_tex(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(g.columns)}}}",
        r"\toprule",
        " & ".join(map(_tex, [g.corner, *g.columns])) + r" \\",
        r"\midrule",
    ]
    for i, name in enumerate(g.rows):
        cells = [_tex(_plain(g.cells.get((i, j), Cell()))) for j in range(len(g.columns))]
        lines.append(" & ".join([_tex(name), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize [{k}] {_tex(note)}" for k, note in enumerate(g.notes, 1)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "λ": r"$\lambda$",
    "μ": r"$_\mu$", "θ": r"$_\theta$", "≥": r"$\ge$", "≤": r"$\le$", "→": r"$\to$", "…": r"\ldots{}",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(TEX.get(c, c) for c in text)


def html(g: Grid, title: str, caption: str) -> str:
    """A `<figure>` with the table; the source's numbers stand under ours, coloured by verdict through CSS classes."""
    head = "".join(f"<th scope=col>{escape(c)}</th>" for c in g.columns)
    body = []
    for i, name in enumerate(g.rows):
        cells = "".join(f"<td>{_html_cell(g.cells.get((i, j), Cell()))}</td>" for j in range(len(g.columns)))
        body.append(f"<tr><th scope=row>{escape(name)}</th>{cells}</tr>")
    notes = "".join(f"<li>{escape(n)}</li>" for n in g.notes)
    return (
        f'<figure class="table"><figcaption><strong>{escape(title)}</strong> {escape(caption)}</figcaption>\n'
        f'<div class="scroll"><table><thead><tr><th>{escape(g.corner)}</th>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(body)
        + "\n</tbody></table></div>"
        + (f"<ol class=notes>{notes}</ol>" if notes else "")
        + "</figure>\n"
    )


def _html_cell(cell: Cell) -> str:
    kind = {"agr": "agrees", "abo": "above", "bel": "below"}.get(cell.verdict[:3], "")
    note = f"<sup>{cell.note}</sup>" if cell.note else ""
    reported = f'<span class="reported {kind}" title="{escape(cell.verdict)}">{escape(cell.reported)}</span>'
    value = (
        escape(cell.value) if cell.value[:1].isdigit() or cell.value[:1] == "-" else f"<em>{escape(cell.value)}</em>"
    )
    return value + note + (reported if cell.reported else "")
