"""A small world with known answers, compared in every place where a person reads."""

import collections
import copy
import csv
import dataclasses
import html
import json
import math
import re
import shutil
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import world as w
from matplotlib.collections import FillBetweenPolyCollection, PathCollection
from matplotlib.text import Annotation
from project import Outcome, Project, tracking_client

from agglearn.inspection import modules
from agglearn.reporting import figures, summary, svg
from agglearn.reporting.predicates import PREDICATES
from agglearn.reporting.render import render
from agglearn.workflow import config as configuration
from agglearn.workflow.plan import Plan

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@dataclass
class State:
    """The project after a run: its results, the run's outcome, the numbers that should stand there."""

    folder: Path
    results: Path
    outcome: Outcome
    overlay: dict
    mended: bool

    def __post_init__(self):
        self.runs = {p.parent.name: json.loads(p.read_text()) for p in self.results.glob("runs/*/run.json")}
        splits = {(c[2], c[3]): split for c, split in self.models("split").items() if c[:2] == ("rates", 1.0)}
        self.recipes = {run.key: run.recipe for run in self.plan().runs("world")}
        self.world = w.World(splits, pull=0.25 if self.mended else 0.5, mended=self.mended)

    def models(self, what: str) -> dict[tuple, object]:
        """`split` or `random_state` of every run that kept its model, by method, prior, size and seed."""
        found = {}
        for key, record in self.runs.items():
            path = self.results / f"runs/{key}/model/model.json"
            if path.exists():
                model = json.loads(path.read_text())
                split = w.Split(tuple(model["state"]["trained_"]), tuple(model["state"]["tested_"]))
                found[cell_of(record)] = {"split": split, "random_state": model["params"]["random_state"]}[what]
        return found

    def plan(self, **changed) -> Plan:
        """The plan with other keys of the experiment, and with the code of the state's time."""
        overlay = copy.deepcopy(self.overlay)
        experiment = overlay["experiments"]["world"] | changed
        overlay["experiments"]["world"] = {k: v for k, v in experiment.items() if v is not None}
        plan = Plan(configuration.load(self.folder, overlay) | {"scale_folder": str(self.results)})
        for run in plan.runs("world") if hasattr(self, "recipes") else ():
            vars(run)["recipe"] = self.recipes[run.key]
        return plan


def cell_of(record: dict) -> tuple:
    """(method, prior, size, seed) of a run."""
    prior = json.loads(record["params"]).get("prior")
    return record["method"], prior, json.loads(record["dataset_params"])["rows"], record["seed"]


@pytest.fixture(scope="module")
def states(places):
    """The project after its first run, and after an edit of one method, a mended cause of failures and a second run."""
    made = Project(*places)
    made.overlay["datasets"]["people"] = copy.deepcopy(w.ENTRY)
    made.write_data("people", "people", "people.csv", w.csv_of(w.people()))
    made.overlay["experiments"] = {"world": copy.deepcopy(w.EXPERIMENT), "world_apart": {"extends": "world"}}
    made.overlay["claims"] = copy.deepcopy(w.CLAIMS | w.BROKEN)
    made.overlay["run"] = ["world"]
    before = list(modules.ROOTS)
    outcome = made.run()
    shutil.copytree(made.results, made.folder / "first")  # with its times
    first = State(made.folder, made.folder / "first", outcome, copy.deepcopy(made.overlay), mended=False)
    made.edit("tests/workflow/spikes/drawn.py", "pull = 0.5", "pull = 0.25")
    (made.folder / "mended").touch()
    made.overlay["claims"] = copy.deepcopy(w.CLAIMS)
    outcome = made.run()
    for cached in modules.CACHED:
        cached.cache_clear()  # as in a new process
    yield {"first": first, "second": State(made.folder, made.results, outcome, made.overlay, mended=True)}
    modules.ROOTS[:] = before


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
    expected = expected_summary(state.world)
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


