"""What the pages say of claims, and how they draw them."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from reported_trial import VALUES, rows

from agglearn_workflow.claims import judging, statements
from agglearn_workflow.claims.judging import PREDICATES, judge_case
from agglearn_workflow.claims.samples import Rows, Sample
from agglearn_workflow.claims.statements import LABEL, MAX_CASES, WIDTH, _axis, forest, in_words

BOUNDS = {"at_least": 0.5, "at_most": 0.5, "ratio_at_least": 2.0, "slope_between": [0.9, 1.1]}


def claim_of(predicate: str, **more) -> dict:
    """A claim with its verdict."""
    said = {"predicate": predicate, "claim": "all is well", "note": None, "bound": BOUNDS.get(predicate)}
    outcome = {"value": {"measure": "nllh"}, "detail": "d", "verdict": "holds", "cases": []}
    return said | {"tolerance": 0.01} | outcome | more


def case(claim: dict, values: list[float], label: str = "") -> dict:
    """A judged case whose replicates have these values."""
    sample = Sample(pd.Series(values), None, np.array(values), 0.0)
    return {"case": label, **judge_case(claim, sample)}


def described(claim: dict, names=None, seeds=3, spent=0.0) -> dict:
    return statements.describe_claim(claim, claim, seeds, names or {}, spent)


# -- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("predicate", "more", "values", "words"), [
    ("greater", {"tolerance": 0.0}, [0.19, 0.20, 0.21], "higher by 0.2 (95 %: 0.175 to 0.225)"),
    ("less", {"tolerance": 0.0}, [-0.19, -0.20, -0.21], "lower by 0.2 (95 %: 0.175 to 0.225)"),
    ("less", {}, [0.19, 0.20, 0.21], "higher by 0.2 (95 %: 0.175 to 0.225); 0.01 are allowed"),
    ("greater", {"tolerance": 0.0}, [-0.1, 0.0, 0.15], "higher by 0.0167 (95 %: lower by 0.296 to higher by 0.329)"),
    ("greater", {"tolerance": 0.0, "margin": 0.05}, [0.2] * 2 + [0.2001], "higher by 0.200 (95 %: 0.200 to 0.200); 0.05 more are asked for"),
    ("within", {}, [0.001, 0.002, 0.003], "the difference is 0.002 (95 %: −4.84 × 10⁻⁴ to 0.00448); up to 0.01 counts as none"),
    ("at_least", {}, [0.6, 0.61, 0.62], "0.61 (95 %: 0.585 to 0.635); the claim asks for at least 0.5"),
    ("at_most", {}, [0.4, 0.4, 0.4], "0.4; the claim asks for at most 0.5"),
    ("ratio_at_least", {}, list(np.log([3.0, 3.0, 3.001])), "3.00 times as large (95 %: 3.00 to 3.00); the claim asks for at least 2"),
    ("slope_between", {}, [1.0, 1.01, 1.02], "the slope is 1.01 (95 %: 0.985 to 1.03); the claim asks for 0.9 to 1.1"),
    ("earlier", {}, [-10, -12, -14], "12 steps earlier (95 %: −17.0 to −7.03)"),
])  # fmt: skip
def test_the_number_that_decides_is_said_in_words(predicate, more, values, words):
    claim = claim_of(predicate, **more)
    assert in_words(claim, case(claim, values)) == words


def test_every_text_of_a_claim_for_the_pages():
    sides = {side: {"measure": "nllh", "method": m} for side, m in (("value", "ours"), ("reference", "base"))}
    entry = {"predicate": "greater", **sides, "each": ["dataset"], "margin": 0.02, "replicates": "part"}
    judgement = judging.judge(entry | {"replicates": "seed"}, Rows(rows(VALUES)))
    judgement |= {"claim": "ours wins", "predicate": "greater", "why": None, "margin": 0.02}
    shown = statements.describe_claim(judgement, entry, 5, {"a": "First", "ours": "Ours"}, spent=3600.0)
    assert shown.pop("forest").count("<circle") == 3
    deciding = judgement["cases"][0]["deciding"]
    minutes = round(3600 * (deciding / 3 - 1) / 60)
    assert shown == {
        "sentence": "Ours wins.",
        "decisive": "Holds in 1 of 3 cases. The least favourable, First: higher by 0.0133 "
                    "(95 %: lower by 0.0492 to higher by 0.0758); 0.02 more are asked for.",
        "why": "",
        "open": f"{deciding} replicates in place of 3 would decide it, if mean and spread stay as they are. "
                f"They take {minutes // 60} h {minutes % 60} min more. 1 of 4 cases have too few replicates or no interval.",
        "rests": "The interval is over parts of the tests of 5 seeds. Other seeds may differ by more.",
        "lines": [
            "First: higher by 0.0133 (95 %: lower by 0.0492 to higher by 0.0758); 0.02 more are asked for (undecided)",
            "bb: higher by 0.1 (95 %: 0.0876 to 0.112); 0.02 more are asked for (holds)",
            "cc: lower by 0.05; 0.02 more are asked for (undecided at this scale)",
            "dd: boom (not judged)",
        ],
        "query": 'greater {"value": {"measure": "nllh", "method": "ours"}, "reference": {"measure": "nllh", "method": "base"}, '
                 '"each": ["dataset"], "margin": 0.02}',
        "of_time": False,
    }  # fmt: skip


PARTS = {"replicates": "part", "verdict": "fails"}
LOST = {"verdict": "not judged"}


@pytest.mark.parametrize(("part", "more", "text"), [
    ("sentence", {"claim": "λ is chosen"}, "λ is chosen."),  # the capital of a symbol is another symbol
    ("sentence", {"claim": "ε is 1."}, "ε is 1."),
    ("sentence", {"claim": "all is well"}, "All is well."),
    ("sentence", {"claim": "A is B"}, "A is B."),
    ("why", {"verdict": "fails", "why": "The sample is small."}, "The sample is small."),
    ("why", {"verdict": "fails"}, "No reason is stated yet."),
    ("why", {"verdict": "undecided", "why": "The sample is small."}, ""),
    ("why", {"verdict": "holds", "why": "The sample is small."}, ""),
    ("rests", PARTS | {"seeds": 1}, "The interval is over parts of the tests of one seed. Other seeds may differ by more."),
    ("rests", PARTS | {"verdict": "holds"}, "The interval is over parts of the tests of 2 seeds. Other seeds may differ by more."),
    ("rests", PARTS | LOST, ""),
    ("rests", {"replicates": "seed"}, ""),
    ("decisive", LOST | {"detail": "a.gz cannot be had (x: no file)"}, "Missing: a.gz cannot be had. The first page says how to get it."),
    ("decisive", LOST | {"detail": "make archive ARGS=e computes it"}, "Not archived: make archive ARGS=e computes it."),
    ("decisive", LOST | {"detail": "no rows for {}", "absent": True}, "No run at this scale has such a result."),
])  # fmt: skip
def test_each_part_of_what_is_said(part, more, text):
    assert described(claim_of("at_least", **more), seeds=more.get("seeds", 2))[part] == text


def test_the_least_favourable_case_is_that_of_the_worst_verdict_and_the_smallest_p_value():
    claim = claim_of("at_least", verdict="fails")
    middles = {"a": 0.61, "b": 0.31, "c": 0.21}
    claim["cases"] = [case(claim, [v - 0.01, v, v + 0.01], label) for label, v in middles.items()]
    claim["cases"].append(case(claim, [0.51, 0.3, 0.6], "d"))
    assert [case["verdict"] for case in claim["cases"]] == ["holds", "fails", "fails", "undecided"]
    shown = described(claim)
    assert shown["decisive"].startswith("Holds in 1 of 4 cases. The least favourable, c: 0.21 (95 %: 0.185 to 0.235)")
    assert shown["open"] == ""


def test_the_hardest_of_the_open_cases_says_how_many_replicates_are_needed():
    """Ten times as many are more than twice as many, whatever their number; one that is never decided comes before all."""
    cases = {
        (n, m): {"case": "", "verdict": "undecided", "detail": "d", "p_true": 0.5, "replicates": n, "deciding": m}
        for n, m in ((50, 100), (3, 30), (4, None))
    }
    claim = claim_of("at_least", verdict="undecided", cases=[cases[50, 100], cases[3, 30]])
    assert described(claim, spent=60.0)["open"] == (
        "30 replicates in place of 3 would decide it, if mean and spread stay as they are. They take 9 min more."
    )
    never = described(claim | {"cases": [cases[50, 100], cases[4, None]]})["open"]
    assert never.startswith("Even 1,000 replicates would not decide it")


def test_an_experiment_outside_the_run_is_named_with_its_command():
    """The first page lists what this run lacks, and not what was never asked for."""
    claim = claim_of("at_least", experiment="e")
    entry = judging._absent("c", claim)
    assert statements.describe_claim(entry, claim, 3, {}, 0.0)["decisive"] == (
        "Missing: experiment e is not in this run. make reproduce ARGS=e computes it."
    )


def test_cases_carry_names_and_times_their_unit():
    claim = claim_of("at_most", value={"measure": "seconds"})
    claim["cases"] = [case(claim, [v, v + 0.01, v + 0.02], f"{d}, ε 3") for v, d in ((0.4, "adult"), (0.3, "bank"))]
    shown = described(claim, {"adult": "Adult (1994)", "bank": "Bank"})
    assert shown["of_time"]
    line = "Adult (1994), ε 3: 0.41 s (95 %: 0.385 to 0.435); the claim asks for at most 0.5 s (holds)"
    assert shown["lines"][0] == line


@pytest.mark.parametrize(("value", "reference", "words"), [
    ({"method": "amm"}, {"method": "cardinality"}, "As long for AMM as for cardinality (95 %"),
    ({"method": ["amm", "llp"]}, {"method": "cardinality"}, "As long as for cardinality (95 %"),
    ({"measure": "gibbs_seconds"}, {"measure": "map_seconds"}, "As long for Gibbs time as for MAP time (95 %"),
    ({"params.bag_size": 256}, {"params.bag_size": 32}, "As long for bag size 256 as for bag size 32 (95 %"),
    ({"dataset": "adult"}, {"dataset": "bank"}, "As long for Adult (1994) as for bank (95 %"),
])  # fmt: skip
def test_a_multiple_names_what_it_compares(value, reference, words):
    sides = {"value": {"measure": "seconds"} | value, "reference": {"measure": "seconds"} | reference}
    claim = claim_of("ratio_at_least", verdict="fails", **sides)
    claim["cases"] = [case(claim, [-0.01, 0.0, 0.01])]
    shown = described(claim, {"adult": "Adult (1994)", "amm": "AMM"})["decisive"]
    assert shown.startswith(words)
    assert shown.endswith("; the claim asks for at least 2.")


# -- drawings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predicate", PREDICATES)
def test_every_predicate_is_drawn_with_its_region(predicate):
    claim = claim_of(predicate)
    judged, region = case(claim, [0.3, 0.31, 0.33]), PREDICATES[predicate].region(claim)
    ends = [judged["numbers"][end] is not None for end in ("value", "from", "to")]
    assert ends == [True, *np.isfinite([region.low, region.high])]
    ElementTree.fromstring(forest(claim | {"cases": [judged]}))


def test_the_drawing_has_estimates_intervals_and_the_region():
    claim = claim_of("at_least")
    cases = [case(claim, [0.6, 0.61, 0.62], "first"), case(claim, [0.2, 0.3, 0.4], "second & last")]
    root = ElementTree.fromstring(forest(claim | {"cases": cases}))
    assert [t.text for t in root.iter("text")] == ["first", "second & last", "0.5"]
    bound, [first, second] = float(root.find("line").get("x1")), [float(c.get("cx")) for c in root.iter("circle")]
    assert second < bound < first  # the first is where the claim is true
    assert float(root.find("rect").get("x")) == pytest.approx(bound)
    for group, middle, judged in zip(root.iter("g"), (first, second), cases, strict=True):
        line = group.find("line")
        assert float(line.get("x1")) < middle < float(line.get("x2"))
        assert group.get("class") == judged["verdict"].split()[0]


def test_many_cases_are_cut_and_none_is_no_drawing():
    claim = claim_of("at_least")
    cases = [case(claim, [0.6, 0.61, 0.62], str(k)) for k in range(MAX_CASES + 3)]
    root = ElementTree.fromstring(forest(claim | {"cases": cases}))
    assert len(list(root.iter("circle"))) == MAX_CASES
    assert "and 3 more" in [t.text for t in root.iter("text")]
    assert forest(claim | {"cases": [{"case": "", "verdict": "not judged", "detail": "no data"}]}) == ""


@pytest.mark.parametrize(("value", "low", "high", "start", "end"), [
    (0.5, 0.2, 0.8, 0.2, 0.8),
    (-0.5, -0.8, -0.2, -0.8, -0.2),
    (3.0, -100.0, 100.0, 0.0, 6.0),
    (0.0, -100.0, 100.0, -1.0, 1.0),
    (-2.0, -100.0, 100.0, -4.0, 0.0),
])  # fmt: skip
def test_an_axis_shows_an_interval_as_far_as_the_estimates_spread_and_a_margin(value, low, high, start, end):
    place, first, last = _axis([{"value": value, "low": low, "high": high, "from": None, "to": None}], float)
    assert (first, last) == (LABEL, WIDTH)
    pad, margin = 0.06 * (end - start), (last - first) * 0.06 / 1.12
    places = [place(x) for x in (start - pad, start, end, end + pad)]
    assert places == pytest.approx([first, first + margin, last - margin, last])
