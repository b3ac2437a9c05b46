"""Flow tasks, published flows, and maps of flows."""

import io
import tarfile

import numpy as np
import pytest

from agglearn.collective import ChainModel, FlowReconstruction, infer
from agglearn.collective.results import Iterate
from agglearn.datasets import BirdMigration, RecordStore, StateFlows
from agglearn.errors import ConfigError, DataError
from agglearn.observations import ContingencyTables, FlowCounts, FlowInstances
from agglearn.tasks import FlowInference, FlowLearning, TaskInput
from agglearn.tasks.flows import TrueFlows

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


def test_a_result_near_the_optimum_has_converged_and_an_early_one_has_not():
    seen, truth = observed()
    good, early = FlowReconstruction(trace=True), FlowReconstruction("nlbp-feasible", {"max_iter": 2}, trace=True)
    found = [
        FlowInference().measure(m.fit(seen), truth, ["relative_gap", "time_to_convergence"]) for m in (good, early)
    ]
    single, bad = ({m.measure: m.value for m in measured if m.step is None and not m.keys} for measured in found)
    assert (single["converged"], bad["converged"]) == (1, 0)
    assert single["relative_gap"] < 1e-6 < bad["relative_gap"]
    assert single["violation"] < 1e-9


@pytest.mark.parametrize(
    ("kind", "params", "said"),
    [
        (FlowCounts, {"sigma": 3}, "takes no 'sigma'"),
        (FlowCounts, {"evidence": "cell"}, "'cell' is not allowed"),
        (ContingencyTables, {}, "cannot make ContingencyTables"),
    ],
)
def test_wrong_settings_are_named(kind, params, said):
    with pytest.raises(ConfigError, match=said):
        observed(kind, **params)


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
