"""Every task that fetches data, on a machine that can get none."""

import json
from collections import Counter

import pytest
from project import SHIPPED, Project

from agglearn_workflow.config.loading import load, read_mapping
from agglearn_workflow.plan import Plan

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def reduced(folder) -> dict:
    """Overlay with experiments that fetch data: one method, one data set that is fetched, and one that is drawn if there is one.

    Each brings a task that those before it lack, or lack with such data. `tests/unit/workflow/test_missing_data.py` has all experiments.
    """
    files = {p.stem: read_mapping(p) for p in (folder / "config/experiments").glob("[!_]*.yaml")}
    config, asked = load(folder), Counter()
    kept = {
        name: {
            "methods": {e.get("baseline", next(iter(e["methods"])))},
            "datasets": one_of_each_kind(e["datasets"], config["datasets"], asked),
        }
        for name, e in config["experiments"].items()
    }
    for name, e in files.items():  # what one keeps, those that it extends keep too
        while "extends" in e:
            for key, names in kept[name].items():
                kept[e["extends"]][key] = kept[e["extends"]][key] | names
            e = files[e["extends"]]
    own = {n: {k: {m for m, v in e.get(k, {}).items() if v is not None} for k in kept[n]} for n, e in files.items()}
    experiments = {
        name: {key: dict.fromkeys(own[name][key] - names) for key, names in kept[name].items()}
        | {"reported": []}
        | dict.fromkeys({"exclude"} & set(e))  # which may name a method that is left out
        for name, e in files.items()
    }
    run, met = [], set()
    for name, e in config["experiments"].items():
        fetched = {d for d in kept[name]["datasets"] if config["datasets"][d].get("files")}
        drawn = fetched < kept[name]["datasets"]
        brings = {(e["task"], drawn)} - met
        if fetched and brings:
            run.append(name)
            met |= brings
    return {"experiments": experiments, "run": run}


def one_of_each_kind(names, entries: dict, asked: Counter) -> set[str]:
    """The first data set that is drawn, and of those that are fetched the one that is asked for least."""
    chosen = [n for n in names if not entries[n].get("files")][:1]
    chosen += sorted((n for n in names if entries[n].get("files")), key=asked.__getitem__)[:1]
    asked.update(chosen)
    return set(chosen)


def test_every_task_that_fetches_data_without_any(places):
    project = Project(*places, shipped=SHIPPED)
    project.overlay |= reduced(project.folder) | {"tracking": {"uri": "none"}}
    outcome = project.run()
    assert outcome.status == 0, outcome.text[-3000:]
    plan = Plan(load(project.folder, dict(project.overlay)))
    fetched = {d for n in plan.experiments for d in plan.datasets(n) if plan.config["datasets"][d].get("files")}
    assert len(plan.experiments) > 5
    for name in plan.experiments:
        statuses = set(project.table(name)["status"])
        drawn = set(plan.datasets(name)) - fetched
        assert "failed" not in statuses
        assert ("ok" in statuses) == bool(drawn), name
        assert (project.results / f"figures/{name}.svg").read_text().startswith("<?xml")
        assert json.loads((project.results / f"tables/{name}.json").read_text())["failed"] == []
    assert len(fetched) > 5
    for name in fetched:
        assert any(s.startswith(f"agglearn: not available: {name}") and f"data get {name}" in s for s in outcome.said)
    assert (project.results / "site/index.html").exists()
    assert {r["status"] for r in project.records()} <= {"ok", "unavailable", "stopped"}
