"""Numbers in docs/ and config/findings/ that a comment refers to a measurement, and what contradicts them.

A page has `<!-- EXPERIMENT: {measure: M, method: N} -->.42`: a comment that is not rendered, then the number. The
selector is that of a claim and names one row of the experiment's table. Numbers are those of scale default.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import yaml

from agglearn.errors import describe
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.site.pages import MARK

OF_RESULTS = ("measure", "keys", "step")


def pages(base: Path) -> list[Path]:
    """Pages of a project that may bear marks."""
    return [page for folder in ("docs", "config/findings") for page in sorted((base / folder).glob("*.md"))]


def references(page: Path) -> Iterator[tuple[int, str, dict, str]]:
    """(line, experiment, selector, number as it is written) of every marked number of a page."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for mark in MARK.finditer(line):
            yield number, mark["experiment"], yaml.safe_load(mark["selector"]), mark["number"]


def contradiction(table: pd.DataFrame, selector: dict, written: str) -> str | None:
    """How a number differs from its measurement. Empty where it agrees, None where nothing is measured or a seed lacks.

    A number agrees where the mean of the measurement is no further from it than one unit of its last digit and half of the
    95 % interval.
    """
    try:
        rows = table[Rows(table).selected(selector)]
        # a cell without a result has no measure and no keys
        cells = table[
            Rows(table).selected({k: v for k, v in selector.items() if k.partition(".")[0] not in OF_RESULTS})
        ]
    except Exception as error:
        return f"{selector}: {describe(error)}"
    if len(cells) and ((cells["status"] != "ok") | cells["lost"].notna()).all():
        return None
    if len(rows) != 1 or not written:
        return f"{written or 'no number'} refers to {len(rows)} measurements, {selector}; one is needed"
    row = rows.iloc[0]
    half = (row["high"] - row["low"]) / 2 if row["high"] == row["high"] else 0.0
    digits = len(written.partition(".")[2])
    value = float(written.replace("−", "-").replace(",", ""))
    if abs(value - row["mean"]) <= 10.0**-digits + half + 1e-12:
        return ""
    return f"says {written}, measured is {row['mean']:.4g} ± {half:.2g} for {selector}"
