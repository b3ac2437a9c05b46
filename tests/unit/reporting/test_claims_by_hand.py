"""Every field of a judged claim and of its sentence, with numbers by hand: cases of different numbers of seeds, both signs."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_reporting import rows

from agglearn_workflow.claims import judging, statements
from agglearn_workflow.claims.samples import Rows, Sample

T2, T4 = 4.30265273, 2.776445105  # 97.5 % points of Student's t with 2 and 4 degrees of freedom
OURS, BASE = {"measure": "nllh", "method": "ours"}, {"measure": "nllh", "method": "base"}
VALUES = {
    ("a", "ours"): [0.40, 0.43, 0.41, 0.46, 0.45], ("a", "base"): [0.39, 0.44, 0.37],  # differences 0.01, −0.01, 0.04
    ("bb", "ours"): [0.50, 0.52, 0.51, 0.56, 0.55], ("bb", "base"): [0.40, 0.43, 0.40, 0.47, 0.44],  # 0.10, 0.09, 0.11, 0.09, 0.11
    ("cc", "ours"): [0.30], ("cc", "base"): [0.35],
    ("dd", "ours"): [0.30, 0.31], ("dd", "base"): ("failed", "boom"),
}  # fmt: skip


def below(x: float) -> float:
    """P(T ≤ x) of Student's t with two degrees of freedom, in closed form."""
    return 0.5 + x / (2 * math.sqrt(2 + x**2))


def judged(claim: dict, values=VALUES) -> dict:
    return judging.judge(claim, Rows(rows(values)))


def numbers(value, low=None, high=None, start=None, end=None) -> dict:
    return {"value": value, "low": low, "high": high, "from": start, "to": end}


def approximately(value):
    if isinstance(value, dict):
        return {key: approximately(inner) for key, inner in value.items()}
    return pytest.approx(value, rel=1e-6) if isinstance(value, float) else value


def test_every_field_of_every_case():
    claim = {"predicate": "greater", "value": OURS, "reference": BASE, "each": ["dataset"], "margin": 0.02}
    outcome = judged(claim)
    a, bb, cc, dd = outcome["cases"]
    mean, error = (
        0.04 / 3,
        math.sqrt((0.01 - 0.04 / 3) ** 2 / 2 + (0.01 + 0.04 / 3) ** 2 / 2 + (0.04 - 0.04 / 3) ** 2 / 2) / math.sqrt(3),
    )
    tail = below((0.02 - mean) / error)  # that the mean is at most the margin
    spread = error * math.sqrt(3)
    deciding = next(n for n in range(4, 2000) if stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) < 0.02 - mean)
    assert a == approximately({
        "case": "a", "verdict": "undecided", "p_false": tail, "p_true": 1 - tail, "rival_below_base": False,
        "numbers": numbers(mean, mean - T2 * error, mean + T2 * error, 0.02),
        "detail": "difference +0.01333 [-0.04918, +0.07585], margin 0.02, 3 pairs; 2 values without a partner left out",
        "replicates": 3, "deciding": deciding,
    })  # fmt: skip
    half = T4 * 0.01 / math.sqrt(5)  # of 0.10, 0.09, 0.11, 0.09, 0.11
    t = (0.1 - 0.02) / (0.01 / math.sqrt(5))  # √320, with four degrees of freedom
    tail = 0.5 - 3 / 8 * t / 9 * (1 - 320 / (12 * 81))
    assert bb == {
        "case": "bb", "verdict": "holds", "p_false": pytest.approx(tail, rel=1e-6), "p_true": pytest.approx(1, abs=1e-4),
        "rival_below_base": False, "numbers": approximately(numbers(0.1, 0.1 - half, 0.1 + half, 0.02)),
        "detail": "difference +0.1 [+0.08758, +0.1124], margin 0.02, 5 pairs",
    }  # fmt: skip
    assert cc == approximately({
        "case": "cc", "verdict": "undecided at this scale", "p_false": 1.0, "p_true": 1.0, "rival_below_base": False,
        "numbers": numbers(-0.05, start=0.02), "detail": "difference -0.05, margin 0.02, 1 pair; a verdict needs 3",
    })  # fmt: skip
    assert dd == {"case": "dd", "verdict": "not judged", "detail": "boom", "absent": False}
    assert outcome.keys() == {"verdict", "detail", "cases"}
    assert outcome["verdict"] == "undecided"
    assert outcome["detail"] == (
        "holds in 1 of 3, 1 undecided, 1 undecided at this scale: "
        f"a: {a['detail']}; cc: {cc['detail']}; bb: {bb['detail']}; 1 of 4 cases not judged (boom)"
    )


