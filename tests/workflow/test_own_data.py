"""A data set of one's own, tried before any experiment names it; files that no rule makes; targets that are one experiment."""

import json

import pandas as pd
import pytest
from project import CHAIN, REGIONS, SPIKE_DATA, Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

MINE = {
    "title": "Mine",
    "class": "agglearn.datasets.Tabular",
    "files": {"mine.csv": {"sha256": "unknown", "path": "data/mine.csv"}},
    "features": {"numeric": ["age"]},
    "label": {"column": "bought", "positive": "yes"},
    "split": 0.3,
}
ROWS = ["20,a,yes", "30,b,no", "40,a,no", "50,c,yes", "60,b,no", "70,a,yes"]


@pytest.fixture
def own(places):
    """A project whose experiments name other data, and a file of one's own."""
    made = Project(*places)
    made.overlay["datasets"] = SPIKE_DATA | {"mine": MINE}
    made.overlay["experiments"] = {"spike_regions": REGIONS}
    made.overlay["tracking"] = {"uri": "none"}
    (made.folder / "data").mkdir()
    return made


@pytest.mark.parametrize(
    ("first", "status", "line"),
    [
        ("20,a,yes", 0, None),
        (",a,yes", 0, None),  # an empty field is a missing value
        ("20,a,", 1, "mine.csv: label 'bought' is missing in 1 rows; mend them, or leave them out by label: {missing: drop}"),
        ("20x,a,yes", 1, "column 'age' is numeric but row 1 holds '20x' (1 such rows); mend them"),
        ("20,yes", 1, "mine.csv: "),
    ],
    ids=["good", "empty number", "empty label", "text for a number", "a field lacks"],
)  # fmt: skip
def test_records_of_a_data_set_that_no_experiment_names(own, first, status, line):
    (own.folder / "data/mine.csv").write_text("\n".join(["age,city,bought", first, *ROWS[1:]]) + "\n")
    outcome = own.run("--logger=agglearn", "results/records/mine")
    errors = [text for text in outcome.said if "error" in text]
    assert outcome.status == status, outcome.text[-3000:]
    assert len(errors) == (line is not None), outcome.text
    assert "Traceback" not in outcome.text
    if line:
        assert f"agglearn: error: mine: {line}" in errors[0]
    else:
        assert json.loads((own.results / "records/mine/manifest.json").read_text())["rows"] == 6
        records = pd.read_parquet(own.results / "records/mine/features.parquet")
        assert records["age"].isna().sum() == first.startswith(",")


@pytest.mark.parametrize(
    "path",
    [
        "sources/none", "records/none", "records/walkers", "observations/none", "observations/none.json",
        "measurements/none/all.parquet", "tables/none.csv", "figures/none.svg", "site/none.html", "claims/none.json",
        "tracking/none.json", "outcome/none.txt",
    ],
)  # fmt: skip
def test_a_file_of_nothing_that_there_is_has_no_rule(own, path):
    outcome = own.run("--logger=agglearn", "--dry-run", f"results/{path}")
    assert outcome.status == 1
    assert "No rule to produce" in outcome.text, outcome.text[-2000:]
    assert "Error:" not in outcome.text
    assert "Traceback" not in outcome.text


@pytest.mark.parametrize("target", ["spike_regions", "spike"])
def test_the_page_of_one_target_is_built(own, target):
    """Another experiment of the source, and one of another source, are not run."""
    own.overlay["experiments"] |= {"spike_chain": CHAIN | {"source": "spike" if target == "spike_regions" else "other"}}
    own.overlay["claims"] = {
        "accurate": {"claim": "few errors", "place": "Section 1", "predicate": "at_most", "source": "spike", "experiment": "spike_regions",
                     "value": {"measure": "accuracy"}, "bound": 2},
    }  # fmt: skip
    outcome = own.run("--logger=agglearn", target)
    assert outcome.status == 0, outcome.text[-3000:]
    assert "agglearn: read them at results/site/index.html" in outcome.said
    page = (own.results / "site/spike.html").read_text()
    assert 'id="spike_regions"' in page
    assert 'id="claim-accurate"' in page
    assert 'href="spike.html"' in (own.results / "site/index.html").read_text()
    assert not list(own.results.glob("*/*spike_chain*"))
    assert own.run("--logger=agglearn", target).said[-1] == outcome.said[-1]
    both = own.run("--logger=agglearn")
    assert both.status == 0, both.text[-3000:]
    assert any('id="spike_chain"' in path.read_text() for path in (own.results / "site").glob("*.html"))
    assert "Not complete" not in (own.results / "site/index.html").read_text()
    assert "Snakemake has no record" not in both.text
