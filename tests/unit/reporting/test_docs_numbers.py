"""Numbers in docs/ and config/findings/: what refers to a measurement is held against it, and refers to one that there is."""

import numpy as np
import pandas as pd
import pytest
from samples import ROOT, shipped_config

from agglearn.reporting.marks import pages, references
from agglearn.reporting.pages import contradictions
from agglearn.workflow.plan import Plan

COMMENT = "<!-- trial: {measure: nllh, method: maxent, params.l2_theta: 4.0} -->"


@pytest.fixture
def written(tmp_path):
    """A function: what contradicts a page with some text, beside a table of one experiment."""
    row = {"dataset": "bank", "dataset_params": "{}", "observation": "t", "observation_params": "{}", "method": "maxent",
           "measure": "nllh", "keys": np.nan, "n": 3, "unit": "", "status": "ok", "reason": np.nan}  # fmt: skip
    rows = [
        row | {"params": '{"l2_theta": 4.0}', "mean": 0.4213, "low": 0.4193, "high": 0.4233},
        row | {"params": '{"l2_theta": 16.0}', "mean": -1.52, "low": np.nan, "high": np.nan},
        row | {"params": '{"l2_theta": 64.0}', "mean": np.nan, "low": np.nan, "high": np.nan, "status": "unavailable"},
        row | {"dataset": "gone", "params": "{}", "mean": np.nan, "measure": np.nan, "status": "unavailable"},
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "trial.csv", index=False)

    def check(text: str) -> list[str]:
        page = tmp_path / "docs/page.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"# Page\n\n{text}\n")
        return contradictions(tmp_path, tmp_path, ["trial", "another"])

    return check


@pytest.mark.parametrize("number", [".421", "0.42", ".423", ".4213).", ".42,"])
def test_what_was_measured_agrees(written, number):
    assert written(f"It reaches {COMMENT}{number} there.") == []


@pytest.mark.parametrize("number", [".425", "0.45", "421", "−.42"])
def test_another_number_is_a_contradiction(written, number):
    [line] = written(f"It reaches {COMMENT}{number} there, {COMMENT}.42 in all.")
    assert line.startswith(f"docs/page.md:3: says {number}, measured is 0.42")


def test_signs_and_single_values(written):
    fixed = COMMENT.replace("4.0", "16.0")
    assert written(f"{fixed}−1.5, {fixed}-1.52 and {fixed} −1.51") == []
    assert len(written(f"{fixed}−1.54")) == 1


def test_what_has_no_result_is_not_contradicted(written):
    assert written(COMMENT.replace("4.0", "64.0") + ".3") == []
    assert written(COMMENT.replace("trial", "absent") + ".3") == []


@pytest.mark.parametrize(
    "text", [COMMENT, COMMENT.replace(", params.l2_theta: 4.0", "") + ".42", COMMENT.replace("4.0", "5.0") + ".42"]
)
def test_a_number_refers_to_one_measurement(written, text):
    [line] = written(text)
    assert "one is needed" in line


def test_pages_refer_to_measurements_that_there_are():
    """Experiment, method, data set and measure of every reference; the last run holds the values against them."""
    plan = Plan(shipped_config() | {"scale": "default"})
    for page in pages(ROOT):
        for line, experiment, selector, number in references(page):
            where, e = f"{page.name}:{line}", plan.experiments.get(experiment)
            assert e, f"{where}: no experiment {experiment!r}"
            assert number, f"{where}: no number"
            assert selector.get("method", next(iter(e["methods"]))) in e["methods"], f"{where}: {selector['method']}"
            assert selector.get("dataset", next(iter(e["datasets"]))) in e["datasets"], (
                f"{where}: {selector['dataset']}"
            )
            assert selector["measure"].partition("_minus_")[0] in e["measures"], f"{where}: {selector['measure']}"


def test_data_that_are_not_there_contradict_no_measure(written):
    assert not written("<!-- trial: {measure: nllh, dataset: gone} -->.42")
    assert written("<!-- trial: {measure: nllh, dataset: never} -->.42")
