"""The job that observes the data sets of an experiment."""

from types import SimpleNamespace

import pytest

from agglearn import jobs, storage
from agglearn.errors import NotAvailable
from agglearn.reporting.run_summary import retry_targets
from agglearn.workflow import products
from agglearn.workflow.config import load
from agglearn.workflow.plan import Plan

pytestmark = pytest.mark.slow


def observe(project, records: list, **settings) -> tuple[Plan, dict]:
    """The plan and the manifests of experiment `trial`, whose job ran with these records."""
    config = load(project.base, {"scale": "smoke", "run": ["trial"]}) | settings
    folder = project.base / "results/observations/trial"
    jobs.observe(
        SimpleNamespace(
            config=config | {"scale_folder": "results"},
            rule="observe",
            input=records,
            output=SimpleNamespace(folder=folder, manifests=folder.with_suffix(".json")),
            wildcards=SimpleNamespace(experiment="trial"),
            params=SimpleNamespace(recipes={"fair": "recipe of fair", "loglinear": "recipe of loglinear"}),
            log=["the log"],
        )
    )
    return Plan(config), storage.read_json(folder.with_suffix(".json"))


def without_records(project, error: Exception) -> str:
    """Records of the data set `fair` that could not be made."""
    out = project.base / "results/records/fair"

    def build(folder):
        raise error

    products.build_product(out, build, on_failure=lambda error: None)
    return str(out)


def test_a_missing_data_set_is_a_status_of_its_own(project):
    records = without_records(project, NotAvailable("no mirror has it"))
    plan, manifests = observe(project, [records])
    assert {name: m["status"] for name, m in manifests.items()} == {"fair": "unavailable", "loglinear": "ok"}
    assert {name: m["recipe"] for name, m in manifests.items()} == {d: f"recipe of {d}" for d in manifests}
    assert "no mirror has it" in manifests["fair"]["reason"]
    slots = {name.partition("/")[0] for name in manifests["loglinear"]["content"]} - {"features"}
    assert slots == {slot.key for slot in plan.slots("trial", "loglinear")}
    assert set(manifests["loglinear"]["data"]) == slots
    folder = project.base / "results/observations/trial"
    assert {d: products.manifest(folder / d) for d in manifests} == manifests
    assert not products.has_failed(folder.with_suffix(".json"))


def test_a_data_set_that_failed_is_tried_again_with_its_experiment(project):
    records = without_records(project, ValueError("planted"))
    _, manifests = observe(project, [records])
    assert {name: m["status"] for name, m in manifests.items()} == {"fair": "failed", "loglinear": "ok"}
    path = project.base / "results/observations/trial.json"
    assert products.has_failed(path)
    assert str(path) in retry_targets(project.base / "results")