def expected_summary(world: w.World) -> dict[tuple, tuple[w.Cell, dict | None]]:
    """(cell, printed number) by method, prior, size, measure and keys, as text where it stands so."""
    found = {}
    for method, prior, size in world.cells:
        names = {k[:2] for seed in w.SEEDS for k in world.values[method, prior, size, seed] if k[2] is None}
        if not names:
            entry = w.printed_for(method, prior, size, "nllh")
            cell = w.cell(world, method, prior, size, "nllh")
            found[method, prior, size, "nllh" if entry else "", ""] = cell, entry
        for measure, keys in names:
            cell = w.cell(world, method, prior, size, measure, keys)
            found[method, prior, size, measure, keys or ""] = cell, w.printed_for(method, prior, size, measure, keys)
            if method != "base":
                minus = f"{measure}_minus_base"
                found[method, prior, size, minus, keys or ""] = w.cell(world, method, prior, size, minus, keys), None
    return found


class Tables(HTMLParser):
    """Every table of a page as rows of cells: text, attributes, and what stands in elements inside the cell."""

    PARTS = ("sup", "span", "strong", "em", "small", "a")

    def __init__(self, text: str):
        super().__init__()
        self.tables, self.within = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append({"text": "", "attrs": attrs, "head": tag == "th"})
            self.within = [(tag, attrs)]
        elif self.within and tag in self.PARTS:
            self.within.append((attrs.get("class", tag) if tag == "span" else tag, attrs))
            self.tables[-1][-1][-1].setdefault(self.within[-1][0].split()[0], ["", attrs])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.within = []
        elif self.within and tag in self.PARTS:
            self.within.pop()

    def handle_data(self, data):
        if self.within:
            cell, inner = self.tables[-1][-1][-1], self.within[-1][0].split()[0]
            cell["text"] += data
            if len(self.within) > 1:
                cell[inner][0] += data


UNTEX = {r"\&": "&", r"\%": "%", r"\_": "_", r"$\pm$": "±", "$-$": "−", "$>$": ">", "$<$": "<"}


def untexed(text: str) -> str:
    return re.sub("|".join(map(re.escape, UNTEX)), lambda found: UNTEX[found[0]], text)


def expanded(rows: list[list[tuple[str, int, int]]]) -> list[list[str]]:
    """Rows of (text, columns, rows that it spans) with the text in every place."""
    grid, height = {}, len(rows)
    for i, row in enumerate(rows):
        j = 0
        for text, wide, high in row:
            while (i, j) in grid:
                j += 1
            grid |= {(i + k, j + m): text for k in range(high) for m in range(wide)}
            j += wide
    return [[grid[i, j] for j in range(1 + max(j for _, j in grid))] for i in range(height)]


def in_text(text: str, bold: str) -> w.Place:
    """A cell of Markdown or LaTeX."""
    found = re.fullmatch(rf"(?:{bold}|(.*?))(?: \((−?-?[\d.]+)(?:, ([+−][\d.]+))?\))?(?: \[(\d+)\])?", text)
    best, value, *rest = found.groups()
    return w.Place(value if best is None else best, *(part or "" for part in rest), best is not None)


def in_html(cell: dict) -> w.Place:
    printed = cell.get("reported", ["", {}])
    difference, note = cell.get("difference", [""])[0], cell.get("sup", [""])[0]
    number = printed[0].strip(" ,")
    value = cell["text"].removesuffix(printed[0] + difference).removesuffix(note)
    kind, title = printed[1].get("class", "").removeprefix("reported").strip(), printed[1].get("title", "")
    assert kind == "".join(re.findall("^(?:agrees|above|below)", title))
    return w.Place(value, number, difference, note, "strong" in cell, title, "em" in cell)


