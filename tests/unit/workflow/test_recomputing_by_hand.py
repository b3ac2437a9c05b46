"""What `agglearn archive` prints, field by field: what differs from the archive, the list of experiments, the check."""

import math
import time
from types import SimpleNamespace

import pandas as pd
import pytest

from agglearn.errors import DataError
from agglearn_workflow.archive import prices, store
from agglearn_workflow.archive.store import ArchivedRun, table_of
from agglearn_workflow.commands import archive as command
from agglearn_workflow.commands import recomputing
from agglearn_workflow.plan import IDENTITY
from agglearn_workflow.runs.execution import Outcome

# (measure, step, keys, value, unit): two sizes, a negative value, a curve, doubles, missing numbers, times and memory
MEASURED = [
    ("nllh", None, None, 0.5, ""), ("nllh", 0.0, None, -2.0, ""), ("nllh", 1.0, None, 0.25, ""),
    ("share", None, '{"age": 3}', -200.0, ""), ("share", None, '{"age": 4}', math.nan, ""),
    ("gap", None, None, 7.0, ""), ("gap", None, None, 8.0, ""), ("relative_gap", None, None, 1e-3, ""),
    ("converged", None, None, 1.0, ""), ("elapsed", None, None, 12.0, "s"), ("memory", None, None, 4e8, "B"),
]  # fmt: skip


def rows(values=()) -> list[dict]:
    """The rows, with other values at some positions."""
    columns = ("measure", "step", "keys", "value", "unit")
    listed = [dict(zip(columns, row, strict=True)) | {"tested": "t", "overlap": 0.25} for row in MEASURED]
    for position, value in values:
        listed[position]["value"] = value
    return listed


def archived(status="ok", **facts) -> ArchivedRun:
    return ArchivedRun({"observed": "o"} | facts, table_of([row | {"status": status} for row in rows()]))


@pytest.mark.parametrize(("position", "value", "line"), [
    (0, 0.50004, ""),
    (0, 0.5002, "nllh: 0.5002, and 0.5 in the archive (tolerance 5.1e-05)"),
    (1, -2.0001, ""),  # the tolerance of a negative number is that of its size
    (1, -2.001, "nllh, step 0.0: -2.001, and -2 in the archive (tolerance 0.0002)"),
    (2, 0.3, "nllh, step 1.0: 0.3, and 0.25 in the archive (tolerance 2.6e-05)"),
    (3, -199.99, ""),
    (3, -199.9, 'share, keys {"age": 3}: -199.9, and -200 in the archive (tolerance 0.02)'),
    (3, math.nan, 'share, keys {"age": 3}: nan, and -200 in the archive (tolerance 0.02)'),
    (4, 1.0, 'share, keys {"age": 4}: 1, and nan in the archive (tolerance nan)'),
    (5, 7.1, "gap: 7.1, and 7 in the archive (tolerance 0.0007)"),
    (6, 7.0, "gap: 7, and 8 in the archive (tolerance 0.0008)"),
    (7, 1.4e-3, ""),  # chains are chaotic
    (7, 1.6e-3, "relative_gap: 0.0016, and 0.001 in the archive (tolerance 0.0005)"),
    (8, 1 + 1e-9, "converged: 1, and 1 in the archive (tolerance 0)"),
    (9, 99.0, ""),
    (10, 9e9, ""),
])  # fmt: skip
def test_each_value_is_compared_with_its_own_tolerance(position, value, line):
    lines = recomputing.compare(archived(), Outcome("ok", rows=rows([(position, value)])), "o")
    assert lines == ([line] if line else [])


def test_rows_of_one_side_the_digest_and_the_status_have_a_line_each():
    fewer = [row for row in rows() if row["measure"] != "converged"]
    more = [*fewer, dict(rows()[0], measure="auc")]
    assert recomputing.compare(archived(), Outcome("ok", rows=more), "p") == [
        "converged: only in the archive",
        "auc: not in the archive",
        "its observation has the digest p, and o in the archive",
    ]
    # Python 3.11.2 and 3.11.7 write other bytes for equal arrays
    assert recomputing.compare(archived(), Outcome("ok", rows=rows()), "p") == []
    other = Outcome("failed", "boom", rows=[])
    assert recomputing.compare(archived("stopped"), other, "o") == ["status failed, and stopped in the archive (boom)"]
    elsewhere = [row | {"tested": "u"} for row in rows()]
    compared = 9  # neither the time nor the memory
    assert len(recomputing.compare(archived(), Outcome("ok", rows=elsewhere), "o")) == 2 * compared
    # the last digits of simulated units differ between machines
    assert recomputing.compare(archived(), Outcome("ok", rows=elsewhere), "p") == []


# -- the sample -------------------------------------------------------------------------------------------------------

HERE, GONE = "agglearn.datasets.Xor", "agglearn.datasets.Tabular"


def run_of(key: str, dataset: str, experiment: str) -> SimpleNamespace:
    return SimpleNamespace(key=key, dataset=dataset, recipe="today", identity={"experiment": experiment})


