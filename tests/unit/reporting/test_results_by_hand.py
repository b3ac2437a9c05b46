"""One irregular experiment, from the files of two batches to its table, caption and last lines: every field by hand.

Data sets have different numbers of seeds, differences to the baseline have both signs, runs have every status, and one run of
the archive is of other code.
"""

import datetime
import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from reported_trial import reported

from agglearn import __version__
from agglearn_workflow import render, run_summary
from agglearn_workflow.archive.store import SCHEMA, table_of
from agglearn_workflow.claims import judging
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.plan import IDENTITY, cell_key
from agglearn_workflow.site import pages
from agglearn_workflow.tables import summary

A_OURS, A_BASE = [0.40, 0.43, 0.41, 0.46, 0.45], [0.39, 0.44, 0.37]
A_OURS_RMSE, A_BASE_RMSE = [2.0, 2.5, 2.25, 2.4, 2.1], [3.0, 2.0, 4.0]
MEMORY = [3e8, 5e8, 4e8, 6e8, 2e8]
STALE = "computed with other code, settings or packages than today's; run the workflow again"
METHOD = {"class": "agglearn.labelsums.BaseRateClassifier", "observe": "all"}
EXPERIMENT = {
    "title": "T", "caption": "As measured.", "datasets": {"a": {}, "bb": {}},
    "observe": {"all": {"type": "agglearn.observations.Records"}},
    "methods": {"ours": METHOD | {"name": "Ours", "tune": {"l2": [1, 2], "by": "test records"}},
                "base": METHOD, "third": METHOD | {"name": "Third", "tune": {"by": "nothing"}}},
    "measures": ["nllh", "rmse", "memory"], "baseline": "base",
    "reported": [
        reported(0.42, printed="0.42"), reported(3.25, method="base", measure="rmse", place="page 2"),
        reported(2e8, measure="memory", place="page 3"), reported(-0.2, "bb", "third", printed="-0.20"),
        reported(0.1, method="base", printed="0.1"),
    ],
    "agreement": {"margins": {"nllh": 0.03}, "reason": "a tenth of the gap"},
    "table": {"rows": ["method"], "columns": ["dataset"], "measure": ["nllh", "memory"]},
}  # fmt: skip


def measured(dataset, method, seed, status="ok", reason=None, **values) -> list[dict]:
    """Rows of a run: a value of each measure, and a curve."""
    run = {"run": f"{dataset} {method} {seed}", "experiment": "e", "dataset": dataset, "dataset_params": "{}", "params": "{}",
           "observation": "o", "observation_params": "{}", "method": method, "seed": seed, "status": status, "reason": reason,
           "tested": f"{dataset}{seed}", "overlap": 0.25 if dataset == "a" else None}  # fmt: skip
    units = {"memory": "B", "elapsed": "s"}
    rows = [run | {"measure": m, "value": v, "unit": units.get(m, "")} for m, v in values.items()]
    return [*rows, run | {"measure": "nllh", "value": 99.0, "step": 3.0, "unit": ""}] if rows else [run]


def batches() -> dict[str, list[dict]]:
    ours, base = zip(A_OURS, A_OURS_RMSE, MEMORY, strict=True), zip(A_BASE, A_BASE_RMSE, strict=True)
    first = [measured("a", "ours", k, nllh=x, rmse=y, memory=m, elapsed=10.0) for k, (x, y, m) in enumerate(ours)]
    first += [measured("a", "base", k, nllh=x, rmse=y, elapsed=0.5) for k, (x, y) in enumerate(base)]
    first.append(measured("a", "third", 0, "stopped", "> 8 s"))
    first.append(measured("a", "third", 1, "failed", "no memory", elapsed=1000.0))
    second = [measured("bb", "ours", 0, nllh=0.1, elapsed=3.0), measured("bb", "ours", 1, nllh=0.3, elapsed=4.0)]
    second += [measured("bb", "base", 0, nllh=0.25), measured("bb", "base", 1, "failed", "boom")]
    second.append(measured("bb", "base", 2, nllh=9.0, elapsed=100.2))  # of other code: stale
    second += [measured("bb", "third", seed, "unavailable", "gone") for seed in (0, 1)]
    return {"first": list(itertools.chain(*first)), "second": list(itertools.chain(*second))}


