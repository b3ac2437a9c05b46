"""Claims judged on rows whose answer is known: every field by hand, pairs, replicates, cases, and what is said of what is left out."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from reported_trial import VALUES, rows
from scipy import stats

from agglearn_workflow.claims import judging
from agglearn_workflow.claims.samples import Rows, Sample
from agglearn_workflow.render import findings

OURS, BASE = {"measure": "nllh", "method": "ours"}, {"measure": "nllh", "method": "base"}
GOOD = {("a", "ours"): [0.50, 0.61, 0.70], ("a", "base"): [0.40, 0.50, 0.60]}
NOISY = {("a", "ours"): [0.5, 0.1, 0.9], ("a", "base"): [0.4, 0.6, 0.3]}
ONE = {("a", "ours"): [0.5], ("a", "base"): [0.4]}
SAME = {("a", "ours"): [0.5] * 5, ("a", "base"): [0.4] * 5}
WHY = {"deterministic": "both sides are sums over one table"}
TOO_FEW = "undecided at this scale"


def judge(said: dict, found: dict | pd.DataFrame) -> dict:
    return judging.judge(said, Rows(rows(found) if isinstance(found, dict) else found))


def claim(predicate: str, **more) -> dict:
    """A claim on ours alone."""
    return {"predicate": predicate, "value": OURS, **more}


def beside(predicate: str, **more) -> dict:
    """A claim on ours beside base."""
    return claim(predicate, reference=BASE, **more)


# -- predicates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "values", "stated"), [
    (beside("greater"), GOOD, "holds"),
    (beside("less"), GOOD, "fails"),
    (beside("greater"), NOISY, "undecided"),
    (beside("less", tolerance=0.2), GOOD, "holds"),
    (beside("greater", margin=0.2), GOOD, "fails"),
    (beside("within", tolerance=0.05), GOOD, "fails"),
    (claim("at_least", bound=0.6), GOOD, "undecided"),
    (beside("ratio_at_least", bound=1.2), GOOD, "undecided"),
    (beside("greater"), {("a", "ours"): [0.5]}, "not judged"),
    (beside("greater"), {("a", "ours"): ("unavailable", "gone"), ("a", "base"): [1.0]}, "not judged"),
    (claim("at_least", bound=0.3, **WHY), {("a", "ours"): [0.9, 0.9, 0.9, 0.299]}, "fails"),
])  # fmt: skip
def test_predicates(said, values, stated):
    assert judge(said, values)["verdict"] == stated


@pytest.mark.parametrize("values", [ONE, SAME], ids=["one value", "identical values"])
@pytest.mark.parametrize(("said", "verdict", "judged"), [
    (beside("greater"), "holds", "difference +0.1,"),
    (beside("less"), "fails", "difference +0.1,"),
    (beside("within", tolerance=0.2), "holds", "difference +0.1,"),
    (claim("at_least", bound=0.3), "holds", "value 0.5 "),
    (claim("at_most", bound=0.3), "fails", "value 0.5 "),
    (beside("ratio_at_least", bound=1.2), "holds", "ratio 1.25 "),
])  # fmt: skip
def test_without_an_interval_only_a_deterministic_claim_is_decided(said, verdict, judged, values):
    assert judge(said, values)["verdict"] == TOO_FEW
    outcome = judge(said | WHY, values)
    assert outcome["verdict"] == verdict
    assert outcome["detail"].startswith(judged)


@pytest.mark.parametrize(("second", "verdict"), [(0.5, "holds"), (0.6, "fails")])
def test_seeds_of_a_deterministic_claim_may_have_different_cells(second, verdict):
    """Coefficients of bins that each seed learns from its own training records."""
    values = [("x = 1", 0, 0.3), ("x = 2", 0, 0.4), ("x = 2", 1, 0.4), ("x = 3", 1, 0.5)]
    sides = [
        rows({("a", method): [own]}, keys={"coefficient": name}).assign(seed=seed)
        for name, seed, value in values
        for method, own in (("ours", value), ("base", second if name == "x = 3" else value))
    ]
    frame, said = pd.concat(sides, ignore_index=True), beside("within", tolerance=0.01)
    assert judge(said | WHY, frame)["verdict"] == verdict
    assert "4 values" in judge(said | WHY, frame)["detail"]
    assert judge(said, frame)["detail"] == "no replicate has all 3 cells"


def test_values_that_read_alike_are_said_once():
    said = judge(claim("at_least", bound=0.3, **WHY), {("a", "ours"): [1.0, 1.0 + 1e-9]})
    assert said["detail"].startswith("value 1 against")


def test_too_few_pairs_are_said():
    outcome = judge(beside("greater"), {k: v[:2] for k, v in GOOD.items()})
    assert outcome["verdict"] == TOO_FEW
    assert "2 pairs; a verdict needs 3" in outcome["detail"]
    wide = {("a", "ours"): [0.50, 0.501], ("a", "base"): [0.40, 0.4011]}
    assert judge(beside("greater", min_pairs=2), wide)["verdict"] == "holds"
    assert judge(beside("greater", min_pairs=4), GOOD)["verdict"] == TOO_FEW


# -- every number by hand ---------------------------------------------------------------------------------------------

OF_A = {key: values for key, values in VALUES.items() if key[0] == "a"}
DIFFERENCES = [0.01, -0.01, 0.04]


def around(values, overlap=0.0) -> tuple[float, float, float]:
    """Mean of three values with the ends of its 95 % interval; 4.30 is the 97.5 % point with two degrees of freedom."""
    mean, half = np.mean(values), 4.30265273 * np.std(values, ddof=1) * math.sqrt(1 / 3 + overlap)
    return mean, mean - half, mean + half


def numbers(value, low=None, high=None, start=None, end=None) -> dict:
    return {"value": value, "low": low, "high": high, "from": start, "to": end}


def approximately(value):
    if isinstance(value, dict):
        return {key: approximately(inner) for key, inner in value.items()}
    return pytest.approx(value, rel=1e-6) if isinstance(value, float) else value


def test_every_field_of_every_case():
    outcome = judge(beside("greater", each=["dataset"], margin=0.02), VALUES)
    a, bb, cc, dd = outcome["cases"]
    mean, spread = 0.04 / 3, np.std(DIFFERENCES, ddof=1)
    t = (0.02 - mean) / (spread / math.sqrt(3))
    tail = 0.5 + t / (2 * math.sqrt(2 + t**2))  # P(T ≤ t), two degrees of freedom: that the mean is at most the margin
    deciding = next(n for n in range(4, 2000) if stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) < 0.02 - mean)
    assert a == approximately({
        "case": "a", "verdict": "undecided", "p_false": tail, "p_true": 1 - tail, "rival_below_base": False,
        "numbers": numbers(*map(float, around(DIFFERENCES)), 0.02),
        "detail": "difference +0.01333 [-0.04918, +0.07585], margin 0.02, 3 pairs; 2 values without a partner left out",
        "replicates": 3, "deciding": deciding,
    })  # fmt: skip
    half = 2.776445105 * 0.01 / math.sqrt(5)  # of 0.10, 0.09, 0.11, 0.09, 0.11
    t = (0.1 - 0.02) / (0.01 / math.sqrt(5))  # √320, with four degrees of freedom
    tail = 0.5 - 3 / 8 * t / 9 * (1 - 320 / (12 * 81))
    assert bb == {
        "case": "bb", "verdict": "holds", "p_false": pytest.approx(tail, rel=1e-6), "p_true": pytest.approx(1, abs=1e-4),
        "rival_below_base": False, "numbers": approximately(numbers(0.1, 0.1 - half, 0.1 + half, 0.02)),
        "detail": "difference +0.1 [+0.08758, +0.1124], margin 0.02, 5 pairs",
    }  # fmt: skip
    assert cc == approximately({
        "case": "cc", "verdict": TOO_FEW, "p_false": 1.0, "p_true": 1.0, "rival_below_base": False,
        "numbers": numbers(-0.05, start=0.02), "detail": "difference -0.05, margin 0.02, 1 pair; a verdict needs 3",
    })  # fmt: skip
    assert dd == {"case": "dd", "verdict": "not judged", "detail": "boom", "absent": False}
    details = f"a: {a['detail']}; cc: {cc['detail']}; bb: {bb['detail']}; 1 of 4 cases not judged (boom)"
    tally = "holds in 1 of 3, 1 undecided, 1 undecided at this scale"
    assert outcome == {"verdict": "undecided", "detail": f"{tally}: {details}", "cases": [a, bb, cc, dd]}


LOGS = np.log([0.40 / 0.39, 0.43 / 0.44, 0.41 / 0.37])


@pytest.mark.parametrize(("said", "sample", "start", "end", "bound"), [
    (beside("less", tolerance=0.2), DIFFERENCES, None, 0.2, ", tolerance 0.2, margin 0, 3 pairs"),
    (beside("less", margin=0.05), DIFFERENCES, None, -0.05, ", margin 0.05, 3 pairs"),
    (beside("greater", margin=0.05), DIFFERENCES, 0.05, None, ", margin 0.05, 3 pairs"),
    (beside("greater", tolerance=0.1), DIFFERENCES, -0.1, None, ", tolerance 0.1, margin 0, 3 pairs"),
    (beside("within", tolerance=0.2), DIFFERENCES, -0.2, 0.2, ", tolerance 0.2, margin 0, 3 pairs"),
    (beside("ratio_at_least", bound=1.2), LOGS, 1.2, None, " against 1.2, 3 pairs"),
    (claim("at_least", bound=0.3) | {"value": BASE}, [0.39, 0.44, 0.37], 0.3, None, " against 0.3, 3 replicates"),
    (claim("at_most", bound=-0.3) | {"value": BASE}, [0.39, 0.44, 0.37], None, -0.3, " against -0.3, 3 replicates"),
])  # fmt: skip
def test_the_numbers_of_every_predicate(said, sample, start, end, bound):
    """Mean, interval and region of three replicates; a ratio is that of geometric means."""
    [case] = judge({"margin": 0.0} | said, OF_A)["cases"]
    scale = math.exp if said["predicate"] == "ratio_at_least" else float
    assert case["numbers"] == approximately(numbers(*map(scale, around(sample)), start, end))
    assert bound in case["detail"]


@pytest.mark.parametrize(("measure", "predicate", "rival", "is_weak"), [
    ("auc", "greater", 0.49, True),
    ("auc", "greater", 0.51, False),
    ("auc_of_part", "greater", 0.49, True),
    ("nllh", "greater", -0.01, True),
    ("nllh", "greater", 0.01, False),
    ("nllh", "less", -1.0, False),  # a claim that something is worse is about its failure
    ("nllh", "ratio_at_least", 0.01, False),
    ("nmse", "less", 1.01, True),  # its rival is the reference
    ("nmse", "less", 0.99, False),
    ("nmse", "greater", 0.99, False),  # here it is the value, which is 2 more
    ("auc", "less", 0.49, False),
    ("rmse", "greater", -1.0, False),
])  # fmt: skip
def test_a_win_over_a_rival_without_skill_is_weak(measure, predicate, rival, is_weak):
    """No skill is an AUC of one half, an NLLH of 0, and a squared error of the variance."""
    spread = np.array([-0.001, 0.0, 0.001, 0.002, -0.002])
    ours = rival - 2 if (measure, predicate) == ("nmse", "greater") else rival + 0.3
    frame = rows({("a", "ours"): list(ours + spread), ("a", "base"): list(rival + spread[::-1])}, measure=measure)
    sides = {"value": OURS | {"measure": measure}, "reference": BASE | {"measure": measure}}
    outcome = judge(claim(predicate, bound=1.0) | sides, frame)
    assert ("weak" in outcome) is is_weak
    assert outcome["cases"][0].get("rival_below_base", False) is is_weak


@pytest.mark.parametrize(("distance", "n"), [(2.4, 4), (1.6, 4), (1.58, 5), (1.25, 5), (1.23, 6), (0.06, None)])
def test_the_number_of_replicates_that_decide_by_hand(distance, n):
    """Of a spread of 1, t/√n is 2.484, 1.591, 1.242 and 1.049 for 3, 4, 5 and 6 replicates, and 0.062 for 1,000."""
    values = pd.Series([-1.0, 0.0, 1.0])
    assert Sample(values, None, values.to_numpy(), 0.0).deciding(distance) == n


# -- pairs ------------------------------------------------------------------------------------------------------------

WIDE = {("a", "ours"): [0.50, 0.91, 0.10, 0.72], ("a", "base"): [0.40, 0.80, 0.01, 0.60]}


def on_units(ours: str, base: str) -> pd.DataFrame:
    """Rows of methods that were tested on these units, one letter per seed."""
    return rows(WIDE).assign(tested=[*ours, *base])


@pytest.mark.parametrize("units", [("abcd", "efgh"), ("aaaa", "bbbb")])
def test_seeds_with_other_test_rows_are_no_pairs(units):
    assert judge(beside("greater"), WIDE)["verdict"] == "holds"  # the seeds differ widely, the pairs do not
    apart = judge(beside("greater"), on_units(*units))
    assert apart["verdict"] == "undecided"
    assert "tested on different units" in apart["detail"]
    assert apart["cases"][0]["numbers"]["value"] == pytest.approx(2.23 / 4 - 1.81 / 4)


def test_pairs_on_other_rows_are_left_out_and_said():
    outcome = judge(beside("greater"), on_units("abcd", "abcx"))
    assert "3 pairs; 1 of 4 pairs left out: their sides were tested on different units" in outcome["detail"]


def test_a_replicate_that_lacks_a_pair_is_left_out():
    found = rows(WIDE | {("b", method): values for (_, method), values in WIDE.items()})
    detail = judge(beside("greater"), found.assign(tested=[*"abcdabcdefghefgx"]))["detail"]
    assert (
        "3 pairs; 1 of 8 pairs left out: their sides were tested on different units; 1 of 4 replicates left out"
        in detail
    )


def test_values_without_a_partner_are_said():
    outcome = judge(beside("greater"), {**WIDE, ("a", "base"): [0.4, 0.8, 0.01]})
    assert "3 pairs; 1 value without a partner left out" in outcome["detail"]


def test_sides_that_differ_in_a_parameter_of_the_data_are_paired():
    found, params = rows(WIDE), '{"bag_size": %d, "hidden": "%s"}'
    said = claim("greater", reference={"measure": "nllh", "dataset_params.bag_size": 100})
    said["value"] = {"measure": "nllh", "dataset_params.bag_size": 10}
    for hidden, detail in (("SEX", "4 pairs"), ("DIS", "value and reference have no data set and seed in common")):
        found["dataset_params"] = np.where(found.method == "ours", params % (10, "SEX"), params % (100, hidden))
        assert detail in judge(said, found)["detail"]


def test_a_replicate_that_lacks_a_cell_is_left_out():
    """A seed that lacks one of two data sets has another mean, whatever the method."""
    values = {("a", "ours"): [0.1, 0.11, 0.12, 0.13], ("b", "ours"): [0.9, 0.91, 0.92]}
    detail = judge(claim("at_most", bound=0.6), values)["detail"]
    assert "mean 0.51" in detail
    assert "3 replicates; 1 of 4 replicates left out, which lack some cells" in detail
    both = values | {(dataset, "base"): row for (dataset, _), row in values.items()}
    assert judge(beside("greater"), both)["detail"].count("left out") == 1


# -- replicates -------------------------------------------------------------------------------------------------------


def with_items(gaps) -> pd.DataFrame:
    """Both sides of differences (seeds, items)."""
    both = [{("a", "ours"): list(column), ("a", "base"): [0.0] * len(column)} for column in np.transpose(gaps)]
    return pd.concat([rows(values, keys={"part": k}) for k, values in enumerate(both)], ignore_index=True)


def test_items_of_a_seed_are_one_replicate():
    """Three years of one split, all alike, are no three splits."""
    outcome = judge(beside("greater"), with_items([[0.1] * 3, [-0.02] * 3, [0.3] * 3]))
    assert outcome["verdict"] == "undecided"
    assert "3 pairs" in outcome["detail"]


def test_parts_of_the_test_are_replicates_where_a_claim_says_so():
    parts = with_items(0.1 + 0.01 * np.arange(16)[None])
    assert judge(beside("greater"), parts)["verdict"] == TOO_FEW
    outcome = judge(beside("greater", replicates="part"), parts)
    assert outcome["verdict"] == "holds"
    assert "16 pairs" in outcome["detail"]


@pytest.mark.parametrize("wide", ["ours", "base"])
def test_the_larger_overlap_of_two_sides_and_of_two_cases_counts(wide):
    """Splits that overlap by 0.25 widen the interval by √((1/3 + 1/4)·3), on whatever side they are."""
    mean, low, high = around(DIFFERENCES, 0.25)
    frame = rows(OF_A)
    frame.loc[frame["method"] == wide, "overlap"] = 0.25
    assert judge(beside("greater"), frame)["cases"][0]["numbers"]["low"] == pytest.approx(low)
    both = pd.concat([frame.assign(dataset=name, overlap=0.25 if name == wide else 0.0) for name in ("base", "ours")])
    both = both.assign(run=both["run"] + both["dataset"]).reset_index(drop=True)
    assert judge(beside("greater"), both)["cases"][0]["numbers"]["low"] == pytest.approx(low)
    averaged = judge(beside("greater", each=["dataset"], cases="average"), both)
    assert averaged["detail"].startswith(f"on average over 2 cases: difference {mean:+.4g} [{low:+.4g}, {high:+.4g}]")


# -- cases ------------------------------------------------------------------------------------------------------------


def by_case(gaps, **more) -> dict:
    """The verdict on ours above base in each case, from the differences of each case."""
    values = {}
    for k, found in enumerate(gaps):
        values["a", "ours", json.dumps({"k": k})] = found
        values["a", "base", json.dumps({"k": k})] = [0.0] * len(found)
    return judge(beside("greater", each=["params.k"], **more), values)


CLEAR, AGAINST, OPEN = [0.10, 0.11, 0.12], [-0.10, -0.11, -0.12], [0.1, -0.1, 0.02]
BARELY = [-0.05, -0.10, -0.07]  # fails by itself at 2.5 %, and not among many
FAR, FEW = [-0.1000, -0.1001, -0.1002], [0.1]


def test_each_judges_every_case_and_the_reference_keeps_its_own():
    values = {}
    for k, v in ((1, 0.5), (4, 0.4), (16, 0.6)):
        values["a", "ours", json.dumps({"l2": k})] = [v, v + (0.009 if k > 1 else 0.01), v + 0.021]
    sides = ({"measure": "nllh", "params.l2": levels} for levels in ([4, 16], 1))
    outcome = judge(dict(zip(("value", "reference"), sides, strict=True), predicate="less", each=["params.l2"]), values)
    assert outcome["verdict"] == "fails"
    assert {c["case"]: c["verdict"] for c in outcome["cases"]} == {"λ = 4": "holds", "λ = 16": "fails"}
    assert outcome["detail"].startswith("holds in 1 of 2, 1 fails: λ = 16: ")


def test_holms_correction_forgives_one_of_many():
    assert by_case([BARELY])["verdict"] == "fails"
    for first, verdict in ((BARELY, "undecided"), (FAR, "fails")):
        outcome = by_case([first, *[CLEAR] * 17])
        assert outcome["verdict"] == verdict
        assert outcome["detail"].startswith(f"holds in 17 of 18, 1 {verdict}")


@pytest.mark.parametrize(("cases", "gaps", "stated"), [
    ("all", [CLEAR, CLEAR, OPEN], "undecided"),
    ("all", [CLEAR, CLEAR], "holds"),
    ("all", [CLEAR, FEW], TOO_FEW),  # without an interval they need a larger scale, unless others are open
    ("all", [FEW, FEW], TOO_FEW),
    ("all", [CLEAR, OPEN, FEW], "undecided"),
    ("all", [OPEN, FEW], "undecided"),
    ("all", [CLEAR, OPEN], "undecided"),
    ("all", [CLEAR, FAR, FEW], "fails"),
    ("most", [CLEAR, CLEAR, OPEN], "holds"),
    ("most", [CLEAR, CLEAR, AGAINST], "holds"),
    ("most", [AGAINST, CLEAR, AGAINST], "fails"),
    ("most", [[0.05, 0.10, 0.07], [0.05, 0.10, 0.07], OPEN], "undecided"),  # which two is not given beforehand
    ("average", [CLEAR, CLEAR, [-0.01, -0.02, -0.015]], "holds"),
    ("average", [CLEAR, AGAINST, OPEN], "undecided"),
])  # fmt: skip
def test_all_most_or_the_average_of_cases(cases, gaps, stated):
    """Each status alone with each other one, in either order."""
    assert by_case(gaps, cases=cases)["verdict"] == by_case(gaps[::-1], cases=cases)["verdict"] == stated


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_at_most_four_cases_are_told_and_others_are_hinted_at(n):
    detail = by_case([CLEAR] * n)["detail"]
    assert [f"k = {k}: difference" in detail for k in range(n)] == [k < 4 for k in range(n)]
    assert detail.endswith(" …") == (n > 4)
    assert detail.startswith(f"holds in {n} of {n}: ")


def test_how_many_rivals_are_below_the_base_rate_is_counted():
    values = {}
    for k, rival in enumerate((-0.3, -0.1, 0.2)):
        values["a", "ours", json.dumps({"k": k})] = [0.50, 0.51, 0.53]
        values["a", "base", json.dumps({"k": k})] = [rival, rival + 0.01, rival - 0.011]
    said = beside("greater", each=["params.k"])
    outcome = judge(said, values)
    assert outcome["detail"].endswith("; in 2 of 3 cases the rival is below the base rate")
    assert [case["rival_below_base"] for case in outcome["cases"]] == [True, True, False]
    assert "weak" not in outcome
    del values["a", "ours", '{"k": 2}'], values["a", "base", '{"k": 2}']
    assert judge(said, values)["weak"] == "the rival is below the base rate"


def test_runs_that_lack_the_measure_are_said():
    """A solver that never converges has no time to convergence."""
    lacking = rows({("b", "ours"): [0.1, 0.1, 0.1]}, measure="auc")
    outcome = judge(beside("greater", each=["dataset"]), pd.concat([rows(GOOD), lacking]))
    assert outcome["verdict"] == "holds"
    assert "1 of 2 cases not judged (no rows" in outcome["detail"]
    assert [case.get("absent") for case in outcome["cases"]] == [None, True]


# -- slopes and curves ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("exponents", "bound", "stated"), [
    ([1.49, 1.50, 1.515], [1.4, 1.6], "holds"),
    ([1.49, 1.50, 1.515], [0.9, 1.1], "fails"),
    ([1.49, 1.50, 1.515], [1.49, 1.6], "undecided"),
    ([1.5], [1.4, 1.6], TOO_FEW),
])  # fmt: skip
def test_slope_of_a_power_law(exponents, bound, stated):
    """3 n^exponent at three n, one exponent per seed."""
    values = {("a", "ours", json.dumps({"n": n})): [3 * n**e for e in exponents] for n in (10, 100, 1000)}
    assert judge(claim("slope_between", x="params.n", bound=bound), values)["verdict"] == stated


@pytest.mark.parametrize(("tolerance", "delays"), [
    (0.0, [4 - 6, 7 - 4, 4 - 4]),  # the second never comes so far: that counts as after its last step, 6
    (0.15, [2 - 4, 4 - 2, 4 - 4]),
])  # fmt: skip
def test_delays_of_curves_by_hand(tolerance, delays):
    """Steps 0, 2, 4, 6, at which a curve reaches the last value of the other one less the tolerance."""
    ours = [[0.1, 0.4, 0.5, 0.5], [0.1, 0.2, 0.45, 0.48], [0.1, 0.2, 0.5, 0.6]]
    base = [[0.0, 0.2, 0.35, 0.5], [0.0, 0.4, 0.5, 0.5], [0.0, 0.3, 0.5, 0.5]]
    both = zip((0, 2, 4, 6), np.transpose(ours).tolist(), np.transpose(base).tolist(), strict=True)
    parts = [rows({("a", "ours"): one, ("a", "base"): two}, step=step) for step, one, two in both]
    [case] = judge(beside("earlier", tolerance=tolerance), pd.concat(parts, ignore_index=True))["cases"]
    assert case["numbers"] == approximately(numbers(*map(float, around(delays)), end=0.0))


def test_a_ratio_of_what_may_be_negative_is_not_judged():
    values = {("a", "ours"): [0.5, 0.6, 0.7], ("a", "base"): [0.1, -0.1, 0.2]}
    outcome = judge(beside("ratio_at_least", bound=2), values)
    assert (outcome["verdict"], outcome["detail"]) == ("not judged", "a ratio needs values above 0; 1 of 3 are not")


def test_null_selects_rows_without_the_parameter():
    values = {("a", "ours", '{"k": 2}'): [0.6, 0.7, 0.9], ("a", "ours", "{}"): [0.51, 0.6, 0.8]}
    reference = {"measure": "nllh", "params.k": None}
    said = claim("greater", reference=reference)
    assert judge(said | {"value": OURS | {"params.k": 2}}, values)["verdict"] == "holds"
    assert judge(said | {"value": OURS | reference}, values)["verdict"] != "holds"


# -- rounding, infinite values, runs without a result -------------------------------------------------------------------


@pytest.mark.parametrize("predicate", ["greater", "less"])
@pytest.mark.parametrize("why", [{}, WHY], ids=["by an interval", "by every value"])
def test_rounding_decides_nothing(predicate, why):
    """One sum in two orders: the differences are 2.2e-16, 1.1e-16, 1.1e-16, with an interval above 0 for four such seeds."""
    base = np.array([0.3, 0.6, 0.8, 0.6] * 2)
    ours = base + [1e-16, 2e-16, 2e-16, 2e-16] * 2
    outcome = judge(beside(predicate, **why), {("a", "ours"): list(ours), ("a", "base"): list(base)})
    assert outcome["cases"][0]["numbers"]["value"] == 0
    assert outcome["verdict"] == ("fails" if why else TOO_FEW)
    small = {("a", "ours"): [0.3 + 1e-9, 0.4 + 2e-9, 0.5 + 1e-9], ("a", "base"): [0.3, 0.4, 0.5]}
    assert judge(beside("greater", margin=1e-12), small)["cases"][0]["numbers"]["value"] > 1e-9


def test_infinite_values_are_not_called_the_same():
    outcome = judge(beside("greater"), {("a", "ours"): [0.5, 0.6, 0.7], ("a", "base"): [0.4, -np.inf, 0.6]})
    assert outcome["verdict"] == TOO_FEW
    assert outcome["detail"] == "difference +inf, 3 pairs, not all finite, so that they have no interval"


@pytest.mark.parametrize("status", ["stopped", "failed", "unavailable"])
@pytest.mark.parametrize("said", [claim("at_least", bound=0.3), claim("at_least", bound=0.3, **WHY)])
def test_runs_without_a_result_are_said(said, status):
    """They are of seeds that have no row at all, or of data sets that the claim takes the mean over."""
    frame = rows({("a", "ours"): [0.5, 0.61, 0.7, 0.8, 0.9], ("b", "ours"): [0.5, 0.61, 0.7, 0.8, 0.9]})
    frame.loc[[3, 4, 8, 9], ["status", "reason", "measure", "value"]] = [status, "no memory", None, np.nan]
    reason = f"{'stopped: ' * (status == 'stopped')}no memory"
    assert judge(said, frame)["detail"].endswith(f"; without result: 4 of 10 runs of the value ({reason})")
    assert "no result" not in judge(said, frame[frame["status"] == "ok"])["detail"]


@pytest.mark.parametrize(
    ("state", "detail"), [(("unavailable", "no file"), "no file"), (("stopped", "> 8 s"), "stopped: > 8 s")]
)
def test_the_reason_why_rows_with_keys_lack_is_said(state, detail):
    """A run without a result has no keys. One that stopped is not judged by its limit."""
    outcome = judge(claim("at_least", bound=0.3) | {"value": OURS | {"keys.year": 2016}}, {("a", "ours"): state})
    assert (outcome["verdict"], outcome["detail"], outcome["absent"]) == ("not judged", detail, False)


def test_the_finding_on_a_measure_is_the_first_claim_that_the_rows_decide():
    said = {"open": beside("greater", margin=0.1), "lower": beside("less"), "higher": beside("greater")}
    claims = {name: one | {"claim": f"ours is {name}\n", "experiment": "e"} for name, one in said.items()}
    claims["another"] = claims["higher"] | {"experiment": "other"}
    on_e = judging.claims_on(claims, "e")
    for values, expected in ((GOOD, {"nllh": "Fails: ours is lower"}), (ONE, {})):
        assert findings(on_e, judging.judge_all(on_e, Rows(rows(values)))) == expected
