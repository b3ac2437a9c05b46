"""Prices: a planted power law is found, unknown slopes are linear, and the error is that of prediction."""

import json
import math

import numpy as np
import pytest
from samples import Project

from agglearn import storage
from agglearn.cli import main
from agglearn.workflow import prices, record
from agglearn.workflow.config import load
from agglearn.workflow.plan import Plan
from agglearn.workflow.prices import Price, Timing

CLASS = "agglearn.maxent.MaxEntClassifier"


def timing(seconds, memory=None, experiment="e", dataset="d", method="m", **sizes) -> Timing:
    return Timing(experiment, dataset, method, "o", CLASS, {k: float(v) for k, v in sizes.items()}, seconds, memory)


def test_sizes_are_whole_numbers_and_lengths():
    fields = {
        "dataset_params": '{"n": 1000, "theta": [0.5, 1]}',
        "observation_params": '{"pairs": "all", "epsilon": 3.0}',
        "params": '{"n_chains": 50, "trace": true, "seed": 0, "rate": 0.5, "embedding": {"params": {"n_words": 8}}}',
    }
    sizes = {"data.n": 1000, "data.theta.length": 2, "params.n_chains": 50, "params.embedding.params.n_words": 8}
    assert prices.sizes_of(fields) == sizes
    bare = {"dataset_params": "{}", "observation_params": "{}", "params": "{}"}
    assert prices.sizes_of(bare, rows=7) == {"data.rows": 7}
    assert prices.sizes_of(fields, rows=7) == sizes


def test_a_planted_power_law_is_found():
    """t = 2e-5 · rows^1.4 · steps^0.5, with 10 % of noise."""
    rng = np.random.default_rng(0)
    measured = [
        timing(2e-5 * n**1.4 * s**0.5 * math.exp(0.1 * rng.normal()), n=n, s=s)
        for n in (10_000, 30_000, 100_000)
        for s in (10, 100, 1000)
        for _ in range(3)
    ]
    power_law = prices.time_law(measured)
    assert power_law.slopes["n"] == pytest.approx(1.4, abs=0.03)
    assert power_law.slopes["s"] == pytest.approx(0.5, abs=0.03)
    truth = 2e-5 * 1e6**1.4 * 1e4**0.5
    assert power_law({"n": 1e6, "s": 1e4}) == pytest.approx(truth, rel=0.15)


def test_one_size_is_extrapolated_linearly_and_short_runs_tell_nothing():
    one = prices.time_law([timing(5.0, n=100), timing(5.0, n=100)])
    assert one({"n": 1000}) == pytest.approx(50)
    short = prices.time_law([timing(0.011, n=100), timing(0.012, n=1000)])
    assert short({"n": 100_000}) > 0.5  # nearly linear: constant would be 0.012


def test_sizes_that_grow_along_with_others_are_not_multiplied():
    small = {"data.n": 100, "data.n_test": 10, "data.n_values": 50}
    large = {name: 100.0 * size for name, size in small.items()}
    one = timing(5.0, memory=prices.LIBRARIES + 1e8, **small)
    assert prices.time_law([one])(large) == pytest.approx(500)
    assert prices.memory_law([one])(large) == pytest.approx(1e10)
    more = [timing(5.0 * k, **{"data.n_values": 1000.0 * k}) for k in (1, 10, 100)]
    assert prices.time_law(more).slopes["data.n_values"] == pytest.approx(1, abs=0.02)  # measurements decide


def test_memory_beyond_libraries_grows_with_the_data_alone():
    measured = [timing(1.0, memory=prices.LIBRARIES + 1e8, **{"data.n": 100, "params.steps": 10})]
    fitted = prices.memory_law(measured)
    assert fitted({"data.n": 300, "params.steps": 10}) == pytest.approx(3e8)
    assert fitted({"data.n": 100, "params.steps": 1000}) == pytest.approx(1e8)
    assert prices.memory_law([timing(1.0, n=1)]) is None