def check_markdown(text: str, layout: w.Layout, expected: list[w.Grid]) -> None:
    blocks = re.split(r"\n(?=\*\*World)", text)
    assert len(blocks) == len(expected)
    for block, grid in zip(blocks, expected, strict=True):
        rows = [[c.strip() for c in line[1:-1].split("|")] for line in block.splitlines() if line.startswith("|")]
        first = " by ".join(filter(None, [layout.corner, layout.stubs[0]]))
        assert rows[0] == [first, *layout.stubs[1:], *(", ".join(filter(None, head)) for head, _ in layout.heads)]
        check_body(rows[2:], layout, grid, lambda c: in_text(c, r"\*\*(.*?)\*\*"))
        assert block.startswith(f"**World & 5 % of_it{grid.title}**\n")
        assert re.findall(r"^\[\d+\] (.*)", block, re.MULTILINE) == grid.notes
        assert ("Bold: the best" in block) == any(p.best for row in grid.cells for p in row)


def check_latex(text: str, layout: w.Layout, expected: list[w.Grid]) -> None:
    blocks = re.findall(r"\\begin{table}(.*?)\\end{table}", text, re.DOTALL)
    assert len(blocks) == len(expected)
    for block, grid in zip(blocks, expected, strict=True):
        head, body = (part.strip().removesuffix(r"\\").split("\\\\\n") for part in re.search(
            r"\\toprule\n(.*?)\\midrule\n(.*?)\\bottomrule", block, re.DOTALL).groups())  # fmt: skip
        head, body = ([[c.strip() for c in re.split(r"(?<!\\)&", line)] for line in part] for part in (head, body))
        n = len(layout.stubs)
        levels = expanded([[spanned(c) for c in row[n:]] for row in head])
        check_head(levels, layout)
        assert [[untexed(c) for c in row[:n]] for row in head] == [[""] * n] * (len(head) - 1) + [layout.stubs]
        check_body([[untexed(c) for c in row] for row in body], layout, grid, lambda c: in_text(c, r"\\textbf{(.*?)}"))
        plain = untexed(block)
        assert rf"\caption{{World & 5 % of_it{grid.title}. By hand, <plainly>." in plain
        assert re.findall(r"footnotesize \[\d+\] (.*)", plain) == grid.notes


def spanned(text: str) -> tuple[str, int, int]:
    found = re.fullmatch(r"\\multicolumn{(\d+)}{c}{(.*)}", text)
    return (untexed(found[2]), int(found[1]), 1) if found else (untexed(text), 1, 1)


def check_html(text: str, layout: w.Layout, expected: list[w.Grid]) -> None:
    figures = text.split("</figure>")[:-1]
    assert len(figures) == len(expected)
    for figure, grid in zip(figures, expected, strict=True):
        [table] = Tables(figure).tables
        size = lambda c: (c["text"], int(c["attrs"].get("colspan", 1)), int(c["attrs"].get("rowspan", 1)))  # noqa: E731
        head = expanded([[size(c) for c in row] for row in table if all(c["head"] for c in row)])
        body = [row for row in table if not all(c["head"] for c in row)]
        n = len(layout.stubs)
        assert {tuple(row[:n]) for row in head} == {tuple(layout.stubs)}
        check_head([row[n:] for row in head], layout)
        labels = expanded([[size(c) for c in row if c["head"]] for row in body])
        cells = [[c for c in row if not c["head"]] for row in body]
        check_body([a + b for a, b in zip(labels, cells, strict=True)], layout, grid, in_html, verdicts=True)
        assert f"<figcaption>World &amp; 5 % of_it{grid.title}</figcaption>" in figure
        assert re.findall("<li>(.*?)</li>", figure) == [html.escape(note) for note in grid.notes]


def check_head(levels: list[list[str]], layout: w.Layout) -> None:
    depth = len(layout.heads[0][0])
    wanted = [[head[k] for head, _ in layout.heads] for k in range(depth)]
    assert levels == [[layout.corner] * len(layout.heads)] * bool(layout.corner) + wanted


