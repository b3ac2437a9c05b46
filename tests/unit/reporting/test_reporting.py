"""Summaries, verdicts, layouts and claims on measurements whose answer is known."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reported_trial import EXPERIMENT, written
from scipy import stats

from agglearn.evaluation.intervals import mean_interval
from agglearn.storage import read_json, write_json
from agglearn_workflow import run_summary
from agglearn_workflow.archive.store import MEASURED as COLUMNS
from agglearn_workflow.claims.judging import judge_all
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.render import caption_of, render
from agglearn_workflow.tables import printed_table, summary
from agglearn_workflow.tables.summary import column_or_param, compare, summarise


def rows(values: dict, measure="nllh", step=None, keys=None) -> pd.DataFrame:
    """Rows from {(dataset, method[, params]): [value per seed] or (status, reason)}."""
    found = []
    for key, seeds in values.items():
        dataset, method, params = (*key, "{}")[:3]
        bad = isinstance(seeds, tuple)
        for seed, value in enumerate([np.nan] if bad else seeds):
            found.append(
                dict.fromkeys(COLUMNS)
                | {"run": f"{key}{seed}", "experiment": "e", "dataset": dataset, "dataset_params": "{}", "params": params,
                   "observation": "tables", "observation_params": "{}", "method": method, "seed": seed, "step": step,
                   "status": seeds[0] if bad else "ok", "reason": seeds[1] if bad else None, "keys": keys and json.dumps(keys),
                   "measure": None if bad else measure, "value": value, "unit": "", "tested": dataset}
            )  # fmt: skip
    return pd.DataFrame(found).astype({"step": float, "value": float, "overlap": float})


def test_interval_against_scipy():
    x = [0.1, 0.4, 0.35, 0.8]
    mean, low, high = mean_interval(x)
    expected = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert mean == pytest.approx(np.mean(x))
    assert np.isnan(mean_interval([1.0])[1])


def test_differences_are_paired():
    table = summarise(
        rows({("a", "ours"): [0.5, 0.9, 0.1001], ("a", "base"): [0.4, 0.8, 0.0]}), EXPERIMENT | {"baseline": "base"}
    )
    row = table[table.measure == "nllh_minus_base"].iloc[0]
    assert row["mean"] == pytest.approx(0.1, abs=1e-3)
    assert row["high"] - row["low"] < 1e-3  # the seeds differ widely, the pairs do not


def test_differences_need_the_same_tested_units():
    found = rows({("a", "ours"): [0.5, 0.9], ("a", "base"): [0.4, 0.8]})
    found.loc[(found.method == "ours") & (found.seed == 1), "tested"] = "others"
    table = summarise(found, EXPERIMENT | {"baseline": "base"})
    assert table.loc[table.measure == "nllh_minus_base", "n"].tolist() == [1]


def test_one_failure_does_not_empty_the_table():
    table = summarise(
        rows({("a", "ours"): [0.5], ("b", "ours"): ("unavailable", "no file"), ("a", "base"): ("failed", "E: x")}),
        EXPERIMENT,
    )
    assert set(table.status) == {"ok", "unavailable", "failed"}
    text = written("md", printed_table.grid(table, EXPERIMENT, {"a": "A", "b": "B"}))
    assert "| NLLH | A |" in text  # B has no result
    assert "failed [" in text
    assert "| 0.500 |" in text
    assert "Without a result: no file (1 cell)" in text
    assert "E: x" in text


def test_some_seeds_failed():
    both = pd.concat(
        [rows({("a", "ours"): [0.5, 0.6]}), rows({("a", "ours"): ("failed", "boom")}).assign(run="z", seed=2)]
    )
    [row] = summarise(both, EXPERIMENT).to_dict("records")
    assert row["n"] == 2
    assert row["reason"] == "1 seed failed: boom"


def test_a_printed_number_belongs_to_the_rows_with_its_keys():
    parts = [
        rows({("a", "ours"): [v, v + 0.1]}, keys=k)
        for k, v in (({"group": "x", "n": 1}, 0.2), ({"group": "y"}, 0.4), (None, 0.6))
    ]
    entry = {"dataset": "a", "method": "ours", "measure": "nllh", "keys": {"group": "x"}, "value": 0.3, "place": "p. 1"}
    table = summarise(
        pd.concat(parts, ignore_index=True), EXPERIMENT | {"reported": [entry], "agreement": {"margins": {}}}
    )
    assert table["keys"].fillna("").tolist() == ['{"group": "x", "n": 1}', '{"group": "y"}', ""]
    assert table["reported"].fillna(-1).tolist() == [0.3, -1, -1]
    assert table["mean"].tolist() == pytest.approx([0.25, 0.45, 0.65])


def test_reported_without_measurement_is_in_the_summary_and_not_in_a_table_that_has_no_result():
    e = EXPERIMENT | {
        "reported": [{"dataset": "b", "method": "ours", "measure": "nllh", "value": 0.4, "place": "Table 1"}],
        "agreement": {"margins": {"nllh": 0.01}, "reason": "ours"},
    }
    table = summarise(rows({("b", "ours"): ("unavailable", "no file")}), e)
    assert table.reported.tolist() == [0.4]
    assert table["outcome"].tolist() == ["not judged"]
    text = written("md", printed_table.grid(table, e, {}))
    assert printed_table.NO_RESULT in text
    assert "Without a result: no file (1 cell)" in text
    assert "|" not in text


@pytest.mark.parametrize(
    ("mean", "half", "printed", "said"),
    [
        (0.421, np.nan, "0.421", "undecided"),  # one seed
        (0.421, 0.0104, "0.421", "agrees"),  # half of the last digit joins the margin
        (0.421, 0.0106, "0.421", "undecided"),  # not significantly different is no agreement
        (0.425, 0.006, "0.421", "agrees"),
        (0.425, 0.008, "0.421", "undecided"),
        (0.445, 0.006, "0.421", "above"),
        (0.400, 0.006, "0.420", "below"),
        (0.400, 0.012, "0.420", "undecided"),
        (0.460, 0.006, "0.42", "above"),
    ],
)
def test_printed_numbers_are_compared_by_an_equivalence_margin(mean, half, printed, said):
    row = {"status": "ok", "mean": mean, "low": mean - half, "high": mean + half}
    entry = {"value": float(printed), "printed": printed, "measure": "nllh"}
    compared = compare(row, entry, {"nllh": 0.01})
    assert compared["outcome"] == said
    assert compared["difference"] == pytest.approx(mean - float(printed))
    assert compared["tolerance"] == pytest.approx(0.01 + 0.5 * 10 ** -len(printed.partition(".")[2]))
    assert compare(row, entry, {"auc": 0.01})["outcome"] == "not compared"


@pytest.mark.slow
def test_the_caption_says_how_many_cells_would_miss_by_chance():
    """Cells whose true mean is the printed number, drawn many times, miss it as often as the caption expects."""
    n, cells, margin, spread = 5, 4000, 0.02, 0.012
    draws = 0.4 + spread * np.random.default_rng(7).standard_normal((cells, n))
    values = {("a", "ours", json.dumps({"k": k})): list(d) for k, d in enumerate(draws)}
    entry = {"dataset": "a", "method": "ours", "measure": "nllh", "value": 0.4, "printed": "0.4000", "place": "Table 1"}
    e = EXPERIMENT | {"agreement": {"margins": {"nllh": margin}, "reason": "ours"}}
    table = summarise(rows(values), e | {"reported": [entry]})
    missed = (table["outcome"] != "agrees").sum()
    assert 0.05 < missed / cells < 0.5
    assert summary.missed_by_chance(table, e | {"reported": [entry]}) == pytest.approx(missed, rel=0.1)


def test_the_caption_counts_agreement():
    values = {("a", "ours"): [0.40, 0.401, 0.402], ("b", "ours"): [0.5, 0.501, 0.502], ("a", "base"): [0.4]}
    printed = [("a", "ours", 0.4), ("b", "ours", 0.4), ("a", "base", 0.4)]
    entries = [{"dataset": d, "method": m, "measure": "nllh", "value": v, "place": "Table 1"} for d, m, v in printed]
    e = EXPERIMENT | {"reported": entries, "agreement": {"margins": {"nllh": 0.01}, "reason": "a tenth of the gap"}}
    said = caption_of(e, summarise(rows(values), e))
    assert (
        "Of 3 printed numbers 1 agree, 1 are above or below, 1 are undecided. Margins: 0.01 (NLLH); a tenth of the gap."
        in said
    )
    assert "0.0 cells with an interval would not agree by chance" in said
    without = {pair: drawn[:1] for pair, drawn in values.items()}
    said = caption_of(e, summarise(rows(without), e))
    assert "Of 3 printed numbers 3 are undecided." in said
    assert "by chance" not in said


def test_each_text_of_parameters_is_read_once(monkeypatch):
    """Curves repeat a run's parameters in thousands of rows."""
    table = rows({("a", "ours", f'{{"n": {n}}}'): [0.1] * 50 for n in (1, 2)})
    read, loads = [], json.loads
    monkeypatch.setattr(summary.json, "loads", lambda text: read.append(text) or loads(text))
    assert column_or_param(table, "params.n").tolist() == [1] * 50 + [2] * 50
    assert len(read) == 2