@pytest.fixture
def results(tmp_path):
    """(plan, paths of the batches, folder)"""
    runs = {row["run"]: {f: row[f] for f in IDENTITY} for rows in batches().values() for row in rows}
    today = [SimpleNamespace(recipe="today", key=key, identity=fields, **fields) for key, fields in runs.items()]
    paths = []
    for name, rows in batches().items():
        recipes = dict.fromkeys((row["run"] for row in rows), "today") | {"bb base 2": "old"}
        metadata = {"recipes": json.dumps(recipes)}
        if name == "second":
            metadata["marks"] = json.dumps({"bb ours 1": "recorded elsewhere"})
        paths.append(tmp_path / f"measurements/e/{name}.parquet")
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        of_no_plan = measured("a", "ours", 7, nllh=77.0) if name == "first" else []
        table = table_of([*rows, *(row | {"run": "of another plan"} for row in of_no_plan)]).cast(SCHEMA)
        pq.write_table(table.replace_schema_metadata(metadata), paths[-1])
    plan = SimpleNamespace(
        experiments={"e": EXPERIMENT | {"source": "s"}}, runs=lambda name: today, batches=lambda name: ["first", "second"],
        config={"datasets": {"a": {"title": "A"}, "bb": {"title": "B & b"}}, "results": str(tmp_path), "scale": "smoke", "from": "data"},
    )  # fmt: skip
    return plan, paths, tmp_path


STUDENT = {1: 12.706204736, 2: 4.30265273, 4: 2.776445105}  # 97.5 % points, from printed tables


def cell(dataset, method, measure, values, overlap=0.25, **more) -> tuple[tuple, dict]:
    """A row of the summary: n, mean and interval of the values, and what is not empty beside them."""
    state = dict.fromkeys(summary.COLUMNS) | {"observation": "o", "unit": "", "status": "ok", "n": len(values)}
    state |= dict.fromkeys(("dataset_params", "observation_params", "params"), "{}")
    key, mean = (dataset, method, measure), float(np.mean(values)) if values else None
    state |= dict(zip(("dataset", "method", "measure", "mean"), (*key, mean), strict=True))
    if len(values) > 1:
        half = STUDENT[len(values) - 1] * np.std(values, ddof=1) * math.sqrt(1 / len(values) + overlap)
        state |= {"low": float(mean - half), "high": float(mean + half)}
    return key, state | more


def differences(ours, base) -> list[float]:
    return [x - y for x, y in zip(ours, base, strict=False)]


SUMMARY = dict([
    cell("a", "ours", "nllh", A_OURS, reported=0.42, printed="0.42", place="Table 1", difference=0.01, tolerance=0.035, outcome="undecided"),
    cell("a", "ours", "rmse", A_OURS_RMSE),
    cell("a", "ours", "memory", MEMORY, unit="B", reported=2e8, printed="2e+08", place="page 3", difference=2e8, outcome="not compared"),
    cell("a", "ours", "elapsed", [10.0] * 5, unit="s", low=None, high=None),
    cell("a", "base", "nllh", A_BASE, reported=0.1, printed="0.1", place="Table 1", difference=0.3, tolerance=0.08, outcome="above"),
    cell("a", "base", "rmse", A_BASE_RMSE, reported=3.25, printed="3.25", place="page 2", difference=-0.25, outcome="not compared"),
    cell("a", "base", "elapsed", [0.5] * 3, unit="s", low=None, high=None),
    cell("a", "third", None, [], unit=None, status="failed", reason="no memory"),
    cell("a", "ours", "nllh_minus_base", differences(A_OURS, A_BASE)),
    cell("a", "ours", "rmse_minus_base", differences(A_OURS_RMSE, A_BASE_RMSE)),
    cell("bb", "ours", "nllh", [0.1, 0.3], 0.0, reason="1 of 2 seeds recorded elsewhere"),
    cell("bb", "ours", "elapsed", [3.0, 4.0], 0.0, unit="s", reason="1 of 2 seeds recorded elsewhere"),
    cell("bb", "base", "nllh", [0.25], reason="1 seed failed: boom", lost="failed"),
    cell("bb", "ours", "nllh_minus_base", [-0.15], reason="1 of 2 seeds recorded elsewhere"),
    cell("bb", "third", "nllh", [], unit=None, status="unavailable", reason="gone", reported=-0.2, printed="-0.20", place="Table 1",
         outcome="not judged"),
])  # fmt: skip


