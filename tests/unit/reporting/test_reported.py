"""Every printed number in the configuration stands in the text of its source, where that text is at hand."""

import re

import pytest
from samples import ROOT

from agglearn_workflow.config.loading import read_mapping

TEXTS = ROOT.parent / "shared/papers"
PREFIX = {"maxent": "maxent_", "vocabulary": "vocabulary_", "labelsums": "labelsums_"}  # the rest is in the thesis


def reported():
    for path in sorted((ROOT / "config/experiments").glob("[!_]*.yaml")):
        e = read_mapping(path)
        for entry in e.get("reported") or []:
            if entry["place"].startswith("Public notebook"):  # of the authors, whose text is not at hand
                continue
            source = e.get("source", path.stem.partition("_")[0])
            printed = entry.get("printed", str(entry["value"]))
            yield pytest.param(source, entry, printed, id=f"{path.stem}-{entry['dataset']}-{entry['method']}-{printed}")


@pytest.mark.parametrize(("source", "entry", "printed"), list(reported()))
def test_printed_number_is_in_the_source(source, entry, printed):
    assert float(printed) == entry["value"]
    files = sorted(TEXTS.glob(f"{PREFIX.get(source, 'thesis_')}*.txt"))
    if not files:
        pytest.skip("the sources' texts are not at hand")
    place = re.match(r"(Table|Figure|Section|Appendix) ?([\w.]+)", entry["place"])
    texts = [f.read_text() for f in files]
    heading = place.group(2) if place.group(1) == "Section" else place.group()  # headings of sections are numbers
    assert any(number_near(t, printed, heading) for t in texts)


def number_near(text: str, printed: str, place: str, reach: int = 4000) -> bool:
    """Whether the number stands within `reach` characters of a mention of its place."""
    where = [m.start() for m in re.finditer(rf"(?<![\d.]){re.escape(printed)}(?![\d])", text)]
    marks = [m.start() for m in re.finditer(re.escape(place), text, re.IGNORECASE)]
    return any(abs(w - m) < reach for w in where for m in marks)


def test_a_wrong_number_is_noticed():
    text = "Table 9: things\n0.421 0.5"
    assert number_near(text, "0.421", "Table 9")
    assert not number_near(text, "0.42", "Table 9")
    assert not number_near(text, "0.421", "Table 8")