@pytest.fixture
def world(monkeypatch, tmp_path):
    """Two experiments of three and four runs, of which the archive has five: one by other code, one dear, one without its data."""
    plans = {
        "small": [
            run_of(key, dataset, "small") for key, dataset in zip("abc", ("drawn", "drawn", "file"), strict=True)
        ],
        "rather_large": [run_of(key, "drawn", "rather_large") for key in "defg"],
    }
    day, of_other_code = 86400.0, {"recipe": "before", "commit": "c0"}
    facts = {
        "a": {"ended": 1.7e9, "cpu_seconds": 90.0},
        "b": {"ended": 1.7e9 + day, "cpu_seconds": None, "machine": None, "commit": None},
        "c": {"ended": 1.7e9 + 5 * day, "cpu_seconds": 30.0},
        "d": {"ended": 1.7e9 - day, "cpu_seconds": 61.0, "machine": "m2"},
        "e": {"ended": 1.7e9 + 0.5 * day, "cpu_seconds": 6.0, **of_other_code},
    }
    common = {"recipe": "today", "commit": "c1", "machine": "m1"}
    runs = {key: ArchivedRun(common | one, table_of([])) for key, one in facts.items()}
    kept = {name: {run.key: runs[run.key] for run in plans[name] if run.key in runs} for name in plans}
    monkeypatch.setattr(store, "read", lambda folder, name: kept[name])

    def read_facts(folder, name, names) -> pd.DataFrame:
        return pd.DataFrame(
            [{"run": key, **run.facts} for key, run in kept[name].items()], columns=["run", *IDENTITY, *names]
        )

    monkeypatch.setattr(store, "read_facts", read_facts)
    datasets = {"drawn": {"class": HERE}, "file": {"class": GONE}}
    config = {"datasets": datasets, "results": str(tmp_path), "code": [], "archive": str(tmp_path)}
    return SimpleNamespace(experiments=dict.fromkeys(plans), runs=plans.__getitem__, config=config), tmp_path


def test_only_cheap_runs_of_todays_code_whose_data_are_here_are_drawn(world):
    plan, folder = world
    drawn = lambda n, seconds: sorted(run.key for run, _ in recomputing.draw_sample(plan, folder, n, seconds, 0))  # noqa: E731
    assert drawn(9, 90.0) == ["a", "b", "d"]
    assert drawn(9, 89.0) == ["b", "d"]
    assert drawn(9, 61.0) == ["b", "d"]
    assert len(drawn(2, 90.0)) == 2
    (folder / "records/file").mkdir(parents=True)
    manifest = folder / "records/file/manifest.json"
    manifest.write_text('{"status": "unavailable"}')
    assert drawn(9, 90.0) == ["a", "b", "d"]
    manifest.write_text('{"status": "ok"}')
    assert drawn(9, 90.0) == ["a", "b", "c", "d"]


@pytest.fixture(params=["UTC", "Pacific/Kiritimati", "Pacific/Honolulu"])
def time_zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_list_has_each_experiment_and_all(world, time_zone):
    """1.7e9 is 22:13 of 2023-11-14 in UTC, whatever the time zone of the machine."""
    plan, folder = world
    for name, size in (("small/0", 900), ("small/1", 700), ("rather_large/0", 1234)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.parquet").write_bytes(b"x" * size)
    facts = prices.summarise(plan, folder)
    assert facts == {
        "small": {"planned": 3, "archived": 3, "outdated": 0, "commits": ["c1"], "machines": ["m1"],
                  "days": ["2023-11-14", "2023-11-19"], "cpu_seconds": 120.0, "complete": 1},
        "rather_large": {"planned": 4, "archived": 2, "outdated": 1, "commits": ["c0", "c1"], "machines": ["m1", "m2"],
                         "days": ["2023-11-13", "2023-11-15"], "cpu_seconds": 67.0, "complete": 0},
        "all": {"planned": 7, "archived": 5, "outdated": 1, "commits": ["c0", "c1"], "machines": ["m1", "m2"],
                "days": ["2023-11-13", "2023-11-19"], "cpu_seconds": 187.0, "complete": 1},
    }  # fmt: skip
    assert command.listing(facts, folder) == [
        "              kept  runs   first day    last day CPU min  outdated",
        "small            3     3  2023-11-14  2023-11-19     2.0         0",
        "rather_large     2     4  2023-11-13  2023-11-15     1.1         1",
        "whole: 1 of 2 experiments; 3 files, 2.83 kB",
        "outdated: computed with other code, settings or packages than today's",
    ]


def test_the_check_prints_a_line_per_run_and_counts_all_that_differ(world, monkeypatch, capsys):
    """The first and the second of three differ, the last does not."""
    plan, folder = world
    described = {"method": "m", "params": '{"l2": 1.0}', "experiment": "e"}
    named = (("a", 0, "x"), ("b", 7, "yy"), ("c", 2, "x"))
    runs = [SimpleNamespace(key=k, seed=s, dataset=d, **described) for k, s, d in named]
    lines = {"a": ["auc: 1, and 2"], "b": ["auc: 3, and 4", "nllh: only in the archive"], "c": []}
    asked = []
    monkeypatch.setattr(recomputing, "draw_sample", lambda *call: asked.append(call) or [(r, r.key) for r in runs])
    monkeypatch.setattr(recomputing, "recompute", lambda run, plan: (run.key, "observed"))
    monkeypatch.setattr(recomputing, "compare", lambda one, outcome, observed: lines[one] if one == outcome else ["?"])
    with pytest.raises(DataError, match=r"^not as archived: 2 of 3 runs$"):
        recomputing.check(plan, folder, 3, 2.5, 11)
    assert asked == [(plan, folder, 3, 2.5, 11)]
    assert capsys.readouterr().out.splitlines() == [
        'e: x, m {"l2": 1.0}, seed 0: differs',
        "  auc: 1, and 2",
        'e: yy, m {"l2": 1.0}, seed 7: differs',
        "  auc: 3, and 4",
        "  nllh: only in the archive",
        'e: x, m {"l2": 1.0}, seed 2: same',
    ]
    runs[:2] = []
    recomputing.check(plan, folder, 3, 2.5, 11)
    assert capsys.readouterr().out.splitlines()[-1] == "as archived: 1 run"
    runs.clear()
    with pytest.raises(DataError, match=r"no run of today's code whose data are here takes at most 2\.5 s$"):
        recomputing.check(plan, folder, 3, 2.5, 11)
