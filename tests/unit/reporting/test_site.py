"""Findings, headlines, links and other parts of the pages."""

import re

import numpy as np
import pandas as pd
import pytest
from jinja2 import Environment, PackageLoader
from samples import ROOT, shipped_config

from agglearn_workflow.claims import statements
from agglearn_workflow.figures import charts, drawing
from agglearn_workflow.plan import Plan
from agglearn_workflow.site import pages

# -- findings and reasons ---------------------------------------------------------------------------------------------


def test_the_page_of_a_source_says_why_its_claims_fail():
    for name, claim in shipped_config()["claims"].items():
        if "why" in claim:
            page = " ".join((ROOT / f"docs/{claim['source']}.md").read_text().split())
            assert f"* `{name}`: {claim['why']}" in page
            assert page.count(f"* `{name}`: ") == 1, f"docs/{claim['source']}.md states another reason for {name}"


def write_findings(base, text: str) -> None:
    page = base / pages.FINDINGS / "s.md"
    page.parent.mkdir(parents=True)
    page.write_text(text)


def test_findings_put_no_script_into_a_page(tmp_path):
    text = "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](JavaScript:alert(1)) [b](data:text/html,x) **c** [d](x.html)"
    write_findings(tmp_path, text)
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
    marks = "It reaches <!-- e: {measure: nllh, method: a} -->.42\nor <!-- e: {measure: auc} -->−1.5.\n\n* And more.\n"
    write_findings(tmp_path, marks)
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


# -- headlines --------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan() -> Plan:
    return Plan(shipped_config() | {"run": ["maxent_table4"]})


def test_the_headline_of_a_source_is_its_first_compared_number_beside_the_printed_one(plan, tmp_path):
    (tmp_path / "tables").mkdir()
    columns = ["method", "mean", "printed", "tolerance"]
    cells = [["maxent", 0.9, "0.5", np.nan], ["logistic", 0.42, "0.421", 0.01], ["maxent", 0.42, "0.416", 0.01]]
    rows = pd.DataFrame(cells, columns=columns).assign(dataset="adult", low=0.41, high=0.43, measure="nllh")
    plan.experiments["maxent_table4"]["baseline"] = "logistic"
    what = "Maximum entropy, NLLH on Adult (1994 census income)"
    expected = {"what": what, "printed": "printed 0.416", "measured": "measured 0.420 ± 0.010"}
    for n, headline in ((3, expected), (2, None)):
        rows[:n].to_csv(tmp_path / "tables/maxent_table4.csv")
        assert pages._headline(plan, "maxent_table4", tmp_path, []) == headline
    assert pages._headline(plan, None, tmp_path, []) is None


def test_the_headline_of_a_source_may_be_a_claim_that_is_judged(plan):
    said = {"name": "c", "verdict": "holds", "place": "Table 1", "claim": "at most 1\n"}
    said["decisive"] = "Holds in 2 of 2 cases; at most 1."
    expected = {"what": "Table 1", "printed": "at most 1", "measured": "holds in 2 of 2 cases"}
    assert pages._headline(plan, "c", None, [said]) == expected
    assert pages._headline(plan, "c", None, [said | {"verdict": "undecided at this scale"}]) is None
    assert pages._headline(plan, "c", None, [said | {"verdict": "not judged"}]) is None


# -- links ------------------------------------------------------------------------------------------------------------


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
    assert found == table.replace("1>A &amp; B<", '1><a href="d/a.html">A &amp; B</a><')


def test_the_guide_is_linked_where_it_has_been_made(tmp_path):
    assert pages._guide(tmp_path, tmp_path / "site") == ""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.html").touch()
    assert pages._guide(tmp_path, tmp_path / "smoke/site") == "../../docs"


# -- parts of pages ---------------------------------------------------------------------------------------------------


def test_the_first_page_counts_the_verdicts_of_the_archive():
    verdicts = (("undecided", "holds"), ("holds", None), ("fails", "fails"))
    claims = [{"verdict": verdict, "archived": archived} for verdict, archived in verdicts]
    counts = statements.count_verdicts(claims, "archived")
    assert counts == [("holds", 1), ("fails", 1)]
    words = Environment(loader=PackageLoader("agglearn_workflow")).get_template("parts.html").module.words
    assert words(counts).strip() == "1 holds, 1 fails"
    assert words([("holds", 2), ("undecided", 1)], True).strip() == "2 hold, 1 is undecided"
    assert '<a href="#failed">2 fail</a>' in words([("fails", 2)], True)


def test_no_benchmarks_are_shown_before_the_first(tmp_path):
    assert pages._benchmarks(tmp_path) is None
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/maxent.txt.new").write_text("half of")
    assert pages._benchmarks(tmp_path) is None


# -- figures on pages -------------------------------------------------------------------------------------------------


def test_the_first_of_the_figures_below_each_other_that_has_a_result(tmp_path):
    figure, axes = charts.grid(["a", "b"], 3.0)
    axes[0].plot([0, 1])
    path, sentence = tmp_path / "f.svg", drawing.sentence("nothing")
    for before, copies in ((0, 1), (0, 2), (1, 2)):
        pictures = [drawing.from_figure(figure, "t") for _ in range(copies)]
        drawing.write(drawing.stack([sentence] * before + pictures, "t"), path)
        assert list(map(float, drawing.first(path).get("viewBox").split())) == pytest.approx([0, 0, 504, 216])
    drawing.write(sentence, path)
    assert drawing.first(path) is None


def test_highlighted_series_are_methods_of_their_experiment():
    for name, e in shipped_config()["experiments"].items():
        specs = e.get("figure", [])
        for spec in specs if isinstance(specs, list) else [specs]:
            for series in spec.get("highlight", {}):
                assert any(series.startswith(m.get("name") or key) for key, m in e["methods"].items()), (name, series)
