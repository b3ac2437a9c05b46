"""Numbers in the pages of docs/ against what was measured.

A page writes `<!-- EXPERIMENT: {measure: M, method: N} -->.42`: a comment that readers do not get to see, then the number. The
selector is that of a claim and names one row of the experiment's table. Numbers are those of scale default.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import yaml

from agglearn.errors import described
from agglearn.reporting.samples import selected

REFERENCE = re.compile(r"<!--\s*(?P<experiment>\w+):\s*(?P<selector>\{.*?\})\s*-->\s*(?P<number>\S*)")
NUMBER = re.compile(r"[−-]?(?:\d[\d,]*)?\.?\d+")


def references(page: Path) -> Iterator[tuple[int, str, dict, str]]:
    """(line, experiment, selector, number as it is written) of every number that a page refers to its measurement."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for found in REFERENCE.finditer(line):
            written = NUMBER.match(found["number"])
            yield number, found["experiment"], yaml.safe_load(found["selector"]), written.group() if written else ""


def contradictions(docs: Path, tables: Path, experiments: Iterable[str]) -> list[str]:
    """A line for every number in the pages that its measurement contradicts.

    A number agrees where the mean of the measurement is no further from it than one unit of its last digit and half of the
    95 % interval. Cells without a result, such as data that are not available, contradict nothing.

    Parameters
    ----------
    docs : folder of the pages. tables : folder of the experiments' tables. experiments : those that are checked.
    """
    there = {e: pd.read_csv(tables / f"{e}.csv") for e in experiments if (tables / f"{e}.csv").exists()}
    wrong = []
    for page in sorted(docs.glob("*.md")):
        for line, experiment, selector, written in references(page):
            if experiment in there and (why := contradiction(there[experiment], selector, written)):
                wrong.append(f"{page.name}:{line}: {why}")
    return wrong


def contradiction(table: pd.DataFrame, selector: dict, written: str) -> str:
    """Why a number is not what was measured; empty where it is."""
    try:
        rows = table[selected(table, selector)]
    except Exception as error:
        return f"{selector}: {described(error)}"
    if len(rows) and (rows["status"] != "ok").all():
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