def test_a_solver_that_stopped_shows_its_limit():
    table = summarise(rows({("a", "ours"): ("stopped", "> 8 s"), ("a", "base"): [0.5]}), EXPERIMENT)
    text = written("md", printed_table.grid(table, EXPERIMENT, {"a": "A"}))
    assert "| Ours | > 8 s |\n| base | 0.500 |" in text
    assert "[1]" not in text


def test_what_failed_stands_before_what_stopped():
    both = [rows({("a", "ours"): [0.5]})]
    for seed, how in enumerate((("stopped", "> 8 s"), ("failed", "boom")), 1):
        both.append(rows({("a", "ours"): how}).assign(run=str(seed), seed=seed))
    [row] = summarise(pd.concat(both), EXPERIMENT).to_dict("records")
    assert row["reason"] == "1 seed failed: boom"


def project_of(tmp_path, found: pd.DataFrame, spec: dict | None = None):
    """(plan of one experiment `e`, its measurement file) in a results folder."""
    experiment = EXPERIMENT | {"title": "T"} | ({"table": spec} if spec else {})
    keys = [SimpleNamespace(key=key, recipe="r") for key in found["run"]]
    datasets = {d: {"title": d} for d in "ab"}
    plan = SimpleNamespace(
        experiments={"e": experiment}, config={"datasets": datasets}, runs=lambda name: keys, batches=lambda name: ["b"]
    )
    path = tmp_path / "measurements/e/b.parquet"
    path.parent.mkdir(parents=True)
    table = pa.Table.from_pandas(found[COLUMNS], preserve_index=False)
    pq.write_table(table.replace_schema_metadata({"recipes": json.dumps(dict.fromkeys(found["run"], "r"))}), path)
    return plan, path


