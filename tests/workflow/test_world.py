"""A small world with known answers, compared in every place where a person reads."""

import collections
import csv
import dataclasses
import html
import itertools
import json
import math
import re

import pandas as pd
import pytest
import world as w
from project import Project, tracking_client
from world_claims import CLAIMS, FEW, NO_RESULT, judged, region
from world_figures import (
    check_curves,
    check_dots,
    check_lines,
    check_scatter_against_a_measure,
    check_scatter_against_a_method,
    figures_of,
)
from world_project import State, cell_of, claims_of, run_twice
from world_readers import CHECKS, Tables, check_html
from world_tables import LAYOUTS, grids
from world_tracking import check_mean, check_run

from agglearn_workflow import digests
from agglearn_workflow.claims.judging import PREDICATES
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


def close(value, expected) -> bool:
    """Whether two numbers are the same; None and an empty text stand for none."""
    if expected is None:
        return value in ("", None) or (isinstance(value, float) and math.isnan(value))
    return float(value) == pytest.approx(expected, rel=1e-9, abs=1e-12)


# -- who is trained and tested ------------------------------------------------------------------------------------------


def test_every_seed_has_training_and_test_records_of_its_own(state):
    known, splits = {r["id"] for r in w.people()}, state.models("split")
    assert len(splits) == (24 if state.mended else 20)
    for size in w.SIZES:
        for seed in w.SEEDS:
            [split] = {s for c, s in splits.items() if c[2:] == (size, seed)}  # the same for all methods
            trained, tested = set(split.trained), set(split.tested)
            assert not trained & tested
            assert trained | tested <= known
            assert len(split.trained) + len(split.tested) == len(trained | tested) == pytest.approx(size, abs=1)
            assert len(tested) / size == pytest.approx(0.25, abs=0.08)
    for size in w.SIZES:
        for part in ("trained", "tested"):
            sets = [set(getattr(state.world.splits[size, seed], part)) for seed in w.SEEDS]
            assert all(len(a & b) < 0.75 * len(a) for i, a in enumerate(sets) for b in sets[:i])
        assert len({frozenset(state.world.splits[size, seed].tested) for seed in w.SEEDS}) == len(w.SEEDS)


def test_no_two_runs_share_a_random_stream(state):
    streams = state.models("random_state")
    assert len(set(streams.values())) == len(streams)


def test_measurements_are_those_computed_by_hand(state):
    rows = pd.concat(map(pd.read_parquet, sorted(state.results.glob("measurements/world/*.parquet"))))
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


# -- tables -------------------------------------------------------------------------------------------------------------


