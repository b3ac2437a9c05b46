"""Every page of the site in a browser: accessible, whole, legible on a phone, and with answers to what a stranger asks."""

import re

import pytest
from browser import Visitor

WIDTHS = (1300, 760, 400)
DARK = "--blink-settings=preferredColorScheme=0"
LARGEST = 300_000  # bytes of a page
EMPTY = re.compile(r"\b(nan|NaN|undefined|Infinity|None)\b|±\s0(\.0*)?(?![\d.])")


@pytest.fixture(scope="module")
def site(project):
    return project.results / "site"


@pytest.fixture(scope="module")
def pages(site):
    found = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    assert {"index.html", "maxent.html", "data.html", "verdicts.html", "full/labelsums_ladder.html"} <= set(found)
    return found


@pytest.fixture(scope="module", params=[(), (DARK,)], ids=["light", "dark"])
def looked(request, site, pages):
    """(visitor, what a browser found on every page, wide and narrow)."""
    visitor = Visitor(site, *request.param)
    found = visitor.ask([{"page": f"/{page}", "width": width} for page in pages for width in WIDTHS])
    assert all(one.get("dark") == bool(request.param) for one in found), [one.get("error") for one in found]
    return visitor, found


def test_every_page_is_accessible(looked):
    """Nothing serious or critical in the rules of axe-core: contrast, names, keyboard, structure."""
    wrong = {
        (one["page"], v["id"]): v["nodes"][:3]
        for one in looked[1]
        for v in one["violations"]
        if v["impact"] in ("serious", "critical")
    }
    assert not wrong


def test_no_page_writes_to_the_console_or_misses_a_picture(looked):
    visitor, found = looked
    assert visitor.messages == []
    assert not [(one["page"], one["broken"]) for one in found if one["broken"]]


def test_no_page_is_wider_than_its_window(looked):
    assert not [(one["page"], one["width"], one["wider"]) for one in looked[1] if one["wider"] > 0]


def test_no_figure_is_shrunk_below_the_size_of_its_letters(looked):
    assert not [(one["page"], one["width"], one["shrunk"]) for one in looked[1] if one["shrunk"]]


def test_no_page_shows_a_number_that_is_none(looked):
    assert not {(one["page"], EMPTY.search(one["text"])[0]) for one in looked[1] if EMPTY.search(one["text"])}


def test_what_is_no_number_is_found():
    assert all(EMPTY.search(text) for text in ("nan", "0.1 ± 0.000", "0.1 ± 0", "None"))
    assert not any(EMPTY.search(text) for text in ("0.1 ± 0.012", "0.1 ± 0.5", "nano", "1 ± 0.001"))


def test_every_page_is_small(site, pages):
    assert not {page: size for page in pages if (size := (site / page).stat().st_size) > LARGEST}
    loaded = set(re.findall(r'<(?:img|link)[^>]*(?:src|href)="([^"#:]+)["#]', (site / "index.html").read_text()))
    assert {"style.css", "figures/ladder.svg"} <= loaded
    assert sum((site / name).stat().st_size for name in ["index.html", *loaded]) <= 400_000


QUESTIONS = {  # question → what to click on the first page, and words of the answer that can then be read
    "what was reproduced": ("Maximum entropy from contingency tables", [
        "Maximum entropy predicts better than naive Bayes", "Holds in", "Table 4: normalised log-likelihood"]),
    "what failed, and why": ("what failed, and why", [
        "An NLLH of maximum entropy is above two.", "Why: No NLLH is above one."]),
    "which aggregate to ask for": ("which aggregate to ask for", [
        "Ask for tables of all pairs, or for one label sum per feature"]),
    "how fast, against what": ("how fast, beside what", [
        "Training takes about 100 times as long as the logistic regression", "times as long"]),
    "what could not be had": ("what is missing, and how to get it", [
        "not available: adkdd21_coarse", "get it: agglearn data get adkdd21_coarse"]),
}  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_by_one_click(site, question):
    click, words = QUESTIONS[question]
    [found] = Visitor(site).ask([{"page": "/index.html", "clicks": [click]}])
    assert "missing" not in found
    text = " ".join(found["text"].split())
    assert [part for part in words if part not in text] == []


def test_an_answer_that_is_not_there_is_noticed(site):
    [found] = Visitor(site).ask([{"page": "/index.html", "clicks": ["no such words"]}])
    assert found["missing"] == "no such words"
    [folded] = Visitor(site).ask([{"page": "/maxent.html", "clicks": []}])
    assert "Deterministic, hence judged without an interval" not in folded["text"]  # before the click


def test_claims_without_a_verdict_are_shown_where_they_are_asked_for(site):
    everything = re.search(r"all \(\d+\)", (site / "labelsums.html").read_text())[0]
    first, then = Visitor(site).ask([{"page": "/labelsums.html", "clicks": clicks} for clicks in ([], [everything])])
    assert first["text"].count("not judged") < then["text"].count("not judged")


def test_pages_open_from_disk_and_are_kept_as_pictures(site):
    visitor = Visitor(site)
    for page in ("index", "maxent", "labelsums", "collective", "data", "verdicts"):
        for width in WIDTHS:
            picture = visitor.shot((site / f"{page}.html").as_uri(), f"{page}_{width}.png", width)
            assert picture.stat().st_size > 20_000


def test_printing_shows_what_is_folded(site):
    """The rules for paper open what a click opens on the screen."""
    styles = (site / "style.css").read_text()
    assert "details::details-content { content-visibility: visible" in styles[styles.index("@media print") :]


def test_snakemakes_report_has_captions_and_categories(project):
    outcome = project.run("--report", "report.html")
    assert outcome.status == 0, outcome.text[-2000:]
    dom = Visitor(project.folder).dom((project.folder / "report.html").as_uri())
    for category in ("Maximum entropy from contingency tables", "Logistic regression from label sums"):
        assert category in dom
    text = (project.folder / "report.html").read_text()
    assert "ARGS=&quot;labelsums_ladder</span>" in text
    assert "scale=smoke&quot;</tt>" in text
    assert "From the base rate to all records" in text  # of its caption