def test_a_table_that_fails_is_stated_in_every_format(tmp_path):
    plan, path = project_of(
        tmp_path, rows({("a", "ours"): [0.5]}), {"rows": ["no_such"], "columns": [], "measure": "nllh"}
    )
    render(plan, "e", [path], tmp_path)
    for kind in ("md", "tex", "html"):
        assert "This table failed: KeyError" in (tmp_path / f"tables/e.{kind}").read_text()
    assert "no table to start from" in (tmp_path / "figures/e.svg").read_text()
    assert pd.read_csv(tmp_path / "tables/e.csv").columns.tolist() == summary.COLUMNS
    assert run_summary.problems(tmp_path, tmp_path)["failed"] == ["failed: e, table: KeyError: 'no_such'"]
    assert str(tmp_path / "tables/e.csv") in run_summary.retry_targets(tmp_path)


def test_a_claim_that_fails_leaves_the_others(tmp_path):
    plan, path = project_of(tmp_path, rows({("a", "ours"): [0.50, 0.61, 0.70]}))
    common = {
        "source": "s",
        "claim": "c",
        "place": "p",
        "experiment": "e",
        "value": {"measure": "nllh", "method": "ours"},
    }
    claims = {
        "broken": common | {"predicate": "slope_between", "x": "method", "bound": [0, 1]},
        "sound": common | {"predicate": "at_least", "bound": 0.3},
    }
    judged = judge_all(claims, Rows(summary.load_rows([path], plan, "e")))
    assert [c["verdict"] for c in judged] == ["failed", "holds"]
    assert judged[0]["detail"].startswith("ValueError: Unable to parse string")


def test_a_lost_run_of_a_cell_with_a_mean_is_named(tmp_path):
    """By the column `lost`, whatever the reason says."""
    some, lost = rows({("a", "ours"): [0.5, 0.6]}), rows({("a", "ours"): ("stopped", "3 seeds failed: > 8 s")})
    lost["run"] = "another"
    plan, path = project_of(tmp_path, pd.concat([some, lost], ignore_index=True))
    render(plan, "e", [path], tmp_path)
    [row] = pd.read_csv(tmp_path / "tables/e.csv").to_dict("records")
    assert (row["status"], row["lost"], row["n"]) == ("ok", "stopped", 2)
    found = run_summary.problems(tmp_path, tmp_path)
    assert found["failed"] == found["unavailable"] == []
    [line] = found["stopped"]
    assert line == "stopped: e, ours: 1 seed stopped: 3 seeds failed: > 8 s (1 cell)"