def check_body(rows: list[list], layout: w.Layout, grid: w.Grid, read, verdicts: bool = False) -> None:
    n = len(layout.stubs)
    assert [tuple(row[:n]) for row in rows] == [labels for labels, _ in layout.rows]
    for row, (labels, _), expected in zip(rows, layout.rows, grid.cells, strict=True):
        for cell, place in zip(row[n:], expected, strict=True):
            found = read(cell)
            if not verdicts:
                found.verdict, found.stated = place.verdict, place.stated
            assert found == place, labels


CHECKS = {"md": check_markdown, "tex": check_latex, "html": check_html}


def test_tables_for_readers(state):
    """The tables of the workflow, whose configuration has the methods by name."""
    main = w.LAYOUTS["main"]
    main = dataclasses.replace(
        main, rows=sorted(main.rows, key=lambda row: (row[1]["method"], row[1].get("prior") or 0))
    )
    for kind, check in CHECKS.items():
        text = (state.results / f"tables/world.{kind}").read_text()
        check(text, main, w.grids(state.world, main))
        if kind == "html":
            figures = text[text.index("<figure") : text.index("</html>")]
            shown = figures.replace("<figcaption>World &amp; 5 % of_it</figcaption>", "")  # which is the page's heading
            assert shown in (state.results / "site/spike.html").read_text()
        else:
            assert (state.results / f"site/tables/world.{kind}").read_text() == text
    table = (state.results / "tables/world.csv").read_text()
    assert (state.results / "site/tables/world.csv").read_text() == table


@pytest.mark.parametrize("name", w.LAYOUTS)
def test_every_layout_of_a_table(state, tmp_path, name):
    wanted = w.LAYOUTS[name]
    paths = sorted(state.results.glob("measurements/world/*.parquet"))
    render(state.plan(table=wanted.table, figure={"kind": "dots", "y": "curve"}), "world", paths, tmp_path)
    for kind, check in CHECKS.items():
        check((tmp_path / f"tables/world.{kind}").read_text(), wanted, w.grids(state.world, wanted))


