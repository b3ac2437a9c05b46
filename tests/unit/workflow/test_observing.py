"""What a batch learns from is observed where it is fitted: data sets that are missing or fail are a status of their own."""

import os
import shutil

import pandas as pd
import pytest

from agglearn.errors import AgglearnError, NotAvailable
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import Plan
from agglearn_workflow.run_summary import retry_targets
from agglearn_workflow.runs import batches, execution, products
from agglearn_workflow.runs.execution import Outcome


@pytest.fixture
def fit(project, monkeypatch):
    """A function that fits experiment `trial` by a method that measures at once; returns its plan, its rows and what is printed."""
    rows = [{"measure": "nllh", "value": 0.5, "unit": ""}]
    monkeypatch.setattr(batches, "execute_run", lambda run, observed, folder: Outcome("ok", rows=rows))
    results = project.base / "results"

    def fit(**settings) -> tuple[Plan, pd.DataFrame, str]:
        config = load(project.base, {"scale": "smoke", "run": ["trial"], "results": str(results)} | settings)
        plan, out, printed = Plan(config), results / "measurements/trial/all.parquet", project.base / "printed"
        with open(printed, "w", buffering=1) as terminal:  # of this process and of its children
            batches.fit(plan, "trial", "all", out, results / "observations/trial/all", terminal)
        return plan, pd.read_parquet(out), printed.read_text()

    return fit


def without_records(project, error: Exception) -> None:
    """Records of the data set `fair` that could not be made."""

    def build(folder):
        raise error

    products.build_product(project.base / "results/records/fair", build, on_failure=lambda error: None)


def states(rows: pd.DataFrame) -> dict[str, set]:
    """Data set → (status, reason) of its runs."""
    found = rows.astype({"reason": object}).where(rows.notna(), None).groupby("dataset")
    return {name: {*zip(part["status"], part["reason"], strict=True)} for name, part in found}


def observed(project) -> dict[str, dict]:
    """Data set → manifest of its observations."""
    folders = (project.base / "results/observations/trial/all").iterdir()
    return {folder.name: products.manifest(folder) for folder in folders}


MISSING = {"fair": {("unavailable", "no mirror has it")}, "loglinear": {("ok", None)}}


def test_a_missing_data_set_is_a_status_of_its_own(project, fit):
    without_records(project, NotAvailable("no mirror has it"))
    plan, rows, printed = fit()
    assert states(rows) == MISSING
    assert printed == ""
    [(name, manifest)] = observed(project).items()
    assert (name, manifest["status"]) == ("loglinear", "ok")
    slots = {name.partition("/")[0] for name in manifest["content"]} - {"features"}
    assert slots == {run.slot for run in plan.runs("trial") if run.dataset == "loglinear"}
    assert set(manifest["data"]) == slots
    with pytest.raises(NotAvailable, match="no mirror has it"):
        fit(on_missing="fail")


def test_only_runs_that_are_missing_are_observed(project, fit):
    without_records(project, NotAvailable("no mirror has it"))
    fit()
    shutil.rmtree(project.base / "results/observations")
    assert states(fit()[1]) == MISSING
    assert observed(project) == {}


def test_a_data_set_that_failed_is_tried_again_with_its_batch(project, fit):
    without_records(project, ValueError("planted"))
    assert states(fit()[1]) == {"fair": {("failed", "ValueError: planted")}, "loglinear": {("ok", None)}}
    assert str(project.base / "results/measurements/trial/all.parquet") in retry_targets(project.base / "results")
    with pytest.raises(AgglearnError, match="planted"):
        fit(on_failure="fail")


def planted(*_):
    raise ValueError("planted")


@pytest.mark.parametrize(
    ("observe", "reason"),
    [(planted, "ValueError: planted"), (lambda *_: os._exit(7), "the process ended with status 7")],
)
def test_an_error_while_a_data_set_is_observed(project, fit, monkeypatch, capfd, observe, reason):
    """It is on the terminal once, and the status of the runs on that data set. The log has its traceback."""
    without_records(project, NotAvailable("no mirror has it"))
    monkeypatch.setattr(execution, "observe_slot", observe)
    _, rows, printed = fit()
    assert states(rows) == MISSING | {"loglinear": {("failed", reason)}}
    assert printed == f"agglearn: error: trial loglinear was not observed: {reason}\n"
    assert ('raise ValueError("planted")' in capfd.readouterr().err) == (observe is planted)
    with pytest.raises(AgglearnError, match=reason):
        fit(on_failure="fail")
