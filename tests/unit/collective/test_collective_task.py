"""Flow tasks, published flows, and maps of flows."""

import io
import json
import tarfile

import numpy as np
import pandas as pd
import pytest

from agglearn.collective import ChainModel, FlowReconstruction, infer
from agglearn.collective.results import Iterate
from agglearn.datasets import BirdMigration, RecordStore, StateFlows
from agglearn.errors import ConfigError, DataError
from agglearn.observations import ContingencyTables, FlowCounts, FlowInstances
from agglearn.tasks import FlowInference, FlowLearning, TaskInput
from agglearn.tasks.flows import TrueFlows
from agglearn_workflow.figures import points as point_charts
from agglearn_workflow.figures.charts import Chart

HEADER = "geoid_o,geoid_d,lng_o,lat_o,lng_d,lat_d,date_range,visitor_flows,pop_flows\n"


def pack(path, weeks, header=HEADER):
    with tarfile.open(path, "w:gz") as out:
        for week, lines in weeks.items():
            text = (header + "".join(lines)).encode()
            info = tarfile.TarInfo(f"./weekly_state2state_{week}.csv")
            info.size = len(text)
            out.addfile(info, io.BytesIO(text))
    return path


def lines(a, b):
    return [
        f"01,01,-86.8,32.7,-86.8,32.7,07/06/20 - 07/12/20,{a},1.0\n",
        f"01,02,-86.8,32.7,-151.2,63.7,07/06/20 - 07/12/20,{b},1.0\n",
    ]


def stored(tmp_path, **weeks):
    path = pack(tmp_path / "flows.tar.gz", {k.removeprefix("w"): v for k, v in weeks.items()})
    (tmp_path / "records").mkdir()
    said = StateFlows.from_entry({"title": "t"}).parse({"flows.tar.gz": path}, tmp_path / "records")
    return said, RecordStore.open(tmp_path / "records")


def test_published_flows_become_tables_by_week(tmp_path):
    said, store = stored(tmp_path, w2020_07_06=lines(100, 7), w2019_01_07=lines(80, 5))
    assert said == {"weeks": 2, "flows": 4}
    seen, truth = FlowLearning().observe(TaskInput("flows", {}, {"weeks": 2}, store), FlowInstances, {"epsilon": 0.5, "evidence": "edge"}, 0)  # fmt: skip
    np.testing.assert_array_equal(truth.edge_tables[:, 0, 0], [[80, 5], [100, 7]])  # weeks in order of time
    np.testing.assert_allclose(truth.positions[0], [-86.8, 32.7])
    assert [c.scale for c in seen.instances] == [2.0, 2.0]
    assert seen.instances[0].privacy.epsilon == 0.5
    assert not seen.instances[0].privacy.private
    assert len(seen.instances[0].context) == 0


def test_a_packed_file_without_flows_is_named(tmp_path):
    with pytest.raises(DataError, match="holds no file named weekly_state2state"):
        StateFlows.from_entry({}).parse({"f.tar.gz": pack(tmp_path / "f.tar.gz", {})}, tmp_path)
    path = pack(tmp_path / "g.tar.gz", {"2020_07_06": ["1\n"]}, "geoid_o\n")
    with pytest.raises(DataError, match="no column"):
        StateFlows.from_entry({}).parse({"g.tar.gz": path}, tmp_path)


def observed(kind=FlowCounts, **params):
    drawn = BirdMigration(3, 5, 200, (0.5, 1, 1, 1)).draw(0)
    return FlowInference().observe(TaskInput("birds", {}, {}, drawn), kind, params, 0)


@pytest.mark.parametrize("power", [-1.0, -2.0])
def test_the_exponent_of_a_gap_is_that_of_its_power_law(power):
    """From the tenth iteration on, until the gap is below 1e-8; what comes before and after has no part."""
    seen, truth = observed()
    model = FlowReconstruction(trace=True).fit(seen)
    best = infer(ChainModel(list(truth.log_potentials[0])), truth.counts, 200, tol=1e-10).objective

    def exponent(gap):
        t = np.arange(40)
        trace = [Iterate(k, 0.1 * k, best + abs(best) * gap(k), 0.0) for k in t.tolist()]
        model.trace_ = trace
        return [v.value for v in FlowInference().measure(model, truth, ["relative_gap"]) if v.measure == "gap_exponent"]

    assert exponent(lambda k: 5.0 if k < 10 else 0.3 * k**power) == pytest.approx([power], rel=1e-5)
    ends = lambda k: 0.3 * k**power if 10 <= k < 20 else 1e-10 if k == 20 else 7.0  # noqa: E731
    assert exponent(ends) == pytest.approx([power], rel=1e-5)
    assert exponent(lambda k: np.inf) == exponent(lambda k: 1e-12) == []


