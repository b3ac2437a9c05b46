"""What the pages show of claims, findings and figures."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from jinja2 import Environment, PackageLoader
from samples import ROOT, shipped_config
from scipy import stats

from agglearn.evaluation.verdicts import Region
from agglearn_workflow.claims import judging, statements
from agglearn_workflow.claims.judging import PREDICATES, judge_case
from agglearn_workflow.claims.samples import Sample
from agglearn_workflow.claims.statements import LABEL, MAX_CASES, WIDTH, _axis, forest, in_words
from agglearn_workflow.figures import charts, drawing
from agglearn_workflow.plan import Plan
from agglearn_workflow.site import pages

BOUNDS = {"at_least": 0.5, "at_most": 0.5, "ratio_at_least": 2.0, "slope_between": [0.9, 1.1]}


def claim_of(predicate: str, **more) -> dict:
    return {
        "predicate": predicate,
        "claim": "all is well",
        "note": None,
        "bound": BOUNDS.get(predicate),
        "tolerance": 0.01,
    } | more


def case(claim: dict, values: list[float], label: str = "") -> dict:
    """A judged case whose replicates have these values."""
    sample = Sample(pd.Series(values), None, np.array(values), 0.0)
    return {"case": label, **judge_case(claim, sample)}


@pytest.mark.parametrize(
    ("predicate", "more", "values", "words"),
    [
        ("greater", {"tolerance": 0.0}, [0.19, 0.20, 0.21], "higher by 0.2 (95 %: 0.175 to 0.225)"),
        ("less", {"tolerance": 0.0}, [-0.19, -0.20, -0.21], "lower by 0.2 (95 %: 0.175 to 0.225)"),
        ("less", {}, [0.19, 0.20, 0.21], "higher by 0.2 (95 %: 0.175 to 0.225); 0.01 are allowed"),
        ("greater", {"tolerance": 0.0}, [-0.1, 0.0, 0.15], "higher by 0.0167 (95 %: lower by 0.296 to higher by 0.329)"),
        ("greater", {"tolerance": 0.0, "margin": 0.05}, [0.2] * 2 + [0.2001], "higher by 0.2 (95 %: 0.2 to 0.2); 0.05 more are asked for"),
        ("within", {}, [0.001, 0.002, 0.003], "the difference is 0.002 (95 %: −4.84 × 10⁻⁴ to 0.00448); up to 0.01 counts as none"),
        ("at_least", {}, [0.6, 0.61, 0.62], "0.61 (95 %: 0.585 to 0.635); the claim asks for at least 0.5"),
        ("at_most", {}, [0.4, 0.4, 0.4], "0.4; the claim asks for at most 0.5"),
        ("ratio_at_least", {}, list(np.log([3.0, 3.0, 3.001])), "3 times as large (95 %: 3 to 3); the claim asks for at least 2"),
        ("slope_between", {}, [1.0, 1.01, 1.02], "the slope is 1.01 (95 %: 0.985 to 1.03); the claim asks for 0.9 to 1.1"),
        ("earlier", {}, [-10, -12, -14], "12 steps earlier (95 %: −17 to −7.03)"),
    ],
)  # fmt: skip
def test_the_number_that_decides_is_said_in_words(predicate, more, values, words):
    claim = claim_of(predicate, **more)
    assert in_words(claim, case(claim, values)) == words


def test_every_predicate_can_be_said_and_drawn():
    for predicate in PREDICATES:
        claim = claim_of(predicate)
        judged = case(claim, [0.3, 0.31, 0.33])
        assert judged["numbers"]["value"] is not None
        ElementTree.fromstring(forest(claim | {"cases": [judged]}))


def test_the_drawing_has_estimates_intervals_and_the_region():
    claim = claim_of("at_least")
    cases = [case(claim, [0.6, 0.61, 0.62], "first"), case(claim, [0.2, 0.3, 0.4], "second & last")]
    svg = forest(claim | {"cases": cases})
    root = ElementTree.fromstring(svg)
    texts = [t.text for t in root.iter("text")]
    assert texts == ["first", "second & last", "0.5"]
    bound, [first, second] = root.find("line"), [float(c.get("cx")) for c in root.iter("circle")]
    assert second < float(bound.get("x1")) < first  # the first is where the claim is true
    region = root.find("rect")
    assert float(region.get("x")) == pytest.approx(float(bound.get("x1")))
    for group, middle in zip(root.iter("g"), (first, second), strict=True):
        line = group.find("line")
        assert float(line.get("x1")) < middle < float(line.get("x2"))
    assert [g.get("class") for g in root.iter("g")] == [c["verdict"].split()[0] for c in cases]


def test_ratios_are_drawn_and_said_as_ratios():
    numbers = case(claim_of("ratio_at_least"), list(np.log([4.0, 4.1, 4.2])))["numbers"]
    assert numbers["from"] == pytest.approx(2.0)
    assert 4.0 < numbers["value"] < 4.2
    assert numbers["to"] is None


def test_many_cases_are_cut_and_none_is_no_drawing():
    claim = claim_of("at_least")
    cases = [case(claim, [0.6, 0.61, 0.62], str(k)) for k in range(MAX_CASES + 3)]
    root = ElementTree.fromstring(forest(claim | {"cases": cases}))
    assert len(list(root.iter("circle"))) == MAX_CASES
    assert "and 3 more" in [t.text for t in root.iter("text")]
    assert forest(claim | {"cases": [{"case": "", "verdict": "not judged", "detail": "no data"}]}) == ""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("λ is chosen", "λ is chosen."), ("ε is 1.", "ε is 1."), ("all is well", "All is well."), ("A is B", "A is B.")],
)
def test_a_sentence_begins_with_a_capital_unless_with_a_symbol(text, sentence):
    claim = claim_of("at_least", value={"measure": "nllh"}, detail="d", verdict="holds", claim=text)
    shown = statements.describe_claim(claim | {"cases": [case(claim, [0.6, 0.61, 0.62], "a")]}, claim, 3, {}, 0.0)
    assert shown["sentence"] == sentence


def test_a_claim_is_a_sentence_with_the_case_that_speaks_most_against_it():
    claim = claim_of("at_least", value={"measure": "nllh"}, detail="d", verdict="fails")
    cases = [
        case(claim, [0.6, 0.61, 0.62], "good"),
        case(claim, [0.1, 0.11, 0.12], "worst"),
        case(claim, [0.3, 0.31, 0.32], "bad"),
    ]
    shown = statements.describe_claim(claim | {"cases": cases}, claim, 3, {}, 0.0)
    assert shown["sentence"] == "All is well."
    assert shown["decisive"].startswith("Holds in 1 of 3 cases. The least favourable, worst: 0.11 (95 %")
    assert shown["lines"][0] == "good: 0.61 (95 %: 0.585 to 0.635); the claim asks for at least 0.5 (holds)"
    assert '"bound": 0.5' in shown["query"]


@pytest.mark.parametrize(
    ("verdict", "stated", "shown"),
    [
        ("fails", "The sample is small.", "The sample is small."),
        ("fails", None, "No reason is stated yet."),
        ("undecided", "The sample is small.", ""),
        ("holds", "The sample is small.", ""),
    ],
)
def test_what_fails_has_its_reason_and_nothing_else_has_one(verdict, stated, shown):
    claim = claim_of("at_least", value={"measure": "nllh"}, detail="d", cases=[], verdict=verdict, why=stated)
    assert statements.describe_claim(claim, claim, 3, {}, 0.0)["why"] == shown


def test_an_undecided_claim_says_how_many_runs_would_decide_it():
    claim, values = (
        claim_of("at_least", value={"measure": "nllh"}, detail="d", verdict="undecided"),
        [0.4, 0.7, 0.5, 0.6],
    )
    mean, spread = np.mean(values), np.std(values, ddof=1)
    needed = next(n for n in range(5, 999) if stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n) < mean - 0.5)
    shown = statements.describe_claim(claim | {"cases": [case(claim, values)]}, claim, 4, {}, 60.0)["open"]
    assert shown == (
        f"{needed} replicates in place of 4 would decide it, if mean and spread stay as they are. "
        f"They take {60 * (needed / 4 - 1) / 60:.0f} min more."
    )
    decided = case(claim, [0.6, 0.61, 0.62])
    assert statements.describe_claim(claim | {"cases": [decided], "verdict": "holds"}, claim, 3, {}, 0.0)["open"] == ""
    constant = case(claim, [0.6, 0.6, 0.6])
    both = statements.describe_claim(claim | {"cases": [case(claim, values), constant]}, claim, 4, {}, 0.0)["open"]
    assert both.endswith("1 of 2 cases have too few replicates or no interval.")


def test_more_splits_of_the_same_records_may_not_decide():
    values = pd.Series([0.4, 0.7, 0.5, 0.6])
    apart, overlapping = (Sample(values, None, values.to_numpy(), overlap) for overlap in (0.0, 0.25))
    assert apart.deciding(0.05) > 20
    assert overlapping.deciding(0.05) is None  # its half width stays above 1.96 · spread · √0.25
    claim = claim_of("at_least", value={"measure": "nllh"}, detail="d", verdict="undecided")
    judged = {"case": "", **judge_case(claim, overlapping)}
    shown = statements.describe_claim(claim | {"cases": [judged]}, claim, 4, {}, 0.0)["open"]
    assert shown == "Even 1,000 replicates would not decide it, if mean and spread stay as they are."


@pytest.mark.parametrize(
    ("replicates", "seeds", "verdict", "words"),
    [
        ("part", 1, "fails", "over parts of the tests of one seed. Other seeds may differ by more."),
        ("part", 2, "holds", "over parts of the tests of 2 seeds."),
        ("part", 1, "not judged", ""),
        ("seed", 3, "holds", ""),
    ],
)
def test_an_interval_over_parts_of_the_test_says_what_it_rests_on(replicates, seeds, verdict, words):
    claim = claim_of(
        "at_least", value={"measure": "nllh"}, detail="d", cases=[], verdict=verdict, replicates=replicates
    )
    shown = statements.describe_claim(claim, claim, seeds, {}, 0.0)["rests"]
    assert words in shown
    assert bool(words) == bool(shown)


def test_the_page_of_a_source_says_why_its_claims_fail():
    for name, claim in shipped_config()["claims"].items():
        if "why" in claim:
            page = " ".join((ROOT / f"docs/{claim['source']}.md").read_text().split())
            assert f"* `{name}`: {claim['why']}" in page
            assert page.count(f"* `{name}`: ") == 1, f"docs/{claim['source']}.md states another reason for {name}"


def test_verdicts_are_counted_in_their_order():
    claims = [{"verdict": v} for v in ("fails", "holds", "undecided", "holds")]
    assert statements.count_verdicts(claims) == [("holds", 2), ("fails", 1), ("undecided", 1)]


def test_numbers_for_drawings_are_those_of_the_region():
    for predicate in PREDICATES:
        claim, region = claim_of(predicate), PREDICATES[predicate].region(claim_of(predicate))
        assert isinstance(region, Region)
        numbers = case(claim, [0.3, 0.31, 0.33])["numbers"]
        assert [numbers["from"] is None, numbers["to"] is None] == [
            not np.isfinite(region.low),
            not np.isfinite(region.high),
        ]


def test_findings_put_no_script_into_a_page(tmp_path):
    (tmp_path / pages.FINDINGS).mkdir(parents=True)
    text = "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](JavaScript:alert(1)) [b](data:text/html,x) **c** [d](x.html)"
    (tmp_path / pages.FINDINGS / "s.md").write_text(text)
    page = pages.read_findings(tmp_path, tmp_path, "s")["findings"]
    assert not re.search(r"<script|<img|href=.(javascript|data):", page, re.IGNORECASE)
    assert '<strong>c</strong> <a href="x.html">d</a>' in page


@pytest.mark.parametrize("mark", ["", "!"], ids=["link", "image"])
@pytest.mark.parametrize(
    "address", ["javascript:1/alert(1)", "javascript&colon;alert(1)", "&#106;avascript:1", "data:1,a", "file:///a"]
)
def test_links_of_a_page_lead_to_files_and_to_the_web_only(mark, address):
    rendered = pages.render_markdown(f"{mark}[a]({address}) {mark}[b](https://c/d:e) {mark}[f](g.html#h)")
    assert re.findall(r'(?:href|src)="(.*?)"', rendered) == ["#", "https://c/d:e", "g.html#h"]


def test_underscores_inside_words_are_no_emphasis():
    assert "n_test/n_train and <em>more</em>" in pages.render_markdown("n_test/n_train and *more*")


def test_findings_are_text_with_the_numbers_of_the_run(tmp_path):
    page = tmp_path / "config/findings/s.md"
    page.parent.mkdir(parents=True)
    page.write_text(
        "It reaches <!-- e: {measure: nllh, method: a} -->.42\nor <!-- e: {measure: auc} -->−1.5.\n\n* And more.\n"
    )
    found = pages.read_findings(tmp_path, tmp_path, "s")
    assert found["finding"] == "It reaches (.42) or (−1.5)."
    assert pages.ELSEWHERE in found["findings"]
    (tmp_path / "tables").mkdir()
    rows = [["nllh", "a", 0.3456], ["nllh", "b", 0.9], ["auc", "a", -0.0449]]
    pd.DataFrame(rows, columns=["measure", "method", "mean"]).to_csv(tmp_path / "tables/e.csv")
    found = pages.read_findings(tmp_path, tmp_path, "s")
    assert found["finding"] == "It reaches .35 or 0.0."
    assert "<li>And more.</li>" in found["findings"]
    assert not {"<!--", pages.ELSEWHERE} & {found["findings"]}
    assert pages.read_findings(tmp_path, tmp_path, "other") == {"finding": "", "findings": ""}


def test_every_source_has_findings_and_a_headline():
    config = shipped_config()
    for source, paper in config["references"]["papers"].items():
        assert pages.read_findings(ROOT, ROOT / "none", source)["finding"], source
        assert (config["experiments"] | config["claims"])[paper["headline"]]["source"] == source
    assert config["references"]["ladder"] in config["experiments"]


def test_the_first_of_the_figures_below_each_other_that_has_a_result(tmp_path):
    figure, axes = charts.grid(["a", "b"], 3.0)
    axes[0].plot([0, 1])
    path = tmp_path / "f.svg"
    sentence = drawing.sentence("nothing")
    for before, copies in ((0, 1), (0, 2), (1, 2)):
        pictures = [drawing.from_figure(figure, "t") for _ in range(copies)]
        drawing.write(drawing.stack([sentence] * before + pictures, "t"), path)
        assert list(map(float, drawing.first(path).get("viewBox").split())) == pytest.approx([0, 0, 504, 216])
    drawing.write(sentence, path)
    assert drawing.first(path) is None


def test_the_headline_of_a_source_is_its_first_compared_number_beside_the_printed_one(tmp_path):
    (tmp_path / "tables").mkdir()
    plan = Plan(shipped_config() | {"run": ["maxent_table4"]})
    row = {"dataset": "adult", "low": 0.41, "high": 0.43, "measure": "nllh"}
    rows = [
        row | {"method": "maxent", "mean": 0.9, "printed": "0.5", "tolerance": np.nan},
        row | {"method": "logistic", "mean": 0.42, "printed": "0.421", "tolerance": 0.01},
        row | {"method": "maxent", "mean": 0.42, "printed": "0.416", "tolerance": 0.01},
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "tables/maxent_table4.csv")
    plan.experiments["maxent_table4"]["baseline"] = "logistic"
    what = "Maximum entropy, NLLH on Adult (1994 census income)"
    expected = {"what": what, "printed": "printed 0.416", "measured": "measured 0.420 ± 0.010"}
    assert pages._headline(plan, "maxent_table4", tmp_path, []) == expected
    pd.DataFrame(rows[:2]).to_csv(tmp_path / "tables/maxent_table4.csv")
    assert pages._headline(plan, "maxent_table4", tmp_path, []) is None
    assert pages._headline(plan, None, tmp_path, []) is None


def test_the_headline_of_a_source_may_be_a_claim_that_is_judged():
    said = {
        "name": "c",
        "verdict": "holds",
        "place": "Table 1",
        "claim": "at most 1\n",
        "decisive": "Holds in 2 of 2 cases; at most 1.",
    }
    plan = Plan(shipped_config() | {"run": ["maxent_table4"]})
    expected = {"what": "Table 1", "printed": "at most 1", "measured": "holds in 2 of 2 cases"}
    assert pages._headline(plan, "c", None, [said]) == expected
    assert pages._headline(plan, "c", None, [said | {"verdict": "not judged"}]) is None


def test_the_first_page_leads_to_the_pages_of_other_scales(tmp_path):
    """They lie in the results folder itself, or in the folder of their scale."""
    for folder in ("site", "smoke/site", "default/site"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "index.html").touch()
    (tmp_path / "scale.json").write_text('{"scale": "paper"}')
    config = {"results": str(tmp_path), "scale": "default", "from": "code"}
    found = pages._other_scales(config, tmp_path / "default/site")
    assert found == [("smoke", "../../smoke/site/index.html"), ("paper", "../../site/index.html")]


def test_methods_in_the_heads_of_a_table_lead_to_the_pages_of_their_classes():
    table = "<th scope=row rowspan=1>A &amp; B</th><td>A &amp; B</td><th scope=col>C</th>"
    found = pages._with_classes(table, [("A & B", "d/a.html"), ("C", "")])
    assert (
        found == '<th scope=row rowspan=1><a href="d/a.html">A &amp; B</a></th><td>A &amp; B</td><th scope=col>C</th>'
    )


def test_the_first_page_counts_the_verdicts_of_the_archive():
    claims = [
        {"verdict": "undecided", "archived": "holds"},
        {"verdict": "holds"},
        {"verdict": "fails", "archived": "fails"},
    ]
    assert statements.count_verdicts(claims, "archived") == [("holds", 1), ("fails", 1)]
    templates = Environment(loader=PackageLoader("agglearn_workflow"))
    words = templates.get_template("parts.html").module.words
    assert words(statements.count_verdicts(claims, "archived")).strip() == "1 holds, 1 fails"
    assert words([("holds", 2), ("undecided", 1)], True).strip() == "2 hold, 1 is undecided"
    assert '<a href="#failed">2 fail</a>' in words([("fails", 2)], True)


def test_highlighted_lines_are_named_at_their_ends():
    rows = pd.DataFrame(
        [
            {"dataset": "a", "dataset_params": "{}", "method": m, "params": f'{{"k": {k}}}', "observation_params": "{}", "keys": None,
             "measure": "nllh", "step": np.nan, "value": v, "mean": v, "n": 3, "overlap": np.nan, "seed": 0, "reported": np.nan, "unit": ""}
            for m, v in (("ours", 0.5), ("base", 0.5), ("other", 0.1)) for k in (1, 2)
        ]
    )  # fmt: skip
    experiment = {"methods": {"ours": {"name": "Ours"}, "base": {}, "other": {}}, "datasets": {"a": {}}}
    spec = {
        "kind": "line",
        "x": "params.k",
        "y": "nllh",
        "highlight": {"Ours": "ours!", "base": "base!"},
    }
    figure = drawing.draw_chart(charts.Chart(rows, rows, experiment, spec, {}))
    [ax] = figure.axes
    texts = {t.get_text(): t for t in ax.texts}
    assert set(texts) == {"ours!", "base!"}
    heights = [t.xy[1] for t in texts.values()]
    assert abs(heights[0] - heights[1]) > 0.06  # apart, though the lines are one
    assert figure.get_suptitle() == "NLLH: higher is better. Means with 95 % intervals over 3 seeds."
    assert [line.get_color() for line in ax.lines].count("0.75") == 1
    other = spec | {"highlight": {"nobody": "x"}}
    alone = drawing.draw_chart(charts.Chart(rows, rows, experiment, other, {}))
    assert "0.75" not in [line.get_color() for line in alone.axes[0].lines]

    said = drawing.draw_chart(
        charts.Chart(rows, rows, experiment | {"findings": {"nllh": "Fails: ours is better"}}, spec, {})
    )
    assert said.get_suptitle().startswith("Fails: ours is better\nNLLH")


def test_highlighted_series_are_methods_of_their_experiment():
    for name, e in shipped_config()["experiments"].items():
        specs = e.get("figure", [])
        for spec in specs if isinstance(specs, list) else [specs]:
            for series in spec.get("highlight", {}):
                assert any(series.startswith(m.get("name") or key) for key, m in e["methods"].items()), (name, series)


def test_the_last_benchmarks_are_shown(tmp_path):
    assert pages._benchmarks(tmp_path) is None
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/noisy_maxent.txt").write_text("\nratio 2.0\n")
    line = {
        "line": "an iteration",
        "seconds": 0.5,
        "peer": "NumPy",
        "peer_seconds": 2.0,
        "ratio": 4.0,
        "floor_share": None,
    }
    kept = {"date": "2026-11-28", "machine": "two cores", "lines": [line]}
    (tmp_path / "bench/noisy_maxent.json").write_text(json.dumps(kept))
    (tmp_path / "bench/maxent.txt.new").write_text("half of")
    shown = pages._benchmarks(tmp_path)
    assert shown["parts"] == [{"name": "noisy maxent", "text": "ratio 2.0"}]
    assert shown["measured"] == "2026-11-28, two cores"
    assert shown["lines"] == [line]


def test_the_guide_is_linked_where_it_has_been_made(tmp_path):
    assert pages._guide(tmp_path, tmp_path / "site") == ""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.html").write_text("")
    assert pages._guide(tmp_path, tmp_path / "site") == "../docs"
    assert pages._guide(tmp_path, tmp_path / "smoke/site") == "../../docs"


@pytest.mark.parametrize(
    ("detail", "absent", "words"),
    [
        (
            "a.tsv.gz cannot be had (x: no such file)",
            False,
            "Missing: a.tsv.gz cannot be had. The first page says how to get it.",
        ),
        ("make archive ARGS=e computes it", False, "Not archived: make archive ARGS=e computes it."),
        ('no rows for {"measure": "seconds"}', True, "No run at this scale has such a result."),
    ],
)
def test_what_was_not_judged_says_why_in_short(detail, absent, words):
    claim = claim_of(
        "at_least", value={"measure": "nllh"}, detail=detail, absent=absent, cases=[], verdict="not judged"
    )
    assert statements.describe_claim(claim, claim, 3, {}, 0.0)["decisive"] == words


def test_an_experiment_outside_the_run_is_named_with_its_command():
    """The first page lists what this run lacks, and not what was never asked for."""
    claim = claim_of("at_least", value={"measure": "nllh"}, experiment="e")
    entry = judging._absent("c", claim)
    assert statements.describe_claim(entry, claim, 3, {}, 0.0)["decisive"] == (
        "Missing: experiment e is not in this run. make reproduce ARGS=e computes it."
    )


def test_cases_carry_names_and_times_their_unit():
    claim = claim_of("at_most", value={"measure": "seconds"}, detail="d", verdict="holds")
    cases = [case(claim, [0.40, 0.41, 0.42], "adult, ε 3"), case(claim, [0.3, 0.31, 0.32], "bank, ε 3")]
    shown = statements.describe_claim(
        claim | {"cases": cases}, claim, 3, {"adult": "Adult (1994)", "bank": "Bank"}, 0.0
    )
    assert shown["of_time"]
    assert (
        shown["lines"][0]
        == "Adult (1994), ε 3: 0.41 s (95 %: 0.385 to 0.435); the claim asks for at most 0.5 s (holds)"
    )
    ratio = claim_of("ratio_at_least", value={"measure": "seconds"}, detail="d", verdict="holds")
    ratio |= {"cases": [case(ratio, [0.9, 1.0, 1.1])]}
    assert "times as long" in statements.describe_claim(ratio, ratio, 3, {}, 0.0)["decisive"]


@pytest.mark.parametrize(
    ("value", "reference", "words"),
    [
        ({"method": "amm"}, {"method": "cardinality"}, "1 times as long for AMM as for cardinality (95 %"),
        ({"method": ["amm", "llp"]}, {"method": "cardinality"}, "1 times as long as for cardinality (95 %"),
        ({"measure": "gibbs_seconds"}, {"measure": "map_seconds"}, "1 times as long for Gibbs time as for MAP time (95 %"),
        ({"params.bag_size": 256}, {"params.bag_size": 32}, "1 times as long for bag size 256 as for bag size 32 (95 %"),
        ({"dataset": "adult"}, {"dataset": "bank"}, "1 times as long for Adult (1994) as for bank (95 %"),
    ],
)  # fmt: skip
def test_a_multiple_names_what_it_compares(value, reference, words):
    sides = {"value": {"measure": "seconds"} | value, "reference": {"measure": "seconds"} | reference}
    claim = claim_of("ratio_at_least", detail="d", verdict="fails") | sides
    claim |= {"cases": [case(claim, [-0.01, 0.0, 0.01])]}
    shown = statements.describe_claim(claim, claim, 3, {"adult": "Adult (1994)", "amm": "AMM"}, 0.0)
    assert shown["decisive"].startswith(words)
    assert shown["decisive"].endswith("; the claim asks for at least 2.")


@pytest.mark.parametrize("negative", [False, True])
def test_the_axis_of_a_forest_has_the_interval_and_a_margin(negative):
    numbers = {"value": 0.5, "from": None, "to": None, "low": 0.2, "high": 0.8}
    if negative:
        numbers |= {"value": -0.5, "low": -0.8, "high": -0.2}
    place, first, last = _axis([numbers], float)
    assert (first, last) == (LABEL, WIDTH)
    margin = (last - first) * 0.06 / 1.12
    assert place(numbers["low"]) == pytest.approx(first + margin)
    assert place(numbers["high"]) == pytest.approx(last - margin)


def test_an_experiment_without_a_result_is_folded_beside_its_command():
    text, _, _ = pages.PAGES.loader.get_source(pages.PAGES, "source.html")
    macro = text.partition("\n")[2].partition("{% block")[0]  # of the page, without its frame
    template = pages.PAGES.from_string(macro + "{{ experiment(e, []) }}")
    entry = {
        "name": "e",
        "title": "Figure 1",
        "rows": 0,
        "long": False,
        "table": "",
        "tuned": [],
        "command": "",
        "written": "",
    }
    entry |= {"runs": 2, "spent": 0.0, "archived": {"archived": 0, "planned": 2, "outdated": 0}}
    folded, opened = (template.render(e=entry | {"is_absent": absent}, source={"page": ""}) for absent in (True, False))
    assert "<summary><h2>Figure 1</h2> <small>not archived: <code>make archive ARGS=e</code>" in folded
    assert folded.count("<details") == folded.count("</details>") == opened.count("<details") + 1
    assert opened.index("<h2>Figure 1</h2>") < opened.index("<details")
