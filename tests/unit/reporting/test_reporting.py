"""Summaries, captions and last lines on measurements whose answer is known."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reported_trial import EXPERIMENT, compared, reported, rows, written

from agglearn.evaluation.intervals import mean_interval
from agglearn.storage import read_json, write_json
from agglearn_workflow import run_summary
from agglearn_workflow.archive.store import MEASURED as COLUMNS
from agglearn_workflow.claims.judging import judge_all
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.render import caption_of, render
from agglearn_workflow.run_summary import problem_lines, problems, retry_targets
from agglearn_workflow.tables import printed_table, summary
from agglearn_workflow.tables.summary import column_or_param, compare, differences, summarise

# -- summaries --------------------------------------------------------------------------------------------------------


def test_values_that_are_no_numbers_count_for_nothing():
    """Neither in the mean, nor as a replicate, nor as the partner of another one."""
    found = rows({("a", "ours"): [0.5, 0.6, np.nan], ("a", "base"): [0.3, 0.35, 0.4]}).assign(overlap=0.25)
    table = summarise(found, EXPERIMENT | {"baseline": "base"}).set_index(["method", "measure"])
    for key, values in {("ours", "nllh"): [0.5, 0.6], ("ours", "nllh_minus_base"): [0.2, 0.25]}.items():
        assert table.loc[key, "n"] == 2
        assert table.loc[key, ["mean", "low", "high"]].tolist() == pytest.approx(mean_interval(values, 0.25))
    assert np.isnan(mean_interval([np.nan])).all()


def test_a_difference_needs_one_value_of_the_baseline_on_the_same_tested_units():
    """Of a grid nobody knows which value to take; seeds with one value keep their pairs."""
    found = rows({("a", "ours"): [0.5, 0.6, 0.7, 0.8], ("a", "base"): [0.4] * 4})
    found.loc[(found["method"] == "ours") & (found["seed"] == 3), "tested"] = "others"
    again = found[(found["method"] == "base") & (found["seed"] == 1)].assign(params='{"l2": 2}', value=0.1, run="more")
    paired = differences(pd.concat([found, again], ignore_index=True), "base", ["nllh"])
    assert paired["seed"].tolist() == [0, 2]
    assert paired["value"].tolist() == pytest.approx([0.1, 0.3])
    assert set(paired["measure"]) == {"nllh_minus_base"}


def test_a_printed_number_belongs_to_the_rows_with_its_keys():
    keys = ({"group": "x", "n": 1}, {"group": "y"}, None)
    parts = [rows({("a", "ours"): [v, v + 0.1]}, keys=k) for k, v in zip(keys, (0.2, 0.4, 0.6), strict=True)]
    experiment = compared(0.01, reported(0.3, keys={"group": "x"}))
    table = summarise(pd.concat(parts, ignore_index=True), experiment)
    assert table["keys"].fillna("").tolist() == ['{"group": "x", "n": 1}', '{"group": "y"}', ""]
    assert table["reported"].fillna(-1).tolist() == [0.3, -1, -1]
    assert table["mean"].tolist() == pytest.approx([0.25, 0.45, 0.65])


def test_reported_without_measurement_is_in_the_summary_and_not_in_a_table_that_has_no_result():
    experiment = compared(0.01, reported(0.4, "b"))
    table = summarise(rows({("b", "ours"): ("unavailable", "no file")}), experiment)
    assert (table["reported"].tolist(), table["outcome"].tolist()) == ([0.4], ["not judged"])
    text = written("md", printed_table.grid(table, experiment, {}))
    assert printed_table.NO_RESULT in text
    assert "Without a result: no file (1 cell)" in text
    assert "|" not in text


@pytest.mark.parametrize(("mean", "half", "printed", "said"), [
    (0.421, np.nan, "0.421", "undecided"),  # one seed
    (0.421, 0.0104, "0.421", "agrees"),  # half of the last digit joins the margin
    (0.421, 0.0106, "0.421", "undecided"),  # not significantly different is no agreement
    (0.425, 0.006, "0.421", "agrees"),
    (0.425, 0.008, "0.421", "undecided"),
    (0.445, 0.006, "0.421", "above"),
    (0.400, 0.006, "0.420", "below"),
    (0.400, 0.012, "0.420", "undecided"),
    (0.460, 0.006, "0.42", "above"),
])  # fmt: skip
def test_printed_numbers_are_compared_by_an_equivalence_margin(mean, half, printed, said):
    row = {"status": "ok", "mean": mean, "low": mean - half, "high": mean + half}
    entry = {"value": float(printed), "printed": printed, "measure": "nllh"}
    found = compare(row, entry, {"nllh": 0.01})
    assert found["outcome"] == said
    assert found["difference"] == pytest.approx(mean - float(printed))
    assert found["tolerance"] == pytest.approx(0.01 + 0.5 * 10 ** -len(printed.partition(".")[2]))
    assert compare(row, entry, {"auc": 0.01})["outcome"] == "not compared"


def test_the_caption_counts_agreement():
    values = {("a", "ours"): [0.40, 0.401, 0.402], ("b", "ours"): [0.5, 0.501, 0.502], ("a", "base"): [0.4]}
    e = compared(0.01, reported(0.4), reported(0.4, "b"), reported(0.4, method="base"))
    said = caption_of(e, summarise(rows(values), e))
    counted = "Of 3 printed numbers 1 agree, 1 are above or below, 1 are undecided. Margins: 0.01 (NLLH); ours."
    assert counted in said
    assert "over 3 seeds." in said
    assert "0.0 cells with an interval would not agree by chance" in said
    said = caption_of(e, summarise(rows({pair: drawn[:1] for pair, drawn in values.items()}), e))
    assert "Of 3 printed numbers 3 are undecided." in said
    assert "by chance" not in said
    assert "seeds" not in said
    values["b", "ours"] *= 2
    assert "over 3 to 6 seeds." in caption_of(e, summarise(rows(values), e))


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


# -- files of an experiment -------------------------------------------------------------------------------------------


def project_of(tmp_path, found: pd.DataFrame, **experiment):
    """(plan of one experiment `e`, its measurement file) in a results folder."""
    keys = [SimpleNamespace(key=key, recipe="r") for key in found["run"]]
    config = {"datasets": {d: {"title": d} for d in "ab"}}
    plan = SimpleNamespace(experiments={"e": EXPERIMENT | experiment}, config=config, runs=lambda name: keys)
    path = tmp_path / "measurements/e/b.parquet"
    path.parent.mkdir(parents=True)
    table = pa.Table.from_pandas(found[COLUMNS], preserve_index=False)
    pq.write_table(table.replace_schema_metadata({"recipes": json.dumps(dict.fromkeys(found["run"], "r"))}), path)
    return plan, path


def test_a_table_that_fails_is_stated_in_every_format(tmp_path):
    broken = {"rows": ["no_such"], "columns": [], "measure": "nllh"}
    plan, path = project_of(tmp_path, rows({("a", "ours"): [0.5]}), table=broken)
    render(plan, "e", [path], tmp_path)
    for kind in ("md", "tex", "html"):
        assert "This table failed: KeyError" in (tmp_path / f"tables/e.{kind}").read_text()
    assert "no table to start from" in (tmp_path / "figures/e.svg").read_text()
    assert pd.read_csv(tmp_path / "tables/e.csv").columns.tolist() == summary.COLUMNS
    assert problems(tmp_path, tmp_path)["failed"] == ["failed: e, table: KeyError: 'no_such'"]
    assert str(tmp_path / "tables/e.csv") in retry_targets(tmp_path)


def test_a_claim_that_fails_leaves_the_others():
    value = {"measure": "nllh", "method": "ours"}
    claims = {
        "broken": {"value": value, "predicate": "slope_between", "x": "method", "bound": [0, 1]},
        "sound": {"value": value, "predicate": "at_least", "bound": 0.3},
    }
    judged = judge_all(claims, Rows(rows({("a", "ours"): [0.50, 0.61, 0.70]})))
    assert [c["verdict"] for c in judged] == ["failed", "holds"]
    assert judged[0]["detail"].startswith("ValueError: Unable to parse string")


def test_a_lost_run_of_a_cell_with_a_mean_is_named(tmp_path):
    """By the column `lost`, whatever the reason says."""
    some, lost = rows({("a", "ours"): [0.5, 0.6]}), rows({("a", "ours"): ("stopped", "3 seeds failed: > 8 s")})
    plan, path = project_of(tmp_path, pd.concat([some, lost.assign(run="another")], ignore_index=True))
    render(plan, "e", [path], tmp_path)
    [row] = pd.read_csv(tmp_path / "tables/e.csv").to_dict("records")
    assert (row["status"], row["lost"], row["n"]) == ("ok", "stopped", 2)
    found = problems(tmp_path, tmp_path)
    assert found["failed"] == found["unavailable"] == []
    assert found["stopped"] == ["stopped: e, ours: 1 seed stopped: 3 seeds failed: > 8 s (1 cell)"]


def test_a_table_states_which_cells_are_without_a_run_and_another_plan_says_nothing_of_them(tmp_path, capsys):
    lost = {("a", "ours"): ("unavailable", "no file"), ("b", "ours"): ("stopped", "> 8 s")}
    lost["b", "base"] = ("failed", "boom")
    plan, path = project_of(tmp_path, rows(lost))
    render(plan, "e", [path], tmp_path)
    printed = read_json(tmp_path / "tables/e.json")
    assert (printed["failed"], printed["rows"]) == ([], 2)
    cells = {(cell[0], cell[4], *cell[6:]) for cell in printed["without"]}
    assert cells == {(*where, *state) for where, state in lost.items()}
    assert all(problems(tmp_path, tmp_path)[kind] for kind in ("failed", "stopped", "unavailable"))
    assert not any(problems(tmp_path, tmp_path, ["other"]).values())
    capsys.readouterr()
    run_summary.print_summary(tmp_path, tmp_path, ["other"])
    assert "failed" not in capsys.readouterr().err


# -- the last lines of a run ------------------------------------------------------------------------------------------


def test_a_table_is_printed_as_text(tmp_path, capsys):
    (tmp_path / "tables").mkdir()
    settings = "Bank marketing (term deposits), bags = 10", "Bank marketing (term deposits), bags = 100"
    head = f"|  | {settings[0]}, NLLH | {settings[0]}, AUC | {settings[1]}, NLLH |"
    cells = "| Logistic | **0.433** (0.427, +0.006) | 0.9 | not available [1] |\n| Best pair | 0.380 |  | −0.1 |"
    text = f"**Table 4: NLLH**\n\n{head}\n| --- | ---: | ---: | ---: |\n{cells}\n\nCaption.\n"
    (tmp_path / "tables/e.md").write_text(text)
    run_summary.print_summary(tmp_path, tmp_path, show=["e", "not_rendered"])
    said = capsys.readouterr().err
    assert said.splitlines()[1:] == [
        "Table 4: NLLH",
        "            Bank marketing (term       Bank marketing (term",
        "                       deposits)                  deposits)",
        "                       bags = 10                 bags = 100",
        "                            NLLH  AUC                  NLLH",
        "Logistic   0.433 (0.427, +0.006)  0.9     not available [1]",
        "Best pair                  0.380                       −0.1",
        "",
    ]


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


def test_every_kind_of_result_is_tried_again_by_its_own_status(tmp_path):
    """A file for each status, and files in which one of several rows has it."""
    for status in ("failed", "ok", "unavailable"):
        write_json(tmp_path / "records" / status / "manifest.json", {"status": status})
        write_json(tmp_path / f"claims/{status}.json", [{"verdict": "holds"}, {"verdict": status}])
        write_json(tmp_path / f"tables/{status}.json", {"failed": ["figure: no"] if status == "failed" else []})
    write_json(tmp_path / "claims/none.json", [])
    write_json(tmp_path / "claims.json", [{"verdict": "failed"}])
    for status in ("failed", "not archived", "ok", "stopped", "unavailable"):
        for folder, statuses in (("alone", [status]), ("among", ["ok", status, "stopped"])):
            (tmp_path / "measurements" / folder).mkdir(parents=True, exist_ok=True)
            pd.DataFrame({"status": statuses}).to_parquet(tmp_path / f"measurements/{folder}/{status}.parquet")
    lost = ("failed", "unavailable")
    assert [str(Path(target).relative_to(tmp_path)) for target in retry_targets(tmp_path)] == [
        *(f"records/{status}" for status in lost),
        *(f"measurements/{folder}/{status}.parquet" for folder in ("alone", "among") for status in lost),
        "tables/failed.csv",
        "claims/failed.json",
        "claims.json",
    ]


NONE = {kind: [] for kind in ("failed", "stopped", "unavailable", "not archived")}


@pytest.mark.parametrize(
    ("n", "last"), [(9, "failed: 8"), (10, "failed: 9"), (11, "… and 1 more"), (40, "… and 30 more")]
)
def test_at_most_ten_failures_are_printed(tmp_path, n, last):
    lines = problem_lines(tmp_path, NONE | {"failed": [f"failed: {k}" for k in range(n)]})
    assert lines[-1] == last
    assert len(lines) == min(n, 11)


def test_the_latest_receipt_counts_whatever_its_name(tmp_path):
    """An experiment that was lost and then sent is no problem; one that was sent and then lost is."""
    ok, lost = {"status": "ok"}, {"status": "lost", "reason": "no server", "todo": "try again"}
    states = {"z": {"first": lost, "second": ok}, "a": {"first": ok, "second": lost, "third": lost}, "m": {"third": ok}}
    for time, (name, experiments) in enumerate(states.items()):
        write_json(tmp_path / f"tracking/{name}.json", {"experiments": experiments})
        os.utime(tmp_path / f"tracking/{name}.json", (1e9 + time, 1e9 + time))
    assert problem_lines(tmp_path, NONE) == ["not tracked: second: no server (try again)"]


def test_problems_of_several_experiments(tmp_path):
    """Cells of one reason are counted, data that several tables need have one line, and the claim of another run has none."""
    states = [
        ("e", "a", "m", "unavailable", "records: no file"), ("f", "a", "m", "unavailable", "records: no file"),
        ("f", "b", "m", "unavailable", "opendp is not installed"), ("f", "b", "n", "stopped", "> 8 s"), ("f", "a", "n", "stopped", "> 8 s"),
        ("e", "b", "n", "not archived", "x"), ("e", "a", "n", "not archived", "x"), ("f", "c", "n", "not archived", "x"),
        ("e", "c", "m", "stale", "old"), ("e", "c", "n", "failed", "boom"),
    ]  # fmt: skip
    for name, failed in (("e", ["figure: no"]), ("f", [])):
        without = [[d, "{}", "{}", "{}", m, "{}", s, r] for e, d, m, s, r in states if e == name]
        write_json(tmp_path / f"tables/{name}.json", {"failed": failed, "without": without})
        (tmp_path / f"tables/{name}.csv").touch()
    claim = {"verdict": "failed", "detail": "ValueError"}
    claims = [claim | {"name": n, "experiment": e} for n, e in (("ours", "f"), ("theirs", "g"))]
    write_json(tmp_path / "claims.json", claims)
    for name, reason in (("a", "no file"), ("b", "no host")):
        manifest = {"status": "unavailable", "reason": reason, "bytes": 7_000}
        write_json(tmp_path / f"records/{name}/manifest.json", manifest)
    assert problems(tmp_path, tmp_path) == {
        "failed": ["failed: e, figure: no", "stale: e, c, m {}: old", "failed: e, c, n {}: boom", "failed: claim ours: ValueError"],
        "unavailable": [
            "not available: a (7 kB): records: no file (needed by e, f); get it: agglearn data get a",
            "not available: b: opendp is not installed (needed by f)",
        ],
        "not archived": [
            "not archived: 3 cells of 2 experiments; agglearn plan lists them with prices, make archive computes them",
        ],
        "stopped": ["stopped: f, n: > 8 s (2 cells)"],
    }  # fmt: skip
