"""Claims are judged in the job of the pages that show them. An edit makes these anew, and what its experiment draws."""

import copy
import json
import re

import pytest
from project import CHAIN, REGIONS, SPIKE_DATA, Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

CLAIM = {"claim": "few errors", "place": "Section 1", "predicate": "at_most"}
MARK = "<!-- spike_chain: {measure: transition_error, params.step: 4.0} -->"


@pytest.fixture(scope="module")
def two(places):
    """A project that has run two sources at scale default, with claims on both and a number in its docs."""
    made = Project(*places)
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] = copy.deepcopy(
        {"spike_chain": CHAIN, "spike_regions": REGIONS | {"source": "whiskers"}}
    )
    error = {"measure": "transition_error", "params.step": 4.0}
    made.overlay["claims"] = {
        "accurate": CLAIM | {"source": "whiskers", "experiment": "spike_regions", "value": {"measure": "accuracy"}, "bound": 2},
        "errors": CLAIM | {"source": "spike", "experiment": "spike_chain", "value": error, "bound": 100, "min_pairs": 2},
    }  # fmt: skip
    made.overlay |= {"scale": "default", "run": ["spike_chain", "spike_regions"], "tracking": {"uri": "none"}}
    outcome = made.run()
    assert outcome.status == 0, outcome.text[-3000:]
    number = made.table("spike_chain").query("params == '{\"step\": 4.0}' and measure == 'transition_error'")["mean"]
    (made.folder / "docs/trial.md").write_text(f"# Trial\n\nThe error is {MARK}{number.item():.6f} here.\n")
    outcome = made.run("spike", "whiskers")
    assert outcome.status == 0, outcome.text[-3000:]
    return made


def jobs(project, *targets) -> set[str]:
    """Outputs of the jobs that are to run, but for outcomes."""
    outcome = project.run(*targets, "--dry-run", "--quiet", "host")
    assert outcome.status == 0, outcome.text[-3000:]
    made = {path for line in re.findall(r"^ +output: (.+)$", outcome.text, re.M) for path in line.split(", ")}
    return {path for path in made if not path.startswith("results/outcome/")}


def verdicts(project, file="claims.json") -> dict[str, str]:
    return {entry["name"]: entry["verdict"] for entry in json.loads((project.results / file).read_text())}


ALL = {"results/site", "results/claims.json"}
SPIKE = {"results/pages/spike", "results/claims/spike.json"}


def drawn(experiment: str) -> set[str]:
    """Files of the job that draws an experiment: a figure begins with what the claims say."""
    tables = {f"results/tables/{experiment}.{ending}" for ending in ("csv", "html", "json", "md", "tex")}
    return tables | {f"results/figures/{experiment}.svg"}


def test_a_source_has_the_verdicts_on_its_claims(two):
    assert list(verdicts(two)) == ["accurate", "errors"]
    parts = verdicts(two, "claims/spike.json"), verdicts(two, "claims/whiskers.json")
    assert [list(part) for part in parts] == [["errors"], ["accurate"]]
    assert parts[0] | parts[1] == verdicts(two)
    assert jobs(two, "all", "spike", "whiskers") == set()


@pytest.mark.parametrize("key", ["bound", "claim", "value"])
def test_an_edited_claim_is_judged_again(two, key):
    claims = two.overlay["claims"]
    before = copy.deepcopy(claims)
    claims["errors"][key] = {"bound": 0.0, "claim": "no errors", "value": {"measure": "transition_error"}}[key]
    assert jobs(two, "all", "spike", "whiskers") == ALL | SPIKE | drawn("spike_chain")
    two.overlay["claims"] = before


def test_an_edited_claim_changes_its_verdict_and_the_pages(two):
    assert verdicts(two)["errors"] != "fails"
    two.overlay["claims"]["errors"] |= {"bound": 0.0, "deterministic": "a planted reason, for the sake of a test"}
    del two.overlay["claims"]["errors"]["min_pairs"]
    outcome = two.run()
    assert outcome.status == 0, outcome.text[-3000:]
    assert verdicts(two)["errors"] == "fails"
    assert '<span class="verdict fails">' in (two.results / "site/spike.html").read_text()
    assert jobs(two) == set()


def test_a_printed_number_changes_its_table_alone(two):
    printed = {"dataset": "walkers", "method": "gradient", "params": {"step": 4.0}, "measure": "transition_error"}
    two.overlay["experiments"]["spike_chain"]["reported"] = [printed | {"value": 0.5, "place": "Table 1"}]
    two.overlay["experiments"]["spike_chain"]["agreement"] = {
        "margins": {},
        "reason": "a planted number, which nothing is held against",
    }
    made = jobs(two, "all", "whiskers")
    assert {"results/tables/spike_chain.csv", "results/site"} <= made
    assert not [path for path in made if "measurements" in path or "whiskers" in path or "regions" in path]
    del two.overlay["experiments"]["spike_chain"]["reported"], two.overlay["experiments"]["spike_chain"]["agreement"]


def test_an_edited_predicate_judges_everything_again(two):
    two.edit("src/agglearn_workflow/claims/judging.py", "MIN_PAIRS = 3", "MIN_PAIRS = 4")
    assert jobs(two) == ALL | drawn("spike_chain") | drawn("spike_regions")
    two.edit("src/agglearn_workflow/claims/judging.py", "MIN_PAIRS = 4", "MIN_PAIRS = 3")


def test_an_ablation_may_contradict_a_number_in_the_docs(two):
    """A change of the configuration alone that changes a number that the project's pages state ends with 0."""

    def error() -> float:
        rows = two.table("spike_chain").query("params == '{\"step\": 4.0}' and measure == 'transition_error'")
        return rows["mean"].item()

    before = error()
    outcome = two.run("--config", "set=spike_chain.seeds=[0]")
    assert outcome.status == 0, outcome.text[-3000:]
    assert abs(error() - before) > 1e-5  # the page states six digits, and one seed has no interval
