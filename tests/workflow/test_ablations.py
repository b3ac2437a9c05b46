"""Every file of config/ablations/ computes its table and ends with 0."""

import copy

import pytest
import yaml
from project import ROOT, Project, adult_like

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
FILES = sorted((ROOT / "config/ablations").glob("*.yaml"))
CONTENT = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}


@pytest.fixture(scope="module")
def base(places):
    made = Project(*places, shipped={content["experiments"][name]["extends"] for name, content in CONTENT.items()})
    made.write_data("adult", "adult", "adult.data", adult_like(500, 1, test=False))
    made.write_data("adult", "adult", "adult.test", adult_like(250, 2, test=True))
    made.overlay["tracking"] = {"uri": "none"}
    return made


@pytest.mark.parametrize("name", CONTENT)
def test_an_ablation_ends_with_its_table(base, name):
    before = copy.deepcopy(base.overlay)
    base.overlay |= CONTENT[name]
    outcome = base.run(name)
    base.overlay = before
    assert outcome.status == 0, outcome.text[-3000:]
    assert any(status == "ok" for status in base.table(name)["status"])
    assert base.table(name)["measure"].str.contains("_minus_").any()  # paired differences to its base