def test_what_other_code_has_computed_is_no_number(states, tmp_path):
    first, second = states["first"], states["second"]
    paths = sorted(first.results.glob("measurements/world/*.parquet"))
    render(second.plan(), "world", paths, tmp_path)
    main = w.LAYOUTS["main"]
    expected = w.grids(first.world, main)
    for (_, key), row in zip(main.rows, expected[0].cells, strict=True):
        for j, place in enumerate(row):
            place.best = False  # one method is left that has an interval
            place.note = str(int(place.note) + 1) if place.note else ""
            if key["method"] == "rates":
                row[j] = w.Place("stale", place.printed, note="1", stated=True)
    expected[0].notes.insert(0, "computed with other code or settings than today's; run the workflow again")
    check_html((tmp_path / "tables/world.html").read_text(), main, expected)
    drawn = figures_of(second.plan(), paths, tmp_path / "world.svg")
    assert not any(
        "Rates" in label
        for panels in drawn
        for panel in panels
        for label in (*panel["ticks"], *panel["lines"], *panel["points"])
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


def claims_of(state) -> dict[str, dict]:
    found = json.loads((state.results / "claims.json").read_text())
    assert len({c["name"] for c in found}) == len(found)
    return {c["name"]: c for c in found}


def test_claims(state):
    found = claims_of(state)
    assert list(found) == sorted(state.overlay["claims"])  # the order of the configuration's file
    for name, claim in state.overlay["claims"].items():
        expected = w.judged(state.world, name, claim)
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
    expected = dict(zip(("value", "low", "high", "from", "to"), (estimate.mean, *ends, *w.region(claim)), strict=True))
    finite = {k: None if x is None or math.isinf(x) else pytest.approx(scale(x)) for k, x in expected.items()}
    assert numbers == finite


def test_every_verdict_on_a_claim_occurs(states):
    verdicts = {c["verdict"] for c in claims_of(states["first"]).values()}
    assert verdicts == {"holds", "fails", "undecided", w.FEW, "not judged", "failed"}
    assert {c["predicate"] for c in w.CLAIMS.values()} == set(PREDICATES)


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
    [everything] = Tables((state.results / "site/full/world.html").read_text()).tables
    with open(state.results / "tables/world.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    for cells, row in zip(everything[1:], rows, strict=True):
        _, method, params, _, value, n, reported, place, verdict = (c["text"] for c in cells)
        assert (method, n) == (w.METHOD_NAMES.get(row["method"], row["method"]), row["n"])
        apart = f" by {abs(float(row['difference'])):.3g}" if row["outcome"] in ("above", "below") else ""
        assert (place, verdict) == (row["place"], row["outcome"] + apart)
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
        w.FEW: ("needs a larger scale", "need a larger scale"), "not judged": ("could not be judged",) * 2,
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
        f"1 seeds failed: ValueError: needs {w.LEAST} records & more",
    ]
    failed = [f'failed: world, people, exacting {{"least": {w.LEAST}}}: {why}' for why in failed]
    failed += [f"failed: claim broken: {w.NO_RESULT['broken'].detail.removeprefix('failed: ')}"]
    failed = [] if state.mended else failed
    expected = [
        *failed,
        "stopped: world, limited: > 3 steps (2 cells)",
        "not available: people: surrogate is not installed (needed by world)",
        "tables: results/tables/ (1 experiments), figures: results/figures/",
        "read them at results/site/index.html",
        f"1 data sets or packages not available, {len(failed)} cells, tables, figures or claims failed; `make retry` tries these again",
    ]
    said = [line.removeprefix("agglearn: ") for line in state.outcome.said]
    last = said[next(i for i, line in enumerate(said) if line.startswith("whole log")) + 1 :]
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


def run_name(method, prior, size, end: str) -> str:
    """Name of a run in MLflow: what is varied stands in it."""
    own = [f"prior = {prior:g}"] if method == "rates" else []
    return " · ".join([w.METHOD_NAMES.get(method, method), "People & <co>", f"rows = {size}", *own, end])


def test_mlflow_has_every_run_once(state, tracked):
    client, sent = tracked[0], tracked[1]["seed"]
    assert sorted(r.data.tags["agglearn.run"] for r in sent) == sorted(state.runs)
    for run in sent:
        record = state.runs[run.data.tags["agglearn.run"]]
        method, prior, size, seed = cell = cell_of(record)
        status, reason = state.world.status(method, size, seed)
        assert run.info.run_name == run_name(method, prior, size, f"seed {seed}")
        began, ended = run.info.start_time / 1000, run.info.end_time / 1000
        assert ended == pytest.approx(record["ended"], abs=0.002)
        assert 0 <= ended - began < state.outcome.seconds
        assert run.info.status == ("FINISHED" if status in ("ok", "stopped") else "FAILED")
        tags = {k: run.data.tags.get(k) for k in ("dataset", "method", "status", "agglearn.fingerprint")}
        assert tags == {
            "dataset": "people",
            "method": method,
            "status": status,
            "agglearn.fingerprint": record["fingerprint"],
        }
        assert run.data.tags.get("mlflow.note.content", "") == reason
        own = {"rates": {"prior": str(prior)}, "base": {"column": ""}, "exacting": {"least": str(w.LEAST)}}.get(
            method, {}
        )
        assert (
            run.data.params
            == {"dataset": "people", "method": method, "seed": str(seed), "dataset.rows": str(size)} | own
        )
        check_metrics(client, run, state.world.values[cell], state.results / "runs" / record["run"])
        [data] = [used.dataset for used in run.inputs.dataset_inputs]
        assert (data.name, data.digest) == ("people", record["data"]["digest"])
        assert json.loads(data.profile) == {"title": "People & <co>", "num_rows": len(w.people()), "num_columns": 3}
        assert bool(run.outputs and run.outputs.model_outputs) == (status == "ok")


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
        assert run.info.run_name == run_name(*cell, "mean of 3 seeds")
        statuses = [state.world.status(cell[0], cell[2], seed)[0] for seed in w.SEEDS]
        shown = next(s for s in ("ok", "failed", "unavailable", "stopped") if s in statuses)
        assert (run.data.tags["status"], run.data.metrics.pop("n_seeds")) == (shown, statuses.count("ok"))
        expected = {}
        for measure, estimate in estimates(state, cell, records).items():
            bounds = {} if estimate.half is None else {"low": estimate.low, "high": estimate.high}
            expected |= {f"{measure}_{k}": v for k, v in ({"mean": estimate.mean} | bounds).items()}
        assert run.data.metrics == pytest.approx(expected)
        check_printed(state, run, cell)


def estimates(state, cell: tuple, records: list[dict]) -> dict[str, w.Estimate]:
    """Measure without keys → mean and interval over seeds."""
    method, prior, size = cell
    names = ["nllh", "auc", "log_loss", "right"]
    names += [f"{name}_minus_base" for name in names] if method != "base" else []
    values = {name: state.world.seeds(method, prior, size, name) for name in names}
    for record in records:
        rows = pd.read_parquet(state.results / f"runs/{record['run']}/measurements.parquet")
        for row in rows[rows["measure"].isin(["seconds", "elapsed"]) & rows["step"].isna()].itertuples():
            values.setdefault(row.measure, []).append(row.value)
    return {name: w.Estimate.of(each) for name, each in values.items() if each}


def check_printed(state, run, cell: tuple) -> None:
    """The tag on printed numbers, and the lines on them in the description."""
    verdicts = []
    for measure in w.MEASURES:
        for keys in map(w.colour_keys, (None, *w.COLOURS)):
            if entry := w.printed_for(*cell, measure, keys):
                verdicts.append(w.compared(w.cell(state.world, *cell, measure, keys).estimate, entry))
                assert (
                    f"{entry['value']:g} ({entry['place']}): {verdicts[-1]} |" in run.data.tags["mlflow.note.content"]
                )
    words = collections.Counter(verdict.partition(" by ")[0] for verdict in verdicts)
    shown = run.data.tags.get("printed", "")
    assert set(shown.split(", ")) == (
        {f"{word} {n}" for word, n in words.items()} if len(words) > 1 else set(words) or {""}
    )


def check_metrics(client, run, measured: dict[tuple, float], folder: Path) -> None:
    """Every number without keys, with its steps; the last is that of the table."""
    expected = {k: v for k, v in measured.items() if k[1] is None}
    if measured:
        rows = pd.read_parquet(folder / "measurements.parquet").query("step != step and keys != keys")
        expected |= {
            (m, None, None): v
            for m, v in zip(rows["measure"], rows["value"], strict=True)
            if m in ("seconds", "elapsed")
        }
    assert set(run.data.metrics) == {measure for measure, *_ in expected}
    for measure in run.data.metrics:
        history = client.get_metric_history(run.info.run_id, measure)
        curve = [(step, v) for (m, _, step), v in expected.items() if m == measure and step is not None]
        final = expected[measure, None, None]
        assert run.data.metrics[measure] == pytest.approx(final)
        assert sorted((m.step, m.value) for m in history) == [
            (step, pytest.approx(v)) for step, v in sorted([*curve, (curve[-1][0] if curve else 0, final)])
        ]


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
    path = tmp_path_factory.mktemp("drawn") / "world.svg"
    kept = figures_of(plan, sorted(state.results.glob("measurements/world/*.parquet")), path)
    assert path.read_text() == (state.results / "figures/world.svg").read_text()
    return kept


def figures_of(plan: Plan, paths, out) -> list[list[dict]]:
    """Panels of every figure of the experiment, drawn into a file."""
    kept, experiment = [], plan.experiments["world"]
    rows = summary.load_rows(paths, plan, "world")
    with pytest.MonkeyPatch.context() as patch:
        write = svg.from_figure
        patch.setattr(
            svg,
            "from_figure",
            lambda f, *words: kept.append([panel(ax) for ax in f.axes if ax.axison]) or write(f, *words),
        )
        titles = {"people": plan.config["datasets"]["people"]["title"]}
        assert figures.draw(rows, summary.summarise(rows, experiment), experiment, titles, out) == []
    return kept


def panel(ax) -> dict:
    """The drawn data of a panel, as numbers."""
    whiskers = [bars[2][0].get_segments()[0] for bars in ax.containers if bars.has_xerr]
    return {
        "title": ax.get_title(loc="left").replace("\n", " "),
        "axis": (ax.get_xlabel(), ax.get_ylabel()),
        "ticks": [text.get_text() for text in ax.get_yticklabels()],
        "x_ticks": [text.get_text() for text in ax.get_xticklabels()],
        "dots": {round(float(bars[0].get_ydata()[0])): float(bars[0].get_xdata()[0]) for bars in ax.containers},
        "whiskers": {round(float(ends[0][1])): (float(ends[0][0]), float(ends[1][0])) for ends in whiskers},
        "printed": [(float(x), round(float(y))) for line in ax.lines if line.get_marker() == "D" for x, y in zip(*line.get_data(), strict=True)],
        "lines": {line.get_label(): list(zip(*map(list, line.get_data()), strict=True)) for line in ax.lines if line.get_label()[:1] != "_"},
        "bands": [band.get_paths()[0].vertices.tolist() for band in ax.collections if isinstance(band, FillBetweenPolyCollection)],
        "points": {s.get_label(): s.get_offsets().tolist() for s in ax.collections if isinstance(s, PathCollection)},
        "arrows": sorted((*a.xyann, *a.xy, a.arrow_patch.get_linewidth()) for a in ax.texts if isinstance(a, Annotation) and a.arrow_patch),
    }  # fmt: skip


def labelled(method: str, prior, size=None) -> str:
    parts = [w.METHOD_NAMES.get(method, method), prior and f"prior {prior:g}", size and f"rows {size}"]
    return ", ".join(filter(None, parts))


def with_result(world: w.World) -> list[tuple]:
    """Cells with a result of some seed, in the order of the summary."""
    return [c for c in world.cells if any(world.values[(*c, seed)] for seed in w.SEEDS)]


def test_dots(state, drawn):
    [found], world = drawn[0], state.world
    assert found["title"] == w.ENTRY["title"]
    assert found["axis"][0] == "NLLH"
    assert sorted(found["ticks"]) == sorted(labelled(*c) for c in with_result(world))
    printed = {}
    for method, prior, size in with_result(world):
        y, estimate = (
            found["ticks"].index(labelled(method, prior, size)),
            w.cell(world, method, prior, size, "nllh").estimate,
        )
        assert found["dots"][y] == pytest.approx(estimate.mean)
        assert found["whiskers"][y] == pytest.approx((estimate.low, estimate.high))
        if entry := w.printed_for(method, prior, size, "nllh"):
            printed[y] = entry["value"]
    assert {y: x for x, y in found["printed"]} == pytest.approx(printed)
    assert len(found["dots"]) == len(found["ticks"])


def test_curves(state, drawn):
    panels, world = {p["title"]: p for p in drawn[1]}, state.world
    assert list(panels) == [f"rows {size}" for size in w.SIZES]
    for size in w.SIZES:
        cells = [c for c in with_result(world) if c[2] == size]
        expected = {
            labelled(*c[:2]): [(k / 8, w.Estimate.of(world.seeds(*c, "nllh", step=k))) for k in w.STAGES] for c in cells
        }
        check_lines(panels[f"rows {size}"], expected)
    assert drawn[1][0]["axis"] == ("iteration", "NLLH")


def check_lines(found: dict, expected: dict[str, list]) -> None:
    """Lines through means, and bands from low to high, of some labels."""
    assert set(found["lines"]) == set(expected)
    for label, points in expected.items():
        assert found["lines"][label] == [(x, pytest.approx(e.mean)) for x, e in points]
    bands = [
        {(x, end) for x, e in points for end in (e.low, e.high)} for points in expected.values() if len(points) > 1
    ]
    assert len(found["bands"]) == len(bands)
    for band in bands:
        assert any(
            all(any(v == pytest.approx(point) for v in vertices) for point in band)
            and all(any(v == pytest.approx(point) for point in band) for v in vertices)
            for vertices in found["bands"]
        )


def test_lines(state, drawn):
    panels, world = {p["title"]: p for p in drawn[2]}, state.world
    assert list(panels) == [f"rows {size}" for size in w.SIZES]
    for size in w.SIZES:
        found = panels[f"rows {size}"]
        assert found["x_ticks"] == ["1", "8", "none"]
        rates = [(p, w.cell(world, "rates", p, size, "nllh").estimate) for p in (1.0, 8.0)]
        level = found["lines"].pop("base")
        assert [y for _, y in level] == pytest.approx([w.cell(world, "base", None, size, "nllh").estimate.mean] * 2)
        if exacting := w.cell(world, "exacting", None, size, "nllh").estimate:
            assert found["lines"].pop("exacting")[0][1] == pytest.approx(exacting.mean)
        check_lines(found, {"Rates & 5 %": rates})
        assert found["axis"][0] == "prior"


def test_scatter_against_a_method_and_against_a_measure(state, drawn):
    world = state.world
    panels = {p["title"]: p for p in drawn[3]}
    assert set(panels) == {f"rows {size}, colour {colour}" for size in w.SIZES for colour in w.COLOURS}
    for size in w.SIZES:
        for colour in w.COLOURS:
            found, keys = panels[f"rows {size}, colour {colour}"]["points"], w.colour_keys(colour)
            x = w.cell(world, "base", None, size, "right", keys).estimate.mean
            expected = {
                labelled(*c[:2]): [[x, w.cell(world, *c, "right", keys).estimate.mean]]
                for c in with_result(world) if c[2] == size and c[0] != "base"
            }  # fmt: skip
            assert {k: v for k, v in found.items() if v} == {
                k: [pytest.approx(p) for p in v] for k, v in expected.items()
            }
    [found] = drawn[4]
    assert found["axis"] == ("true flow", "flow")
    assert set(found["points"]) == {labelled(*c) for c in with_result(world)}
    for c in with_result(world):
        expected = [
            [w.cell(world, *c, m, w.leg_keys(leg)).estimate.mean for m in ("true_flow", "flow")] for leg in w.LEGS
        ]
        assert sorted(found["points"][labelled(*c)]) == [pytest.approx(p) for p in sorted(expected)]


def test_flows(state, drawn):
    world, panels = state.world, {p["title"]: p for p in drawn[5]}
    title = w.ENTRY["title"]
    cells = with_result(world)
    expected = {f"{title}: {labelled(*c)}": (c, "flow") for c in cells}
    for size in w.SIZES:
        first = min((c for c in cells if c[2] == size), key=lambda c: c[0])  # what the summary begins with
        expected[f"{title}: rows {size}: true flow"] = (first, "true_flow")
    assert set(panels) == set(expected)
    for name, (c, measure) in expected.items():
        means = {leg: w.cell(world, *c, measure, w.leg_keys(leg)).estimate.mean for leg in w.LEGS}
        arrows = []
        for leg, value in means.items():
            ends = [float(x) for end in leg.split(">") for x in end.split(",")]
            arrows.append((*ends, 0.3 + 2.2 * math.sqrt(value / max(means.values()))))
        assert panels[name]["arrows"] == [pytest.approx(a) for a in sorted(arrows)]
