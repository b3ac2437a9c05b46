"""A small world with known answers, compared in the places where a person reads. `tests/unit/reporting/` and `tests/unit/tracking/`
have every field of tables, figures, claims, pages and MLflow by hand."""

import collections
import csv
import json
import math
import re

import pandas as pd
import pytest
import world as w
from project import Project, tracking_client
from world_claims import FEW, NO_RESULT, judged, region
from world_project import State, cell_of, claims_of, run_twice

from agglearn_workflow import digests
from agglearn_workflow.render import render

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def states(places):
    """The project after its first run, and after an edit of one method, a mended cause of failures and a second run."""
    before = list(digests.ROOTS)
    yield run_twice(Project(*places))
    digests.ROOTS[:] = before


@pytest.fixture(scope="module", params=["first", "second"])
def state(request, states) -> State:
    return states[request.param]


# -- who is trained and tested ------------------------------------------------------------------------------------------


def test_every_seed_has_training_and_test_records_of_its_own(state):
    known, splits = {r["id"] for r in w.people()}, state.splits()
    assert len(splits) == (24 if state.mended else 20)
    for size in w.SIZES:
        for seed in w.SEEDS:
            [split] = {s for c, s in splits.items() if c[2:] == (size, seed)}  # the same for all methods
            trained, tested = set(split.trained), set(split.tested)
            assert not trained & tested
            assert trained | tested <= known
            assert len(split.trained) + len(split.tested) == len(trained | tested) == pytest.approx(size, abs=1)
            assert len(tested) / size == pytest.approx(0.25, abs=0.08)
        for part in ("trained", "tested"):
            sets = [set(getattr(state.world.splits[size, seed], part)) for seed in w.SEEDS]
            assert all(len(a & b) < 0.75 * len(a) for i, a in enumerate(sets) for b in sets[:i])


def test_measurements_are_those_computed_by_hand(state):
    rows = measurements(state)
    assert set(rows["run"]) == set(state.runs)
    for key, part in rows.groupby("run"):
        cell = cell_of(state.runs[key])
        expected, (status, reason) = state.world.values[cell], state.world.status(cell[0], *cell[2:])
        assert {(r.status, r.reason or "") for r in part.itertuples()} == {(status, reason)}
        found = {(r.measure, r.keys, None if math.isnan(r.step) else r.step): r.value for r in part.itertuples()}
        assert len(found) == len(part), "a measure stands twice"
        if status != "ok":
            assert list(found) == [(None, None, None)]
            continue
        timed = {name: found.pop((name, None, None)) for name in ("seconds", "elapsed")}
        assert 0 <= timed["seconds"] <= timed["elapsed"]
        assert found == pytest.approx(expected)
        assert part["overlap"].tolist() == pytest.approx([w.OVERLAP] * len(part))


def measurements(state) -> pd.DataFrame:
    return pd.concat(map(pd.read_parquet, sorted(state.results.glob("measurements/world/*.parquet"))))


# -- tables and figures -------------------------------------------------------------------------------------------------


def close(value, expected) -> bool:
    """Whether two numbers are the same; None and an empty text stand for none."""
    return value == "" if expected is None else float(value) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def table_of(state) -> list[dict]:
    with open(state.results / "tables/world.csv", newline="") as handle:
        return list(csv.DictReader(handle))


def test_csv(state):
    rows = table_of(state)
    found = {
        (r["method"], json.loads(r["params"]).get("prior"), json.loads(r["dataset_params"])["rows"], r["measure"], r["keys"]): r
        for r in rows
    }  # fmt: skip
    assert len(found) == len(rows)
    timed = {k for k in found if k[3].partition("_minus_")[0] in ("seconds", "elapsed")}
    assert {found.pop(k)["n"] for k in timed} <= {"2", "3"}
    expected = w.expected_summary(state.world)
    assert set(found) == set(expected)
    for key, cell in expected.items():
        row, estimate = found[key], cell.estimate
        said = (row["status"], row["reason"], row["n"])
        assert said == (cell.status, cell.reason, str(estimate.n if estimate else 0)), key
        assert all(close(row[k], estimate and getattr(estimate, k)) for k in ("mean", "low", "high")), key
        assert row["unit"] == ("nat" if key[3].startswith("log_loss") and estimate else ""), key


def test_tables_and_figures_are_those_of_the_measurements(state, tmp_path):
    """The workflow has methods and claims by name, and its pages show its tables."""
    plan = state.plan()
    plan.experiments["world"]["methods"] = dict(sorted(plan.experiments["world"]["methods"].items()))
    plan.config["claims"] = dict(sorted(plan.config["claims"].items()))
    render(plan, "world", sorted(state.results.glob("measurements/world/*.parquet")), tmp_path)
    for name in ("figures/world.svg", *(f"tables/world.{kind}" for kind in ("csv", "md", "tex", "html"))):
        assert (tmp_path / name).read_bytes() == (state.results / name).read_bytes(), name
        if not name.endswith(("html", "svg")):
            assert (tmp_path / name).read_bytes() == (state.results / "site" / name).read_bytes(), name
    figures = (tmp_path / "tables/world.html").read_text().partition("<figure")[2].partition("</html>")[0]
    shown = figures.replace("<figcaption>World &amp; 5 % of_it</figcaption>", "")  # which is the page's heading
    page = (state.results / "site/spike.html").read_text().replace("\u00a0%", " %")  # values lead to every measure
    assert shown in re.sub(r'<td><a href="full/world.html#r(\d+)">(.*?)</a>', r'<td data-row="\1">\2', page)


