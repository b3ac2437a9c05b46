"""The whole way at scale smoke: what runs, what does not run again, and what exactly runs after a change."""

import json
import re
from urllib.parse import unquote

import pytest
from project import tracking_client

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def first(project):
    return project.run()


def runs_of(project, **wanted):
    return {r["run"] for r in project.records() if all(r[k] == v for k, v in wanted.items())}


def test_whole_way(project, first):
    assert first.status == 0, first.text[-3000:]
    names = sorted(p.stem for p in (project.results / "tables").glob("*.csv"))
    assert {"maxent_table4", "vocabulary_figure3", "proportions_figure35", "spike_chain"} <= set(names)
    for name in names:
        for kind in ("md", "tex", "html"):
            assert (project.results / f"tables/{name}.{kind}").stat().st_size > 100
        assert (project.results / f"figures/{name}.svg").read_text().startswith("<?xml")
    assert not [r for r in project.records() if r["status"] == "failed"]
    absent = {r["dataset"] for r in project.records() if r["status"] != "ok" and "`make " not in r["reason"]}
    assert absent <= {"adkdd21", "criteo_dac_head"}  # no source here; else a package of a step of its own is missing
    good = project.table("maxent_table4").query("measure == 'nllh' and method == 'logistic' and dataset == 'adult'")
    assert good["mean"].item() > 0.02  # the planted dependence is found


def test_what_has_no_source_is_stated(project, first):
    assert (project.table("maxent_figure4").status == "unavailable").all()
    assert "Without a result: " in (project.results / "tables/maxent_figure4.md").read_text()
    assert "No run of this figure has a result." in (project.results / "site/figures/maxent_figure4.svg").read_text()
    page = (project.results / "site/maxent.html").read_text()
    for name, has_data in (("maxent_figure4", False), ("maxent_table4", True)):
        assert (f'<img loading="lazy" src="figures/{name}.svg"' in page) == has_data, name
    missing = [line for line in first.said if line.startswith("agglearn: not available: adkdd21")]
    assert any(line.endswith("; get it: agglearn data get adkdd21") for line in missing)


def test_site_is_whole(project, first):
    site = project.results / "site"
    index = (site / "index.html").read_text()
    assert "Which aggregate" not in index  # the ladder is not in this run
    assert "Scale “smoke”" in index
    assert "adkdd21" in index.split('id="without"')[1].split("</section>")[0]
    data = (site / "data.html").read_text()
    assert "doi:10.24432/C5XW20" in data
    assert re.search(r"adkdd21</strong>.*?<em>not available</em>", data, re.DOTALL)
    assert 'href="maxent.html#maxent_table4">maxent_<wbr>table4</a>' in data
    for page in site.rglob("*.html"):
        text = page.read_text()
        for link in re.findall(r'(?:href|src)="(?!\w+:)([^"]*)"', text):
            file, _, fragment = unquote(link).partition("#")
            target = page.parent / file if file else page
            assert target.exists(), f"{page.name} links to {link}"
            assert not fragment or target.suffix != ".html" or f'id="{fragment}"' in target.read_text(), link
        assert not re.search(
            r'<(?:script|img|link|iframe)[^>]*(?:src|href)="https?:', text
        )  # no page needs the network
        assert len(text) < 300_000, page.name
        assert not re.search(r"\bnan\b|±\s0\.0+\b|None", text), page.name
        assert all('alt="' in image for image in re.findall("<img[^>]*>", text))
        assert text.count("<h1") == 1
    source = (site / "maxent.html").read_text()
    assert "make reproduce ARGS=&#34;maxent_table4 --config scale=smoke&#34;" in source
    assert " %" not in source  # a number and its sign stay in one line
    assert "(95\u00a0%" in source
    assert " ± " not in source
    assert 'value="judged" checked' in source  # claims without a verdict are folded
    claims = json.loads((project.results / "claims.json").read_text())
    assert source.count('<details class="claim') == sum(c["source"] == "maxent" for c in claims)
    assert {c["verdict"] for c in claims} <= {"holds", "fails", "undecided", "undecided at this scale", "not judged"}


def test_keys_travel(project, first):
    assert project.table("spike_regions")["keys"].notna().sum() == 8
    assert "| 7 |" in (project.results / "tables/spike_regions.md").read_text()


def test_a_second_run_does_nothing_and_a_comment_changes_nothing(project, first):
    before = project.computed()
    assert "Nothing to be done" in project.succeed().text
    assert project.computed() == before
    project.edit("src/agglearn/maxent/best_pair.py", '"""', '"""More words. ')
    project.edit("tests/workflow/spikes/bags.py", "class MeanThreshold", "# a comment\nclass MeanThreshold")
    assert "Nothing to be done" in project.run().text


def test_changes_rerun_what_depends_on_them(project, first):
    """The code of a method, a parameter of another, and a seed: three changes in one run, each of which has its own runs."""
    before = project.computed()
    project.edit("tests/workflow/spikes/bags.py", "1 - observation.counts", "1.0 - observation.counts")
    project.overlay["experiments"]["maxent_table4"] = {"methods": {"naive_bayes": {"params": {"smoothing": 2.0}}}}
    project.overlay["experiments"]["spike_chain"]["seeds"] = [0, 1, 2]
    project.succeed()
    after = project.computed()
    assert {k for k in after if after[k] != before.get(k)} == (
        runs_of(project, experiment="spike_regions")
        | runs_of(project, experiment="spike_chain", seed=2)
        | runs_of(project, method="naive_bayes", params='{"kind": "generative", "smoothing": 2.0}')
    )
    assert (project.table("spike_chain").query("measure == 'nllh'").n == 3).all()


def test_lost_tracking_store_is_filled_again(project, first):
    (project.results / "mlflow.db").unlink()
    project.succeed("spike_chain")
    client = tracking_client(project.results)
    [e] = [e for e in client.search_experiments() if e.name == "spike_chain"]
    sent = client.search_runs([e.experiment_id], "tags.kind = 'seed'")
    assert sorted(run.data.tags["agglearn.run"] for run in sent) == sorted(runs_of(project, experiment="spike_chain"))
