"""Claims are judged in the job of the pages that show them. An edit makes these anew, and what its experiment draws; a smaller scale nothing."""

import json
import re

import pytest
from project import spiked

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

CLAIM = {"claim": "few errors", "place": "Section 1", "predicate": "at_most"}


@pytest.fixture(scope="module")
def two(places):
    """A project that has run two sources at scale default, with claims on both."""
    made = spiked(places, "spike_chain", "spike_regions")
    made.overlay["experiments"]["spike_regions"]["source"] = "whiskers"
    error = {"measure": "nllh", "params.prior": 4.0}
    made.overlay["claims"] = {
        "accurate": CLAIM | {"source": "whiskers", "experiment": "spike_regions", "value": {"measure": "accuracy"}, "bound": 2},
        "errors": CLAIM | {"source": "spike", "experiment": "spike_chain", "value": error, "bound": 100, "min_pairs": 2},
    }  # fmt: skip
    made.overlay["scale"] = "default"
    made.succeed()
    made.succeed("spike", "whiskers")
    return made


def jobs(project, *targets) -> set[str]:
    """Outputs of the jobs that are to run, but for outcomes."""
    outcome = project.succeed(*targets, "--dry-run", "--quiet", "host")
    made = {path for line in re.findall(r"^ +output: (.+)$", outcome.text, re.M) for path in line.split(", ")}
    return {path for path in made if not path.startswith("results/outcome/")}


def verdicts(project, file="claims.json") -> dict[str, str]:
    return {entry["name"]: entry["verdict"] for entry in json.loads((project.results / file).read_text())}


def test_a_source_has_the_verdicts_on_its_claims(two):
    assert list(verdicts(two)) == ["accurate", "errors"]
    parts = verdicts(two, "claims/spike.json"), verdicts(two, "claims/whiskers.json")
    assert [list(part) for part in parts] == [["errors"], ["accurate"]]
    assert parts[0] | parts[1] == verdicts(two)
    assert jobs(two, "all", "spike", "whiskers") == set()


def test_an_edited_claim_changes_its_verdict_and_the_pages(two):
    assert verdicts(two)["errors"] != "fails"
    two.overlay["claims"]["errors"] |= {"bound": -9.0, "deterministic": "a planted reason, for the sake of a test"}
    del two.overlay["claims"]["errors"]["min_pairs"]
    drawn = {f"results/tables/spike_chain.{ending}" for ending in ("csv", "html", "json", "md", "tex")}
    drawn |= {"results/figures/spike_chain.svg"}  # a figure begins with what the claims say
    pages = {f"results/{name}" for name in ("site", "claims.json", "pages/spike", "claims/spike.json")}
    assert jobs(two, "all", "spike", "whiskers") == drawn | pages
    two.succeed()
    assert verdicts(two)["errors"] == "fails"
    assert '<span class="verdict fails">' in (two.results / "site/spike.html").read_text()
    assert jobs(two) == set()


def contents(folder) -> dict:
    """Everything that was rendered in a folder, and what it was rendered from."""
    names = ("tables", "figures", "site", "measurements", "tracking", "outcome")
    return {p: p.read_bytes() for name in names for p in (folder / name).rglob("*") if p.is_file()}


def test_a_smaller_scale_leaves_what_a_larger_one_has_rendered_alone(two):
    before, finished = contents(two.results), two.computed()
    two.overlay["scale"] = "smoke"
    outcome = two.succeed()
    assert outcome.said[-1] == "agglearn: read them at results/smoke/site/index.html"
    assert (two.results / "smoke/tables/spike_chain.csv").exists()
    assert contents(two.results) == before
    assert two.computed() == finished  # its runs are among those of default
    two.overlay["scale"] = "default"
    assert "Nothing to be done" in two.run().text
