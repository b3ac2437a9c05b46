"""The verdicts of a target, in a file: those on its own claims, and why others have none."""

import os

import pytest
from samples import shipped_config

from agglearn.storage import write_json
from agglearn_workflow import run_summary
from agglearn_workflow.claims import judging
from agglearn_workflow.plan import Plan

RUN = ["maxent_table4", "vocabulary_figure3", "labelsums_equality"]


@pytest.fixture
def config(monkeypatch, tmp_path):
    """A configuration of three sources, whose claims all hold. Of some, the archive has a verdict."""
    monkeypatch.setattr(judging, "judge_archive", lambda claims, *_: dict.fromkeys(list(claims)[:1], "fails"))
    config = shipped_config() | {"scale": "smoke", "run": RUN}
    for name in RUN:
        claims = [{"name": claim, "verdict": "holds"} for claim in of(config, name)]
        write_json(tmp_path / f"tables/{name}.json", {"claims": claims})
    return config


def of(config, *experiments: str) -> list[str]:
    return [name for name, claim in config["claims"].items() if claim["experiment"] in experiments]


def test_all_claims_have_an_entry(config, tmp_path):
    """One on an experiment that is not in the plan states the command that computes it."""
    entries = judging.judge_target(Plan(config), RUN, tmp_path)
    assert [e["name"] for e in entries] == list(config["claims"])
    assert [e["name"] for e in entries if e["verdict"] == "holds"] == of(config, *RUN)
    for entry in (entry for entry in entries if entry["verdict"] != "holds"):
        experiment = config["claims"][entry["name"]]["experiment"]
        absent = f"experiment {experiment} is not in this run", f"make reproduce ARGS={experiment}"
        assert (entry["verdict"], entry["detail"], entry["command"]) == ("not judged", *absent)


def test_a_source_has_the_verdicts_on_its_own_claims(config, tmp_path):
    """Claims of another source in the plan are not its business, whatever lies in their files."""
    entries = judging.judge_target(Plan(config), ["maxent_table4"], tmp_path)
    others = of(config, "vocabulary_figure3", "labelsums_equality")
    assert [e["name"] for e in entries] == [name for name in config["claims"] if name not in others]
    assert [e["name"] for e in entries if e["verdict"] == "holds"] == of(config, "maxent_table4")


@pytest.mark.parametrize(
    ("change", "verdict"), [({}, "fails"), ({"scale": "paper"}, None), ({"from": "archive"}, None)]
)
def test_the_verdict_of_the_archive_stands_beside_that_of_a_smaller_scale(config, tmp_path, change, verdict):
    entries = judging.judge_target(Plan(config | change), ["maxent_table4"], tmp_path)
    judged = [e for e in entries if e["verdict"] == "holds"]
    assert [e.get("archived") for e in judged] == [verdict] + [None] * (len(judged) - 1)


def test_the_newest_verdict_on_a_claim_counts(tmp_path):
    """A claim stands in the file of all, of its source and of its experiment."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/trial.csv").touch()
    verdicts = {"claims.json": "failed", "claims/maxent.json": "holds", "claims/trial.json": "failed"}

    def failed(newest: str) -> list[str]:
        for file, verdict in verdicts.items():
            entry = {"name": "better", "verdict": verdict, "experiment": "trial", "detail": "no rows"}
            write_json(tmp_path / file, [entry])
            os.utime(tmp_path / file, (1, 1 + (file == newest)))
        return run_summary.problems(tmp_path, tmp_path)["failed"]

    assert failed("claims/maxent.json") == []
    for file in ("claims.json", "claims/trial.json"):
        assert failed(file) == ["failed: claim better: no rows"]
