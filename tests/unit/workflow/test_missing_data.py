"""Each data set missing alone: its own experiments, one method each, on to the site, in this process."""

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from samples import OFFLINE, shipped_config

from agglearn import jobs, storage
from agglearn.reporting import inventory, run_summary
from agglearn.text import bytes_text
from agglearn.workflow import products, runs
from agglearn.workflow.execution import Outcome
from agglearn.workflow.plan import SCALES, Plan

pytestmark = pytest.mark.slow

CONFIG = shipped_config() | {"scale": "smoke", "mirrors": []}
FETCHED = sorted(
    name
    for name, entry in CONFIG["datasets"].items()
    if entry.get("files") and any(name in e["datasets"] for e in CONFIG["experiments"].values())
)


def reduced(config: dict, missing: str, results) -> dict:
    """The configuration with the experiments of one data set, and of each the first method."""
    config = copy.deepcopy(config)
    config |= {"results": str(results), "scale_folder": str(results), "cache": str(results / "cache")}
    config["experiments"] = {n: e for n, e in config["experiments"].items() if missing in e["datasets"]}
    config["claims"] = {n: c for n, c in config["claims"].items() if c["experiment"] in config["experiments"]}
    for e in config["experiments"].values():
        first = next(m for m in e["methods"] if m not in SCALES)  # alone, such a name would be taken for a scale
        e["methods"] = {first: e["methods"][first]}
        e["reported"] = [r for r in e["reported"] if r["method"] == first]
        if e.get("baseline") != first:
            e.pop("baseline", None)
    return config


def measured(run, observed, folder):
    """What a run on data that are there would give: a number and a short curve of every measure, for two items."""
    rng = np.random.default_rng(int(run.key, 16))
    rows = [
        {"measure": m, "keys": keys, "step": step, "value": rng.random(), "unit": ""}
        for m in [*run.settings.measures, "seconds"]
        for keys in (None, '{"from": [0, 0], "to": [1, 1]}')
        for step in (None, 0.0, 1.0)
    ]
    return Outcome("ok", None, "", rows)


def job(config: dict, rule: str, output, given=(), **wildcards):
    """A job as the workflow hands it over."""
    params = SimpleNamespace(recipe="recipe", slots="slots", local=[], record="")
    space = SimpleNamespace(**wildcards)
    return SimpleNamespace(config=config, rule=rule, output=output, input=given, wildcards=space, params=params)


@pytest.fixture
def way(tmp_path, monkeypatch):
    """A function that goes the whole way without a data set; returns (configuration, plan)."""
    monkeypatch.setattr(runs, "execute_run", measured)
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)

    def go(missing: str):
        config = reduced(CONFIG, missing, tmp_path)
        plan = Plan(config)
        source, records = (tmp_path / stop / missing for stop in ("sources", "records"))
        jobs.fetch(job(config, "fetch", [source], dataset=missing))
        jobs.prepare(job(config, "prepare", [records], [source], dataset=missing))
        for name in plan.experiments:
            observe(config, plan, name, missing, records)
            for batch in plan.batches(name):
                given = tmp_path / "observations" / name
                out = tmp_path / f"measurements/{name}/{batch}.parquet"
                jobs.fit(job(config, "fit", [out], SimpleNamespace(observed=given), experiment=name, batch=batch))
            paths = [tmp_path / f"measurements/{name}/{b}.parquet" for b in plan.batches(name)]
            jobs.render(job(config, "render", [], paths, experiment=name))
        files = {group: tmp_path / f"claims/{group}.json" for group in plan.groups()}
        for group, path in files.items():
            jobs.judge(job(config, "judge", [path], group=group))
        jobs.collect(job(config, "collect", [tmp_path / "claims.json"], files.values()))
        jobs.site(job(config, "site", [tmp_path / "site/index.html"]))
        jobs.conclude(job(config, "conclude", [tmp_path / "outcome/all.txt"], target="all"))
        return plan

    return go


def observe(config, plan, name, missing, records) -> None:
    folder = records.parents[1] / "observations" / name
    output = SimpleNamespace(folder=folder, manifests=folder.with_suffix(".json"))
    task = job(config, "observe", output, [records], experiment=name)
    task.params.recipes = {missing: "recipe"}
    jobs.observe(task)
    for dataset in plan.datasets(name):
        if dataset != missing:
            products.build_product(folder / dataset, lambda out: None)


@pytest.mark.parametrize("missing", FETCHED)
def test_one_data_set_is_missing(way, tmp_path, missing):
    plan = way(missing)
    for name in plan.experiments:
        table = pd.read_csv(tmp_path / f"tables/{name}.csv")
        others = [d for d in plan.datasets(name) if d != missing]
        assert set(table[table["dataset"] == missing]["status"]) == {"unavailable"}
        assert set(table[table["dataset"] != missing]["status"]) == ({"ok"} if others else set())
        printed = storage.read_json(tmp_path / f"tables/{name}.json")
        assert (printed["failed"], printed["rows"] >= 1) == ([], True)
        drawing = (tmp_path / f"site/figures/{name}.svg").read_text()
        if not others:
            assert "No run of this figure has a result." in drawing
    [line] = run_summary.problems(tmp_path, tmp_path)["unavailable"]
    size = inventory.stated_bytes(plan.config["datasets"][missing])
    assert line.startswith(f"not available: {missing}" + (f" ({bytes_text(size)}): " if size else ": "))
    assert line.endswith(f"; get it: agglearn data get {missing}")
    assert all(c["verdict"] != "failed" for c in storage.read_json(tmp_path / "claims.json"))
    assert missing in (tmp_path / "site/index.html").read_text()
    assert (tmp_path / "outcome/all.txt").exists()
