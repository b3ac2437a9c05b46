"""`make quick` on real records of Adult: the first row of Table 4."""

import re

import pytest
from project import ROOT, Project

from agglearn_workflow.config.loading import read_mapping

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def test_table_4_on_adult(places):
    made = Project(*places, shipped=["maxent_table4"])
    made.overlay = read_mapping(ROOT / "config/quick.yaml") | {"mirrors": [str(ROOT.parent / "shared/data")]}
    table4 = made.overlay["experiments"]["maxent_table4"] | {"datasets": {"bank": None}}
    made.overlay["experiments"] = {"maxent_table4": table4}
    made.overlay["run"] = ["maxent_table4"]
    outcome = made.run("maxent_table4")
    table = made.table("maxent_table4").query("dataset == 'adult'")
    if set(table.status) == {"unavailable"}:
        pytest.skip(f"Adult cannot be had here: {table.reason.iloc[0]}")
    assert outcome.status == 0
    nllh = table.query("method == 'maxent' and measure == 'nllh'").squeeze()
    assert 0.41 < nllh["mean"] < 0.43
    assert nllh["reported"] == 0.416
    assert re.search(r"^Maximum entropy +0.42", outcome.text, re.M)