def test_csv(state):
    with open(state.results / "tables/world.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    found = {}
    for row in rows:
        key = (row["method"], json.loads(row["params"]).get("prior"), json.loads(row["dataset_params"])["rows"])
        assert (*key, row["measure"], row["keys"]) not in found
        found[(*key, row["measure"], row["keys"])] = row
    timed = {k for k in found if k[3].partition("_minus_")[0] in ("seconds", "elapsed")}
    assert {found.pop(k)["n"] for k in timed} <= {"2", "3"}
    expected = w.expected_summary(state.world)
    assert set(found) == set(expected)
    for key, (cell, entry) in expected.items():
        row, estimate = found[key], cell.estimate
        said = (row["status"], row["reason"], row["n"])
        assert said == (cell.status, cell.reason, str(estimate.n if estimate else 0)), key
        assert close(row["mean"], estimate and estimate.mean), key
        for end in ("low", "high"):
            assert close(row[end], getattr(estimate, end) if estimate and estimate.half is not None else None), (
                key,
                end,
            )
        assert close(row["reported"], entry and entry["value"]), key
        assert (row["place"], row["outcome"]) == (
            (entry["place"], w.compared(estimate, entry)) if entry else ("", "")
        ), key
        assert row["unit"] == ("nat" if key[3].startswith("log_loss") and estimate else ""), key


def test_tables_for_readers(state):
    """The tables of the workflow, whose configuration has the methods by name."""
    main = LAYOUTS["main"]
    main = dataclasses.replace(
        main, rows=sorted(main.rows, key=lambda row: (row[1]["method"], row[1].get("prior") or 0))
    )
    for kind, check in CHECKS.items():
        text = (state.results / f"tables/world.{kind}").read_text()
        check(text, main, grids(state.world, main))
        if kind == "html":
            figures = text[text.index("<figure") : text.index("</html>")]
            shown = figures.replace("<figcaption>World &amp; 5 % of_it</figcaption>", "")  # which is the page's heading
            page = (
                (state.results / "site/spike.html").read_text().replace("\u00a0%", " %")
            )  # values lead to every measure
            assert shown in re.sub(r'<td><a href="full/world.html#r(\d+)">(.*?)</a>', r'<td data-row="\1">\2', page)
        else:
            assert (state.results / f"site/tables/world.{kind}").read_text() == text
    table = (state.results / "tables/world.csv").read_text()
    assert (state.results / "site/tables/world.csv").read_text() == table


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_of_a_table(state, tmp_path, name):
    wanted = LAYOUTS[name]
    paths = sorted(state.results.glob("measurements/world/*.parquet"))
    render(state.plan(table=wanted.table, figure={"kind": "dots", "y": "curve"}), "world", paths, tmp_path)
    for kind, check in CHECKS.items():
        check((tmp_path / f"tables/world.{kind}").read_text(), wanted, grids(state.world, wanted))


def test_what_other_code_has_computed_is_no_number(states, tmp_path):
    first, second = states["first"], states["second"]
    paths = sorted(first.results.glob("measurements/world/*.parquet"))
    render(second.plan(), "world", paths, tmp_path)
    main = LAYOUTS["main"]
    expected = grids(first.world, main, stale="rates")
    for place in itertools.chain(*expected[0].cells):
        place.best = False  # one method is left that has an interval
    check_html((tmp_path / "tables/world.html").read_text(), main, expected)
    drawn = figures_of(second.plan(), paths, tmp_path / "world.svg")
    assert not any(
        "Rates" in label for panels in drawn for panel in panels for label in (*panel["ticks"], *panel["lines"])
    )
    assert len(drawn) == len(w.EXPERIMENT["figure"])


def test_every_verdict_on_a_printed_number_occurs(states):
    verdicts = {v.split()[0] for v in rows_of(states["first"])["outcome"] if v}
    assert verdicts == {"agrees", "above", "below", "undecided", "not"}


def rows_of(state) -> dict[str, list[str]]:
    with open(state.results / "tables/world.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return {name: [row[name] for row in rows] for name in rows[0]}


# -- claims -------------------------------------------------------------------------------------------------------------


def test_claims(state):
    found = claims_of(state)
    assert list(found) == sorted(state.overlay["claims"])  # the order of the configuration's file
    for name, claim in state.overlay["claims"].items():
        expected = judged(state.world, name, claim)
        assert (found[name]["verdict"], found[name]["detail"]) == (expected.verdict, expected.detail), name
        assert found[name].get("weak") == expected.weak, name
        if expected.estimate:
            check_numbers(found[name]["cases"][0]["numbers"], claim, expected.estimate)
        assert {k: found[name][k] for k in ("claim", "place", "experiment", "predicate")} == {
            k: claim[k] for k in ("claim", "place", "experiment", "predicate")
        }


def check_numbers(numbers: dict, claim: dict, estimate: w.Estimate) -> None:
    """Estimate, interval, and the values for which a claim is true."""
    scale = math.exp if claim["predicate"] == "ratio_at_least" else float
    ends = (estimate.low, estimate.high) if estimate.half is not None else (None, None)
    expected = dict(zip(("value", "low", "high", "from", "to"), (estimate.mean, *ends, *region(claim)), strict=True))
    finite = {k: None if x is None or math.isinf(x) else pytest.approx(scale(x)) for k, x in expected.items()}
    assert numbers == finite


def test_every_verdict_on_a_claim_occurs(states):
    verdicts = {c["verdict"] for c in claims_of(states["first"]).values()}
    assert verdicts == {"holds", "fails", "undecided", FEW, "not judged", "failed"}
    assert {c["predicate"] for c in CLAIMS.values()} == set(PREDICATES)


# -- pages --------------------------------------------------------------------------------------------------------------


def test_claims_on_the_page_of_the_source(state):
    page = (state.results / "site/spike.html").read_text()
    parts = dict(re.findall(r'<details class="claim[^"]*" id="claim-(\w+)">(.*?)</details>', page, re.DOTALL))
    found = claims_of(state)
    assert set(parts) == set(found)
    for name, part in parts.items():
        claim = found[name]
        assert re.search(r'<span class="verdict [\w-]+">(.*?)</span>', part)[1] == claim["verdict"]
        for text in (claim["detail"], claim["place"], claim["note"], claim.get("weak"), claim["deterministic"]):
            assert (text or "") in html.unescape(part)


def test_page_of_every_measure(state):
    everything, runs = Tables((state.results / "site/full/world.html").read_text()).tables
    assert sum(cells[3]["text"].split() == list(map(str, w.SEEDS)) for cells in runs[1:]) == len(state.world.cells)
    assert {cells[4]["text"] for cells in runs[1:]} == {"MLflow"}
    with open(state.results / "tables/world.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    for cells, row in zip(everything[1:], rows, strict=True):
        _, method, params, _, value, n, reported, place, verdict = (c["text"] for c in cells)
        assert (method, n) == (w.METHOD_NAMES.get(row["method"], row["method"]), row["n"])
        apart = f" by {abs(float(row['difference'])):.3g}" if row["outcome"] in ("above", "below") else ""
        assert (place, verdict) == (row["place"], row["outcome"] + apart)
        assert cells[5]["a"][1]["href"] in {f"#c{k}" for k in range(len(state.world.cells))}
        assert params == row["params"].strip("{}").replace('"', "")
        assert reported == (f"{float(row['reported']):g}" if row["reported"] else "")
        if row["measure"].partition("_minus_")[0] not in ("seconds", "elapsed"):
            prior, size = json.loads(row["params"]).get("prior"), json.loads(row["dataset_params"])["rows"]
            cell = w.cell(state.world, row["method"], prior, size, row["measure"] or "nllh", row["keys"] or None)
            assert value.strip() == f"{cell.text} {row['unit']}".strip()


def test_index(state):
    page = (state.results / "site/index.html").read_text()
    [time] = Tables(page).tables
    verdicts = [c["verdict"] for c in claims_of(state).values()]
    words = {
        "holds": ("holds", "hold"), "fails": ("fails", "fail"), "undecided": ("is undecided", "are undecided"),
        FEW: ("needs a larger scale", "need a larger scale"), "not judged": ("could not be judged",) * 2,
        "failed": ("failed to be judged",) * 2,
    }  # fmt: skip
    counts = {verdict: verdicts.count(verdict) for verdict in words if verdict in verdicts}
    expected = ", ".join(f"{n} {words[verdict][n > 1]}" for verdict, n in counts.items())
    assert f"Of their claims {expected}." in re.sub("<[^>]*>", "", page)
    weak = sum(bool(c["weak"]) for c in claims_of(state).values())
    assert weak
    assert f", {len(verdicts)} claims ({weak} weak)</a>" in page
    [_, [name, runs, spent, budget]] = [[c["text"] for c in row] for row in time]
    rows = pd.concat(map(pd.read_parquet, state.results.glob("measurements/world/*.parquet")))
    elapsed = rows[(rows["measure"] == "elapsed") & (rows["status"] == "ok")]["value"].sum()
    assert (name, runs, spent, budget) == ("world", str(len(state.runs)), f"{elapsed:.0f}", "7")
    assert len(state.runs) == 36


# -- last lines and exit status -----------------------------------------------------------------------------------------


def test_last_lines_and_status(state):
    failed = [
        f"ValueError: needs {w.LEAST} records & more",
        f"1 seed failed: ValueError: needs {w.LEAST} records & more",
    ]
    failed = [f'failed: world, people, exacting {{"least": {w.LEAST}}}: {why}' for why in failed]
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
    if not failed:
        assert outcome.read_text().splitlines() == expected


# -- MLflow -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tracked(state):
    """MLflow's client, and its runs by kind: `seed`, `mean`, `overview`."""
    client, kinds = tracking_client(state.results), collections.defaultdict(list)
    [experiment] = [e for e in client.search_experiments() if e.name != "Default"]
    assert experiment.name == "world"
    for run in client.search_runs([experiment.experiment_id], max_results=1000):
        kinds[run.data.tags["kind"]].append(run)
    return client, kinds


def test_mlflow_has_every_run_once(state, tracked):
    client, sent = tracked[0], tracked[1]["seed"]
    assert sorted(r.data.tags["agglearn.run"] for r in sent) == sorted(state.runs)
    for run in sent:
        check_run(state, client, run)


def test_mlflow_has_the_mean_of_every_cell(state, tracked):
    means = {run.data.tags["agglearn.run"]: run for run in tracked[1]["mean"]}
    assert len(means) == len(tracked[1]["mean"]) == len(state.world.cells)
    children = collections.defaultdict(list)
    for run in tracked[1]["seed"]:
        children[run.data.tags["mlflow.parentRunId"]].append(state.runs[run.data.tags["agglearn.run"]])
    assert set(children) == {run.info.run_id for run in means.values()}
    for run in means.values():
        records = children[run.info.run_id]
        [cell] = {cell_of(record)[:3] for record in records}
        assert sorted(record["seed"] for record in records) == list(w.SEEDS)
        check_mean(state, run, cell, records)


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


# -- figures ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(state, tmp_path_factory):
    """What the axes of every figure hold, which is what the workflow's file shows."""
    plan = state.plan()
    experiment = plan.experiments["world"]
    experiment["methods"] = dict(sorted(experiment["methods"].items()))  # as in the configuration of the workflow
    plan.config["claims"] = dict(sorted(plan.config["claims"].items()))
    path = tmp_path_factory.mktemp("drawn") / "world.svg"
    kept = figures_of(plan, sorted(state.results.glob("measurements/world/*.parquet")), path)
    assert path.read_text() == (state.results / "figures/world.svg").read_text()
    return kept


def test_dots(state, drawn):
    check_dots(drawn[0], state.world)


def test_curves(state, drawn):
    check_curves(drawn[1], state.world)


def test_lines(state, drawn):
    check_lines(drawn[2], state.world)


def test_scatter_against_a_method_and_against_a_measure(state, drawn):
    check_scatter_against_a_method(drawn[3], state.world)
    check_scatter_against_a_measure(drawn[4], state.world)
