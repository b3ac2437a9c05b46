"""The commands on an archive: archived runs, computed again, are as they were, and what was changed is found."""

import pandas as pd
import pytest
from samples import Project
from test_archive import archived

from agglearn.cli import main
from agglearn_workflow.archive import store
from agglearn_workflow.archive.store import ArchivedRun, table_of
from agglearn_workflow.commands import recomputing
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import Plan

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A project with one method that computes in a moment, and with an archive of its runs at scale smoke."""
    project = Project(tmp_path_factory.mktemp("archived"))

    def narrow(content):
        content["methods"].pop("maxent")
        content["datasets"] = {"loglinear": {"n": {"grid": [100, 200]}}}

    project.edit("experiments/trial", narrow)
    plan = Plan(load(project.base, {"scale": "smoke"}))
    runs = {}
    for run in plan.runs("trial"):
        outcome, observed = recomputing.recompute(run, plan)
        assert outcome.status == "ok"
        own = {"run": run.key, **run.identity, "status": "ok"}
        facts = archived(run, observed=observed).facts
        runs[run.key] = ArchivedRun(facts, table_of([own | row for row in outcome.rows]))
    store.write(project.base / "archive", "trial", runs)
    return project


def test_the_command_ends_with_1_and_a_line_per_difference(project, monkeypatch, capsys):
    monkeypatch.chdir(project.base)
    call = ["archive", "check", "--scale", "smoke", "--sample", "2"]
    assert main(call) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "as archived: 2 runs"
    runs = store.read(project.base / "archive", "trial")
    key, first = next(iter(runs.items()))
    rows = [row | {"value": row["value"] + (row["measure"] == "nllh")} for row in first.rows.to_pylist()]
    monkeypatch.setattr(store, "read", lambda folder, name: runs | {key: ArchivedRun(first.facts, table_of(rows))})
    assert main(call) == 1
    out, err = capsys.readouterr()
    assert [line.split(":")[0].strip() for line in out.splitlines() if line.startswith("  ")] == ["nllh"]
    assert "not as archived: 1 of 2 runs" in err


def test_the_commands_add_list_and_merge(project, monkeypatch, capsys):
    monkeypatch.chdir(project.base)
    assert main(["archive", "--scale", "smoke"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["trial", "2", "2", "2023-11-14", "2023-11-14", "0.1", "0"]
    assert lines[2].startswith("whole: 1 of 1 experiment; 1 file, ")
    call = ["archive", "merge", str(project.base / "archive"), "--scale", "smoke", "--configfile", "other.yaml"]
    (project.base / "other.yaml").write_text("archive: merged\n")
    assert main(call) == 0
    assert capsys.readouterr().out == "trial: 2 runs added\n"
    assert main(call) == 0
    assert capsys.readouterr().out == ""
    original, merged = (pd.read_parquet(project.base / f"{name}/trial/0.parquet") for name in ("archive", "merged"))
    pd.testing.assert_frame_equal(original, merged)
    assert main(["archive", "merge", "nowhere"]) == 2
    assert "'nowhere' holds no archive" in capsys.readouterr().err
