"""Intervals, printed numbers and information against a few lines of arithmetic: ties, constants, NaN, weights."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from agglearn import evaluation
from agglearn.cli.report import reproduction, smallest_cells
from agglearn.collective import GibbsVersusMAP, reconstruction
from agglearn.collective.results import Inference
from agglearn.datasets import Population
from agglearn.errors import ConfigError
from agglearn.evaluation.information import bucketing_bound, mutual_information, predictive_information
from agglearn.evaluation.intervals import Estimate, mean_interval
from agglearn.evaluation.verdicts import Region, combine_p_values, holm
from agglearn.maxent import BestPairClassifier, NaiveBayesClassifier
from agglearn.observations import ContingencyTables, FlowCounts
from agglearn.tasks import splitting
from agglearn.tasks.base import TaskInput
from agglearn_workflow.tables.numbers import number
from agglearn_workflow.tables.summary import compare, differences, summarise

STUDENT = {
    1: 12.706204736,
    2: 4.30265273,
    3: 3.182446305,
    4: 2.776445105,
    9: 2.262157163,
}  # 97.5 % points, from printed tables


def by_hand(values, overlap=0.0):
    n, m = len(values), sum(values) / len(values)
    spread = math.sqrt(sum((v - m) ** 2 for v in values) / (n - 1))
    half = STUDENT[n - 1] * spread * math.sqrt(1 / n + overlap)
    return m, m - half, m + half


@pytest.mark.parametrize("values", [[0.5, 0.7], [1.0, 2.0, 4.0], [0.1, 0.1, 0.1, 0.5], [1.0, -2.0, 3.0] * 3 + [8.0]])
@pytest.mark.parametrize("overlap", [0.0, 0.25])
def test_interval_of_a_mean(values, overlap):
    assert mean_interval(values, overlap) == pytest.approx(by_hand(values, overlap), rel=1e-8)
    holes = [math.nan, *values, math.inf, -math.inf]
    assert mean_interval(holes, overlap) == pytest.approx(by_hand(values, overlap), rel=1e-8)


@pytest.mark.parametrize(
    ("values", "mean"), [([3.0], 3.0), ([3.0] * 4, 3.0), ([math.nan, 3.0], 3.0), ([0.1 + 0.2, 0.3], 0.3)]
)
def test_what_has_no_spread_has_no_interval(values, mean):
    found = mean_interval(values)
    assert found[0] == pytest.approx(mean)
    assert np.isnan(found[1:]).all()


def test_nothing_has_no_mean():
    assert np.isnan(mean_interval([])).all()
    assert np.isnan(mean_interval([math.nan])).all()


def test_difference_of_samples_of_other_sizes_and_spreads():
    a, b = [1.0, 2.0, 4.0], [10.0, 12.0, 11.0, 15.0]
    va, vb = np.var(a, ddof=1) / 3, np.var(b, ddof=1) / 4
    found = Estimate.of_difference(a, b)
    assert (found.value, found.error) == pytest.approx((7 / 3 - 12, math.sqrt(va + vb)))
    assert found.df == pytest.approx((va + vb) ** 2 / (va**2 / 2 + vb**2 / 3))
    assert found.n == 3
    both = Estimate.of_difference(a, b, 0.5)
    assert both.error == pytest.approx(math.sqrt(np.var(a, ddof=1) * (1 / 3 + 0.5) + np.var(b, ddof=1) * (1 / 4 + 0.5)))


def test_p_values_are_tails_on_the_right_side():
    found = Estimate.of_mean([1.0, 2.0, 4.0])
    low, high = found.interval()
    assert float(found.p_at_most(low)) == pytest.approx(0.025)  # the mean is hardly at most the lower end
    assert float(found.p_at_least(high)) == pytest.approx(0.025)
    assert float(found.p_at_most(high)) == pytest.approx(0.975)
    assert float(Estimate.of_mean([2.0]).p_at_most(0)) == 1.0
    outside, inside = Region(low=float(low)).p_values(found)
    assert (float(outside), float(inside)) == pytest.approx((0.025, 0.975))
    outside, inside = Region(high=float(high)).p_values(found)
    assert (float(outside), float(inside)) == pytest.approx((0.025, 0.975))
    outside, inside = Region(float(low), float(high)).p_values(found)  # two one-sided tests: the larger one
    assert (float(outside), float(inside)) == pytest.approx((0.025, 0.975))
    beside, within = Region(5.0, 9.0).p_values(found)
    assert beside > 0.5 > within


def test_regions_and_their_bounds():
    assert Region(0, 1).contains([-0.1, 0, 0.5, 1, 1.1]).tolist() == [False, True, True, True, False]
    assert Region(0, 1, strict=True).contains([0, 0.5, 1]).tolist() == [False, True, False]


def test_adjusted_p_values():
    assert holm([0.04, 0.01, 0.03]).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.5]).tolist() == [1.0, 1.0]


def test_claims_of_several_cases():
    outside, inside = [0.01, 0.2, 0.03], [0.9, 0.02, 0.5]
    every = combine_p_values(np.array(outside), np.array(inside), 3)
    assert every == pytest.approx((0.2, 3 * 0.02))  # all of them: the worst; refuted by any, of three
    two = combine_p_values(np.array(outside), np.array(inside), 2)
    assert two == pytest.approx((2 * 0.03, 2 * 0.5))
    one = combine_p_values(np.array(outside), np.array(inside), 1)
    assert one == pytest.approx((3 * 0.01, 0.9))


# -- printed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.25, 0.75, "0.50 ± 0.25"),
        (0.485, 0.515, "0.500 ± 0.015"),
        (math.nan, math.nan, "0.5"),
        (-math.inf, math.inf, "0.5"),
    ],
)
def test_a_number_has_half_its_interval_beside_it(low, high, text):
    assert number(0.5, low, high) == text


@pytest.mark.parametrize(
    ("gap", "half", "said"),
    [(0.0225, 0.015, "below"), (0.0225, 0.018, "undecided"), (-0.0225, 0.015, "above"), (0.004, 0.0009, "agrees"),
     (0.004, 0.0015, "undecided"), (0.004, math.nan, "undecided")],
)  # fmt: skip
def test_a_verdict_needs_the_whole_interval(gap, half, said):
    """A margin of 0.005, half of the last digit among it: 1½ half-widths beyond it is no agreement, and no doubt."""
    entry = {"value": 0.4, "printed": "0.4000", "measure": "nllh"}
    row = {"status": "ok", "mean": 0.4 - gap, "low": 0.4 - gap - half, "high": 0.4 - gap + half}
    compared = compare(row, entry, {"nllh": 0.00495})
    assert compared["outcome"] == said
    assert (compared["difference"], compared["tolerance"]) == pytest.approx((-gap, 0.005))


def rows(values: dict) -> pd.DataFrame:
    """Measurements of (method, seed) → (value, tested units)."""
    same = {"experiment": "e", "dataset": "d", "dataset_params": "{}", "observation": "o", "observation_params": "{}", "params": "{}",
            "status": "ok", "reason": None, "measure": "nllh", "keys": None, "step": math.nan, "unit": "", "overlap": 0.25}  # fmt: skip
    found = [
        {**same, "method": m, "seed": s, "value": v, "tested": t, "run": f"{m}{s}"} for (m, s), (v, t) in values.items()
    ]
    return pd.DataFrame(found)


def test_a_summary_over_seeds_by_hand():
    ours, base = [0.5, 0.6, 0.75], [0.3, 0.35, 0.4]
    values = {("ours", s): (v, f"t{s}") for s, v in enumerate(ours)}
    values |= {("base", s): (v, f"t{s}") for s, v in enumerate(base)}
    experiment = {"baseline": "base", "measures": ["nllh"], "reported": [], "agreement": {"margins": {}}}
    table = summarise(rows(values), experiment).set_index(["method", "measure"])
    for key, of in {
        ("ours", "nllh"): ours, ("base", "nllh"): base,
        ("ours", "nllh_minus_base"): [a - b for a, b in zip(ours, base, strict=True)],
    }.items():  # fmt: skip
        assert table.loc[key, ["mean", "low", "high"]].tolist() == pytest.approx(by_hand(of, 0.25), rel=1e-8)
        assert table.loc[key, "n"] == 3
    values["ours", 2] = (0.75, "others")  # tested on other units: no pair
    unpaired = differences(rows(values), "base", ["nllh"])
    assert unpaired["value"].tolist() == pytest.approx([0.2, 0.25])
    values["ours", 1] = (math.nan, "t1")
    table = summarise(rows(values), experiment | {"baseline": "ours"}).set_index(["method", "measure"])
    assert table.loc[("ours", "nllh"), "n"] == 2
    assert table.loc[("ours", "nllh"), ["mean", "low", "high"]].tolist() == pytest.approx(by_hand([0.5, 0.75], 0.25))


def test_a_baseline_with_several_values_per_seed_is_no_partner():
    """Of a grid nobody knows which value to take; seeds with one value keep their pairs."""
    frame = rows(
        {("ours", s): (0.5 + 0.1 * s, f"t{s}") for s in range(3)} | {("base", s): (0.4, f"t{s}") for s in range(3)}
    )
    again = frame[(frame["method"] == "base") & (frame["seed"] == 1)].assign(
        params='{"l2": 2}', value=0.1, run="another"
    )
    paired = differences(pd.concat([frame, again], ignore_index=True), "base", ["nllh"])
    assert paired["seed"].tolist() == [0, 2]
    assert paired["value"].tolist() == pytest.approx([0.1, 0.3])
    assert set(paired["measure"]) == {"nllh_minus_base"}


def test_a_summary_counts_runs_without_a_number():
    frame = rows({("ours", s): (0.1 * s, f"t{s}") for s in range(4)})
    for seed, status in ((1, "stopped"), (2, "failed"), (3, "stopped")):
        frame.loc[seed, ["status", "reason", "measure", "value"]] = [status, f"reason {seed}", None, math.nan]
    experiment = {"measures": ["nllh"], "reported": [], "agreement": {"margins": {}}}
    table = summarise(frame, experiment)
    assert table["reason"].tolist() == ["1 seed failed: reason 2"]
    assert (table["n"].tolist(), table["mean"].tolist()) == ([1], [0.0])
    nothing = summarise(frame[1:].reset_index(drop=True), experiment)
    assert (nothing["status"].tolist(), nothing["n"].tolist()) == (["failed"], [0])
    assert json.loads(nothing["params"][0]) == {}


# -- information, and how well tables are reproduced ------------------------------------------------------------------


def test_information_of_two_clusters():
    n, c = np.array([4.0, 6.0]), np.array([3.0, 2.0])  # half of ten have label 1
    h = lambda *p: -sum(q * math.log(q) for q in p if q)  # noqa: E731
    assert mutual_information(n, c) == pytest.approx(h(0.5, 0.5) - 0.4 * h(0.75, 0.25) - 0.6 * h(1 / 3, 2 / 3))
    assert mutual_information(n, n / 2) == pytest.approx(0)
    assert mutual_information(np.array([5.0, 5.0]), np.array([5.0, 0.0])) == pytest.approx(math.log(2))
    rates = np.array([0.6, 0.4])
    won = (3 * math.log(0.6 / 0.5) + math.log(0.4 / 0.5) + 2 * math.log(0.4 / 0.5) + 4 * math.log(0.6 / 0.5)) / 10
    assert predictive_information(n, c, rates, 0.5) == pytest.approx(won)
    won = (3 * math.log(0.6 / 0.3) + math.log(0.4 / 0.7) + 2 * math.log(0.4 / 0.3) + 4 * math.log(0.6 / 0.7)) / 10
    assert predictive_information(n, c, rates, 0.3) == pytest.approx(won)


def test_bound_of_buckets():
    f = lambda x, p: (x * math.log(x / p) if x else 0) + ((1 - x) * math.log((1 - x) / (1 - p)) if x < 1 else 0)  # noqa: E731
    at = [f(k / 3, 0.25) for k in range(4)]
    assert bucketing_bound(3, 0.25) == pytest.approx(max(max(at[0], at[1]), abs(at[2] - at[1]), abs(at[3] - at[2])))


def test_reproduction_of_tables_by_hand():
    frame = pd.DataFrame({"a": list("uuuuvvvv"), "b": list("xyxyxyxy"), "y": [1, 1, 1, 0, 0, 0, 1, 0]})
    tables = ContingencyTables.from_records(frame, "y")
    model = NaiveBayesClassifier(smoothing=1.0).fit(tables)
    off = 0.0
    for name, values in (("a", "uv"), ("b", "xy")):
        for value in values:
            part = frame[frame[name] == value]
            ones, zeros = part["y"].sum() + 1, (1 - part["y"]).sum() + 1
            odds = (ones / 6) / (zeros / 6) * 1.0  # half of the records have label 1; four of each label, and two more
            off += abs(odds / (1 + odds) * len(part) - part["y"].sum())
    assert f"misses the label's rate there by {off / 16:.2g} on average" in reproduction(model, tables)
    assert "the tables of single features (2; pairs are not used)" in reproduction(model, tables)
    best = BestPairClassifier(l2=1.0).fit(tables)
    assert reproduction(best, tables).startswith("it uses the table 'a' × 'b' and misses")
    own = SimpleNamespace(misfit_=np.array([[0.5, 0.1], [0.03, 0.2]]))
    assert "differ from the tables' counts by 3 %" in reproduction(own, tables)
    assert smallest_cells(tables, 3) == (8, 2.0, 4)


def test_every_metric_of_the_package_is_a_measure():
    from agglearn.tasks import Classification

    assert set(evaluation.__all__) - {"entropy", "log_likelihood", "normalized_log_likelihood"} <= set(
        Classification.MEASURES
    )


# -- sampling beside the approximate MAP ------------------------------------------------------------------------------


def test_gibbs_beside_map_by_hand(monkeypatch):
    """Two references that differ, two runs of four stages: which stage is as near to the reference as the MAP."""
    table = lambda *x: np.array([[list(x[:2]), list(x[2:])]], float)  # noqa: E731
    references = {0: table(4, 2, 2, 2), 1: table(2, 2, 2, 4)}  # their mean is 3, 2, 2, 3
    means = {0: [table(9, 1, 0, 0), table(6, 2, 2, 0), table(4, 2, 2, 2), table(3, 2, 2, 3)],
             1: [table(0, 1, 0, 9), table(3, 2, 2, 3), table(3, 3, 2, 2), table(3, 2, 3, 2)]}  # fmt: skip
    asked = []

    def infer(model, counts, m, method, trace=False, random_state=None, **options):
        asked.append((method, options))
        if method != "gibbs":
            return Inference(list(table(5, 2, 2, 1)), [], 0.0)
        if len(random_state) == 3:
            return Inference(list(references[random_state[2]]), [], 0.0)
        made = [(0.5 * (k + 1) + random_state[1], 100 * (k + 1), list(t)) for k, t in enumerate(means[random_state[1]])]
        return Inference(list(means[random_state[1]][-1]), [], 0.0, details={"means": made})

    monkeypatch.setattr(reconstruction, "infer", infer)
    counts = FlowCounts(
        node_counts=np.ones((2, 2)) * 5, population_size=10, context={"log_potentials": np.zeros((1, 2, 2))}
    )
    settings = {
        "method": "dual-newton", "n_runs": 2, "n_moves": 400, "stages": 4, "reference": "runs", "n_references": 2,
        "reference_moves": 800, "random_state": 1,
    }  # fmt: skip
    model = GibbsVersusMAP(**settings).fit(counts)
    assert model.map_error_ == pytest.approx((2 + 2) / 10)
    errors = np.array([[(6 + 1 + 2 + 3), (3 + 3), 2, 0], [(3 + 1 + 2 + 6), 0, (1 + 1), (1 + 1)]]) / 10
    assert model.gibbs_error_ == pytest.approx(errors.mean(axis=0)[-1])
    near = int(np.flatnonzero(errors.mean(axis=0) <= 0.4)[0])
    assert near == 1
    assert model.reached_
    assert model.gibbs_seconds_ == pytest.approx((1.0 + 2.0) / 2)
    assert model.gibbs_moves_ == 200
    # each reference is 4/10 from the other: of the mean of two, √(1/4) of that
    assert model.reference_error_ == pytest.approx(0.4 * math.sqrt(1 / 4))
    assert [o.get("tol") for m, o in asked if m == "dual-newton"] == [1e-6] * 2
    assert [o["n_moves"] for m, o in asked if m == "gibbs"] == [400, 400, 800, 800]

    means[0] = means[1] = [table(9, 1, 0, 0)] * 4  # never as near
    model = GibbsVersusMAP(**settings).fit(counts)
    assert not model.reached_
    assert (model.gibbs_seconds_, model.gibbs_moves_) == (pytest.approx((2.0 + 3.0) / 2), 400)


def test_each_gibbs_run_and_the_map_are_compared_with_the_mean_of_the_other_runs(monkeypatch):
    means = [np.array([[[5.0, 2, 2, 1]]]), np.array([[[5.0, 2, 1, 2]]]), np.array([[[3.0, 4, 2, 1]]])]
    worse = np.array([[[9.0, 1, 0, 0]]])

    def infer(model, counts, m, method, trace=False, random_state=None, **options):
        if method != "gibbs":
            return Inference([np.array([[6.0, 2, 1, 1]])], [], 0.0)
        made = [(1.0, 200, list(worse[0])), (2.0, 400, list(means[random_state[1]][0]))]
        return Inference(list(means[random_state[1]][0]), [], 0.0, details={"means": made})

    monkeypatch.setattr(reconstruction, "infer", infer)
    counts = FlowCounts(
        node_counts=np.ones((2, 2)) * 5, population_size=10, context={"log_potentials": np.zeros((1, 2, 2))}
    )
    model = GibbsVersusMAP(
        method="dual-newton", n_runs=3, n_moves=400, stages=2, reference="others", random_state=1
    ).fit(counts)
    others = [(means[1] + means[2]) / 2, (means[0] + means[2]) / 2, (means[0] + means[1]) / 2]
    error = np.mean([np.abs(m - o).sum() / 10 for m, o in zip(means, others, strict=True)])
    assert model.gibbs_error_ == pytest.approx(error)
    assert model.map_error_ == pytest.approx(np.mean([np.abs([[[6, 2, 1, 1]]] - o).sum() / 10 for o in others]))
    assert model.reference_error_ == pytest.approx(error * math.sqrt(1 / 3))
    assert (model.reached_, model.gibbs_moves_) == (error <= model.map_error_, 400)
    with pytest.raises(ConfigError, match=r"n_runs: .* two runs or more"):
        GibbsVersusMAP(n_runs=1, reference="others").fit(counts)


# -- splits -----------------------------------------------------------------------------------------------------------


def test_last_rows_in_order_of_time():
    source = TaskInput(
        "d", {"split": {"last": 0.3}}, {}, Population(pd.DataFrame({"a": range(10)}), np.zeros(10), np.zeros(10))
    )
    train, test = splitting.split_rows(source, 5)
    assert (train.tolist(), test.tolist()) == ([0, 1, 2, 3, 4, 5, 6], [7, 8, 9])


def test_a_random_subset_is_of_both_parts_in_proportion():
    data = SimpleNamespace(n=1000, header={"parts": {"train": [0, 800], "test": [800, 1000]}})
    train, test = splitting.split_rows(TaskInput("d", {}, {"rows": 100}, data), 0)
    assert (len(train), len(test)) == (80, 20)
    assert train.max() < 800 <= test.min()
    assert (np.diff(train) > 0).all()
    whole = splitting.split_rows(TaskInput("d", {}, {"rows": 5000}, data), 0)
    assert [len(part) for part in whole] == [800, 200]