def test_truth_is_kept(tmp_path):
    _, truth = observed()
    truth.save(tmp_path)
    again = TrueFlows.load(tmp_path)
    for name in ("edge_tables", "log_potentials", "theta", "positions"):
        np.testing.assert_array_equal(getattr(again, name), getattr(truth, name))
    assert again.counts.digest == truth.counts.digest


def test_measures_of_inference():
    seen, truth = observed()
    wanted = ["relative_gap", "time_to_convergence", "flow"]
    good = list(FlowInference().measure(FlowReconstruction(trace=True).fit(seen), truth, wanted))
    single = {m.measure: m.value for m in good if m.step is None and m.keys is None}
    assert single["relative_gap"] < 1e-6
    assert single["converged"] == 1
    assert single["violation"] < 1e-9
    assert 0 < single["time_to_convergence"] < 10
    flows = {json.dumps(m.keys): m.value for m in good if m.measure == "true_flow"}
    moved = truth.edge_tables[0].sum(axis=0)
    np.fill_diagonal(moved, 0)
    assert max(flows.values()) == moved.max()
    early = FlowReconstruction("nlbp-feasible", {"max_iter": 2}, trace=True).fit(seen)
    bad = {m.measure: m.value for m in FlowInference().measure(early, truth, wanted) if m.step is None and not m.keys}
    assert bad["converged"] == 0
    assert "time_to_convergence" not in bad
    assert bad["relative_gap"] > single["relative_gap"]


def test_exact_tables_are_those_of_each_truth():
    """They are kept for the next method, which must not get those of another population."""
    found = FlowReconstruction()
    for seed, people, theta in (
        (0, 3, (0.5, 1, 1, 1)),
        (1, 3, (0.5, 1, 1, 1)),
        (0, 4, (0.5, 1, 1, 1)),
        (0, 3, (5, 10, 10, 10)),
    ):
        drawn = BirdMigration(2, 3, people, theta).draw(seed)
        seen, truth = FlowInference().observe(TaskInput("birds", {}, {}, drawn), FlowCounts, {}, seed)
        errors = {
            x.measure: x.value for x in FlowInference().measure(found.fit(seen), truth, ["map_error", "mean_error"])
        }
        for name, kind in (("map_error", "map"), ("mean_error", "marginals")):
            exact = np.array(FlowReconstruction("exact", {"kind": kind}).fit(seen).edge_tables_)
            assert errors[name] == pytest.approx(
                np.abs(np.array(found.edge_tables_) - exact).sum() / exact.sum(), abs=1e-12
            )


def test_wrong_settings_are_named():
    with pytest.raises(ConfigError, match="takes no 'sigma'"):
        observed(sigma=3)
    with pytest.raises(ConfigError, match="'cell' is not allowed"):
        observed(evidence="cell")
    with pytest.raises(ConfigError, match="cannot make ContingencyTables"):
        observed(ContingencyTables)


def test_a_scatter_plot_takes_a_measure_as_abscissa():
    base = {"dataset": "birds", "dataset_params": "{}", "observation_params": "{}", "params": "{}"}
    rows = [
        {**base, "method": m, "measure": measure, "keys": json.dumps({"time": k}), "mean": float(k + shift)}
        for m, shift in (("a", 1), ("b", 2))
        for k in range(4)
        for measure in ("count", "true_count")
    ]
    for row in rows:
        row["mean"] = float(json.loads(row["keys"])["time"]) if row["measure"] == "true_count" else row["mean"]
    experiment = {"datasets": {"birds": {}}, "methods": {"a": {}, "b": {}}}
    spec = {"kind": "scatter", "x": "true_count", "y": "count"}
    axes = point_charts.scatter(Chart(pd.DataFrame(), pd.DataFrame(rows), experiment, spec, {})).axes[0]
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[k, k + 1] for k in range(4)])
    np.testing.assert_allclose(axes.lines[1].get_xydata(), [[k, k + 2] for k in range(4)])