def summarised(results) -> pd.DataFrame:
    plan, paths, _ = results
    return summary.summarise(summary.load_rows(paths, plan, "e"), EXPERIMENT)


def test_every_field_of_the_summary(results):
    table = summarised(results)
    assert table.columns.tolist() == summary.COLUMNS
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    by_key = {(row["dataset"], row["method"], row["measure"]): row for row in records}
    assert len(by_key) == len(records)
    assert by_key.keys() == SUMMARY.keys()
    for key, expected in SUMMARY.items():
        close = {name: pytest.approx(v, rel=1e-8) if isinstance(v, float) else v for name, v in expected.items()}
        assert by_key[key] == close, key


@pytest.mark.parametrize(
    ("outcome", "text"), [("above", "above by 0.25"), ("below", "below by 0.25"), ("agrees", "agrees"), (math.nan, "")]
)
def test_the_outcome_of_a_comparison_has_its_difference_without_sign(outcome, text):
    assert pages._outcome({"outcome": outcome, "difference": -0.25 if outcome == "below" else 0.25}) == text


def test_a_run_of_other_code_is_stale_and_has_no_value(results):
    plan, paths, _ = results
    rows = summary.load_rows(paths, plan, "e").set_index("run")
    assert set(rows.index) == {run.key for run in plan.runs("e")}
    stale = rows[rows["status"] == "stale"]
    assert set(stale.index) == {"bb base 2"}
    assert set(stale["reason"]) == {STALE}
    assert stale["value"].isna().all()
    assert rows["mark"].dropna().to_dict() == {"bb ours 1": "recorded elsewhere"}
    pq.write_table(pq.read_table(paths[0]).replace_schema_metadata({}), paths[0])  # a file that states no recipe
    again = summary.load_rows(paths, plan, "e")
    assert set(again.loc[again["dataset"] == "a", "status"]) == {"stale"}


NOTES = ["1 of 2 seeds recorded elsewhere", "1 seed failed: boom", "no memory", "gone"]
CAPTION = (
    "As measured. Mean ± half the 95 % interval over 2 to 5 seeds. In parentheses, or below: printed in the source. "
    "Of 2 printed numbers 1 are above or below, 1 are undecided. Margins: 0.03 (NLLH); a tenth of the gap. "
    "If every true mean were the printed number, 2.0 cells with an interval would not agree by chance."
)


