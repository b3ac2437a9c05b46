"""The page that lists what the sources show: nothing of theirs is missing, and nothing in it is stale."""

import re
import sys
from collections import Counter

import pytest
from samples import ROOT

sys.path.insert(0, str(ROOT / "docs/_ext"))
import reproduced

TEXTS = ROOT.parent / "shared/papers"
THESIS = "thesis_sun_2019_collective_proportions_distribution.txt"
PAPERS = {"maxent": "maxent_gilotte_2022_hal.txt", "vocabulary": "vocabulary_bateni_2019.txt"} | dict.fromkeys(
    ("collective", "proportions", "distribution"), THESIS
)
CHAPTERS = {"2": "collective", "3": "proportions", "4": "distribution", "A": "collective"}
CAPTION = re.compile(
    r"^[#* ]*((?:Table|Figure|Theorem|Lemma|Corollary|Proposition|Algorithm) (?:[A-Z]\.|\d\.)?\d+)(?=[ .:*(]*)", re.M
)


@pytest.mark.parametrize("source", PAPERS)
def test_all_of_a_source_is_listed(source):
    file = TEXTS / PAPERS[source]
    if not file.exists():
        pytest.skip("the text is not at hand")
    captions = CAPTION.findall(file.read_text())
    if PAPERS[source] == THESIS:
        # theorems and algorithms of the thesis are numbered throughout, and all are in chapter 2
        captions = [c for c in captions if CHAPTERS.get(c.split()[1].partition(".")[0] if "." in c else "2") == source]
    assert len(captions) >= 8
    assert set(captions) - reproduced.listed()[source].keys() == set()


@pytest.mark.parametrize("source", reproduced.listed())
def test_what_has_no_experiment_has_a_reason(source):
    stated, found = reproduced.listed()[source] or {}, reproduced.rows(source)
    for item, entry in stated.items():
        assert entry.keys() <= {"is", "differs", "why_not", "test", "experiments"}, item
        assert entry["is"], item
        assert bool(found[item]["experiments"]) != ("why_not" in entry), f"{item}: an experiment, or why there is none"
        assert "test" not in entry or (ROOT / entry["test"]).exists(), item
        assert "differs" in entry or not found[item]["printed"], f"{item}: differences of the protocol"
    names = {name for row in found.values() for name in row["experiments"]}
    assert names <= reproduced.paper().experiments.keys()


def test_every_printed_number_and_every_claim_of_a_source_has_a_row():
    plan = reproduced.paper()
    for source in reproduced.listed():
        found = reproduced.rows(source).values()
        of_source = [e for e in plan.experiments.values() if e["source"] == source]
        assert sum(row["printed"] for row in found) >= sum(len(e["reported"]) for e in of_source), source
        claims = [
            n for n, c in plan.config["claims"].items() if c["source"] == source and reproduced.places(c["place"])
        ]
        assert Counter(c for row in found for c in row["claims"]).keys() == set(claims), source


def test_verdicts_are_those_of_the_archive():
    """Section 4.2: four claims on the exclusive or, and two printed numbers."""
    row = reproduced.rows("maxent")["Section 4.2"]
    assert reproduced.verdict("Section 4.2", row) == "claims: 4 hold; 2 printed numbers, in cells: 2 agree"


def test_the_page_has_every_source():
    page = (ROOT / "docs/reproduced.md").read_text()
    assert re.findall(r"^```\{reproduced\} (\w+)", page, re.M) == list(reproduced.listed())


def test_the_figure_of_an_experiment_is_drawn_from_the_archive(tmp_path, monkeypatch):
    path = reproduced.draw("maxent_xor", tmp_path / "drawn")
    assert "Three features" in path.read_text()
    monkeypatch.setattr(reproduced.store, "experiments", lambda _: [])
    assert reproduced.draw("maxent_table5", tmp_path) is None


def test_pages_draw_experiments_that_there_are():
    pages = {page.stem: page.read_text() for page in (ROOT / "docs").glob("*.md")}
    asked = {name: re.findall(r"^```{drawn} (\w+)$", text, re.M) for name, text in pages.items()}
    assert reproduced.listed().keys() <= {page for page, names in asked.items() if names}
    assert {name for names in asked.values() for name in names} <= reproduced.paper().experiments.keys()
