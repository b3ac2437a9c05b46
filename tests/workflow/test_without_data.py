"""The whole workflow on a machine that can get no data at all."""

import json

import pytest
import yaml
from project import SHIPPED, Project

from agglearn.config import load
from agglearn.plan import Plan

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def one_method_each(folder) -> dict:
    """Overlay that leaves each experiment its baseline or else its first method, and what an experiment that extends it keeps."""
    files = {p.stem: yaml.safe_load(p.read_text()) for p in (folder / "config/experiments").glob("*.yaml")}
    whole = load(folder)["experiments"]
    kept = {n: {e.get("baseline", next(iter(e["methods"])))} for n, e in whole.items()}
    for name, e in files.items():
        while "extends" in e:
            kept[e["extends"]] |= kept[name]
            e = files[e["extends"]]
    return {
        name: {"methods": dict.fromkeys(set(e.get("methods", {})) - kept[name]), "reported": []}
        for name, e in files.items()
    }


def test_every_experiment_without_any_data(places):
    project = Project(*places, shipped=SHIPPED)
    project.overlay |= {"experiments": one_method_each(project.folder), "tracking": {"uri": "none"}}
    outcome = project.run()
    assert outcome.status == 0, outcome.text[-3000:]
    plan = Plan(load(project.folder, dict(project.overlay)))
    fetched = {d for n in plan.experiments for d in plan.datasets(n) if plan.config["datasets"][d].get("files")}
    for name in plan.experiments:
        statuses = set(project.table(name)["status"])
        drawn = set(plan.datasets(name)) - fetched
        assert "failed" not in statuses
        assert ("ok" in statuses) == bool(drawn), name
        assert (project.results / f"figures/{name}.svg").read_text().startswith("<?xml")
        assert json.loads((project.results / f"tables/{name}.json").read_text()) == {"failed": []}
    assert len(fetched) > 10
    for name in fetched:
        assert any(s.startswith(f"agglearn: not available: {name}") and f"data get {name}" in s for s in outcome.said)
    assert (project.results / "site/index.html").exists()
    assert {r["status"] for r in project.records()} <= {"ok", "unavailable", "stopped"}
