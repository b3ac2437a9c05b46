"""No claim is false of the numbers that its own source prints."""

import functools
import json

import pandas as pd
import pytest
from samples import ROOT, shipped_config

from agglearn_workflow.archive.store import MEASURED as COLUMNS
from agglearn_workflow.claims.judging import judge
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.config.loading import read_mapping

CLAIMS = read_mapping(ROOT / "config/claims.yaml")
PARAMS = ("dataset_params", "observation_params", "params")


@functools.cache
def printed(experiment: str) -> Rows:
    """The printed numbers of an experiment as measurements of one seed."""
    entries = read_mapping(ROOT / f"config/experiments/{experiment}.yaml").get("reported") or []
    found = [
        dict.fromkeys(COLUMNS)
        | {"run": f"run {k}", "seed": 0, "status": "ok", "tested": entry["dataset"]}
        | {name: entry.get(name) for name in ("dataset", "method", "measure", "value")}
        | {name: json.dumps(entry.get(name, {})) for name in (*PARAMS, "keys")}
        for k, entry in enumerate(entries)
    ]
    rows = pd.DataFrame(found, columns=COLUMNS)
    return Rows(rows.astype({"step": float, "value": float, "overlap": float}))


@pytest.mark.parametrize("name", [n for n, c in CLAIMS.items() if len(printed(c["experiment"]).frame)])
def test_no_claim_fails_on_printed_numbers(name):
    rows = printed(CLAIMS[name]["experiment"])
    exact = CLAIMS[name] | {"deterministic": "printed numbers have no interval", "cases": "all"}
    outcome = judge(exact, rows)
    assert outcome["verdict"] != "fails", outcome["detail"]


def test_a_claim_that_the_printed_numbers_contradict_is_noticed():
    claim = CLAIMS["maxent_near_logistic"] | {"tolerance": 0.005, "deterministic": "printed"}
    assert judge(claim, printed("maxent_table4"))["verdict"] == "fails"


def archived(name: str) -> Rows:
    """Rows that the archive has of the experiment of a claim."""
    return Rows(pd.concat(map(pd.read_parquet, ROOT.glob(f"archive/{CLAIMS[name]['experiment']}/*.parquet"))))


@pytest.mark.parametrize(
    "name", [n for n, c in CLAIMS.items() if any(field.startswith("keys.") for field in c.get("each", []))]
)
def test_a_claim_on_each_key_has_something_to_compare_with(name):
    """By the archive. A reference without the key asks for rows without it, or no case would ever be judged."""
    assert any(case["verdict"] != "not judged" for case in judge(CLAIMS[name], archived(name))["cases"])


@pytest.mark.parametrize(
    "name", [n for n, c in CLAIMS.items() if c["source"] == "vocabulary" and n.endswith("guarantee")]
)
def test_a_bound_is_weak_where_every_method_keeps_it(name):
    """By the archive. Uniform bucketing keeps 4 % of the optimum's information there, frequency 1 %."""
    rows = archived(name)
    everybody = CLAIMS[name] | {"value": {"measure": CLAIMS[name]["value"]["measure"]}}
    passed = judge(everybody, rows)["verdict"] == "holds"
    assert ("weak" in CLAIMS[name]) == passed
    assert judge(CLAIMS[name], rows)["verdict"] == "holds"


def test_encoding_is_judged_where_both_sides_have_all_features():
    """The sample's raw data set lacks five of the 19 features, so that it says nothing about the encoding."""
    claim, entries = CLAIMS["encoding_lowers_logistic"], shipped_config()["datasets"]
    features = [entries[claim[side]["dataset"]]["features"] for side in ("value", "reference")]
    assert features[0] == features[1]
    assert len(features[0]["categorical"]) == 19
    assert "not judged" in claim["note"]
