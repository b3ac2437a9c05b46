"""Means over seeds as MLflow's runs: an entry per cell, to which the runs of its seeds belong."""

import math
from collections import Counter, defaultdict

import pandas as pd
from mlflow.entities import Metric

from agglearn.reporting.numbers import fitting_unit, number, plain
from agglearn.reporting.run_summary import CELL
from agglearn.reporting.summary import summarise
from agglearn.storage import digest
from agglearn.tracking.entry import (
    KEY,
    KIND,
    NOTE,
    PRINT,
    Entry,
    inputs,
    milliseconds,
    parameters,
    shorten_note,
    shown_status,
    tags,
)
from agglearn.tracking.names import Names
from agglearn.workflow.plan import cell_key

MAY_DIFFER = "mlflow.source.git.commit", "scale"  # tags of the runs of one cell
HEAD = "| measure | mean over seeds | seeds | printed in the source |\n| --- | --- | --- | --- |"


def tag_of_units(rows: pd.DataFrame) -> dict[str, str]:
    """The tag `units`, such as `seconds: s`, of the measures that have a unit. MLflow's metrics have none."""
    pairs = rows.loc[rows["unit"].fillna("") != "", ["measure", "unit"]].drop_duplicates().sort_values("measure")
    return {"units": ", ".join(f"{pair.measure}: {pair.unit}" for pair in pairs.itertuples())} if len(pairs) else {}


def of_cells(
    rows: pd.DataFrame, records: list[dict], experiment: dict, names: Names, units: dict[str, str]
) -> list[Entry]:
    """An entry per cell of an experiment, with the numbers of its table.

    Parameters
    ----------
    rows : DataFrame
        Measurements of its runs.
    records : list of dict
        Records of the same runs.
    units : dict
        The tag of `tag_of_units`.
    """
    runs, summary = defaultdict(list), defaultdict(list)
    for record in records:
        runs[tuple(record[field] for field in CELL)].append(record)
    for row in summarise(rows, experiment).to_dict("records"):
        summary[tuple(row[field] for field in CELL)].append(row)
    return [_of_cell(summary[cell], sorted(own, key=lambda r: r["seed"]), names, units) for cell, own in runs.items()]


def _of_cell(rows: list[dict], runs: list[dict], names: Names, units: dict[str, str]) -> Entry:
    times = [milliseconds(record) for record in runs]
    began, ended = min(began for began, _ in times), max(end for _, end in times)
    numbers = _numbers(rows) | {"n_seeds": float(sum(record["status"] == "ok" for record in runs))}
    data = inputs(runs)
    fingerprint = digest([numbers, [d.dataset.digest for d in data]])
    return Entry(
        names.of_mean(runs),
        _tags(rows, runs) | units | {KEY: cell_key(runs[0]), PRINT: fingerprint},
        shown_status(rows[0]["status"]),
        began,
        ended,
        params=parameters(runs[-1]),
        metrics=lambda: [Metric(name, value, ended, 0) for name, value in numbers.items()],
        inputs=data,
    )


def _numbers(rows: list[dict]) -> dict[str, float]:
    """Mean, low and high of every measure that has no keys."""
    measured = [row for row in rows if row["status"] == "ok" and not isinstance(row["keys"], str)]
    numbers = {f"{row['measure']}_{bound}": row[bound] for row in measured for bound in ("mean", "low", "high")}
    return {name: value for name, value in numbers.items() if not math.isnan(value)}


def _tags(rows: list[dict], runs: list[dict]) -> dict[str, str]:
    each = [tags(record) for record in runs]
    several = {name: ", ".join(dict.fromkeys(own[name] for own in each)) for name in MAY_DIFFER}
    seeds = ", ".join(str(record["seed"]) for record in runs)
    own = {KIND: "mean", "seeds": seeds, "status": rows[0]["status"], NOTE: shorten_note(_note(rows))}
    return each[-1] | several | own | _printed(rows)


def _printed(rows: list[dict]) -> dict[str, str]:
    """How the printed numbers of a cell compare: `agrees`, `above`, `below` or another outcome in the table. Several are counted."""
    outcomes = Counter(row["outcome"] for row in rows if isinstance(row["outcome"], str))
    if not outcomes:
        return {}
    counted = ", ".join(f"{outcome} {n}" for outcome, n in outcomes.most_common())
    return {"printed": counted if len(outcomes) > 1 else next(iter(outcomes))}


def _note(rows: list[dict]) -> str:
    """The rows of a cell in the table, in Markdown."""
    reasons = list(dict.fromkeys(row["reason"] for row in rows if isinstance(row["reason"], str)))
    named = [row for row in rows if isinstance(row["measure"], str)]
    lines = [_line(row) for row in named if _is_printed(row) or not isinstance(row["keys"], str)]
    return "\n\n".join(reasons + (["\n".join([HEAD, *lines])] if lines else []))


def _is_printed(row: dict) -> bool:
    return isinstance(row["outcome"], str)


def _line(row: dict) -> str:
    unit, size = fitting_unit(row["unit"], [row["mean"]])
    keys = f", {plain(row['keys'])}" if isinstance(row["keys"], str) else ""
    is_measured = row["status"] == "ok" and not math.isnan(row["mean"])
    value = (
        f"{number(row['mean'] / size, row['low'] / size, row['high'] / size)} {unit}" if is_measured else row["status"]
    )
    printed = f"{row['reported']:g} ({row['place']}): {row['outcome']}" if _is_printed(row) else ""
    cells = f"`{row['measure']}`{keys}", value, f"{row['n']}", printed
    return "| " + " | ".join(text.replace("|", "\\|").strip() for text in cells) + " |"