# -- claims -------------------------------------------------------------------------------------------------------------


def test_claims(state):
    found = claims_of(state)
    assert list(found) == sorted(state.overlay["claims"])  # the order of the configuration's file
    for name, claim in state.overlay["claims"].items():
        expected = judged(state.world, name, claim)
        assert (found[name]["verdict"], found[name]["detail"]) == (expected.verdict, expected.detail), name
        assert found[name].get("weak") == expected.weak, name
        if estimate := expected.estimate:
            numbers = (estimate.mean, estimate.low, estimate.high, *region(claim))
            finite = [None if x is None or math.isinf(x) else pytest.approx(x) for x in numbers]
            found_numbers = found[name]["cases"][0]["numbers"]
            assert [found_numbers[k] for k in ("value", "low", "high", "from", "to")] == finite, name
        assert {k: found[name][k] for k in ("claim", "place", "experiment", "predicate")}.items() <= claim.items()


def test_every_verdict_on_a_claim_occurs(states):
    verdicts = {c["verdict"] for c in claims_of(states["first"]).values()}
    assert verdicts == {"holds", "fails", "undecided", FEW, "not judged", "failed"}


# -- last lines and exit status -----------------------------------------------------------------------------------------


def test_last_lines_and_status(state):
    why = f"ValueError: needs {w.LEAST} records & more"
    failed = [
        f'failed: world, people, exacting {{"least": {w.LEAST}}}: {text}' for text in (why, f"1 seed failed: {why}")
    ]
    failed += [f"failed: claim broken: {NO_RESULT['broken'].detail.removeprefix('failed: ')}"]
    failed = [] if state.mended else failed
    expected = [
        *failed,
        "stopped: world, limited: > 3 steps (2 cells)",
        "not available: people: surrogate is not installed (needed by world)",
        "tables: results/tables/ (1 experiment), figures: results/figures/",
        "read them at results/site/index.html",
        f"not available: 1 (data sets or packages), failed: {len(failed)} (cells, tables, figures or claims); `make retry` tries these again",
    ]
    said = [line.removeprefix("agglearn: ") for line in state.outcome.said]
    first = next(i for i, line in enumerate(said) if line == expected[len(failed)]) - len(failed)
    last = said[first - bool(failed) :]  # errors of jobs stand before what they have cost
    stopped = [line for line in last if line.startswith("error: all: ")]
    assert len(stopped) == bool(failed)
    assert sorted(line for line in last if line not in stopped) == sorted(expected)
    assert state.outcome.status == (1 if failed else 0)
    outcome = state.results / "outcome/all.txt"
    assert outcome.exists() == (not failed)
    assert failed or outcome.read_text().splitlines() == expected


# -- MLflow -------------------------------------------------------------------------------------------------------------


def test_mlflow_has_every_run_and_the_mean_of_every_cell_once(state):
    client, kinds = tracking_client(state.results), collections.defaultdict(list)
    [experiment] = [e for e in client.search_experiments() if e.name != "Default"]
    assert experiment.name == "world"
    for run in client.search_runs([experiment.experiment_id], max_results=1000):
        kinds[run.data.tags["kind"]].append(run)
    assert sorted(r.data.tags["agglearn.run"] for r in kinds["seed"]) == sorted(state.runs)
    children = collections.defaultdict(list)
    for run in kinds["seed"]:
        cell, tags = cell_of(state.runs[run.data.tags["agglearn.run"]]), run.data.tags
        children[tags["mlflow.parentRunId"]].append(cell)
        assert (tags["status"], tags.get("mlflow.note.content", "")) == state.world.status(cell[0], *cell[2:])
        found = {k: v for k, v in run.data.metrics.items() if k not in ("seconds", "elapsed")}
        measured = {m: v for (m, keys, step), v in state.world.values[cell].items() if keys is step is None}
        assert found == pytest.approx(measured)
    assert sorted(map(sorted, children.values())) == sorted(sorted((*c, s) for s in w.SEEDS) for c in state.world.cells)
    assert set(children) == {run.info.run_id for run in kinds["mean"]}
    for run in kinds["mean"]:
        estimate = w.cell(state.world, *children[run.info.run_id][0][:3], "nllh").estimate
        assert run.data.metrics.get("nllh_mean") == (estimate and pytest.approx(estimate.mean))


# -- the second run -----------------------------------------------------------------------------------------------------


def test_the_second_run_computes_what_was_edited_or_had_failed(states):
    first, second = states["first"], states["second"]
    assert set(first.runs) == set(second.runs)
    stamps = [{k: (s.results / f"runs/{k}/run.json").stat().st_mtime_ns for k in s.runs} for s in (first, second)]
    again = {(r["method"], r["status"]) for k, r in first.runs.items() if stamps[0][k] != stamps[1][k]}
    kept = {(r["method"], r["status"]) for k, r in first.runs.items() if stamps[0][k] == stamps[1][k]}
    assert again == {("rates", "ok"), ("exacting", "failed"), ("absent", "unavailable")}
    assert kept == {("base", "ok"), ("exacting", "ok"), ("limited", "stopped")}
    prints = [{k: r["fingerprint"] for k, r in s.runs.items()} for s in (first, second)]
    assert {first.runs[k]["method"] for k in prints[0] if prints[0][k] != prints[1][k]} == {"rates"}