def test_every_line_of_a_run(results):
    """Tables in three formats, and the last lines: what failed comes before what is not available.

    Of the first cell the spread of the values is √(0.0026/4), and half the interval 2.776 · 0.0255 · √(1/5 + 1/4) = 0.0475.
    """
    plan, paths, folder = results
    render.render(plan, "e", paths, folder)
    assert (folder / "tables/e.md").read_text().splitlines() == [
        "**T**", "",
        "|  | A, NLLH | A, memory (MB) | B & b, NLLH |",
        "| --- | ---: | ---: | ---: |",
        "| Ours | 0.430 ± 0.047 (0.42, +0.01) | 400 ± 294 (200, 2× as much) | 0.2 ± 1.3 [1] |",
        "| base | 0.400 ± 0.118 (0.1, +0.30) | – | 0.25 [2] |",
        "| Third | failed [3] | – | not available (-0.20) [4] |",
        "", CAPTION,
        *(line for k, note in enumerate(NOTES, 1) for line in ("", f"[{k}] {note}")),
    ]  # fmt: skip
    tex = (folder / "tables/e.tex").read_text().splitlines()
    assert tex[4:10] == [
        r" & \multicolumn{2}{c}{A} & B \& b \\",
        r" & NLLH & memory (MB) & NLLH \\",
        r"\midrule",
        r"Ours & 0.430 $\pm$ 0.047 (0.42, +0.01) & 400 $\pm$ 294 (200, 2$\times$ as much) & 0.2 $\pm$ 1.3 [1] \\",
        r"base & 0.400 $\pm$ 0.118 (0.1, +0.30) & -- & 0.25 [2] \\",
        r"Third & failed [3] & -- & not available (-0.20) [4] \\",
    ]
    html = (folder / "tables/e.html").read_text()
    body = re.findall(r"<t[dh].*?</t[dh]>", html[html.index("<tbody>") :])
    assert [re.sub(r"<[^>]*>", " ", text).split() for text in body[:4]] == [
        ["Ours"], ["0.430", "±", "0.047", "0.42,", "+0.01"], ["400", "±", "294", "200,", "2×", "as", "much"], ["0.2", "±", "1.3", "1"],
    ]  # fmt: skip
    assert re.findall(r'class="reported (\w*)" title="([\w ]*)"', html) == [
        ("", "undecided"), ("", "not compared"), ("above", "above"), ("", ""),
    ]  # fmt: skip
    assert [note for note in NOTES if f"<li>{note}</li>" in html] == NOTES
    assert run_summary.summary_lines(folder, folder) == [
        "failed: e, a, third {}: no memory",
        "failed: e, bb, base {}: 1 seed failed: boom",
        "not available: bb: gone (needed by e)",
        f"tables: {folder}/tables/ (1 experiment), figures: {folder}/figures/",
        "not available: 1 (data sets or packages), failed: 2 (cells, tables, figures or claims); `make retry` tries these again",
    ]


def test_every_row_of_the_page_with_all_measures(results):
    plan, _, folder = results
    names = ("dataset", "method", "measure", "value", "unit", "n", "reported", "place", "outcome")
    rows = pages._full(summarised(results), EXPERIMENT | {"name": "e"}, {})
    listed = [tuple(row[name] for name in names) for row in rows]
    expected = [
        ("a", "Ours", "NLLH", "0.430 ± 0.047", "", 5, "0.42", "Table 1", "undecided"),
        ("a", "Ours", "memory", "(4.0 ± 2.9) × 10⁸", "B", 5, "2e+08", "page 3", "not compared"),
        ("a", "base", "NLLH", "0.40 ± 0.12", "", 3, "0.1", "Table 1", "above by 0.3"),
        ("bb", "Ours", "time in all", "3.5 ± 6.4", "s", 2, "", "", ""),
        ("bb", "base", "NLLH", "0.25", "", 1, "", "", ""),
        ("a", "Ours", "RMSE minus that of base", "−0.8 ± 3.8", "", 3, "", "", ""),
        ("a", "Third", "", "failed", "", 0, "", "", ""),
        ("bb", "Third", "NLLH", "not available", "", 0, "-0.2", "Table 1", "not judged"),
    ]
    assert [row for row in listed if row in expected] == expected
    assert len(listed) == len(SUMMARY)
    assert {row["params"] for row in rows} == {""}
    assert pages._spent(plan, "e", folder) == pytest.approx(5 * 10.0 + 3 * 0.5 + 3.0 + 4.0 + 100.2)


