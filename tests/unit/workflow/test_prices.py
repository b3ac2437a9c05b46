"""Prices: the median of archived runs of the same cell, else of the data set and method, else of the method; else none."""

import json
import math

import pandas as pd
import pytest
from samples import Project
from test_archive import archived

from agglearn.cli import main
from agglearn_workflow.archive import prices, store
from agglearn_workflow.config.loading import load
from agglearn_workflow.plan import Plan


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def planned(project) -> Plan:
    return Plan(load(project.base, {"scale": "paper"}))


def keep(runs, seconds) -> None:
    """Write an archive of runs, whose CPU seconds are those that a function has for a run."""
    store.write("archive", "trial", {run.key: archived(run, cpu_seconds=seconds(run)) for run in runs})


def cell(run) -> tuple[str, str, float]:
    """Data set with its size, method and penalty."""
    size, penalty = json.loads(run.dataset_params).get("n", ""), json.loads(run.params).get("l2_theta", 0)
    return f"{run.dataset}{size}", run.method, penalty


SMALL = {
    ("loglinear100", "maxent", 4.0): (1.0, 3.0, 100.0),  # CPU seconds of three seeds
    ("loglinear100", "maxent", 16.0): (10.0, 20.0, 30.0),
}
FAIR = {("fair", "maxent", 4.0): (50.0, 50.0, 50.0)}


def prices_after(plan, seconds) -> dict[tuple, set[float]]:
    """Cell → CPU seconds of its runs, where the archive has some cells."""
    runs = plan.runs("trial")
    keep([run for run in runs if cell(run) in seconds], lambda run: seconds[cell(run)][run.seed])
    priced = {cell(run): set() for run in runs}
    for run, row in zip(runs, prices.price_runs(plan, "archive").itertuples(), strict=True):
        assert row.lacking == (cell(run) not in seconds)
        priced[cell(run)].add(row.cpu_seconds)
    return priced


def test_the_median_of_the_narrowest_group_counts(project):
    """First of the cell (3, 20), then of its data set (15 of six runs), then of its method; no method lends its price to another."""
    priced = prices_after(planned(project), SMALL)
    assert priced["loglinear100", "maxent", 4.0] == {3.0}
    assert priced["loglinear100", "maxent", 16.0] == {20.0}
    assert priced["loglinear200", "maxent", 4.0] == {15.0}
    assert priced["fair", "maxent", 16.0] == {15.0}
    assert all(math.isnan(s) for key, prices in priced.items() for s in prices if key[1] == "logistic")
    priced = prices_after(planned(project), SMALL | FAIR)  # the method's median is 30 now
    assert priced["loglinear200", "maxent", 4.0] == {15.0}
    assert priced["fair", "maxent", 16.0] == {50.0}


def test_a_plan_sums_what_the_archive_lacks(project, capsys):
    large = planned(project)
    runs = large.runs("trial")
    keep(runs[:20], lambda run: 60.0)
    table = prices.price_plan(large, "archive")
    row = table.loc["trial"]
    n_priced = int(27 - row["unpriced"])
    assert (row["runs"], row["lacking"], row["peak_memory"]) == (27, 7, 4e8)
    assert (row["cpu_seconds"], row["lacking_seconds"]) == (60 * n_priced, 60 * (n_priced - 20))
    assert main(["plan", "trial"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["runs", "CPU", "min", "to", "run", "CPU", "min", "memory", "claims"]
    bound = "≥ " if row["unpriced"] else ""
    assert " ".join(lines[1].split()) == f"trial 27 {bound}{n_priced}.0 7 {bound}{n_priced - 20}.0 400 MB 0"
    assert lines[2].split()[0] == "all"


def test_runs_without_a_price_are_named_so(project, capsys):
    assert main(["plan", "trial"]) == 0
    assert " ".join(capsys.readouterr().out.splitlines()[1].split()) == "trial 27 no price 27 no price ? 0"
    assert main(["plan", "--hours", "8"]) == 0
    assert "trial" not in capsys.readouterr().out


def table_of(*rows) -> pd.DataFrame:
    names = ["runs", "cpu_seconds", "lacking", "lacking_seconds", "unpriced", "peak_memory", "claims"]
    return pd.DataFrame([[2, 9.0, *more, 1e6, 0] for _, *more in rows], [name for name, *_ in rows], names)


def test_hours_buy_the_cheapest_first():
    seconds = {"b": 1700.0, "a": 1900.0, "c": 3000.0}
    table = table_of(("done", 0, 0.0, 0), *((name, 2, s, 0) for name, s in seconds.items()), ("unknown", 2, 1.0, 1))
    assert list(prices.affordable(table, 1.0).index) == ["b", "a"]
    assert list(prices.affordable(table, 1 - 1e-9).index) == ["b"]


def test_a_line_has_at_most_a_hundred_characters():
    many = table_of(("maxent_hashed_crosses_attribution", 99_999, 6e9, 1)).assign(runs=99_999, claims=158)
    lines = prices.listing(many).splitlines()
    assert "≥ 100,000,000.0" in lines[1]
    assert max(map(len, lines)) <= 100


def test_plan_refuses_what_is_not_there(project, capsys):
    assert main(["plan", "trail"]) == 2
    assert "trail" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["plan", "--hours", "nan"])
    assert "'nan' is not a number" in capsys.readouterr().err