@pytest.mark.parametrize(
    ("verdicts", "stated"),
    [
        ("hold few", "undecided at this scale"),
        ("few few", "undecided at this scale"),
        ("hold open few", "undecided"),
        ("open few", "undecided"),
        ("hold open", "undecided"),
        ("hold fail few", "fails"),
        ("hold hold", "holds"),
    ],
)
def test_cases_without_an_interval_need_a_larger_scale_unless_others_are_open(verdicts, stated):
    """Each status alone with each other one, in either order."""
    gaps = {"hold": [0.10, 0.11, 0.12], "few": [0.1], "open": [0.1, -0.1, 0.02], "fail": [-0.1000, -0.1001, -0.1002]}
    for order in (verdicts.split(), verdicts.split()[::-1]):
        values = {}
        for k, kind in enumerate(order):
            values["a", "ours", json.dumps({"k": k})] = gaps[kind]
            values["a", "base", json.dumps({"k": k})] = [0.0] * len(gaps[kind])
        claim = {"predicate": "greater", "value": OURS, "reference": BASE, "each": ["params.k"]}
        assert judged(claim, values)["verdict"] == stated, order


LOGS = np.log([0.40 / 0.39, 0.43 / 0.44, 0.41 / 0.37])


@pytest.mark.parametrize(
    ("claim", "sample", "start", "end", "bound", "pairs"),
    [
        ({"predicate": "less", "tolerance": 0.2}, [0.01, -0.01, 0.04], None, 0.2, ", tolerance 0.2", "pairs"),
        ({"predicate": "less", "margin": 0.05}, [0.01, -0.01, 0.04], None, -0.05, ", margin 0.05", "pairs"),
        ({"predicate": "greater", "margin": 0.05}, [0.01, -0.01, 0.04], 0.05, None, ", margin 0.05", "pairs"),
        ({"predicate": "greater", "tolerance": 0.1}, [0.01, -0.01, 0.04], -0.1, None, ", tolerance 0.1", "pairs"),
        ({"predicate": "within", "tolerance": 0.2}, [0.01, -0.01, 0.04], -0.2, 0.2, ", tolerance 0.2", "pairs"),
        ({"predicate": "ratio_at_least", "bound": 1.2}, LOGS, 1.2, None, " against 1.2", "pairs"),
        ({"predicate": "at_least", "bound": 0.3, "value": BASE}, [0.39, 0.44, 0.37], 0.3, None, " against 0.3", "replicates"),
        ({"predicate": "at_most", "bound": -0.3, "value": BASE}, [0.39, 0.44, 0.37], None, -0.3, " against -0.3", "replicates"),
    ],
)  # fmt: skip
def test_the_numbers_of_every_predicate(claim, sample, start, end, bound, pairs):
    """Mean, interval and region of three replicates; a ratio is that of geometric means."""
    sides = {"value": OURS, "reference": BASE} if pairs == "pairs" else {}
    [case] = judged(
        {**sides, **claim, "margin": claim.get("margin", 0.0)}, {k: v for k, v in VALUES.items() if k[0] == "a"}
    )["cases"]
    mean = sum(sample) / 3
    half = T2 * math.sqrt(sum((x - mean) ** 2 for x in sample) / 2 / 3)
    scale = math.exp if claim["predicate"] == "ratio_at_least" else float
    assert case["numbers"] == approximately(numbers(scale(mean), scale(mean - half), scale(mean + half), start, end))
    assert f"{bound}, " in case["detail"]
    assert f", 3 {pairs}" in case["detail"]


@pytest.mark.parametrize(
    ("measure", "predicate", "rival", "is_weak"),
    [
        ("auc", "greater", 0.49, True),
        ("auc", "greater", 0.51, False),
        ("auc_of_part", "greater", 0.49, True),
        ("nllh", "greater", -0.01, True),
        ("nllh", "greater", 0.01, False),
        ("nllh", "ratio_at_least", 0.01, False),
        ("nmse", "less", 1.01, True),  # its rival is the reference
        ("nmse", "less", 0.99, False),
        ("nmse", "greater", 0.99, False),  # here it is the value, which is 2 more
        ("auc", "less", 0.49, False),
        ("rmse", "greater", -1.0, False),
    ],
)
def test_a_win_over_a_rival_without_skill_is_weak(measure, predicate, rival, is_weak):
    """No skill is an AUC of one half, an NLLH of 0, and a squared error of the variance."""
    spread = np.array([-0.001, 0.0, 0.001, 0.002, -0.002])
    ours = rival - 2 if (measure, predicate) == ("nmse", "greater") else rival + 0.3
    frame = rows({("a", "ours"): list(ours + spread), ("a", "base"): list(rival + spread[::-1])}, measure=measure)
    claim = {
        "predicate": predicate,
        "bound": 1.0,
        "value": OURS | {"measure": measure},
        "reference": BASE | {"measure": measure},
    }
    outcome = judging.judge(claim, Rows(frame))
    assert ("weak" in outcome) is is_weak
    assert outcome["cases"][0].get("rival_below_base", False) is is_weak


