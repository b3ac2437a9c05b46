"""A data set of one's own, tried before any experiment names it; files that no rule makes; targets that are one experiment or source."""

import json

import pandas as pd
import pytest
import yaml
from project import CHAIN, REGIONS, spiked

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

MINE = {
    "title": "Mine", "class": "agglearn.datasets.Tabular", "features": {"numeric": ["age"]}, "split": 0.3,
    "files": {"mine.csv": {"sha256": "unknown", "path": "data/mine.csv"}},
    "label": {"column": "bought", "positive": "yes"},
}  # fmt: skip
ROWS = ["20,a,yes", "30,b,no", "40,a,no", "50,c,yes", "60,b,no", "70,a,yes"]


@pytest.fixture
def own(places):
    """A project whose experiments name other data, and a file of one's own."""
    made = spiked(places, "spike_regions")
    made.overlay["run"] = "all"
    made.overlay["datasets"]["mine"] = MINE
    (made.folder / "data").mkdir()
    return made


@pytest.mark.parametrize(
    ("first", "line"),
    [
        (",a,yes", None),  # an empty field is a missing value
        ("20,a,", "mine.csv: label 'bought' is missing in 1 row; mend them, or leave them out by label: {missing: drop}"),
    ],
    ids=["good", "empty label"],
)  # fmt: skip
def test_records_of_a_data_set_that_no_experiment_names(own, first, line):
    (own.folder / "data/mine.csv").write_text("\n".join(["age,city,bought", first, *ROWS[1:]]) + "\n")
    outcome = own.run("results/records/mine")
    errors = [text for text in outcome.said if "error" in text]
    assert outcome.status == 0, outcome.text[-3000:]  # what is wrong in data is a status of theirs
    assert len(errors) == (line is not None), outcome.text
    assert "Traceback" not in outcome.text
    if line:
        assert f"agglearn: error: mine: {line}" in errors[0]
    else:
        assert json.loads((own.results / "records/mine/manifest.json").read_text())["rows"] == 6
        records = pd.read_parquet(own.results / "records/mine/features.parquet")
        assert records["age"].isna().sum() == first.startswith(",")


def test_a_file_that_appears_is_noticed(own):
    manifest = own.results / "records/mine/manifest.json"
    for status in ("unavailable", "ok"):
        own.succeed("results/records/mine")
        assert json.loads(manifest.read_text())["status"] == status
        (own.folder / "data/mine.csv").write_text("\n".join(["age,city,bought", *ROWS]) + "\n")


@pytest.mark.parametrize("path", ["records/walkers", "measurements/none/all.parquet", "pages/none"])
def test_a_file_of_nothing_that_there_is_has_no_rule(own, path):
    outcome = own.run("--dry-run", f"results/{path}")
    assert outcome.status == 1
    assert "No rule to produce" in outcome.text, outcome.text[-2000:]
    assert "Traceback" not in outcome.text


def test_the_pages_of_one_target_are_built(own):
    """Another experiment of the source, and one of another source, are not run."""
    claim = {"claim": "few errors", "place": "Section 1", "predicate": "at_most", "source": "spike", "bound": 2}
    own.overlay["claims"] = {"accurate": claim | {"experiment": "spike_regions", "value": {"measure": "accuracy"}}}
    for target, other in (("spike_regions", "spike"), ("spike", "other")):
        own.overlay["experiments"]["spike_chain"] = CHAIN | {"source": other}
        outcome = own.succeed(target)
        assert outcome.said[-1] == f"agglearn: read them at results/pages/{target}/index.html"
        pages = own.results / "pages" / target
        page = (pages / "spike.html").read_text()
        assert 'id="spike_regions"' in page
        assert 'id="claim-accurate"' in page
        assert 'href="spike.html"' in (pages / "index.html").read_text()
        assert not list(own.results.glob("*/*spike_chain*"))
        [claim] = json.loads((own.results / f"claims/{target}.json").read_text())
        assert claim["name"] == "accurate"
    assert "Nothing to be done" in own.run(target).text
    both = own.run()
    assert both.status == 0, both.text[-3000:]
    assert both.said[-1] == "agglearn: read them at results/site/index.html"
    assert 'id="spike_chain"' in (own.results / "site/other.html").read_text()


BROKEN = {  # name → files that are written, settings of the configuration, and what the line on the experiment states
    "no module": ({}, {}, "methods.mine.class: there is no class 'mine_code.Mine': no folder under code: (config/config.yaml) has a"),
    "no Python": ({"tests/workflow/spikes/mine_code.py": "class Mine(:\n"}, {}, "methods.mine.class: 'mine_code.Mine' cannot be imported: SyntaxError: invalid syntax (mine_code.py, line 1)"),
    "no YAML": ({"config/experiments/mine.yaml": "title: [\n"}, {}, "mine.yaml:2: not valid YAML"),
    "a wrong data set": ({}, {"dataset": "wrong"}, "config/datasets/wrong.yaml: class: there is no class 'mine_code.Data'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_what_does_not_load_stops_only_the_targets_that_need_it(own, kind):
    files, settings, line = BROKEN[kind]
    mine = REGIONS | {"source": "whiskers", "methods": {"mine": {"class": "mine_code.Mine", "observe": "bags"}}}
    mine["datasets"] = {settings.get("dataset", "regions"): {}}
    written = {
        "config/experiments/mine.yaml": yaml.safe_dump(mine),
        "config/datasets/wrong.yaml": "title: W\nclass: mine_code.Data\n",
    }
    for name, text in (written | files).items():
        (own.folder / name).write_text(text)
    good = own.run("--dry-run", "spike_regions")
    assert good.status == 0, good.text[-3000:]
    assert any(text.startswith("agglearn: left out: ") and line in text for text in good.said), good.text
    for target in ([], ["whiskers"]) if kind == "no module" else (["mine"],):
        refused = own.run("--dry-run", *target)
        assert refused.status == 1
        assert [text for text in refused.said if line in text], refused.text[-2000:]
        assert "Traceback" not in refused.text