@pytest.mark.parametrize(("limit", "words"), [(4, "; the first 4 of 15 rows"), (15, ""), (800, "")])
def test_every_field_of_an_experiment_on_a_page(results, tmp_path, monkeypatch, limit, words):
    """The page with every measure states how many rows it leaves out."""
    plan, paths, folder = results
    render.render(plan, "e", paths, folder)
    monkeypatch.setattr(pages, "MAX_ROWS", limit)
    monkeypatch.setattr(pages, "LONG", 2)
    (tmp_path / "out").mkdir()
    entry = pages._experiment(plan, "e", folder, tmp_path / "out", folder / "site")
    assert "<figcaption>T</figcaption>" not in entry["table"]
    assert entry.pop("table").startswith('<figure class="table">')
    assert entry.pop("tuned") == [
        ("Ours", METHOD["class"], [{"l2": [1, 2], "by": "test records"}]),
        ("base", METHOD["class"], []),
        ("Third", METHOD["class"], [{"by": "nothing"}]),
    ]
    expected = {"name": "e", "source": "s", "title": "T", "rows": 3, "long": True, "spent": pytest.approx(158.7), "budget": None, "runs": 17,
                "command": 'make reproduce ARGS="e --config scale=smoke"'}  # fmt: skip
    assert {key: entry[key] for key in expected} == expected
    page = (tmp_path / "out/full/e.html").read_text()
    assert re.search(r"CSV</a> of the same(.*)</p>", page)[1] == words
    assert page.count('<tr id="r') == min(limit, 15)
    first = ["a", "Ours", "", "NLLH", "0.430 ± 0.047 ", "5", "0.42", "Table 1", "undecided"]
    assert f'<tr id="r0">{"".join(f"<td>{text}</td>" for text in first)}' in page
    copied = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert copied == {"tables/e.csv", "tables/e.md", "tables/e.tex", "figures/e.svg", "full/e.html"}


def test_a_number_leads_to_its_row_to_its_runs_and_to_their_mean_in_mlflow(results, tmp_path):
    plan, paths, folder = results
    render.render(plan, "e", paths, folder)
    run = next(run for run in plan.runs("e") if run.key == "a ours 3")
    (folder / f"runs/{run.key}").mkdir(parents=True)
    (folder / f"runs/{run.key}/run.json").write_text("{}")
    (folder / "tracking").mkdir()
    sent = {"status": "ok", "experiment_id": "7", "means": {cell_key(run.identity): "abc"}}
    (folder / "tracking/all.json").write_text(json.dumps({"experiments": {"e": sent}}))
    (tmp_path / "out").mkdir()
    entry = pages._experiment(plan, "e", folder, tmp_path / "out", folder / "site")
    page = (tmp_path / "out/full/e.html").read_text()
    [row] = re.findall(r'<a href="full/e.html#(r\d+)">0.430 ± 0.047</a>', entry["table"])
    [cell] = re.findall(rf'<tr id="{row}"><td>a</td><td>Ours</td>.*<td><a href="#(c\d+)">5</a></td><td>0.42</td>', page)
    [runs] = re.findall(rf'<tr id="{cell}">(.*)</tr>', page)
    assert re.findall(r'href="(.*?)">(.*?)<', runs) == [
        ("../../runs/a ours 3/run.json", "3"),
        ("http://127.0.0.1:5000/#/experiments/7/runs/abc", "MLflow"),
    ]
    assert 'href="full/e.html#' not in (folder / "tables/e.html").read_text()


CLAIMS = {
    "wins": {"claim": "ours beats base", "place": "§1", "predicate": "greater", "margin": 0.001,
             "value": {"measure": "nllh", "method": "ours", "dataset": "a"},
             "reference": {"measure": "nllh", "method": "base", "dataset": "a"}},
    "small": {"claim": "ours is small", "place": "§2", "predicate": "at_most", "bound": 0.3, "why": "It is large.", "tested_by": "e",
              "value": {"measure": "nllh", "method": "ours", "dataset": "a"}},
    "slow": {"claim": "ours takes its time", "place": "§3", "predicate": "at_least", "bound": 5,
             "value": {"measure": "time_elapsed", "method": "ours"}},
    "third": {"claim": "third wins", "place": "§4", "predicate": "at_least", "bound": 0,
              "value": {"measure": "nllh", "method": "third", "dataset": "bb"}},
}  # fmt: skip


