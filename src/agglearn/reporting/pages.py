"""Comparison of the numbers in the pages of a project with measurements."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from agglearn.errors import describe
from agglearn.reporting.marks import pages, references
from agglearn.reporting.rows import Rows

OF_RESULTS = ("measure", "keys", "step")


def contradictions(base: Path, tables: Path, experiments: Iterable[str]) -> list[str]:
    """A line for every number in the pages that its measurement contradicts.

    A number agrees where the mean of the measurement is no further from it than one unit of its last digit and half of the
    95 % interval. Cells without a result, such as data that are not available, contradict nothing.

    Parameters
    ----------
    base : Path
        Folder of the project.
    tables : Path
        Folder of the experiments' tables.
    experiments : iterable of str
        Experiments to check.
    """
    available = {e: pd.read_csv(tables / f"{e}.csv") for e in experiments if (tables / f"{e}.csv").exists()}
    wrong = []
    for page in pages(base):
        for line, experiment, selector, written in references(page):
            if experiment in available and (problem := contradiction(available[experiment], selector, written)):
                wrong.append(f"{page.relative_to(base)}:{line}: {problem}")
    return wrong


def contradiction(table: pd.DataFrame, selector: dict, written: str) -> str:
    """How a number differs from its measurement. Empty where it agrees."""
    try:
        rows = table[Rows(table).selected(selector)]
        # a cell without a result has no measure and no keys
        cells = table[
            Rows(table).selected({k: v for k, v in selector.items() if k.partition(".")[0] not in OF_RESULTS})
        ]
    except Exception as error:
        return f"{selector}: {describe(error)}"
    if len(cells) and (cells["status"] != "ok").all():
        return ""
    if len(rows) != 1 or not written:
        return f"{written or 'no number'} refers to {len(rows)} measurements, {selector}; one is needed"
    row = rows.iloc[0]
    half = (row["high"] - row["low"]) / 2 if row["high"] == row["high"] else 0.0
    digits = len(written.partition(".")[2])
    value = float(written.replace("−", "-").replace(",", ""))
    if abs(value - row["mean"]) <= 10.0**-digits + half + 1e-12:
        return ""
    return f"says {written}, measured is {row['mean']:.4g} ± {half:.2g} for {selector}"
