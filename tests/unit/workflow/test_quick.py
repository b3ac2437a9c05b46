"""What `make quick` runs: `config/quick.yaml`, with the settings of scale default."""

import pytest
from samples import ROOT

from agglearn.registry import is_subclass
from agglearn_workflow.config import checks
from agglearn_workflow.config import loading as configuration
from agglearn_workflow.config.loading import read_mapping
from agglearn_workflow.plan import Plan

PACKAGED = "agglearn.datasets.tabular.Packaged"


@pytest.fixture(scope="module")
def quick():
    return Plan(configuration.load(ROOT, read_mapping(ROOT / "config/quick.yaml")))


@pytest.fixture(scope="module")
def default():
    return Plan(configuration.load(ROOT, {"run": ["maxent_table4"]}))


@pytest.mark.slow
def test_every_source_has_an_example(quick, default):
    assert quick.sources() == list(quick.config["references"]["papers"])


def test_table_4_has_the_runs_of_scale_default_with_one_seed(quick, default):
    wanted = {r.key for r in default.runs("maxent_table4") if r.seed == 0}
    runs = {r.key for r in quick.runs("maxent_table4") if r.dataset in ("adult", "bank")}
    assert runs == wanted
    assert {r.seed for r in quick.runs("maxent_table4")} == {0}


def test_without_a_source_of_data_every_experiment_has_data(quick):
    entries = quick.config["datasets"]
    kinds = (checks.SIMULATED, PACKAGED)
    for name in quick.experiments:
        assert [d for d in quick.datasets(name) if any(is_subclass(entries[d]["class"], k) for k in kinds)], name
