"""Numbers in docs/ and config/findings/: what refers to a measurement is held against it, and refers to one that there is.

A page has `<!-- EXPERIMENT: {measure: M, method: N} -->.42`: a comment that is not rendered, then the number. The
selector is that of a claim and names one row of the experiment's table. Numbers are those of the archive, at scale paper, and of
scale default where the archive has no such runs.
"""

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from samples import ROOT, shipped_config

from agglearn.errors import describe
from agglearn_workflow.archive import store
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.plan import Plan
from agglearn_workflow.site.pages import MARK
from agglearn_workflow.tables import summary

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
        of_cell = {k: v for k, v in selector.items() if k.partition(".")[0] not in OF_RESULTS}
        cells = table[Rows(table).selected(of_cell)]
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


# -- agreement and contradiction --------------------------------------------------------------------------------------

COMMENT = "<!-- trial: {measure: nllh, method: maxent, params.l2_theta: 4.0} -->"


@pytest.fixture
def written(tmp_path):
    """A function: the problems of the numbers in a text, beside the table of an experiment."""
    row = {"dataset": "bank", "dataset_params": "{}", "observation": "t", "observation_params": "{}", "method": "maxent",
           "measure": "nllh", "keys": np.nan, "n": 3, "unit": "", "status": "ok", "reason": np.nan, "lost": np.nan}  # fmt: skip
    rows = [
        row | {"params": '{"l2_theta": 4.0}', "mean": 0.4213, "low": 0.4193, "high": 0.4233},
        row | {"params": '{"l2_theta": 16.0}', "mean": -1.52, "low": np.nan, "high": np.nan},
        row | {"params": '{"l2_theta": 64.0}', "mean": np.nan, "low": np.nan, "high": np.nan, "status": "unavailable"},
        row | {"dataset": "gone", "params": "{}", "mean": np.nan, "measure": np.nan, "status": "unavailable"},
    ]
    table = pd.DataFrame([*rows, rows[0] | {"params": '{"l2_theta": 9.0}', "lost": "not archived"}])

    def check(text: str) -> list[str | None]:
        page = tmp_path / "docs/page.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"# Page\n\n{text}\n")
        return [contradiction(table, selector, number) for _, _, selector, number in references(page)]

    return check


@pytest.mark.parametrize("number", [".421", "0.42", ".423", ".4213).", ".42,"])
def test_what_was_measured_agrees(written, number):
    assert written(f"It reaches {COMMENT}{number} there.") == [""]


@pytest.mark.parametrize("number", [".425", "0.45", "421", "−.42"])
def test_another_number_is_a_contradiction(written, number):
    line, right = written(f"It reaches {COMMENT}{number} there, {COMMENT}.42 in all.")
    assert line.startswith(f"says {number}, measured is 0.4213 ± 0.002")
    assert right == ""


def test_what_has_no_result_is_not_contradicted(written):
    assert written(COMMENT.replace("4.0", "64.0") + ".3") == [None]
    assert written(COMMENT.replace("4.0", "9.0") + ".3") == [None]  # a mean over fewer seeds than planned


@pytest.mark.parametrize(
    "text", [COMMENT, COMMENT.replace(", params.l2_theta: 4.0", "") + ".42", COMMENT.replace("4.0", "5.0") + ".42"]
)
def test_a_number_refers_to_one_measurement(written, text):
    [line] = written(text)
    assert "one is needed" in line


def test_pages_refer_to_measurements_that_there_are():
    """Experiment, method, data set and measure of every reference; the last run holds the values against them."""
    plan = planned()
    for page in pages(ROOT):
        for line, experiment, selector, number in references(page):
            where, e = f"{page.name}:{line}", plan.experiments.get(experiment)
            assert e, f"{where}: no experiment {experiment!r}"
            assert number, f"{where}: no number"
            assert selector.get("method", next(iter(e["methods"]))) in e["methods"], where
            assert selector.get("dataset", next(iter(e["datasets"]))) in e["datasets"], where
            assert selector["measure"].partition("_minus_")[0] in e["measures"], f"{where}: {selector['measure']}"


# -- the numbers of this project --------------------------------------------------------------------------------------


@functools.cache
def planned(scale: str = "paper") -> Plan:
    return Plan(shipped_config() | {"scale": scale})


@functools.cache
def measured(scale: str, name: str) -> pd.DataFrame:
    """The table of an experiment at a scale: of the runs that the archive has, or that `make reproduce` has left in results/."""
    runs = planned(scale).runs(name)
    recipes = {run.key: run.recipe for run in runs}
    finished = store.merge(store.read(ROOT / "archive", name), store.of_results(ROOT / "results", runs), recipes)
    with tempfile.TemporaryDirectory() as out:
        store.recall(runs, finished, path := Path(out) / f"{name}.parquet")
        return summary.summarise(summary.load_rows([path], planned(scale), name), planned(scale).experiments[name])


def test_numbers_are_those_measured():
    """The archive has the runs of three numbers in five. A results folder of this checkout has those of all."""
    problems = {}
    for page in pages(ROOT):
        for line, name, selector, written in references(page):
            of_scales = (contradiction(measured(scale, name), selector, written) for scale in ("paper", "default"))
            problem = next((problem for problem in of_scales if problem is not None), None)
            problems[f"{page.relative_to(ROOT)}:{line}: {selector}"] = problem
    assert {place: problem for place, problem in problems.items() if problem} == {}
    assert sum(problem is not None for problem in problems.values()) >= 100