def test_the_error_is_that_of_predicting_each_size_from_the_others():
    exact = [timing(0.1 * n, n=n) for n in (100, 200, 400)]
    assert prices.factor(prices.PriceModel(exact).errors()["e"]) == pytest.approx(1, abs=1e-6)
    constant = [timing(20.0, n=100), timing(20.0, n=200)]  # each is predicted linearly from the other: wrong by two
    assert prices.PriceModel(constant).errors()["e"] == pytest.approx([-math.log(2), math.log(2)])
    assert prices.factor(prices.PriceModel(constant).errors()["e"]) == pytest.approx(2)
    assert prices.PriceModel([timing(1.0, n=1)]).errors() == {}
    assert prices.factor([]) is None


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def planned(project, scale="paper") -> Plan:
    return Plan(load(project.base, {"scale": scale}))


def measure(plan, folder, seconds) -> None:
    """Write what runs leave, with CPU seconds by the size of a run."""
    for run in plan.runs("trial"):
        own = {"data": {"sizes": {}}, "spec": run.settings.record(), "status": "ok", "began": 0.0, "ended": 99.0}
        path = folder / "runs" / run.key / "run.json"
        storage.write_json(path, {**run.identity, **own, "cpu_seconds": seconds(run), "peak_memory": 4e8})


def by_rows(run) -> float:
    return 0.02 * json.loads(run.dataset_params).get("n", 100)


def test_a_plan_is_priced_from_the_runs_of_another_scale(project, tmp_path):
    small, large = planned(project, "smoke"), planned(project)
    measure(small, tmp_path / "results", by_rows)
    measured = prices.timings([tmp_path / "results"], tmp_path / "record")
    [price] = prices.price_plan(large, measured, tmp_path / "record", tmp_path / "results")
    # chains grow from 200 to 10,000, which one size tells nothing of: the time of the chains grows as much
    truth = sum(by_rows(run) * (50 if run.method == "maxent" else 1) for run in large.runs("trial"))
    assert price.seconds == pytest.approx(truth, rel=0.1)
    assert (price.runs, price.missing, price.unknown, price.over) == (27, 27, 0, 0)
    assert price.missing_seconds == price.seconds


def test_an_experiment_without_any_measurement_says_so(project, tmp_path, monkeypatch, capsys):
    [price] = prices.price_plan(planned(project), [], tmp_path / "record", tmp_path / "results")
    assert price.unknown == price.runs == 27
    assert prices.affordable([price], 1e6) == []
    monkeypatch.chdir(project.base)
    assert main(["plan", "trial", "--hours", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    [line] = [line for line in lines if line.startswith("trial")]
    assert line.endswith("27 runs without any measurement")
    assert lines[-1] == "1 CPU hours buy 0 experiments with 0 claims in 0.0 CPU minutes: none"


def test_hours_buy_the_cheapest_first():
    listed = [
        Price("a", 2, 2, missing_seconds=1800),
        Price("b", 2, 2, missing_seconds=1700),
        Price("c", 2, 2, missing_seconds=3000),
    ]
    done, unknown = Price("d", 2, 0), Price("e", 2, 2, unknown=1, missing_seconds=1.0)
    assert [p.experiment for p in prices.affordable([done, unknown, *listed], 1.0)] == ["a", "b"]


def test_runs_over_the_time_limit_cost_the_limit(project, tmp_path):
    large = planned(project)
    limit = large.experiments["trial"]["time_limit"]
    measure(large, tmp_path / "results", lambda run: 10.0 * limit)
    [price] = prices.price_plan(large, prices.timings([tmp_path / "results"], tmp_path), tmp_path / "record", tmp_path)
    assert price.over == price.runs
    assert price.seconds == pytest.approx(price.runs * limit)


def test_what_the_record_has_need_not_be_paid_again(project, tmp_path):
    from test_record import as_record

    large = planned(project)
    runs = large.runs("trial")
    measure(large, tmp_path / "results", by_rows)
    record.write(tmp_path / "record", "trial", as_record(runs[:20]))
    measured = prices.timings([tmp_path / "results"], tmp_path / "record")
    [price] = prices.price_plan(large, measured, tmp_path / "record", tmp_path)
    assert (price.runs, price.missing) == (27, 7)
    assert 0 < price.missing_seconds < price.seconds


def test_plan_refuses_what_is_not_there(project, monkeypatch, capsys):
    monkeypatch.chdir(project.base)
    assert main(["plan", "trail"]) == 2
    assert "trail" in capsys.readouterr().err
    assert main(["plan", "--runs", "nowhere"]) == 2
    assert "'nowhere' is no results folder" in capsys.readouterr().err
