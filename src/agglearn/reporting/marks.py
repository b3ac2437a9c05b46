"""Marks in the pages of docs/ and config/findings/, which refer a number to its measurement.

A page writes `<!-- EXPERIMENT: {measure: M, method: N} -->.42`: a comment that readers do not get to see, then the number. The
selector is that of a claim and names one row of the experiment's table. Numbers are those of scale default.
"""

import re
from collections.abc import Container, Iterator
from pathlib import Path

import yaml

MARK = re.compile(r"<!--\s*(?P<experiment>\w+):\s*(?P<selector>\{.*?\})\s*-->\s*(?P<number>\S*)")
NUMBER = re.compile(r"[−-]?(?:\d[\d,]*)?\.?\d+")


def pages(base: Path) -> list[Path]:
    """Pages of a project that may bear marks."""
    return [page for folder in ("docs", "config/findings") for page in sorted((base / folder).glob("*.md"))]


def references(page: Path) -> Iterator[tuple[int, str, dict, str]]:
    """(line, experiment, selector, number as it is written) of every number that a page refers to its measurement."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for found in MARK.finditer(line):
            written = NUMBER.match(found["number"])
            yield number, found["experiment"], yaml.safe_load(found["selector"]), written.group() if written else ""


def marks(base: Path, experiments: Container[str]) -> list[str]:
    """Every mark on the pages that refers to one of the experiments, with its number, as it is written."""
    found = (mark for page in pages(base) for mark in MARK.finditer(page.read_text()))
    return [mark.group() for mark in found if mark["experiment"] in experiments]
