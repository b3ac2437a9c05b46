"""Archived runs, computed again: what was changed is found, and times are not compared."""

import pandas as pd
import pyarrow as pa
import pytest
from samples import Project
from test_archive import archived

from agglearn.cli import main
from agglearn_workflow.archive import store
from agglearn_workflow.archive.store import SCHEMA, ArchivedRun, table_of
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


def sample(project, **more):
    plan = Plan(load(project.base, {"scale": "smoke"}))
    drawn = recomputing.draw_sample(plan, project.base / "archive", **({"n": 9, "seconds": 60.0, "seed": 0} | more))
    return plan, drawn


def changed(one: ArchivedRun, measure: str, change) -> ArchivedRun:
    frame = one.rows.to_pandas()
    here = frame["measure"] == measure
    assert here.any()
    frame.loc[here, "value"] = change(frame.loc[here, "value"])
    return ArchivedRun(one.facts, pa.Table.from_pandas(frame, SCHEMA, preserve_index=False))


def test_what_is_as_archived_has_no_difference(project):
    plan, drawn = sample(project)
    assert len(drawn) == 2
    for run, one in drawn:
        assert recomputing.compare(one, *recomputing.recompute(run, plan)) == []


def test_changed_values_are_found_and_times_are_not_compared(project):
    plan, [(run, one), *_] = sample(project)
    outcome, observed = recomputing.recompute(run, plan)
    [line] = recomputing.compare(changed(one, "auc", lambda v: v + 0.01), outcome, observed)
    assert line.startswith("auc: ")
    assert "in the archive (tolerance " in line
    assert recomputing.compare(changed(one, "auc", lambda v: v + 1e-7), outcome, observed) == []
    assert recomputing.compare(changed(one, "seconds", lambda v: 99 * v), outcome, observed) == []


def test_rows_that_one_side_lacks_are_found(project):
    plan, [(run, one), *_] = sample(project)
    outcome, observed = recomputing.recompute(run, plan)
    frame = one.rows.to_pandas()
    without = ArchivedRun(
        one.facts, pa.Table.from_pandas(frame[frame["measure"] != "auc"], SCHEMA, preserve_index=False)
    )
    assert recomputing.compare(without, outcome, observed) == ["auc: not in the archive"]
    fewer = outcome._replace(rows=[row for row in outcome.rows if row["measure"] != "nllh"])
    assert recomputing.compare(one, fewer, observed) == ["nllh: only in the archive"]


def test_another_observation_and_another_status_are_found(project):
    plan, [(run, one), *_] = sample(project)
    outcome, observed = recomputing.recompute(run, plan)
    assert (
        recomputing.compare(one, outcome, "0000") == []
    )  # Python 3.11.2 and 3.11.7 write other bytes for equal arrays
    lines = recomputing.compare(changed(one, "auc", lambda v: v + 0.01), outcome, "0000")
    assert lines[1:] == [f"its observation has the digest 0000, and {observed} in the archive"]
    [line] = recomputing.compare(one, outcome._replace(status="failed", reason="no"), observed)
    assert line == "status failed, and ok in the archive (no)"


def test_dear_runs_and_runs_of_other_code_are_not_drawn(project):
    assert sample(project, seconds=1.0)[1] == []
    assert len(sample(project, n=1)[1]) == 1
    plan, _ = sample(project)
    again = store.read(project.base / "archive", "trial")
    old = {key: ArchivedRun(one.facts | {"recipe": "old"}, one.rows) for key, one in again.items()}
    store.write(project.base / "of_other_code", "trial", old)
    assert recomputing.draw_sample(plan, project.base / "of_other_code", 9, 60.0, 0) == []


def test_the_command_ends_with_1_and_a_line_per_difference(project, monkeypatch, capsys):
    monkeypatch.chdir(project.base)
    call = ["archive", "check", "--scale", "smoke", "--sample", "2"]
    assert main(call) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "as archived: 2 runs"
    runs = store.read(project.base / "archive", "trial")
    key = next(iter(runs))
    monkeypatch.setitem(runs, key, changed(runs[key], "nllh", lambda v: v + 1))
    monkeypatch.setattr(store, "read", lambda folder, name: runs)
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
