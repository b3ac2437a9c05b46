"""Every experiment and ablation, at scale smoke, on data that need no source: one run per method, without a workflow."""

import pytest
import yaml
from samples import ROOT

from agglearn.registry import resolve
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import Plan
from agglearn_workflow.runs import products
from agglearn_workflow.runs.execution import Source, execute_run, observe_runs

pytestmark = pytest.mark.slow

FILES = [yaml.safe_load(path.read_text()) for path in (ROOT / "config/ablations").glob("*.yaml")]
ABLATIONS = {name: experiment for content in FILES for name, experiment in content["experiments"].items()}
CONFIG = load(ROOT, {"experiments": ABLATIONS, "scale": "smoke", "run": "all"})
PLAN = Plan(CONFIG)


def without_source(experiment: str) -> list[str]:
    """Data sets of an experiment that are drawn, not fetched."""
    names = dict.fromkeys(run.dataset for run in PLAN.runs(experiment))
    return [n for n in names if hasattr(resolve(CONFIG["datasets"][n]["class"]), "draw")]


@pytest.mark.parametrize("experiment", [e for e in PLAN.experiments if without_source(e)])
def test_one_run_of_every_method(experiment, tmp_path):
    names, observed = without_source(experiment), tmp_path / "observed"
    runs = [run for run in PLAN.runs(experiment) if run.dataset in names]
    sources = {name: Source.of(CONFIG, name) for name in names}
    observe_runs(runs, PLAN.experiments[experiment], sources, observed, lambda *_: None)
    for dataset in names:
        assert products.manifest(observed / dataset)["status"] == "ok", products.manifest(observed / dataset)["reason"]
        first = {run.method: run for run in reversed(PLAN.runs(experiment)) if run.dataset == dataset}
        for method, run in first.items():
            home = tmp_path / run.key
            home.mkdir()
            status, reason, trace, rows = execute_run(run, observed / dataset, home)
            assert status in ("ok", "stopped") or "`make " in reason, f"{method}: {trace or reason}"
            assert status != "ok" or rows