def test_last_lines_name_what_failed_stopped_and_cannot_be_had(tmp_path, capsys):
    found = rows(
        {
            ("a", "ours"): ("unavailable", "no file"),
            ("b", "ours"): ("stopped", "> 8 s"),
            ("b", "base"): ("failed", "boom"),
        }
    )
    plan, path = project_of(tmp_path, found)
    render(plan, "e", [path], tmp_path)
    source = {"status": "unavailable", "reason": "no file", "bytes": 5_000_000}
    write_json(tmp_path / "records/a/manifest.json", source)
    problems = run_summary.problems(tmp_path, tmp_path)
    assert problems == {
        "failed": ["failed: e, b, base {}: boom"],
        "not archived": [],
        "stopped": ["stopped: e, ours: > 8 s (1 cell)"],
        "unavailable": ["not available: a (5 MB): no file (needed by e); get it: agglearn data get a"],
    }
    printed = read_json(tmp_path / "tables/e.json")
    assert (printed["failed"], printed["rows"]) == ([], 2)
    statuses = {(cell[0], cell[4], cell[6]) for cell in printed["without"]}
    assert statuses == {("a", "ours", "unavailable"), ("b", "ours", "stopped"), ("b", "base", "failed")}
    many = {"failed": [f"failed: {k}" for k in range(12)], "stopped": [], "unavailable": [], "not archived": []}
    assert run_summary.problem_lines(tmp_path, many)[9:] == ["failed: 9", "… and 2 more"]
    said = run_summary.summary_lines(tmp_path, tmp_path)
    assert [line for kind in ("failed", "stopped", "unavailable") for line in problems[kind]] == said[:3]
    assert run_summary.problem_lines(tmp_path, problems) == said[:3]
    assert run_summary.problems(tmp_path, tmp_path, ["other"]) == {
        "failed": [],
        "not archived": [],
        "stopped": [],
        "unavailable": [],
    }
    assert set(run_summary.retry_targets(tmp_path)) == {str(tmp_path / "records/a"), str(path)}
    capsys.readouterr()
    run_summary.print_summary(tmp_path, tmp_path, ["other"])  # the folder holds results of another plan
    assert "failed" not in capsys.readouterr().err


def test_a_table_is_printed_as_text(tmp_path, capsys):
    (tmp_path / "tables").mkdir()
    settings = "Bank marketing (term deposits), bags = 10", "Bank marketing (term deposits), bags = 100"
    head = f"|  | {settings[0]}, NLLH | {settings[0]}, AUC | {settings[1]}, NLLH |"
    rows = "| Logistic | **0.433** (0.427, +0.006) | 0.9 | not available [1] |\n| Best pair | 0.380 |  | −0.1 |"
    (tmp_path / "tables/e.md").write_text(
        f"**Table 4: NLLH**\n\n{head}\n| --- | ---: | ---: | ---: |\n{rows}\n\nCaption.\n"
    )
    run_summary.print_summary(tmp_path, tmp_path, show=["e", "not_rendered"])
    said = capsys.readouterr().err
    assert said.splitlines()[1:8] == [
        "Table 4: NLLH",
        "            Bank marketing (term       Bank marketing (term",
        "                       deposits)                  deposits)",
        "                       bags = 10                 bags = 100",
        "                            NLLH  AUC                  NLLH",
        "Logistic   0.433 (0.427, +0.006)  0.9     not available [1]",
        "Best pair                  0.380                       −0.1",
    ]
    assert said.splitlines()[8:] == [""]


def test_a_printed_table_fits_the_terminal():
    heads = [f"Setting {i // 2}, {measure}" for i, measure in enumerate(["NLLH", "AUC"] * 6)]
    cells = [[f"{row}.{i:03}" for i in range(12)] for row in range(2)]
    lines = ["**T**", "", f"|  | bags | {' | '.join(heads)} |", "| --- | --- |" + " ---: |" * 12]
    lines += [f"| Row {row} | {2**row} | {' | '.join(cells[row])} |" for row in range(2)]
    title, text = run_summary.as_text("\n".join(lines)).split("\n", 1)
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert title == "T"
    assert len(blocks) > 1
    assert max(len(line) for block in blocks for line in block) <= run_summary.WIDTH
    printed = [[cell for block in blocks for cell in block[2 + row].split()[3:]] for row in range(2)]
    assert printed == cells  # each cell once, in its order
    assert all(block[3].split()[:3] == ["Row", "1", "2"] for block in blocks)  # all labels of a row


def test_errors_of_a_scale_with_its_own_folder_are_named(tmp_path):
    folder = tmp_path / "quick"
    for place, text in ((tmp_path, "error: prepare adult: gone"), (folder, "error: fit e: boom")):
        (place / "logs/job").mkdir(parents=True)
        (place / "logs/job/one.log").write_text(f"...\n{text}\n")
    assert {"error: prepare adult: gone", "error: fit e: boom"} == set(run_summary.errors(tmp_path, folder))
    assert len(run_summary.errors(tmp_path, tmp_path)) == 1  # the first scale has no folder of its own