def test_every_text_of_a_claim_for_the_pages():
    entry = {
        "predicate": "greater",
        "value": OURS,
        "reference": BASE,
        "each": ["dataset"],
        "margin": 0.02,
        "replicates": "part",
    }
    judgement = judged(entry | {"replicates": "seed"}) | {
        "claim": "ours wins",
        "predicate": "greater",
        "why": None,
        "margin": 0.02,
    }
    a, *_ = judgement["cases"]
    shown = statements.describe_claim(judgement, entry, 5, {"a": "First", "ours": "Ours"}, spent=3600.0)
    drawing = shown.pop("forest")
    assert drawing.count("<circle") == 3
    minutes = round(3600 * (a["deciding"] / 3 - 1) / 60)
    hours = f"{minutes // 60} h {minutes % 60} min"
    worst = "lower by 0.05; 0.02 more are asked for"
    assert shown == {
        "sentence": "Ours wins.",
        "decisive": "Holds in 1 of 3 cases. The least favourable, First: higher by 0.0133 "
                    "(95 %: lower by 0.0492 to higher by 0.0758); 0.02 more are asked for.",
        "why": "",
        "open": f"{a['deciding']} replicates in place of 3 would decide it, if mean and spread stay as they are. "
                f"They take {hours} more. 1 of 4 cases have too few replicates or no interval.",
        "rests": "The interval is over parts of the tests of 5 seeds. Other seeds may differ by more.",
        "lines": [
            "First: higher by 0.0133 (95 %: lower by 0.0492 to higher by 0.0758); 0.02 more are asked for (undecided)",
            "bb: higher by 0.1 (95 %: 0.0876 to 0.112); 0.02 more are asked for (holds)",
            f"cc: {worst} (undecided at this scale)",
            "dd: boom (not judged)",
        ],
        "query": 'greater {"value": {"measure": "nllh", "method": "ours"}, "reference": {"measure": "nllh", "method": "base"}, '
                 '"each": ["dataset"], "margin": 0.02}',
        "of_time": False,
    }  # fmt: skip


def test_the_least_favourable_case_is_that_of_the_worst_verdict_and_the_smallest_p_value():
    claim = {"predicate": "at_least", "bound": 0.5, "value": {"measure": "nllh"}, "each": ["dataset"]}
    values = {
        ("a", "x"): [0.60, 0.61, 0.62],
        ("b", "x"): [0.30, 0.31, 0.32],
        ("c", "x"): [0.20, 0.21, 0.22],
        ("d", "x"): [0.51, 0.3, 0.6],
    }
    judgement = judged(claim, values) | {"claim": "c", "predicate": "at_least", "why": "w"}
    assert [case["verdict"] for case in judgement["cases"]] == ["holds", "fails", "fails", "undecided"]
    shown = statements.describe_claim(judgement, claim, 3, {}, 0.0)
    assert shown["decisive"].startswith("Holds in 1 of 4 cases. The least favourable, c: 0.21 (95 %: 0.185 to 0.235)")
    assert shown["why"] == "w"


def test_marked_runs_are_counted_once_each():
    """Three runs of two, one and four rows, two of them marked."""
    frame = pd.DataFrame({"run": list("aabcccc"), "mark": ["old", "old", None, "older", "older", "older", "older"]})
    outcome = {"verdict": "holds", "detail": "d"}
    assert judging._with_mark(outcome, frame) == {
        "verdict": "holds",
        "detail": "d; 2 of 3 runs of the experiment: old",
    }
    assert judging._with_mark(outcome | {"verdict": "not judged"}, frame)["detail"] == "d"


def test_how_many_rivals_are_below_the_base_rate_is_counted():
    values = {}
    for k, rival in enumerate((-0.3, -0.1, 0.2)):
        values["a", "ours", json.dumps({"k": k})] = [0.50, 0.51, 0.53]
        values["a", "base", json.dumps({"k": k})] = [rival, rival + 0.01, rival - 0.011]
    claim = {"predicate": "greater", "value": OURS, "reference": BASE, "each": ["params.k"]}
    outcome = judged(claim, values)
    assert outcome["detail"].endswith("; in 2 of 3 cases the rival is below the base rate")
    assert [case["rival_below_base"] for case in outcome["cases"]] == [True, True, False]
    assert "weak" not in outcome
    del values["a", "ours", '{"k": 2}'], values["a", "base", '{"k": 2}']
    assert judged(claim, values)["weak"] == "the rival is below the base rate"