def words_of(html: str) -> list[str]:
    """The lines of a page without its tags."""
    lines = (re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", line)).strip() for line in html.splitlines())
    return [line.replace(" ,", ",").replace(" .", ".").replace("&#34;", '"') for line in lines if line]


@pytest.fixture
def words_of_pages(results, tmp_path, monkeypatch):
    """The words of the pages of a site, by name."""
    plan, paths, folder = results
    render.render(plan, "e", paths, folder)
    claims = {name: claim | {"source": "s", "experiment": "e"} for name, claim in CLAIMS.items()}
    simulated = {d: entry | {"class": "agglearn.datasets.Xor"} for d, entry in plan.config["datasets"].items()}
    paper = {"title": "A work", "menu": "Work", "short": "W 2020", "url": "https://w.org"}
    plan.config |= {"claims": claims, "datasets": simulated, "references": {"papers": {"s": paper}}, "from": "data"}
    plan.sources = lambda: ["s"]
    plan.experiments["e"]["seeds"] = [0, 1, 2, 3, 4]
    base, out = tmp_path / "base", tmp_path / "out"
    for name, text in (("docs/verdicts.md", "How it is done."), ("config/findings/s.md", "It is so.\n\nMore.")):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    out.mkdir()
    (folder / "bench").mkdir()
    line = {"line": "a fit", "seconds": 0.5, "peer": "NumPy", "peer_seconds": 2.0, "ratio": 4.0, "floor_share": None}
    kept = {"date": "2026-11-28", "machine": "two cores", "lines": [line, line | {"memory": 1.5, "note": "exact"}]}
    for name, text in (("a_b.txt", "\nall 2.0\n"), ("a_b.json", json.dumps(kept)), ("c.txt.new", "half of")):
        (folder / "bench" / name).write_text(text)
    monkeypatch.setattr(pages, "commit", lambda: "abc")
    monkeypatch.setattr(pages.machine, "describe", lambda: "a machine")
    verdicts = judging.judge_all(claims, Rows(summary.load_rows(paths, plan, "e")))
    verdicts[1]["archived"] = "holds"
    pages.build(plan, verdicts, folder, out, base, folder / "site")
    return {path.stem: words_of(path.read_text()) for path in out.glob("*.html")}


def test_every_field_of_the_first_page(words_of_pages):
    """158.7 seconds are three minutes; three lines are without a result; of four claims one fails and one is undecided."""
    today = datetime.date.today().isoformat()
    expected = [
        "Work Data Verdicts",
        "1 fail 1 undecided 2 not judged",
        "Of their claims 1 fails, 1 is undecided, 2 could not be judged. Of those that were tested at scale paper too, "
        "1 holds there: make reproduce FROM=archive shows these pages for them. "
        f"Scale smoke, {today}, 2 of 2 data sets here, 3 without result (data sets, runs or solvers)",
        f"scale smoke date {today} commit abc machine a machine computed in 3 min of one core",
        "data sets 2 of 2 here",
        "without result 3 (data sets, runs or solvers)",
        "A work W 2020",
        "It is so. 1 fail 1 undecided 2 not judged Fails: Ours is small. At scale paper, from the archive: 1 holds. 1 experiment, 4 claims",
        "fails undecided not judged How a verdict is reached.",
        "Ours is small. W 2020, §2",
        "0.43 (95 %: 0.383 to 0.477); the claim asks for at most 0.3. Why: It is large.",
        "This run does not judge 1 claim about time. Beside other packages, from the last make bench : 2026-11-28, two cores. "
        "A ratio above 1 says that this package is faster.",
        "a fit NumPy 4 0.5 2 – – –",
        "a fit NumPy 4 0.5 2 – 1.5 – exact",
        "a b all 2.0",
        "failed: e, a, third {}: no memory failed: e, bb, base {}: 1 seed failed: boom not available: bb: gone (needed by e)",
        "e 17 159",
        f"agglearn {__version__} at abc, scale “smoke”, {today}.",
    ]
    assert [line for line in words_of_pages["index"] if line in expected] == expected


def test_every_field_of_the_page_of_a_source(words_of_pages):
    """Of the first claim: 0.0252 · √(1/3 + 1/4) · 4.303 = 0.0827; more replicates of overlapping splits do not decide it."""
    wins = "igher by 0.0133 (95 %: lower by 0.0694 to higher by 0.0960); 0.001 more are asked for"
    small = "0.43 (95 %: 0.383 to 0.477); the claim asks for at most 0.3"
    marked = "1 of 17 runs of the experiment: recorded elsewhere. From e ( every measure of its runs ), claim"
    never = "Even 1,000 replicates would not decide it, if mean and spread stay as they are."
    expected = [
        "A work W 2020", "More.",
        "A B &amp; b NLLH memory (MB) NLLH",
        "Ours 0.430 ± 0.047 0.42, +0.01 400 ± 294 200, 2× as much 0.2 ± 1.3 1",
        "base 0.400 ± 0.118 0.1, +0.30 – 0.25 2",
        "Third failed 3 – not available 4 -0.20",
        " ".join([CAPTION, *NOTES]),
        f"Class of each method, and how it is tuned Ours ( {METHOD['class']} ): l2: 1, 2 by test records "
        f"base ( {METHOD['class']} ): not stated Third ( {METHOD['class']} ): nothing to tune",
        'Make it again: make reproduce ARGS="e --config scale=smoke". Table: CSV, Markdown, LaTeX, every measure ;',
        "figure. 17 runs, 159 s of one core.",
        "1 fail 1 undecided 2 not judged", "fails (1)", "undecided (1)", "not judged (2)",
        f"undecided Ours beats base. §1 H{wins}. {never}",
        f"h{wins} 0.001",
        "fails Ours is small. §2 " + small + ". In the archive, at scale paper: holds. Why: It is large. Tested by e.",
        f"{small} 0.3",
        f"mean 0.43 [0.3825, 0.4775] against 0.3, 5 replicates; {marked} small in config/claims.yaml : "
        'at_most {"value": {"measure": "nllh", "method": "ours", "dataset": "a"}, "bound": 0.3}',
        "not judged Ours takes its time. §3 No run at this scale has such a result.",
        "not judged Third wins. §4 Missing: gone. The first page says how to get it.",
    ]  # fmt: skip
    assert [line for line in words_of_pages["s"] if line in expected] == expected
    detail = "difference +0.01333 [-0.06937, +0.09603], margin 0.001, 3 pairs; 2 values without a partner left out"
    assert f"{detail}; {marked} wins" in " ".join(words_of_pages["s"])
    rows = words_of_pages["data"][words_of_pages["data"].index("a A") :]
    simulated = ["drawn anew for every seed", "simulated", "e"]
    assert rows[:8] == ["a A", *simulated, "bb B &amp; b", *simulated]


def test_the_cells_that_would_miss_by_chance_are_counted_by_their_own_seeds():
    """Student's t has closed forms: P(|T| > x) is 1 − x/√(2 + x²) with 2 degrees of freedom, 1 − (2/π) arctan x with 1."""
    halves = {"a": STUDENT[2] * 0.01, "bb": STUDENT[1] * 0.001, "one seed": math.nan}
    table = pd.DataFrame({"dataset": list(halves), "n": [3, 2, 1], "half": halves.values()})
    table = table.assign(low=0.5 - table["half"], high=0.5 + table["half"], mean=0.5)
    table = table.assign(method="ours", measure="nllh", params="{}")
    entries = [reported(0.4, d, printed="0.42") for d in halves]
    experiment = {"reported": entries, "agreement": {"margins": {"nllh": 0.05}}}
    x, y = (0.055 - halves["a"]) / 0.01, (0.055 - halves["bb"]) / 0.001
    expected = 1 - x / math.sqrt(2 + x**2) + 1 - 2 / math.pi * math.atan(y)
    assert expected == pytest.approx(0.3689, abs=1e-4)
    assert summary.missed_by_chance(table, experiment) == pytest.approx(expected, rel=1e-6)


def test_the_command_names_the_scale_unless_it_is_the_usual_one():
    commands = [pages._command(SimpleNamespace(config={"scale": scale}), "e") for scale in ("default", "paper")]
    assert commands == ["make reproduce ARGS=e", 'make reproduce ARGS="e --config scale=paper"']
