"""Rivals, ends of lines and what is tried again."""

import itertools
import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from agglearn.storage import write_json
from agglearn_workflow.claims.judging import Rows, _rival_below_base
from agglearn_workflow.figures.lines import _label_ends
from agglearn_workflow.run_summary import problem_lines, problems, retry_targets


def test_only_a_better_side_can_have_a_rival_below_the_base_rate():
    rows = Rows(pd.DataFrame({"measure": ["nllh"], "method": ["base"], "value": [-1.0]}))
    sides = {"value": {"measure": "nllh", "method": "ours"}, "reference": {"measure": "nllh", "method": "base"}}
    assert not _rival_below_base(sides | {"predicate": "less"}, rows)


@pytest.mark.parametrize("heights", [[0.5] * 4, [0.0, 0.01, 0.99, 1.0], [0.2, 0.9, 0.21]])
def test_names_at_the_ends_of_lines_do_not_overlap(heights):
    axes = plt.figure().add_subplot()
    axes.set_ylim(0, 1)
    names = [f"line {k}\nof two" if k % 2 else f"line {k}" for k in range(len(heights))]
    _label_ends(axes, {name: (y, "black") for name, y in zip(names, heights, strict=True)}, 0.055)
    spans = sorted((t.xy[1], 0.055 * (1 + t.get_text().count("\n")) / 2) for t in axes.texts)
    assert all(y + half <= z - other + 1e-3 for (y, half), (z, other) in itertools.pairwise(spans))
    assert all(y - half >= -1e-9 and y + half <= 1 + 1e-9 for y, half in spans)
    plt.close("all")


def test_every_kind_of_result_is_tried_again_by_its_own_status(tmp_path):
    """A file for each status, and files in which one of several rows has it."""
    products = ["failed", "ok", "unavailable"]
    for status in products:
        write_json(tmp_path / "records" / status / "manifest.json", {"status": status})
        write_json(tmp_path / f"claims/{status}.json", [{"verdict": "holds"}, {"verdict": status}])
        write_json(tmp_path / f"tables/{status}.json", {"failed": ["figure: no"] if status == "failed" else []})
    write_json(tmp_path / "claims/none.json", [])
    runs = ["failed", "not archived", "ok", "stopped", "unavailable"]
    for status in runs:
        for folder, rows in (("alone", [status]), ("among", ["ok", status, "stopped"])):
            (tmp_path / "measurements" / folder).mkdir(parents=True, exist_ok=True)
            pd.DataFrame({"status": rows}).to_parquet(tmp_path / f"measurements/{folder}/{status}.parquet")
    lost = ("failed", "unavailable")
    assert [str(Path(target).relative_to(tmp_path)) for target in retry_targets(tmp_path)] == [
        *(f"records/{status}" for status in lost),
        *(f"measurements/{folder}/{status}.parquet" for folder in ("alone", "among") for status in lost),
        "tables/failed.csv",
        "claims/failed.json",
    ]


def test_a_claim_about_one_side_has_no_rival():
    rows = Rows(pd.DataFrame({"measure": ["nllh"], "method": ["ours"], "value": [-1.0]}))
    assert not _rival_below_base({"predicate": "at_least", "value": {"measure": "nllh", "method": "ours"}}, rows)


@pytest.mark.parametrize(
    ("n", "last"), [(9, "failed: 8"), (10, "failed: 9"), (11, "… and 1 more"), (40, "… and 30 more")]
)
def test_at_most_ten_failures_are_printed(tmp_path, n, last):
    without = {"failed": [f"failed: {k}" for k in range(n)], "stopped": [], "unavailable": [], "not archived": []}
    lines = problem_lines(tmp_path, without)
    assert lines[-1] == last
    assert len(lines) == min(n, 11)


def test_the_latest_receipt_counts_whatever_its_name(tmp_path):
    """An experiment that was lost and then sent is no problem; one that was sent and then lost is."""
    ok, lost = {"status": "ok"}, {"status": "lost", "reason": "no server", "todo": "try again"}
    receipts = [
        ("z", {"first": lost, "second": ok}),
        ("a", {"first": ok, "second": lost, "third": lost}),
        ("m", {"third": ok}),
    ]
    for time, (name, states) in enumerate(receipts):
        write_json(tmp_path / f"tracking/{name}.json", {"experiments": states})
        os.utime(tmp_path / f"tracking/{name}.json", (1e9 + time, 1e9 + time))
    without = {key: [] for key in ("failed", "stopped", "unavailable", "not archived")}
    assert problem_lines(tmp_path, without) == ["not tracked: second: no server (try again)"]


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
    write_json(
        tmp_path / "claims.json", [claim | {"name": n, "experiment": e} for n, e in (("ours", "f"), ("theirs", "g"))]
    )
    for name, reason in (("a", "no file"), ("b", "no host")):
        write_json(
            tmp_path / f"records/{name}/manifest.json", {"status": "unavailable", "reason": reason, "bytes": 7_000}
        )
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
