"""Each data set missing alone: experiments that use it, one method each, on to the site, in this process."""

import copy
import runpy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from samples import OFFLINE, ROOT, shipped_config
from snakemake.iocontainers import Namedlist

from agglearn import kernel_cache, storage
from agglearn.text import bytes_text
from agglearn_workflow import run_summary
from agglearn_workflow.memory import size_of_files
from agglearn_workflow.plan import SCALES, Plan
from agglearn_workflow.runs import batches, execution, products
from agglearn_workflow.runs.execution import Outcome

pytestmark = pytest.mark.slow

CONFIG = shipped_config() | {"scale": "smoke", "mirrors": []}


def experiments_without() -> dict[str, list[str]]:
    """For each data set that is fetched, experiments that use it: the first of each task, with other data and alone."""
    found, met = {}, set()
    for name, e in CONFIG["experiments"].items():
        for dataset in e["datasets"]:
            kind = (e["task"], len(e["datasets"]) > 1)
            if CONFIG["datasets"][dataset].get("files") and kind not in met:
                met.add(kind)
                found.setdefault(dataset, []).append(name)
    return found


EXPERIMENTS = experiments_without()


def reduced(config: dict, missing: str, results) -> dict:
    """The configuration with the experiments that are tried without a data set, and of each the first method."""
    config = copy.deepcopy(config)
    config |= {"results": str(results), "scale_folder": str(results), "cache": str(results / "cache")}
    config["experiments"] = {n: config["experiments"][n] for n in EXPERIMENTS[missing]}
    config["claims"] = {n: c for n, c in config["claims"].items() if c["experiment"] in config["experiments"]}
    for e in config["experiments"].values():
        first = next(m for m in e["methods"] if m not in SCALES)  # alone, such a name would be taken for a scale
        e["methods"] = {first: e["methods"][first]}
        e["reported"] = [r for r in e["reported"] if r["method"] == first]
        e["exclude"] = []  # of runs that may not be planned any more
        if e.get("baseline") != first:
            e.pop("baseline", None)
    return config


def measured(run, observed, folder):
    """What a run on data that are there would give: a number and a short curve of every measure, for two items."""
    rng = np.random.default_rng(int(run.key, 16))
    rows = [
        {"measure": m, "keys": keys, "step": step, "value": rng.random(), "unit": ""}
        for m in [*run.settings["measures"], "seconds"]
        for keys in (None, '{"from": [0, 0], "to": [1, 1]}')
        for step in (None, 0.0, 1.0)
    ]
    return Outcome("ok", None, "", rows)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A function that runs the script of a rule as Snakemake does, in this process."""
    monkeypatch.setattr(kernel_cache, "choose", lambda *_: None)
    for name, value in OFFLINE.items() | {(f"{name}_NUM_THREADS", "1") for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}:
        monkeypatch.setenv(name, value)

    def run(rule: str, config: dict, output: dict, given=(), **wildcards) -> None:
        job = SimpleNamespace(
            rule=rule,
            config=config,
            input=given,
            output=Namedlist(fromdict=output),
            wildcards=Namedlist(fromdict=wildcards),
            params=SimpleNamespace(entry="entry", code="code", library_threads=1),
            log=[str(tmp_path / "log")],
        )
        runpy.run_path(str(ROOT / f"workflow/scripts/{rule}.py"), {"snakemake": job}, "__main__")

    return run


@pytest.fixture
def way(script, tmp_path, monkeypatch):
    """A function that goes the whole way without a data set; returns its plan."""
    monkeypatch.setattr(batches, "execute_run", measured)
    monkeypatch.setattr(batches, "observe_runs", observe)

    def go(missing: str) -> Plan:
        config = reduced(CONFIG, missing, tmp_path)
        plan = Plan(config)
        script("prepare", config, {"folder": str(tmp_path / "records" / missing)}, dataset=missing)
        for other in {name for e in plan.experiments for name in plan.datasets(e)} - {missing}:
            products.build_product(tmp_path / "records" / other, lambda out: None)
        for name in plan.experiments:
            paths = [f"{tmp_path}/measurements/{name}/{batch}.parquet" for batch in plan.batches(name)]
            for path, batch in zip(paths, plan.batches(name), strict=True):
                output = {"measurements": path, "observations": f"{tmp_path}/observations/{name}/{batch}"}
                script("fit", config, output, experiment=name, batch=batch)
            script("render", config, {}, paths, experiment=name)
        script("site", config, {"site": f"{tmp_path}/site", "claims": f"{tmp_path}/claims.json"})
        script("conclude", config, {"outcome": f"{tmp_path}/outcome/all.txt"}, target="all")
        return plan

    return go


def observe(runs, experiment, sources, out, report) -> dict:
    """What the real function does for a data set that is missing; the others are there, and empty."""
    lacking = [run for run in runs if sources[run.dataset].status != "ok"]
    observed = execution.observe_runs(lacking, experiment, sources, out, report)
    for dataset in {run.dataset for run in runs} - observed.keys():
        observed[dataset] = products.build_product(out / dataset, lambda folder: None)
    return observed


@pytest.mark.parametrize("missing", EXPERIMENTS)
def test_one_data_set_is_missing(way, tmp_path, missing):
    plan = way(missing)
    for name in plan.experiments:
        table = pd.read_csv(tmp_path / f"tables/{name}.csv")
        others = [d for d in plan.datasets(name) if d != missing]
        assert set(table[table["dataset"] == missing]["status"]) == {"unavailable"}
        assert set(table[table["dataset"] != missing]["status"]) == ({"ok"} if others else set())
        printed = storage.read_json(tmp_path / f"tables/{name}.json")
        assert (printed["failed"], printed["rows"] >= 1) == ([], bool(others))
        assert "Without a result: " in (tmp_path / f"tables/{name}.md").read_text()
        drawing = (tmp_path / f"site/figures/{name}.svg").read_text()
        if not others:
            assert "No run of this figure has a result." in drawing
        page = (tmp_path / f"site/{plan.experiments[name]['source']}.html").read_text()
        assert (f'<img loading="lazy" src="figures/{name}.svg"' in page) == bool(others)
    [line] = run_summary.problems(tmp_path, tmp_path)["unavailable"]
    size = size_of_files(plan.config["datasets"][missing])
    assert line.startswith(f"not available: {missing}" + (f" ({bytes_text(size)}): " if size else ": "))
    assert line.endswith(f"; get it: agglearn data get {missing}")
    assert all(c["verdict"] != "failed" for c in storage.read_json(tmp_path / "claims.json"))
    assert missing in (tmp_path / "site/index.html").read_text()
    assert (tmp_path / "outcome/all.txt").exists()