@pytest.mark.parametrize("wide", ["ours", "base"])
def test_the_larger_overlap_of_two_sides_and_of_two_cases_counts(wide):
    """Splits that overlap by 0.25 widen the interval by √((1/3 + 1/4)·3), on whatever side they are."""
    differences = [0.01, -0.01, 0.04]
    mean = sum(differences) / 3
    half = T2 * math.sqrt(sum((x - mean) ** 2 for x in differences) / 2 * (1 / 3 + 0.25))
    frame = rows({k: v for k, v in VALUES.items() if k[0] == "a"})
    frame.loc[frame["method"] == wide, "overlap"] = 0.25
    claim = {"predicate": "greater", "value": OURS, "reference": BASE}
    assert judging.judge(claim, Rows(frame))["cases"][0]["numbers"]["low"] == pytest.approx(mean - half)
    both = pd.concat([frame.assign(dataset=name, overlap=0.25 if name == wide else 0.0) for name in ("base", "ours")])
    both["run"] += both["dataset"]
    averaged = judging.judge(claim | {"each": ["dataset"], "cases": "average"}, Rows(both.reset_index(drop=True)))
    assert averaged["detail"].startswith(
        f"on average over 2 cases: difference {mean:+.4g} [{mean - half:+.4g}, {mean + half:+.4g}]"
    )


@pytest.mark.parametrize(
    ("tolerance", "delays"),
    [
        (0.0, [4 - 6, 7 - 4, 4 - 4]),  # the second never comes so far: that counts as after its last step, 6
        (0.15, [2 - 4, 4 - 2, 4 - 4]),
    ],
)
def test_delays_of_curves_by_hand(tolerance, delays):
    """Steps 0, 2, 4, 6, at which a curve reaches the last value of the other one less the tolerance."""
    ours = [[0.1, 0.4, 0.5, 0.5], [0.1, 0.2, 0.45, 0.48], [0.1, 0.2, 0.5, 0.6]]
    base = [[0.0, 0.2, 0.35, 0.5], [0.0, 0.4, 0.5, 0.5], [0.0, 0.3, 0.5, 0.5]]
    frame = pd.concat(
        rows({("a", method): [end]}, step=step).assign(seed=seed)
        for method, curves in (("ours", ours), ("base", base))
        for seed, curve in enumerate(curves)
        for step, end in zip((0, 2, 4, 6), curve, strict=True)
    )
    claim = {"predicate": "earlier", "value": OURS, "reference": BASE, "tolerance": tolerance}
    [case] = judging.judge(claim, Rows(frame.reset_index(drop=True)))["cases"]
    mean = sum(delays) / 3
    half = T2 * math.sqrt(sum((x - mean) ** 2 for x in delays) / 2 / 3)
    assert case["numbers"] == approximately(numbers(mean, mean - half, mean + half, end=0.0))


def test_the_hardest_of_the_open_cases_says_how_many_replicates_are_needed():
    """Ten times as many are more than twice as many, whatever their number; one that is never decided comes before all."""
    case = {"case": "", "verdict": "undecided", "detail": "d", "p_true": 0.5, "numbers": None}
    few, many = case | {"replicates": 3, "deciding": 30}, case | {"replicates": 50, "deciding": 100}
    claim = {"verdict": "undecided", "cases": [many, few]}
    assert statements._open(claim, 60.0) == (
        "30 replicates in place of 3 would decide it, if mean and spread stay as they are. They take 9 min more."
    )
    never = case | {"replicates": 4, "deciding": None}
    assert statements._open(claim | {"cases": [many, never]}, 60.0).startswith(
        "Even 1,000 replicates would not decide it"
    )


@pytest.mark.parametrize(("distance", "n"), [(2.4, 4), (1.6, 4), (1.58, 5), (1.25, 5), (1.23, 6), (0.06, None)])
def test_the_number_of_replicates_that_decide_by_hand(distance, n):
    """Of a spread of 1, t/√n is 2.484, 1.591, 1.242 and 1.049 for 3, 4, 5 and 6 replicates, and 0.062 for 1,000."""
    values = pd.Series([-1.0, 0.0, 1.0])
    assert Sample(values, None, values.to_numpy(), 0.0).deciding(distance) == n


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_at_most_four_cases_are_told_and_others_are_hinted_at(n):
    values = {
        ("a", m, json.dumps({"k": k})): [v, v + 0.01, v + 0.02]
        for k in range(n)
        for m, v in (("ours", 0.5), ("base", 0.3 + 0.001 * k))
    }
    for k in range(n):
        values["a", "ours", json.dumps({"k": k})][0] += 0.001
    detail = judged({"predicate": "greater", "value": OURS, "reference": BASE, "each": ["params.k"]}, values)["detail"]
    assert [f"k = {k}: difference" in detail for k in range(n)] == [k < 4 for k in range(n)]
    assert detail.endswith(" …") == (n > 4)
    assert detail.startswith(f"holds in {n} of {n}: ")
